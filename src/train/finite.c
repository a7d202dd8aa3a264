/*
 * finite.c - is this step one that may change the variables?
 *
 * Values are looked at where they are, all of one device by one kernel, so that only bools travel.
 */
#include <string.h>
#include "train/train.h"

/* The values that are still to be looked at: each device's are taken together. */
typedef struct values { yk_value *v; size_t n; yk_value *same; } values;

static void gather(const yk_graph *g, values *a, size_t nx, const yk_value *x, size_t n, const yk_gradient *grads) {
  for (size_t i = 0; i < nx; i++) a->v[a->n++] = x[i];
  for (size_t i = 0; i < n; i++) {
    yk_value v = grads[i].grad;
    if (v.id == 0) continue;
    yk_gradient_rows(g, v, &v, NULL);
    a->v[a->n++] = v;
  }
}

/* Those on the device of the first one, checked there and taken out. */
static yk_value next_device(const char *where, yk_graph *g, values *a, bool nan_only) {
  const char *device = yk_value_device(g, a->v[0]);
  size_t same = 0, left = 0;
  yk_value ok;
  for (size_t i = 0; i < a->n; i++) {
    if (strcmp(yk_value_device(g, a->v[i]), device) == 0) a->same[same++] = a->v[i];
    else a->v[left++] = a->v[i];
  }
  a->n = left;
  yk_device_push_at(where, g, NULL);
  yk_device_push_at(where, g, device);
  ok = yk_all_finite_at(where, g, same, a->same, nan_only);
  yk_device_pop_at(where, g);
  yk_device_pop_at(where, g);
  return ok;
}

yk_value yk_all_good_at(const char *where, yk_graph *g, size_t nx, const yk_value *x, size_t n, const yk_gradient *grads, bool nan_only) {
  values a = { NULL, 0, NULL };
  yk_value all = { 0 };
  if (yk_graph_status(g) != YK_OK) return all;
  a.v = yk__calloc(2 * (nx + n) + 1, sizeof *a.v);
  if (a.v == NULL) return yk_graph_fail_at(where, g, YK_ENOMEM, "no memory to look at %zu values", nx + n);
  a.same = a.v + nx + n;
  yk_name_scope_push_at(where, g, "all_good");
  gather(g, &a, nx, x, n, grads);
  if (a.n == 0) yk_graph_fail_at(where, g, YK_EINVAL, "there is nothing to look at: no value, and none of %zu gradients", n);
  for (size_t i = 0; i < a.n && g->status == YK_OK; i++)
    if (yk_value_desc(g, a.v[i]) == NULL) yk_graph_fail_at(where, g, YK_EINVAL, "value %zu to look at is not one of this graph", i);
  while (a.n > 0 && g->status == YK_OK) {
    yk_value ok = next_device(where, g, &a, nan_only);
    all = all.id == 0 ? ok : yk_logical_and_at(where, g, all, ok);
  }
  yk_name_scope_pop_at(where, g);
  yk__free(a.v);
  return g->status == YK_OK ? all : (yk_value){ 0 };
}
