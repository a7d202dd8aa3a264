/*
 * Files that are no models, or not the right ones: one clear error each, and a network that was there before stays as it was.
 */
#include "support/check.h"
#include <sys/stat.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "store/zip_write.h"

/* HDF5 itself forgets a few bytes of a file that it cannot read to the end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

static char folder[] = "/tmp/yoke-bad-XXXXXX";

static const char *at(const char *name) {
  static char path[2][600];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static void put(const char *name, const void *data, size_t n) {
  FILE *f = fopen(at(name), "wb");
  assert_non_null(f);
  if (n > 0) CHECK_INT(fwrite(data, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

static unsigned char *get(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  unsigned char *data = malloc(1 << 20);
  assert_true(f != NULL && data != NULL);
  *n = fread(data, 1, 1 << 20, f);
  fclose(f);
  return data;
}

static const char *golden(const char *name) {
  static char path[600];
  const char *tests = getenv("YOKE_TEST_DATA");
  snprintf(path, sizeof path, "%s/golden/keras/%s", tests != NULL ? tests : "tests", name);
  return path;
}

static void refused(const char *path, yk_code code, const char *text) {
  yk_keras *k;
  yk_network *n = NULL;
  CHECK_OK(yk_keras_new(1, &k));
  CHECK_CODE(yk_network_load(k, path, &n), code, text);
  assert_null(n);
  yk_keras_free(k);
}

static void test_no_models(void **state) {
  unsigned char noise[5000];
  uint32_t x = 1;
  (void)state;
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
  refused(at("absent.h5"), YK_ENOTFOUND, "there is no file '");
  refused(folder, YK_EIO, "is not a regular file");
  put("empty.h5", "", 0);
  refused(at("empty.h5"), YK_ECORRUPT, "empty.h5' is empty; expected a file of HDF5");
  put("page.h5", "<!DOCTYPE html><html>", 21);
  refused(at("page.h5"), YK_ECORRUPT, "begins like a web page");
  put("zip.h5", "PK\3\4 and more", 13);
  refused(at("zip.h5"), YK_ECORRUPT, "zip.h5' has 13 bytes, too few for a zip archive");
  put("noise.h5", noise, sizeof noise);
  refused(at("noise.h5"), YK_ECORRUPT, "noise.h5' is no file of HDF5");
}

/* Cut anywhere, or with a part of it zeroed: refused, or right; nothing in between, and no crash. */
static void test_damaged(void **state) {
  size_t n;
  unsigned char *data = get(golden("keras2-residual.h5"), &n);
  int whole = 0, refusals = 0;
  (void)state;
  for (size_t i = 0; i < 60; i++) {
    yk_keras *k;
    yk_network *net = NULL;
    size_t cut = i < 30 ? n * i / 30 : n, from = i < 30 ? n : n * (i - 30) / 30, to = from + 64 < n ? from + 64 : n;
    unsigned char *bad = malloc(n + 1);
    assert_non_null(bad);
    memcpy(bad, data, n);
    if (from < to) memset(bad + from, 0, to - from);
    put("damaged.h5", bad, cut);
    free(bad);
    CHECK_OK(yk_keras_new(1, &k));
    yk_code rc = yk_network_load(k, at("damaged.h5"), &net);
    if (rc == YK_OK) whole++;
    else if (strstr(yk_error_message(), "damaged.h5") == NULL)
      fail_msg("variant %zu: %s: %s", i, yk_code_name(rc), yk_error_message());
    else refusals++;
    yk_error_clear();
    yk_keras_free(k);
  }
  if (refusals < 30) fail_msg("%d refused, %d taken", refusals, whole);
  free(data);
}

/* A classifier of n classes. */
static yk_network *classifier(yk_keras *k, int64_t classes, yk_layer **last) {
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(6) });
  yk_sym x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 4 }), in);
  *last = yk_layer_dense(k, &(yk_dense_config){ .name = "classes", .units = classes });
  yk_sym out = yk_apply(*last, x);
  return yk_network_new(k, NULL, 1, &in, 1, &out);
}

static void test_other_shapes(void **state) {
  yk_keras *a, *b;
  yk_layer *last;
  yk_tensor *before, *after;
  (void)state;
  CHECK_OK(yk_keras_new(1, &a));
  CHECK_OK(yk_network_save_weights(classifier(a, 25, &last), at("w.h5")));
  CHECK_OK(yk_keras_new(2, &b));
  yk_network *n = classifier(b, 10, &last);
  CHECK_OK(yk_layer_weight(last, "kernel", &before));
  CHECK_CODE(yk_network_load_weights(n, at("w.h5")), YK_ECORRUPT,
             "classes/classes/kernel:0 is f32[4,25]; weight 'kernel' of layer 'classes' is f32[4,10]");
  CHECK_OK(yk_layer_weight(last, "kernel", &after));
  assert_memory_equal(yk_tensor_data(before), yk_tensor_data(after), yk_tensor_bytes(before));
  refused(at("w.h5"), YK_ECORRUPT, "no attribute model_config, so it is no whole model");
  yk_tensor_free(before);
  yk_tensor_free(after);
  yk_keras_free(a);
  yk_keras_free(b);
}

static void test_other_networks(void **state) {
  yk_keras *k;
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(6) });
  yk_sym one = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 4 }), in);
  yk_sym two = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 4, .no_bias = true }), one);
  yk_network *small = yk_network_new(k, "small", 1, &in, 1, &one), *large = yk_network_new(k, "large", 1, &in, 1, &two);
  CHECK_OK(yk_network_save(small, at("small.h5")));
  CHECK_OK(yk_network_save(large, at("large.h5")));
  CHECK_CODE(yk_network_load_weights(large, at("small.h5")), YK_ECORRUPT, "network 'large' has more: 'dense_2' gets none");
  CHECK_CODE(yk_network_load_weights(small, at("large.h5")), YK_ECORRUPT,
             "group 'dense_2' has weights, but network 'small' has only 1");
  CHECK_CODE(yk_network_save(small, "/nowhere/at/all.h5"), YK_EIO, "'/nowhere/at/all.h5' cannot be created");
  yk_keras_free(k);
}

/* By name: layers of other names stay, what does not fit is refused or passed over, and nothing changes by half. */
static void test_by_name(void **state) {
  yk_keras *a, *b;
  yk_layer *last[2];
  yk_tensor *before, *after, *there;
  size_t loaded = 9;
  (void)state;
  CHECK_OK(yk_keras_new(1, &a));
  yk_network *from = classifier(a, 25, &last[0]);
  CHECK_OK(yk_network_save_weights(from, at("w.h5")));
  CHECK_OK(yk_keras_new(2, &b));
  yk_network *n = classifier(b, 10, &last[1]);
  CHECK_OK(yk_layer_weight(last[1], "kernel", &before));
  CHECK_CODE(yk_network_load_weights_by_name(n, at("w.h5"), false, &loaded), YK_ECORRUPT, "layer 'classes' is f32[4,10]");
  CHECK_INT(loaded, 9);
  CHECK_OK(yk_network_load_weights_by_name(n, at("w.h5"), true, &loaded));
  CHECK_INT(loaded, 1);                                    /* dense_1 alone */
  CHECK_CODE(yk_network_load_weights_by_name(n, golden("keras3-gru.keras"), true, NULL), YK_EUNSUPPORTED, "can only be loaded by order");
  CHECK_OK(yk_layer_weight(last[1], "kernel", &after));
  assert_memory_equal(yk_tensor_data(before), yk_tensor_data(after), yk_tensor_bytes(before));
  yk_tensor_free(after);
  CHECK_OK(yk_layer_weight(yk_network_layer_at(n, 1), "kernel", &after));
  CHECK_OK(yk_layer_weight(yk_network_layer_at(from, 1), "kernel", &there));
  assert_memory_equal(yk_tensor_data(there), yk_tensor_data(after), yk_tensor_bytes(after));
  yk_tensor_free(before);
  yk_tensor_free(after);
  yk_tensor_free(there);
  yk_keras_free(a);
  yk_keras_free(b);
}

static yk_code write_zip(const char *path, const char *name, const char *text) {
  return yk__zip_write(path, 1, &(yk_zip_part){ name, text, strlen(text) });
}

/* Archives that are no models, cut short, or with a byte changed anywhere: refused, since everything in them has a checksum. */
static void test_archives(void **state) {
  size_t n;
  unsigned char *data = get(golden("keras3-gru.keras"), &n);
  int taken = 0;
  (void)state;
  CHECK_OK(write_zip(at("a.keras"), "readme.txt", "hello"));
  refused(at("a.keras"), YK_ECORRUPT, "a.keras' is no model of Keras: the archive has no 'config.json'");
  CHECK_OK(write_zip(at("a.keras"), "config.json", "{\"class_name\": \"Wrong\"}"));
  refused(at("a.keras"), YK_ECORRUPT, "expected a network of class Sequential, Model or Functional");
  static const struct { const char *dtype; yk_code code; const char *why; } dtypes[] = {
    { "\"float64\"", YK_ECORRUPT, "layer 'd': dtype is \"float64\"" }, { "\"float16\"", YK_ECORRUPT, "dtype is \"float16\"" },
    { "{\"class_name\": \"Policy\", \"config\": {\"name\": \"bfloat16\"}}", YK_ECORRUPT, "dtype is" },
    { "{\"class_name\": \"Policy\", \"config\": {\"name\": \"mixed_float16\"}}", YK_ECORRUPT, "has no 'model.weights.h5'" },
  };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    char config[600];
    snprintf(config, sizeof config,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
             "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3], \"dtype\": \"float32\", \"name\": \"i\"}}, "
             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2, \"dtype\": %s}}]}}",
             dtypes[i].dtype);
    CHECK_OK(write_zip(at("a.keras"), "config.json", config));
    refused(at("a.keras"), dtypes[i].code, dtypes[i].why);
  }
  for (size_t i = 0; i < 80; i++) {
    yk_keras *k;
    yk_network *net = NULL;
    unsigned char *bad = malloc(n);
    assert_non_null(bad);
    memcpy(bad, data, n);
    if (i >= 20) bad[n * (i - 20) / 60] ^= 0x10;
    put("a.keras", bad, i < 20 ? n * i / 20 : n);
    free(bad);
    CHECK_OK(yk_keras_new(1, &k));
    yk_code rc = yk_network_load(k, at("a.keras"), &net);
    taken += rc == YK_OK;
    if (rc != YK_OK && strstr(yk_error_message(), "a.keras") == NULL) fail_msg("variant %zu: %s", i, yk_error_message());
    yk_error_clear();
    yk_keras_free(k);
  }
  if (taken > 2) fail_msg("%d damaged archives were taken", taken);       /* dates and other unused bytes have no checksum */
  free(data);
}

/* A kernel that is not in the file, or not what it is said to be. What it would be is beside it, so that following it would succeed. */
static void test_elsewhere(void **state) {
  static const struct { const char *name, *text; } bad[] = {
    { "external_link", "kernel:0: there is no such data set" },
    { "soft_link", "kernel:0: there is no such data set" },
    { "external_group", "network 'model' has more: 'dense' gets none" },
    { "virtual", "kernel:0 is kept outside the file" },
    { "external_data", "kernel:0 is kept outside the file" },
    { "huge", "kernel:0 is f32[1073741824,1024]; weight 'kernel' of layer 'dense' is f32[5,4]" },
    { "impossible", "kernel:0 has impossible dimensions" },
    { "texts", "kernel:0: no numbers" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char name[80];
    snprintf(name, sizeof name, "../keras_bad/%s.h5", bad[i].name);
    refused(golden(name), YK_ECORRUPT, bad[i].text);
  }
}

static int setup(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int teardown(void **state) {
  static const char *const files[] = {
    "empty.h5", "page.h5", "zip.h5", "noise.h5", "damaged.h5", "w.h5", "small.h5", "large.h5", "a.keras"
  };
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) unlink(at(files[i]));
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_no_models),
    cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_other_shapes),
    cmocka_unit_test(test_other_networks),
    cmocka_unit_test(test_by_name),
    cmocka_unit_test(test_archives),
    cmocka_unit_test(test_elsewhere),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
