/*
 * predict.c - a network's outputs for examples: its parts run on their devices, what comes of them is put together at home.
 *
 * Built when it is first asked for, and kept.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/carried.h"
#include "keras/engine.h"
#include "tensor/desc.h"

static void build_part(yk_network *n, uint32_t i, const yk_value *in, yk_value *out) {
  yk_value share[YK__MAX_PORTS];
  yk__part_open(n, i);
  for (uint32_t k = 0; k < n->nin; k++) share[k] = yk__part_rows(n, i, in[k]);
  yk__network_build(n, n->self.k->graph, n->self.where, false, share, NULL, out, NULL);
  yk__part_close(n);
}

static yk_code build(yk_network *n, yk_predict *p) {
  const char *where = n->self.where;
  yk_graph *g = n->self.k->graph;
  yk_value *part = yk__calloc((size_t)n->ndevice * YK__MAX_PORTS + 1, sizeof *part), column[YK__MAX_PORTS];
  if (part == NULL) return YK_ENOMEM;
  yk_name_scope_push_at(where, g, n->self.name);
  YK_DEVICE(g, YK__HOME) {
    for (uint32_t k = 0; k < n->nin; k++) p->in[k] = yk__input_placeholder(n, k);
    for (uint32_t i = 0; i < n->ndevice; i++) build_part(n, i, p->in, part + (size_t)i * YK__MAX_PORTS);
    for (uint32_t k = 0; k < n->nout; k++) {
      for (uint32_t i = 0; i < n->ndevice; i++) column[i] = part[(size_t)i * YK__MAX_PORTS + k];
      p->out[k] = n->ndevice > 1 ? yk_concat_at(where, g, n->ndevice, column, 0) : yk_identity_at(where, g, column[0]);
    }
    p->carry = yk__carry_on(n->self.k, where);
  }
  yk_name_scope_pop_at(where, g);
  yk__free(part);
  return yk_graph_status(g);
}

static yk_code make(yk_network *n, yk_predict *p) {
  yk_keras *k = n->self.k;
  YK_TRY(yk__keras_start(k, n));
  YK_TRY(build(n, p));
  YK_TRY(yk__keras_ready(k));
  return yk_step_prepare(k->session, n->nin, p->in, n->nout, p->out, p->carry.id != 0, &p->carry, &p->step);
}

static yk_code prepare(yk_network *n) {
  if (n->predict != NULL) return YK_OK;
  yk_predict *p = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  yk_code rc = make(n, p);
  if (rc == YK_OK) n->predict = p;
  else yk__free(p);
  return rc;
}

/* Rows [at, at + rows) of t, lent. */
static yk_code rows_of(const yk_tensor *t, int64_t at, int64_t rows, yk_tensor **out) {
  yk_shape s = yk__desc_shape(yk_tensor_desc(t));
  size_t bytes = s.dim[0] > 0 ? yk_tensor_bytes(t) / (size_t)s.dim[0] : 0;
  s.dim[0] = rows;
  return yk_tensor_wrap((yk_dtype)yk_tensor_desc(t)->dtype, s, (char *)yk_tensor_data(t) + (size_t)at * bytes, NULL, NULL, out);
}

static yk_code put_rows(const yk_network *n, const yk_tensor *const *got, int64_t at, int64_t rows, yk_tensor **out) {
  for (uint32_t k = 0; k < n->nout; k++) {
    yk_shape s = yk__desc_shape(yk_tensor_desc(got[k]));
    s.dim[0] = rows;
    if (out[k] == NULL) YK_TRY(yk_tensor_new((yk_dtype)yk_tensor_desc(got[k])->dtype, s, &out[k]));
    size_t bytes = rows > 0 ? yk_tensor_bytes(out[k]) / (size_t)rows : 0;
    memcpy((char *)yk_tensor_data(out[k]) + (size_t)at * bytes, yk_tensor_data(got[k]), yk_tensor_bytes(got[k]));
  }
  return YK_OK;
}

static yk_code predict_some(yk_network *n, const yk_tensor *const *in, int64_t at, int64_t batch, int64_t rows, yk_tensor **out) {
  yk_tensor *part[YK__MAX_PORTS] = { NULL };
  const yk_tensor *const *got;
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < n->nin && rc == YK_OK; i++) rc = rows_of(in[i], at, batch, &part[i]);
  if (rc == YK_OK) rc = yk_step_run(n->predict->step, (const yk_tensor *const *)part, &got);
  if (rc == YK_OK) rc = put_rows(n, got, at, rows, out);
  for (uint32_t i = 0; i < n->nin; i++) yk_tensor_free(part[i]);
  return rc;
}

yk_code yk_network_predict(yk_network *n, const yk_tensor *const *in, int64_t batch_size, yk_tensor **out) {
  yk_tensor *made[YK__MAX_PORTS] = { NULL };
  if (n == NULL || in == NULL || out == NULL || in[0] == NULL || batch_size < 0)
    return YK_FAIL(EINVAL, "yk_network_predict: NULL argument or a negative batch");
  YK_TRY(yk_keras_status(n->self.k));
  int64_t rows = yk_tensor_desc(in[0])->rank > 0 ? yk_tensor_desc(in[0])->dim[0] : 0, batch = batch_size ? batch_size : 32;
  for (uint32_t i = 0; i < n->nin; i++) YK_TRY(yk__check_input(n, i, in[i], rows));
  yk_code rc = prepare(n);
  for (int64_t at = 0; rc == YK_OK && (at < rows || (at == 0 && rows == 0)); at += batch)
    rc = predict_some(n, in, at, rows - at < batch ? rows - at : batch, rows, made);
  for (uint32_t k = 0; k < n->nout; k++) {
    if (rc == YK_OK) out[k] = made[k];
    else yk_tensor_free(made[k]);
  }
  return rc;
}
