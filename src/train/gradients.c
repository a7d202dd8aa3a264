/*
 * gradients.c - from a loss to pairs of gradient and variable, and over towers.
 *
 * Towers are summed, not averaged: their losses are sums over examples already
 * divided by the global batch, so unequal shares need no weights. The sum of
 * several lookups of one table stays a sparse gradient.
 */
#include "train/train.h"

static size_t trainable(const yk_graph *g, yk_variable **out, size_t max) {
  size_t n = 0;
  for (size_t i = 0; i < yk_variable_count(g); i++) {
    yk_variable *v = yk_variable_get(g, i);
    if (!yk_variable_trainable(v)) continue;
    if (out != NULL && n < max) out[n] = v;
    n++;
  }
  return n;
}

static void no_gradient(const char *where, yk_graph *g, yk_value loss, size_t n, yk_variable *const *vars) {
  yk_str names = { 0 };
  char *text = NULL;
  for (size_t i = 0; i < n && i < 8; i++) yk__str_add(&names, "%s%s", i ? ", " : "", yk_variable_name(vars[i]));
  if (n > 8) yk__str_add(&names, " and %zu more", n - 8);
  if (yk__str_take(&names, &text) != YK_OK) yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message());
  else yk_graph_fail_at(where, g, YK_EINVAL, "the loss '%s' depends on none of the variables to train: %s", yk_value_name(g, loss),
                        n ? text : "there are none");
  yk__free(text);
}

/* Several lookups of one table: their sum as one sparse gradient, where the sum would be. Anything else is left as it is. */
static yk_value join_lookups(const char *where, yk_graph *g, yk_value sum) {
  const yk_node *n = yk__value_node(g, sum);
  yk_value *parts, joined = { 0 };
  if (n == NULL || n->op != &yk__op_add_n) return sum;
  parts = yk__calloc(n->nin + 1u, sizeof *parts);
  if (parts == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the %u gradients of one variable", n->nin);
  for (uint16_t i = 0; i < n->nin; i++) parts[i].id = n->in[i];
  yk_device_push_at(where, g, NULL);
  yk_device_push_at(where, g, n->device_text);
  if (yk_gradient_rows(g, parts[0], NULL, NULL)) joined = yk__rows_join(where, g, n->nin, parts);
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
  yk__free(parts);
  return joined.id != 0 || g->status != YK_OK ? joined : sum;
}

static void compute(const char *where, yk_graph *g, yk_value loss, size_t n, yk_variable *const *vars, yk_value *reads, yk_value *dx,
                    yk_gradient *out, size_t max) {
  size_t found = 0;
  for (size_t i = 0; i < n; i++) reads[i] = yk_read(vars[i]);
  yk_gradients_at(where, g, 1, &loss, NULL, n, reads, NULL, dx);
  for (size_t i = 0; i < n; i++) {
    found += dx[i].id != 0;
    if (i < max) out[i] = (yk_gradient){ join_lookups(where, g, dx[i]), vars[i] };
  }
  if (found == 0 && yk_graph_status(g) == YK_OK) no_gradient(where, g, loss, n, vars);
  for (size_t i = 0; i < n && i < max && yk_graph_status(g) != YK_OK; i++) out[i].grad = (yk_value){ 0 };
}

size_t yk_compute_gradients_at(const char *where, yk_graph *g, yk_value loss, size_t nvars, yk_variable *const *vars,
                               yk_gradient *out, size_t max) {
  size_t n = vars != NULL ? nvars : trainable(g, NULL, 0);
  yk_variable **all = NULL;
  yk_value *room;
  if (out == NULL || yk_graph_status(g) != YK_OK) return n;
  room = yk__calloc(2 * n + 1, sizeof *room);
  if (vars == NULL && (all = yk__calloc(n + 1, sizeof(yk_variable *))) != NULL) trainable(g, all, n);
  if (room == NULL || (vars == NULL && all == NULL)) yk_graph_fail_at(where, g, YK_ENOMEM, "no memory for the gradients of %zu variables", n);
  else compute(where, g, loss, n, vars != NULL ? vars : all, room, room + n, out, max);
  yk__free(room);
  yk__free(all);
  return n;
}

/* Sparse if all are, else dense. */
static yk_value add_up(const char *where, yk_graph *g, size_t n, const yk_value *parts) {
  yk_value joined = { 0 };
  if (n == 0) return joined;
  if (yk_gradient_rows(g, parts[0], NULL, NULL)) joined = yk__rows_join(where, g, n, parts);
  if (joined.id != 0 || g->status != YK_OK) return joined;
  return n == 1 ? parts[0] : yk_add_n_at(where, g, n, parts);
}

void yk_sum_gradients_at(const char *where, yk_graph *g, size_t ntowers, const yk_gradient *const *tower, size_t nvars, yk_gradient *out) {
  yk_value *parts = g->status == YK_OK ? yk__calloc(ntowers + 1, sizeof *parts) : NULL;
  if (parts == NULL) yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to sum the gradients of %zu towers", ntowers);
  for (size_t i = 0; i < nvars && parts != NULL; i++) {
    size_t n = 0;
    for (size_t t = 0; t < ntowers; t++) {
      if (tower[t][i].variable != tower[0][i].variable) {
        yk_graph_fail_at(where, g, YK_EINVAL, "gradient %zu of tower %zu belongs to '%s', that of tower 0 to '%s'", i, t,
                         yk_variable_name(tower[t][i].variable), yk_variable_name(tower[0][i].variable));
        break;
      }
      if (tower[t][i].grad.id != 0) parts[n++] = tower[t][i].grad;
    }
    out[i].variable = ntowers ? tower[0][i].variable : NULL;
    out[i].grad = add_up(where, g, n, parts);
  }
  yk__free(parts);
  for (size_t i = 0; i < nvars && g->status != YK_OK; i++) out[i] = (yk_gradient){ { 0 }, NULL };
}
