/*
 * towers.h - runs of towers that tests compare with one another to the bit.
 *
 * Each run takes the same rows from the same source, with weights that only the seed decides. What a run ends with is one
 * checksum over all variables that a file would hold, so one differing bit anywhere shows.
 */
#ifndef YK_TEST_MODEL_TOWERS_H
#define YK_TEST_MODEL_TOWERS_H

#include <yoke/yoke.h>
#include "base/crc32c.h"
#include "support/check.h"
#include "support/pictures.h"

enum { MOST = 8 };
static const char *const gpus[MOST] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3", "/gpu:4", "/gpu:5", "/gpu:6", "/gpu:7" };

typedef struct setup {
  const char *model;
  const yk_model *own;                   /* instead of a built-in one */
  yk_strategy strategy;
  size_t ndevices, replicas;
  const char *const *devices;            /* NULL: virtual GPUs */
  int64_t batch;
  int steps;
  double clip;
  const yk_optimizer *optimizer;
  bool deterministic;
} setup;

typedef struct run {
  yk_graph *g;
  yk_session *s;
  yk_towers t;
  pictures p;
} run;

static inline void open_run(run *r, const setup *u) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  const yk_model *m = u->own ? u->own : yk_model_find(u->model);
  int64_t side = m->image_size ? m->image_size : 8;
  memset(r, 0, sizeof *r);
  pictures_open(&r->p, 3, 40, side, side, 3, 10);
  CHECK_OK(yk_graph_new(&r->g));
  yk_graph_set_seed(r->g, 7);
  o.model = m;
  o.source = &r->p.source;
  o.classes = 10;
  o.batch = u->batch;
  o.ndevices = u->ndevices;
  o.devices = u->devices ? u->devices : gpus;
  o.clip_norm = u->clip;
  o.optimizer = u->optimizer;
  o.strategy = u->strategy;
  o.replicas = u->replicas;
  yk_build_towers(r->g, &o, &r->t);
  yk_value init = yk_global_variables_initializer(r->g);
  so.deterministic = u->deterministic;
  for (size_t i = 0; i < u->ndevices; i++) {
    if (strncmp(o.devices[i], "/gpu", 4) == 0) so.virtual_gpus++;
    else so.cpu_devices++;
  }
  CHECK_OK(yk_session_open(r->g, &so, &r->s));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
}

static inline void close_run(run *r) {
  yk_session_close(r->s);
  yk_graph_free(r->g);
  pictures_close(&r->p);
}

static inline double train(run *r, int steps) {
  const yk_tensor *const *out;
  yk_step *step;
  double loss = 0;
  CHECK_OK(yk_step_prepare(r->s, 0, NULL, 1, &r->t.loss, 1, &r->t.train, &step));
  for (int i = 0; i < steps; i++) {
    CHECK_OK(yk_step_run(step, NULL, &out));
    loss = yk_tensor_at(out[0], 0);
  }
  yk_step_free(step);
  return loss;
}

/* One number for all that a file would hold, by name: the order in which variables are made does not matter. */
static inline uint32_t weights(const run *r) {
  uint32_t all = 0;
  for (size_t i = 0; i < yk_variable_count(r->g); i++) {
    const yk_variable *v = yk_variable_get(r->g, i);
    const char *name = yk_variable_name(v);
    yk_tensor *t;
    if (yk_variable_master(v) != v) continue;
    CHECK_OK(yk_variable_fetch(r->s, v, &t));
    all ^= yk__crc32c(yk__crc32c(0, name, strlen(name)), yk_tensor_data(t), yk_tensor_bytes(t));
    yk_tensor_free(t);
  }
  return all;
}

typedef struct result { double loss; uint32_t weights; } result;

static inline result result_of(const setup *u) {
  run r;
  result x;
  open_run(&r, u);
  x.loss = train(&r, u->steps);
  x.weights = weights(&r);
  CHECK_OK(yk_check_replicas(r.s, r.g));
  close_run(&r);
  if (!isfinite(x.loss)) fail_msg("the loss is %g", x.loss);
  return x;
}

static inline void same(const char *what, const setup *a, const setup *b) {
  result x = result_of(a), y = result_of(b);
  if (x.weights != y.weights)
    fail_msg("%s: %s on %zu devices, %zu replicas: loss %.9g, weights %08x; %s on %zu devices, %zu replicas: loss %.9g, weights %08x",
             what, yk_strategy_name(a->strategy), a->ndevices, a->replicas, x.loss, x.weights, yk_strategy_name(b->strategy),
             b->ndevices, b->replicas, y.loss, y.weights);
}

/* The same with every strategy. */
static inline void strategies(setup u) {
  setup home = u;
  home.strategy = YK_STRATEGY_HOME;
  for (int s = YK_STRATEGY_SHARDED; s <= YK_STRATEGY_MIRRORED; s++) {
    u.strategy = (yk_strategy)s;
    same(u.own ? "own" : u.model, &home, &u);
  }
}

#endif
