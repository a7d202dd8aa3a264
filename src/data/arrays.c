/*
 * arrays.c - examples from arrays in memory or in files.
 *
 * An example that lies in one piece is read into the end of its place and converted from front to back, so no other memory is
 * needed: what was stored is never wider than what it becomes. Labels are an exception; they are few, and counted, so they are
 * brought into memory as i32 when the set is opened.
 */
#include "data/arrays.h"

#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

typedef struct yk_arrays { uint32_t n; yk_column column[YK_MAX_COMPONENTS]; } yk_arrays;

/* ---- numbers ---- */

static const struct { int64_t bytes; yk_dtype dtype; const char *name; } kinds[] = {
  [YK_S_U8] = { 1, YK_U8, "u8" },    [YK_S_I8] = { 1, YK_I32, "i8" },    [YK_S_I16] = { 2, YK_I32, "i16" }, [YK_S_U16] = { 2, YK_I32, "u16" },
  [YK_S_I32] = { 4, YK_I32, "i32" }, [YK_S_U32] = { 4, YK_I64, "u32" },  [YK_S_I64] = { 8, YK_I64, "i64" }, [YK_S_F16] = { 2, YK_F16, "f16" },
  [YK_S_F32] = { 4, YK_F32, "f32" }, [YK_S_F64] = { 8, YK_F64, "f64" },  [YK_S_BOOL] = { 1, YK_BOOL, "bool" },
};

int64_t yk__stored_bytes(yk_stored s) {
  return kinds[s].bytes;
}

yk_dtype yk__stored_dtype(yk_stored s) {
  return kinds[s].dtype;
}

/* The stored number at p, in this machine's order. */
static void load(const yk_array *a, const uint8_t *p, uint8_t word[8]) {
  int64_t n = kinds[a->stored].bytes;
  if (a->swapped) for (int64_t i = 0; i < n; i++) word[i] = p[n - 1 - i];
  else memcpy(word, p, (size_t)n);
}

static int64_t whole(yk_stored s, const uint8_t word[8]) {
  switch (s) {
    case YK_S_I8: { int8_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_I16: { int16_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_U16: { uint16_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_I32: { int32_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_U32: { uint32_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_I64: { int64_t v; memcpy(&v, word, sizeof v); return v; }
    case YK_S_BOOL: return word[0] != 0;
    default: return word[0];
  }
}

/* A stored number becomes a tensor's: p may lie in `to`, not before it. */
static void convert(const yk_array *a, const uint8_t *p, uint8_t *to) {
  uint8_t word[8];
  load(a, p, word);
  switch (a->stored) {
    case YK_S_I8: case YK_S_I16: case YK_S_U16: { int32_t v = (int32_t)whole(a->stored, word); memcpy(to, &v, sizeof v); return; }
    case YK_S_U32: { int64_t v = whole(a->stored, word); memcpy(to, &v, sizeof v); return; }
    case YK_S_BOOL: *to = word[0] != 0; return;
    default: memcpy(to, word, (size_t)kinds[a->stored].bytes);
  }
}

/* Stored numbers are a tensor's numbers. */
static bool plain(const yk_array *a) {
  return !a->swapped && a->stored != YK_S_BOOL && kinds[a->stored].bytes == (int64_t)yk_dtype_bytes(kinds[a->stored].dtype);
}

int64_t yk__array_bytes(const yk_array *a) {
  int64_t n = kinds[a->stored].bytes;
  for (int k = 0; k < a->rank; k++)
    if (a->dim[k] < 0 || __builtin_mul_overflow(n, a->dim[k], &n) || n > (int64_t)1 << 62) return -1;
  return n;
}

yk_code yk__array_load(yk_array *a) {
  int64_t bytes = yk__array_bytes(a);
  if (a->data != NULL) return YK_OK;
  a->block = yk__alloc((size_t)bytes + 1);
  if (a->block == NULL) return YK_FAIL(ENOMEM, "no memory for the %" PRId64 " bytes of '%s'", bytes, a->file.path);
  YK_TRY(yk__file_read(&a->file, a->at, a->block, bytes));
  a->data = a->block;
  yk__file_rest(&a->file);
  return YK_OK;
}

void yk__array_close(yk_array *a) {
  yk__file_close(&a->file);
  yk__free(a->block);
  yk_tensor_free(a->tensor);
  *a = (yk_array){ 0 };
}

/* ---- one example ---- */

static int64_t count_of(const yk_array *a) {
  int64_t n = 1;
  for (int k = 1; k < a->rank; k++) n *= a->dim[k];
  return n;
}

/* Fortran order: number (i, j, k...) lies at i + dim0 * (j + dim1 * (k + ...)). The last index runs fastest in what comes out. */
static void gather(const yk_array *a, int64_t i, uint8_t *to) {
  int64_t stride[YK_MAX_RANK], index[YK_MAX_RANK] = { 0 }, n = count_of(a), at = i * kinds[a->stored].bytes;
  size_t wide = yk_dtype_bytes(kinds[a->stored].dtype);
  stride[0] = kinds[a->stored].bytes;
  for (int k = 1; k < a->rank; k++) stride[k] = stride[k - 1] * a->dim[k - 1];
  for (int64_t done = 0; done < n; done++, to += wide) {
    convert(a, a->data + at, to);
    for (int k = a->rank - 1; k > 0; k--) {
      at += stride[k];
      if (++index[k] < a->dim[k]) break;
      at -= stride[k] * a->dim[k];
      index[k] = 0;
    }
  }
}

static yk_code read_array(const yk_array *a, int64_t i, uint8_t *to) {
  int64_t n = count_of(a), narrow = kinds[a->stored].bytes;
  int64_t wide = (int64_t)yk_dtype_bytes(kinds[a->stored].dtype);
  const uint8_t *from = a->data != NULL ? a->data + i * n * narrow : to + n * (wide - narrow);
  if (a->columns) {
    gather(a, i, to);
    return YK_OK;
  }
  if (a->data == NULL) YK_TRY(yk__file_read(&a->file, a->at + i * n * narrow, to + n * (wide - narrow), n * narrow));
  if (!plain(a))
    for (int64_t k = 0; k < n; k++) convert(a, from + k * narrow, to + k * wide);
  else if (a->data != NULL)
    memcpy(to, from, (size_t)(n * wide));
  return YK_OK;
}

static yk_code read_one(const yk_dataset *d, int64_t i, void *const *out) {
  const yk_arrays *s = d->self;
  for (uint32_t k = 0; k < s->n; k++) YK_TRY(read_array(&s->column[k].array, i, out[k]));
  return YK_OK;
}

static int32_t label_of(const yk_dataset *d, int64_t i) {
  const yk_arrays *s = d->self;
  return d->label >= 0 ? ((const int32_t *)(const void *)s->column[d->label].array.data)[i] : -1;
}

static void close_all(yk_dataset *d) {
  yk_arrays *s = d->self;
  for (uint32_t k = 0; s != NULL && k < s->n; k++) yk__array_close(&s->column[k].array);
  yk__free(s);
}

static const yk_reader reader = { .read = read_one, .label = label_of, .close = close_all };

/* ---- labels ---- */

static const char *where(const yk_column *c) {
  return c->array.file.path != NULL ? c->array.file.path : c->name;
}

static bool is_whole(const yk_array *a) {
  return a->stored <= YK_S_I64 || a->stored == YK_S_BOOL;
}

static yk_code bad_label(const yk_column *c, int64_t i, int64_t v, int64_t classes) {
  const yk_array *a = &c->array;
  int64_t limit = classes > 0 ? classes : INT32_MAX;
  if (a->file.path == NULL)
    return YK_FAIL(EINVAL, "label %" PRId64 " of example %" PRId64 " is not 0 to %" PRId64, v, i, limit - 1);
  return YK_FAIL(ECORRUPT, "'%s': label %" PRId64 " of record %" PRId64 " (offset %" PRId64 ") is not 0 to %" PRId64,
                 a->file.path, v, i,
                 a->at + i * kinds[a->stored].bytes, limit - 1);
}

/* The labels as i32, in memory; *classes becomes one more than the highest, unless it was given. */
static yk_code take_labels(yk_column *c, int64_t *classes) {
  yk_array *a = &c->array;
  int64_t n = a->dim[0], bytes = kinds[a->stored].bytes, highest = 0;
  YK_TRY(yk__array_load(a));
  int32_t *label = yk__alloc((size_t)n * sizeof *label);
  if (label == NULL) return YK_ENOMEM;
  for (int64_t i = 0; i < n; i++) {
    uint8_t word[8];
    load(a, a->data + i * bytes, word);
    int64_t v = whole(a->stored, word);
    if (v < 0 || v >= (*classes > 0 ? *classes : INT32_MAX)) {
      yk__free(label);
      return bad_label(c, i, v, *classes);
    }
    if (v > highest) highest = v;
    label[i] = (int32_t)v;
  }
  if (*classes == 0) *classes = highest + 1;
  yk__free(a->block);
  yk_tensor_free(a->tensor);
  a->tensor = NULL;
  a->block = label;
  a->data = (const uint8_t *)label;
  a->stored = YK_S_I32;
  a->swapped = a->columns = false;
  return YK_OK;
}

/* ---- a set of them ---- */

/* What "x" and "y" are. */
static void find_meaning(yk_column *c) {
  yk_array *a = &c->array;
  bool x = strcmp(c->name, "x") == 0, image = x || strcmp(c->name, "image") == 0, y = strcmp(c->name, "y") == 0;
  if (image && a->stored == YK_S_U8 && a->rank == 3 && a->dim[1] > 0 && a->dim[2] > 0) a->dim[a->rank++] = 1;
  if (x && a->stored == YK_S_U8 && a->rank == 4) memcpy(c->name, "image", sizeof "image");
  if ((y || strcmp(c->name, "label") == 0) && is_whole(a) && a->rank == 2 && a->dim[1] == 1) a->rank = 1;
  if (y && is_whole(a) && a->rank == 1) memcpy(c->name, "label", sizeof "label");
}

/* An image with one channel got a dimension at its end, which Fortran order does not mind either. */
static yk_code add_column(yk_dataset *d, yk_column *c) {
  const yk_array *a = &c->array;
  yk_code wrong = a->file.path != NULL ? YK_ECORRUPT : YK_EINVAL;
  yk_desc one = { .dtype = (uint8_t)kinds[a->stored].dtype, .rank = (uint8_t)(a->rank - 1) };
  for (int k = 1; k < a->rank; k++) {
    one.dim[k - 1] = a->dim[k];
    if (a->dim[k] < 1) return yk__fail(wrong, __FILE__, __LINE__, "'%s' has a dimension of 0: there is nothing in it", where(c));
  }
  if (a->dim[0] < 1) return yk__fail(wrong, __FILE__, __LINE__, "'%s' holds no examples", where(c));
  if (d->n == 0) d->n = a->dim[0];
  if (a->dim[0] != d->n)
    return yk__fail(wrong, __FILE__, __LINE__, "'%s' has %" PRId64 " examples of '%s', but there are %" PRId64 " of '%s'",
                    where(c), a->dim[0],
                    c->name, d->n, d->component_name[0]);
  if (strcmp(c->name, "label") == 0 && one.rank == 0 && is_whole(a)) {
    YK_TRY(take_labels(c, &d->nclasses));
    one.dtype = YK_I32;
  }
  return yk__dataset_add(d, c->name, &one);
}

yk_code yk__arrays_take(const char *name, uint32_t n, yk_column *column, const yk_dataset_options *o, yk_split split,
                        yk_dataset **out) {
  yk_dataset *d = NULL;
  yk_arrays *s = NULL;
  yk_code rc = yk__dataset_new(name, &reader, &d);
  if (rc == YK_OK) {
    s = d->self = yk__calloc(1, sizeof *s);
    d->nclasses = o != NULL ? o->classes : 0;
    rc = s != NULL ? YK_OK : YK_ENOMEM;
  }
  for (uint32_t k = 0; k < n; k++) {
    if (rc == YK_OK && k >= YK_MAX_COMPONENTS)
      rc = YK_FAIL(EINVAL, "an example has at most %d components, not %u", YK_MAX_COMPONENTS, n);
    if (rc != YK_OK) {
      yk__array_close(&column[k].array);
      continue;
    }
    yk_column *c = &s->column[s->n++];
    *c = column[k];
    find_meaning(c);
    rc = add_column(d, c);
  }
  if (rc == YK_OK) rc = yk__dataset_seal(d, o, split);
  if (rc == YK_OK && d->label < 0) d->nclasses = 0;
  if (rc == YK_OK) *out = d;
  else yk_dataset_free(d);
  return rc;
}

static yk_code take_tensor(const char *name, yk_tensor *t, yk_column *c) {
  static const yk_stored of[YK_NDTYPES] = { [YK_F32] = YK_S_F32, [YK_F64] = YK_S_F64, [YK_F16] = YK_S_F16, [YK_I32] = YK_S_I32,
                                           [YK_I64] = YK_S_I64,
                                            [YK_U8] = YK_S_U8, [YK_BOOL] = YK_S_BOOL };
  const yk_desc *d = yk_tensor_desc(t);
  if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof c->name)
    return YK_FAIL(EINVAL, "a component's name has 1 to %zu characters", sizeof c->name - 1);
  if (d->rank == 0) return YK_FAIL(EINVAL, "tensor '%s' is a scalar; its first dimension counts the examples", name);
  if (d->dtype == YK_BF16) return YK_FAIL(EUNSUPPORTED, "tensor '%s' is bf16, which data sets do not keep; use f32", name);
  *c = (yk_column){ .array = { .stored = of[d->dtype], .rank = d->rank, .tensor = t, .data = yk_tensor_data(t) } };
  memcpy(c->array.dim, d->dim, sizeof d->dim);
  memcpy(c->name, name, strlen(name) + 1);
  return YK_OK;
}

yk_code yk_dataset_tensors(uint32_t n, const char *const *name, yk_tensor *const *tensor, yk_dataset **out) {
  yk_column column[YK_MAX_COMPONENTS];
  if (name == NULL || tensor == NULL || out == NULL)
    return YK_FAIL(EINVAL, "yk_dataset_tensors needs names, tensors and a place for the result");
  if (n < 1 || n > YK_MAX_COMPONENTS) return YK_FAIL(EINVAL, "an example has 1 to %d components, not %u", YK_MAX_COMPONENTS, n);
  for (uint32_t k = 0; k < n; k++) {
    if (tensor[k] == NULL) return YK_FAIL(EINVAL, "tensor %u is NULL", k);
    YK_TRY(take_tensor(name[k], tensor[k], &column[k]));
  }
  for (uint32_t k = 0; k < n; k++) yk_tensor_ref(tensor[k]);
  return yk__arrays_take("tensors", n, column, NULL, YK_TRAIN, out);
}
