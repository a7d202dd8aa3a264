/*
 * desc.c - shapes: checking, printing, broadcasting, merging.
 *
 * An unknown dimension (-1) is carried through as far as it can be; a shape is
 * refused only when no value of the unknown could make it right.
 */
#include "tensor/desc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

yk_desc yk__desc(yk_dtype dtype, yk_shape shape) {
  yk_desc d = { 0 };
  d.dtype = (uint8_t)dtype;
  d.rank = (uint8_t)shape.rank;
  for (uint32_t i = 0; i < shape.rank && i < YK_MAX_RANK; i++) d.dim[i] = shape.dim[i];
  return d;
}

yk_shape yk__desc_shape(const yk_desc *d) {
  yk_shape s = { d->rank, { 0 } };
  for (int i = 0; i < d->rank; i++) s.dim[i] = d->dim[i];
  return s;
}

int64_t yk__desc_count(const yk_desc *d) {
  int64_t n = 1;
  if (!yk__desc_known(d)) return -1;
  for (int i = 0; i < d->rank; i++) n *= d->dim[i];
  return n;
}

int yk__desc_same_shape(const yk_desc *a, const yk_desc *b) {
  if (a->rank != b->rank) return 0;
  for (int i = 0; i < a->rank; i++) {
    if (a->dim[i] != b->dim[i]) return 0;
  }
  return 1;
}

int yk__desc_known(const yk_desc *d) {
  for (int i = 0; i < d->rank; i++) {
    if (d->dim[i] < 0) return 0;
  }
  return 1;
}

char *yk__desc_text(const yk_desc *d, char *buf, size_t n) {
  char text[256];
  size_t used = (size_t)snprintf(text, sizeof text, "%s[", yk_dtype_name((yk_dtype)d->dtype));
  for (int i = 0; i < d->rank && i < YK_MAX_RANK; i++) {
    const char *comma = i ? "," : "";
    if (d->dim[i] < 0) used += (size_t)snprintf(text + used, sizeof text - used, "%s?", comma);
    else used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", comma, (long long)d->dim[i]);
  }
  snprintf(text + used, sizeof text - used, "]");
  if (n) snprintf(buf, n, "%s", text);
  return buf;
}

yk_code yk__shape_check(yk_dtype t, const yk_shape *s, int partial) {
  char text[YK__DESC_TEXT];
  yk_desc d;
  int64_t bytes = (int64_t)yk_dtype_bytes(t);
  if (bytes == 0) return YK_FAIL(EINVAL, "%s (%d) is not the dtype of a tensor", yk_dtype_name(t), (int)t);
  if (s->rank > YK_MAX_RANK) return YK_FAIL(EINVAL, "a tensor has at most %d dimensions, not %u", YK_MAX_RANK, s->rank);
  d = yk__desc(t, *s);
  for (uint32_t i = 0; i < s->rank; i++) {
    if (s->dim[i] < -1 || (s->dim[i] == -1 && !partial)) {
      return YK_FAIL(EINVAL, "dimension %u of %s is %lld; expected %s", i, yk__desc_text(&d, text, sizeof text),
                     (long long)s->dim[i], partial ? "a size, or -1 for one not known yet" : "a size of 0 or more");
    }
    if (s->dim[i] > 0 && __builtin_mul_overflow(bytes, s->dim[i], &bytes)) {
      return YK_FAIL(EINVAL, "%s is too large: its bytes do not fit 63 bits", yk__desc_text(&d, text, sizeof text));
    }
  }
  return YK_OK;
}

/* One dimension of a broadcast: false if the two never fit. */
static int broadcast_dim(int64_t a, int64_t b, int64_t *out) {
  if (a == b || b == 1) return *out = a, 1;
  if (a == 1) return *out = b, 1;
  if (a < 0) return *out = b, 1;         /* unknown against a known size other than 1: it can only be 1 or that size */
  if (b < 0) return *out = a, 1;
  return 0;
}

yk_code yk__shape_broadcast(const yk_desc *a, const yk_desc *b, yk_desc *out) {
  yk_desc r = { .dtype = a->dtype, .rank = a->rank > b->rank ? a->rank : b->rank };
  for (int i = 1; i <= r.rank; i++) {    /* aligned at the last dimension */
    int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1, y = i <= b->rank ? b->dim[b->rank - i] : 1;
    if (!broadcast_dim(x, y, &r.dim[r.rank - i])) {
      char ta[YK__DESC_TEXT], tb[YK__DESC_TEXT];
      return YK_FAIL(EINVAL, "shapes %s and %s do not broadcast: %lld against %lld, dimension %d from the end; expected equal or 1",
                     yk__desc_text(a, ta, sizeof ta), yk__desc_text(b, tb, sizeof tb), (long long)x, (long long)y, i);
    }
  }
  *out = r;
  return YK_OK;
}

yk_code yk__shape_merge(const yk_desc *a, const yk_desc *b, yk_desc *out) {
  yk_desc r = *a;
  int fits = a->dtype == b->dtype && a->rank == b->rank;
  for (int i = 0; fits && i < a->rank; i++) {
    if (a->dim[i] < 0) r.dim[i] = b->dim[i];
    else if (b->dim[i] >= 0 && a->dim[i] != b->dim[i]) fits = 0;
  }
  if (!fits) {
    char ta[YK__DESC_TEXT], tb[YK__DESC_TEXT];
    return YK_FAIL(EINVAL, "%s and %s cannot be the same value", yk__desc_text(a, ta, sizeof ta),
                   yk__desc_text(b, tb, sizeof tb));
  }
  *out = r;
  return YK_OK;
}
