/*
 * bench.c - how fast one device computes: products of matrices, element-wise work, a training step.
 *
 * Each number has a graph and a session of its own, opened as training would open it, so a device works with the cores and the
 * memory that it would then have, and one that refuses loses that number only. Sizes follow the device: as large as its memory
 * allows, and large enough that starting a kernel does not count.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "measure/work.h"

enum { LEAST_SIDE = 64, FIRST_SIDE = 1024, MOST_SIDE = 8192 };          /* of the matrices */
enum { MOST_TENSOR = 64 << 20, LEAST_TENSOR = 64 << 10 };               /* bytes */
enum { LEAST_RUNS = 3, MOST_RUNS = 50 };
#define ENOUGH_SECONDS 0.02                          /* a run that takes so long hides what starting it costs */
#define RUN_SECONDS 0.5

static yk_code step_once(void *arg) {
  return yk_step_run(((yk_work *)arg)->step, NULL, NULL);
}

/* The first runs compile, touch memory and raise clocks: they do not count. */
static yk_code time_work(yk_work *w, uint32_t warm, uint32_t least, double seconds, double *median, uint32_t *runs) {
  for (uint32_t i = 0; i < warm; i++) YK_TRY(step_once(w));
  return yk__repeat(step_once, w, least, MOST_RUNS, seconds, median, runs);
}

static yk_code device_of(const yk_session_options *options, const char *name, yk_device_info *out) {
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_code rc = yk_graph_new(&g);
  if (rc == YK_OK) rc = yk_session_open(g, options, &s);
  if (rc == YK_OK) {
    rc = YK_FAIL(ENOTFOUND, "there is no device %s", name);
    for (size_t i = 0; i < yk_session_device_count(s); i++) {
      yk_device_info d;
      if (yk_session_device(s, i, &d) != YK_OK || strcmp(d.name, name) != 0) continue;
      *out = d;
      yk_error_clear();
      rc = YK_OK;
      break;
    }
  }
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}

/* ---- products ------------------------------------------------------------------------------------------------------ */

static yk_code product_once(const yk_session_options *o, const char *device, yk_dtype t, int64_t side, yk_number *out,
                            double *took) {
  yk_work w = { 0 };
  yk_code rc = yk__work_product(o, device, t, side, &w);
  if (rc == YK_OK) rc = time_work(&w, 2, LEAST_RUNS, RUN_SECONDS, took, &out->runs);
  yk__work_close(&w);
  if (rc != YK_OK) return rc;
  out->value = 2.0 * (double)side * (double)side * (double)side / *took;
  out->size = side;
  out->measured = true;
  return YK_OK;
}

/* The largest side whose three matrices take at most half of the memory, within bounds. */
static int64_t first_side(const yk_device_info *d, yk_dtype t) {
  int64_t side = FIRST_SIDE;
  while (side > LEAST_SIDE && (uint64_t)(6 * side * side) * yk_dtype_bytes(t) > d->bytes_limit) side /= 2;
  return side;
}

static yk_code product(const yk_session_options *o, const yk_device_info *d, yk_dtype t, yk_number *out) {
  int64_t side = first_side(d, t);
  double took = 0;
  yk_code rc = product_once(o, d->name, t, side, out, &took);
  while (rc == YK_ENOMEM && side > LEAST_SIDE) rc = product_once(o, d->name, t, side /= 2, out, &took);
  while (rc == YK_OK && took < ENOUGH_SECONDS && side < MOST_SIDE &&
         (uint64_t)(24 * side * side) * yk_dtype_bytes(t) <= d->bytes_limit) {
    rc = product_once(o, d->name, t, side *= 2, out, &took);
    if (rc == YK_ENOMEM) {                           /* what the smaller one gave stands */
      yk_error_clear();
      return YK_OK;
    }
  }
  return rc;
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static yk_code stream(const yk_session_options *o, const yk_device_info *d, yk_number *out) {
  int64_t bytes = MOST_TENSOR;
  double took = 0;
  yk_code rc;
  while (bytes > LEAST_TENSOR && (uint64_t)bytes > d->bytes_limit / 4) bytes /= 2;
  do {
    yk_work w = { 0 };
    rc = yk__work_stream(o, d->name, bytes / 4, &w);
    if (rc == YK_OK) rc = time_work(&w, 2, LEAST_RUNS, RUN_SECONDS, &took, &out->runs);
    yk__work_close(&w);
    if (rc == YK_ENOMEM) bytes /= 2;
  } while (rc == YK_ENOMEM && bytes >= LEAST_TENSOR);
  if (rc != YK_OK) return rc;
  out->value = 2.0 * (double)bytes / took;
  out->size = bytes;
  out->measured = true;
  return YK_OK;
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

/* The usual batch, or the largest half, quarter, ... of it that fits. */
static yk_code training(const yk_session_options *o, const yk_device_info *d, yk_number *out) {
  int64_t batch = YK__REFERENCE_BATCH;
  double took = 0;
  yk_code rc;
  do {
    yk_work w = { 0 };
    rc = yk__work_training(o, d->name, batch, &w);
    if (rc == YK_OK) rc = time_work(&w, 2, LEAST_RUNS, 2 * RUN_SECONDS, &took, &out->runs);
    yk__work_close(&w);
    if (rc == YK_ENOMEM) batch /= 2;
  } while (rc == YK_ENOMEM && batch > 0);
  if (rc != YK_OK) return rc;
  if (batch < YK__REFERENCE_BATCH)
    snprintf(out->why, sizeof out->why, "a batch of %d does not fit into its memory; %d do", YK__REFERENCE_BATCH, (int)batch);
  out->value = (double)batch / took;
  out->size = batch;
  out->measured = true;
  return YK_OK;
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

void yk__bench(const yk_session_options *options, const char *device, yk_bench_what what, yk_number *out) {
  yk_session_options o = *options;
  yk_device_info d;
  *out = (yk_number){ 0 };
  o.log_device_placement = o.allow_soft_placement = false;     /* elsewhere is no answer here */
  yk_code rc = device_of(&o, device, &d);
  if (rc == YK_OK && what == YK__BENCH_F32) rc = product(&o, &d, YK_F32, out);
  else if (rc == YK_OK && what == YK__BENCH_BF16) rc = product(&o, &d, YK_BF16, out);
  else if (rc == YK_OK && what == YK__BENCH_MEMORY) rc = stream(&o, &d, out);
  else if (rc == YK_OK) rc = training(&o, &d, out);
  if (rc == YK_OK) {
    yk_error_clear();                                /* of sizes that did not fit */
    return;
  }
  *out = (yk_number){ 0 };
  snprintf(out->why, sizeof out->why, "%.390s", yk_error_message());
  yk_error_clear();
}

/* Larger is faster; pictures a second count first. */
static int compare(const yk_bench *a, const yk_bench *b) {
  static const yk_bench_what by[] = { YK__BENCH_TRAINING, YK__BENCH_F32 };
  for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
    const yk_number *x = &a->of[by[i]], *y = &b->of[by[i]];
    if (x->measured != y->measured) return x->measured ? 1 : -1;
    if (x->measured && x->value != y->value) return x->value > y->value ? 1 : -1;
  }
  return 0;
}

void yk__bench_rank(size_t n, const yk_bench *b, size_t *order) {
  for (size_t i = 0; i < n; i++) {
    size_t at = i;
    for (; at > 0 && compare(&b[i], &b[order[at - 1]]) > 0; at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

double yk__bench_share(size_t n, const yk_bench *b, size_t i) {
  bool training = false;
  double best = 0;
  for (size_t k = 0; k < n; k++) training |= b[k].of[YK__BENCH_TRAINING].measured;
  yk_bench_what by = training ? YK__BENCH_TRAINING : YK__BENCH_F32;
  for (size_t k = 0; k < n; k++)
    if (b[k].of[by].measured && b[k].of[by].value > best) best = b[k].of[by].value;
  return b[i].of[by].measured && best > 0 ? b[i].of[by].value / best : -1;
}
