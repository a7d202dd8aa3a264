/*
 * cmd_plan.c - `yoke plan MODEL`: what a training step takes, before anything is paid for.
 *
 * As `yoke explain`, it reads no data: blank pictures give the shapes. The bytes are those that the run will count, the step time
 * comes from timing the plan's kernels on scratch memory, or, with --rehearse, from the speeds in the file.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "data/dataset.h"
#include "measure/expect.h"
#include "run/forecast.h"
#include "run/survey.h"

enum { LARGEST = 5 };
#define TOPOLOGY_SECONDS 0.5
#define KERNEL_SECONDS 2.0

typedef struct plan {
  const yk_cli *c;
  yk_job job;
  yk_topology links;
  yk_forecast *forecast;
  size_t ndevices;
  bool fits;
  uint16_t refuses;                  /* device that is too full, or too cut up; YK__NO_DEVICE: none */
  char verdict[1600];
} plan;

static double total(const yk_survey *v, size_t n, yk_phase phase) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += v->flops[i][phase];
  return sum;
}

static bool device_fits(const plan *p, const yk_survey *v, uint16_t i) { return v->use[i].fits && i != p->refuses; }

static yk_device_memory memory_of(const plan *p, size_t i) {
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__forecast_memory(p->forecast, i, &m);
  return m;
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void put_headline(const plan *p, const yk_survey *v) {
  const yk_job *j = &p->job;
  size_t n = j->replicas;
  double f = total(v, p->ndevices, YK__FORWARD), b = total(v, p->ndevices, YK__BACKWARD), u = total(v, p->ndevices, YK__UPDATE);
  char names[YK__MAX_CHOSEN * 12];
  yk__job_devices(j, names, sizeof names);
  printf("%s on %s: global batch %lld", j->model->name, names, (long long)j->batch);
  for (size_t i = 0; i < n && n > 1; i++) printf(" %s %lld", i == 0 ? "=" : "+", (long long)yk_replica_share(j->batch, n, i));
  printf("; strategy %s", yk_strategy_name(j->towers.strategy));
  if (j->precision != YK_F32) printf("; in %s%s", yk_dtype_name(j->precision), yk__job_slow(j) < YK__MAX_CHOSEN ? ", slower than f32 here" : "");
  printf("\n%lld parameters; %.4g GFLOP a step: forward %.4g, backward %.4g, update %.3g\n", (long long)j->parameters, (f + b + u) * 1e-9,
         f * 1e-9, b * 1e-9, u * 1e-9);
}

static void put_memory(const plan *p, const yk_survey *v) {
  char name[YK__ROUTE_TEXT], a[YK__BYTES_TEXT], b[YK__BYTES_TEXT], used[YK__BYTES_TEXT], held[YK__BYTES_TEXT], limit[YK__BYTES_TEXT];
  printf("%-8s %12s %12s %16s %16s %12s\n", "device", "variables", "step", "in use at most", "held at most", "limit");
  for (uint16_t i = 0; i < p->ndevices; i++) {
    const yk_device_use *u = &v->use[i];
    yk_device_memory m = memory_of(p, i);
    printf("%-8s %12s %12s %16s %16s %12s  %s\n", yk__survey_device(v, i, name), yk__bytes_text(u->variable_bytes, a),
           yk__bytes_text(u->arena_bytes, b), yk__bytes_text(m.peak_in_use, used),
           yk__bytes_text(m.peak_held, held), yk__bytes_text(u->bytes_limit, limit), device_fits(p, v, i) ? "fits" : "DOES NOT FIT");
  }
}

static void put_largest(const yk_survey *v) {
  char text[YK__HOLDING_TEXT], name[YK__ROUTE_TEXT], size[YK__BYTES_TEXT];
  printf("largest tensors:\n");
  for (uint32_t i = 0; i < v->nheld && i < LARGEST; i++)
    printf("  %12s  %-8s %s\n", yk__bytes_text(v->held[i].bytes, size), yk__survey_device(v, v->held[i].dev, name),
           yk__holding_text(&v->held[i], text));
}

static void put_time(const plan *p, const yk_survey *v, const yk_expectation *x) {
  char name[YK__ROUTE_TEXT];
  if (p->c->no_time) return;
  if (!x->known) {
    printf("step time to expect: not known; %s\n", x->why);
    return;
  }
  printf("step time to expect: %.4g ms, %.4g examples/s\n", x->seconds * 1e3, (double)p->job.batch / x->seconds);
  for (uint16_t i = 0; i < p->ndevices; i++)
    if (x->busy[i] > 0 || x->copying[i] > 0)
      printf("  %-8s kernels %.4g ms, copies %.4g ms, idle %.4g ms\n", yk__survey_device(v, i, name), x->busy[i] * 1e3,
             x->copying[i] * 1e3, fmax(0, x->seconds - x->busy[i] - x->copying[i]) * 1e3);
  if (x->measured)
    printf("worked out from %u different kernels, each timed on its devices (%u reckoned from the memory's speed), copies at the "
           "speed measured, the order and waits of the plan, and %.2g ms of cores lent to the input\n", (unsigned)x->kinds,
           (unsigned)x->reckoned, x->input * 1e3);
  else
    printf("worked out from the speeds in '%s': each kernel takes its operations at GFLOP/s or its bytes at GB/s, whichever is longer\n",
           p->c->rehearse);
}

static yk_code put_text(const plan *p, const yk_survey *v, const yk_expectation *x) {
  yk_str source = { 0 }, copies = { 0 };
  char *first = NULL, *second = NULL;
  yk__survey_put_source(v, &source);
  yk__survey_put_copies(v, &copies);
  yk_code rc = yk__str_take(&source, &first);
  if (rc == YK_OK) rc = yk__str_take(&copies, &second);
  if (rc == YK_OK) {
    fputs(first, stdout);
    put_headline(p, v);
    put_memory(p, v);
    fputs(second, stdout);
    put_largest(v);
    put_time(p, v, x);
  }
  yk__free(first);
  yk__free(second);
  return rc;
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void json_memory(yk_json *o, const plan *p, const yk_survey *v) {
  yk__json_open(o, "memory", '[');
  for (uint16_t i = 0; i < p->ndevices; i++) {
    const yk_device_use *u = &v->use[i];
    yk_device_memory m = memory_of(p, i);
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "name", v->s->devices->at[i].name);
    yk__json_int(o, "variables", (int64_t)u->variables);
    yk__json_int(o, "variable_bytes", (int64_t)u->variable_bytes);
    yk__json_int(o, "step_bytes", (int64_t)u->arena_bytes);
    yk__json_int(o, "peak_in_use", (int64_t)m.peak_in_use);
    yk__json_int(o, "peak_held", (int64_t)m.peak_held);
    yk__json_int(o, "bytes_limit", (int64_t)u->bytes_limit);
    yk__json_bool(o, "fits", device_fits(p, v, i));
    for (int k = 0; k < YK__NPHASES; k++)
      yk__json_real(o, k == YK__FORWARD ? "flops_forward" : k == YK__BACKWARD ? "flops_backward" : "flops_update", v->flops[i][k]);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void json_copies(yk_json *o, const yk_survey *v) {
  char from[YK__ROUTE_TEXT], to[YK__ROUTE_TEXT];
  uint64_t sum = 0;
  yk__json_open(o, "copies", '[');
  for (uint32_t i = 0; i < v->nroute; i++) {
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "from", yk__survey_device(v, v->route[i].from, from));
    yk__json_text(o, "to", yk__survey_device(v, v->route[i].to, to));
    yk__json_int(o, "copies", v->route[i].copies);
    yk__json_int(o, "bytes", (int64_t)v->route[i].bytes);
    yk__json_close(o, '}');
    sum += v->route[i].bytes;
  }
  yk__json_close(o, ']');
  yk__json_int(o, "copied_bytes", (int64_t)sum);
}

static void json_largest(yk_json *o, const yk_survey *v) {
  char text[YK__HOLDING_TEXT], name[YK__ROUTE_TEXT];
  yk__json_open(o, "largest", '[');
  for (uint32_t i = 0; i < v->nheld && i < LARGEST; i++) {
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "tensor", yk__holding_text(&v->held[i], text));
    yk__json_text(o, "device", yk__survey_device(v, v->held[i].dev, name));
    yk__json_int(o, "bytes", (int64_t)v->held[i].bytes);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void json_time(yk_json *o, const plan *p, const yk_survey *v, const yk_expectation *x) {
  char name[YK__ROUTE_TEXT];
  yk__json_real(o, "step_ms", x->known ? x->seconds * 1e3 : (double)NAN);
  yk__json_real(o, "examples_per_second", x->known ? (double)p->job.batch / x->seconds : (double)NAN);
  yk__json_real(o, "input_ms", x->known ? x->input * 1e3 : (double)NAN);
  yk__json_text(o, "how", !x->known ? NULL : x->measured ? "kernels timed" : "speeds of the file");
  yk__json_text(o, "why_not", x->known ? NULL : p->c->no_time ? "--no-time" : x->why);
  yk__json_open(o, "time", '[');
  for (uint16_t i = 0; x->known && i < p->ndevices; i++) {
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "device", yk__survey_device(v, i, name));
    yk__json_real(o, "kernels_ms", x->busy[i] * 1e3);
    yk__json_real(o, "copies_ms", x->copying[i] * 1e3);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void put_json(const plan *p, const yk_survey *v, const yk_expectation *x) {
  static const char *const phase[YK__NPHASES] = { "forward", "backward", "update" };
  const yk_job *j = &p->job;
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_job(&o, j);
  yk__json_text(&o, "strategy", yk_strategy_name(j->towers.strategy));
  yk__json_int(&o, "parameters", j->parameters);
  yk__json_open(&o, "flops", '{');
  for (int k = 0; k < YK__NPHASES; k++) yk__json_real(&o, phase[k], total(v, p->ndevices, (yk_phase)k));
  yk__json_close(&o, '}');
  yk__json_bool(&o, "fits", p->fits);
  yk__json_text(&o, "verdict", p->verdict);
  json_memory(&o, p, v);
  json_copies(&o, v);
  json_largest(&o, v);
  json_time(&o, p, v, x);
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

/* ---- the command -------------------------------------------------------------------------------------------------- */

/* Told from the sums where they decide, otherwise from what the device that refuses would say. */
static yk_code judge(plan *p, const yk_survey *v) {
  yk_str text = { 0 };
  char *line = NULL, name[YK__ROUTE_TEXT];
  const char *refusal = yk__forecast_refusal(p->forecast, &p->refuses);
  p->fits = v->fits && refusal == NULL;
  if (!v->fits || refusal == NULL) yk__survey_put_verdict(v, &text);
  else yk__str_add(&text, "the step does not fit on %s, though its sums do: %s", yk__survey_device(v, p->refuses, name), refusal);
  YK_TRY(yk__str_take(&text, &line));
  snprintf(p->verdict, sizeof p->verdict, "%.*s", (int)strcspn(line, "\n"), line);
  yk__free(line);
  return YK_OK;
}

/* Seconds that one core takes to make a batch of pictures that are in memory: half of the examples are made before the clock starts. */
static double input_seconds(const plan *p) {
  enum { EXAMPLES = 32 };
  const yk_job *j = &p->job;
  yk_shape s = yk_dataset_shape(j->train);
  yk_frame frame = { .h = s.dim[0], .w = s.dim[1], .c = s.dim[2], .size = j->size };
  float *to = yk__alloc((size_t)(j->size * j->size * s.dim[2]) * sizeof *to);
  if (to == NULL) return 0;
  uint64_t begin = 0;
  for (int i = -EXAMPLES; i < EXAMPLES; i++) {
    if (i == 0) begin = yk__now_ns();
    yk__augment(j->model->train_augment, &frame, yk_dataset_image(j->train, 0), 1, (uint64_t)(i + EXAMPLES), to);
  }
  double seconds = (double)(yk__now_ns() - begin) * 1e-9;
  yk__free(to);
  return seconds / EXAMPLES * (double)j->batch;
}

static yk_code tell(plan *p, const yk_plan *compiled, const yk_survey *v) {
  yk_expectation x = { 0 };
  YK_TRY(yk__forecast_read_back(p->forecast));
  YK_TRY(judge(p, v));
  yk_code rc = YK_OK;
  if (!p->c->no_time && p->fits) rc = yk__expect(p->job.session, compiled, &p->links, input_seconds(p), KERNEL_SECONDS, &x);
  else snprintf(x.why, sizeof x.why, "the step does not fit");
  if (rc == YK_OK && p->c->json) put_json(p, v, &x);
  else if (rc == YK_OK) rc = put_text(p, v, &x);
  yk__expectation_free(&x);
  return rc;
}

static yk_code seen(yk_session *s, const yk_plan *compiled, const yk_var_slot *var, void *arg) {
  yk_survey v;
  YK_TRY(yk__survey(s, compiled, var, &v));
  yk_code rc = tell(arg, compiled, &v);
  yk__survey_free(&v);
  return rc;
}

static yk_code foresee(plan *p) {
  yk_job *j = &p->job;
  yk_value init = yk_global_variables_initializer(j->graph), fetch[YK__MOST_FETCHES];
  size_t n = yk__job_fetches(j, fetch);
  YK_TRY(yk_session_open(j->graph, &j->devices.session, &j->session));
  p->ndevices = yk_session_device_count(j->session);
  if (!p->c->no_time && p->c->rehearse == NULL) YK_TRY(yk__topology_measure(j->session, TOPOLOGY_SECONDS, &p->links));
  YK_TRY(yk__forecast_open(j->session, &p->forecast));
  YK_TRY(yk__forecast_step(p->forecast, 0, NULL, 1, &init, NULL, NULL));
  return yk__forecast_step(p->forecast, n, fetch, 1, &j->towers.train, seen, p);
}

static int run(plan *p) {
  int status = yk__job_model(p->c, &p->job);
  if (status == 0) status = yk__job_blank(&p->job);
  if (status == 0) status = yk__job_build(p->c, &p->job);
  if (status != 0) return status;
  yk_code rc = foresee(p);
  if (rc != YK_OK) return yk__die_code(rc);
  return p->fits ? 0 : yk__die(YK__EXIT_RUN, "%s", p->verdict);
}

int yk__cmd_plan(const yk_cli *c) {
  plan p = { .c = c, .refuses = YK__NO_DEVICE };
  int status = run(&p);
  yk__forecast_close(p.forecast);
  yk__topology_free(&p.links);
  yk__job_free(&p.job);
  return status;
}
