/*
 * dtype.c - sizes and names of the element types.
 *
 * One table: what is added to yk_dtype is added here, and a test compares the
 * two. Names are the short ones that texts of plans and graphs use.
 */
#include <yoke/tensor.h>

#include <string.h>

static const struct { const char *name; size_t bytes; } types[YK_NDTYPES] = {
  [YK_NONE] = { "none", 0 }, [YK_F32] = { "f32", 4 }, [YK_F64] = { "f64", 8 }, [YK_F16] = { "f16", 2 }, [YK_BF16] = { "bf16", 2 },
  [YK_I32] = { "i32", 4 },   [YK_I64] = { "i64", 8 }, [YK_U8] = { "u8", 1 },   [YK_BOOL] = { "bool", 1 },
};

static int known(yk_dtype t) {
  int i = (int)t;
  return i >= 0 && i < (int)YK_NDTYPES;
}

size_t yk_dtype_bytes(yk_dtype t) {
  return known(t) ? types[t].bytes : 0;
}

const char *yk_dtype_name(yk_dtype t) {
  return known(t) ? types[t].name : "dtype?";
}

yk_dtype yk_dtype_parse(const char *name) {
  for (int i = 1; name && i < (int)YK_NDTYPES; i++) {
    if (strcmp(types[i].name, name) == 0) return (yk_dtype)i;
  }
  return YK_NONE;
}
