/*
 * tensor.h - dtypes, shapes, descriptors, and tensors in host memory.
 *
 * A host tensor is dense, row-major and reference counted; it is what goes into
 * a step (feeds) and what comes out (fetches). It knows nothing of devices.
 */
#ifndef YK_TENSOR_H
#define YK_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { YK_MAX_RANK = 8 };         /* dimensions a tensor has at most */

/* YK_NONE marks a value that carries no data: the handle of an operation such as an update or a group. */
typedef enum yk_dtype {
  YK_NONE = 0, YK_F32 = 1, YK_F64, YK_F16, YK_BF16, YK_I32, YK_I64, YK_U8, YK_BOOL,
  YK_NDTYPES
} yk_dtype;

typedef struct yk_desc {           /* what a tensor looks like, not where it is */
  uint8_t  dtype;                  /* yk_dtype */
  uint8_t  rank;
  uint16_t layout;                 /* 0 = dense row-major; see device.h for others */
  int64_t  dim[YK_MAX_RANK];       /* -1 = not known yet (only while building a graph); unused ones are 0 */
} yk_desc;

/* Dimensions without a dtype; made by the macros below. */
typedef struct yk_shape { uint32_t rank; int64_t dim[YK_MAX_RANK]; } yk_shape;

/* YK_SHAPE(128, 24, 24, 3); -1 is an unknown dimension. YK_SCALAR is rank 0. More than 8 dims do not compile. */
#define YK_SHAPE(...)                                                              \
  ((yk_shape){ (uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),   \
               { __VA_ARGS__ } })
#define YK_SCALAR ((yk_shape){ 0, { 0 } })

/* Bytes of one element (0 for YK_NONE or an unknown number); "f32", "bf16", ...; the reverse (YK_NONE if unknown). Any thread. */
size_t      yk_dtype_bytes(yk_dtype t);
const char *yk_dtype_name(yk_dtype t);
yk_dtype    yk_dtype_parse(const char *name);

typedef struct yk_tensor yk_tensor;

/* A new tensor, zero-filled; or a copy of `data` (product of dims elements of `dtype`). Every dim must be >= 0.
 * Errors: EINVAL (dtype, shape), ENOMEM. *out belongs to the caller: yk_tensor_free(). */
yk_code yk_tensor_new(yk_dtype dtype, yk_shape shape, yk_tensor **out) YK_CHECKED;
yk_code yk_tensor_from(yk_dtype dtype, yk_shape shape, const void *data, yk_tensor **out) YK_CHECKED;
/* Lend memory instead of copying: `data` stays the caller's until release(data, arg) is called (release may be NULL). */
yk_code yk_tensor_wrap(yk_dtype dtype, yk_shape shape, void *data, void (*release)(void *data, void *arg), void *arg,
                       yk_tensor **out) YK_CHECKED;

/* One more owner of the same storage; thread-safe. yk_tensor_free drops one owner; NULL is fine. */
yk_tensor *yk_tensor_ref(yk_tensor *t);
void       yk_tensor_free(yk_tensor *t);

/* Borrowed views, valid while the tensor lives. */
const yk_desc *yk_tensor_desc(const yk_tensor *t);
void          *yk_tensor_data(const yk_tensor *t);
int64_t        yk_tensor_count(const yk_tensor *t);       /* elements */
size_t         yk_tensor_bytes(const yk_tensor *t);
/* Element `index` (row-major) as double, any dtype; NaN when out of range. */
double         yk_tensor_at(const yk_tensor *t, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
