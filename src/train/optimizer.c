/*
 * optimizer.c - one update node a variable, on the variable's home.
 *
 * The planner joins the updates of one device into one kernel, so nothing is
 * gained by joining them here, and a variable may live anywhere. What an
 * optimizer is made of is one line of the table.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "train/train.h"

enum { MOST_SLOTS = 3, MOST_NAME = 256 };

typedef struct rule {
  const char *scope;             /* name scope of its nodes */
  const yk_op *op, *rows;        /* rows NULL: sparse gradients are made dense */
  const char *slot[MOST_SLOTS];  /* in the order of the operation's inputs */
  bool powers;                   /* takes beta1^t and beta2^t */
} rule;

static const rule sgd = { "GradientDescent", &yk__op_sgd_update, &yk__op_sparse_sgd_update, { NULL }, false };
static const rule momentum = { "Momentum", &yk__op_momentum_update, &yk__op_sparse_momentum_update, { "Momentum" }, false };
static const rule keras_sgd = { "SGD", &yk__op_momentum_update, NULL, { "SGD" }, false };
static const rule adam = { "Adam", &yk__op_adam_update, NULL, { "Adam", "Adam_1" }, true };
static const rule adamw = { "AdamW", &yk__op_adam_update, NULL, { "AdamW", "AdamW_1" }, true };
static const rule lamb = { "Lamb", &yk__op_lamb_update, NULL, { "Lamb", "Lamb_1" }, true };
static const rule rmsprop = { "RMSProp", &yk__op_rmsprop_update, &yk__op_sparse_rmsprop_update, { "RMSProp", "RMSProp_1" }, false };
static const rule centered = { "RMSProp", &yk__op_rmsprop_centered_update, &yk__op_sparse_rmsprop_centered_update,
                               { "RMSProp", "RMSProp_1", "RMSProp_2" }, false };
static const rule keras_rmsprop = { "RMSprop", &yk__op_rmsprop_update, NULL, { "RMSprop", "RMSprop_1" }, false };
static const rule adagrad = { "Adagrad", &yk__op_adagrad_update, &yk__op_sparse_adagrad_update, { "Adagrad" }, false };
static const rule keras_adagrad = { "Adagrad", &yk__op_adagrad_update, NULL, { "Adagrad" }, false };
static const rule adadelta = { "Adadelta", &yk__op_adadelta_update, &yk__op_sparse_adadelta_update, { "Adadelta", "Adadelta_1" }, false };
static const rule keras_adadelta = { "Adadelta", &yk__op_adadelta_update, NULL, { "Adadelta", "Adadelta_1" }, false };
static const rule ftrl = { "Ftrl", &yk__op_ftrl_update, &yk__op_sparse_ftrl_update, { "Ftrl", "Ftrl_1" }, false };

static const rule *rule_of(const yk_optimizer *o) {
  switch (o->kind) {
    case YK_OPT_SGD: return &sgd;
    case YK_OPT_MOMENTUM: return o->keras ? &keras_sgd : &momentum;
    case YK_OPT_ADAM: return &adam;
    case YK_OPT_ADAMW: return &adamw;
    case YK_OPT_LAMB: return &lamb;
    case YK_OPT_RMSPROP: return o->keras ? &keras_rmsprop : o->centered ? &centered : &rmsprop;
    case YK_OPT_ADAGRAD: return o->keras ? &keras_adagrad : &adagrad;
    case YK_OPT_ADADELTA: return o->keras ? &keras_adadelta : &adadelta;
    case YK_OPT_FTRL: return &ftrl;
    default: return NULL;
  }
}

/* ---- numbers that make sense --------------------------------------------------------------------------------------- */

#define BIT(kind) (1u << YK_OPT_##kind)
#define POWERS (BIT(ADAM) | BIT(ADAMW) | BIT(LAMB))
static const struct { const char *name; size_t offset; double lo, below; uint32_t kinds; } numbers[] = {
#define NUMBER(field, lo, below, kinds) { #field, offsetof(yk_optimizer, field), lo, below, kinds }
  NUMBER(rate, 0, HUGE_VAL, UINT32_MAX), NUMBER(momentum, 0, HUGE_VAL, BIT(MOMENTUM) | BIT(RMSPROP)),
  NUMBER(beta1, 0, 1, POWERS), NUMBER(beta2, 0, 1, POWERS), NUMBER(rho, 0, 1, BIT(RMSPROP) | BIT(ADADELTA)),
  NUMBER(epsilon, 1e-45, HUGE_VAL, POWERS | BIT(RMSPROP) | BIT(ADADELTA)),
  NUMBER(weight_decay, 0, HUGE_VAL, BIT(ADAMW) | BIT(LAMB)),
  NUMBER(initial_accumulator, 0, HUGE_VAL, BIT(RMSPROP) | BIT(ADAGRAD) | BIT(FTRL)), NUMBER(lr_power, -HUGE_VAL, 1e-300, BIT(FTRL)),
  NUMBER(l1, 0, HUGE_VAL, BIT(FTRL)), NUMBER(l2, 0, HUGE_VAL, BIT(FTRL)), NUMBER(l2_shrinkage, 0, HUGE_VAL, BIT(FTRL)),
#undef NUMBER
};

static yk_code check(const yk_optimizer *o, const rule *r) {
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    double x;
    if ((numbers[i].kinds >> o->kind & 1u) == 0) continue;
    memcpy(&x, (const char *)o + numbers[i].offset, sizeof x);
    if (x >= numbers[i].lo && x < numbers[i].below && isfinite(x)) continue;
    if (numbers[i].below == 1) return YK_FAIL(EINVAL, "%s: %s is %g, expected 0 or more and less than 1", r->scope, numbers[i].name, x);
    if (numbers[i].lo < 0) return YK_FAIL(EINVAL, "%s: %s is %g, expected 0 or less", r->scope, numbers[i].name, x);
    return YK_FAIL(EINVAL, "%s: %s is %g, expected a number %s 0", r->scope, numbers[i].name, x, numbers[i].lo > 0 ? "above" : "not below");
  }
  if (o->scope != NULL && strlen(o->scope) >= MOST_NAME - 64) return YK_FAIL(EINVAL, "%s: a scope of %zu characters", r->scope, strlen(o->scope));
  if (o->kind == YK_OPT_RMSPROP && o->keras && o->centered) return YK_FAIL(EINVAL, "RMSProp: the centered form is TensorFlow's, not Keras's");
  return YK_OK;
}

/* Ftrl divides by the rate: one of 0 makes every weight NaN, in TensorFlow too. What is known before the first step is refused. */
static bool divides_by_0(const yk_graph *g, const yk_optimizer *o) {
  size_t n = yk_get_collection(g, YK__RATES_FROM_0, NULL, NULL, 0);
  if (o->kind != YK_OPT_FTRL) return false;
  if (o->learning_rate.id == 0) return !(o->rate > 0);
  yk_value *v = n > 0 ? yk__calloc(n, sizeof *v) : NULL;
  bool found = false;
  if (v != NULL) yk_get_collection(g, YK__RATES_FROM_0, NULL, v, n);
  for (size_t i = 0; v != NULL && i < n; i++) found |= v[i].id == o->learning_rate.id;
  yk__free(v);
  return found;
}

/* The learning rate; NULL rule after a sticky error. */
static const rule *open_rule(const char *where, yk_graph *g, const yk_optimizer *o) {
  const rule *r = o != NULL ? rule_of(o) : NULL;
  if (r == NULL) yk_graph_fail_at(where, g, YK_EINVAL, "no such optimizer: kind %d", o != NULL ? (int)o->kind : -1);
  else if (check(o, r) != YK_OK) yk_graph_fail_at(where, g, YK_EINVAL, "%s", yk_error_message());
  if (g->status == YK_OK && divides_by_0(g, o))
    yk_graph_fail_at(where, g, YK_EINVAL, "Ftrl divides by the learning rate, which is 0 in the first step: expected one above 0 (with a warm-up, "
                     "warm_from above 0)");
  return g->status == YK_OK ? r : NULL;
}

/* ---- variables of the optimizer -------------------------------------------------------------------------------------- */

yk_variable *yk__optimizer_slot(const char *where, yk_graph *g, yk_variable *v, const char *name, double start) {
  if (v != NULL && v->master != NULL) {
    yk_variable *of = yk__optimizer_slot(where, g, v->master, name, start);
    return of != NULL ? yk__variable_copy(where, g, of, v->copy, yk_variable_device(v)) : NULL;
  }
  size_t before = yk_variable_count(g);
  yk_variable *slot = yk__slot_variable(where, g, v, name, start != 0 ? YK_CONSTANT(start) : YK_ZEROS);
  if (slot != NULL && yk_variable_count(g) > before) yk_add_to_collection_at(where, g, YK_OPTIMIZER_VARIABLES, yk_read(slot));
  return slot;
}

const char *yk__optimizer_slot_name(const yk_optimizer *o, int i) {
  const rule *r = rule_of(o);
  return r != NULL && i < MOST_SLOTS ? r->slot[i] : NULL;
}

static bool taken(const yk_graph *g, const char *name) {
  for (size_t i = 0; i < yk_variable_count(g); i++)
    if (strcmp(yk_variable_name(yk_variable_get(g, i)), name) == 0) return true;
  return false;
}

/* "beta1_power" beside v, or "beta1_power_1", ... : never one that is there. */
static yk_variable *new_power(const char *where, yk_graph *g, const char *scope, const char *base, yk_variable *v, double beta) {
  char name[MOST_NAME + 16];
  yk_variable *power;
  snprintf(name, sizeof name, "%s%s%s", scope, scope[0] ? "/" : "", base);
  size_t n = strlen(name);
  for (int i = 1; taken(g, name); i++) snprintf(name + n, sizeof name - n, "_%d", i);
  yk_colocate_push_at(where, g, v->ref);
  power = yk__root_variable(where, g, name, YK_F32, YK_SCALAR, YK_CONSTANT(beta), NULL);
  yk_colocate_pop_at(where, g);
  if (power != NULL) yk_add_to_collection_at(where, g, YK_OPTIMIZER_VARIABLES, yk_read(power));
  return power;
}

/* One pair for each scope, first variable, optimizer and betas: kept in a collection of that name. */
static void find_powers(const char *where, yk_graph *g, const yk_optimizer *o, const char *scope, yk_variable *first, yk_value out[2]) {
  const char *own = o->scope != NULL ? o->scope : "";
  yk_str text = { 0 };
  char *key = NULL;
  yk__str_add(&text, "powers of %s/%s/%s/%.17g/%.17g", own, scope, yk_variable_name(first), o->beta1, o->beta2);
  if (yk__str_take(&text, &key) != YK_OK) {
    yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message());
    return;
  }
  if (yk_get_collection(g, key, NULL, out, 2) != 2) {
    yk_variable *p1 = new_power(where, g, own, "beta1_power", first, o->beta1);
    yk_variable *p2 = p1 != NULL ? new_power(where, g, own, "beta2_power", first, o->beta2) : NULL;
    if (p2 != NULL) {
      yk_add_to_collection_at(where, g, key, out[0] = yk_read(p1));
      yk_add_to_collection_at(where, g, key, out[1] = yk_read(p2));
    }
  }
  yk__free(key);
}

/* NULL after a sticky error. */
static yk_variable *first_by_name(const char *where, yk_graph *g, size_t n, const yk_gradient *grads) {
  yk_variable *first = NULL;
  for (size_t i = 0; i < n; i++) {
    yk_variable *v = grads[i].variable;
    if (grads[i].grad.id == 0) continue;
    if (v == NULL || v->g != g)
      return yk_graph_fail_at(where, g, YK_EINVAL, "the variable of gradient %zu is %s", i, v != NULL ? "of another graph" : "missing"), NULL;
    if (first == NULL || strcmp(v->name, first->name) < 0) first = v;
  }
  if (first == NULL) yk_graph_fail_at(where, g, YK_EINVAL, "none of the %zu variables has a gradient to apply", n);
  return first;
}

/* ---- updates ----------------------------------------------------------------------------------------------------------- */

yk_value yk__in_dtype_of(const char *where, yk_graph *g, yk_value x, const yk_variable *v) {
  yk_dtype t = (yk_dtype)yk_variable_desc(v)->dtype;
  const yk_desc *d = yk_value_desc(g, x);
  return d != NULL && d->dtype == t ? x : yk_cast_at(where, g, x, t);
}

typedef struct scalars { uint32_t n; yk_value v[3]; } scalars;

/* SGD and Momentum take the rate in the variable's dtype, the others in f32. */
static scalars scalars_for(const char *where, yk_graph *g, const yk_optimizer *o, const yk_value shared[3], const rule *r,
                           const yk_variable *v) {
  scalars s = { r->powers ? 3 : 1, { shared[0], shared[1], shared[2] } };
  if (o->kind <= YK_OPT_MOMENTUM) s.v[0] = yk__in_dtype_of(where, g, shared[0], v);
  if (o->kind == YK_OPT_MOMENTUM) s.v[s.n++] = yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(v)->dtype, o->momentum);
  return s;
}

static yk_value update(const char *where, yk_graph *g, const yk_optimizer *o, const rule *r, const yk_value shared[3], const yk_gradient *p) {
  yk_update_attrs few = { .n = 1, .nesterov = o->nesterov, .keras = o->keras };
  yk_rule_attrs many = { .n = 1, .nesterov = o->nesterov, .keras = o->keras, .beta1 = o->beta1, .beta2 = o->beta2, .rho = o->rho,
                         .momentum = o->momentum, .epsilon = o->epsilon, .decay = o->weight_decay, .lr_power = o->lr_power, .l1 = o->l1,
                         .l2 = o->l2, .shrinkage = o->l2_shrinkage };
  const void *attrs = o->kind <= YK_OPT_MOMENTUM ? (const void *)&few : &many;
  yk_value in[MOST_SLOTS + 6];
  uint16_t n = 0;
  scalars s = scalars_for(where, g, o, shared, r, p->variable);
  bool sparse;
  in[n++] = p->variable->ref;
  for (int i = 0; i < MOST_SLOTS && r->slot[i] != NULL; i++) {
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s%s%s", o->scope != NULL ? o->scope : "", o->scope != NULL ? "/" : "", r->slot[i]);
    yk_variable *slot = yk__optimizer_slot(where, g, p->variable, name, i == 0 ? o->initial_accumulator : 0);
    if (slot == NULL) return (yk_value){ 0 };
    in[n++] = slot->ref;
  }
  sparse = r->rows != NULL && yk__rows_flat(where, g, p->grad, &in[n], &in[n + 1]);
  if (!sparse) in[n] = p->grad;
  n = (uint16_t)(n + (sparse ? 2 : 1));
  for (uint32_t i = 0; i < s.n; i++) in[n++] = s.v[i];
  return yk_add_node_at(where, g, sparse ? r->rows : r->op, attrs, in, n, 0);
}

/* x = x*beta, beside x. */
static yk_value next_power(const char *where, yk_graph *g, yk_value power, double beta) {
  yk_value next;
  yk_colocate_push_at(where, g, power);
  next = yk_assign_at(where, g, yk_variable_of(g, power), yk_mul_at(where, g, power, yk_scalar_f32_at(where, g, (float)beta)));
  yk_colocate_pop_at(where, g);
  return next;
}

static yk_value count_step(const char *where, yk_graph *g, yk_value after, yk_variable *global_step) {
  yk_value step;
  yk_control_push_at(where, g, 1, &after);
  yk_colocate_push_at(where, g, yk_read(global_step));
  step = yk_assign_add_at(where, g, global_step, yk_scalar_at(where, g, (yk_dtype)yk_variable_desc(global_step)->dtype, 1.0));
  yk_colocate_pop_at(where, g);
  yk_control_pop_at(where, g);
  return yk_group_at(where, g, 1, &step);
}

/* Powers and step move after all updates. */
static yk_value finish(const char *where, yk_graph *g, const yk_optimizer *o, size_t n, const yk_value *updates, const yk_value *powers,
                       yk_variable *global_step) {
  yk_value all = yk_group_at(where, g, n, updates);
  if (powers != NULL) {
    yk_value next[3] = { all };
    yk_control_push_at(where, g, 1, &all);
    next[1] = next_power(where, g, powers[0], o->beta1);
    next[2] = next_power(where, g, powers[1], o->beta2);
    yk_control_pop_at(where, g);
    all = yk_group_at(where, g, 3, next);
  }
  return global_step == NULL ? all : count_step(where, g, all, global_step);
}

static yk_value apply(const char *where, yk_graph *g, const yk_optimizer *o, const rule *r, size_t n, const yk_gradient *grads,
                      yk_variable *global_step, yk_value *updates) {
  yk_variable *first = first_by_name(where, g, n, grads);
  yk_value shared[3] = { o->learning_rate };
  size_t found = 0;
  if (first == NULL) return (yk_value){ 0 };
  if (shared[0].id == 0) shared[0] = yk_scalar_f32_at(where, g, (float)o->rate);
  if (r->powers) find_powers(where, g, o, r->scope, first, &shared[1]);
  for (size_t i = 0; i < n && g->status == YK_OK; i++)
    if (grads[i].grad.id != 0) updates[found++] = update(where, g, o, r, shared, &grads[i]);
  if (g->status != YK_OK) return (yk_value){ 0 };
  return finish(where, g, o, found, updates, r->powers ? &shared[1] : NULL, global_step);
}

yk_value yk_apply_gradients_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *grads,
                               yk_variable *global_step) {
  yk_value *updates, train;
  const rule *r;
  if (yk_graph_status(g) != YK_OK || (r = open_rule(where, g, opt)) == NULL) return (yk_value){ 0 };
  updates = yk__calloc(n + 1, sizeof *updates);
  if (updates == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for %zu updates", n);
  yk_name_scope_push_at(where, g, r->scope);
  train = apply(where, g, opt, r, n, grads, global_step, updates);
  yk_name_scope_pop_at(where, g);
  yk__free(updates);
  if (train.id != 0) yk_add_to_collection_at(where, g, YK_TRAIN_OP, train);
  return g->status == YK_OK ? train : (yk_value){ 0 };
}

yk_value yk_minimize_at(const char *where, yk_graph *g, const yk_optimizer *opt, yk_value loss, yk_variable *global_step) {
  size_t n = yk_compute_gradients_at(where, g, loss, 0, NULL, NULL, 0);
  yk_gradient *grads;
  yk_value train;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  grads = yk__calloc(n + 1, sizeof *grads);
  if (grads == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the gradients of %zu variables", n);
  yk_compute_gradients_at(where, g, loss, 0, NULL, grads, n);
  train = yk_apply_gradients_at(where, g, opt, n, grads, global_step);
  yk__free(grads);
  return train;
}
