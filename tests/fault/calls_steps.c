/*
 * calls_steps.c - prepared steps, and whole networks, while memory runs out.
 *
 * The network has what the fast kernels are for: convolution, pooling, normalisation, a product, gradients and an update, on
 * one CPU and as two towers. A kernel that cannot be had for want of memory must not be replaced by a slower one in silence.
 */
#include "fault.h"

static yk_graph *g;
static yk_session *s;
static yk_step *step;
static yk_value x, y, train;
static yk_tensor *in;
static const yk_tensor *const *fetched;
static char *plan;
static int gpus;

/* ---- a small step ---- */

static void open_it(void) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.virtual_gpus = gpus;
  o.virtual_gpu_bytes = 64 << 20;
  o.cores = 1;
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_session_open(g, &o, &s));
}

static void small(void) {
  CHECK_OK(yk_graph_new(&g));
  x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1, 3));
  YK_DEVICE(g, gpus ? "/gpu:0" : "") { y = yk_relu(g, yk_add(g, x, yk_scalar_f32(g, 1))); }
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(4, 3), &in));
  step = NULL;
  fetched = NULL;
  plan = NULL;
  open_it();
}
static void small_cpu(void) { gpus = 0; small(); }

static yk_code prepare(void) { return yk_step_prepare(s, 1, &x, 2, (const yk_value[]){ y, x }, 0, NULL, &step); }
static void no_step(void) { assert_null(step); }
static yk_code run(void) { return yk_step_run(step, (const yk_tensor *const[]){ in }, &fetched); }
static yk_code round_run(void) {
  yk_round round = { step, step, 2, 0 };
  yk_code rc = yk_round_run(&round, (const yk_tensor *const[]){ in }, &fetched);
  CHECK_INT(round.done, rc == YK_OK ? 1 : 0);
  return rc;
}
static void prepared(void) { CHECK_OK(prepare()); }
static void prepared_cpu(void) { small_cpu(); prepared(); }
static void prepared_gpu(void) { gpus = 1; small(); prepared(); }
static void nothing_fetched(void) { assert_null(fetched); }
static void run_good(void) {
  CHECK_NEAR(yk_tensor_at(fetched[0], 11), 1, 0);
  assert_ptr_equal(fetched[1], in);
}
static void prepare_good(void) { CHECK_OK(run()); run_good(); }

static yk_finding found;
static char *told;
static void ran(void) {
  prepared();
  CHECK_OK(run());
  found = (yk_finding)YK_FINDING_INIT;
  found.kind = YK_FOUND_FED;
  told = NULL;
}
static void ran_cpu(void) { small_cpu(); ran(); }
static void ran_gpu(void) { gpus = 1; small(); ran(); }
static yk_code examine(void) { return yk_step_examine(step, (const yk_tensor *const[]){ in }, &found); }
static void not_found(void) { CHECK_INT(found.kind, YK_FOUND_FED); }
static void examined(void) { CHECK_INT(found.kind, YK_FOUND_NOTHING); }
static yk_code tell(void) { return yk_finding_text(&found, &told); }
static void nothing_told(void) { assert_null(told); }
static void was_told(void) {
  assert_non_null(told);
  yk_free(told);
  told = NULL;
}

static void close_all(void) {
  yk_step_free(step);
  yk_free(plan);
  yk_session_close(s);
  yk_graph_free(g);
  yk_tensor_free(in);
  step = NULL;
  in = NULL;
}

/* ---- a network ---- */

static void network(int devices) {
  gpus = devices;
  step = NULL;
  fetched = NULL;
  plan = NULL;
  CHECK_OK(yk_graph_new(&g));
  x = yk_placeholder(g, "pictures", YK_F32, YK_SHAPE(2, 8, 8, 3));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, 8, 8, 3), &in));
  yk_device_push(g, gpus ? "/gpu:0" : "/cpu:0");
  yk_variable *w = yk_get_variable(g, "filter", YK_F32, YK_SHAPE(3, 3, 3, 16), YK_GLOROT_UNIFORM, NULL);
  yk_variable *d = yk_get_variable(g, "dense", YK_F32, YK_SHAPE(256, 4), YK_GLOROT_UNIFORM, NULL);
  yk_value h = yk_conv2d(g, x, yk_read(w), NULL);
  YK_VARIABLE_SCOPE(g, "norm") { h = yk_batch_norm(g, h, &(yk_batch_norm_options){ .training = true }); }
  h = yk_max_pool(g, yk_relu(g, h), &(yk_pool_attrs){ .window = { 2, 2 } });
  h = yk_matmul(g, yk_flatten(g, h), yk_read(d), NULL);
  y = yk_reduce_mean(g, yk_softmax_cross_entropy(g, h, yk_fill(g, YK_F32, YK_SHAPE(2, 4), 0.25)), NULL);
  yk_value updates[2] = { yk_minimize(g, &YK_MOMENTUM(0.1, 0.9), y, yk_global_step(g)), yk_update_ops(g) };
  train = yk_group(g, 2, updates);
  yk_device_pop(g);
  yk_value init = yk_global_variables_initializer(g);
  open_it();
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
}

static yk_code one_step(void) {
  if (!step) YK_TRY(yk_step_prepare(s, 1, &x, 1, &y, 1, &train, &step));
  YK_TRY(run());
  return yk_session_explain(s, 1, &(yk_feed){ x, in }, 1, &y, 1, &train, &plan);
}
/* The plan after a failure is the plan of a session that never saw one. */
static void network_good(void) {
  static char *usual[3];
  CHECK_NEAR(yk_tensor_at(fetched[0], 0), 1.3862943611198906, 1e-6);
  if (!usual[gpus]) {
    usual[gpus] = calloc(1, strlen(plan) + 1);
    memcpy(usual[gpus], plan, strlen(plan));
  }
  assert_string_equal(plan, usual[gpus]);
}
static void network_cpu(void) { network(0); }
static void network_gpu(void) { network(1); }
static void no_plan(void) { assert_null(plan); }

const fault_case fault_steps[] = {
  { .names = "yk_step_prepare", .open = small_cpu, .call = prepare, .intact = no_step, .good = prepare_good, .close = close_all,
    .least = 3 },
  { .names = "yk_step_run", .open = prepared_cpu, .call = run, .intact = nothing_fetched, .good = run_good, .close = close_all,
    .least = 50 },
  { .names = "yk_step_examine", .open = ran_cpu, .call = examine, .intact = not_found, .good = examined, .close = close_all, .least = 2 },
  { .names = "yk_step_examine", .open = ran_gpu, .call = examine, .intact = not_found, .good = examined, .close = close_all, .least = 2 },
  { .names = "yk_finding_text", .open = ran_cpu, .call = tell, .intact = nothing_told, .good = was_told, .close = close_all, .least = 1 },
  { .names = "yk_round_run", .open = prepared_cpu, .call = round_run, .intact = nothing_fetched, .good = run_good,
    .close = close_all, .least = 50 },
  { .names = "yk_step_run", .open = prepared_gpu, .call = run, .intact = nothing_fetched, .good = run_good, .close = close_all,
    .least = 50 },
  { 0 },
};

const fault_case fault_training[] = {
  { .names = "yk_step_run", .open = network_cpu, .call = one_step, .intact = no_plan, .good = network_good, .close = close_all,
    .stride = 5, .least = 500 },
  { .names = "yk_step_run", .open = network_gpu, .call = one_step, .intact = no_plan, .good = network_good, .close = close_all,
    .stride = 37, .least = 500 },
  { 0 },
};
