/*
 * Keras's files from outside: model and training configs as JSON, whole .h5 files, archives, and what is in them, changed in every way that fuzz.h
 * knows. A file is loaded or refused with one message that names it, and nothing is left in memory either way.
 */
#include "support/archive.h"
#include "support/fuzz.h"

#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "keras/compile_json.h"
#include "keras/h5.h"
#include "keras/json.h"

/* HDF5 itself forgets a few bytes of a file that it cannot read to the end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

enum { ROOM = 1 << 17 };

static char folder[64], path[128];

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/yoke-fuzz-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/m.h5", folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static const char *golden(const char *name) {
  static char from[512];
  snprintf(from, sizeof from, "%s/golden/%s%s", getenv("YOKE_TEST_DATA"), name, strchr(name, '.') != NULL ? "" : ".h5");
  return from;
}

static void check_refusal(uint64_t round, yk_code rc, const char *file) {
  if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED && rc != YK_EINVAL && rc != YK_ENOMEM && rc != YK_ENOTFOUND && rc != YK_EIO)
    fail_msg("round %llu: %s: %s", (unsigned long long)round, yk_code_name(rc), yk_error_message());
  if (rc != YK_ENOMEM && strstr(yk_error_message(), file) == NULL)
    fail_msg("round %llu: \"%s\" does not name the file", (unsigned long long)round, yk_error_message());
  fuzz_check_message(round, "a model file");
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------------- */

static const char *const words[] = { "null",
                                     "true",
                                     "false",
                                     "[",
                                     "]",
                                     "{",
                                     "}",
                                     "\"",
                                     ",",
                                     ":",
                                     "-1",
                                     "0",
                                     "1e999",
                                     "99999999999999999999",
                                     "\\u0000",
                                     "\"class_name\"",
                                     "\"config\"",
                                     "\"name\"",
                                     "\"layers\"",
                                     "\"inbound_nodes\"",
                                     "\"Sequential\"",
                                     "\"Functional\"",
                                     "\"LSTM\"",
                                     "\"Dense\"",
                                     "\"InputLayer\"",
                                     "[[",
                                     "]]",
                                     "{}",
                                     "[]",
                                     "\"keras_history\"",
                                     NULL };

static size_t text_of(const char *name, const char *attribute, uint8_t *bytes) {
  yk_h5 *f;
  char *text;
  CHECK_OK(yk__h5_open(golden(name), &f));
  CHECK_OK(yk__h5_text(f, "/", attribute, &text));
  yk__h5_close(f);
  assert_non_null(text);
  size_t n = strlen(text);
  assert_true(n < ROOM);
  memcpy(bytes, text, n);
  yk__free(text);
  return n;
}

static void fuzz_model(const char *name, int major, uint64_t seed, uint64_t often) {
  static uint8_t good[ROOM], bytes[ROOM];
  fuzz f = { seed };
  uint64_t rounds = fuzz_rounds(often), live = yk__alloc_live();
  size_t size = text_of(name, "model_config", good);
  for (uint64_t round = 0; round < rounds; round++) {
    yk_keras *k;
    yk_network *n = NULL;
    memcpy(bytes, good, size);
    size_t length = fuzz_mutate(&f, bytes, size, ROOM, fuzz_count(words));
    CHECK_OK(yk_keras_new(1, &k));
    yk_code rc = yk__network_read(k, "some.h5", (const char *)bytes, length, major, &n);
    if (rc != YK_OK) check_refusal(round, rc, "some.h5");
    yk_keras_free(k);
    yk_error_clear();
    CHECK_INT(yk__alloc_live(), live);
  }
}

static void test_models(void **state) {
  (void)state;
  fuzz_model("keras/keras2-lstm_states", 2, 51, 500);
  fuzz_model("keras/keras3-siamese", 3, 52, 500);
  fuzz_model("keras/keras2-attention", 2, 53, 400);
  fuzz_model("keras/keras3-bidirectional_own", 3, 54, 400);
  fuzz_model("keras/keras2-encoder_in_time", 2, 55, 400);
}

static void test_training(void **state) {
  static uint8_t good[ROOM], bytes[ROOM];
  static const char *const files[] = { "keras_resumes/keras2-adam", "keras_resumes/keras3-rmsprop_centered",
                                       "keras_resumes/keras2old-nesterov" };
  fuzz f = { 56 };
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    uint64_t rounds = fuzz_rounds(700), taken = 0, live = yk__alloc_live();
    size_t size = text_of(files[i], "training_config", good);
    for (uint64_t round = 0; round < rounds; round++) {
      yk_keras *k;
      CHECK_OK(yk_keras_new(1, &k));
      yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(3) }), out[2];
      out[0] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "main", .units = 3 }), in);
      out[1] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .name = "aux", .units = 2 }), in);
      yk_network *n = yk_network_new(k, NULL, 1, &in, 2, out);
      memcpy(bytes, good, size);
      size_t length = fuzz_mutate(&f, bytes, size, ROOM - 1, fuzz_count(words));
      bytes[length] = '\0';
      yk_code rc = yk__compile_read(n, "some.h5", (const char *)bytes);
      taken += rc == YK_OK;
      if (rc != YK_OK && rc != YK_EINVAL) check_refusal(round, rc, "some.h5");
      yk_keras_free(k);
      yk_error_clear();
      CHECK_INT(yk__alloc_live(), live);
    }
    if (taken < rounds / 50)
      fail_msg("%s: only %llu of %llu were taken", files[i], (unsigned long long)taken, (unsigned long long)rounds);
  }
}

/* ---- HDF5 ------------------------------------------------------------------------------------------------------------------ */

static void put(const uint8_t *bytes, size_t n) {
  unlink(path);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

/* Does the file at `path` load? A refusal names it, and nothing stays behind. */
static bool loads(uint64_t round, uint64_t live) {
  yk_keras *k;
  yk_network *n = NULL;
  CHECK_OK(yk_keras_new(1, &k));
  yk_code rc = yk_network_load(k, path, &n);
  if (rc != YK_OK) check_refusal(round, rc, folder);
  yk_keras_free(k);
  yk_error_clear();
  CHECK_INT(yk__alloc_live(), live);
  return rc == YK_OK;
}

static void fuzz_file(const char *name, uint64_t seed, uint64_t often) {
  static const char *const parts[] = { "TREE",    "SNOD",          "HEAP",         "GCOL",     "OHDR",
                                       "\x89HDF", "model_weights", "weight_names", "kernel:0", NULL };
  static uint8_t good[ROOM], bytes[ROOM];
  fuzz f = { seed };
  uint64_t rounds = fuzz_rounds(often), loaded = 0, live = yk__alloc_live();
  FILE *file = fopen(golden(name), "rb");
  assert_non_null(file);
  size_t size = fread(good, 1, ROOM, file);
  fclose(file);
  assert_true(size < ROOM);
  for (uint64_t round = 0; round < rounds; round++) {
    memcpy(bytes, good, size);
    put(bytes, fuzz_mutate(&f, bytes, size, ROOM, fuzz_count(parts)));
    loaded += loads(round, live);
  }
  if (loaded < rounds / 100 && strchr(name, '.') == NULL)
    fail_msg("%s: only %llu of %llu were loaded", name, (unsigned long long)loaded, (unsigned long long)rounds);
}

/* A member alone, in an archive whose checksums are right. */
static void fuzz_member(const char *name, const char *member, uint64_t seed, uint64_t often) {
  static const char *const parts[] = { "TREE", "SNOD",  "HEAP",                  "OHDR",                    "layers", "layers\\",
                                       "vars", "dense", "\"batch_input_shape\"", "\"keras_version\": \"2.", NULL };
  static uint8_t bytes[ROOM];
  fuzz f = { seed };
  uint64_t rounds = fuzz_rounds(often), loaded = 0, live = yk__alloc_live();
  archive whole;
  archive_take(&whole, golden(name));
  yk_zip_part *p = archive_part(&whole, member), good = *p;
  assert_true(good.bytes < ROOM);
  for (uint64_t round = 0; round < rounds; round++) {
    memcpy(bytes, good.data, good.bytes);
    *p = (yk_zip_part){ good.name, bytes, fuzz_mutate(&f, bytes, good.bytes, ROOM, fuzz_count(parts)) };
    archive_put(&whole, path);
    loaded += loads(round, live);
  }
  *p = good;
  archive_free(&whole);
  if (loaded == 0) fail_msg("%s: %s: nothing was loaded", name, member);
}

static void test_members(void **state) {
  (void)state;
  fuzz_member("keras_resumes/keras2-adam.keras", "model.weights.h5", 65, 300);
  fuzz_member("keras/keras2windows-siamese.keras", "model.weights.h5", 66, 300);
  fuzz_member("keras/keras214-two_kinds.keras", "config.json", 67, 300);
  fuzz_member("keras/keras2-dense.keras", "metadata.json", 68, 200);
}

static void test_files(void **state) {
  (void)state;
  fuzz_file("keras/keras2-dense", 61, 400);
  fuzz_file("keras/keras3-lstm", 62, 400);
  fuzz_file("keras_resumes/keras2old-adam", 63, 300);
  fuzz_file("keras_resumes/keras3-adam.keras", 64, 300);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_models), cmocka_unit_test(test_training),
                                      cmocka_unit_test(test_files), cmocka_unit_test(test_members) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
