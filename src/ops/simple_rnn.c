/*
 * simple_rnn.c - the plain recurrent layer h = a(z + h*recurrent) over a whole sequence (Elman, 1990), and its gradient through time.
 *
 * The states it keeps are what the gradient needs: they differ from y only where steps are masked.
 */
#include <yoke/math.h>
#include <yoke/nn.h>
#include <string.h>
#include "ops/rnn.h"

static yk_code infer(const yk_infer *c) {
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 0, "z", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 2, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "mask", "NT", 1, &r));
  c->out[0] = c->out[2] = yk__rnn_desc(c, &r, 1);
  c->out[1] = yk__rnn_desc(c, &r, 0);
  return YK_OK;
}

static yk_code grad(yk_grad *c) {
  if (c->dout[2].id) return YK_FAIL(EUNSUPPORTED, "gradients through its output states are not available");
  yk_value h = yk__rnn_value(c, 2), mask = yk__rnn_value(c, 3);
  c->din[0] = YK__OPA(c, simple_rnn_grad, c->attrs, 6, c->out[2], c->in[1], c->dout[0], c->dout[1], h, mask);
  c->din[1] = yk__rnn_outer(c, yk_output(c->g, c->din[0], 2), c->din[0]);
  if (h.id) c->din[2] = yk_output(c->g, c->din[0], 1);
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *h0 = yk__rnn_input(c, 2), *mask = yk__rnn_input(c, 3);
  const int64_t n = c->dout[0].dim[0], t = c->dout[0].dim[1], u = c->dout[0].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *h = c->out[1] + i * u;
    int seen = 0;
    for (int64_t j = 0; j < u; j++) h[j] = h0 ? h0[i * u + j] : 0;
    for (int64_t k = 0; k < t; k++) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      double *state = c->out[2] + at * u, *y = c->out[0] + (i * t + k) * u;
      seen |= on != 0;
      for (int64_t j = 0; j < u; j++)
        state[j] = on ? yk__rnn_act(&a, c->in[0][at * u + j] + yk__rnn_forward(h, c->in[1], u, u, j)) : h[j];
      memcpy(h, state, (size_t)u * sizeof *h);
      for (int64_t j = 0; j < u; j++) y[j] = seen && (on || !a.zero_output) ? h[j] : 0;
    }
  }
  return YK_OK;
}

static double flops(const yk_infer *c) { return 2.0 * (double)yk__desc_count(&c->in[0]) * (double)c->in[1].dim[0]; }

static const yk_rnn_attrs relu = { .activation = YK_RNN_RELU }, linear = { .activation = YK_RNN_LINEAR, .go_backwards = 1 };
static const yk_case cases[] = {
  { "T[3,5,4]; T[4,4]", NULL, 0, 0, 0 },
  { "T[9,4,7]; T[7,7]; T[9,7]", &relu, 0, 0, 0 },
  { "T[2,6,33]; T[33,33]; T[2,33]; bool[2,6]", NULL, -0.5, 0.5, 0 },
  { "T[5,7,5]; T[5,5]; T[5,5]; bool[5,7]", &yk__rnn_zero, 0, 0, 0 },
  { "T[3,3,3]; T[3,3]; T[3,3]", &linear, 0, 0, 0 },
  { "T[4,1,3]; T[3,3]; T[4,3]", NULL, 0, 0, 0 },
  { "T[0,5,3]; T[3,3]", NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_simple_rnn = {
  .name = "simple_rnn", .label = "SimpleRNN", .doc = "A plain recurrent layer over a whole sequence, from the projected input z.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE | YK_WIDE, .attrs = yk__simple_rnn_attrs,
  .in = (const yk_port[]){ { "z", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 }, { 0 } },
  .out = (const yk_port[]){ { "y", YK_FLOATS, 0, 1 }, { "h", YK_FLOATS, 0, 1 }, { "states", YK_FLOATS, YK_PORT_NODIFF, 1 }, { 0 } },
  .infer = infer, .grad = grad, .ref = ref, .cases = cases, .flops = flops,
};

yk_value yk_simple_rnn_at(const char *where, yk_graph *g, yk_value x, yk_value kernel, yk_value recurrent, yk_value bias, yk_value h,
                          yk_value mask, const yk_rnn_attrs *attrs, yk_value out[2]) {
  yk_value z = yk__rnn_project(where, g, x, kernel, bias);
  out[0] = yk__build(where, g, &yk__op_simple_rnn, attrs, 4, z, recurrent, h, mask);
  out[1] = yk_output(g, out[0], 1);
  return yk__outputs(g, 2, out);
}

/* ---- simple_rnn_grad ------------------------------------------------------------------------------------------------ */

static yk_code infer_grad(const yk_infer *c) {
  yk_rnn r = { -1, -1, -1 };
  YK_TRY(yk__rnn_meet(c, 1, "recurrent", "UU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 0, "states", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 2, "dy", "NTU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 3, "dh", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 4, "h", "NU", 1, &r));
  YK_TRY(yk__rnn_meet(c, 5, "mask", "NT", 1, &r));
  c->out[0] = c->out[2] = yk__rnn_desc(c, &r, 1);
  c->out[1] = yk__rnn_desc(c, &r, 0);
  return YK_OK;
}

static yk_code grad_grad(yk_grad *c) {
  (void)c;
  return YK_FAIL(EUNSUPPORTED, "second derivatives through simple_rnn are not available");
}

static yk_code ref_grad(const yk_ref *c) {
  const yk_rnn_attrs a = YK__ATTRS(yk_rnn_attrs, c);
  const double *dy = yk__rnn_input(c, 2), *dh1 = yk__rnn_input(c, 3), *h0 = yk__rnn_input(c, 4), *mask = yk__rnn_input(c, 5);
  const int64_t n = c->din[0].dim[0], t = c->din[0].dim[1], u = c->din[0].dim[2];
  for (int64_t i = 0; i < n; i++) {
    double *dh = c->out[1] + i * u;
    const int64_t first = yk__rnn_first(&a, mask, i, t);
    for (int64_t j = 0; j < u; j++) dh[j] = dh1 ? dh1[i * u + j] : 0;
    for (int64_t k = t; k-- > 0;) {
      int64_t at = i * t + yk__rnn_step(&a, t, k), on = !mask || mask[at] != 0;
      const double *last = k ? c->in[0] + (i * t + yk__rnn_step(&a, t, k - 1)) * u : h0 ? h0 + i * u : NULL;
      double *dz = c->out[0] + at * u;
      for (int64_t j = 0; j < u && dy && k >= first && (on || !a.zero_output); j++) dh[j] += dy[(i * t + k) * u + j];
      for (int64_t j = 0; j < u; j++) {
        dz[j] = on ? dh[j] * yk__rnn_act_slope(&a, c->in[0][at * u + j]) : 0;
        c->out[2][at * u + j] = on && last ? last[j] : 0;
      }
      for (int64_t j = 0; j < u && on; j++) dh[j] = yk__rnn_backward(dz, c->in[1], u, 0, u, j);
    }
  }
  return YK_OK;
}

#define GRAD(n, t, u) "T[" n "," t "," u "]; T[" u "," u "]; T[" n "," t "," u "]"
#define ENDS(n, u)    "; T[" n "," u "]; T[" n "," u "]"
static const yk_case grad_cases[] = {
  { GRAD("3", "5", "4"), NULL, 0.1, 0.5, 0 },
  { GRAD("9", "4", "7") ENDS("9", "7"), &relu, 0.1, 0.3, 0 },
  { GRAD("2", "6", "33") ENDS("2", "33") "; bool[2,6]", NULL, -0.1, 0.1, 0 },
  { GRAD("5", "7", "5") ENDS("5", "5") "; bool[5,7]", &yk__rnn_zero, 0.1, 0.3, 0 },
  { GRAD("3", "3", "3") ENDS("3", "3"), &linear, 0, 0, 0 },
  { GRAD("4", "1", "3") ENDS("4", "3"), NULL, 0, 0, 0 },
  { GRAD("0", "5", "3"), NULL, 0, 0, 0 },
  { 0 },
};

const yk_op yk__op_simple_rnn_grad = {
  .name = "simple_rnn_grad", .label = "SimpleRNNGrad", .doc = "Gradient of simple_rnn, back through the steps.",
  .version = 1, .attr_bytes = sizeof(yk_rnn_attrs), .traits = YK_PURE, .attrs = yk__simple_rnn_attrs,
  .in = (const yk_port[]){ { "states", YK_FLOATS, 0, 0 }, { "recurrent", YK_FLOATS, 0, 1 }, { "dy", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "dh", YK_FLOATS, YK_PORT_OPTIONAL, 1 }, { "h", YK_FLOATS, YK_PORT_OPTIONAL, 1 },
                           { "mask", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_NODIFF, 0 }, { 0 } },
  .out = (const yk_port[]){ { "dz", YK_FLOATS, 0, 1 }, { "dh", YK_FLOATS, 0, 1 }, { "before", YK_FLOATS, 0, 1 }, { 0 } },
  .infer = infer_grad, .grad = grad_grad, .ref = ref_grad, .cases = grad_cases, .flops = flops,
};
