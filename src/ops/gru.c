/*
 * gru.c - a gated recurrent unit over a whole sequence (Cho and others, 2014), and its gradient through time.
 *
 * Gates in Keras's order: update, reset, new state. The reset gate acts on the product h*recurrent + bias, as in cuDNN, or with
 * reset_before on h itself, as in the paper; the two differ in what the recurrent kernel's gradient is made of.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include <string.h>
#include "ops/rnn.h"

static yk_code infer(const yk_infer *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  char text[YK__DESC_TEXT];
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 3, &r));
  YK_TRY(yk__rnn_meet(c, 0, "z", "NTU", 3, &r));
  YK_TRY(yk__rnn_meet(c, 2, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "mask", "NT", 1, &r));
  YK_TRY(yk__rnn_meet(c, 4, "bias", "U", 3, &r));
  if (a.reset_before && c->nin > 4 && c->in[4].dtype != YK_NONE)
    return YK_FAIL(EINVAL, "with reset_before there is no recurrent bias, got %s", yk__desc_text(&c->in[4], text, sizeof text));
  c->out[0] = c->out[3] = yk__rnn_desc(c, &r, 1);
  c->out[1] = yk__rnn_desc(c, &r, 0);
  c->out[2] = yk__rnn_desc(c, &r, 4);
  return YK_OK;
}

/* Columns [from, from + size) of the last axis of x, in units of U columns. */
static yk_value part(yk_grad *c, yk_value x, int64_t from, int64_t size, int64_t u) {
  yk_slice_attrs a = { .rank = 3, .begin = { 0, 0, from * u }, .size = { -1, -1, size * u } };
  return YK__OPA(c, slice, &a, 1, x);
}

/* With reset_before the product for the new state has r*h on its left, which is the last of the gates. */
static yk_value recurrent_grad(yk_grad *c, yk_value before, yk_value dq) {
  const yk_rnn_attrs *a = c->attrs;
  const yk_desc *d = yk_value_desc(c->g, before);
  if (!a->reset_before || !d) return yk__rnn_outer(c, before, dq);
  const int64_t u = d->dim[2];
  if (u < 0) {
    yk_graph_fail_at(c->where, c->g, YK_EUNSUPPORTED, "the gradient of gru with reset_before needs a known number of units");
    return (yk_value){ 0 };
  }
  yk_value gates = yk__rnn_outer(c, before, part(c, dq, 0, 2, u)), fresh = yk__rnn_outer(c, part(c, c->out[2], 3, 1, u), part(c, dq, 2, 1, u));
  return YK__OPA(c, concat, &(yk_axis_attrs){ 1 }, 2, gates, fresh);
}

static yk_code grad(yk_grad *c) {
  if (c->dout[2].id || c->dout[3].id) return YK_FAIL(EUNSUPPORTED, "gradients through its outputs gates and states are not available");
  yk_value h = yk__rnn_value(c, 2), mask = yk__rnn_value(c, 3);
  c->din[0] = YK__OPA(c, gru_grad, c->attrs, 7, c->out[2], c->in[1], c->out[3], c->dout[0], c->dout[1], h, mask);
  yk_value dq = yk_output(c->g, c->din[0], 2);
  c->din[1] = recurrent_grad(c, yk_output(c->g, c->din[0], 3), dq);
  if (h.id) c->din[2] = yk_output(c->g, c->din[0], 1);
  if (yk__rnn_value(c, 4).id) c->din[4] = YK__OP1(c, bias_add_grad, dq);
  return YK_OK;
}

/* One step of one sequence, all of them rows; gates has room for four. */
static void step(const yk_rnn_attrs *a, int64_t u, const double *z, const double *r, const double *bias, double *gates, const double *h,
                 double *state) {
  double *last = gates + 3 * u;
  for (int64_t j = 0; j < 2 * u; j++) gates[j] = yk__rnn_gate(a, z[j] + yk__rnn_forward(h, r, u, 3 * u, j) + (bias ? bias[j] : 0));
  for (int64_t j = 0; j < u; j++)
    last[j] = a->reset_before ? gates[u + j] * h[j] : yk__rnn_forward(h, r, u, 3 * u, 2 * u + j) + (bias ? bias[2 * u + j] : 0);
  for (int64_t j = 0; j < u; j++) {
    double q = a->reset_before ? yk__rnn_forward(last, r, u, 3 * u, 2 * u + j) : gates[u + j] * last[j];
    gates[2 * u + j] = yk__rnn_act(a, z[2 * u + j] + q);
    state[j] = gates[j] * h[j] + (1 - gates[j]) * gates[2 * u + j];
  }
}

static yk_code ref(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *h0 = yk__rnn_input(c, 2), *mask = yk__rnn_input(c, 3), *bias = yk__rnn_input(c, 4);
  const int64_t n = c->dout[0].dim[0], t = c->dout[0].dim[1], u = c->dout[0].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *h = c->out[1] + i * u;
    int seen = 0;
    for (int64_t j = 0; j < u; j++) h[j] = h0 ? h0[i * u + j] : 0;
    for (int64_t k = 0; k < t; k++) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      double *gates = c->out[2] + at * 4 * u, *state = c->out[3] + at * u, *y = c->out[0] + (i * t + k) * u;
      seen |= on != 0;
      if (on) step(&a, u, c->in[0] + at * 3 * u, c->in[1], bias, gates, h, state);
      else memcpy(state, h, (size_t)u * sizeof *h);
      for (int64_t j = 0; j < 4 * u && !on; j++) gates[j] = 0;
      memcpy(h, state, (size_t)u * sizeof *h);
      for (int64_t j = 0; j < u; j++) y[j] = seen && (on || !a.zero_output) ? h[j] : 0;
    }
  }
  return YK_OK;
}

static double flops(const yk_infer *c) {
  return 2.0 * (double)yk__desc_count(&c->in[0]) * (double)c->in[1].dim[0];
}

static const yk_rnn_attrs before = { .reset_before = 1 }, before_hard = { .reset_before = 1, .recurrent_activation = YK_RNN_HARD_SIGMOID,
                                                                          .go_backwards = 1 };
static const yk_case cases[] = {
  { "T[3,5,12]; T[4,12]", NULL, 0, 0, 0 },
  { "T[9,4,21]; T[7,21]; T[9,7]", NULL, 0, 0, 0 },
  { "T[2,6,48]; T[16,48]; T[2,16]; bool[2,6]; T[48]", NULL, 0, 0, 0 },
  { "T[5,7,15]; T[5,15]; T[5,5]; bool[5,7]; T[15]", &yk__rnn_zero, 0, 0, 0 },
  { "T[5,4,15]; T[5,15]; T[5,5]; bool[5,4]", &before, 0, 0, 0 },
  { "T[9,3,51]; T[17,51]; T[9,17]", &before_hard, -0.5, 0.5, 0 },
  { "T[2,3,6]; T[2,6]", &yk__rnn_hard, -2, 2, 0 },
  { "T[2,3,6]; T[2,6]", &yk__rnn_relu, 0, 0, 0 },
  { "T[17,1,51]; T[17,51]", NULL, 0, 0, 0 },
  { "T[0,5,12]; T[4,12]; T[0,4]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_gru = {
  .name = "gru", .label = "GRU", .doc = "Gated recurrent unit over a whole sequence, from the projected input z.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE | YK_WIDE, .attrs = yk__gru_attrs,
  .in = (const yk_port[]){ { "z", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 }, { "bias", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, 0, 1 }, { "gates", YK_FLOATS, YK_PORT_NODIFF, 1 },
                            { "states", YK_FLOATS, YK_PORT_NODIFF, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases, .flops = flops,
};

yk_value yk_gru_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value recurrent_bias,
                   yk_value h, yk_value mask, const yk_rnn_attrs *attrs, yk_value out[2]) {
  yk_value z = yk__rnn_project(where, g, x, kernel, bias);
  out[0] = yk__build(where, g, &yk__op_gru, attrs, 5, z, recurrent, h, mask, recurrent_bias);
  out[1] = yk_output(g, out[0], 1);
  return yk__outputs(g, 2, out);
}

/* ---- gru_grad ------------------------------------------------------------------------------------------------------ */

static yk_code infer_grad(const yk_infer *c) {
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 3, &r));
  YK_TRY(yk__rnn_meet(c, 0, "gates", "NTU", 4, &r));
  YK_TRY(yk__rnn_meet(c, 2, "states", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "dy", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 4, "dh", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 5, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 6, "mask", "NT", 1, &r));
  c->out[0] = c->out[2] = yk__rnn_desc(c, &r, 3);
  c->out[1] = yk__rnn_desc(c, &r, 0);
  c->out[3] = yk__rnn_desc(c, &r, 1);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through gru are not available");
}

/* Through one step of one sequence; `last` is the state before it (NULL: zero). dh becomes that state's gradient; drh is scratch. */
static void back(const yk_rnn_attrs *a, int64_t u, const double *gates, const double *r, const double *last, double *dh, double *dz, double *dq) {
  for (int64_t j = 0; j < u; j++) {
    double g = gates[j], n = gates[2 * u + j];
    dz[j] = dh[j] * ((last ? last[j] : 0) - n) * yk__rnn_gate_slope(a, g);
    dz[2 * u + j] = dh[j] * (1 - g) * yk__rnn_act_slope(a, n);
  }
  for (int64_t j = 0; j < u; j++) {
    double reset = gates[u + j], through = dz[2 * u + j] * gates[3 * u + j];
    if (a->reset_before) {                             /* what flows to r*h, then to both of them */
      double drh = yk__rnn_backward(dz, r, 3 * u, 2 * u, 3 * u, j);
      through = drh * (last ? last[j] : 0);
      dh[j] = dh[j] * gates[j] + drh * reset;
    } else {
      dh[j] *= gates[j];
    }
    dz[u + j] = through * yk__rnn_gate_slope(a, reset);
  }
  for (int64_t j = 0; j < 3 * u; j++) dq[j] = j < 2 * u || a->reset_before ? dz[j] : dz[j] * gates[j - u];
  for (int64_t j = 0; j < u; j++) dh[j] += yk__rnn_backward(dq, r, 3 * u, 0, a->reset_before ? 2 * u : 3 * u, j);
}

static yk_code ref_grad(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *dy = yk__rnn_input(c, 3), *dh1 = yk__rnn_input(c, 4), *h0 = yk__rnn_input(c, 5), *mask = yk__rnn_input(c, 6);
  const int64_t n = c->din[2].dim[0], t = c->din[2].dim[1], u = c->din[2].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *dh = c->out[1] + i * u;
    const int64_t first = yk__rnn_first(&a, mask, i, t);
    for (int64_t j = 0; j < u; j++) dh[j] = dh1 ? dh1[i * u + j] : 0;
    for (int64_t k = t; k-- > 0;) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      const double *last = k ? c->in[2] + (i * t + yk__rnn_step(&a, t, k - 1)) * u : h0 ? h0 + i * u : NULL;
      double *dz = c->out[0] + at * 3 * u, *dq = c->out[2] + at * 3 * u;
      for (int64_t j = 0; j < u && dy && k >= first && (on || !a.zero_output); j++) dh[j] += dy[(i * t + k) * u + j];
      for (int64_t j = 0; j < u; j++) c->out[3][at * u + j] = on && last ? last[j] : 0;
      for (int64_t j = 0; j < 3 * u && !on; j++) dz[j] = dq[j] = 0;
      if (on) back(&a, u, c->in[0] + at * 4 * u, c->in[1], last, dh, dz, dq);
    }
  }
  return YK_OK;
}

#define GRAD(n, t, u, g, r) "T[" n "," t "," g "]; T[" u "," r "]; T[" n "," t "," u "]; T[" n "," t "," u "]"
#define ENDS(n, u)          "; T[" n "," u "]; T[" n "," u "]"
static const yk_case grad_cases[] = {
  { GRAD("3", "5", "4", "16", "12"), NULL, 0.1, 0.9, 0 },
  { GRAD("9", "4", "7", "28", "21") ENDS("9", "7"), NULL, 0.1, 0.5, 0 },
  { GRAD("2", "6", "16", "64", "48") ENDS("2", "16") "; bool[2,6]", NULL, 0.1, 0.5, 0 },
  { GRAD("5", "7", "5", "20", "15") ENDS("5", "5") "; bool[5,7]", &yk__rnn_zero, 0.1, 0.9, 0 },
  { GRAD("5", "4", "5", "20", "15") ENDS("5", "5") "; bool[5,4]", &before, 0.1, 0.9, 0 },
  { GRAD("9", "3", "17", "68", "51") ENDS("9", "17"), &before_hard, 0.1, 0.9, 0 },
  { GRAD("2", "3", "2", "8", "6"), &yk__rnn_relu, 0.1, 0.9, 0 },
  { GRAD("17", "1", "17", "68", "51"), NULL, 0.1, 0.9, 0 },
  { GRAD("0", "5", "4", "16", "12"), NULL, 0.1, 0.9, 0 },
  { 0 },
};

const yk_op yk__op_gru_grad = {
  .name = "gru_grad", .label = "GRUGrad", .doc = "Gradient of gru, back through the steps.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE, .attrs = yk__gru_attrs,
  .in = (const yk_port[]){ { "gates", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "states", YK_FLOATS, 0, 1 },
                           { "dy", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "dh", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 },
                           { 0 } },
  .out = (const yk_port[]){ { "dz", YK_FLOATS, 0, 1 }, { "dh", YK_FLOATS, 0, 1 }, { "dq", YK_FLOATS, 0, 1 }, { "before", YK_FLOATS, 0, 1 },
                            { 0 } },
  .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases, .flops = flops,
};
