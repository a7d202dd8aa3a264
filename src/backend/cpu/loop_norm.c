/*
 * loop_norm.c - preparing the normalisations.
 *
 * Only shapes and attributes are looked at here; the loops are in loop_norm_isa.c.
 */
#include "loop_norm.h"

#include <string.h>

enum { CHUNK_ELEMENTS = 32768, MAX_CHUNKS = 64 };

typedef struct norm_kind { const char *op, *impl; uint32_t kind, x, inplace, partial; } norm_kind;
/* x: which input has the shape; partial: sums over rows are needed */
static const norm_kind kinds[] = {
  { "batch_norm_train", "plain:batch_norm_train", NORM_BN_TRAIN, 0, 1, 1 },
  { "batch_norm_grad", "plain:batch_norm_grad", NORM_BN_GRAD, 1, 3, 1 },
  { "batch_norm_infer", "plain:batch_norm_infer", NORM_BN_INFER, 0, 1, 0 },
  { "batch_norm_infer_grad", "plain:batch_norm_infer_grad", NORM_BN_INFER_GRAD, 1, 3, 1 },
  { "layer_norm", "plain:layer_norm", NORM_LAYER, 0, 1, 0 },
  { "layer_norm_grad", "plain:layer_norm_grad", NORM_LAYER_GRAD, 1, 0, 1 },
};

static void norm_shape(yk_norm_state *s, const yk_desc *x) {
  s->n = x->dim[x->rank - 1];
  s->rows = yk__loop_span(x, 0, x->rank - 1);
  s->chunks = s->rows * s->n / CHUNK_ELEMENTS;
  if (s->chunks > MAX_CHUNKS) s->chunks = MAX_CHUNKS;
  if (s->chunks > s->rows) s->chunks = s->rows;
  if (s->chunks < 1) s->chunks = 1;
}

yk_code yk__cpu_loop_norm(yk_cpu_prepare *p) {
  const yk_norm_attrs *a = p->k->attrs;
  yk_norm_state *s;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const norm_kind *kind = &kinds[i];
    if (strcmp(kind->op, p->spec->op) != 0) continue;
    if (a && a->act != YK_ACT_NONE && a->act != YK_ACT_RELU) return YK_CPU_REFUSE("only relu may be fused into batch norm");
    YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_NORM)->body[kind->kind][yk__loop_is_f64(p->k)], kind->impl, &s));
    norm_shape(s, &p->k->in[kind->x]);
    s->epsilon = a && a->epsilon != 0 ? a->epsilon : 1e-3;
    s->relu = a && a->act == YK_ACT_RELU;
    p->inplace = kind->inplace;
    yk__loop_workspace(p, ((kind->partial ? 2 * (uint64_t)s->chunks : 0) + 3) * (uint64_t)s->n * sizeof(double));
    return YK_OK;
  }
  return YK_CPU_REFUSE("not a normalisation");
}

yk_code yk__cpu_loop_lrn(yk_cpu_prepare *p) {
  const yk_lrn_attrs *a = p->k->attrs;
  int backward = strcmp(p->spec->op, "lrn_grad") == 0;
  yk_norm_state *s;
  YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_NORM)->body[backward ? NORM_LRN_GRAD : NORM_LRN][yk__loop_is_f64(p->k)],
                       backward ? "plain:lrn_grad" : "plain:lrn", &s));
  norm_shape(s, &p->k->in[0]);
  s->radius = a && a->radius ? a->radius : 5;
  if (s->radius >= s->n && s->n > 0) s->radius = (int32_t)(s->n - 1);        /* a wider window sees nothing more */
  if (s->radius > LRN_RADIUS) return YK_CPU_REFUSE("a radius above %d", LRN_RADIUS);
  s->bias = a && a->bias != 0 ? a->bias : 1;
  s->alpha = a && a->alpha != 0 ? a->alpha : 1;
  s->beta = a && a->beta != 0 ? a->beta : 0.5;
  yk__loop_workspace(p, 0);
  return YK_OK;
}
