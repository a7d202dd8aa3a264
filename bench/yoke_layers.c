/*
 * yoke_layers.c - what layers, compile and fit cost over the same training step written out in the graph.
 *
 *   yoke_layers [BATCH [SECONDS]]
 *
 * 784-1024-1024-10 with ReLU and momentum, examples in memory and in their order. One side is yk_network_fit() with its numbers of each
 * batch and a quiet callback; the other feeds the batches to a prepared step. They take turns, a few steps each, and the median of
 * the turns is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <yoke/yoke.h>
#include "common.h"

enum { PIXELS = 784, HIDDEN = 1024, CLASSES = 10, STEPS = 8, WARM_UP = 3, MOST = 1000 };

typedef struct graph_side { yk_graph *g; yk_session *s; yk_step *step; yk_tensor *x[STEPS], *y[STEPS]; } graph_side;
typedef struct layer_side { yk_keras *k; yk_network *n; yk_tensor *x, *y; } layer_side;

static int die(const char *what) {
  fprintf(stderr, "yoke_layers: %s: %s\n", what, yk_error_message());
  return 1;
}

static void fill(yk_tensor *x, yk_tensor *y, uint32_t state) {
  for (int64_t i = 0; i < yk_tensor_count(x); i++) {
    state = state * 1664525u + 1013904223u;
    ((float *)yk_tensor_data(x))[i] = (float)(state >> 8) / (1 << 24) - 0.5f;
  }
  for (int64_t i = 0; i < yk_tensor_count(y); i++) ((int32_t *)yk_tensor_data(y))[i] = (int32_t)(i % CLASSES);
}

/* ---- the graph ---------------------------------------------------------------------------------------------------------------- */

static yk_value dense(yk_graph *g, const char *name, yk_value x, int64_t in, int64_t out) {
  char bias[32];
  snprintf(bias, sizeof bias, "%s_bias", name);
  yk_value w = yk_read(yk_get_variable(g, name, YK_F32, YK_SHAPE(in, out), YK_GLOROT_UNIFORM, NULL));
  return yk_bias_add(g, yk_matmul(g, x, w, NULL), yk_read(yk_get_variable(g, bias, YK_F32, YK_SHAPE(out), YK_ZEROS, NULL)));
}

static yk_code open_graph(graph_side *o, int64_t batch) {
  YK_TRY(yk_graph_new(&o->g));
  yk_graph *g = o->g;
  yk_value in = yk_placeholder(g, "x", YK_F32, YK_SHAPE(-1, PIXELS)), labels = yk_placeholder(g, "y", YK_I32, YK_SHAPE(-1));
  yk_value x = yk_relu(g, dense(g, "a", in, PIXELS, HIDDEN));
  x = dense(g, "c", yk_relu(g, dense(g, "b", x, HIDDEN, HIDDEN)), HIDDEN, CLASSES);
  yk_value loss = yk_reduce_mean(g, yk_sparse_softmax_cross_entropy(g, x, labels), NULL);
  yk_value train = yk_minimize(g, &YK_KERAS_SGD(1e-3, 0.9), loss, NULL), init = yk_global_variables_initializer(g);
  YK_TRY(yk_session_open(g, NULL, &o->s));
  YK_TRY(yk_session_run(o->s, 0, NULL, 0, NULL, 1, &init, NULL));
  for (int i = 0; i < STEPS; i++) {
    YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(batch, PIXELS), &o->x[i]));
    YK_TRY(yk_tensor_new(YK_I32, YK_SHAPE(batch), &o->y[i]));
    fill(o->x[i], o->y[i], (uint32_t)i + 1);
  }
  return yk_step_prepare(o->s, 2, (const yk_value[]){ in, labels }, 1, &loss, 1, &train, &o->step);
}

static yk_code run_graph(graph_side *o) {
  const yk_tensor *const *got;
  for (int i = 0; i < STEPS; i++) YK_TRY(yk_step_run(o->step, (const yk_tensor *const[]){ o->x[i], o->y[i] }, &got));
  return YK_OK;
}

/* ---- layers --------------------------------------------------------------------------------------------------------------------- */

static yk_code open_layers(layer_side *o, int64_t batch) {
  yk_compile_options c = YK_COMPILE_OPTIONS_INIT;
  yk_optimizer sgd = YK_KERAS_SGD(1e-3, 0.9);
  YK_TRY(yk_keras_new(1, &o->k));
  yk_sym in = yk_input(o->k, &(yk_input_config){ .shape = YK_SHAPE(PIXELS) });
  yk_sym x = yk_apply(yk_layer_dense(o->k, &(yk_dense_config){ .units = HIDDEN, .activation = "relu" }), in);
  x = yk_apply(yk_layer_dense(o->k, &(yk_dense_config){ .units = HIDDEN, .activation = "relu" }), x);
  x = yk_apply(yk_layer_dense(o->k, &(yk_dense_config){ .units = CLASSES, .activation = "softmax" }), x);
  o->n = yk_network_new(o->k, NULL, 1, &in, 1, &x);
  YK_TRY(yk_keras_status(o->k));
  c.optimizer = &sgd;
  c.nlosses = 1;
  c.losses = &(yk_loss){ .name = "sparse_categorical_crossentropy" };
  YK_TRY(yk_network_compile(o->n, &c));
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(STEPS * batch, PIXELS), &o->x));
  YK_TRY(yk_tensor_new(YK_I32, YK_SHAPE(STEPS * batch), &o->y));
  fill(o->x, o->y, 1);
  return YK_OK;
}

/* The time of the steps alone: a fit begins and ends once, however many there are. */
typedef struct watch { yk_callback self; double begun, ms; } watch;
static yk_code begin(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  (void)t; (void)epoch; (void)logs;
  ((watch *)c)->begun = bench_now_ms();
  return YK_OK;
}
static yk_code end(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  (void)t; (void)epoch; (void)logs;
  ((watch *)c)->ms = bench_now_ms() - ((watch *)c)->begun;
  return YK_OK;
}

static yk_code run_layers(layer_side *o, int64_t batch, double *ms) {
  watch w = { .self = { .on_epoch_begin = begin, .on_epoch_end = end } };
  yk_callback *list = &w.self;
  yk_fit_options f = YK_FIT_OPTIONS_INIT;
  yk_examples e = { .x = (const yk_tensor *const *)&o->x, .y = (const yk_tensor *const *)&o->y };
  f.batch_size = batch;
  f.verbose = 0;
  f.no_shuffle = true;
  f.ncallbacks = 1;
  f.callbacks = &list;
  YK_TRY(yk_network_fit(o->n, &e, &f, NULL));
  *ms = w.ms;
  return YK_OK;
}

int main(int argc, char **argv) {
  int64_t batch = argc > 1 ? strtol(argv[1], NULL, 10) : 256;
  double ms = 1e3 * (argc > 2 ? strtod(argv[2], NULL) : 10), begun = bench_now_ms();
  bench_times a = { 0 }, b = { 0 }, ratio = { 0 };
  graph_side g = { 0 };
  layer_side l = { 0 };
  if (open_graph(&g, batch) != YK_OK) return die("graph");
  if (open_layers(&l, batch) != YK_OK) return die("layers");
  for (size_t i = 0; i < MOST && (i < WARM_UP + 3 || bench_now_ms() - begun < ms); i++) {
    double at = bench_now_ms(), graph, layers;
    if (run_graph(&g) != YK_OK) return die("graph");
    graph = bench_now_ms() - at;
    if (run_layers(&l, batch, &layers) != YK_OK) return die("layers");
    if (i < WARM_UP) continue;
    if (bench_times_add(&a, graph / STEPS) + bench_times_add(&b, layers / STEPS) + bench_times_add(&ratio, layers / graph) != 0) return die("memory");
  }
  printf("{\"contender\":\"yoke\",\"check\":\"layers\",\"batch\":%lld,\"graph_ms\":%.4f,\"layers_ms\":%.4f,\"cost\":%.4f}\n", (long long)batch,
         bench_times_stats(&a).median, bench_times_stats(&b).median, bench_times_stats(&ratio).median - 1);
  yk_step_free(g.step);
  yk_session_close(g.s);
  yk_graph_free(g.g);
  for (int i = 0; i < STEPS; i++) yk_tensor_free(g.x[i]), yk_tensor_free(g.y[i]);
  yk_tensor_free(l.x);
  yk_tensor_free(l.y);
  yk_keras_free(l.k);
  bench_times_free(&a);
  bench_times_free(&b);
  bench_times_free(&ratio);
  return 0;
}
