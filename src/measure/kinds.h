/*
 * kinds.h - the different kernels of a plan, each with the time that it takes on its device.
 *
 * Two launches are of one kind if they compute the same on tensors of the same shape, type and layout with the same kernel, on
 * devices that have equally many cores of one driver. Kernels that touch host objects, such as a queue, have no time here.
 */
#ifndef YK_MEASURE_KINDS_H
#define YK_MEASURE_KINDS_H

#include "run/run.h"

typedef struct yk_kinds yk_kinds;

/* Time all kinds of the plan on memory of their own, in about `seconds`. ENOMEM: there is not enough of it beside what is in use. */
yk_code  yk__kinds_measure(yk_session *s, const yk_plan *p, double seconds, yk_kinds **out) YK_CHECKED;
void     yk__kinds_free(yk_kinds *k);
/* Of instruction i, in seconds; < 0: it is no launch, or could not be timed. */
double   yk__kind_seconds(const yk_kinds *k, uint32_t i);
/* How many kinds there are; *without: those that have no time. */
uint32_t yk__kinds_count(const yk_kinds *k, uint32_t *without);

#endif
