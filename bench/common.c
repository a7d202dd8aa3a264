/*
 * common.c - clock, statistics and output of the benchmark programs.
 *
 * Peak memory comes from VmHWM, not from getrusage: that one carries over the
 * size of whatever process forked this one.
 */
#include "common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double bench_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Start of this process since boot, from field 22 of /proc/self/stat; the name in field 2 may hold blanks. */
static double started_by_kernel_ms(void) {
  char line[1024];
  FILE *f = fopen("/proc/self/stat", "r");
  size_t n = f != NULL ? fread(line, 1, sizeof line - 1, f) : 0;
  if (f != NULL) fclose(f);
  line[n] = '\0';
  const char *p = strrchr(line, ')');
  for (int field = 2; p != NULL && field < 22; field++) p = strchr(p + 1, ' ');
  return p != NULL ? strtod(p, NULL) * 1e3 / (double)sysconf(_SC_CLK_TCK) : 0;
}

double bench_age_ms(void) {
  const char *text = getenv("YOKE_BENCH_STARTED_NS");
  struct timespec t;
  if (text != NULL) return bench_now_ms() - strtod(text, NULL) * 1e-6;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6 - started_by_kernel_ms();
}

static double status_mib(const char *key) {
  char line[256];
  double kib = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, key, strlen(key)) == 0) kib = strtod(line + strlen(key), NULL);
  if (f != NULL) fclose(f);
  return kib / 1024;
}

double bench_peak_mib(void) { return status_mib("VmHWM:"); }
double bench_rss_mib(void) { return status_mib("VmRSS:"); }

int bench_times_add(bench_times *t, double ms) {
  if (t->n == t->room) {
    size_t room = t->room != 0 ? t->room * 2 : 256;
    double *at = realloc(t->at, room * sizeof *at);
    if (at == NULL) return -1;
    t->at = at;
    t->room = room;
  }
  t->at[t->n++] = ms;
  return 0;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

bench_stats bench_times_stats(bench_times *t) {
  if (t->n == 0) return (bench_stats){ 0, 0, 0 };
  qsort(t->at, t->n, sizeof *t->at, ascending);
  double median = t->n % 2 != 0 ? t->at[t->n / 2] : (t->at[t->n / 2 - 1] + t->at[t->n / 2]) / 2;
  return (bench_stats){ median, t->at[0], t->at[t->n - 1] };
}

void bench_times_free(bench_times *t) {
  free(t->at);
  *t = (bench_times){ 0 };
}

void bench_fill(float *at, size_t n) {
  uint32_t s = 12345;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    at[i] = (float)(s >> 8) / (float)(1 << 24) - 0.5f;
  }
}

void bench_print(const bench_result *r) {
  size_t steps = r->times->n;
  bench_stats s = bench_times_stats(r->times);
  printf("{\"contender\":\"%s\",\"model\":\"%s\",\"batch\":%lld,\"threads\":%d,\"steps\":%zu,", r->contender, r->model,
         (long long)r->batch, r->threads, steps);
  printf("\"median_ms\":%.6f,\"min_ms\":%.6f,\"max_ms\":%.6f,", s.median, s.min, s.max);
  printf("\"first_step_ms\":%.1f,\"peak_mib\":%.1f", r->first_step_ms, bench_peak_mib());
  if (!isnan(r->loss)) printf(",\"loss\":%.6g", r->loss);
  printf("%s}\n", r->more);
}

double bench_number(const char *text, double fallback) {
  char *end = NULL;
  if (text == NULL) return fallback;
  double v = strtod(text, &end);
  return end != text && *end == '\0' && v > 0 ? v : (double)NAN;
}
