/*
 * step.c - one step of a compiled network: its parts on their devices, their sums put together, and, in training, the update.
 *
 * A part's loss is the sum of its numbers over the count of the whole batch, so gradients added over the parts are those of one device
 * whatever the shares. What a step gives is one short vector: for each term a sum and what it is to be divided by, and the penalties.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/slots.h"
#include "keras/carried.h"
#include "keras/compile.h"
#include "keras/engine.h"
#include "keras/penalties.h"
#include "keras/state.h"
#include "tensor/desc.h"

typedef struct build {
  yk_network *n;
  yk_compiled *c;
  yk_graph *g;
  const char *where;
  bool training, weighted;
  yk_fit_step *step;
  yk_value in[YK__MAX_PORTS], target[YK__MAX_PORTS], weight[YK__MAX_PORTS];    /* of the whole batch; {0}: not wanted */
  yk_value rows;                   /* of the whole batch, f32 */
  yk_value rate;
  yk_value *sums;                  /* [parts] */
  yk_value *column;                /* [2 * terms + 1] of the part being built */
  yk_variable **variable; size_t nvars;   /* what is trained, masters */
  yk_gradient **grads;             /* [parts][nvars] */
} build;
#define B(builder, ...) yk_##builder##_at(b->where, b->g, __VA_ARGS__)

/* ---- feeds --------------------------------------------------------------------------------------------------------------- */

static yk_value feed(build *b, const char *name, const yk_desc *d) {
  return b->step->feed[b->step->nfeeds++] = B(placeholder, name, (yk_dtype)d->dtype, yk__desc_shape(d));
}

/* A weight for each number of a term: the target's shape, without the classes of a dense one. */
static yk_desc weight_desc(const yk_target *y) {
  yk_desc d = y->desc;
  d.dtype = YK_F32;
  if (!y->sparse) d.rank--;
  return d;
}

static void make_feeds(build *b) {
  const yk_network *n = b->n;
  for (uint32_t i = 0; i < n->nin; i++) b->step->feed[b->step->nfeeds++] = b->in[i] = yk__input_placeholder(n, i);
  for (uint32_t i = 0; i < n->nout; i++)
    if (b->c->target[i].wanted) b->target[i] = feed(b, "target", &b->c->target[i].desc);
  for (uint32_t i = 0; i < n->nout && b->weighted; i++) {
    yk_desc d = weight_desc(&b->c->target[i]);
    if (b->c->target[i].wanted) b->weight[i] = feed(b, "sample_weight", &d);
  }
  b->rows = B(cast, B(dim, b->in[0], 0), YK_F32);
}

/* ---- terms ------------------------------------------------------------------------------------------------------------------- */

/* How many numbers a row of `value` [N, ...] has, f32. */
static yk_value row_size(const build *b, yk_value value) {
  const yk_desc *d = yk_value_desc(b->g, value);
  double known = 1;
  yk_value size = { 0 };
  for (uint32_t i = 1; d != NULL && i < d->rank; i++) {
    if (d->dim[i] >= 0) {
      known *= (double)d->dim[i];
      continue;
    }
    yk_value dim = B(cast, B(dim, value, (int)i), YK_F32);
    size = size.id != 0 ? B(mul, size, dim) : dim;
  }
  return size.id != 0 ? B(mul, size, B(scalar, YK_F32, known)) : B(scalar, YK_F32, known);
}

static yk_measure_call measure(const build *b, const yk_term *t, yk_value target, yk_value prediction) {
  yk_measure_call m = { .where = b->where, .g = b->g, .target = target, .prediction = prediction, .label_smoothing = t->label_smoothing,
                        .delta = t->delta, .threshold = t->threshold, .k = t->k, .from_logits = t->from_logits };
  if (t->measure != NULL) t->measure->build(&m);
  else m.value = t->fn(b->g, target, prediction, t->arg);
  return m;
}

static yk_value total(const build *b, yk_value x, yk_value weight) {
  return B(reduce_sum, weight.id != 0 ? B(mul, x, weight) : x, NULL);
}

/* The weights of a term's numbers: of its examples, and 0 where a mask passes over a step of time. {0}: all are 1. */
static yk_value weights_of(const build *b, const yk_term *t, yk_value weight, yk_value mask, yk_value value) {
  const yk_desc *v = yk_value_desc(b->g, value), *m = mask.id != 0 ? yk_value_desc(b->g, mask) : NULL;
  yk_value w = t->weighted ? weight : (yk_value){ 0 };
  if (m == NULL || v == NULL || m->rank != v->rank) return w;
  mask = B(cast, mask, YK_F32);
  return w.id != 0 ? B(mul, w, mask) : mask;
}

/* Term i of a part; returns what a loss adds to the part's loss, {0} for a metric. */
static yk_value build_term(build *b, uint32_t i, yk_value target, yk_value prediction, yk_value weight, yk_value mask) {
  const yk_term *t = &b->c->term[i];
  yk_measure_call m = measure(b, t, target, prediction);
  if (yk_graph_status(b->g) != YK_OK) return (yk_value){ 0 };
  yk_value w = weights_of(b, t, weight, mask, m.value), sum = total(b, m.value, w), of;
  bool loss = i < b->c->nlosses;
  if (m.of.id != 0) of = total(b, m.of, w);
  else if (w.id != 0 && !loss) of = B(reduce_sum, w, NULL);
  else of = B(cast, B(size, m.value), YK_F32);
  b->column[2 * i] = sum;
  b->column[2 * i + 1] = of;
  if (!loss) return (yk_value){ 0 };
  yk_value share = B(div, B(scalar, YK_F32, t->weight), B(mul, b->rows, row_size(b, m.value)));
  return B(mul, sum, share);
}

/* ---- parts --------------------------------------------------------------------------------------------------------------------- */

static void run_network(const build *b, uint32_t part, yk_value *out, yk_value *mask) {
  yk_value share[YK__MAX_PORTS];
  for (uint32_t k = 0; k < b->n->nin; k++) share[k] = yk__part_rows(b->n, part, b->in[k]);
  yk_precision_push_at(b->where, b->g, b->training ? b->c->precision : YK_NONE);
  yk__network_build(b->n, b->g, b->where, b->training, share, NULL, out, mask);
  yk_precision_pop_at(b->where, b->g);
  for (uint32_t k = 0; k < b->n->nout && b->c->precision != YK_NONE && b->training; k++)
    if (b->c->target[k].wanted) out[k] = B(cast, out[k], YK_F32);
}

/* The part's gradients, as pairs with the variables' masters. */
static void gradients(build *b, uint32_t part, yk_value loss) {
  const yk_network *n = b->n;
  yk_variable **own = yk__calloc(b->nvars + 1, sizeof(yk_variable *));
  b->grads[part] = yk__calloc(b->nvars + 1, sizeof **b->grads);
  if (own == NULL || b->grads[part] == NULL) {
    yk_graph_fail_at(b->where, b->g, YK_ENOMEM, "no memory for the gradients of network '%s'", n->self.name);
  } else {
    for (size_t v = 0; v < b->nvars; v++)
      own[v] = part > 0 && n->self.k->spread.ncopies > 1 ? yk__variable_copy(b->where, b->g, b->variable[v], part, n->device[part]) : b->variable[v];
    yk_compute_gradients_at(b->where, b->g, loss, b->nvars, own, b->grads[part], b->nvars);
    for (size_t v = 0; v < b->nvars; v++) b->grads[part][v].variable = b->variable[v];
  }
  yk__free(own);
}

/* What is trained is known once the first part is built. */
static bool find_variables(build *b) {
  b->nvars = yk_network_variables(b->n, NULL, 0);
  b->variable = yk__calloc(b->nvars + 1, sizeof(yk_variable *));
  if (b->variable == NULL) return yk_graph_fail_at(b->where, b->g, YK_ENOMEM, "no memory for a list of variables"), false;
  yk_network_variables(b->n, b->variable, b->nvars);
  if (b->nvars == 0) yk_graph_fail_at(b->where, b->g, YK_EINVAL, "network '%s' has no weights that can be trained", b->n->self.name);
  return b->nvars > 0;
}

static void build_part(build *b, uint32_t part) {
  const yk_compiled *c = b->c;
  yk_value out[YK__MAX_PORTS], mask[YK__MAX_PORTS], loss = { 0 };
  run_network(b, part, out, mask);
  for (uint32_t i = 0; i < c->nterms && yk_graph_status(b->g) == YK_OK; i++) {
    uint32_t k = c->term[i].output;
    yk_value weight = b->weight[k].id != 0 ? yk__part_rows(b->n, part, b->weight[k]) : (yk_value){ 0 };
    yk_value own = build_term(b, i, yk__part_rows(b->n, part, b->target[k]), out[k], weight, mask[k]);
    if (own.id != 0) loss = loss.id != 0 ? B(add, loss, own) : own;
  }
  yk_value penalty = yk__penalties(b->n, b->g, b->where, part, b->rows);
  b->column[2 * c->nterms] = penalty.id != 0 ? penalty : B(scalar, YK_F32, 0);
  if (penalty.id != 0) loss = B(add, loss, penalty);
  b->sums[part] = B(stack, 2 * c->nterms + 1, b->column, 0);
  if (b->training && yk_graph_status(b->g) == YK_OK && (part > 0 || find_variables(b))) gradients(b, part, loss);
}

/* ---- update ----------------------------------------------------------------------------------------------------------------------- */

/* The rate, and how often it was used; the same for all steps of a compilation. */
static void find_rate(build *b) {
  yk_compiled *c = b->c;
  char name[256];
  if (c->iterations == NULL) {
    snprintf(name, sizeof name, "%s/iterations", c->scope);
    c->iterations = yk__root_variable(b->where, b->g, name, YK_I64, YK_SCALAR, YK_ZEROS, NULL);
  }
  if (c->optimizer.learning_rate.id != 0) {
    b->rate = c->optimizer.learning_rate;
    return;
  }
  if (c->rate_variable == NULL) {
    snprintf(name, sizeof name, "%s/learning_rate", c->scope);
    c->rate_variable = yk__root_variable(b->where, b->g, name, YK_F32, YK_SCALAR, YK_CONSTANT(c->rate), NULL);
  }
  if (c->rate_variable == NULL || c->iterations == NULL) return;
  b->rate = yk_read(c->rate_variable);
  if (c->decay > 0) {
    yk_value times = B(mul, B(cast, yk_read(c->iterations), YK_F32), B(scalar, YK_F32, c->decay));
    b->rate = B(div, b->rate, B(add, times, B(scalar, YK_F32, 1)));
  }
}

static void clip(const build *b, size_t npairs, yk_gradient *sum) {
  const yk_compiled *c = b->c;
  if (c->clip_norm > 0) yk_clip_by_norm_at(b->where, b->g, c->clip_norm, npairs, sum);
  if (c->clip_value > 0) yk_clip_by_value_at(b->where, b->g, -c->clip_value, c->clip_value, npairs, sum);
  if (c->global_clip_norm > 0) yk__spread_clip(&b->n->self.k->spread, c->global_clip_norm, b->nvars, sum);
}

static yk_value update(build *b) {
  const yk_spread *spread = &b->n->self.k->spread;
  size_t npairs = spread->ncopies * b->nvars;
  yk_optimizer o = b->c->optimizer;
  yk_value op[3];
  yk_gradient *sum = yk__calloc(npairs + 1, sizeof *sum);
  if (sum == NULL) return yk_graph_fail_at(b->where, b->g, YK_ENOMEM, "no memory for the gradients of %zu variables", b->nvars);
  yk__spread_sum(spread, b->n->ndevice, (const yk_gradient *const *)b->grads, b->nvars, sum);
  clip(b, npairs, sum);
  o.learning_rate = b->rate;
  op[0] = yk_apply_gradients_at(b->where, b->g, &o, npairs, sum, b->c->iterations);
  op[1] = yk_update_ops_at(b->where, b->g);
  op[2] = yk__constrain(b->n, b->g, b->where, op[0]);
  yk__free(sum);
  return B(group, op[2].id != 0 ? 3 : 2, op);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------- */

static void build_parts(build *b) {
  yk_keras *k = b->n->self.k;
  b->g->sync_norm = b->training && b->n->ndevice > 1;
  if (b->training) b->g->step = ++k->steps;
  for (uint32_t i = 0; i < b->n->ndevice && yk_graph_status(b->g) == YK_OK; i++) {
    b->g->replica = i;
    yk__part_open(b->n, i);
    build_part(b, i);
    yk__part_close(b->n);
  }
  b->g->sync_norm = false;
  b->g->replica = 0;
}

static yk_value build_step(build *b) {
  yk_value train = { 0 };
  yk_name_scope_push_at(b->where, b->g, b->n->self.name);
  yk_name_scope_push_at(b->where, b->g, b->training ? "train" : "test");
  YK_DEVICE(b->g, YK__HOME) {
    make_feeds(b);
    if (b->training) find_rate(b);
    build_parts(b);
    if (yk_graph_status(b->g) == YK_OK) {
      b->step->sums = b->n->ndevice > 1 ? B(add_n, b->n->ndevice, b->sums) : B(identity, b->sums[0]);
      if (b->training) train = update(b);
      yk_value carry = yk__carry_on(b->n->self.k, b->where);
      if (carry.id != 0) train = train.id != 0 ? B(group, 2, (const yk_value[]){ train, carry }) : carry;
    }
    b->g->step = 0;
  }
  yk_name_scope_pop_at(b->where, b->g);
  yk_name_scope_pop_at(b->where, b->g);
  return train;
}

static yk_code make(build *b) {
  yk_keras *k = b->n->self.k;
  b->sums = yk__calloc(b->n->ndevice, sizeof *b->sums);
  b->column = yk__calloc(2 * b->c->nterms + 1, sizeof *b->column);
  b->grads = yk__calloc(b->n->ndevice, sizeof *b->grads);
  if (b->sums == NULL || b->column == NULL || b->grads == NULL) return YK_ENOMEM;
  YK_TRY(yk__keras_start(k, b->n));
  b->g = k->graph;
  yk_value train = build_step(b);
  YK_TRY(yk__keras_ready(k));
  if (b->training) YK_TRY(yk__state_settle(b->n));
  return yk_step_prepare(k->session, b->step->nfeeds, b->step->feed, 1, &b->step->sums, train.id != 0, &train, &b->step->step);
}

void yk__steps_free(yk_compiled *c) {
  for (int i = 0; i < 4; i++) {
    yk_fit_step **s = &c->step[i / 2][i % 2];
    if (*s != NULL) yk_step_free((*s)->step);
    yk__free(*s);
    *s = NULL;
  }
  c->rate_variable = c->iterations = NULL;
}

bool yk__has_steps(const yk_compiled *c) {
  for (int i = 0; i < 4; i++)
    if (c->step[i / 2][i % 2] != NULL) return true;
  return false;
}

yk_code yk__fit_step(yk_network *n, bool training, bool weighted, yk_fit_step **out) {
  yk_compiled *c = n->compiled;
  if (c == NULL) return YK_FAIL(EINVAL, "network '%s' is not compiled: yk_network_compile() gives it losses and an optimizer", n->self.name);
  yk_fit_step **slot = &c->step[training][weighted];
  if (*slot == NULL) {
    yk_fit_step *s = yk__calloc(1, sizeof *s);
    build b = { .n = n, .c = c, .where = n->self.where, .training = training, .weighted = weighted, .step = s };
    yk_code rc = s == NULL ? YK_ENOMEM : make(&b);
    for (uint32_t i = 0; b.grads != NULL && i < n->ndevice; i++) yk__free(b.grads[i]);
    yk__free(b.grads);
    yk__free(b.sums);
    yk__free(b.column);
    yk__free(b.variable);
    if (rc != YK_OK) yk__free(s);
    YK_TRY(rc);
    *slot = s;
  }
  *out = *slot;
  return YK_OK;
}
