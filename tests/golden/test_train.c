/*
 * test_train.c - ten steps of every optimizer, schedule, clipping and moving average against the libraries' own numbers.
 *
 * train_values.txt holds what TensorFlow, Keras and PyTorch made of a small problem that is repeated here to the bit; see
 * make_train_values.py. Both sides work in float32, so 1e-6 of the size of a value leaves room for rounding and for nothing
 * else. Every optimizer of the file must be known here and the other way round.
 */
#include <yoke/yoke.h>
#include "support/check.h"

enum { LINE = 2048, STEPS = 10 };
#define TOLERANCE 1e-6

static double w_at(int i) { return ((7 * i) % 11 - 5) / 8.0; }
static double a_at(int i) { return 1 + (5 * i) % 7 / 4.0; }
static double u_at(int i) { return ((3 * i) % 13 - 6) / 8.0; }

static void close_enough(const char *what, int step, int element, double got, double want) {
  if (isnan(want) ? isnan(got) : fabs(got - want) <= TOLERANCE * fmax(1, fabs(want))) return;
  if (isinf(want) && got == want) return;
  fail_msg("%s, step %d, element %d: got %.9g, expected %.9g", what, step, element, got, want);
}

static FILE *values(void) {
  const char *folder = getenv("YOKE_TEST_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/golden/train_values.txt", folder ? folder : "tests");
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("cannot read %s", path);
  return f;
}

/* ---- optimizers --------------------------------------------------------------------------------------------------- */

typedef struct named { const char *name; yk_optimizer optimizer; double decay; } named;

static size_t all_optimizers(named *out) {
  named n[] = {
    { "sgd", YK_SGD(0.1), 0 }, { "momentum", YK_MOMENTUM(0.1, 0.9), 0 }, { "nesterov", YK_NESTEROV(0.1, 0.9), 0 },
    { "adam", YK_ADAM(0.1), 0 }, { "adam_other", YK_ADAM(0.02), 0 }, { "rmsprop", YK_RMSPROP(0.05), 0 },
    { "rmsprop_momentum", YK_RMSPROP(0.05), 0 }, { "rmsprop_centered", YK_RMSPROP(0.02), 0 }, { "adagrad", YK_ADAGRAD(0.1), 0 },
    { "adadelta", YK_ADADELTA(1.0), 0 }, { "ftrl", YK_FTRL(0.1), 0 }, { "ftrl_other", YK_FTRL(0.2), 0 },
    { "ftrl_power", YK_FTRL(0.2), 0 }, { "keras_sgd", YK_KERAS_SGD(0.1, 0.9), 0 }, { "keras_nesterov", YK_KERAS_SGD(0.1, 0.9), 0 },
    { "keras_decay", YK_KERAS_SGD(0.1, 0.9), 0.3 }, { "keras_adam", YK_KERAS_ADAM(0.02), 0 },
    { "keras_rmsprop", YK_KERAS_RMSPROP(0.05), 0 }, { "keras_adagrad", YK_KERAS_ADAGRAD(0.1), 0 },
    { "keras_adadelta", YK_KERAS_ADADELTA(1.0), 0 }, { "adamw", YK_ADAMW(0.005, 0.5), 0 }, { "lamb", YK_LAMB(0.02, 0), 0 },
    { "lamb_decay", YK_LAMB(0.02, 0.05), 0 },
  };
  size_t count = sizeof n / sizeof *n;
  n[4].optimizer.beta1 = 0.5;
  n[4].optimizer.beta2 = 0.9;
  n[4].optimizer.epsilon = n[6].optimizer.epsilon = n[7].optimizer.epsilon = 1e-3;
  n[6].optimizer.rho = 0.8;
  n[6].optimizer.momentum = 0.5;
  n[7].optimizer.momentum = 0.3;
  n[7].optimizer.centered = n[14].optimizer.nesterov = true;
  n[9].optimizer.rho = 0.9;
  n[9].optimizer.epsilon = 1e-4;
  n[11].optimizer.l1 = 0.05;
  n[11].optimizer.l2 = 0.02;
  n[11].optimizer.l2_shrinkage = 0.01;
  n[12].optimizer.lr_power = -0.7;
  memcpy(out, n, sizeof n);
  return count;
}

typedef struct problem {
  yk_graph *g;
  yk_session *s;
  yk_variable *v;
  yk_value train;
} problem;

static void open_problem(problem *p, const named *n, bool sparse, const char *device) {
  float w[18], a[12], u[12];
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_optimizer o = n->optimizer;
  yk_tensor *start = NULL;
  for (int i = 0; i < 18; i++) w[i] = (float)w_at(i);
  for (int i = 0; i < 12; i++) { a[i] = (float)a_at(i); u[i] = (float)u_at(i); }
  CHECK_OK(yk_tensor_from(YK_F32, sparse ? YK_SHAPE(6, 3) : YK_SHAPE(4, 3), w, &start));
  CHECK_OK(yk_graph_new(&p->g));
  yk_graph *g = p->g;
  yk_device_push(g, device);
  p->v = yk_get_variable(g, "w", YK_F32, sparse ? YK_SHAPE(6, 3) : YK_SHAPE(4, 3),
                         (yk_init){ .kind = YK_INIT_TENSOR, .tensor = start }, NULL);
  yk_value x = yk_read(p->v), rows = yk_constant_from(g, YK_I32, YK_SHAPE(2, 2), (const int32_t[]){ 0, 2, 2, 5 });
  if (sparse) x = yk_reshape(g, yk_gather(g, x, rows, 0), YK_SHAPE(4, 3));
  yk_value off = yk_square(g, yk_sub(g, x, yk_constant_f32(g, YK_SHAPE(4, 3), u)));
  yk_value loss = yk_mul(g, yk_reduce_sum(g, yk_mul(g, yk_constant_f32(g, YK_SHAPE(4, 3), a), off), NULL), yk_scalar_f32(g, 0.5f));
  if (n->decay > 0) o.learning_rate = yk_scheduled_rate(g, &YK_INVERSE_TIME(o.rate, 1, n->decay), yk_global_step(g));
  p->train = yk_minimize(g, &o, loss, yk_global_step(g));
  yk_device_pop(g);
  yk_value init = yk_global_variables_initializer(g);
  so.virtual_gpus = strncmp(device, "/gpu", 4) == 0;
  CHECK_OK(yk_session_open(g, &so, &p->s));
  CHECK_OK(yk_session_run(p->s, 0, NULL, 0, NULL, 1, &init, NULL));
  yk_tensor_free(start);
}

static void close_problem(problem *p) {
  yk_session_close(p->s);
  yk_graph_free(p->g);
  *p = (problem){ 0 };
}

static const named *find(const named *all, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  fail_msg("the file has an optimizer '%s' that the test does not know", name);
  return NULL;
}

static int run_optimizers(const char *device, bool *seen) {
  named all[32];
  size_t n = all_optimizers(all);
  problem p = { 0 };
  char line[LINE], name[64], kind[16];
  int compared = 0;
  FILE *f = values();
  while (fgets(line, sizeof line, f)) {
    int step, used = 0, count = 0;
    double want;
    yk_tensor *t = NULL;
    if (sscanf(line, "optimizer %63s %15s %d%n", name, kind, &step, &used) != 3) continue;
    const named *o = find(all, n, name);
    seen[o - all] = true;
    if (step == 1) {
      close_problem(&p);
      open_problem(&p, o, strcmp(kind, "sparse") == 0, device);
    }
    CHECK_OK(yk_session_run(p.s, 0, NULL, 0, NULL, 1, &p.train, NULL));
    CHECK_OK(yk_variable_fetch(p.s, p.v, &t));
    snprintf(name + strlen(name), sizeof name - strlen(name), " (%s)", kind);
    const char *at = line + used;
    for (; sscanf(at, "%lf%n", &want, &used) == 1; at += used) close_enough(name, step, count, yk_tensor_at(t, count), want), count++;
    CHECK_INT(count, yk_tensor_count(t));
    compared += count;
    yk_tensor_free(t);
  }
  close_problem(&p);
  fclose(f);
  return compared;
}

static void test_optimizers(void **state) {
  named all[32];
  bool seen[32] = { false };
  size_t n = all_optimizers(all);
  (void)state;
  int compared = run_optimizers("/cpu:0", seen);
  if (compared < 4000) fail_msg("only %d numbers were compared", compared);
  for (size_t i = 0; i < n; i++)
    if (!seen[i]) fail_msg("the file has no optimizer '%s'", all[i].name);
}

static void test_optimizers_on_a_gpu(void **state) {
  bool seen[32] = { false };
  (void)state;
  if (run_optimizers("/gpu:0", seen) < 4000) fail_msg("too few numbers were compared");
}

/* ---- schedules ----------------------------------------------------------------------------------------------------- */

typedef struct named_schedule { const char *name; yk_schedule schedule; } named_schedule;

static size_t all_schedules(named_schedule *out) {
  static const int64_t at[] = { 3, 7 };
  static const double rates[] = { 0.5, 0.1, 0.02 };
  named_schedule n[] = {
    { "exponential", YK_EXPONENTIAL(0.5, 4, 0.7) }, { "exponential_staircase", YK_EXPONENTIAL(0.5, 4, 0.7) },
    { "natural_exp", YK_NATURAL_EXP(0.5, 4, 0.7) }, { "natural_exp_staircase", YK_NATURAL_EXP(0.5, 4, 0.7) },
    { "inverse_time", YK_INVERSE_TIME(0.5, 4, 0.7) }, { "inverse_time_staircase", YK_INVERSE_TIME(0.5, 4, 0.7) },
    { "piecewise", YK_PIECEWISE(2, at, rates) }, { "polynomial", YK_POLYNOMIAL(0.5, 6) }, { "polynomial_power", YK_POLYNOMIAL(0.5, 6) },
    { "polynomial_cycle", YK_POLYNOMIAL(0.5, 6) }, { "cosine", YK_COSINE(0.5, 8) }, { "cosine_alpha", YK_COSINE(0.5, 8) },
    { "restarts", YK_COSINE_RESTARTS(0.5, 3) }, { "restarts_other", YK_COSINE_RESTARTS(0.5, 4) },
    { "restarts_long", YK_COSINE_RESTARTS(0.5, 2) }, { "cosine_warm_up", YK_COSINE(0.5, 8) }, { "one_cycle", YK_ONE_CYCLE(0.5, 20) },
    { "one_cycle_other", YK_ONE_CYCLE(0.2, 15) },
  };
  n[1].schedule.staircase = n[3].schedule.staircase = n[5].schedule.staircase = n[9].schedule.cycle = true;
  n[8].schedule.end = n[9].schedule.end = 0.01;
  n[8].schedule.power = 2;
  n[9].schedule.power = 0.5;
  n[11].schedule.alpha = n[15].schedule.alpha = 0.1;
  n[13].schedule.t_mul = 1;
  n[13].schedule.m_mul = 0.8;
  n[13].schedule.alpha = 0.05;
  n[14].schedule.t_mul = 1.5;
  n[14].schedule.m_mul = 0.9;
  n[15].schedule.warm_up = 5;
  n[15].schedule.warm_from = 0.1;
  n[17].schedule.peak = 0.5;
  n[17].schedule.start_divide = 10;
  n[17].schedule.end_divide = 100;
  memcpy(out, n, sizeof n);
  return sizeof n / sizeof *n;
}

static void check_schedule(yk_session *s, yk_variable *step, const char *name, yk_value rate, const char *text) {
  long long at;
  double want;
  int used, count = 0;
  for (; sscanf(text, " %lld:%lf%n", &at, &want, &used) == 2; text += used, count++) {
    yk_tensor *t = NULL, *got = NULL;
    CHECK_OK(yk_tensor_from(YK_I64, YK_SCALAR, &(int64_t){ at }, &t));
    CHECK_OK(yk_variable_set(s, step, t));
    CHECK_OK(yk_session_run(s, 0, NULL, 1, &rate, 0, NULL, &got));
    close_enough(name, (int)at, 0, yk_tensor_at(got, 0), want);
    yk_tensor_free(t);
    yk_tensor_free(got);
  }
  if (count < 10) fail_msg("%s: only %d steps", name, count);
}

static void test_schedules(void **state) {
  named_schedule all[32];
  size_t n = all_schedules(all), found = 0;
  yk_value rate[32];
  yk_graph *g;
  yk_session *s;
  char line[LINE], name[64];
  (void)state;
  CHECK_OK(yk_graph_new(&g));
  yk_variable *step = yk_global_step(g);
  for (size_t i = 0; i < n; i++) rate[i] = yk_scheduled_rate(g, &all[i].schedule, step);
  CHECK_OK(yk_session_open(g, NULL, &s));
  FILE *f = values();
  while (fgets(line, sizeof line, f)) {
    int used = 0;
    size_t i = 0;
    if (sscanf(line, "schedule %63s%n", name, &used) != 1) continue;
    while (i < n && strcmp(all[i].name, name) != 0) i++;
    if (i == n) fail_msg("the file has a schedule '%s' that the test does not know", name);
    check_schedule(s, step, name, rate[i], line + used);
    found++;
  }
  fclose(f);
  CHECK_INT(found, n);
  yk_session_close(s);
  yk_graph_free(g);
}

/* ---- clipping and averages --------------------------------------------------------------------------------------------- */

/* What the file says after "<what> <name>": the numbers, how many there are. */
static int numbers_of(const char *what, const char *name, double *out) {
  char line[LINE], head[96];
  int n = 0;
  FILE *f = values();
  snprintf(head, sizeof head, "%s %s ", what, name);
  while (n == 0 && fgets(line, sizeof line, f))
    if (strncmp(line, head, strlen(head)) == 0)
      for (char *at = line + strlen(head), *end; n < 32; at = end) {
        while (*at == ' ' || *at == '-') {
          if (*at == '-' && at[1] != ' ') break;
          at++;
        }
        double x = strtod(at, &end);
        if (end == at) break;
        out[n++] = x;
      }
  fclose(f);
  if (n == 0) fail_msg("the file has no line '%s'", head);
  return n;
}

enum clip { GLOBAL, EACH, VALUE };
static void check_clip(const char *name, enum clip how, double limit, float first) {
  double want[32];
  int n = numbers_of("clip", name, want), at = how == GLOBAL;
  yk_graph *g;
  yk_session *s;
  yk_value norm = { 0 };
  CHECK_OK(yk_graph_new(&g));
  yk_gradient pair[3] = { { yk_constant_f32(g, YK_SHAPE(2), (const float[]){ first, 4 }), NULL }, { { 0 }, NULL },
                          { yk_constant_f32(g, YK_SHAPE(2), (const float[]){ 0, 12 }), NULL } };
  if (how == GLOBAL) norm = yk_clip_by_global_norm(g, limit, 3, pair);
  else if (how == EACH) yk_clip_by_norm(g, limit, 3, pair);
  else yk_clip_by_value(g, 0.5, 3.5, 3, pair);
  CHECK_INT(pair[1].grad.id, 0);
  CHECK_OK(yk_session_open(g, NULL, &s));
  yk_tensor *got[3] = { NULL };
  CHECK_OK(yk_session_run(s, 0, NULL, how == GLOBAL ? 3 : 2, (const yk_value[]){ pair[0].grad, pair[2].grad, norm }, 0, NULL, got));
  CHECK_INT(n, 4 + (how == GLOBAL));
  if (how == GLOBAL) close_enough(name, 0, -1, yk_tensor_at(got[2], 0), want[0]);
  for (int i = 0; i < 4; i++) close_enough(name, 0, i, yk_tensor_at(got[i / 2], i % 2), want[at + i]);
  for (int i = 0; i < 3; i++) yk_tensor_free(got[i]);
  yk_session_close(s);
  yk_graph_free(g);
}

static void test_clipping(void **state) {
  (void)state;
  check_clip("global_1", GLOBAL, 1, 3);
  check_clip("global_13", GLOBAL, 13, 3);
  check_clip("global_20", GLOBAL, 20, 3);
  check_clip("global_infinite", GLOBAL, 1, INFINITY);
  check_clip("norm_4.5", EACH, 4.5, 3);
  check_clip("value", VALUE, 0, 3);
}

/* v follows the fed numbers itself, or its shadow follows v. */
static void check_average(const char *name, bool shadow, bool updates, bool debias) {
  double want[32];
  yk_graph *g;
  yk_session *s;
  CHECK_OK(yk_graph_new(&g));
  yk_value fed = yk_placeholder(g, "x", YK_F32, YK_SCALAR), follow, move;
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SCALAR, YK_CONSTANT(0.75), NULL), *step = yk_global_step(g), *watched = v;
  move = yk_assign(g, v, fed);
  if (shadow) {
    follow = yk_moving_average(g, 0.9, updates ? step : NULL, 1, &v);
    watched = yk_moving_average_of(g, v);
    assert_ptr_not_equal(watched, v);
  } else {
    follow = yk_assign_moving_average(g, v, fed, 0.9, debias);
  }
  yk_value init = yk_global_variables_initializer(g);
  CHECK_OK(yk_session_open(g, NULL, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  CHECK_INT(numbers_of("average", name, want), STEPS);
  for (int k = 0; k < STEPS; k++) {
    yk_tensor *x = NULL, *now = NULL, *t = NULL;
    CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, &(float){ (float)w_at(k) }, &x));
    CHECK_OK(yk_tensor_from(YK_I64, YK_SCALAR, &(int64_t){ k }, &t));
    CHECK_OK(yk_variable_set(s, step, t));
    if (shadow) CHECK_OK(yk_session_run(s, 1, &(yk_feed){ fed, x }, 0, NULL, 1, &move, NULL));
    CHECK_OK(yk_session_run(s, !shadow, &(yk_feed){ fed, x }, 0, NULL, 1, &follow, NULL));
    CHECK_OK(yk_variable_fetch(s, watched, &now));
    close_enough(name, k, 0, yk_tensor_at(now, 0), want[k]);
    yk_tensor_free(x);
    yk_tensor_free(now);
    yk_tensor_free(t);
  }
  yk_session_close(s);
  yk_graph_free(g);
}

static void test_averages(void **state) {
  (void)state;
  check_average("plain", true, false, false);
  check_average("num_updates", true, true, false);
  check_average("assigned", false, false, false);
  check_average("debiased", false, false, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_optimizers), cmocka_unit_test(test_optimizers_on_a_gpu), cmocka_unit_test(test_schedules),
    cmocka_unit_test(test_clipping), cmocka_unit_test(test_averages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
