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

static yk_strategy strategy;
static yk_dtype precision;

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
  o.strategy = strategy;
  o.clip_norm = 1;
  o.precision = precision;
  o.guard = precision != YK_NONE;
  yk_build_towers(in->g, &o, &out);
  if (!out.train.id != !out.loss.id || !out.train.id != !out.accuracy.id)
    fail_msg("train is value %u, loss %u, accuracy %u: all or none", out.train.id, out.loss.id, out.accuracy.id);
  if (!out.train.id != !out.global_step) fail_msg("train is value %u, and there is %s global step", out.train.id,
                                                  out.global_step ? "a" : "no");
  return out.train;
}

static const yk_model small = { .name = "small", .build = small_network, .image_size = 24, .learning_rate = 0.1, .momentum = 0.9,
                                .moving_average = 0.99 };
static yk_value towers(const fault_inputs *in) { return towers_of(in, &small); }

static void test_towers(void **state) {
  (void)state;
  for (int i = YK_STRATEGY_HOME; i <= YK_STRATEGY_MIRRORED; i++) {
    strategy = (yk_strategy)i;
    fault_build(&(fault_builder){ "yk_build_towers_at", towers });
  }
  strategy = YK_STRATEGY_HOME;
  precision = YK_F16;
  fault_build(&(fault_builder){ "yk_build_towers_at", towers });
  precision = YK_NONE;
}

/* ---- copies ---- */

static yk_graph *graph;
static yk_session *session;

/* Nobody takes a batch. */
static yk_code no_rows(void *self, int64_t rows, void *const *to) {
  (void)self;
  (void)rows;
  (void)to;
  return YK_ECANCELLED;
}

static void open_copies(void) {
  static const yk_source source = { .next = no_rows, .ncomponents = 2,
                                    .component = { { .dtype = YK_F32, .rank = 3, .dim = { 24, 24, 3 } }, { .dtype = YK_I32 } } };
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  so.virtual_gpus = 3;
  strategy = YK_STRATEGY_MIRRORED;
  CHECK_OK(yk_graph_new(&graph));
  towers_of(&(fault_inputs){ .g = graph, .source = &source }, &small);
  yk_value init = yk_global_variables_initializer(graph);
  CHECK_OK(yk_session_open(graph, &so, &session));
  CHECK_OK(yk_session_run(session, 0, NULL, 0, NULL, 1, &init, NULL));
}

static void close_copies(void) {
  yk_session_close(session);
  yk_graph_free(graph);
}

static yk_code check_copies(void) { return yk_check_replicas(session, graph); }

static void test_copies(void **state) {
  (void)state;
  fault_run(&(fault_case){ .names = "yk_check_replicas", .open = open_copies, .call = check_copies, .close = close_copies, .least = 2 });
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_training), cmocka_unit_test(test_towers), cmocka_unit_test(test_copies) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
