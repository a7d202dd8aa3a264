/*
 * repeat.c - medians of repeated work, and short names.
 *
 * A median, since a shared machine now and then takes a core away: one late run out of five then changes nothing.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"
#include "measure/measure.h"

#define PATIENCE 1.0                                 /* seconds: on a machine that is busy with others, few runs must do */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double yk__median(double *x, size_t n) {
  qsort(x, n, sizeof *x, compare);
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

yk_code yk__repeat(yk_code (*once)(void *arg), void *arg, uint32_t least, uint32_t most, double seconds, double *median,
                   uint32_t *runs) {
  double took[YK__SAMPLES];
  uint32_t n = 0;
  uint64_t start = yk__now_ns(), now = start;
  while (n < most && n < YK__SAMPLES) {
    double over = (double)(now - start) * 1e-9;
    if (n > 0 && over >= seconds && (n >= least || over >= seconds + PATIENCE)) break;
    uint64_t before = yk__now_ns();
    YK_TRY(once(arg));
    now = yk__now_ns();
    took[n++] = (double)(now > before ? now - before : 1) * 1e-9;      /* a clock too coarse must not give an infinite speed */
  }
  *median = yk__median(took, n);
  *runs = n;
  return YK_OK;
}

const char *yk__short_name(const char *name, char buf[YK__SHORT_BYTES]) {
  const char *at = strrchr(name, ':');
  while (at != NULL && at > name && at[-1] != ':' && at[-1] != '/') at--;
  snprintf(buf, YK__SHORT_BYTES, "/%.22s", at != NULL ? at : name);
  for (char *p = buf; *p != '\0'; p++) *p = (char)tolower((unsigned char)*p);
  return buf;
}
