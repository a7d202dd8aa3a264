/*
 * rows.c - sparse gradients: taken apart, joined, put together again.
 *
 * A lookup's gradient with respect to its table is gather_grad(values, rows, like the table). Nothing marks it as sparse but
 * the operation that made it, so every other use sees the dense value that it stands for.
 */
#include "train/train.h"

/* The node of a sparse gradient; NULL for any other value. */
static const yk_node *rows_node(const yk_graph *g, yk_value grad) {
  const yk_node *n = yk__value_node(g, grad);
  const yk_axis_attrs *a;
  if (n == NULL || n->op != &yk__op_gather_grad) return NULL;
  a = n->attrs;
  return a->axis == 0 || a->axis == -(int32_t)g->value[n->in[2]].desc.rank ? n : NULL;
}

bool yk_gradient_rows(const yk_graph *g, yk_value grad, yk_value *values, yk_value *rows) {
  const yk_node *n = g != NULL ? rows_node(g, grad) : NULL;
  if (n == NULL) return false;
  if (values != NULL) values->id = n->in[0];
  if (rows != NULL) rows->id = n->in[1];
  return true;
}

yk_value yk__rows_like(const char *where, yk_graph *g, yk_value values, yk_value rows, yk_value like) {
  const yk_node *n = rows_node(g, like);
  yk_value table = { n != NULL ? n->in[2] : 0 };
  return yk__build(where, g, &yk__op_gather_grad, NULL, 3, values, rows, table);
}

/* Rows can be flattened: no dim of a row is unknown or 0, else -1 could not be worked out. */
static bool can_flatten(const yk_graph *g, const yk_node *n) {
  const yk_desc *table = &g->value[n->in[2]].desc;
  for (int i = 1; i < table->rank; i++)
    if (table->dim[i] <= 0) return false;
  return true;
}

bool yk__rows_flat(const char *where, yk_graph *g, yk_value grad, yk_value *values, yk_value *rows) {
  const yk_node *n = rows_node(g, grad);
  const yk_desc *table, *index;
  yk_shape shape = { 0 };
  if (n == NULL || !yk_gradient_rows(g, grad, values, rows)) return false;
  table = &g->value[n->in[2]].desc;
  index = yk_value_desc(g, *rows);
  if (index->rank == 1) return true;
  if (!can_flatten(g, n)) return false;
  shape.rank = table->rank;
  shape.dim[0] = -1;
  for (int i = 1; i < table->rank; i++) shape.dim[i] = table->dim[i];
  yk_device_push_at(where, g, NULL);
  yk_device_push_at(where, g, n->device_text);
  *values = yk_reshape_at(where, g, *values, shape);
  *rows = yk_reshape_at(where, g, *rows, YK_SHAPE(-1));
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
  return g->status == YK_OK;
}

yk_value yk__rows_join(const char *where, yk_graph *g, size_t n, const yk_value *grads) {
  const yk_node *first = rows_node(g, grads[0]);
  yk_value *values, *rows, joined = { 0 };
  bool narrow = true;
  for (size_t i = 0; i < n; i++) {
    const yk_node *x = rows_node(g, grads[i]);
    if (x == NULL || x->in[2] != first->in[2] || !can_flatten(g, x)) return joined;
    narrow = narrow && g->value[x->in[1]].desc.dtype == YK_I32;
  }
  if (n == 1) return grads[0];
  values = yk__calloc(2 * n, sizeof *values);
  if (values == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to join %zu sparse gradients", n);
  rows = values + n;
  for (size_t i = 0; i < n && g->status == YK_OK; i++)
    if (yk__rows_flat(where, g, grads[i], &values[i], &rows[i]) && !narrow) rows[i] = yk_cast_at(where, g, rows[i], YK_I64);
  if (g->status == YK_OK)
    joined = yk__rows_like(where, g, yk_concat_at(where, g, n, values, 0), yk_concat_at(where, g, n, rows, 0), grads[0]);
  yk__free(values);
  return joined;
}
