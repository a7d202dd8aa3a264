/*
 * lstm.c - a long short-term memory over a whole sequence (Hochreiter, Schmidhuber, 1997; with the forget gate of Gers and others, 2000),
 * and its gradient through time.
 *
 * Gates in Keras's order i, f, g, o. The gradient starts from the gates and cells that the forward pass kept; what it gives
 * for z also is what the kernel's and the bias's gradients are made of, and with `before` the recurrent kernel's.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include "ops/rnn.h"

static yk_code infer(const yk_infer *c) {
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 4, &r));
  YK_TRY(yk__rnn_meet(c, 0, "z", "NTU", 4, &r));
  YK_TRY(yk__rnn_meet(c, 2, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "c", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 4, "mask", "NT", 1, &r));
  c->out[0] = c->out[4] = yk__rnn_desc(c, &r, 1);
  c->out[1] = c->out[2] = yk__rnn_desc(c, &r, 0);
  c->out[3] = yk__rnn_desc(c, &r, 4);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[3].id || c->dout[4].id) return YK_FAIL(EUNSUPPORTED, "gradients through its outputs gates and cells are not available");
  yk_value h = yk__rnn_value(c, 2), s = yk__rnn_value(c, 3), mask = yk__rnn_value(c, 4);
  c->din[0] = YK__OPA(c, lstm_grad, c->attrs, 9, c->out[3], c->in[1], c->out[4], c->dout[0], c->dout[1], c->dout[2], h, s, mask);
  c->din[1] = yk__rnn_outer(c, yk_output(c->g, c->din[0], 3), c->din[0]);
  if (h.id) c->din[2] = yk_output(c->g, c->din[0], 1);
  if (s.id) c->din[3] = yk_output(c->g, c->din[0], 2);
  return YK_OK;
}

/* One step of one sequence: gates from z, then c, h; all of them rows. */
static void step(const yk_rnn_attrs *a, int64_t u, const double *z, const double *r, double *gates, double *h, double *s) {
  for (int64_t j = 0; j < 4 * u; j++) {
    double x = z[j] + yk__rnn_forward(h, r, u, 4 * u, j);
    gates[j] = j / u == 2 ? yk__rnn_act(a, x) : yk__rnn_gate(a, x);
  }
  for (int64_t j = 0; j < u; j++) {
    s[j] = gates[u + j] * s[j] + gates[j] * gates[2 * u + j];
    h[j] = gates[3 * u + j] * yk__rnn_act(a, s[j]);
  }
}

static yk_code ref(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *h0 = yk__rnn_input(c, 2), *c0 = yk__rnn_input(c, 3), *mask = yk__rnn_input(c, 4);
  const int64_t n = c->dout[0].dim[0], t = c->dout[0].dim[1], u = c->dout[0].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *h = c->out[1] + i * u, *s = c->out[2] + i * u;
    int seen = 0;
    for (int64_t j = 0; j < u; j++) {
      h[j] = h0 ? h0[i * u + j] : 0;
      s[j] = c0 ? c0[i * u + j] : 0;
    }
    for (int64_t k = 0; k < t; k++) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      double *gates = c->out[3] + at * 4 * u, *y = c->out[0] + (i * t + k) * u;
      if (on) step(&a, u, c->in[0] + at * 4 * u, c->in[1], gates, h, s);
      seen |= on != 0;
      for (int64_t j = 0; j < 4 * u && !on; j++) gates[j] = 0;
      for (int64_t j = 0; j < u; j++) {
        y[j] = seen && (on || !a.zero_output) ? h[j] : 0;
        c->out[4][at * u + j] = s[j];
      }
    }
  }
  return YK_OK;
}

static double flops(const yk_infer *c) { return 2.0 * (double)yk__desc_count(&c->in[0]) * (double)c->in[1].dim[0]; }

static const yk_case cases[] = {
  { "T[3,5,12]; T[3,12]", NULL, 0, 0, 0 },
  { "T[9,4,28]; T[7,28]; T[9,7]; T[9,7]", NULL, 0, 0, 0 },
  { "T[2,6,64]; T[16,64]; T[2,16]; T[2,16]; bool[2,6]", NULL, 0, 0, 0 },
  { "T[5,7,20]; T[5,20]; T[5,5]; T[5,5]; bool[5,7]", &yk__rnn_zero, 0, 0, 0 },
  { "T[3,4,12]; T[3,12]; T[3,3]; T[3,3]", &yk__rnn_back, 0, 0, 0 },
  { "T[2,3,8]; T[2,8]", &yk__rnn_hard, -2, 2, 0 },
  { "T[2,3,8]; T[2,8]; T[2,2]", &yk__rnn_relu, 0, 0, 0 },
  { "T[17,1,68]; T[17,68]", NULL, 0, 0, 0 },
  { "T[1,9,144]; T[36,144]", NULL, 0, 0, 0 },
  { "T[0,5,12]; T[3,12]; T[0,3]; T[0,3]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_lstm = {
  .name = "lstm", .label = "LSTM", .doc = "Long short-term memory over a whole sequence, from the projected input z.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE | YK_WIDE, .attrs = yk__rnn_attrs,
  .in = (const yk_port[]){ { "z", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "c", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 },
                           { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, 0, 1 }, { "c", YK_FLOATS, 0, 1 },
                            { "gates", YK_FLOATS, YK_PORT_NODIFF, 1 }, { "cells", YK_FLOATS, YK_PORT_NODIFF, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases, .flops = flops,
};

yk_value yk_lstm_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value h, yk_value c,
                    yk_value mask, const yk_rnn_attrs *attrs, yk_value out[3]) {
  yk_value z = yk__rnn_project(where, g, x, kernel, bias);
  out[0] = yk__build(where, g, &yk__op_lstm, attrs, 5, z, recurrent, h, c, mask);
  out[1] = yk_output(g, out[0], 1);
  out[2] = yk_output(g, out[0], 2);
  return yk__outputs(g, 3, out);
}

/* ---- lstm_grad ---------------------------------------------------------------------------------------------------- */

static yk_code infer_grad(const yk_infer *c) {
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 4, &r));
  YK_TRY(yk__rnn_meet(c, 0, "gates", "NTU", 4, &r));
  YK_TRY(yk__rnn_meet(c, 2, "cells", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "dy", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 4, "dh", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 5, "dc", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 6, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 7, "c", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 8, "mask", "NT", 1, &r));
  c->out[0] = yk__rnn_desc(c, &r, 4);
  c->out[1] = c->out[2] = yk__rnn_desc(c, &r, 0);
  c->out[3] = yk__rnn_desc(c, &r, 1);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through lstm are not available");
}

/* Through one step of one sequence; `last` and `before` are the cells before it (NULL: zero) and dh, ds the gradients of the state. */
static void back(const yk_rnn_attrs *a, int64_t u, const double *gates, const double *s, const double *last, double *dh, double *ds, double *dz) {
  for (int64_t j = 0; j < u; j++) {
    double i = gates[j], f = gates[u + j], g = gates[2 * u + j], o = gates[3 * u + j], y = yk__rnn_act(a, s[j]);
    double e = ds[j] + dh[j] * o * yk__rnn_act_slope(a, y);
    dz[j] = e * g * yk__rnn_gate_slope(a, i);
    dz[u + j] = e * (last ? last[j] : 0) * yk__rnn_gate_slope(a, f);
    dz[2 * u + j] = e * i * yk__rnn_act_slope(a, g);
    dz[3 * u + j] = dh[j] * y * yk__rnn_gate_slope(a, o);
    ds[j] = e * f;
  }
}

/* h before each step of sequence i, from the gates and cells of the step before. */
static void states_before(const yk_ref *c, const yk_rnn_attrs *a, int64_t i, int64_t t, int64_t u) {
  const double *h0 = yk__rnn_input(c, 6), *mask = yk__rnn_input(c, 8);
  int64_t last = -1;
  for (int64_t k = 0; k < t; k++) {
    int64_t at = i * t + yk__rnn_step(a, t, k);
    int on = !mask || mask[at] != 0;
    for (int64_t j = 0; j < u; j++) {
      double h = last >= 0 ? c->in[0][(last * 4 + 3) * u + j] * yk__rnn_act(a, c->in[2][last * u + j]) : h0 ? h0[i * u + j] : 0;
      c->out[3][at * u + j] = on ? h : 0;
    }
    if (on) last = at;
  }
}

static yk_code ref_grad(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *dy = yk__rnn_input(c, 3), *dh1 = yk__rnn_input(c, 4), *dc1 = yk__rnn_input(c, 5), *c0 = yk__rnn_input(c, 7);
  const double *mask = yk__rnn_input(c, 8);
  const int64_t n = c->din[2].dim[0], t = c->din[2].dim[1], u = c->din[2].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *dh = c->out[1] + i * u, *ds = c->out[2] + i * u;
    const int64_t first = yk__rnn_first(&a, mask, i, t);
    for (int64_t j = 0; j < u; j++) {
      dh[j] = dh1 ? dh1[i * u + j] : 0;
      ds[j] = dc1 ? dc1[i * u + j] : 0;
    }
    for (int64_t k = t; k-- > 0;) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      const double *last = k ? c->in[2] + (i * t + yk__rnn_step(&a, t, k - 1)) * u : c0 ? c0 + i * u : NULL;
      double *dz = c->out[0] + at * 4 * u;
      for (int64_t j = 0; j < u && dy && k >= first && (on || !a.zero_output); j++) dh[j] += dy[(i * t + k) * u + j];
      for (int64_t j = 0; j < 4 * u && !on; j++) dz[j] = 0;
      if (!on) continue;
      back(&a, u, c->in[0] + at * 4 * u, c->in[2] + at * u, last, dh, ds, dz);
      for (int64_t j = 0; j < u; j++) dh[j] = yk__rnn_backward(dz, c->in[1], 4 * u, 0, 4 * u, j);
    }
    states_before(c, &a, i, t, u);
  }
  return YK_OK;
}

#define GRAD(n, t, u, g) "T[" n "," t "," g "]; T[" u "," g "]; T[" n "," t "," u "]; T[" n "," t "," u "]"
#define ENDS(n, u)       "; T[" n "," u "]; T[" n "," u "]; T[" n "," u "]; T[" n "," u "]"
static const yk_case grad_cases[] = {
  { GRAD("3", "5", "3", "12"), NULL, 0.1, 0.9, 0 },
  { GRAD("9", "4", "7", "28") ENDS("9", "7"), NULL, 0.1, 0.9, 0 },
  { GRAD("2", "6", "16", "64") ENDS("2", "16") "; bool[2,6]", NULL, 0.1, 0.5, 0 },
  { GRAD("5", "7", "5", "20") ENDS("5", "5") "; bool[5,7]", &yk__rnn_zero, 0.1, 0.9, 0 },
  { GRAD("3", "4", "3", "12") ENDS("3", "3"), &yk__rnn_back, 0.1, 0.9, 0 },
  { GRAD("2", "3", "2", "8"), &yk__rnn_hard, 0.1, 0.9, 0 },
  { GRAD("2", "3", "2", "8"), &yk__rnn_relu, 0.1, 0.9, 0 },
  { GRAD("17", "1", "17", "68") ENDS("17", "17"), NULL, 0.1, 0.9, 0 },
  { GRAD("1", "9", "36", "144"), NULL, 0.1, 0.3, 0 },
  { GRAD("0", "5", "3", "12"), NULL, 0.1, 0.9, 0 },
  { 0 },
};

const yk_op yk__op_lstm_grad = {
  .name = "lstm_grad", .label = "LSTMGrad", .doc = "Gradient of lstm, back through the steps.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE, .attrs = yk__rnn_attrs,
  .in = (const yk_port[]){ { "gates", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "cells", YK_FLOATS, 0, 1 },
                           { "dy", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "dh", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "dc", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "c", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 },
                           { 0 } },
  .out = (const yk_port[]){ { "dz", YK_FLOATS, 0, 1 }, { "dh", YK_FLOATS, 0, 1 }, { "dc", YK_FLOATS, 0, 1 }, { "before", YK_FLOATS, 0, 1 },
                            { 0 } },
  .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases, .flops = flops,
};
