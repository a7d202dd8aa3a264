/*
 * files.c - see files.h. The folder is below the system's for temporary files.
 */
#include "data/files.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

int files_set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-data-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f) {
  (void)s;
  (void)kind;
  (void)f;
  return remove(path);
}

int files_tear_down(void **state) {
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *turn(void) {
  static char path[4][512];
  static int next;
  return path[next++ % 4];
}

const char *in_folder(const char *name) {
  char *path = turn();
  snprintf(path, 512, "%s/%s", folder, name);
  return path;
}

const char *golden(const char *name) {
  char *path = turn();
  const char *root = getenv("YOKE_TEST_DATA");
  if (root == NULL) fail_msg("YOKE_TEST_DATA is not set");
  snprintf(path, 512, "%s/golden/data/%s", root, name);
  return path;
}

void put(const char *name, const void *bytes, size_t n) {
  char path[512];
  snprintf(path, sizeof path, "%s", in_folder(name));
  for (char *p = path + strlen(folder) + 1; *p != '\0'; p++)
    if (*p == '/') {
      *p = '\0';
      mkdir(path, 0777);
      *p = '/';
    }
  FILE *f = fopen(path, "wb");
  if (f == NULL) fail_msg("%s cannot be written", path);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

void put_text(const char *name, const char *text) {
  put(name, text, strlen(text));
}

uint8_t *get_all(const char *path, size_t *n) {
  enum { MOST = 1 << 20 };
  uint8_t *all = malloc(MOST);
  FILE *f = fopen(path, "rb");
  if (f == NULL || all == NULL) fail_msg("%s cannot be read", path);
  *n = fread(all, 1, MOST, f);
  fclose(f);
  return all;
}

yk_code open_set(const char *path, const yk_dataset_options *o, yk_split split, yk_dataset **out) {
  uint64_t live = yk__alloc_live();
  *out = NULL;
  yk_code rc = yk_dataset_open(path, o, split, out);
  if (rc != YK_OK && (*out != NULL || yk__alloc_live() != live))
    fail_msg("%s: refused (%s), but %s", path, yk_error_message(), *out != NULL ? "there is a result" : "memory is left");
  return rc;
}

yk_dataset *opened(const char *path, const yk_dataset_options *o, yk_split split) {
  yk_dataset *d;
  yk_code rc = open_set(path, o, split, &d);
  if (rc != YK_OK) fail_msg("%s: %s: %s", path, yk_code_name(rc), yk_error_message());
  return d;
}

void refused(const char *path, const yk_dataset_options *o, yk_split split, yk_code code, const char *const *texts) {
  yk_dataset *d;
  yk_code rc = open_set(path, o, split, &d);
  if (rc != code) fail_msg("%s: got %s (%s), expected %s", path, yk_code_name(rc), yk_error_message(), yk_code_name(code));
  for (; *texts != NULL; texts++)
    if (strstr(yk_error_message(), *texts) == NULL) fail_msg("%s: \"%s\" lacks \"%s\"", path, yk_error_message(), *texts);
  yk_error_clear();
}

void check_component(const yk_dataset *d, uint32_t k, const char *name, yk_dtype dtype, yk_shape shape) {
  const yk_desc *c = yk_dataset_component(d, k);
  if (c == NULL) fail_msg("there is no component %u", k);
  if (strcmp(yk_dataset_component_name(d, k), name) != 0)
    fail_msg("component %u is '%s', expected '%s'", k, yk_dataset_component_name(d, k), name);
  if (c->dtype != dtype) fail_msg("'%s' is %s, expected %s", name, yk_dtype_name((yk_dtype)c->dtype), yk_dtype_name(dtype));
  CHECK_INT(c->rank, shape.rank);
  for (uint32_t i = 0; i < shape.rank; i++)
    if (c->dim[i] != shape.dim[i])
      fail_msg("'%s' has %lld at %u, expected %lld", name, (long long)c->dim[i], i, (long long)shape.dim[i]);
}
