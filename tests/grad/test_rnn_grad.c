/*
 * test_rnn_grad.c - recurrent layers as a program builds them: gradients of everything, with and without each optional input,
 * and steps of a session on the CPU against the references.
 *
 * The sweep over all operations sees each of them alone, with its inputs in order; here are the layers with a kernel and a bias,
 * inputs left out in the middle, batches whose size is not known while the graph is built, and batches of no rows.
 */
#include <yoke/yoke.h>
#include "support/check.h"
#include "support/gradcheck.h"
#include "support/opcase.h"
#include "support/ref_eval.h"
#include "tensor/desc.h"

enum { N = 3, T = 4, C = 5, U = 3, INPUTS = 8, MOST = 256 };
enum { X, KERNEL, RECURRENT, BIAS, STATE, CELL, INNER, MASK };    /* what a layer may be given */
typedef enum kind { LSTM, GRU, SIMPLE } kind;
static const int gates[] = { 4, 3, 1 };

typedef struct layer {
  yk_graph *g;
  yk_value in[INPUTS], out[3];
  double at[INPUTS][MOST];
  yk_shape shape[INPUTS];
  int nout;
} layer;

static const yk_rnn_attrs back = { .go_backwards = 1 }, hard = { .recurrent_activation = YK_RNN_HARD_SIGMOID },
                          before = { .reset_before = 1 }, zero = { .zero_output = 1 };
#define BIT(i) (1u << (i))
#define FULL (BIT(X) | BIT(KERNEL) | BIT(RECURRENT) | BIT(BIAS) | BIT(STATE) | BIT(CELL) | BIT(INNER) | BIT(MASK))
#define LEAST (BIT(X) | BIT(KERNEL) | BIT(RECURRENT))
static const struct { const char *name; kind kind; unsigned given; const yk_rnn_attrs *attrs; } layers[] = {
  { "lstm, all inputs", LSTM, FULL & ~BIT(INNER), NULL },
  { "lstm, least", LSTM, LEAST, NULL },
  { "lstm, mask without states", LSTM, LEAST | BIT(MASK) | BIT(BIAS), &back },
  { "lstm, cells without h", LSTM, LEAST | BIT(CELL), &hard },
  { "lstm, h and a mask", LSTM, LEAST | BIT(STATE) | BIT(MASK), &zero },
  { "gru, all inputs", GRU, FULL & ~BIT(CELL), NULL },
  { "gru, bias without state", GRU, LEAST | BIT(INNER), &back },
  { "gru, reset before", GRU, LEAST | BIT(BIAS) | BIT(STATE) | BIT(MASK), &before },
  { "gru, least", GRU, LEAST, &before },
  { "simple, all inputs", SIMPLE, FULL & ~BIT(CELL) & ~BIT(INNER), NULL },
  { "simple, mask alone", SIMPLE, LEAST | BIT(MASK), &zero },
};
enum { LAYERS = sizeof layers / sizeof *layers };

static int64_t elements(yk_shape s) {
  int64_t n = 1;
  for (unsigned i = 0; i < s.rank; i++) n *= s.dim[i];
  return n;
}

/* Inputs are placeholders of `dtype`; with `batch` false the number of sequences is left open. */
static void build(int which, yk_dtype dtype, bool batch, layer *l) {
  const int g = gates[layers[which].kind];
  const yk_shape shape[INPUTS] = { YK_SHAPE(N, T, C), YK_SHAPE(C, g * U), YK_SHAPE(U, g * U), YK_SHAPE(g * U),
                                   YK_SHAPE(N, U),    YK_SHAPE(N, U),     YK_SHAPE(g * U),    YK_SHAPE(N, T) };
  const yk_case range = { .lo = -0.9, .hi = 0.9 };
  *l = (layer){ .nout = layers[which].kind == LSTM ? 3 : 2 };
  CHECK_OK(yk_graph_new(&l->g));
  for (int i = 0; i < INPUTS; i++) {
    yk_shape s = shape[i];
    if (!(layers[which].given & BIT(i))) continue;
    if (!batch && (i == X || i == STATE || i == CELL || i == MASK)) s.dim[0] = -1;
    l->in[i] = yk_placeholder(l->g, NULL, i == MASK ? YK_BOOL : dtype, s);
    l->shape[i] = shape[i];
    opcase_fill(&range, i == MASK ? YK_BOOL : dtype, 5, (unsigned)i, l->at[i], elements(shape[i]));
  }
  for (int t = 0; t < T && l->in[MASK].id; t++) l->at[MASK][t] = t > 1;      /* one sequence begins with masked steps */
  const yk_value *in = l->in;
  if (layers[which].kind == LSTM)
    yk_lstm(l->g, in[X], in[KERNEL], in[RECURRENT], in[BIAS], in[STATE], in[CELL], in[MASK], layers[which].attrs, l->out);
  else if (layers[which].kind == GRU)
    yk_gru(l->g, in[X], in[KERNEL], in[RECURRENT], in[BIAS], in[INNER], in[STATE], in[MASK], layers[which].attrs, l->out);
  else
    yk_simple_rnn(l->g, in[X], in[KERNEL], in[RECURRENT], in[BIAS], in[STATE], in[MASK], layers[which].attrs, l->out);
  CHECK_OK(yk_graph_status(l->g));
}

static void every_input_has_its_gradient(void **state) {
  (void)state;
  for (int k = 0; k < LAYERS; k++) {
    layer l;
    gradcheck r;
    build(k, YK_F64, true, &l);
    gradcheck_point p = { .g = l.g, .ny = (uint16_t)l.nout, .seed = 9 };
    for (int i = 0; i < l.nout; i++) p.y[i] = l.out[i];
    for (int i = 0; i < INPUTS; i++) {
      if (!l.in[i].id) continue;
      if (i == MASK) p.fixed[p.nfixed] = l.in[i], p.fixed_at[p.nfixed++] = l.at[i];
      else p.x[p.nx] = l.in[i], p.at[p.nx++] = l.at[i];
    }
    gradcheck_run(&p, 1, &r);
    if (r.verdict != GRADCHECK_PASS) fail_msg("%s: %s, %s", layers[k].name, gradcheck_name(r.verdict), r.text);
    for (uint16_t i = 0; i < r.nx; i++)
      if (!r.built[i]) fail_msg("%s: no gradient for input %u", layers[k].name, i);
    yk_graph_free(l.g);
  }
}

/* ---- on the CPU, against the references -------------------------------------------------------------------------------- */

typedef struct wanted { yk_value v[INPUTS + 3]; size_t n; } wanted;

/* Output number `of` alone, and the gradients of its sum. */
static wanted differentiate(layer *l, int of) {
  yk_value x[INPUTS], dx[INPUTS];
  size_t nx = 0;
  wanted w = { .v = { l->out[of] }, .n = 1 };
  for (int i = 0; i < MASK; i++)
    if (l->in[i].id) x[nx++] = l->in[i];
  yk_gradients(l->g, 1, &l->out[of], NULL, nx, x, NULL, dx);
  CHECK_OK(yk_graph_status(l->g));
  for (size_t i = 0; i < nx; i++)
    if (dx[i].id) w.v[w.n++] = dx[i];
  return w;
}

/* rows: sequences that are fed, of the N there are. */
static yk_shape fed_shape(const layer *l, int i, int64_t rows) {
  yk_shape s = l->shape[i];
  if (i == X || i == STATE || i == CELL || i == MASK) s.dim[0] = rows;
  return s;
}

static void run_on_cpu(const layer *l, const wanted *w, int64_t rows, yk_tensor **out) {
  yk_session *s;
  yk_feed feed[INPUTS];
  size_t n = 0;
  for (int i = 0; i < INPUTS; i++) {
    yk_shape shape = fed_shape(l, i, rows);
    yk_tensor *t;
    if (!l->in[i].id) continue;
    CHECK_OK(yk_tensor_new(i == MASK ? YK_BOOL : YK_F32, shape, &t));
    for (int64_t k = 0; k < elements(shape); k++) {
      if (i == MASK) ((uint8_t *)yk_tensor_data(t))[k] = l->at[i][k] != 0;
      else ((float *)yk_tensor_data(t))[k] = (float)l->at[i][k];
    }
    feed[n++] = (yk_feed){ l->in[i], t };
  }
  CHECK_OK(yk_session_open(l->g, NULL, &s));
  CHECK_OK(yk_session_run(s, n, feed, w->n, w->v, 0, NULL, out));
  for (size_t i = 0; i < n; i++) yk_tensor_free((yk_tensor *)feed[i].tensor);
  yk_session_close(s);
}

static void compare(const char *name, const layer *l, const wanted *w, int64_t rows, yk_tensor *const *got) {
  ref_eval *e = ref_eval_new(l->g);
  for (int i = 0; i < INPUTS; i++) {
    yk_shape shape = fed_shape(l, i, rows);
    if (l->in[i].id) CHECK_OK(ref_eval_feed(e, l->in[i], &shape, l->at[i]));
  }
  CHECK_OK(ref_eval_run(e, w->n, w->v));
  for (size_t i = 0; i < w->n; i++) {
    const double *want = ref_eval_data(e, w->v[i]);
    const int64_t n = yk__desc_count(ref_eval_desc(e, w->v[i]));
    CHECK_INT(yk_tensor_count(got[i]), n);
    for (int64_t k = 0; k < n; k++)
      if (!(fabs(yk_tensor_at(got[i], k) - want[k]) <= 1e-5 * (1 + fabs(want[k]))))
        fail_msg("%s, %lld rows: value %zu, element %lld is %.9g, expected %.9g", name, (long long)rows, i, (long long)k,
                 yk_tensor_at(got[i], k), want[k]);
  }
  ref_eval_free(e);
}

/* Each output alone: what flows back through the others is absent. */
static void a_session_agrees_with_the_references(void **state) {
  (void)state;
  for (int k = 0; k < LAYERS; k++)
    for (int of = 0; of < 3; of++) {
      layer l;
      build(k, YK_F32, false, &l);
      if (of < l.nout) {
        wanted w = differentiate(&l, of);
        for (int64_t rows = 0; rows <= N; rows += N) {
          yk_tensor *got[INPUTS + 3] = { NULL };
          run_on_cpu(&l, &w, rows, got);
          compare(layers[k].name, &l, &w, rows, got);
          for (size_t i = 0; i < w.n; i++) yk_tensor_free(got[i]);
        }
      }
      yk_graph_free(l.g);
    }
}

/* Neither the sequences nor their steps are known until they are fed. */
static void steps_may_be_unknown(void **state) {
  (void)state;
  layer l;
  build(0, YK_F32, false, &l);
  l.in[X] = yk_placeholder(l.g, NULL, YK_F32, YK_SHAPE(-1, -1, C));
  l.in[MASK] = yk_placeholder(l.g, NULL, YK_BOOL, YK_SHAPE(-1, -1));
  yk_lstm(l.g, l.in[X], l.in[KERNEL], l.in[RECURRENT], l.in[BIAS], l.in[STATE], l.in[CELL], l.in[MASK], NULL, l.out);
  wanted w = differentiate(&l, 0);
  yk_tensor *got[INPUTS + 3] = { NULL };
  CHECK_INT(w.n, 7);
  run_on_cpu(&l, &w, N, got);
  compare("unknown steps", &l, &w, N, got);
  for (size_t i = 0; i < w.n; i++) yk_tensor_free(got[i]);
  yk_graph_free(l.g);
}

/* A kernel that does not fit is refused with the place and both shapes. */
static void misfits_are_told(void **state) {
  (void)state;
  yk_graph *g;
  yk_value out[3], none = { 0 };
  CHECK_OK(yk_graph_new(&g));
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(2, 3, 4)), w = yk_fill(g, YK_F32, YK_SHAPE(4, 8), 1);
  assert_int_equal(yk_lstm(g, x, w, yk_fill(g, YK_F32, YK_SHAPE(3, 8), 1), none, none, none, none, NULL, out).id, 0);
  CHECK_CODE(yk_graph_status(g), YK_EINVAL, "recurrent is f32[3,8]");
  for (int i = 0; i < 3; i++) assert_int_equal(out[i].id, 0);
  yk_graph_free(g);
}

/* Gradients shrink at every step back, states at every zero that is read; before either is a denormal, which would be slow, it is zero. */
static void long_sequences_make_no_denormals(void **state) {
  (void)state;
  enum { LONG = 600 };
  const yk_value none = { 0 };
  for (int k = LSTM; k <= SIMPLE; k++) {
    yk_graph *g;
    yk_session *s;
    yk_value out[3] = { none, none, none }, dx, fetch[2];
    yk_tensor *x, *got[2];
    CHECK_OK(yk_graph_new(&g));
    CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, LONG, C), &x));
    for (int i = 0; i < C; i++) ((float *)yk_tensor_data(x))[i] = (float)(1 + i);
    yk_value in = yk_placeholder(g, NULL, YK_F32, YK_SHAPE(2, LONG, C)), w = yk_fill(g, YK_F32, YK_SHAPE(C, gates[k] * U), 0.1);
    yk_value recurrent = yk_fill(g, YK_F32, YK_SHAPE(U, gates[k] * U), 0.1);
    if (k == LSTM) yk_lstm(g, in, w, recurrent, none, none, none, none, NULL, out);
    else if (k == GRU) yk_gru(g, in, w, recurrent, none, none, none, none, NULL, out);
    else yk_simple_rnn(g, in, w, recurrent, none, none, none, NULL, out);
    yk_gradients(g, 1, &out[1], NULL, 1, &in, NULL, &dx);
    fetch[0] = out[0], fetch[1] = dx;
    CHECK_OK(yk_session_open(g, NULL, &s));
    CHECK_OK(yk_session_run(s, 1, &(yk_feed){ in, x }, 2, fetch, 0, NULL, got));
    for (int i = 0; i < 2; i++) {
      int zeros = 0;
      for (int64_t j = 0; j < yk_tensor_count(got[i]); j++) {
        double v = yk_tensor_at(got[i], j);
        if (v != 0 && fabs(v) < 0x1p-126) fail_msg("%d gates, value %d, element %lld: %g", gates[k], i, (long long)j, v);
        zeros += v == 0;
      }
      if (i == 1) assert_true(zeros > 0 && zeros < yk_tensor_count(got[i]));      /* it got there, and not at once */
      yk_tensor_free(got[i]);
    }
    yk_tensor_free(x);
    yk_session_close(s);
    yk_graph_free(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(every_input_has_its_gradient),
                                      cmocka_unit_test(a_session_agrees_with_the_references),
                                      cmocka_unit_test(steps_may_be_unknown), cmocka_unit_test(long_sequences_make_no_denormals),
                                      cmocka_unit_test(misfits_are_told) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
