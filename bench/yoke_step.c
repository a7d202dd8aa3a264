/*
 * yoke_step.c - times Yoke's own whole training step, through the public headers alone.
 *
 *   yoke_step MODEL [DEVICES [BATCH [SECONDS [STRATEGY [deterministic]]]]]
 *
 * MODEL: cifar10, resnet20, mlp, or trivial (y = x*2 + 1). STRATEGY: auto, home, sharded or mirrored.
 *
 * DEVICES is a list such as cpu:0, "cpu:0,cpu:1" or "gpu:0,gpu:1"; GPUs are virtual ones, and all share the cores. The pictures
 * are the same ones each step, as the other contenders have them; the step still fetches them through its queue operation. A
 * moving average of the variables is left out for everybody. With a loss that is not finite the program fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "common.h"

enum { WARM_UP = 5, MAX_DEVICES = 16, CLASSES = 10, TRIVIAL_BATCH = 2000 };
#define LEARNING_RATE 1e-3f

typedef struct fixed_source {
  yk_source source;
  float *images;
  int32_t *labels;
  int64_t pixels, rows;           /* of a picture; pictures there are */
} fixed_source;

typedef struct setup {
  const char *model, *devices;
  int64_t batch;
  double seconds;
  char names[MAX_DEVICES][24];
  const char *at[MAX_DEVICES];
  size_t n;
  yk_strategy strategy;
  yk_session_options session;
} setup;

static int die(const char *what) {
  fprintf(stderr, "yoke_step: %s%s%s\n", what, yk_error_message()[0] != '\0' ? ": " : "", yk_error_message());
  return 1;
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

static yk_code next(void *self, int64_t rows, void *const *out) {
  const fixed_source *s = self;
  memcpy(out[0], s->images, sizeof(float) * (size_t)(s->pixels * rows));
  memcpy(out[1], s->labels, sizeof(int32_t) * (size_t)rows);
  return YK_OK;
}

/* `batch` pictures of the model's size: every tower takes the first ones, which is as good as any. */
static int make_source(const setup *s, fixed_source *out) {
  const yk_model *m = yk_model_find(s->model);
  int64_t side = m->image_size != 0 ? m->image_size : 28, channels = m->image_size != 0 ? 3 : 1;
  out->rows = s->batch;
  out->pixels = side * side * channels;
  out->images = malloc(sizeof(float) * (size_t)(out->pixels * out->rows));
  out->labels = malloc(sizeof(int32_t) * (size_t)out->rows);
  if (out->images == NULL || out->labels == NULL) return die("no memory for the pictures");
  bench_fill(out->images, (size_t)(out->pixels * out->rows));
  for (int64_t i = 0; i < out->rows; i++) out->labels[i] = (int32_t)(i % CLASSES);
  out->source = (yk_source){ .self = out, .next = next, .ncomponents = 2 };
  out->source.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { side, side, channels } };
  out->source.component[1] = (yk_desc){ .dtype = YK_I32, .rank = 0 };
  return 0;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int parse_devices(setup *s) {
  s->session = (yk_session_options)YK_SESSION_OPTIONS_INIT;
  for (const char *p = s->devices; *p != '\0';) {
    size_t len = strcspn(p, ",");
    bool gpu = strncmp(p, "gpu:", 4) == 0;
    if ((!gpu && strncmp(p, "cpu:", 4) != 0) || len > 8 || s->n == MAX_DEVICES) return die("devices are a list such as gpu:0,gpu:1");
    int32_t number = (int32_t)strtol(p + 4, NULL, 10);
    if (gpu && number >= s->session.virtual_gpus) s->session.virtual_gpus = number + 1;
    if (!gpu && number >= s->session.cpu_devices) s->session.cpu_devices = number + 1;
    snprintf(s->names[s->n], sizeof s->names[0], "/%.*s", (int)len, p);
    s->at[s->n] = s->names[s->n];
    s->n++;
    p += len + (p[len] == ',');
  }
  return s->n > 0 ? 0 : die("no devices");
}

static int parse(int argc, char **argv, setup *s) {
  if (argc < 2 || argc > 7) {
    fprintf(stderr, "usage: yoke_step MODEL [DEVICES [BATCH [SECONDS [STRATEGY [deterministic]]]]]\n");
    return 2;
  }
  while (argc > 5 && strcmp(argv[5], yk_strategy_name(s->strategy)) != 0)
    if (yk_strategy_name(++s->strategy) == NULL) return die("no such strategy; there are auto, home, sharded and mirrored");
  if (argc > 6 && strcmp(argv[6], "deterministic") != 0) return die("the last word may be: deterministic");
  const yk_model *m = yk_model_find(argv[1]);
  bool trivial = strcmp(argv[1], "trivial") == 0;
  if (m == NULL && !trivial) return die("no such model; there are cifar10, resnet20, mlp and trivial");
  s->model = argv[1];
  s->devices = argc > 2 ? argv[2] : "cpu:0";
  double batch = bench_number(argc > 3 ? argv[3] : NULL, trivial ? 2 : (double)m->batch);   /* of trivial: always 2 rows */
  s->seconds = bench_number(argc > 4 ? argv[4] : NULL, 3);
  if (isnan(batch) || batch > 1e6 || isnan(s->seconds)) return die("BATCH and SECONDS must be numbers above 0");
  s->batch = trivial ? 2 : (int64_t)batch;
  int status = parse_devices(s);
  s->session.deterministic = argc > 6;
  return status;
}

/* ---- a training step ------------------------------------------------------------------------------------------------ */

typedef struct run {
  yk_graph *graph;
  yk_session *session;
  yk_step *step;
  bench_times times;
  double first_ms, loss;
} run;

static yk_code prepare(const setup *s, const yk_source *source, run *r) {
  yk_model model = *yk_model_find(s->model);
  yk_towers towers;
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  model.moving_average = 0;
  YK_TRY(yk_graph_new(&r->graph));
  o.model = &model;
  o.source = source;
  o.classes = CLASSES;
  o.batch = s->batch;
  o.ndevices = s->n;
  o.devices = s->at;
  o.strategy = s->strategy;
  YK_DEVICE(r->graph, "/cpu:0") { o.learning_rate = yk_scalar_f32(r->graph, LEARNING_RATE); }
  yk_build_towers(r->graph, &o, &towers);
  yk_value init = yk_global_variables_initializer(r->graph);
  YK_TRY(yk_session_open(r->graph, &s->session, &r->session));
  YK_TRY(yk_session_run(r->session, 0, NULL, 0, NULL, 1, &init, NULL));
  return yk_step_prepare(r->session, 0, NULL, 1, &towers.loss, 1, &towers.train, &r->step);
}

static yk_code timed(const setup *s, run *r) {
  const yk_tensor *const *out = NULL;
  double end = 0;
  for (int64_t i = 0; i < WARM_UP + 1 || bench_now_ms() < end; i++) {
    double begin = bench_now_ms();
    YK_TRY(yk_step_run(r->step, NULL, &out));
    double ms = bench_now_ms() - begin;
    r->loss = yk_tensor_at(out[0], 0);
    if (i == 0) r->first_ms = bench_age_ms();
    if (i < WARM_UP) end = bench_now_ms() + s->seconds * 1e3;
    else if (bench_times_add(&r->times, ms) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

static int cores(const yk_session *session) {
  yk_device_info info;
  uint32_t most = 0;
  for (size_t i = 0; i < yk_session_device_count(session); i++)
    if (yk_session_device(session, i, &info) == YK_OK && info.first_core + info.ncores > most) most = info.first_core + info.ncores;
  return (int)most;
}

static int train(const setup *s) {
  fixed_source source = { 0 };
  run r = { 0 };
  char more[256];
  int status = make_source(s, &source);
  if (status != 0) return status;
  yk_code rc = prepare(s, &source.source, &r);
  if (rc == YK_OK) rc = timed(s, &r);
  if (rc != YK_OK) status = die(yk_code_name(rc));
  else if (!isfinite(r.loss)) status = die("the loss is not finite");
  snprintf(more, sizeof more, ",\"devices\":\"%.100s\"", s->devices);
  if (status == 0)
    bench_print(&(bench_result){ .contender = "yoke", .model = s->model, .batch = s->batch, .threads = cores(r.session),
                                 .times = &r.times, .first_step_ms = r.first_ms, .loss = r.loss, .more = more });
  yk_step_free(r.step);
  yk_session_close(r.session);
  yk_graph_free(r.graph);
  bench_times_free(&r.times);
  free(source.images);
  free(source.labels);
  return status;
}

/* ---- the smallest step ------------------------------------------------------------------------------------------------ */

static yk_code prepare_trivial(const setup *s, run *r) {
  YK_TRY(yk_graph_new(&r->graph));
  yk_value x = { 0 }, y = { 0 };
  YK_DEVICE(r->graph, s->at[0]) {
    x = yk_placeholder(r->graph, "x", YK_F32, YK_SHAPE(2, 3, 4));
    y = yk_add(r->graph, yk_mul(r->graph, x, yk_scalar_f32(r->graph, 2)), yk_scalar_f32(r->graph, 1));
  }
  YK_TRY(yk_session_open(r->graph, &s->session, &r->session));
  return yk_step_prepare(r->session, 1, &x, 1, &y, 0, NULL, &r->step);
}

/* One time is the mean of TRIVIAL_BATCH runs. */
static yk_code timed_trivial(const setup *s, run *r, const yk_tensor *x) {
  const yk_tensor *const *out = NULL;
  YK_TRY(yk_step_run(r->step, &x, &out));
  r->first_ms = bench_age_ms();
  if (yk_tensor_at(out[0], 23) != yk_tensor_at(x, 23) * 2 + 1) return YK_EINTERNAL;
  for (int i = 0; i < WARM_UP; i++) YK_TRY(yk_step_run(r->step, &x, &out));
  for (double end = bench_now_ms() + s->seconds * 1e3; r->times.n == 0 || bench_now_ms() < end;) {
    double begin = bench_now_ms();
    for (int i = 0; i < TRIVIAL_BATCH; i++) YK_TRY(yk_step_run(r->step, &x, &out));
    if (bench_times_add(&r->times, (bench_now_ms() - begin) / TRIVIAL_BATCH) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

static int trivial(const setup *s) {
  run r = { 0 };
  yk_tensor *x = NULL;
  float values[24];
  int status = 0;
  bench_fill(values, 24);
  for (int i = 0; i < 24; i++) values[i] = roundf(values[i] * 64);       /* exact whatever the order */
  yk_code rc = yk_tensor_from(YK_F32, YK_SHAPE(2, 3, 4), values, &x);
  if (rc == YK_OK) rc = prepare_trivial(s, &r);
  if (rc == YK_OK) rc = timed_trivial(s, &r, x);
  if (rc != YK_OK) status = die(yk_code_name(rc));
  else
    bench_print(&(bench_result){ .contender = "yoke", .model = "trivial", .batch = s->batch, .threads = cores(r.session),
                                 .times = &r.times, .first_step_ms = r.first_ms, .loss = (double)NAN, .more = "" });
  yk_step_free(r.step);
  yk_session_close(r.session);
  yk_graph_free(r.graph);
  yk_tensor_free(x);
  bench_times_free(&r.times);
  return status;
}

int main(int argc, char **argv) {
  setup s = { 0 };
  int status = parse(argc, argv, &s);
  if (status != 0) return status;
  return strcmp(s.model, "trivial") == 0 ? trivial(&s) : train(&s);
}
