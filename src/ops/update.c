/*
 * update.c - shape rules, references and builder of the merged update ops. See update.h for how their inputs are laid out.
 */
#include "update.h"

const yk_attr yk__update_attrs[] = {
  YK__COUNT(yk_update_attrs), YK__FLAG(yk_update_attrs, nesterov), YK__FLAG(yk_update_attrs, keras), { 0 }
};

uint32_t yk__update_n(const void *attrs) {
  uint32_t n = attrs ? ((const yk_update_attrs *)attrs)->n : 0;
  return n ? n : 1;
}

static yk_code check_scalars(const yk_infer *c, uint32_t first, uint32_t scalars) {
  static const char *const names[] = { "first scalar (learning rate or decay)", "second scalar (momentum or power of beta1)",
                                       "third scalar (power of beta2)" };
  for (uint32_t i = 0; i < scalars; i++) YK_TRY(yk__want_scalar(c, names[i], (uint16_t)(first + i)));
  if (c->nin > first + scalars) YK_TRY(yk__want_scalar(c, "guard", (uint16_t)(first + scalars)));
  return yk__infer_op(c);
}

/* So many inputs, or one more: the guard. */
static bool fits(const yk_infer *c, uint32_t n) { return c->nin == n || c->nin == n + 1; }

/* Every tensor of `groups` groups is like the variable of its place. */
static yk_code check_groups(const yk_infer *c, uint32_t n, uint32_t groups) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  for (uint32_t i = 0; i < n * groups; i++) {
    yk_desc merged;
    if (c->in[i].dtype != c->in[0].dtype || yk__shape_merge(&c->in[i % n], &c->in[i], &merged) != YK_OK)
      return YK_FAIL(EINVAL, "input %u is %s, but variable %u is %s", i, yk__desc_text(&c->in[i], a, sizeof a), i % n,
                     yk__desc_text(&c->in[i % n], b, sizeof b));
  }
  return YK_OK;
}

yk_code yk__update_infer(const yk_infer *c, uint32_t groups, uint32_t scalars) {
  uint32_t n = yk__update_n(c->attrs);
  if (!fits(c, n * groups + scalars))
    return YK_FAIL(EINVAL, "%u inputs, expected %u groups of %u and %u scalars", c->nin, groups, n, scalars);
  YK_TRY(check_groups(c, n, groups));
  return check_scalars(c, n * groups, scalars);
}

static yk_code check_rows(const yk_desc *w, const yk_desc *values, const yk_desc *rows, uint32_t i) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT], d[YK__DESC_TEXT];
  yk_desc want = yk__as(w, w->dtype), have = yk__as(values, w->dtype), merged;
  if (w->rank == 0) return YK_FAIL(EINVAL, "variable %u is a scalar, which has no rows", i);
  want.dim[0] = rows->rank == 1 ? rows->dim[0] : -1;
  if (rows->rank == 1 && values->dtype == w->dtype && yk__shape_merge(&want, &have, &merged) == YK_OK) return YK_OK;
  return YK_FAIL(EINVAL, "values %s with rows %s do not fit variable %u, which is %s: expected [k] rows and values [k, its dims but the first]",
                 yk__desc_text(values, a, sizeof a), yk__desc_text(rows, b, sizeof b), i, yk__desc_text(w, d, sizeof d));
}

yk_code yk__update_infer_rows(const yk_infer *c, uint32_t written, uint32_t scalars) {
  uint32_t n = yk__update_n(c->attrs);
  if (!fits(c, n * (written + 2) + scalars))
    return YK_FAIL(EINVAL, "%u inputs, expected %u groups of %u and %u scalars", c->nin, written + 2, n, scalars);
  YK_TRY(check_groups(c, n, written));
  for (uint32_t i = 0; i < n; i++) YK_TRY(check_rows(&c->in[i], &c->in[written * n + i], &c->in[(written + 1) * n + i], i));
  return check_scalars(c, n * (written + 2), scalars);
}

/* ---- references -------------------------------------------------------------------------------------------------- */

enum { MOST_WRITTEN = 4, MOST_SCALARS = 3 };

/* The rule for element `at` of variable k. */
static void one_element(const yk_ref *c, uint32_t k, uint32_t written, int64_t at, double g, const double *s, yk_update_rule rule) {
  static const yk_rule_attrs zeros;                      /* the longer one of the two attribute structs */
  uint32_t n = yk__update_n(c->attrs);
  double *t[MOST_WRITTEN] = { NULL };
  for (uint32_t j = 0; j < written; j++) t[j] = (double *)(uintptr_t)c->in[j * n + k] + at;
  rule(t, g, s, c->attrs ? c->attrs : &zeros);
}

bool yk__update_off(const yk_ref *c, uint32_t first) {
  return c->nin > first && c->in[first] && c->in[first][0] == 0;
}

yk_code yk__update_ref(const yk_ref *c, uint32_t written, uint32_t scalars, yk_update_rule rule) {
  uint32_t n = yk__update_n(c->attrs);
  double s[MOST_SCALARS] = { 0 };
  if (yk__update_off(c, (written + 1) * n + scalars)) return YK_OK;
  for (uint32_t i = 0; i < scalars; i++) s[i] = c->in[(written + 1) * n + i][0];
  for (uint32_t k = 0; k < n; k++) {
    int64_t count = yk__desc_count(&c->din[k]);
    for (int64_t i = 0; i < count; i++) one_element(c, k, written, i, c->in[written * n + k][i], s, rule);
  }
  return YK_OK;
}

/* Position p is the first that names its row: all of the row's values are added here, in order. */
static void one_row(const yk_ref *c, uint32_t k, uint32_t written, int64_t p, const double *s, yk_update_rule rule) {
  uint32_t n = yk__update_n(c->attrs);
  const double *rows = c->in[(written + 1) * n + k], *values = c->in[written * n + k];
  int64_t count = yk__desc_count(&c->din[(written + 1) * n + k]), inner = yk__span(&c->din[k], 1, c->din[k].rank);
  for (int64_t q = 0; q < p; q++)
    if (rows[q] == rows[p]) return;
  for (int64_t i = 0; i < inner; i++) {
    double g = 0;
    for (int64_t q = p; q < count; q++)
      if (rows[q] == rows[p]) g += values[q * inner + i];
    one_element(c, k, written, (int64_t)rows[p] * inner + i, g, s, rule);
  }
}

static yk_code check_range(const yk_ref *c, uint32_t k, const double *rows, int64_t count) {
  for (int64_t p = 0; p < count; p++)
    if (rows[p] < 0 || rows[p] >= (double)c->din[k].dim[0])
      return YK_FAIL(EINVAL, "update of rows: row %lld at position %lld is outside [0, %lld)", (long long)rows[p], (long long)p,
                     (long long)c->din[k].dim[0]);
  return YK_OK;
}

yk_code yk__update_ref_rows(const yk_ref *c, uint32_t written, uint32_t scalars, yk_update_rule rule) {
  uint32_t n = yk__update_n(c->attrs), first = (written + 1) * n;
  double s[MOST_SCALARS] = { 0 };
  if (yk__update_off(c, first + n + scalars)) return YK_OK;
  for (uint32_t i = 0; i < scalars; i++) s[i] = c->in[first + n + i][0];
  for (uint32_t k = 0; k < n; k++) YK_TRY(check_range(c, k, c->in[first + k], yk__desc_count(&c->din[first + k])));
  for (uint32_t k = 0; k < n; k++)
    for (int64_t p = 0; p < yk__desc_count(&c->din[first + k]); p++) one_row(c, k, written, p, s, rule);
  return YK_OK;
}

/* ---- building ------------------------------------------------------------------------------------------------------ */

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
