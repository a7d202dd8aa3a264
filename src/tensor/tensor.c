/*
 * tensor.c - tensors in host memory, reference counted.
 *
 * Header and elements are two allocations, because the elements may be lent by
 * the caller and want an alignment of their own (64 bytes, a cache line).
 */
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/desc.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { ALIGN = 64 };

struct yk_tensor {
  _Atomic uint32_t refs;
  yk_desc desc;
  int64_t count;
  size_t bytes;
  void *data;
  void (*release)(void *data, void *arg);
  void *arg;
};

static void release_own(void *data, void *arg) {
  (void)arg;
  yk__free(data);
}

/* A header for `data`, with one owner. */
static yk_code make(yk_dtype dtype, yk_shape shape, void *data, void (*release)(void *data, void *arg), void *arg,
                    yk_tensor **out) {
  yk_tensor *t = yk__alloc(sizeof *t);
  if (!t) return YK_ENOMEM;
  atomic_init(&t->refs, 1);
  t->desc = yk__desc(dtype, shape);
  t->count = yk__desc_count(&t->desc);
  t->bytes = (size_t)t->count * yk_dtype_bytes(dtype);
  t->data = data;
  t->release = release;
  t->arg = arg;
  *out = t;
  return YK_OK;
}

yk_code yk__tensor_unset(yk_dtype dtype, yk_shape shape, yk_tensor **out) {
  yk_desc d;
  void *data;
  yk_code rc;
  YK_TRY(yk__shape_check(dtype, &shape, 0));
  d = yk__desc(dtype, shape);
  data = yk__alloc_aligned((size_t)yk__desc_count(&d) * yk_dtype_bytes(dtype), ALIGN);
  if (!data) return YK_ENOMEM;
  rc = make(dtype, shape, data, release_own, NULL, out);
  if (rc) yk__free(data);
  return rc;
}

yk_code yk_tensor_new(yk_dtype dtype, yk_shape shape, yk_tensor **out) {
  yk_tensor *t;
  YK_TRY(yk__tensor_unset(dtype, shape, &t));
  memset(t->data, 0, t->bytes);
  *out = t;
  return YK_OK;
}

yk_code yk_tensor_from(yk_dtype dtype, yk_shape shape, const void *data, yk_tensor **out) {
  yk_tensor *t;
  YK_TRY(yk__shape_check(dtype, &shape, 0));
  if (!data) return YK_FAIL(EINVAL, "yk_tensor_from: data is NULL; yk_tensor_new() makes a tensor of zeros");
  YK_TRY(yk__tensor_unset(dtype, shape, &t));
  memcpy(t->data, data, t->bytes);
  *out = t;
  return YK_OK;
}

yk_code yk_tensor_wrap(yk_dtype dtype, yk_shape shape, void *data, void (*release)(void *data, void *arg), void *arg,
                       yk_tensor **out) {
  YK_TRY(yk__shape_check(dtype, &shape, 0));
  if (!data) return YK_FAIL(EINVAL, "yk_tensor_wrap: data is NULL");
  return make(dtype, shape, data, release, arg, out);
}

yk_tensor *yk_tensor_ref(yk_tensor *t) {
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

void yk_tensor_free(yk_tensor *t) {
  if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  if (t->release) t->release(t->data, t->arg);
  yk__free(t);
}

const yk_desc *yk_tensor_desc(const yk_tensor *t) {
  return &t->desc;
}

void *yk_tensor_data(const yk_tensor *t) {
  return t->data;
}

int64_t yk_tensor_count(const yk_tensor *t) {
  return t->count;
}

size_t yk_tensor_bytes(const yk_tensor *t) {
  return t->bytes;
}

double yk_tensor_at(const yk_tensor *t, int64_t index) {
  yk_dtype dtype = (yk_dtype)t->desc.dtype;
  double v;
  if (index < 0 || index >= t->count) return (double)NAN;
  yk__to_double(dtype, (const char *)t->data + (size_t)index * yk_dtype_bytes(dtype), &v, 1);
  return v;
}

yk_code yk__tensor_want(const char *what, const yk_tensor *t, yk_dtype dtype, yk_shape shape) {
  char have[YK__DESC_TEXT], want[YK__DESC_TEXT];
  const yk_desc d = yk__desc(dtype, shape);
  int fits = t != NULL && t->desc.dtype == dtype && t->desc.rank == shape.rank;
  for (uint32_t i = 0; fits && i < shape.rank; i++) fits = shape.dim[i] < 0 || shape.dim[i] == t->desc.dim[i];
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "%s: expected %s, got %s", what, yk__desc_text(&d, want, sizeof want),
                 t != NULL ? yk__desc_text(&t->desc, have, sizeof have) : "NULL");
}

void yk__tensor_look_at(yk_tensor *t, const void *data) { t->data = (void *)(uintptr_t)data; }
