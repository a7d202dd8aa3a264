/*
 * convert.c - widening to double and rounding back, and which inputs are written.
 *
 * Written for clarity, as everything in this driver. float and integers up to 2^53 pass through double unchanged;
 * a result is rounded once, also to the 16-bit formats, and NaN becomes 0 (false) where there is no NaN.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <yoke/half.h>
#include "ref.h"

int64_t yk__ref_count(const yk_desc *d) {
  int64_t n = 1;
  for (uint32_t i = 0; i < d->rank; i++) n *= d->dim[i];
  return n;
}

uint64_t yk__ref_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

#define EACH(statement) for (int64_t i = 0; i < n; i++) statement
void yk__ref_widen(uint8_t dtype, const void *src, double *dst, int64_t n) {
  switch (dtype) {
  case YK_F32:  EACH(dst[i] = (double)((const float *)src)[i]);                      break;
  case YK_F64:  EACH(dst[i] = ((const double *)src)[i]);                             break;
  case YK_F16:  EACH(dst[i] = (double)yk_f16_to_f32(((const uint16_t *)src)[i]));    break;
  case YK_BF16: EACH(dst[i] = (double)yk_bf16_to_f32(((const uint16_t *)src)[i]));   break;
  case YK_I32:  EACH(dst[i] = (double)((const int32_t *)src)[i]);                    break;
  case YK_I64:  EACH(dst[i] = (double)((const int64_t *)src)[i]);                    break;
  case YK_U8:   EACH(dst[i] = (double)((const uint8_t *)src)[i]);                    break;
  case YK_BOOL: EACH(dst[i] = ((const uint8_t *)src)[i] != 0 ? 1.0 : 0.0);           break;
  default: break;
  }
}

/* A float from which rounding to 16 bits gives what rounding x itself would: where x lies between two floats, the one with
 * an odd last bit, which no 16-bit format mistakes for a tie. */
static float to_odd(double x) {
  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isnan(x) || (double)f == x || (bits & 1)) return f;
  return nextafterf(f, x > (double)f ? INFINITY : -INFINITY);
}

static double within(double x, double lo, double hi) { return isnan(x) ? 0.0 : x < lo ? lo : x > hi ? hi : x; }

/* 2^63 is a double, 2^63-1 is not: what reaches it saturates. */
static int64_t to_i64(double x) {
  if (isnan(x)) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  return x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}

void yk__ref_round(uint8_t dtype, const double *src, void *dst, int64_t n) {
  switch (dtype) {
  case YK_F32:  EACH(((float *)dst)[i] = (float)src[i]);                                        break;
  case YK_F64:  EACH(((double *)dst)[i] = src[i]);                                              break;
  case YK_F16:  EACH(((uint16_t *)dst)[i] = yk_f32_to_f16(to_odd(src[i])));                      break;
  case YK_BF16: EACH(((uint16_t *)dst)[i] = yk_f32_to_bf16(to_odd(src[i])));                     break;
  case YK_I32:  EACH(((int32_t *)dst)[i] = (int32_t)within(src[i], INT32_MIN, INT32_MAX));      break;
  case YK_I64:  EACH(((int64_t *)dst)[i] = to_i64(src[i]));                                     break;
  case YK_U8:   EACH(((uint8_t *)dst)[i] = (uint8_t)within(src[i], 0, UINT8_MAX));              break;
  case YK_BOOL: EACH(((uint8_t *)dst)[i] = !isnan(src[i]) && src[i] != 0);                     break;
  default: break;
  }
}

/* Inputs that the variadic port at `port` takes: n of a merged update, else all that the other ports leave. */
static uint32_t port_width(const yk_op *op, const yk_kernel_spec *spec, const yk_port *port) {
  if (!(port->flags & YK_PORT_VARIADIC)) return 1;
  if (op->traits & YK_MERGE) {
    uint32_t n = 0;
    if (spec->attrs) memcpy(&n, spec->attrs, sizeof n);
    return n ? n : 1;
  }
  uint32_t others = 0;
  for (const yk_port *p = op->in; p->name; p++) others += p != port;
  return spec->nin > others ? spec->nin - others : 0;
}

int yk__ref_is_written(const yk_op *op, const yk_kernel_spec *spec, uint32_t input) {
  uint32_t first = 0;
  for (const yk_port *p = op->in; p && p->name; p++) {
    first += port_width(op, spec, p);
    if (input < first) return (p->flags & YK_PORT_WRITE) != 0;
  }
  return 0;
}
