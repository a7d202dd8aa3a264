/*
 * Layers that do something in training alone: what their noise is like, that it differs from run to run, takes batches of any
 * size, and that predictions pass it by. Expected numbers are those of the formulae; random ones may be off by six times what
 * chance explains.
 */
#include "support/check.h"
#include <yoke/yoke.h>

enum { ROWS = 400, WIDE = 50 };
#define VALUE 0.7

typedef struct rig { yk_keras *k; yk_network *n; yk_graph *g; yk_value in, out; yk_session *s; } rig;

static void open_rig(rig *r, const char *class, const void *config, yk_shape shape) {
  CHECK_OK(yk_keras_new(7, &r->k));
  yk_sym in = yk_input(r->k, &(yk_input_config){ .shape = shape }), out = yk_apply(yk_layer_new(r->k, class, config), in);
  r->n = yk_network_new(r->k, NULL, 1, &in, 1, &out);
  CHECK_OK(yk_keras_status(r->k));
  CHECK_OK(yk_keras_graph(r->k, &r->g));
  yk_shape batch = { .rank = shape.rank + 1, .dim = { -1 } };
  for (uint32_t i = 0; i < shape.rank; i++) batch.dim[i + 1] = shape.dim[i];
  r->in = yk_placeholder(r->g, NULL, YK_F32, batch);
  yk_network_build(r->n, true, &r->in, &r->out);
  CHECK_OK(yk_graph_status(r->g));
  CHECK_OK(yk_keras_session(r->k, &r->s));
}

static yk_tensor *all_values(yk_shape shape) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_new(YK_F32, shape, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) ((float *)yk_tensor_data(t))[i] = (float)VALUE;
  return t;
}

static yk_tensor *train(const rig *r, yk_value what, yk_shape shape) {
  yk_tensor *x = all_values(shape), *y;
  CHECK_OK(yk_session_run(r->s, 1, &(yk_feed){ r->in, x }, 1, &what, 0, NULL, &y));
  yk_tensor_free(x);
  return y;
}

/* Mean and variance in training, two runs that differ, another batch, and the identity otherwise. */
static void noise(const char *class, const void *config, double mean, double variance) {
  rig r;
  open_rig(&r, class, config, YK_SHAPE(WIDE));
  yk_tensor *y = train(&r, r.out, YK_SHAPE(ROWS, WIDE)), *again = train(&r, r.out, YK_SHAPE(ROWS, WIDE)), *few = train(&r, r.out, YK_SHAPE(3, WIDE));
  double n = ROWS * WIDE, sum = 0, square = 0, apart = 0;
  for (int64_t i = 0; i < yk_tensor_count(y); i++) {
    sum += yk_tensor_at(y, i);
    apart += fabs(yk_tensor_at(y, i) - yk_tensor_at(again, i));
  }
  for (int64_t i = 0; i < yk_tensor_count(y); i++) square += pow(yk_tensor_at(y, i) - sum / n, 2);
  CHECK_INT(yk_tensor_count(few), 3 * WIDE);
  if (!(fabs(sum / n - mean) <= 6 * sqrt(variance / n))) fail_msg("%s: mean %g, expected %g", class, sum / n, mean);
  if (!(fabs(square / n - variance) <= 6 * variance * sqrt(2 / n))) fail_msg("%s: variance %g, expected %g", class, square / n, variance);
  if (!(apart / n > 0.1 * sqrt(variance))) fail_msg("%s: two runs differ by %g", class, apart / n);
  yk_tensor *x = all_values(YK_SHAPE(ROWS, WIDE)), *p;
  CHECK_OK(yk_network_predict(r.n, (const yk_tensor *const *)&x, 0, &p));
  for (int64_t i = 0; i < yk_tensor_count(p); i++) CHECK_NEAR(yk_tensor_at(p, i), yk_tensor_at(x, i), 0);
  yk_tensor_free(y); yk_tensor_free(again); yk_tensor_free(few); yk_tensor_free(x); yk_tensor_free(p);
  yk_keras_free(r.k);
}

static void test_noise(void **state) {
  (void)state;
  noise("GaussianNoise", &(yk_noise_config){ .stddev = 0.3 }, VALUE, 0.09);
  noise("GaussianDropout", &(yk_dropout_config){ .rate = 0.2 }, VALUE, VALUE * VALUE * 0.25);
}

/* Two values only: the lowest one, as often as the rate says. */
static void test_alpha_dropout(void **state) {
  const double rate = 0.4, low = -1.7580993408473766, slope = 1 / sqrt((1 - rate) * (1 + rate * low * low)), lift = -slope * low * rate;
  rig r;
  int64_t dropped = 0;
  (void)state;
  open_rig(&r, "AlphaDropout", &(yk_dropout_config){ .rate = rate }, YK_SHAPE(WIDE));
  yk_tensor *y = train(&r, r.out, YK_SHAPE(ROWS, WIDE));
  for (int64_t i = 0; i < yk_tensor_count(y); i++) {
    bool is_low = yk_tensor_at(y, i) < 0;
    dropped += is_low;
    CHECK_NEAR(yk_tensor_at(y, i), slope * (is_low ? low : VALUE) + lift, 1e-5);
  }
  CHECK_NEAR((double)dropped / (ROWS * WIDE), rate, 6 * sqrt(rate * (1 - rate) / (ROWS * WIDE)));
  yk_tensor_free(y);
  yk_keras_free(r.k);
}

/* A channel is left out in all cells or in none. */
static void test_whole_channels(void **state) {
  enum { CELLS = 3 * 4, CHANNELS = 8 };
  rig r;
  int64_t dropped = 0;
  (void)state;
  open_rig(&r, "SpatialDropout2D", &(yk_dropout_config){ .rate = 0.5 }, YK_SHAPE(3, 4, CHANNELS));
  yk_tensor *y = train(&r, r.out, YK_SHAPE(ROWS, 3, 4, CHANNELS));
  for (int64_t n = 0; n < ROWS; n++)
    for (int64_t c = 0; c < CHANNELS; c++) {
      double first = yk_tensor_at(y, n * CELLS * CHANNELS + c);
      dropped += first == 0;
      CHECK_NEAR(first, first == 0 ? 0 : VALUE * 2, 1e-6);
      for (int64_t i = 1; i < CELLS; i++) CHECK_NEAR(yk_tensor_at(y, (n * CELLS + i) * CHANNELS + c), first, 0);
    }
  CHECK_NEAR((double)dropped / (ROWS * CHANNELS), 0.5, 6 * sqrt(0.25 / (ROWS * CHANNELS)));
  yk_tensor_free(y);
  yk_keras_free(r.k);
}

static void test_activity(void **state) {
  rig r;
  yk_value loss[2];
  double sum = 0;
  (void)state;
  open_rig(&r, "ActivityRegularization", &(yk_activity_config){ .activity_regularizer = { 0.5, 0.25 } }, YK_SHAPE(WIDE));
  CHECK_INT(yk_get_collection(r.g, "activity_losses", NULL, loss, 2), 2);
  for (int i = 0; i < 2; i++) {
    yk_tensor *y = train(&r, loss[i], YK_SHAPE(ROWS, WIDE));
    sum += yk_tensor_at(y, 0);
    yk_tensor_free(y);
  }
  CHECK_NEAR(sum, ROWS * WIDE * (0.5 * VALUE + 0.25 * VALUE * VALUE), 0.5);
  yk_keras_free(r.k);
}

/* ---- states of recurrent layers ------------------------------------------------------------------------------------------ */

enum { SEQUENCES = 3, TIME = 37, CHANNELS = 4, UNITS = 5, MOST_WEIGHTS = 3 };

/* With a rate that drops nothing, the layer written out in steps has the values and gradients of its operation. */
static void in_steps(const char *class, yk_recurrent_config a, bool masked) {
  yk_keras *k;
  yk_graph *g;
  yk_session *s;
  CHECK_OK(yk_keras_new(3, &k));
  a.units = UNITS;
  a.recurrent_dropout = 1e-12;
  a.return_sequences = a.return_state = true;
  a.bias_initializer = (yk_initializer){ .kind = YK_INITIALIZER_UNIFORM, .a = -0.5, .b = 0.5 };
  yk_sym x = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(TIME, CHANNELS) });
  yk_sym y = yk_apply(yk_layer_new(k, class, &a), masked ? yk_apply(yk_layer_masking(k, NULL), x) : x), out[2] = { y, yk_sym_output(y, 1) };
  yk_network *n = yk_network_new(k, NULL, 1, &x, 2, out);
  CHECK_OK(yk_keras_status(k));
  CHECK_OK(yk_keras_graph(k, &g));
  yk_value in = yk_placeholder(g, NULL, YK_F32, YK_SHAPE(-1, TIME, CHANNELS)), v[2][2], fetch[2][2 + MOST_WEIGHTS];
  size_t many = 0;
  for (int i = 0; i < 2; i++) {
    yk_network_build(n, i == 1, &in, v[i]);
    yk_variable *w[MOST_WEIGHTS];
    yk_gradient grad[MOST_WEIGHTS];
    size_t nw = yk_network_variables(n, w, MOST_WEIGHTS);
    yk_value loss = yk_add(g, yk_l2_loss(g, v[i][0]), yk_reduce_sum(g, v[i][1], NULL));
    yk_compute_gradients(g, loss, nw, w, grad, MOST_WEIGHTS);
    for (size_t j = 0; j < 2; j++) fetch[i][j] = v[i][j];
    for (size_t j = 0; j < nw; j++) fetch[i][2 + j] = grad[j].grad;
    many = 2 + nw;
  }
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_keras_session(k, &s));
  yk_tensor *t, *got[2][2 + MOST_WEIGHTS];
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(SEQUENCES, TIME, CHANNELS), &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++)         /* the first sequence begins, the second one ends with steps that do not count */
    ((float *)yk_tensor_data(t))[i] = i / CHANNELS < 5 || (i / CHANNELS >= TIME + 30 && i / CHANNELS < 2 * TIME)
                                          ? 0 : (float)((i * 31) % 19) / 10 - 0.9f;
  for (int i = 0; i < 2; i++) CHECK_OK(yk_session_run(s, 1, &(yk_feed){ in, t }, many, fetch[i], 0, NULL, got[i]));
  for (size_t j = 0; j < many; j++) {
    for (int64_t i = 0; i < yk_tensor_count(got[0][j]); i++)
      if (!(fabs(yk_tensor_at(got[0][j], i) - yk_tensor_at(got[1][j], i)) <= 2e-5 * fmax(1, fabs(yk_tensor_at(got[0][j], i)))))
        fail_msg("%s, value %zu, element %lld: %g in steps, %g at once", class, j, (long long)i, yk_tensor_at(got[1][j], i),
                 yk_tensor_at(got[0][j], i));
    for (int i = 0; i < 2; i++) yk_tensor_free(got[i][j]);
  }
  yk_tensor_free(t);
  yk_keras_free(k);
}

static void test_steps(void **state) {
  (void)state;
  static const char *const classes[] = { "LSTM", "GRU", "SimpleRNN" };
  for (int i = 0; i < 3; i++) {
    in_steps(classes[i], (yk_recurrent_config){ .units = 0 }, false);
    in_steps(classes[i], (yk_recurrent_config){ .go_backwards = true, .recurrent_activation = "hard_sigmoid" }, true);
    in_steps(classes[i], (yk_recurrent_config){ .no_bias = true, .reset_before = true, .activation = "linear" }, false);
  }
}

/* h = x + 0.5*m*h with x = 1 in each of 4 steps: m is 0 or 2 in all of them, so what is left is 1 or 4. */
static void test_state_dropout(void **state) {
  (void)state;
  enum { MANY = 400 };
  yk_recurrent_config a = { .units = 1, .activation = "linear", .recurrent_dropout = 0.5, .no_bias = true,
                            .kernel_initializer = { .kind = YK_INITIALIZER_ONES },
                            .recurrent_initializer = { .kind = YK_INITIALIZER_CONSTANT, .a = 0.5 } };
  rig r;
  open_rig(&r, "SimpleRNN", &a, YK_SHAPE(4, 1));
  yk_tensor *x, *y, *again;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(MANY, 4, 1), &x));
  for (int i = 0; i < 4 * MANY; i++) ((float *)yk_tensor_data(x))[i] = 1;
  CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ r.in, x }, 1, &r.out, 0, NULL, &y));
  CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ r.in, x }, 1, &r.out, 0, NULL, &again));
  int kept = 0, same = 0;
  for (int i = 0; i < MANY; i++) {
    double v = yk_tensor_at(y, i);
    if (fabs(v - 1) > 1e-6 && fabs(v - 4) > 1e-6) fail_msg("sequence %d ends with %g, expected 1 or 4", i, v);
    kept += v > 2;
    same += v == yk_tensor_at(again, i);
  }
  CHECK_NEAR(kept, MANY / 2, 6 * sqrt(MANY * 0.25));
  CHECK_NEAR(same, MANY / 2, 6 * sqrt(MANY * 0.25));       /* another mask in each run */
  yk_tensor_free(x), yk_tensor_free(y), yk_tensor_free(again);
  yk_keras_free(r.k);
}

/* How many steps there are must be known. */
static void test_steps_unknown(void **state) {
  (void)state;
  yk_keras *k;
  yk_graph *g;
  CHECK_OK(yk_keras_new(3, &k));
  yk_sym x = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(-1, 2) });
  yk_sym y = yk_apply(yk_layer_gru(k, &(yk_recurrent_config){ .name = "reader", .units = 2, .recurrent_dropout = 0.2 }), x);
  yk_network *n = yk_network_new(k, NULL, 1, &x, 1, &y);
  CHECK_OK(yk_keras_graph(k, &g));
  yk_value in = yk_placeholder(g, NULL, YK_F32, YK_SHAPE(-1, -1, 2)), out;
  yk_network_build(n, true, &in, &out);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "GRU 'reader': with recurrent_dropout it needs");
  yk_keras_free(k);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_noise), cmocka_unit_test(test_alpha_dropout), cmocka_unit_test(test_whole_channels),
                                      cmocka_unit_test(test_activity),
    cmocka_unit_test(test_steps), cmocka_unit_test(test_state_dropout), cmocka_unit_test(test_steps_unknown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
