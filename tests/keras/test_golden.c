/*
 * Models that Keras saved, for each of which Keras's own predictions are beside it: every file of tests/golden/keras is loaded and
 * predicts the same, on one device and on three, and so does what is saved of it and loaded again. Saved files stay in the folder
 * YOKE_SAVED, if that is set, for tests/golden/check_keras_files.py, which has Keras itself load them. tests/golden/make_keras_models.py made them.
 */
#include "support/check.h"
#include <dirent.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "store/safetensors.h"

enum { LEAST = 125 + 95 };              /* files there are, .h5 and .keras, or more */
#define TOLERANCE 1e-5

static const char *folder(void) {
  static char path[512];
  const char *tests = getenv("YOKE_TEST_DATA");
  snprintf(path, sizeof path, "%s/golden/keras", tests != NULL ? tests : "tests");
  return path;
}

static size_t take(const yk_safetensors *f, const char *prefix, yk_tensor **out) {
  char name[32];
  size_t n = 0;
  for (; n < 16; n++) {
    snprintf(name, sizeof name, "%s%zu", prefix, n);
    if (yk__safetensors_desc(f, name) == NULL) break;
    CHECK_OK(yk__safetensors_get(f, name, &out[n]));
  }
  return n;
}

static void same(const char *name, size_t k, const yk_tensor *got, const yk_tensor *want) {
  const yk_desc *g = yk_tensor_desc(got), *w = yk_tensor_desc(want);
  if (g->rank != w->rank || yk_tensor_count(got) != yk_tensor_count(want)) fail_msg("%s: output %zu has another shape", name, k);
  for (uint32_t i = 0; i < g->rank; i++)
    if (g->dim[i] != w->dim[i])
      fail_msg("%s: output %zu, dimension %u: %lld, expected %lld", name, k, i, (long long)g->dim[i], (long long)w->dim[i]);
  for (int64_t i = 0; i < yk_tensor_count(got); i++) {
    double x = yk_tensor_at(got, i), y = yk_tensor_at(want, i);
    if (!(fabs(x - y) <= TOLERANCE * fmax(1, fabs(y))))
      fail_msg("%s: output %zu[%lld]: %.9g, Keras has %.9g", name, k, (long long)i, x, y);
  }
}

/* Runs the network and compares; wanted values are freed. */
static void compare(const char *name, yk_network *n, yk_tensor *const *in, size_t nout, yk_tensor **want) {
  yk_tensor *got[16];
  yk_code rc = yk_network_predict(n, (const yk_tensor *const *)in, 0, got);
  if (rc != YK_OK) fail_msg("%s: %s", name, yk_error_message());
  for (size_t i = 0; i < nout; i++) same(name, i, got[i], want[i]);
  for (size_t i = 0; i < nout; i++) yk_tensor_free(got[i]), yk_tensor_free(want[i]);
}

static void predict(const char *name, uint32_t ndevices, const char *file, const char *save) {
  static const char *const device[] = { "/gpu:0", "/gpu:1", "/gpu:2" };
  char path[1024];
  yk_keras *k;
  yk_network *n;
  yk_safetensors *values;
  yk_tensor *in[16], *want[16], *again[16];
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s.safetensors", folder(), name);
  CHECK_OK(yk__safetensors_open(path, &values));
  size_t nin = take(values, "in", in), nout = take(values, "out", want), nagain = take(values, "again", again);
  assert_true(nin > 0 && nout > 0);
  CHECK_OK(yk_keras_new(1, &k));
  yk_code rc = yk_network_load(k, file, &n);
  if (rc != YK_OK) fail_msg("%s: %s", name, yk_error_message());
  o.virtual_gpus = (int32_t)ndevices;
  place.ndevices = ndevices;
  place.devices = device;
  place.session = &o;
  CHECK_OK(yk_network_place(n, &place));
  compare(name, n, in, nout, want);
  if (nagain > 0) compare(name, n, in, nagain, again);     /* stateful: it goes on */
  if (save != NULL) CHECK_OK(yk_network_save(n, save));
  for (size_t i = 0; i < nin; i++) yk_tensor_free(in[i]);
  yk__safetensors_close(values);
  yk_keras_free(k);
}

/* Archives are written for Keras 3, which has no hard_sigmoid of Keras 2. */
static const char *saved_ending(const char *name, const char *ending) {
  return strcmp(name, "keras2-activations") == 0 || strcmp(name, "keras2-lstm_no_bias") == 0 ? ".h5" : ending;
}

/* A saved file is read once more. */
static void one(const char *name, const char *ending, uint32_t ndevices, const char *saved) {
  char file[1024], again[1024];
  snprintf(file, sizeof file, "%s/%s%s", folder(), name, ending);
  if (saved == NULL) {
    predict(name, ndevices, file, NULL);
    return;
  }
  snprintf(again, sizeof again, "%s/%s%s", saved, name, saved_ending(name, ending));
  predict(name, ndevices, file, again);
  predict(name, ndevices, again, NULL);
  if (getenv("YOKE_SAVED") == NULL) unlink(again);
}

static void all(uint32_t ndevices, const char *saved) {
  DIR *d = opendir(folder());
  int n = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    char *dot = strstr(e->d_name, ".h5"), ending[16];
    if (dot == NULL) dot = strstr(e->d_name, ".keras");
    if (dot == NULL) continue;
    snprintf(ending, sizeof ending, "%.15s", dot);
    *dot = '\0';
    one(e->d_name, ending, ndevices, saved);
    n++;
  }
  closedir(d);
  if (n < LEAST) fail_msg("only %d models are there", n);
}

static void test_one_device(void **state) {
  (void)state;
  all(0, NULL);
}

static void test_three_devices(void **state) {
  (void)state;
  all(3, NULL);
}

static void test_saved(void **state) {
  char temporary[] = "/tmp/yoke-keras-XXXXXX";
  const char *keep = getenv("YOKE_SAVED");
  (void)state;
  if (keep == NULL && mkdtemp(temporary) == NULL) fail_msg("no temporary folder");
  all(0, keep != NULL ? keep : temporary);
  if (keep == NULL) rmdir(temporary);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_device), cmocka_unit_test(test_three_devices),
                                      cmocka_unit_test(test_saved) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
