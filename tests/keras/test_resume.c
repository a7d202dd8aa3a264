/*
 * Trainings that Keras saved and went on with: the file compiles the network as it was, and five more steps have Keras's losses and end in
 * Keras's weights; so do those of what is saved of it again. tests/golden/make_keras_resumes.py made the files; saved ones stay in YOKE_SAVED,
 * if that is set, for tests/golden/check_keras_files.py.
 */
#include "support/check.h"
#include <dirent.h>
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "keras/weights.h"
#include "store/safetensors.h"

enum { LEAST = 26 + 19, STEPS = 5 };
#define TOLERANCE 1e-4

static const char *folder(void) {
  static char path[512];
  const char *tests = getenv("YOKE_TEST_DATA");
  snprintf(path, sizeof path, "%s/golden/keras_resumes", tests != NULL ? tests : "tests");
  return path;
}

static yk_tensor *value(const yk_safetensors *f, const char *name) {
  yk_tensor *t;
  CHECK_OK(yk__safetensors_get(f, name, &t));
  return t;
}

static void near(const char *name, const char *what, int64_t i, double got, double want) {
  if (!(fabs(got - want) <= TOLERANCE * fmax(1, fabs(want)))) fail_msg("%s: %s[%lld] is %.7g, Keras has %.7g", name, what, (long long)i, got, want);
}

static void check_weights(const char *name, yk_network *n, const yk_safetensors *f) {
  yk_weights all = { 0 };
  char key[16];
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) CHECK_OK(yk__weights_of(yk_network_layer_at(n, i), false, &all));
  for (uint32_t i = 0; i < all.n; i++) {
    yk_tensor *got, *want;
    snprintf(key, sizeof key, "w%u", (unsigned)i);
    want = value(f, key);
    CHECK_OK(yk_layer_weight(all.at[i].layer, all.at[i].weight->name, &got));
    for (int64_t e = 0; e < yk_tensor_count(want); e++) near(name, all.at[i].weight->name, e, yk_tensor_at(got, e), yk_tensor_at(want, e));
    yk_tensor_free(got);
    yk_tensor_free(want);
  }
  yk__free(all.at);
}

/* saved: what is loaded goes there first, and is loaded again from there. steps: before that. */
static void resume(const char *name, const char *file, const char *saved, uint32_t ndevices) {
  static const char *const device[] = { "/gpu:0", "/gpu:1" };
  char path[1024];
  yk_keras *k;
  yk_network *n;
  yk_safetensors *f;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s.safetensors", folder(), name);
  CHECK_OK(yk__safetensors_open(path, &f));
  CHECK_OK(yk_keras_new(1, &k));
  CHECK_OK(yk_network_load(k, file, &n));
  so.virtual_gpus = (int32_t)ndevices;
  place.ndevices = ndevices;
  place.devices = device;
  place.session = &so;
  CHECK_OK(yk_network_place(n, &place));
  if (yk_network_metric_name(n, 0) == NULL) fail_msg("%s: the network is not compiled", name);
  static const char *const names[] = { "loss", "main_loss", "aux_loss", "main_accuracy", "aux_mae" };
  for (size_t i = 0; i < 5; i++) assert_string_equal(yk_network_metric_name(n, i), names[i]);
  yk_tensor *x = value(f, "x"), *y[2] = { value(f, "y0"), value(f, "y1") }, *losses = value(f, "losses");
  yk_examples e = { .x = (const yk_tensor *const *)&x, .y = (const yk_tensor *const *)y };
  for (int64_t i = 0; i < STEPS; i++) {
    double got[5];
    if (i == 2 && saved != NULL) {                         /* in the middle: a state that changed */
      CHECK_OK(yk_network_save(n, saved));
      yk_keras_free(k);
      CHECK_OK(yk_keras_new(1, &k));
      CHECK_OK(yk_network_load(k, saved, &n));
      CHECK_OK(yk_network_place(n, &place));
    }
    CHECK_OK(yk_network_train_on_batch(n, &e, got));
    near(name, "loss", i, got[0], yk_tensor_at(losses, i));
  }
  check_weights(name, n, f);
  yk_tensor_free(x);
  yk_tensor_free(y[0]);
  yk_tensor_free(y[1]);
  yk_tensor_free(losses);
  yk__safetensors_close(f);
  yk_keras_free(k);
}

/* A file that only went through: Keras itself is to go on with it. */
static void pass_on(const char *name, const char *ending, const char *file, const char *saved) {
  char path[1024];
  yk_keras *k;
  yk_network *n;
  snprintf(path, sizeof path, "%s/resume_%s%s", saved, name, ending);
  CHECK_OK(yk_keras_new(1, &k));
  CHECK_OK(yk_network_load(k, file, &n));
  CHECK_OK(yk_network_save(n, path));
  yk_keras_free(k);
}

static void all(uint32_t ndevices, bool again) {
  DIR *d = opendir(folder());
  int n = 0;
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    char file[1024], saved[] = "/tmp/yoke-resume-XXXXXX", path[64], ending[16], *dot = strstr(e->d_name, ".h5");
    if (dot == NULL) dot = strstr(e->d_name, ".keras");
    if (dot == NULL) continue;
    snprintf(ending, sizeof ending, "%.15s", dot);
    *dot = '\0';
    snprintf(file, sizeof file, "%s/%s%s", folder(), e->d_name, ending);
    if (again) assert_non_null(mkdtemp(saved));
    snprintf(path, sizeof path, "%s/m%s", saved, ending);
    resume(e->d_name, file, again ? path : NULL, ndevices);
    if (again) unlink(path), rmdir(saved);
    if (again && getenv("YOKE_SAVED") != NULL) pass_on(e->d_name, ending, file, getenv("YOKE_SAVED"));
    n++;
  }
  closedir(d);
  if (n < LEAST) fail_msg("only %d files are there", n);
}

static void test_one_device(void **state) { (void)state; all(0, false); }
static void test_two_devices(void **state) { (void)state; all(2, false); }
static void test_saved(void **state) { (void)state; all(0, true); }

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_device), cmocka_unit_test(test_two_devices), cmocka_unit_test(test_saved) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
