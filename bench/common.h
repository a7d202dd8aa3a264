/*
 * common.h - what the benchmark programs share: the clock, the statistics, and the one line of JSON they print.
 *
 * Every contender, in C or Python, prints the same keys, so that bench/run needs to know none of them. Times are in
 * milliseconds; the first step counts from the start of the process.
 */
#ifndef YK_BENCH_COMMON_H
#define YK_BENCH_COMMON_H

#include <stdint.h>
#include <stddef.h>

typedef struct bench_times { double *at; size_t n, room; } bench_times;   /* in ms; {0} = empty */

typedef struct bench_stats { double median, min, max; } bench_stats;

/* Monotonic clock. */
double bench_now_ms(void);
/* Milliseconds since this process was started: from YOKE_BENCH_STARTED_NS (the monotonic clock as whoever started it read it), else
 * from the kernel, whose clock ticks only every 10 ms. */
double bench_age_ms(void);
/* Highest resident memory of this process so far, MiB; 0 if the kernel does not tell. */
double bench_peak_mib(void);

/* Resident memory of this process now, MiB; 0 if the kernel does not tell. */
double bench_rss_mib(void);

/* 0, or -1 when memory ran out. */
int bench_times_add(bench_times *t, double ms);
/* Of all times; sorts them. All zero if there are none. */
bench_stats bench_times_stats(bench_times *t);
void bench_times_free(bench_times *t);

/* Numbers from a fixed seed, even in [-0.5, 0.5): the pictures everybody gets. */
void bench_fill(float *at, size_t n);

typedef struct bench_result {
  const char *contender, *model;
  int64_t batch;
  int threads;
  bench_times *times;
  double first_step_ms;       /* from bench_age_ms() right after the first step */
  double loss;                /* of the last step; NaN = none */
  const char *more;           /* further members, as ",\"lrn\":\"c\""; "" = none */
} bench_result;

/* One line of JSON on stdout. */
void bench_print(const bench_result *r);

/* The number in a text, or fallback if text is NULL; NaN if it is no number above 0. */
double bench_number(const char *text, double fallback);

#endif
