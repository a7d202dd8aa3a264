/*
 * recurrent_steps.c - see recurrent_steps.h.
 *
 * The product of all inputs comes first, as with the operations; then each step is small products, one for each gate, since
 * each sees other states. A sequence is taken apart in pieces of pieces, so that the way back joins it again instead of adding
 * up whole ones.
 */
#include "keras/recurrent_steps.h"
#include "base/alloc.h"

enum { MOST_PIECES = 16, GATES = 4 };

typedef struct cell {
  yk_layer_call *c;
  const yk_recurrent_config *a;
  const yk_steps *s;
  int64_t steps;
  yk_value kernel[GATES], bias[GATES], dropped[GATES];    /* of h's products; [N, U] 0 or 1/(1-rate) */
  yk_value h, state, y;                                    /* as they are; y: what the last step that counts put out */
} cell;

static yk_value named(const cell *l, const char *activation, yk_value x) { return yk__activation(l->c->where, l->c->g, activation, x); }
static yk_value act(const cell *l, yk_value x) { return named(l, l->a->activation, x); }
static yk_value gate(const cell *l, yk_value x) { return named(l, l->a->recurrent_activation, x); }

/* x [N, n, ...] -> out[n], each [N, ...]. */
static void apart(const yk_layer_call *c, yk_value x, int64_t n, yk_value *out) {
  yk_value piece[MOST_PIECES];
  int64_t size[MOST_PIECES] = { 0 }, each = 1, pieces = 0;
  while (each * MOST_PIECES < n) each *= MOST_PIECES;
  for (int64_t at = 0; at < n; at += each) size[pieces++] = n - at < each ? n - at : each;
  Y(split, x, 1, (size_t)pieces, size, piece);
  for (int64_t i = 0; i < pieces && yk_graph_status(c->g) == YK_OK; i++) {
    if (each > 1) apart(c, piece[i], size[i], out + i * each);
    else out[i] = Y(squeeze, piece[i], &(yk_axes_attrs){ .naxes = 1, .axis = { 1 } });
  }
}

/* h as gate i sees it, times its part of the kernel. */
static yk_value product(const cell *l, uint32_t i, yk_value h) {
  const yk_layer_call *c = l->c;
  yk_value p = Y(matmul, Y(mul, h, l->dropped[i]), l->kernel[i], NULL);
  return l->bias[i].id != 0 ? Y(bias_add, p, l->bias[i]) : p;
}

static void lstm(const cell *l, const yk_value z[GATES], yk_value *h, yk_value *state) {
  const yk_layer_call *c = l->c;
  yk_value sum[GATES];
  for (uint32_t i = 0; i < GATES; i++) sum[i] = Y(add, z[i], product(l, i, *h));
  *state = Y(add, Y(mul, gate(l, sum[1]), *state), Y(mul, gate(l, sum[0]), act(l, sum[2])));
  *h = Y(mul, gate(l, sum[3]), act(l, *state));
}

static void gru(const cell *l, const yk_value z[GATES], yk_value *h) {
  const yk_layer_call *c = l->c;
  yk_value keep = gate(l, Y(add, z[0], product(l, 0, *h))), reset = gate(l, Y(add, z[1], product(l, 1, *h)));
  yk_value inner = l->a->reset_before ? product(l, 2, Y(mul, reset, *h)) : Y(mul, reset, product(l, 2, *h));
  yk_value fresh = act(l, Y(add, z[2], inner));
  *h = Y(add, fresh, Y(mul, keep, Y(sub, *h, fresh)));
}

/* A step on z [N, gates * U]; on [N, 1] bool or {0}: where it counts. */
static void step(cell *l, yk_value z, yk_value on) {
  const yk_layer_call *c = l->c;
  yk_value part[GATES], h = l->h, state = l->state;
  Y(split, z, 1, l->s->gates, NULL, part);
  if (l->s->gates == 4) lstm(l, part, &h, &state);
  else if (l->s->gates == 3) gru(l, part, &h);
  else h = act(l, Y(add, part[0], product(l, 0, h)));
  if (on.id != 0) {
    l->y = Y(where, on, h, l->y);
    l->h = Y(where, on, h, l->h);
    l->state = l->state.id != 0 ? Y(where, on, state, l->state) : l->state;
  } else {
    l->y = l->h = h;
    l->state = state;
  }
}

/* Kernels, biases, masks and first states; zeros where none are given. */
static void begin(cell *l, yk_value first) {
  const yk_layer_call *c = l->c;
  const yk_steps *s = l->s;
  yk_value part[GATES];
  Y(split, s->recurrent, 1, s->gates, NULL, l->kernel);
  if (s->inner_bias.id != 0) Y(split, s->inner_bias, 0, s->gates, NULL, l->bias);
  Y(split, first, 1, s->gates, NULL, part);
  for (uint32_t i = 0; i < s->gates; i++) l->dropped[i] = Y(dropout, Y(ones_like, part[0]), l->a->recurrent_dropout, 0);
  yk_value zeros = Y(zeros_like, part[0]);
  l->h = s->h.id != 0 ? s->h : zeros;
  l->y = zeros;
  if (s->gates == 4) l->state = s->c.id != 0 ? s->c : zeros;
}

static void run(cell *l, yk_value *z, yk_value *on, yk_value *y, yk_value out[3]) {
  const yk_layer_call *c = l->c;
  const yk_steps *s = l->s;
  yk_value all = Y(matmul, s->x, s->kernel, NULL);
  apart(c, s->bias.id != 0 ? Y(bias_add, all, s->bias) : all, l->steps, z);
  if (s->mask.id != 0) apart(c, Y(expand_dims, s->mask, 2), l->steps, on);
  if (yk_graph_status(c->g) != YK_OK) return;
  begin(l, z[0]);
  for (int64_t k = 0; k < l->steps && yk_graph_status(c->g) == YK_OK; k++) {
    int64_t at = l->a->go_backwards ? l->steps - 1 - k : k;
    step(l, z[at], on[at]);
    y[k] = l->y;
  }
  if (l->a->return_sequences) out[0] = Y(stack, (size_t)l->steps, y, 1);
  out[1] = l->h;
  out[2] = l->state;
}

void yk__recurrent_steps(yk_layer_call *c, const yk_steps *s, yk_value out[3]) {
  cell l = { .c = c, .a = c->layer->config, .s = s };
  const yk_desc *d = yk_value_desc(c->g, s->x);
  for (int i = 0; i < 3; i++) out[i] = (yk_value){ 0 };
  if (d == NULL) return;
  l.steps = d->dim[1];
  if (l.steps < 1) {
    yk_graph_fail_at(c->where, c->g, YK_EINVAL, "%s '%s': with recurrent_dropout it needs an input whose number of steps is known",
                     c->layer->class->name, c->layer->name);
    return;
  }
  yk_value *room = yk__calloc((size_t)l.steps * 3, sizeof *room);
  if (room != NULL) run(&l, room, room + l.steps, room + 2 * l.steps, out);
  else yk_graph_fail_at(c->where, c->g, YK_ENOMEM, "%s '%s': no memory for %lld steps", c->layer->class->name, c->layer->name, (long long)l.steps);
  yk__free(room);
}
