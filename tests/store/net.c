/*
 * net.c - see net.h. Every element of every variable depends on the number, so nothing can be mixed up unseen.
 */
#include "net.h"

static yk_tensor *make(const yk_variable *v, int x) {
  const yk_desc *d = yk_variable_desc(v);
  yk_shape shape = { d->rank, { 0 } };
  yk_tensor *t;
  memcpy(shape.dim, d->dim, sizeof shape.dim);
  CHECK_OK(yk_tensor_new((yk_dtype)d->dtype, shape, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) {
    int64_t value = x * 1000 + i;
    switch (d->dtype) {
      case YK_F32: ((float *)yk_tensor_data(t))[i] = (float)value / 7; break;
      case YK_F64: ((double *)yk_tensor_data(t))[i] = (double)value / 7; break;
      case YK_I64: ((int64_t *)yk_tensor_data(t))[i] = value; break;
      default: ((uint8_t *)yk_tensor_data(t))[i] = (uint8_t)(x >> i & 1); break;
    }
  }
  return t;
}

void net_open(net *n) {
  CHECK_OK(yk_graph_new(&n->g));
  YK_VARIABLE_SCOPE(n->g, "a") {
    n->w = yk_get_variable(n->g, "w", YK_F32, YK_SHAPE(2, 3), YK_ZEROS, NULL);
    n->b = yk_get_variable(n->g, "b", YK_F64, YK_SCALAR, YK_ZEROS, &(yk_variable_options){ .not_trainable = true });
  }
  n->step = yk_get_variable(n->g, "step", YK_I64, YK_SCALAR, YK_ZEROS, &(yk_variable_options){ .not_trainable = true });
  n->flag = yk_get_variable(n->g, "flag", YK_BOOL, YK_SHAPE(5), YK_ZEROS, &(yk_variable_options){ .not_trainable = true });
  CHECK_OK(yk_graph_status(n->g));
  CHECK_OK(yk_session_open(n->g, NULL, &n->s));
}

void net_close(net *n) {
  yk_session_close(n->s);
  yk_graph_free(n->g);
}

void net_set(net *n, int x) {
  for (size_t i = 0; i < yk_variable_count(n->g); i++) {
    yk_variable *v = yk_variable_get(n->g, i);
    yk_tensor *t = make(v, x);
    CHECK_OK(yk_variable_set(n->s, v, t));
    yk_tensor_free(t);
  }
}

bool net_is(net *n, int x) {
  bool same = true;
  for (size_t i = 0; i < yk_variable_count(n->g); i++) {
    yk_variable *v = yk_variable_get(n->g, i);
    yk_tensor *want = make(v, x), *got;
    CHECK_OK(yk_variable_fetch(n->s, v, &got));
    same &= memcmp(yk_tensor_data(want), yk_tensor_data(got), yk_tensor_bytes(want)) == 0;
    yk_tensor_free(want);
    yk_tensor_free(got);
  }
  return same;
}

void net_expect(net *n, int x, const char *why) {
  if (net_is(n, x)) return;
  for (int y = 0; y < 1000; y++)
    if (net_is(n, y)) fail_msg("%s: the values are those of %d, expected %d", why, y, x);
  fail_msg("%s: the values are those of no one number, expected %d", why, x);
}
