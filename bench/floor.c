/*
 * floor.c - the floor under a training step: its oneDNN primitives alone, in the layouts they choose.
 *
 *   floor MODEL [BATCH [SECONDS]]     MODEL: cifar10, resnet20, mlp, lstm
 *
 * Forward, backward and update of the network that Yoke calls by the same name, with nothing between the primitives: no
 * graph, no plan, no reorders (they are left out, and timed once more with them). What a framework on this library can hope for
 * unless it fuses more than the library does. lstm is a hand-planned cell instead (floor_lstm.h).
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include "common.h"
#include "floor_chain.h"
#include "floor_lstm.h"

enum { WARM_UP = 5, BLOCK = 5 };
#define RATE 1e-3f

static void cifar10(floor_chain *c, int64_t batch) {
  floor_lrn lrn = { .window = 9, .alpha = 0.001f, .beta = 0.75f, .k = 1 };
  floor_conv conv1 = { .filters = 64, .window = 5, .stride = 1, .bias = true, .relu = true, .first = true }, conv2 = conv1;
  floor_value *x = floor_input(c, batch, 3, 24);
  conv2.first = false;
  x = floor_add_lrn(c, floor_add_max_pool(c, floor_add_conv(c, x, &conv1)), &lrn);
  x = floor_add_max_pool(c, floor_add_lrn(c, floor_add_conv(c, x, &conv2), &lrn));
  x = floor_add_dense(c, x, 384, true, false);
  x = floor_add_dense(c, x, 192, true, false);
  floor_add_loss(c, floor_add_dense(c, x, 10, false, false));
}

static floor_value *block(floor_chain *c, floor_value *x, int64_t filters, int64_t stride) {
  floor_conv shape = { .filters = filters, .window = 1, .stride = stride },
             conv1 = { .filters = filters, .window = 3, .stride = stride };
  floor_conv conv2 = { .filters = filters, .window = 3, .stride = 1 };
  floor_value *side = stride == 1 ? x : floor_add_norm(c, floor_add_conv(c, x, &shape), false);
  floor_value *y = floor_add_norm(c, floor_add_conv(c, x, &conv1), true);
  return floor_add_join(c, floor_add_norm(c, floor_add_conv(c, y, &conv2), false), side);
}

static void resnet20(floor_chain *c, int64_t batch) {
  floor_conv conv0 = { .filters = 16, .window = 3, .stride = 1, .first = true };
  floor_value *x = floor_add_norm(c, floor_add_conv(c, floor_input(c, batch, 3, 32), &conv0), true);
  for (int stage = 0; stage < 3; stage++)
    for (int b = 0; b < 3; b++) x = block(c, x, 16 << stage, stage > 0 && b == 0 ? 2 : 1);
  floor_add_loss(c, floor_add_dense(c, floor_add_mean_pool(c, x), 10, false, false));
}

static void mlp(floor_chain *c, int64_t batch) {
  floor_value *x = floor_add_dense(c, floor_input(c, batch, 784, 0), 1024, true, true);
  floor_add_loss(c, floor_add_dense(c, floor_add_dense(c, x, 1024, true, false), 10, false, false));
}

static const struct network {
  const char *name;
  void (*build)(floor_chain *c, int64_t batch);
  double batch;
  float momentum, decay;
} networks[] = { { "cifar10", cifar10, 128, 0, 0.004f },
                 { "resnet20", resnet20, 128, 0.9f, 1e-4f },
                 { "mlp", mlp, 256, 0.9f, 0 } };

static int timed(floor_chain *c, bool reorders, bench_times *t) {
  for (int i = 0; i < BLOCK; i++) {
    double begin = bench_now_ms();
    floor_chain_run(c, reorders);
    if (bench_times_add(t, bench_now_ms() - begin) != 0) return -1;
  }
  return 0;
}

static int measure(const struct network *n, int64_t batch, double seconds) {
  bench_times without = { 0 }, with = { 0 };
  char more[512];
  floor_chain *c = floor_chain_new(RATE, n->momentum, n->decay);
  n->build(c, batch);
  floor_chain_finish(c);
  floor_chain_run(c, true);
  double first_ms = bench_age_ms(), loss = floor_chain_loss(c);
  for (int i = 0; i < WARM_UP; i++) floor_chain_run(c, true);
  double learnt = floor_chain_loss(c);
  int rc = 0;
  for (double end = bench_now_ms() + seconds * 1e3; rc == 0 && (with.n == 0 || bench_now_ms() < end);) {
    rc = timed(c, false, &without);
    if (rc == 0) rc = timed(c, true, &with);
  }
  bench_stats s = bench_times_stats(&with);
  snprintf(
      more, sizeof more,
      ",\"first_loss\":%.6g,\"with_reorders_ms\":%.6f,\"operations\":%d,\"reorders\":%d,\"lrn\":\"%s\",\"onednn\":\"%d.%d.%d\"",
      loss, s.median, floor_chain_operations(c), floor_chain_reorders(c), floor_chain_lrn(c), dnnl_version()->major,
      dnnl_version()->minor, dnnl_version()->patch);
  if (!isfinite(learnt)) rc = -1;
  else
    bench_print(&(bench_result){ .contender = "floor", .model = n->name, .batch = batch, .threads = omp_get_max_threads(),
                                 .times = &without, .first_step_ms = first_ms, .loss = learnt, .more = more });
  floor_chain_free(c);
  bench_times_free(&without);
  bench_times_free(&with);
  if (rc != 0) fprintf(stderr, "floor: %s\n", isfinite(learnt) ? "no memory" : "the loss is not finite");
  return rc != 0;
}

static int measure_lstm(int64_t batch, double seconds) {
  bench_times times = { 0 };
  floor_lstm *l = floor_lstm_new(batch, RATE, 0.9f);
  int rc = l != NULL ? 0 : -1;
  if (rc == 0) floor_lstm_run(l);
  double first_ms = bench_age_ms(), end = 0;
  for (int i = 0; rc == 0 && (i < WARM_UP + 1 || bench_now_ms() < end); i++) {
    double begin = bench_now_ms();
    floor_lstm_run(l);
    if (i == WARM_UP) end = begin + seconds * 1e3;
    if (i >= WARM_UP) rc = bench_times_add(&times, bench_now_ms() - begin);
  }
  if (rc == 0)
    bench_print(&(bench_result){ .contender = "floor",
                                 .model = "lstm",
                                 .batch = batch,
                                 .threads = omp_get_max_threads(),
                                 .times = &times,
                                 .first_step_ms = first_ms,
                                 .loss = floor_lstm_loss(l),
                                 .more = "" });
  else fprintf(stderr, "floor: no memory\n");
  if (l != NULL) floor_lstm_free(l);
  bench_times_free(&times);
  return rc != 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && argc <= 4 && strcmp(argv[1], "lstm") == 0) {
    double batch = bench_number(argc > 2 ? argv[2] : NULL, 64), seconds = bench_number(argc > 3 ? argv[3] : NULL, 3);
    if (batch <= 1e5 && seconds > 0) return measure_lstm((int64_t)batch, seconds);
  }
  for (size_t i = 0; argc > 1 && argc <= 4 && i < sizeof networks / sizeof networks[0]; i++) {
    if (strcmp(argv[1], networks[i].name) != 0) continue;
    double batch = bench_number(argc > 2 ? argv[2] : NULL, networks[i].batch),
           seconds = bench_number(argc > 3 ? argv[3] : NULL, 3);
    if (isnan(batch) || batch > 1e6 || isnan(seconds)) break;
    return measure(&networks[i], (int64_t)batch, seconds);
  }
  fprintf(stderr, "usage: floor cifar10|resnet20|mlp|lstm [BATCH [SECONDS]]\n");
  return 2;
}
