/*
 * wrappers.c - layers around layers: TimeDistributed, one layer for each step of a sequence, and Bidirectional, a recurrent one both ways.
 *
 * What is inside has names, weights and scopes of its own; the wrapper adds nothing but what it does with inputs and outputs.
 */
#include <stdio.h>
#include <string.h>
#include "keras/keras.h"

/* Build what is inside for an input of that description. */
static void build_inner(yk_layer *l, const char *where, const yk_desc *in) {
  if (!l->built && l->class->build != NULL) l->class->build(l, where, 1, &in);
  l->built = true;
}

/* A call of a layer inside, in the same graph. */
static void call_inner(const yk_layer_call *c, yk_layer *l, uint32_t nin, const yk_value *in, const yk_value *mask, yk_layer_call *out) {
  *out = (yk_layer_call){ .layer = l, .g = c->g, .where = c->where, .training = c->training, .nin = nin, .in = in, .in_mask = mask };
  yk__layer_call(out);
}

static bool wraps(yk_layer *l, yk_layer *inner) {
  if (inner == NULL || inner->k != l->k || inner->ninner > 0 || inner->class == &yk__class_input) {
    yk__layer_fail(l, l->where, "it wraps no layer of this yk_keras, or one that wraps another");
    return false;
  }
  l->inner[l->ninner++] = inner;
  return true;
}

/* ---- TimeDistributed ------------------------------------------------------------------------------------------------------- */

static const yk_config_field TIME_FIELDS[] = { { .key = "layer", .kind = YK__F_LAYER, YK__AT(yk_wrapper_config, layer) }, { 0 } };

static void settle_time(yk_layer *l) { wraps(l, ((const yk_wrapper_config *)l->config)->layer); }

/* One step of a sequence [N, T, ...]. */
static yk_desc step_of(const yk_desc *d) {
  yk_desc one = *d;
  one.rank--;
  one.dim[0] = -1;
  for (uint32_t i = 1; i < one.rank; i++) one.dim[i] = d->dim[i + 1];
  return one;
}

static void build_time(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  (void)nin;
  if (in[0]->rank < 3) {
    yk__layer_fail(l, where, "its input has %u dimensions; expected a sequence [N, T, ...]", (unsigned)in[0]->rank);
    return;
  }
  yk_desc one = step_of(in[0]);
  build_inner(l->inner[0], where, &one);
}

static void call_time(yk_layer_call *c) {
  const yk_desc *d = yk_value_desc(c->g, c->in[0]);
  yk_layer_call one;
  if (d == NULL) return;
  yk_desc step = step_of(d);
  yk_shape flat = { .rank = step.rank, .dim = { -1 } }, back = { 0 };
  for (uint32_t i = 1; i < step.rank; i++) flat.dim[i] = step.dim[i];
  for (uint32_t i = 1; i < d->rank; i++)
    if (d->dim[i] < 0) {
      yk__layer_fail(c->layer, c->where, "dimension %u of its input must be known", (unsigned)i);
      return;
    }
  yk_value steps = Y(reshape, c->in[0], flat);
  call_inner(c, c->layer->inner[0], 1, &steps, NULL, &one);
  const yk_desc *y = yk_value_desc(c->g, one.out[0]);
  if (y == NULL) return;
  back = (yk_shape){ .rank = y->rank + 1u, .dim = { -1, d->dim[1] } };
  for (uint32_t i = 1; i < y->rank; i++) back.dim[i + 1] = y->dim[i];
  if (back.rank <= YK_MAX_RANK) c->out[0] = Y(reshape, one.out[0], back);
  else yk__layer_fail(c->layer, c->where, "more than %d dimensions", YK_MAX_RANK);
}

const yk_layer_class yk__class_time_distributed = { .name = "TimeDistributed", .config_bytes = sizeof(yk_wrapper_config), .fields = TIME_FIELDS,
                                                    .min_in = 1, .max_in = 1, .keeps_mask = true, .settle = settle_time, .build = build_time,
                                                    .call = call_time };
YK__CONSTRUCTOR(time_distributed, yk_wrapper_config)

/* ---- Bidirectional ------------------------------------------------------------------------------------------------------------ */

#define BOTH(member) YK__AT(yk_bidirectional_config, member)
static const yk_config_field BOTH_FIELDS[] = { { .key = "layer", .kind = YK__F_LAYER, BOTH(layer) },
                                               { .key = "backward_layer", .kind = YK__F_LAYER, BOTH(backward_layer) },
                                               { .key = "merge_mode", .kind = YK__F_WORD, BOTH(merge_mode), .words = "concat|sum|mul|ave|none" },
                                               { 0 } };

static bool is_recurrent(const yk_layer *l) {
  return l->class == &yk__class_lstm || l->class == &yk__class_gru || l->class == &yk__class_simple_rnn;
}

/* The same layer the other way round. */
static yk_layer *reversed(const yk_layer *l) {
  yk_recurrent_config c = *(const yk_recurrent_config *)l->config;
  char name[256];
  snprintf(name, sizeof name, "backward_%.200s", l->name);
  c.name = name;
  c.go_backwards = !c.go_backwards;
  return yk__layer_new(l->where, l->k, l->class, &c);
}

static void settle_both(yk_layer *l) {
  yk_bidirectional_config *a = l->config;
  if (!wraps(l, a->layer)) return;
  if (!is_recurrent(a->layer)) {
    yk__layer_fail(l, l->where, "it wraps a %s; expected LSTM, GRU or SimpleRNN", a->layer->class->name);
    return;
  }
  yk_layer *back = a->backward_layer != NULL ? a->backward_layer : reversed(a->layer);
  if (back == NULL || !wraps(l, back)) return;
  const yk_recurrent_config *x = a->layer->config, *y = back->config;
  if (!is_recurrent(back) || x->go_backwards == y->go_backwards || x->return_sequences != y->return_sequences ||
      x->return_state != y->return_state)
    yk__layer_fail(l, l->where, "its two layers have to go opposite ways and return alike");
}

static void build_both(yk_layer *l, const char *where, uint32_t nin, const yk_desc *const *in) {
  (void)nin;
  for (uint32_t i = 0; i < l->ninner; i++) build_inner(l->inner[i], where, in[0]);
}

static void merge(yk_layer_call *c, const char *mode, yk_value a, yk_value b) {
  const yk_desc *d = yk_value_desc(c->g, a);
  if (strcmp(mode, "none") == 0) {
    c->out[0] = a;
    c->out[1] = b;
    c->nout = 2;
  } else if (strcmp(mode, "concat") == 0) {
    c->out[0] = Y(concat, 2, (const yk_value[]){ a, b }, -1);
  } else if (strcmp(mode, "mul") == 0) {
    c->out[0] = Y(mul, a, b);
  } else {
    c->out[0] = Y(add, a, b);
    if (strcmp(mode, "ave") == 0 && d != NULL) c->out[0] = Y(mul, c->out[0], Y(scalar, (yk_dtype)d->dtype, 0.5));
  }
}

/* First states, if there are any: half of them for each way. */
static void call_both(yk_layer_call *c) {
  const yk_bidirectional_config *a = c->layer->config;
  yk_layer_call way[2];
  yk_value in[2][YK__MAX_PORTS];
  uint32_t states = (c->nin - 1) / 2;
  for (uint32_t i = 0; i < 2; i++) {
    in[i][0] = c->in[0];
    for (uint32_t k = 0; k < states; k++) in[i][1 + k] = c->in[1 + i * states + k];
    yk_value mask[YK__MAX_PORTS] = { c->in_mask != NULL ? c->in_mask[0] : (yk_value){ 0 } };
    call_inner(c, c->layer->inner[i], 1 + states, in[i], mask, &way[i]);
  }
  const yk_recurrent_config *x = c->layer->inner[0]->config;
  yk_value back = x->return_sequences ? Y(reverse, way[1].out[0], 1) : way[1].out[0];
  merge(c, a->merge_mode, way[0].out[0], back);
  if (x->return_sequences && c->in_mask != NULL)
    for (uint32_t i = 0; i < c->nout; i++) c->out_mask[i] = c->in_mask[0];
  for (uint32_t i = 0; x->return_state && i < 2; i++)
    for (uint32_t k = 1; k < way[i].nout; k++) c->out[c->nout++] = way[i].out[k];
}

const yk_layer_class yk__class_bidirectional = { .name = "Bidirectional", .config_bytes = sizeof(yk_bidirectional_config), .fields = BOTH_FIELDS,
                                                 .min_in = 1, .max_in = 5, .settle = settle_both, .build = build_both, .call = call_both };
YK__CONSTRUCTOR(bidirectional, yk_bidirectional_config)
