/*
 * Keras 2's archives with something changed: who wrote them is found out, also without metadata; what is missing or does not fit is one error that
 * names the file; and an optimizer whose state cannot be taken over does not keep a network from being used.
 */
#include <unistd.h>
#include <yoke/yoke.h>
#include "base/log.h"
#include "keras/weights.h"
#include "support/archive.h"
#include "support/check.h"

/* HDF5 itself forgets a few bytes of a file that it cannot read to the end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

static char folder[] = "/tmp/yoke-archives-XXXXXX", path[64], told[1000];

static const char *golden(const char *name) {
  static char at[600];
  const char *tests = getenv("YOKE_TEST_DATA");
  snprintf(at, sizeof at, "%s/golden/%s", tests != NULL ? tests : "tests", name);
  return at;
}

static void listen(int level, const char *line, void *arg) {
  (void)level;
  (void)arg;
  snprintf(told, sizeof told, "%s", line);
}

/* What the file has is put together, and refused. */
static void refused(archive *a, yk_code code, const char *text) {
  yk_keras *k;
  yk_network *n = NULL;
  archive_put(a, path);
  CHECK_OK(yk_keras_new(1, &k));
  yk_code rc = yk_network_load(k, path, &n);
  if (rc != code || strstr(yk_error_message(), text) == NULL || strstr(yk_error_message(), "a.keras") == NULL)
    fail_msg("%s, expected %s: %s", yk_error_message(), yk_code_name(code), text);
  assert_null(n);
  yk_error_clear();
  yk_keras_free(k);
  archive_free(a);
}

static void same_weights(yk_network *a, yk_network *b) {
  yk_weights all[2] = { { 0 } };
  for (size_t i = 0; yk_network_layer_at(a, i) != NULL; i++) CHECK_OK(yk__weights_of(yk_network_layer_at(a, i), false, &all[0]));
  for (size_t i = 0; yk_network_layer_at(b, i) != NULL; i++) CHECK_OK(yk__weights_of(yk_network_layer_at(b, i), false, &all[1]));
  CHECK_INT(all[0].n, all[1].n);
  assert_true(all[0].n > 0);
  for (uint32_t i = 0; i < all[0].n; i++) {
    yk_tensor *x, *y;
    CHECK_OK(yk_layer_weight(all[0].at[i].layer, all[0].at[i].weight->name, &x));
    CHECK_OK(yk_layer_weight(all[1].at[i].layer, all[1].at[i].weight->name, &y));
    CHECK_INT(yk_tensor_bytes(x), yk_tensor_bytes(y));
    assert_memory_equal(yk_tensor_data(x), yk_tensor_data(y), yk_tensor_bytes(x));
    yk_tensor_free(x);
    yk_tensor_free(y);
  }
  yk__free(all[0].at);
  yk__free(all[1].at);
}

/* The changed archive is the same model as the whole one. */
static void taken(archive *a, const char *whole) {
  yk_keras *k[2];
  yk_network *n[2];
  archive_put(a, path);
  CHECK_OK(yk_keras_new(1, &k[0]));
  CHECK_OK(yk_network_load(k[0], path, &n[0]));
  CHECK_OK(yk_keras_new(1, &k[1]));
  CHECK_OK(yk_network_load(k[1], golden(whole), &n[1]));
  same_weights(n[0], n[1]);
  yk_keras_free(k[0]);
  yk_keras_free(k[1]);
  archive_free(a);
}

/* Keras reads archives without metadata; the config tells as much. */
static void test_no_metadata(void **state) {
  static const char *const names[] = { "keras/keras2-attention.keras", "keras/keras2-masking.keras", "keras/keras214-nested.keras",
                                       "keras/keras2windows-two_kinds.keras", "keras/keras3-nested.keras" };
  static const char *const metadata[] = { "{", "{\"keras_version\": 3}", "{\"keras_version\": \"new\"}", "" };
  archive a;
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    archive_take(&a, golden(names[i]));
    archive_change(&a, "metadata.json", NULL, 0);
    taken(&a, names[i]);
  }
  for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++) {
    archive_take(&a, golden(names[0]));
    archive_change(&a, "metadata.json", metadata[i], strlen(metadata[i]));
    taken(&a, names[0]);
  }
  archive_take(&a, golden("keras/keras2-dense.keras"));
  archive_change(&a, "metadata.json", NULL, 0);
  archive_edit(&a, "config.json", "batch_input_shape", "shape");
  refused(&a, YK_ECORRUPT, "input 'input_1' has no batch_input_shape of 1 to 8 dimensions");
}

/* The weights of an archive in another network of the same layers: out of the archive, and out of the file in it, which Keras 2 writes alone too. */
static void test_weights_alone(void **state) {
  static const struct { const char *network, *weights; } pairs[] = {
    { "keras/keras2-attention.h5", "keras/keras214-attention.keras" },
    { "keras/keras214-nested.keras", "keras/keras2-nested.keras" },
    { "keras/keras214-two_kinds.keras", "keras/keras2windows-two_kinds.keras" },
    { "keras/keras214-encoder_in_time.keras", "keras/keras2windows-encoder_in_time.keras" },
  };
  (void)state;
  for (size_t i = 0; i < 2 * sizeof pairs / sizeof *pairs; i++) {
    yk_keras *k[2];
    yk_network *n[2];
    CHECK_OK(yk_keras_new(1, &k[0]));
    CHECK_OK(yk_network_load(k[0], golden(pairs[i / 2].network), &n[0]));
    CHECK_OK(yk_keras_new(1, &k[1]));
    CHECK_OK(yk_network_load(k[1], golden(pairs[i / 2].weights), &n[1]));
    if (i % 2 == 0) {
      CHECK_OK(yk_network_load_weights(n[0], golden(pairs[i / 2].weights)));
    } else {
      archive a;
      archive_take(&a, golden(pairs[i / 2].weights));
      const yk_zip_part *p = archive_part(&a, "model.weights.h5");
      FILE *f = fopen(path, "wb");
      assert_non_null(f);
      CHECK_INT(fwrite(p->data, 1, p->bytes, f), p->bytes);
      CHECK_INT(fclose(f), 0);
      archive_free(&a);
      CHECK_OK(yk_network_load_weights(n[0], path));
    }
    same_weights(n[0], n[1]);
    yk_keras_free(k[0]);
    yk_keras_free(k[1]);
  }
}

static void test_versions(void **state) {
  static const char *const good[] = { "2.14.0", "2.15.0-rc1", "2.16", "2.100.3" }, *const bad[] = { "2.13", "2.9", "1.0", "0.1" };
  archive a;
  char text[80];
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    snprintf(text, sizeof text, "{\"keras_version\": \"%s\"}", good[i]);
    archive_take(&a, golden("keras/keras2-siamese.keras"));
    archive_change(&a, "metadata.json", text, strlen(text));
    taken(&a, "keras/keras2-siamese.keras");
    snprintf(text, sizeof text, "{\"keras_version\": \"%s.2\"}", bad[i]);
    archive_take(&a, golden("keras/keras2-siamese.keras"));
    archive_change(&a, "metadata.json", text, strlen(text));
    snprintf(text, sizeof text, "was saved by Keras %s; archives are read from 2.14 on", bad[i]);
    refused(&a, YK_EUNSUPPORTED, text);
  }
}

/* What Keras 2.13 itself wrote: refused by name, and where its metadata are gone, by what is not where it is looked for. */
static void test_2_13(void **state) {
  yk_keras *k;
  yk_network *n;
  archive a;
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  CHECK_CODE(yk_network_load(k, golden("keras_bad/keras213.keras"), &n), YK_EUNSUPPORTED, "keras213.keras' was saved by Keras 2.13; ");
  CHECK_OK(yk_network_load(k, golden("keras/keras2-siamese.keras"), &n));
  CHECK_CODE(yk_network_load_weights(n, golden("keras_bad/keras213.keras")), YK_EUNSUPPORTED, "save it there as .h5");
  yk_keras_free(k);
  archive_take(&a, golden("keras_bad/keras213.keras"));
  archive_change(&a, "metadata.json", NULL, 0);
  refused(&a, YK_ECORRUPT, "_layer_checkpoint_dependencies/dense_1/vars/0: there is no such data set");
}

/* What Keras 3 writes and cannot read itself: a network's weights are in one of the two places that hold it. */
static void test_held_twice(void **state) {
  archive a;
  (void)state;
  archive_take(&a, golden("keras_bad/held_by_two.keras"));
  refused(&a, YK_ECORRUPT, "layers/functional_1/layers/functional: the network 'core' has no weights there. Keras keeps them once");
  archive_take(&a, golden("keras_bad/held_and_wrapped.keras"));
  refused(&a, YK_ECORRUPT, "layers/functional: the network 'core' has no weights there. Keras keeps them once");
}

static void test_members(void **state) {
  const char *const dense = "keras/keras2-dense.keras";
  archive a, b;
  yk_zip_part *p;
  (void)state;
  archive_take(&a, golden(dense));
  archive_change(&a, "config.json", NULL, 0);
  refused(&a, YK_ECORRUPT, "the archive has no 'config.json'");
  archive_take(&a, golden(dense));
  archive_change(&a, "model.weights.h5", NULL, 0);
  refused(&a, YK_ECORRUPT, "the archive has no 'model.weights.h5'");
  archive_take(&a, golden(dense));
  archive_change(&a, "config.json", "{", 1);
  refused(&a, YK_ECORRUPT, "model_config, line 1");
  for (size_t i = 0; i < 8; i++) {
    archive_take(&a, golden(dense));
    p = archive_part(&a, "model.weights.h5");
    archive_change(&a, "model.weights.h5", p->data, p->bytes * i / 8);
    refused(&a, YK_ECORRUPT, "");
  }
  archive_take(&a, golden(dense));                         /* another model's weights */
  archive_take(&b, golden("keras/keras2-lstm.keras"));
  p = archive_part(&b, "model.weights.h5");
  archive_change(&a, "model.weights.h5", p->data, p->bytes);
  archive_free(&b);
  refused(&a, YK_ECORRUPT, "layers/dense/vars/0: there is no such data set");
  archive_take(&a, golden(dense));
  archive_edit(&a, "config.json", "\"units\": 4", "\"units\": 7");
  refused(&a, YK_ECORRUPT, "layers/dense/vars/0 is f32[5,4]; weight 'kernel' of layer 'dense' is f32[5,7]");
  archive_take(&a, golden("keras/keras2windows-lstm_masked.keras"));
  archive_edit(&a, "config.json", "\"units\": 3", "\"units\": 2");
  refused(&a, YK_ECORRUPT, "layers\\gru\\cell/vars/0 is f32[4,9]; weight 'kernel' of layer 'gru' is f32[4,6]");
}

/* Loaded with what is told; compiled or not; and it can be trained, or compiled by hand. */
static void usable(archive *a, bool compiled, const char *text) {
  yk_keras *k;
  yk_network *n;
  yk_tensor *x, *out[2];
  archive_put(a, path);
  told[0] = '\0';
  CHECK_OK(yk_keras_new(1, &k));
  CHECK_OK(yk_network_load(k, path, &n));
  if (strstr(told, text) == NULL || (text[0] == '\0' && told[0] != '\0')) fail_msg("told: %s; expected: %s", told, text);
  CHECK_INT(yk_network_metric_name(n, 0) != NULL, compiled);
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3, 4), &x));
  CHECK_OK(yk_network_predict(n, (const yk_tensor *const *)&x, 0, out));
  yk_tensor_free(x);
  yk_tensor_free(out[0]);
  yk_tensor_free(out[1]);
  yk_keras_free(k);
  archive_free(a);
}

static void test_optimizers(void **state) {
  archive a, b;
  (void)state;
  yk__log_sink(listen, NULL);
  archive_take(&a, golden("keras_resumes/keras2-untrained.keras"));
  usable(&a, true, "");
  archive_take(&a, golden("keras_resumes/keras2-adam.keras"));
  archive_edit(&a, "config.json", "\"amsgrad\": false", "\"amsgrad\": true");
  usable(&a, false, "is not compiled as its file says: ");
  archive_take(&a, golden("keras_resumes/keras2-adam.keras"));
  archive_edit(&a, "config.json", "\"class_name\": \"Adam\"", "\"class_name\": \"Nadam\"");
  usable(&a, false, "is not compiled as its file says: ");
  archive_take(&a, golden("keras_resumes/keras2-adam.keras"));         /* the state of one that keeps half as much */
  archive_take(&b, golden("keras_resumes/keras2-momentum.keras"));
  const yk_zip_part *p = archive_part(&b, "model.weights.h5");
  archive_change(&a, "model.weights.h5", p->data, p->bytes);
  archive_free(&b);
  usable(&a, true, "has an optimizer that begins anew: ");
  archive_take(&a, golden("keras_resumes/keras2-adam.keras"));         /* slot by slot, not weight by weight */
  archive_edit(&a, "config.json", "\"class_name\": \"Adam\"", "\"class_name\": \"RMSprop\"");
  usable(&a, true, "' is f32[4,5]; weight 'bias' of layer 'hidden' is f32[5]");
  yk__log_sink(NULL, NULL);
}

static int setup(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/a.keras", folder);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_metadata), cmocka_unit_test(test_weights_alone),
                                      cmocka_unit_test(test_versions),    cmocka_unit_test(test_2_13),
                                      cmocka_unit_test(test_held_twice),  cmocka_unit_test(test_members),
                                      cmocka_unit_test(test_optimizers) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
