/*
 * devices_bench.c - `yoke devices --bench`: every device measured, the fastest first.
 *
 * It takes a few seconds a device. A number that a device cannot give is "-" with the reason under the table, null in JSON.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "base/alloc.h"
#include "cli/devices.h"
#include "measure/measure.h"

/* In the order of yk_bench_what: key in JSON, unit there and what a value is divided by for it. */
static const struct { const char *key, *title, *unit, *size_key; double scale; } kinds[YK__NBENCH] = {
  { "f32", "products in f32", "GFLOP/s", "side", 1e9 }, { "bf16", "products in bf16", "GFLOP/s", "side", 1e9 },
  { "memory", "memory", "GB/s", "bytes", 1e9 }, { "training", "training step", "images/s", "batch", 1 },
};

/* What goes on, where somebody may be waiting. */
static void tell(const char *device, const char *what) {
  char name[YK__SHORT_BYTES];
  if (!isatty(STDERR_FILENO)) return;
  if (device == NULL) fputs("\r\033[K", stderr);
  else fprintf(stderr, "\r%s: %s ...\033[K", yk__short_name(device, name), what);
  fflush(stderr);
}

static int measure(yk_session *s, const yk_session_options *options, size_t n, yk_bench *b) {
  for (size_t i = 0; i < n; i++) {
    yk_code rc = yk_session_device(s, i, &b[i].device);
    if (rc != YK_OK) return yk__die_code(rc);
    for (int k = 0; k < YK__NBENCH; k++) {
      tell(b[i].device.name, kinds[k].title);
      yk__bench(options, b[i].device.name, (yk_bench_what)k, &b[i].of[k]);
    }
  }
  tell(NULL, NULL);
  return 0;
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void put_number(const yk_number *x, double scale, int width) {
  if (x->measured) printf("  %*.1f", width, x->value / scale);
  else printf("  %*s", width, "-");
}

static void put_text(size_t n, const yk_bench *b, const size_t *order) {
  char name[YK__SHORT_BYTES];
  printf("rank  %-8s  f32 GFLOP/s  bf16 GFLOP/s      GB/s  images/s  of the fastest\n", "device");
  for (size_t r = 0; r < n; r++) {
    const yk_bench *d = &b[order[r]];
    double share = yk__bench_share(n, b, order[r]);
    printf("%-4zu  %-8s", r + 1, yk__short_name(d->device.name, name));
    put_number(&d->of[YK__BENCH_F32], 1e9, 11);
    put_number(&d->of[YK__BENCH_BF16], 1e9, 12);
    put_number(&d->of[YK__BENCH_MEMORY], 1e9, 8);
    put_number(&d->of[YK__BENCH_TRAINING], 1, 8);
    if (share >= 0) printf("  %14.2f\n", share);
    else printf("  %14s\n", "-");
  }
  for (size_t r = 0; r < n; r++)
    for (int k = 0; k < YK__NBENCH; k++) {
      const yk_bench *d = &b[order[r]];
      if (d->of[k].why[0] != '\0') printf("%s, %s: %s\n", yk__short_name(d->device.name, name), kinds[k].title, d->of[k].why);
    }
  printf("images/s: training steps of %s at batch %d; one device at a time, medians\n", YK__REFERENCE_MODEL, YK__REFERENCE_BATCH);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void put_json(yk_json *o, size_t n, const yk_bench *b, const size_t *order) {
  yk__json_open(o, "bench", '[');
  for (size_t r = 0; r < n; r++) {
    const yk_bench *d = &b[order[r]];
    double share = yk__bench_share(n, b, order[r]);
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_int(o, "rank", (int64_t)r + 1);
    yk__json_text(o, "device", d->device.name);
    yk__json_real(o, "of_the_fastest", share >= 0 ? share : (double)NAN);
    for (int k = 0; k < YK__NBENCH; k++) {
      const yk_number *x = &d->of[k];
      yk__json_open(o, kinds[k].key, '{');
      yk__json_real(o, "value", x->measured ? x->value / kinds[k].scale : (double)NAN);
      yk__json_text(o, "unit", kinds[k].unit);
      yk__json_int(o, kinds[k].size_key, x->size);
      yk__json_int(o, "runs", x->runs);
      yk__json_text(o, "reason", x->why[0] != '\0' ? x->why : NULL);
      yk__json_close(o, '}');
    }
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

int yk__devices_bench(yk_session *s, const yk_session_options *options, yk_json *o, const char *save) {
  size_t n = yk_session_device_count(s);
  yk_bench *b = yk__calloc(n + 1, sizeof *b);
  size_t *order = yk__calloc(n + 1, sizeof *order);
  int status = b != NULL && order != NULL ? measure(s, options, n, b) : yk__die_code(YK_ENOMEM);
  if (status == 0) {
    yk__bench_rank(n, b, order);
    if (o != NULL) put_json(o, n, b, order);
    else put_text(n, b, order);
    if (save != NULL) status = yk__devices_save(s, save, NULL, b);
  }
  yk__free(b);
  yk__free(order);
  return status;
}
