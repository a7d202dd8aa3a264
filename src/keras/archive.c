/*
 * archive.c - Keras's .keras archives: a zip of the config, how it is trained, and a weight file.
 *
 * Those of Keras 3 are read and written; those of Keras 2 (tf-keras) are read, if 2.14 or a later one made them: before that, layers were counted
 * in another way.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "data/zip.h"
#include "keras/compile_json.h"
#include "keras/json.h"
#include "keras/layout3.h"
#include "keras/load.h"
#include "keras/state_file.h"
#include "store/zip_write.h"

static const char CONFIG[] = "config.json", METADATA[] = "metadata.json", WEIGHTS[] = "model.weights.h5";
/* What is large and packed to less than a hundredth is no weights. */
enum { MOST_TEXT = 1 << 28, MOST_METADATA = 1 << 20, MOST_PACKED = 100 };

bool yk__archive_is(const char *path) {
  char head[4] = "";
  FILE *f = fopen(path, "rb");
  if (f == NULL) return false;
  bool is = fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, "PK\3\4", 4) == 0;
  fclose(f);
  return is;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

typedef struct archive { yk_file f; yk_zip zip; } archive;

static yk_code open_archive(const char *path, archive *a) {
  *a = (archive){ 0 };
  YK_TRY(yk__file_open(path, &a->f));
  yk_code rc = yk__zip_list(&a->f, &a->zip);
  if (rc == YK_OK) return YK_OK;
  yk__free(a->zip.m);
  yk__file_close(&a->f);
  return rc;
}

static void close_archive(archive *a) {
  yk__free(a->zip.m);
  yk__file_close(&a->f);
}

static yk_zip_member *member(archive *a, const char *name) {
  for (uint32_t i = 0; i < a->zip.n; i++)
    if (strcmp(a->zip.m[i].name, name) == 0) return &a->zip.m[i];
  return NULL;
}

static yk_code extract(archive *a, const char *name, int64_t most, void **out, size_t *n) {
  yk_zip_member *m = member(a, name);
  if (m == NULL) return YK_FAIL(ECORRUPT, "'%s' is no model of Keras: the archive has no '%s'", a->f.path, name);
  YK_TRY(yk__zip_find(&a->f, m));
  if (m->bytes > most || (!m->stored && m->bytes > MOST_TEXT && m->bytes / MOST_PACKED > m->packed))
    return YK_FAIL(ECORRUPT, "'%s': member '%s' is said to have %lld bytes", a->f.path, name, (long long)m->bytes);
  YK_TRY(yk__zip_extract(&a->f, m, out));
  *n = (size_t)m->bytes;
  return YK_OK;
}

/* *out NULL: it is no JSON. */
static yk_code parse(const void *text, size_t n, json_t **out) {
  json_error_t error;
  *out = json_loadb(text, n, 0, &error);
  return *out == NULL && json_error_code(&error) == json_error_out_of_memory ? YK_ENOMEM : YK_OK;
}

/* ---- which Keras ------------------------------------------------------------------------------------------------------------ */

/* 2 or 3, as the metadata say; 0: there are none, or they do not say it, which does not keep Keras from reading the archive either. */
static yk_code told_major(archive *a, int *out) {
  void *text = NULL;
  size_t n = 0;
  int major = 0, minor = 0;
  *out = 0;
  if (member(a, METADATA) == NULL) return YK_OK;
  YK_TRY(extract(a, METADATA, MOST_METADATA, &text, &n));
  json_t *root = NULL;
  yk_code rc = parse(text, n, &root);
  yk__free(text);
  const char *version = json_string_value(json_object_get(root, "keras_version"));
  if (version != NULL && sscanf(version, "%2d.%3d", &major, &minor) == 2) {
    if (major < 2 || (major == 2 && minor < 14))
      rc = YK_FAIL(EUNSUPPORTED, "'%s' was saved by Keras %d.%d; archives are read from 2.14 on: save it there as .h5", a->f.path, major, minor);
    *out = major >= 3 ? 3 : 2;
  }
  json_decref(root);
  return rc;
}

/* Keras 2 tells an input's shape as batch_input_shape, Keras 3 as batch_shape: which is found first; 0: neither, so nobody can read it. (The parser
 * limits the depth.) */
static int shown_major(json_t *v) {
  const char *key;
  json_t *x;
  size_t i;
  int major = 0;
  if (json_object_get(v, "batch_input_shape") != NULL) return 2;
  if (json_object_get(v, "batch_shape") != NULL) return 3;
  json_object_foreach(v, key, x)
    if ((major = shown_major(x)) != 0) return major;
  json_array_foreach(v, i, x)
    if ((major = shown_major(x)) != 0) return major;
  return major;
}

static yk_code find_major(archive *a, const char *config, size_t n, int *out) {
  YK_TRY(told_major(a, out));
  if (*out != 0) return YK_OK;
  json_t *root = NULL;
  YK_TRY(parse(config, n, &root));
  *out = root != NULL && shown_major(root) == 2 ? 2 : 3;
  json_decref(root);
  return YK_OK;
}

/* The weight file, in memory of its own: the archive may be closed. */
static yk_code open_weights(archive *a, yk_h5 **out) {
  void *bytes = NULL;
  size_t n = 0;
  YK_TRY(extract(a, WEIGHTS, INT64_MAX, &bytes, &n));
  return yk__h5_open_bytes(a->f.path, bytes, n, out);
}

static yk_code read_weights(archive *a, yk_network *n, const char *training) {
  yk_h5 *f = NULL;
  YK_TRY(open_weights(a, &f));
  yk_code rc = yk__layout3_load(f, n);
  if (rc == YK_OK) rc = yk__training_load(f, a->f.path, training, n, yk__state_load3);
  yk__h5_close(f);
  return rc;
}

/* "compile_config" of the config, as text, the caller's; NULL: there is none. */
static yk_code training_of(const char *config, size_t n, char **out) {
  json_t *root = NULL;
  *out = NULL;
  YK_TRY(parse(config, n, &root));
  json_t *c = json_object_get(root, "compile_config");
  if (json_is_object(c) && json_object_size(c) > 0) {
    size_t bytes = json_dumpb(c, NULL, 0, JSON_COMPACT);
    *out = yk__calloc(bytes + 1, 1);
    if (*out != NULL) json_dumpb(c, *out, bytes, JSON_COMPACT);
  }
  bool short_of_memory = json_is_object(c) && json_object_size(c) > 0 && *out == NULL;
  json_decref(root);
  return short_of_memory ? YK_ENOMEM : YK_OK;
}

static yk_code load(archive *a, yk_keras *k, yk_network **out) {
  void *config = NULL;
  char *training = NULL;
  size_t n = 0;
  yk_network *made = NULL;
  int major = 0;
  YK_TRY(extract(a, CONFIG, MOST_TEXT, &config, &n));
  yk_code rc = find_major(a, config, n, &major);
  if (rc == YK_OK) {
    k->major = major;
    rc = yk__network_read(k, a->f.path, config, n, major, &made);
  }
  if (rc == YK_OK) rc = training_of(config, n, &training);
  if (rc == YK_OK) {
    made->major = major;
    rc = read_weights(a, made, training);
  }
  yk__free(config);
  yk__free(training);
  if (rc == YK_OK) *out = made;
  return rc;
}

yk_code yk__archive_load(yk_keras *k, const char *path, yk_network **out) {
  archive a;
  YK_TRY(open_archive(path, &a));
  yk_code rc = load(&a, k, out);
  close_archive(&a);
  return rc;
}

yk_code yk__archive_load_weights(yk_network *n, const char *path) {
  archive a;
  YK_TRY(open_archive(path, &a));
  yk_h5 *f = NULL;
  int major = 0;
  yk_code rc = told_major(&a, &major);                     /* refuses what is too old */
  if (rc == YK_OK) rc = open_weights(&a, &f);
  if (rc == YK_OK) {
    rc = yk__layout3_load(f, n);
    yk__h5_close(f);
  }
  close_archive(&a);
  return rc;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

static yk_code weights_file(yk_network *n, bool trained, char **out, size_t *bytes) {
  yk_h5_out *f;
  YK_TRY(yk__h5_new(&f));
  yk_code rc = yk__layout3_save(f, n);
  if (rc == YK_OK && trained) rc = yk__state_save3(f, n);
  if (rc == YK_OK) rc = yk__h5_bytes(f, out, bytes);
  yk__h5_drop(f);
  return rc;
}

/* An archive is Keras 3's, whatever Keras the network's other files are for. */
static yk_code save(yk_network *n, const char *path) {
  static const char metadata[] = "{\"keras_version\": \"3.0.0\", \"date_saved\": \"1980-01-01@00:00:00\"}";
  char *training = NULL, *config = NULL, *weights = NULL;
  size_t bytes = 0;
  yk_code rc = yk__compile_write(n, &training);
  if (rc == YK_OK) rc = yk__network_write_archive(n, training, &config);
  if (rc == YK_OK) rc = weights_file(n, training != NULL, &weights, &bytes);
  if (rc == YK_OK) {
    const yk_zip_part part[] = { { METADATA, metadata, sizeof metadata - 1 }, { CONFIG, config, strlen(config) }, { WEIGHTS, weights, bytes } };
    rc = yk__zip_write(path, 3, part);
  }
  yk__free(training);
  yk__free(config);
  yk__free(weights);
  return rc;
}

yk_code yk__archive_save(yk_network *n, const char *path) {
  int major = n->major;
  n->major = 3;
  yk_code rc = save(n, path);
  n->major = major;
  return rc;
}
