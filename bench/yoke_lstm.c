/*
 * yoke_lstm.c - times a whole training step of a recurrent network.
 *
 *   yoke_lstm [KIND [BATCH [SECONDS [THREADS]]]]      KIND: lstm, gru, simple, or lstm_bf16 (the big products in bf16)
 *   yoke_lstm branches [BATCH [SECONDS]]
 *
 * "branches" is the same step of an LSTM twice: both inputs on one device of one core, and each on a device of one core of its own. They take turns.
 *
 * One layer of 64 units reads two inputs of 140 steps and 256 features, with the same weights; the two last states go through a dense
 * layer to a sigmoid and its cross entropy; momentum updates. The inputs are in memory and the same ones each step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yoke/yoke.h>
#include "common.h"

enum { WARM_UP = 5, STEPS = 140, FEATURES = 256, UNITS = 64, INPUTS = 2 };

typedef struct job {
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  const char *kind;
  int64_t batch, threads;
  double seconds;
  int32_t devices;
} job;

static int die(const char *what) {
  fprintf(stderr, "yoke_lstm: %s%s%s\n", what, yk_error_message()[0] != '\0' ? ": " : "", yk_error_message());
  return 1;
}

static yk_value weight(yk_graph *g, const char *name, yk_shape shape, double range) {
  return yk_read(yk_get_variable(g, name, YK_F32, shape, range > 0 ? YK_UNIFORM(-range, range) : YK_ZEROS, NULL));
}

/* The last state of the layer over input number i. */
static yk_value layer(const job *j, int i, const yk_value w[3]) {
  const yk_variable_options fixed = { .not_trainable = true };
  yk_graph *g = j->g;
  yk_value out[3] = { { 0 } }, none = { 0 };
  char name[16], device[16];
  snprintf(name, sizeof name, "x%d", i);
  snprintf(device, sizeof device, "/cpu:%d", i % j->devices);
  yk_device_push(g, device);
  yk_value x = yk_read(yk_get_variable(g, name, YK_F32, YK_SHAPE(j->batch, STEPS, FEATURES), YK_UNIFORM(-0.5, 0.5), &fixed));
  if (strcmp(j->kind, "gru") == 0) yk_gru(g, x, w[0], w[1], w[2], w[2], none, none, NULL, out);
  else if (strcmp(j->kind, "simple") == 0) yk_simple_rnn(g, x, w[0], w[1], w[2], none, none, NULL, out);
  else if (strcmp(j->kind, "lstm") == 0) yk_lstm(g, x, w[0], w[1], w[2], none, none, none, NULL, out);
  else YK_PRECISION(g, YK_BF16) { yk_lstm(g, x, w[0], w[1], w[2], none, none, none, NULL, out); }
  yk_device_pop(g);
  return out[1];
}

static yk_code prepare(job *j) {
  const int64_t gates = strncmp(j->kind, "lstm", 4) == 0 ? 4 : strcmp(j->kind, "gru") == 0 ? 3 : 1;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_value last[INPUTS];
  so.cores = (int32_t)j->threads;
  so.cpu_devices = j->devices;
  YK_TRY(yk_graph_new(&j->g));
  yk_graph *g = j->g;
  yk_device_push(g, "/cpu:0");
  yk_value w[3] = { weight(g, "kernel", YK_SHAPE(FEATURES, gates * UNITS), 0.1),
                    weight(g, "recurrent", YK_SHAPE(UNITS, gates * UNITS), 0.1), weight(g, "bias", YK_SHAPE(gates * UNITS), 0) };
  for (int i = 0; i < INPUTS; i++) last[i] = layer(j, i, w);
  yk_value dense = weight(g, "dense", YK_SHAPE(INPUTS * UNITS, 1), 0.1), bias = weight(g, "dense_bias", YK_SHAPE(1), 0);
  yk_value logits = yk_bias_add(g, yk_matmul(g, yk_concat(g, INPUTS, last, 1), dense, NULL), bias);
  yk_value loss = yk_reduce_mean(g, yk_sigmoid_cross_entropy(g, logits, yk_fill(g, YK_F32, YK_SHAPE(j->batch, 1), 1)), NULL);
  yk_value train = yk_minimize(g, &YK_MOMENTUM(1e-3, 0.9), loss, NULL), init = yk_global_variables_initializer(g);
  yk_device_pop(g);
  YK_TRY(yk_session_open(g, &so, &j->s));
  YK_TRY(yk_session_run(j->s, 0, NULL, 0, NULL, 1, &init, NULL));
  return yk_step_prepare(j->s, 0, NULL, 1, &loss, 1, &train, &j->step);
}

static yk_code timed(job *j, bench_times *times, double *first, double *loss) {
  const yk_tensor *const *out = NULL;
  double end = 0;
  for (int i = 0; i < WARM_UP + 1 || bench_now_ms() < end; i++) {
    double begin = bench_now_ms();
    YK_TRY(yk_step_run(j->step, NULL, &out));
    double ms = bench_now_ms() - begin;
    *loss = yk_tensor_at(out[0], 0);
    if (i == 0) *first = bench_age_ms();
    if (i < WARM_UP) end = bench_now_ms() + j->seconds * 1e3;
    else if (bench_times_add(times, ms) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

/* Medians of both, and of their ratio in turn. */
static yk_code race(job *one, job *two, double seconds, bench_stats at[2], bench_stats *ratio) {
  bench_times times[2] = { 0 }, ratios = { 0 };
  const yk_tensor *const *out;
  double end = 0, took[2];
  for (int i = 0; i < WARM_UP + 3 || bench_now_ms() < end; i++) {
    for (int k = 0; k < 2; k++) {
      double begin = bench_now_ms();
      YK_TRY(yk_step_run((k ? two : one)->step, NULL, &out));
      took[k] = bench_now_ms() - begin;
      if (i >= WARM_UP && bench_times_add(&times[k], took[k]) != 0) return YK_ENOMEM;
    }
    if (i < WARM_UP) end = bench_now_ms() + seconds * 1e3;
    else if (bench_times_add(&ratios, took[0] / took[1]) != 0) return YK_ENOMEM;
  }
  for (int k = 0; k < 2; k++) at[k] = bench_times_stats(&times[k]), bench_times_free(&times[k]);
  *ratio = bench_times_stats(&ratios);
  bench_times_free(&ratios);
  return YK_OK;
}

static int branches(int64_t batch, double seconds) {
  job one = { .kind = "lstm", .batch = batch, .threads = 1, .devices = 1 },
      two = { .kind = "lstm", .batch = batch, .threads = 2, .devices = 2 };
  bench_stats at[2] = { { 0 } }, ratio = { 0 };
  yk_code rc = prepare(&one);
  if (rc == YK_OK) rc = prepare(&two);
  if (rc == YK_OK) rc = race(&one, &two, seconds, at, &ratio);
  if (rc == YK_OK)
    printf("{\"contender\":\"yoke\",\"check\":\"branches\",\"batch\":%lld,\"one_ms\":%.4f,\"two_ms\":%.4f,\"speedup\":%.4f}\n",
           (long long)batch, at[0].median, at[1].median, ratio.median);
  job *const each[] = { &one, &two };
  for (int k = 0; k < 2; k++) yk_step_free(each[k]->step), yk_session_close(each[k]->s), yk_graph_free(each[k]->g);
  return rc == YK_OK ? 0 : die("the branches failed");
}

int main(int argc, char **argv) {
  bench_times times = { 0 };
  double first = 0, loss = (double)NAN;
  const double batch = bench_number(argc > 2 ? argv[2] : NULL, 64), threads = bench_number(argc > 4 ? argv[4] : NULL, 0);
  job j = { .kind = argc > 1 ? argv[1] : "lstm", .devices = 1, .seconds = bench_number(argc > 3 ? argv[3] : NULL, 3) };
  if (argc > 5 || isnan(batch) || batch > 1e5 || isnan(j.seconds) || isnan(threads)) {
    fprintf(stderr, "usage: yoke_lstm [lstm|gru|simple|lstm_bf16|branches [BATCH [SECONDS [THREADS]]]]\n");
    return 2;
  }
  if (strcmp(j.kind, "branches") == 0) return branches((int64_t)batch, j.seconds);
  j.batch = (int64_t)batch;
  j.threads = (int64_t)threads;
  yk_code rc = prepare(&j);
  if (rc == YK_OK) rc = timed(&j, &times, &first, &loss);
  int status = rc == YK_OK && isfinite(loss) ? 0 : die("the step failed");
  if (status == 0)
    bench_print(&(bench_result){ .contender = "yoke",
                                 .model = j.kind,
                                 .batch = j.batch,
                                 .threads = yk_session_options_of(j.s)->cores,
                                 .times = &times,
                                 .first_step_ms = first,
                                 .loss = loss,
                                 .more = "" });
  yk_step_free(j.step);
  yk_session_close(j.s);
  yk_graph_free(j.g);
  bench_times_free(&times);
  return status;
}
