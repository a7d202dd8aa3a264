/*
 * histogram.c - fills buckets, and writes those that say something.
 *
 * Numbers are added in order, in double, so that sums are the same on every machine.
 */
#include "store/histogram.h"
#include <float.h>
#include <math.h>

enum { HALF = (YK__BUCKETS - 1) / 2 };

static void make_limits(yk_histogram *h) {
  double v = 1e-12;
  h->limit[HALF] = 0;
  for (int i = 1; i < HALF; i++, v *= 1.1) h->limit[HALF + i] = v;
  h->limit[YK__BUCKETS - 1] = DBL_MAX;
  for (int i = 1; i <= HALF; i++) h->limit[HALF - i] = -h->limit[HALF + i];
}

/* The first bucket whose limit is above v; the last one takes the greatest number there is, too. */
static int bucket_of(const yk_histogram *h, double v) {
  int lo = 0, hi = YK__BUCKETS - 1;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (h->limit[mid] > v) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

int64_t yk__histogram_fill(yk_histogram *h, const yk_tensor *t) {
  int64_t n = yk_tensor_count(t);
  *h = (yk_histogram){ .min = DBL_MAX, .max = -DBL_MAX };
  make_limits(h);
  for (int64_t i = 0; i < n; i++) {
    double v = yk_tensor_at(t, i);
    if (!isfinite(v)) return i;
    h->count[bucket_of(h, v)] += 1;
    if (v < h->min) h->min = v;
    if (v > h->max) h->max = v;
    h->num += 1;
    h->sum += v;
    h->sum_squares += v * v;
  }
  return -1;
}

/* Runs of empty buckets become one, in place: a bucket is never written behind where it is read. */
static size_t join_empty(yk_histogram *h) {
  size_t n = 0;
  for (size_t i = 0; i < YK__BUCKETS; i++, n++) {
    while (h->count[i] == 0 && i + 1 < YK__BUCKETS && h->count[i + 1] == 0) i++;
    h->limit[n] = h->limit[i];
    h->count[n] = h->count[i];
  }
  return n;
}

void yk__histogram_put(yk_histogram *h, yk_str *out) {
  const double told[] = { h->min, h->max, h->num, h->sum, h->sum_squares };
  for (uint32_t i = 0; i < 5; i++)
    if (told[i] != 0 || signbit(told[i])) yk__proto_double(out, i + 1, told[i]);
  size_t n = join_empty(h);
  yk__proto_doubles(out, 6, h->limit, n);
  yk__proto_doubles(out, 7, h->count, n);
}
