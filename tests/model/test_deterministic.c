/*
 * test_deterministic.c - one seed and one number of replicas give one result, to the bit, on any number of devices.
 *
 * Devices differ in their teams as well: a CPU device has all cores, a virtual GPU its share.
 */
#include "model/towers.h"

/* Eight replicas on 1, 2, 4 and 8 devices, and on CPU devices, whose teams are of other sizes. */
static void deterministic(setup u) {
  static const char *const cpus[] = { "/cpu:0", "/cpu:1" };
  setup one = u;
  one.deterministic = u.deterministic = true;
  one.replicas = u.replicas = 8;
  one.ndevices = 1;
  one.strategy = YK_STRATEGY_HOME;
  one.devices = cpus;
  result want = result_of(&one);
  for (size_t n = 1; n <= 8; n *= 2) {
    u.ndevices = n;
    u.strategy = (yk_strategy)(1 + n % 3);
    u.devices = n == 2 ? cpus : NULL;
    result got = result_of(&u);
    if (got.weights != want.weights)
      fail_msg("%s, %d steps: loss %.9g, weights %08x on one CPU; loss %.9g, weights %08x on %zu devices, %s", u.own ? "own" : u.model,
               u.steps, want.loss, want.weights, got.loss, got.weights, n, yk_strategy_name(u.strategy));
  }
}

static void test_deterministic_mlp(void **state) {
  (void)state;
  deterministic((setup){ .model = "mlp", .batch = 19, .steps = 5 });
}

static void test_deterministic_cifar10(void **state) {
  (void)state;
  deterministic((setup){ .model = "cifar10", .batch = 17, .steps = 2 });
}

static void test_deterministic_resnet20(void **state) {
  (void)state;
  deterministic((setup){ .model = "resnet20", .batch = 16, .steps = 2 });
}

static void test_deterministic_optimizers(void **state) {
  (void)state;
  const yk_optimizer all[] = { YK_ADAM(0.001), YK_LAMB(0.001, 0.01), YK_FTRL(0.05) };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    deterministic((setup){ .model = "mlp", .batch = 8, .steps = 3, .optimizer = &all[i], .clip = 0.5 });
}

/* A network that draws at random: each replica's draws are its own, wherever it runs. */
static yk_value build_noisy(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_value x = yk_flatten(g, images);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(yk_value_desc(g, x)->dim[1], 32), YK_GLOROT_UNIFORM, NULL);
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(32, classes), YK_GLOROT_UNIFORM, NULL);
  x = yk_relu(g, yk_matmul(g, x, yk_read(w), NULL));
  if (training) x = yk_dropout(g, x, 0.4, 0);
  return yk_matmul(g, x, yk_read(v), NULL);
}

static const yk_model noisy = { .name = "noisy", .doc = "with dropout", .build = build_noisy, .image_size = 8, .batch = 8,
                                .learning_rate = 0.1 };

static void test_dropout(void **state) {
  (void)state;
  strategies((setup){ .own = &noisy, .ndevices = 3, .batch = 9, .steps = 5 });
  deterministic((setup){ .own = &noisy, .batch = 16, .steps = 200 });
  setup a = { .own = &noisy, .ndevices = 2, .batch = 8, .steps = 1, .strategy = YK_STRATEGY_HOME }, b = a;
  b.steps = 2;
  if (result_of(&a).weights == result_of(&b).weights) fail_msg("a second step changes nothing");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_deterministic_mlp), cmocka_unit_test(test_deterministic_cifar10),
    cmocka_unit_test(test_deterministic_resnet20), cmocka_unit_test(test_deterministic_optimizers), cmocka_unit_test(test_dropout),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
