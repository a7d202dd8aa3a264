/*
 * ref.h - values between their dtype and double, and what the ports of an op tell.
 *
 * Private to the reference driver. Conversions follow the library's rules: halves round to nearest even,
 * integers saturate and take NaN as 0, bool is "not zero".
 */
#ifndef YK_BACKEND_REF_H
#define YK_BACKEND_REF_H

#include <yoke/op.h>
#include <yoke/op_attrs.h>

int64_t  yk__ref_count(const yk_desc *d);                                  /* elements of a known description */
void     yk__ref_widen(uint8_t dtype, const void *src, double *dst, int64_t n);
void     yk__ref_round(uint8_t dtype, const double *src, void *dst, int64_t n);
int      yk__ref_is_written(const yk_op *op, const yk_kernel_spec *spec, uint32_t input);   /* a YK_PORT_WRITE port? */
uint64_t yk__ref_memory(void);                                             /* bytes of this machine */

#endif
