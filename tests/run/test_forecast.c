/*
 * A forecast counts what the run then counts, to the byte: for each built-in network, on one to four devices of either type, with
 * pools that take everything, that grow, and that are so small that the initialiser's memory has to go before the step gets its own.
 */
#include "support.h"
#include <yoke/model.h>
#include <yoke/nn.h>
#include "run/forecast.h"
#include "run/survey.h"

enum { BATCH = 5, CLASSES = 10 };

static yk_code next(void *self, int64_t rows, void *const *out) {
  const yk_source *s = self;
  int64_t n = s->component[0].dim[0] * s->component[0].dim[1] * s->component[0].dim[2];
  for (int64_t i = 0; i < rows * n; i++) ((float *)out[0])[i] = (float)(i % 17) / 17 - 0.5f;
  for (int64_t i = 0; i < rows; i++) ((int32_t *)out[1])[i] = (int32_t)(i % CLASSES);
  return YK_OK;
}

static yk_source source_for(const yk_model *m, yk_source *self) {
  int64_t side = m->image_size ? m->image_size : 12;
  yk_source s = { .self = self, .next = next, .ncomponents = 2 };
  s.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { side, side, 3 } };
  s.component[1] = (yk_desc){ .dtype = YK_I32 };
  return s;
}

typedef struct job { yk_source source; yk_graph *g; yk_session *s; yk_towers t; yk_value init; } job;

static void make(job *j, const char *model, const char *type, size_t n, yk_session_options o) {
  static char name[4][16];
  const char *at[4];
  yk_tower_options t = YK_TOWER_OPTIONS_INIT;
  for (size_t i = 0; i < n; i++) {
    snprintf(name[i], sizeof name[i], "/%s:%zu", type, i);
    at[i] = name[i];
  }
  j->g = new_graph();
  t.model = yk_model_find(model);
  j->source = source_for(t.model, &j->source);
  t.source = &j->source;
  t.classes = CLASSES;
  t.batch = BATCH;
  t.ndevices = n;
  t.devices = at;
  yk_build_towers(j->g, &t, &j->t);
  j->init = yk_global_variables_initializer(j->g);
  OK(yk_graph_status(j->g));
  if (strcmp(type, "gpu") == 0) o.virtual_gpus = (int32_t)n;
  else o.cpu_devices = (int32_t)n;
  OK(yk_session_open(j->g, &o, &j->s));
}

static void run(job *j, int steps) {
  yk_step *step;
  run_target(j->s, j->init);
  OK(yk_step_prepare(j->s, 0, NULL, 1, &j->t.loss, 1, &j->t.train, &step));
  for (int i = 0; i < steps; i++) OK(yk_step_run(step, NULL, NULL));
  yk_step_free(step);
}

static void read_back(job *j) {
  for (size_t i = 0; i < yk_variable_count(j->g); i++) {
    yk_variable *v = yk_variable_get(j->g, i);
    yk_tensor *t;
    if (yk_variable_master(v) != v) continue;
    OK(yk_variable_fetch(j->s, v, &t));
    yk_tensor_free(t);
  }
}

static void fits(const yk_forecast *f) {
  uint16_t dev;
  const char *why = yk__forecast_refusal(f, &dev);
  if (why != NULL) fail_msg("device %u refuses: %s", dev, why);
}

static void check(const char *model, const char *type, size_t n, yk_session_options o) {
  job j;
  yk_forecast *f;
  make(&j, model, type, n, o);
  OK(yk__forecast_open(j.s, &f));
  OK(yk__forecast_step(f, 0, NULL, 1, &j.init, NULL, NULL));
  OK(yk__forecast_step(f, 1, &j.t.loss, 1, &j.t.train, NULL, NULL));
  OK(yk__forecast_read_back(f));
  fits(f);
  yk_device_memory before = YK_DEVICE_MEMORY_INIT;
  OK(yk_session_device_memory(j.s, 0, &before));
  if (before.allocations != 0) fail_msg("the forecast took memory of the device: %llu requests", (unsigned long long)before.allocations);
  run(&j, 3);
  read_back(&j);
  for (size_t i = 0; i < yk_session_device_count(j.s); i++) {
    yk_device_memory want = YK_DEVICE_MEMORY_INIT, got = YK_DEVICE_MEMORY_INIT;
    yk__forecast_memory(f, i, &want);
    OK(yk_session_device_memory(j.s, i, &got));
    if (want.peak_held != got.peak_held || want.peak_in_use != got.peak_in_use || want.bytes_in_use != got.bytes_in_use)
      fail_msg("%s on %zu %s, device %zu: foreseen held %llu, in use %llu, at the end %llu; the run had %llu, %llu, %llu", model, n, type, i,
               (unsigned long long)want.peak_held, (unsigned long long)want.peak_in_use, (unsigned long long)want.bytes_in_use,
               (unsigned long long)got.peak_held, (unsigned long long)got.peak_in_use, (unsigned long long)got.bytes_in_use);
  }
  yk__forecast_close(f);
  end(j.s, j.g);
}

static const char *const models[] = { "mlp", "cifar10", "resnet20" };

static void test_all(void **state) {
  yk_session_options o = options(0);
  (void)state;
  o.virtual_gpu_bytes = 256 << 20;
  for (size_t m = 0; m < 3; m++)
    for (size_t n = 1; n <= 4; n++) {
      check(models[m], "gpu", n, o);
      check(models[m], "cpu", n, o);
    }
}

static void test_growth(void **state) {
  yk_session_options o = options(0);
  (void)state;
  o.virtual_gpu_bytes = 256 << 20;
  o.allow_growth = true;
  for (size_t m = 0; m < 3; m++) check(models[m], "gpu", 2, o);
}

/* Of one device, in use by variables and step alone. */
static uint64_t least(const char *model, const char *type) {
  job j;
  yk_device_use use[2];
  bool fits;
  char *text;
  yk_session_options o = options(0);
  make(&j, model, type, 1, o);
  OK(yk_session_rehearse(j.s, 0, NULL, 1, &j.t.loss, 1, &j.t.train, &fits, use, &text));
  yk_free(text);
  end(j.s, j.g);
  return use[0].variable_bytes + use[0].arena_bytes;
}

/* Variables and step have room, but not the initialiser's arena beside them. */
static void test_tight(void **state) {
  (void)state;
  for (size_t m = 0; m < 3; m++) {
    yk_session_options o = options(0);
    o.cpu_bytes = least(models[m], "cpu");
    check(models[m], "cpu", 1, o);
  }
}

static void test_too_small(void **state) {
  job j;
  yk_forecast *f;
  yk_session_options o = options(0);
  (void)state;
  o.cpu_bytes = least("mlp", "cpu") - 1;
  make(&j, "mlp", "cpu", 1, o);
  OK(yk__forecast_open(j.s, &f));
  OK(yk__forecast_step(f, 0, NULL, 1, &j.init, NULL, NULL));
  OK(yk__forecast_step(f, 1, &j.t.loss, 1, &j.t.train, NULL, NULL));
  uint16_t dev = 7;
  const char *why = yk__forecast_refusal(f, &dev);
  assert_non_null(why);
  if (dev != 0) fail_msg("device %u refuses, there is only 0", dev);
  assert_non_null(strstr(why, "the limit is"));
  yk__forecast_close(f);
  end(j.s, j.g);
}

/* Is the job refused when each GPU has so many bytes? Once by the forecast, once by the run. */
static void refusals(const char *model, uint64_t bytes, bool *foreseen, bool *met) {
  job j;
  yk_forecast *f;
  yk_step *step;
  uint16_t dev;
  yk_session_options o = options(0);
  o.virtual_gpu_bytes = bytes;
  make(&j, model, "gpu", 2, o);
  OK(yk__forecast_open(j.s, &f));
  OK(yk__forecast_step(f, 0, NULL, 1, &j.init, NULL, NULL));
  OK(yk__forecast_step(f, 1, &j.t.loss, 1, &j.t.train, NULL, NULL));
  *foreseen = yk__forecast_refusal(f, &dev) != NULL;
  yk__forecast_close(f);
  yk_code rc = yk_step_prepare(j.s, 0, NULL, 0, NULL, 1, &j.init, &step);
  if (rc == YK_OK) rc = yk_step_run(step, NULL, NULL);
  yk_step_free(step);
  if (rc == YK_OK) rc = yk_step_prepare(j.s, 0, NULL, 1, &j.t.loss, 1, &j.t.train, &step);
  if (rc == YK_OK) {
    rc = yk_step_run(step, NULL, NULL);
    yk_step_free(step);
  }
  if (rc != YK_OK && rc != YK_ENOMEM) fail_msg("%s in %llu bytes: %s", model, (unsigned long long)bytes, yk_error_message());
  *met = rc == YK_ENOMEM;
  end(j.s, j.g);
}

/* From too little to enough, in small steps: sums that fit are not always enough, and then the forecast knows. */
static void test_boundary(void **state) {
  enum { STEP = 128 << 10 };
  (void)state;
  for (size_t m = 0; m < 2; m++) {
    uint64_t begin = 0, end_at = 64u << 20;
    bool foreseen, met;
    while (end_at - begin > 8 * STEP) {                /* where it begins to fit, roughly */
      uint64_t middle = begin + (end_at - begin) / 2;
      refusals(models[m], middle, &foreseen, &met);
      if (met) begin = middle; else end_at = middle;
    }
    int refused = 0, fitted = 0;
    for (uint64_t bytes = begin - 2 * STEP; bytes < end_at + 2 * STEP; bytes += STEP) {
      refusals(models[m], bytes, &foreseen, &met);
      if (foreseen != met)
        fail_msg("%s in %llu bytes: the forecast %s it, the run %s it", models[m], (unsigned long long)bytes, foreseen ? "refuses" : "has",
                 met ? "refuses" : "has");
      refused += met;
      fitted += !met;
    }
    if (refused == 0 || fitted == 0) fail_msg("%s: %d refused, %d fitted", models[m], refused, fitted);
  }
}

/* ---- arithmetic: counted by hand ------------------------------------------------------------------------------------ */

static yk_code take_flops(yk_session *s, const yk_plan *p, const yk_var_slot *var, void *arg) {
  yk_survey v;
  double (*out)[YK__NPHASES] = arg;
  YK_TRY(yk__survey(s, p, var, &v));
  memcpy(out, v.flops, s->devices->n * sizeof *out);
  yk__survey_free(&v);
  return YK_OK;
}

static void test_flops(void **state) {
  job j;
  double flops[1][YK__NPHASES], one = 2.0 * BATCH * (432.0 * 1024 + 1024 * 1024 + 1024 * 10);
  (void)state;
  make(&j, "mlp", "cpu", 1, options(0));
  OK(yk__step_look(j.s, 0, NULL, 1, &j.t.loss, 1, &j.t.train, NULL, take_flops, flops));
  /* The products and a little more; backward has two products a layer but for the first, whose input needs no gradient. */
  double back = 2 * one - 2.0 * BATCH * 432 * 1024;
  double got[YK__NPHASES] = { flops[0][0], flops[0][1], flops[0][2] };
  if (!(got[YK__FORWARD] >= one && got[YK__FORWARD] < 1.01 * one)) fail_msg("forward %g, the products are %g", got[YK__FORWARD], one);
  if (!(got[YK__BACKWARD] >= back && got[YK__BACKWARD] < 1.01 * back)) fail_msg("backward %g, the products are %g", got[YK__BACKWARD], back);
  if (!(got[YK__UPDATE] > 1.5e6 && got[YK__UPDATE] < 4e6)) fail_msg("update %g, there are 1.5e6 parameters", got[YK__UPDATE]);
  end(j.s, j.g);
}

static void test_convolutions(void **state) {
  yk_graph *g = new_graph();
  double flops[1][YK__NPHASES];
  (void)state;
  yk_variable *x = yk_get_variable(g, "x", YK_F32, YK_SHAPE(2, 8, 6, 4), YK_ZEROS, NULL);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 3, 4, 5), YK_ZEROS, NULL);
  yk_value y = yk_conv2d(g, yk_read(x), yk_read(w), &(yk_conv2d_attrs){ .stride = { 2, 2 } }), dx[2], xs[2] = { yk_read(x), yk_read(w) };
  yk_gradients(g, 1, &y, NULL, 2, xs, NULL, dx);
  yk_session *s = open_session(g, 0);
  yk_value fetch[3] = { y, dx[0], dx[1] };
  OK(yk__step_look(s, 0, NULL, 3, fetch, 0, NULL, NULL, take_flops, flops));
  double one = 2.0 * 2 * 4 * 3 * 5 * 9 * 4;            /* 2 pictures of 4x3 places and 5 channels, each from 9 places of 4 */
  if (flops[0][YK__FORWARD] != one) fail_msg("forward %g, expected %g", flops[0][YK__FORWARD], one);
  double back = flops[0][YK__BACKWARD];
  if (!(back >= 2 * one && back < 2.1 * one)) fail_msg("backward %g, expected %g", back, 2 * one);
  end(s, g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all), cmocka_unit_test(test_growth), cmocka_unit_test(test_tight), cmocka_unit_test(test_too_small),
    cmocka_unit_test(test_boundary), cmocka_unit_test(test_flops), cmocka_unit_test(test_convolutions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
