/*
 * desc.h - arithmetic on descriptors and conversions of single elements.
 *
 * Public half: <yoke/tensor.h>. Unknown dimensions (-1) are legal here: they
 * appear while a graph is built and are gone when a plan is compiled.
 */
#ifndef YK_TENSOR_DESC_H
#define YK_TENSOR_DESC_H

#include <yoke/tensor.h>

yk_desc yk__desc(yk_dtype dtype, yk_shape shape);                  /* dense; unused dims 0 */
yk_shape yk__desc_shape(const yk_desc *d);
int64_t yk__desc_count(const yk_desc *d);                          /* elements; -1 if any dim is unknown */
int     yk__desc_same_shape(const yk_desc *a, const yk_desc *b);   /* exact, unknown equals unknown */
int     yk__desc_known(const yk_desc *d);
/* "f32[128,24,24,3]", unknown printed "?"; layout ignored. Writes at most n bytes, always terminated; returns buf. */
char   *yk__desc_text(const yk_desc *d, char *buf, size_t n);
enum { YK__DESC_TEXT = 128 };
/* Check dtype, rank and dims (unknown allowed if `partial`); overflow of the byte count is an error too. */
yk_code yk__shape_check(yk_dtype t, const yk_shape *s, int partial) YK_CHECKED;

/* NumPy broadcasting of two shapes; unknown with known>1 gives known, unknown with 1 gives unknown. EINVAL names both shapes. */
yk_code yk__shape_broadcast(const yk_desc *a, const yk_desc *b, yk_desc *out) YK_CHECKED;
/* Merge two descriptions of one value: unknown takes the other; contradiction is EINVAL. */
yk_code yk__shape_merge(const yk_desc *a, const yk_desc *b, yk_desc *out) YK_CHECKED;

/* Is the caller's tensor `what` of this dtype and shape, -1 standing for any number? Else EINVAL with both; NULL too. */
yk_code yk__tensor_want(const char *what, const yk_tensor *t, yk_dtype dtype, yk_shape shape) YK_CHECKED;

/* yk_tensor_new() whose elements are not set yet: for who fills all of them. */
yk_code yk__tensor_unset(yk_dtype dtype, yk_shape shape, yk_tensor **out) YK_CHECKED;

/* Lent elements (yk_tensor_wrap() without a release) are from now on those at `data`. For the only owner, while nobody reads them. */
void yk__tensor_look_at(yk_tensor *t, const void *data);

/* Elements as doubles, in bulk: round to nearest even for f16/bf16; integers saturate, NaN becomes 0; bool is != 0. */
void yk__to_double(yk_dtype t, const void *src, double *dst, int64_t n);
void yk__from_double(yk_dtype t, const double *src, void *dst, int64_t n);

#endif
