/*
 * recurrent.c - LSTM, GRU, SimpleRNN, and Masking in front of them.
 *
 * One operation runs the whole sequence, unless states are dropped out on the way (recurrent_steps.h); weights are Keras's as they are.
 */
#include <string.h>
#include "keras/carried.h"
#include "keras/recurrent_steps.h"

#define RNN(member) YK__AT(yk_recurrent_config, member)
#define PART(prefix, member, first)                                                                     \
  { .key = prefix "_initializer", .kind = YK__F_INITIALIZER, RNN(member##_initializer), .words = (first) }, \
  { .key = prefix "_regularizer", .kind = YK__F_PENALTY, RNN(member##_regularizer) },                   \
  { .key = prefix "_constraint", .kind = YK__F_CONSTRAINT, RNN(member##_constraint) }
#define USUAL                                                                                           \
  { .key = "units", .kind = YK__F_INT, RNN(units), .lo = 1, .hi = 1e9 },                                \
  { .key = "activation", .kind = YK__F_WORD, RNN(activation), .words = "tanh|relu|linear" },            \
  { .key = "use_bias", .kind = YK__F_NOT, RNN(no_bias) },                                               \
  { .key = "return_sequences", .kind = YK__F_TRUE, RNN(return_sequences) },                             \
  { .key = "return_state", .kind = YK__F_TRUE, RNN(return_state) },                                     \
  { .key = "go_backwards", .kind = YK__F_TRUE, RNN(go_backwards) },                                     \
  { .key = "stateful", .kind = YK__F_TRUE, RNN(stateful) },                                             \
  { .key = "dropout", .kind = YK__F_REAL, RNN(dropout), .lo = 0, .hi = 1 },                             \
  { .key = "recurrent_dropout", .kind = YK__F_REAL, RNN(recurrent_dropout), .lo = 0, .hi = 1 },         \
  PART("kernel", kernel, "glorot_uniform"), PART("recurrent", recurrent, "orthogonal"), PART("bias", bias, "zeros"), \
  { .key = "activity_regularizer", .kind = YK__F_PENALTY, RNN(activity_regularizer) }
#define GATE                                                                                            \
  { .key = "recurrent_activation", .kind = YK__F_ACTIVATION, RNN(recurrent_activation), .words = "sigmoid" }

static const yk_config_field LSTM_FIELDS[] = {
  USUAL, GATE, { .key = "unit_forget_bias", .kind = YK__F_NOT, RNN(no_unit_forget_bias) }, { 0 } };
static const yk_config_field GRU_FIELDS[] = {
  USUAL, GATE, { .key = "reset_after", .kind = YK__F_NOT, RNN(reset_before) }, { 0 }
};
static const yk_config_field SIMPLE_FIELDS[] = { USUAL, { 0 } };

/* ---- weights --------------------------------------------------------------------------------------------------------- */

static void add_matrix(yk_layer *l, const char *name, const yk_desc *in, int64_t rows, int64_t gates, bool recurrent) {
  const yk_recurrent_config *a = l->config;
  yk__weight_add(l, &(yk_weight){ .name = name,
                                  .desc = { .dtype = in->dtype, .rank = 2, .dim = { rows, gates * a->units } },
                                  .initializer = recurrent ? a->recurrent_initializer : a->kernel_initializer,
                                  .penalty = recurrent ? a->recurrent_regularizer : a->kernel_regularizer,
                                  .constraint = recurrent ? a->recurrent_constraint : a->kernel_constraint });
}

static void build(yk_layer *l, const char *where, const yk_desc *in, int64_t gates) {
  const yk_recurrent_config *a = l->config;
  bool two = l->class == &yk__class_gru && !a->reset_before, forget = l->class == &yk__class_lstm && !a->no_unit_forget_bias;
  if (in->rank != 3 || in->dim[2] < 0) {
    yk__layer_fail(l, where, "its input has %u dimensions; expected [batch, time, channels], the last of which is known",
                   (unsigned)in->rank);
    return;
  }
  add_matrix(l, "kernel", in, in->dim[2], gates, false);
  add_matrix(l, "recurrent_kernel", in, a->units, gates, true);
  if (a->no_bias) return;
  yk_weight b = { .name = "bias", .desc = { .dtype = in->dtype, .rank = two ? 2 : 1 }, .initializer = a->bias_initializer,
                  .penalty = a->bias_regularizer, .constraint = a->bias_constraint };
  b.desc.dim[0] = two ? 2 : gates * a->units;
  if (two) b.desc.dim[1] = gates * a->units;
  if (forget) {
    b.ones_from = a->units;
    b.ones_to = 2 * a->units;
  }
  yk__weight_add(l, &b);
}

static void build_lstm(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  (void)nin;
  build(l, where, in[0], 4);
}

static void build_gru(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  (void)nin;
  build(l, where, in[0], 3);
}

static void build_simple_rnn(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  (void)nin;
  build(l, where, in[0], 1);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

static void settle(yk_layer *l) {
  const yk_recurrent_config *a = l->config;
  const char *gate = l->class != &yk__class_simple_rnn ? a->recurrent_activation : "sigmoid";
  if (strcmp(gate, "sigmoid") != 0 && strcmp(gate, "hard_sigmoid") != 0 && strcmp(gate, "hard_sigmoid_6") != 0)
    yk__layer_fail(l, l->where, "recurrent_activation is '%.40s'; expected sigmoid, hard_sigmoid or hard_sigmoid_6", gate);
}

static yk_rnn_attrs attrs_of(const yk_layer *l) {
  const yk_recurrent_config *a = l->config;
  const char *gate = a->recurrent_activation != NULL ? a->recurrent_activation : "sigmoid";
  yk_rnn_attrs x = { .go_backwards = a->go_backwards, .reset_before = a->reset_before };
  x.activation = strcmp(a->activation, "relu") == 0     ? YK_RNN_RELU
                 : strcmp(a->activation, "linear") == 0 ? YK_RNN_LINEAR
                                                        : YK_RNN_TANH;
  if (strcmp(gate, "hard_sigmoid") == 0) x.recurrent_activation = YK_RNN_HARD_SIGMOID;
  if (strcmp(gate, "hard_sigmoid_6") == 0) x.recurrent_activation = YK_RNN_HARD_SIGMOID_6;
  return x;
}

static const char *const STATE[3] = { NULL, "state_h", "state_c" };        /* variables of those that are kept */

/* Output 0, and the states behind it if they are wanted; all[] is y, then the states. */
static void finish(yk_layer_call *c, const yk_value *all, uint32_t nstates) {
  const yk_recurrent_config *a = c->layer->config;
  c->out[0] = a->return_sequences ? all[0] : all[1];
  for (uint32_t i = 1; a->stateful && i <= nstates; i++) yk__state_write(c, STATE[i], all[i]);
  if (a->return_sequences && c->in_mask != NULL) c->out_mask[0] = c->in_mask[0];
  if (!a->return_state) return;
  c->nout = 1 + nstates;
  for (uint32_t i = 0; i < nstates; i++) c->out[1 + i] = all[1 + i];
}

/* False after a sticky error: a number of initial states that is neither none nor all; what cannot be kept. */
static bool check(yk_layer_call *c, uint32_t nstates) {
  const yk_recurrent_config *a = c->layer->config;
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  if (c->nin != 1 && c->nin != 1 + nstates) {
    yk__layer_fail(c->layer, c->where, "called on %u inputs; expected 1, or %u with the first states", (unsigned)c->nin,
                   (unsigned)nstates + 1);
    return false;
  }
  if (c->g == c->layer->k->sketch && d != NULL) c->layer->batch = d->dim[0];
  if (!a->stateful || c->layer->batch > 0) return true;
  yk__layer_fail(c->layer, c->where, "it is stateful, so the batch of its input must be known");
  return false;
}

/* In training, with dropout: elements of the inputs are left out, the same ones in all steps. */
static yk_value input_of(yk_layer_call *c) {
  const yk_recurrent_config *a = c->layer->config;
  static const int64_t begin[3] = { 0 }, first_step[3] = { -1, 1, -1 };
  if (!c->training || a->dropout <= 0 || a->dropout >= 1) return c->in[0];
  return Y(mul, c->in[0], Y(dropout, Y(ones_like, Y(slice, c->in[0], begin, first_step)), a->dropout, 0));
}

static yk_value mask_of(const yk_layer_call *c) { return c->in_mask != NULL ? c->in_mask[0] : (yk_value){ 0 }; }

/* What state i of a call begins with: what is given, else what the batch before left, else nothing. */
static yk_value state(const yk_layer_call *c, uint32_t i) {
  const yk_recurrent_config *a = c->layer->config;
  if (c->nin > i) return c->in[i];
  return a->stateful ? yk__state_read(c, STATE[i], c->layer->batch, a->units) : (yk_value){ 0 };
}
static yk_value bias_of(const yk_layer_call *c) {
  return ((const yk_recurrent_config *)c->layer->config)->no_bias ? (yk_value){ 0 } : yk__weight(c, "bias");
}

/* As Keras does it, a rate of 1 drops nothing. */
static bool drops_states(const yk_layer_call *c) {
  const yk_recurrent_config *a = c->layer->config;
  return c->training && a->recurrent_dropout > 0 && a->recurrent_dropout < 1;
}

/* What the operation takes, made in this order. */
static yk_steps take(yk_layer_call *c, uint32_t gates) {
  yk_steps s = { .gates = gates };
  s.kernel = yk__weight(c, "kernel");
  s.recurrent = yk__weight(c, "recurrent_kernel");
  s.bias = bias_of(c);
  s.x = input_of(c);
  s.h = state(c, 1);
  if (gates == 4) s.c = state(c, 2);
  s.mask = mask_of(c);
  return s;
}

static void call_lstm(yk_layer_call *c) {
  yk_rnn_attrs x = attrs_of(c->layer);
  yk_value out[3];
  if (!check(c, 2)) return;
  yk_steps s = take(c, 4);
  if (drops_states(c)) yk__recurrent_steps(c, &s, out);
  else Y(lstm, s.x, s.kernel, s.recurrent, s.bias, s.h, s.c, s.mask, &x, out);
  finish(c, out, 2);
}

static void call_gru(yk_layer_call *c) {
  const yk_recurrent_config *a = c->layer->config;
  yk_rnn_attrs x = attrs_of(c->layer);
  yk_value out[3], both[2];
  if (!check(c, 1)) return;
  yk_steps s = take(c, 3);
  if (!a->reset_before && !a->no_bias) {
    Y(unstack, s.bias, 0, 2, both);
    s.bias = both[0];
    s.inner_bias = both[1];
  }
  if (drops_states(c)) yk__recurrent_steps(c, &s, out);
  else Y(gru, s.x, s.kernel, s.recurrent, s.bias, s.inner_bias, s.h, s.mask, &x, out);
  finish(c, out, 1);
}

static void call_simple_rnn(yk_layer_call *c) {
  yk_rnn_attrs x = attrs_of(c->layer);
  yk_value out[3];
  if (!check(c, 1)) return;
  yk_steps s = take(c, 1);
  if (drops_states(c)) yk__recurrent_steps(c, &s, out);
  else Y(simple_rnn, s.x, s.kernel, s.recurrent, s.bias, s.h, s.mask, &x, out);
  finish(c, out, 1);
}

#define CLASS(id, title, table, most)                                                                                  \
  const yk_layer_class yk__class_##id = { .name = title, .config_bytes = sizeof(yk_recurrent_config), .fields = table, \
                                          .min_in = 1, .max_in = (most), .settle = settle, .build = build_##id,        \
                                          .call = call_##id };                                                         \
  YK__CONSTRUCTOR(id, yk_recurrent_config)
CLASS(lstm, "LSTM", LSTM_FIELDS, 3)
CLASS(gru, "GRU", GRU_FIELDS, 2)
CLASS(simple_rnn, "SimpleRNN", SIMPLE_FIELDS, 2)

/* ---- Masking -------------------------------------------------------------------------------------------------------------- */

static const yk_config_field MASKING_FIELDS[] = {
  { .key = "mask_value", .kind = YK__F_REAL, YK__AT(yk_masking_config, mask_value) }, { 0 } };

/* What is passed over is zeroed too. */
static void call_masking(yk_layer_call *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  yk_reduce_attrs last = { .naxes = 1, .axis = { -1 } };
  if (d == NULL) return;
  yk_value value = Y(scalar, (yk_dtype)d->dtype, ((const yk_masking_config *)c->layer->config)->mask_value);
  yk_value counts = Y(cast, Y(not_equal, c->in[0], value), (yk_dtype)d->dtype), any = Y(reduce_max, counts, &last);
  c->out_mask[0] = Y(greater, any, Y(scalar, (yk_dtype)d->dtype, 0));
  c->out[0] = Y(mul, c->in[0], Y(expand_dims, any, -1));
}

const yk_layer_class yk__class_masking = { .name = "Masking", .config_bytes = sizeof(yk_masking_config), .fields = MASKING_FIELDS,
                                           .min_in = 1, .max_in = 1, .call = call_masking };
YK__CONSTRUCTOR(masking, yk_masking_config)
