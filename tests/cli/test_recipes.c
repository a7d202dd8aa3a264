/*
 * `yoke train --optimizer X --schedule Y` with every optimizer and every schedule: the weights move and stay finite, the checkpoint has the
 * optimizer's own slots beside each weight and no others, and the schedule is what the curves say.
 */
#include "run_yoke.h"

#include <math.h>
#include <yoke/yoke.h>
#include "store/safetensors.h"

static int setup(void **state) {
  int rc = yoke_setup(state);
  setenv("YOKE_CORES", "1", 1);
  if (rc == 0) write_cifar("set", 37, 6);
  return rc;
}

#define NET "train", "cifar10", "--data", "set", "--batch", "6", "--interval", "0"
#define WEIGHT "local4/weights"

/* Optimizers in the order of the help, with their slots; each with another schedule. */
static const struct { const char *name, *slots[4], *schedule; } table[] = {
  { "sgd", { NULL }, "constant:warm_up=2" },
  { "momentum", { "Momentum" }, "exponential:steps=2,factor=0.5" },
  { "nesterov", { "Momentum" }, "natural_exp:steps=2,factor=0.5" },
  { "adam", { "Adam", "Adam_1" }, "inverse_time:steps=2,factor=0.5" },
  { "adamw", { "AdamW", "AdamW_1" }, "piecewise:at=2/4,rates=1e-3/5e-4/1e-4" },
  { "lamb", { "Lamb", "Lamb_1" }, "polynomial:end=1e-5" },
  { "rmsprop", { "RMSProp", "RMSProp_1" }, "cosine:alpha=0.1" },
  { "rmsprop:centered=1,momentum=0.5", { "RMSProp", "RMSProp_1", "RMSProp_2" }, "restarts:steps=2" },
  { "adagrad", { "Adagrad" }, "one_cycle" },
  { "adadelta", { "Adadelta", "Adadelta_1" }, "constant" },
  { "ftrl:l1=1e-4", { "Ftrl", "Ftrl_1" }, "cosine:warm_up=2,warm_from=0.01" },
  { "keras_sgd:nesterov=1", { "SGD" }, "exponential:steps=2,staircase=1" },
  { "keras_rmsprop", { "RMSprop", "RMSprop_1" }, "polynomial:power=2,cycle=1,steps=3" },
  { "keras_adagrad", { "Adagrad" }, "inverse_time:steps=3" },
};
enum { COUNT = sizeof table / sizeof *table, STEPS = 5 };

static yk_safetensors *open_file(const char *path) {
  yk_safetensors *f = NULL;
  if (yk__safetensors_open(path, &f) != YK_OK) fail_msg("%s", yk_error_message());
  return f;
}

static yk_tensor *take(const yk_safetensors *f, const char *name) {
  yk_tensor *t = NULL;
  if (yk__safetensors_get(f, name, &t) != YK_OK) fail_msg("%s: %s", name, yk_error_message());
  return t;
}

/* Slots of one weight: those that the table says, of its shape, none of them all zero or not a number. */
static void check_slots(const yk_safetensors *f, const char *optimizer, const char *const *slots) {
  char name[128];
  size_t want = 0, got = 0;
  for (; slots[want] != NULL; want++) {
    double sum = 0;
    snprintf(name, sizeof name, "%s/%s", WEIGHT, slots[want]);
    yk_tensor *t = take(f, name);
    CHECK_INT(yk_tensor_count(t), 384 * 192);
    for (int64_t i = 0; i < yk_tensor_count(t); i++) sum += fabs(yk_tensor_at(t, i));
    if (!(sum > 0 && isfinite(sum))) fail_msg("%s: the elements of %s add up to %g", optimizer, name, sum);
    yk_tensor_free(t);
  }
  for (size_t i = 0; i < yk__safetensors_count(f); i++) {
    const char *n = yk__safetensors_name(f, i);
    got += strncmp(n, WEIGHT "/", sizeof WEIGHT) == 0 && strstr(n, "ExponentialMovingAverage") == NULL;
  }
  CHECK_INT(got, want);
}

static void check_moved(const yk_safetensors *f, const yk_tensor *initial, const char *optimizer) {
  yk_tensor *t = take(f, WEIGHT);
  int64_t moved = 0;
  for (int64_t i = 0; i < yk_tensor_count(t); i++) {
    double x = yk_tensor_at(t, i);
    if (!isfinite(x)) fail_msg("%s: element %lld of %s is %g", optimizer, (long long)i, WEIGHT, x);
    moved += x != yk_tensor_at(initial, i);
  }
  if (moved < yk_tensor_count(t) / 4) fail_msg("%s: %lld of %lld elements moved", optimizer, (long long)moved, (long long)yk_tensor_count(t));
  yk_tensor_free(t);
}

static void test_all(void **state) {
  (void)state;
  free(SUCCEEDS(NET, "--steps", "1", "--lr", "0", "--out", "initial"));
  yk_safetensors *first = open_file("initial/weights.safetensors");
  yk_tensor *initial = take(first, WEIGHT);
  for (size_t i = 0; i < COUNT; i++) {
    char out[32], path[96];
    snprintf(out, sizeof out, "run%zu", i);
    char *text = SUCCEEDS(NET, "--steps", "5", "--optimizer", table[i].name, "--schedule", table[i].schedule, "--out", out,
                          "--checkpoint-every", "100", "--json");
    const char *end = last_line(text);
    CHECK_INT(json_number(end, "steps"), STEPS);
    double loss = json_number(end, "train_loss");
    if (!(loss > 0 && loss < 20)) fail_msg("%s, %s: a loss of %g", table[i].name, table[i].schedule, loss);
    free(text);
    snprintf(path, sizeof path, "%s/checkpoints/ckpt-%d.safetensors", out, STEPS);
    yk_safetensors *f = open_file(path);
    check_slots(f, table[i].name, table[i].slots);
    check_moved(f, initial, table[i].name);
    yk__safetensors_close(f);
  }
  yk_tensor_free(initial);
  yk__safetensors_close(first);
}

/* The help lists no optimizer and no schedule that is not tried above. */
static void test_all_are_here(void **state) {
  char *help = SUCCEEDS("train", "--help");
  int lists = 0;
  (void)state;
  for (const char *p = help; (p = strstr(p, ", NAME[:key=value,...]:\n")) != NULL; lists++) {
    for (p = strchr(p, '\n') + 1; p[0] == ' '; p = strchr(p, '\n') + 1) {
      char name[32];
      bool found = false;
      CHECK_INT(sscanf(p, " %31s", name), 1);
      size_t n = strlen(name);
      for (size_t i = 0; i < COUNT && !found; i++) {
        const char *tried = lists == 0 ? table[i].name : table[i].schedule;
        found = strncmp(tried, name, n) == 0 && (tried[n] == '\0' || tried[n] == ':');
      }
      if (!found) fail_msg("%s is not tried here", name);
    }
  }
  CHECK_INT(lists, 2);
  free(help);
}

/* What Ftrl cannot divide by. The schedule is only known when the network is built. */
static void test_ftrl_from_0(void **state) {
  (void)state;
  FAILS(2, "--optimizer ftrl divides by the learning rate: expected one above 0, not 0", "train", "mlp", "--optimizer", "ftrl", "--lr", "0");
  FAILS(1, "which is 0 in the first step", "train", "mlp", "--optimizer", "ftrl", "--schedule", "cosine:warm_up=3", "--steps", "9", "--out", "z");
}

/* It learns: with a fair rate the loss of the last steps is below that of the first. */
static void test_learns(void **state) {
  static const char *const some[] = { "momentum:lr=0.01", "adam:lr=1e-3", "rmsprop:lr=1e-3" };
  (void)state;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    char out[32];
    snprintf(out, sizeof out, "learn%zu", i);
    char *text = SUCCEEDS(NET, "--steps", "40", "--optimizer", some[i], "--schedule", "cosine", "--out", out, "--json");
    const char *first = strstr(text, "{\"event\":\"progress\"");
    assert_non_null(first);
    double before = json_number(first, "loss"), after = json_number(last_line(text), "train_loss");
    if (!(after < before)) fail_msg("%s: the loss was %g, and over the last steps %g", some[i], before, after);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_all), cmocka_unit_test(test_all_are_here),
                                      cmocka_unit_test(test_ftrl_from_0), cmocka_unit_test(test_learns) };
  return cmocka_run_group_tests(tests, setup, yoke_teardown);
}
