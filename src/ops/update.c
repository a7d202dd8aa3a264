/*
 * update.c - shape rule and builder of the merged update ops. See update.h for how their inputs are laid out.
 */
#include "update.h"

const yk_attr yk__update_attrs[] = {
  YK__INT(yk_update_attrs, n, 1, 1, 16383), YK__FLAG(yk_update_attrs, nesterov), { 0 }
};

uint32_t yk__update_n(const void *attrs) {
  uint32_t n = attrs ? ((const yk_update_attrs *)attrs)->n : 0;
  return n ? n : 1;
}

yk_code yk__update_infer(const yk_infer *c, uint32_t groups, uint32_t scalars) {
  static const char *const names[] = { "first scalar (learning rate or decay)", "second scalar (momentum)" };
  uint32_t n = yk__update_n(c->attrs);
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  if (c->nin != n * groups + scalars)
    return YK_FAIL(EINVAL, "%u inputs, expected %u groups of %u and %u scalars", c->nin, groups, n, scalars);
  for (uint32_t i = 0; i < n * groups; i++) {
    yk_desc merged;
    if (c->in[i].dtype != c->in[0].dtype || yk__shape_merge(&c->in[i % n], &c->in[i], &merged) != YK_OK)
      return YK_FAIL(EINVAL, "input %u is %s, but variable %u is %s", i, yk__desc_text(&c->in[i], a, sizeof a), i % n,
                     yk__desc_text(&c->in[i % n], b, sizeof b));
  }
  for (uint32_t i = 0; i < scalars; i++) YK_TRY(yk__want_scalar(c, names[i], (uint16_t)(n * groups + i)));
  return yk__infer_op(c);
}

yk_value *yk__update_refs(const char *where, yk_graph *g, size_t n, yk_variable *const *v) {
  yk_value *refs = yk__calloc(n ? n : 1, sizeof *refs);
  if (!refs) return yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message()), NULL;
  for (size_t i = 0; i < n; i++) {
    if (!v[i] || v[i]->g != g) {
      yk_graph_fail_at(where, g, YK_EINVAL, "variable %zu of an update is %s", i, v[i] ? "of another graph" : "missing");
      yk__free(refs);
      return NULL;
    }
    refs[i] = v[i]->ref;
  }
  return refs;
}

yk_value yk__update_build(const char *where, yk_graph *g, const yk_op *op, yk_update_attrs a, uint32_t groups,
                          const yk_value *const *group, uint32_t nscalars, const yk_value *scalar) {
  size_t nin = (size_t)a.n * groups + nscalars, at = 0;
  yk_value *in = yk__calloc(nin, sizeof *in), out;
  if (!in) return yk_graph_fail_at(where, g, YK_ENOMEM, "%s", yk_error_message());
  for (uint32_t k = 0; k < groups; k++)
    for (uint32_t i = 0; i < a.n; i++) in[at++] = group[k][i];
  for (uint32_t i = 0; i < nscalars; i++) in[at++] = scalar[i];
  out = yk__build_n(where, g, op, &a, nin, in, 1);
  yk__free(in);
  return out;
}
