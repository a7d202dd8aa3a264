/*
 * norm.c - the checks that batch and layer normalisation share. The operations are in their own files.
 *
 * The channel is the last axis throughout; everything before it is what a batch statistic averages over.
 */
#include "ops/norm.h"

int yk__stat_type(int t) { return t == YK_F64 ? YK_F64 : YK_F32; }

double yk__norm_epsilon(const yk_norm_attrs *a) { return a->epsilon != 0 ? a->epsilon : 1e-3; }

yk_code yk__norm_check(const yk_infer *c, uint16_t x, uint16_t from, uint16_t to, const char *const *names, int64_t *channels) {
  char tx[YK__DESC_TEXT], tp[YK__DESC_TEXT];
  const yk_desc *dx = &c->in[x];
  int64_t n;
  if (dx->rank < 2) return YK_FAIL(EINVAL, "x is %s, expected at least rank 2 [..., C]", yk__desc_text(dx, tx, sizeof tx));
  n = dx->dim[dx->rank - 1];
  for (uint16_t i = from; i < to; i++) {
    const yk_desc *p = &c->in[i];
    if (p->dtype != yk__stat_type(dx->dtype))
      return YK_FAIL(EINVAL, "%s is %s, expected dtype %s for x %s", names[i - from], yk__desc_text(p, tp, sizeof tp),
                     yk_dtype_name((yk_dtype)yk__stat_type(dx->dtype)), yk__desc_text(dx, tx, sizeof tx));
    if (p->rank != 1 || yk__dims_clash(p->dim[0], n))
      return YK_FAIL(EINVAL, "%s is %s, expected one number for each channel (last axis) of x %s", names[i - from],
                     yk__desc_text(p, tp, sizeof tp), yk__desc_text(dx, tx, sizeof tx));
    if (n < 0) n = p->dim[0];
  }
  *channels = n;
  return YK_OK;
}

yk_desc yk__per_channel(const yk_desc *x, int64_t channels) {
  return (yk_desc){ .dtype = (uint8_t)yk__stat_type(x->dtype), .rank = 1, .dim = { channels } };
}

yk_code yk__norm_same_shape(const yk_infer *c, uint16_t i, uint16_t j, const char *name_i, const char *name_j) {
  char ti[YK__DESC_TEXT], tj[YK__DESC_TEXT];
  int same = c->in[i].rank == c->in[j].rank;
  for (int k = 0; same && k < c->in[i].rank; k++) same = !yk__dims_clash(c->in[i].dim[k], c->in[j].dim[k]);
  if (same) return YK_OK;
  return YK_FAIL(EINVAL, "%s is %s and %s is %s, expected one shape", name_i, yk__desc_text(&c->in[i], ti, sizeof ti), name_j,
                 yk__desc_text(&c->in[j], tj, sizeof tj));
}
