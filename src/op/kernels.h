/*
 * kernels.h - which operation a driver has kernels for, found out by asking it.
 *
 * Nothing is launched: each case of an operation is prepared on an open device, as
 * the planner would, and given back.
 */
#ifndef YK_OP_KERNELS_H
#define YK_OP_KERNELS_H

#include <stdbool.h>
#include <yoke/op.h>

/* Dtypes, as YK_T() bits, for which all cases have a kernel; for which only some have. */
typedef struct yk_support { uint32_t all, some; } yk_support;

/* dev: opened by `driver`. */
yk_support yk__kernel_support(const yk_driver *driver, yk_dev *dev, const yk_op *op);
/* What the first typed port accepts. */
uint32_t yk__op_dtypes(const yk_op *op);

#endif
