/*
 * histogram.h - counts of numbers between fixed limits that grow by a tenth each, from 1e-12 to 1e20 on both sides of zero.
 *
 * The limits, and the rule that runs of empty buckets are told as one, are those of the event files' readers.
 */
#ifndef YK_STORE_HISTOGRAM_H
#define YK_STORE_HISTOGRAM_H

#include <stdint.h>
#include "base/proto.h"
#include <yoke/tensor.h>

enum { YK__BUCKETS = 2 * (774 + 1) + 1 };

typedef struct yk_histogram {
  double limit[YK__BUCKETS];         /* bucket i: from limit[i-1] to below limit[i] */
  double count[YK__BUCKETS];
  double min, max, num, sum, sum_squares;
} yk_histogram;

/* All elements of a tensor. -1, or the index of the first one that is not finite. */
int64_t yk__histogram_fill(yk_histogram *h, const yk_tensor *t);
/* As fields of a HistogramProto. Counts are changed. */
void yk__histogram_put(yk_histogram *h, yk_str *out);

#endif
