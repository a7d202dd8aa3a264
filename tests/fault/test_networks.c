/*
 * Whole networks while memory runs out: a training step on the CPU's and an emulated GPU's kernels, and the towers of a
 * model. These are the calls with the most allocations, so they have a test of their own.
 */
#include "fault.h"

static void test_training(void **state) {
  (void)state;
  for (const fault_case *c = fault_training; c->call; c++) fault_run(c);
}

/* ---- towers ---- */

static yk_value small_network(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_value x = yk_global_avg_pool(g, images), y = { 0 };
  (void)training;
  YK_VARIABLE_SCOPE(g, "dense") {
    yk_variable *w = yk_get_variable(g, "weights", YK_F32, YK_SHAPE(3, classes), YK_TRUNCATED_NORMAL(0.1), NULL);
    y = yk_matmul(g, x, yk_read(w), NULL);
    yk_add_to_collection(g, YK_LOSSES, yk_l2_loss(g, yk_read(w)));
  }
  return y;
}

/* Three devices, two examples: the third has no share. */
static yk_value towers_of(const fault_inputs *in, const yk_model *model) {
  static const char *const devices[] = { "/gpu:0", "/gpu:1", "/gpu:2" };
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_towers out = { .train = { 77 }, .loss = { 78 }, .accuracy = { 79 } };
  o.model = model;
  o.source = in->source;
  o.classes = 10;
  o.batch = 2;
  o.devices = devices;
  o.ndevices = 3;
  yk_build_towers(in->g, &o, &out);
  if (!out.train.id != !out.loss.id || !out.train.id != !out.accuracy.id)
    fail_msg("train is value %u, loss %u, accuracy %u: all or none", out.train.id, out.loss.id, out.accuracy.id);
  if (!out.train.id != !out.global_step) fail_msg("train is value %u, and there is %s global step", out.train.id,
                                                  out.global_step ? "a" : "no");
  return out.train;
}

static yk_value towers(const fault_inputs *in) {
  static const yk_model model = { .name = "small", .build = small_network, .image_size = 24, .learning_rate = 0.1,
                                  .momentum = 0.9, .moving_average = 0.99 };
  return towers_of(in, &model);
}

static void test_towers(void **state) {
  (void)state;
  fault_build(&(fault_builder){ "yk_build_towers_at", towers });
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_training), cmocka_unit_test(test_towers) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
