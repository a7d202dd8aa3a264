/*
 * cmd_bench.c - `yoke bench MODEL --devices 1,2,4`: real training steps on one device and on several, and where their time goes.
 *
 * Each set of devices gets a job of its own, with the same batch, data and seed. Step times are taken without a trace; a few more steps
 * with one tell what each device did meanwhile. The verdict says in words what bounds the largest set.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "measure/measure.h"
#include "run/survey.h"

enum { MOST_SETS = 16, WARM_UP = 3, STEPS = 20, MOST_STEPS = 256, TRACED = 5, AHEAD = 2, LOOK = 16, LIST = YK__MAX_CHOSEN * 12 };

typedef enum share { COMPUTE, REDUCE, COPIES, INPUT, NSHARES } share;
static const char *const share_name[NSHARES] = { "compute", "reduce", "copies", "input" };

typedef struct device_time { char name[YK__SHORT_BYTES]; bool chosen; double ms[NSHARES], idle; } device_time;   /* of a step */

typedef struct set {                 /* one line of the table */
  char list[LIST];                   /* "gpu:0,gpu:1" */
  size_t n;
  double median, least, most, traced;   /* ms */
  device_time *device;               /* [ndevices] those that did something */
  size_t ndevices;
} set;

typedef struct bench {
  const yk_cli *c;
  const yk_model *model;
  int64_t batch, steps;
  uint32_t cores;
  bool shared_cores;                 /* all devices compute on cores of this host */
  set at[MOST_SETS];
  size_t n;
  char text[800];                    /* the verdict */
  const char *bound;
} bench;

/* ---- which sets --------------------------------------------------------------------------------------------------- */

/* GPUs that there are, with the virtual ones; 0 with a status if that cannot be told. */
static int count_gpus(const yk_cli *c, size_t *out) {
  yk_session_options o;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  int status = yk__session_settings(c, &o);
  if (status == 0) status = yk__probe(&o, &g, &s);
  if (status != 0) return status;
  *out = 0;
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    if (yk_session_device(s, i, &d) == YK_OK && strcmp(d.type, "GPU") == 0) ++*out;
  }
  yk_session_close(s);
  yk_graph_free(g);
  return 0;
}

static int add_set(bench *b, const char *list, size_t length, size_t n) {
  if (b->n == MOST_SETS) return yk__die(YK__EXIT_USAGE, "--devices: at most %d sets of devices", MOST_SETS);
  if (length >= LIST) return yk__die(YK__EXIT_USAGE, "--devices '%s': a list of %zu characters", yk__shown(list), length);
  set *s = &b->at[b->n++];
  snprintf(s->list, sizeof s->list, "%.*s", (int)length, list);
  s->n = n;
  return 0;
}

/* The first n GPUs, or, on a machine without, n CPU devices. */
static int add_count(bench *b, int64_t n, size_t gpus) {
  char list[LIST] = "";
  size_t at = 0;
  if (gpus > 0 && (size_t)n > gpus)
    return yk__die(YK__EXIT_NO_GPU, "--devices: %lld devices are asked for, there are %zu GPUs", (long long)n, gpus);
  for (int64_t i = 0; i < n && at < sizeof list; i++)
    at += (size_t)snprintf(list + at, sizeof list - at, "%s%s:%lld", i > 0 ? "," : "", gpus > 0 ? "gpu" : "cpu", (long long)i);
  return add_set(b, list, strlen(list), (size_t)n);
}

static bool only_counts(const char *text) {
  return text[strspn(text, "0123456789,")] == '\0';
}

static int parse_counts(bench *b, const char *text, size_t gpus) {
  for (const char *p = text;; p++) {
    char item[16];
    size_t len = strcspn(p, ",");
    int64_t n;
    snprintf(item, sizeof item, "%.*s", (int)(len < sizeof item ? len : sizeof item - 1), p);
    if (!yk__parse_i64(item, 1, YK__MAX_CHOSEN, &n))
      return yk__die(YK__EXIT_USAGE, "--devices '%s': expected numbers of devices from 1 to %d, as 1,2,4", yk__shown(text), YK__MAX_CHOSEN);
    int status = add_count(b, n, gpus);
    if (status != 0) return status;
    p += len;
    if (*p == '\0') return 0;
  }
}

/* Lists between semicolons; one alone is measured beside its first device. */
static int parse_lists(bench *b, const char *text) {
  int status = 0;
  if (strchr(text, ';') == NULL && strchr(text, ',') != NULL) status = add_set(b, text, strcspn(text, ","), 1);
  for (const char *p = text; status == 0; p++) {
    size_t len = strcspn(p, ";"), n = 1;
    for (size_t i = 0; i < len; i++) n += p[i] == ',';
    status = add_set(b, p, len, n);
    p += len;
    if (*p == '\0') break;
  }
  return status;
}

static int find_sets(bench *b) {
  const char *text = b->c->devices;
  size_t gpus = 0;
  int status = text == NULL || only_counts(text) ? count_gpus(b->c, &gpus) : 0;
  if (status != 0) return status;
  if (text != NULL && text[0] != '\0') return only_counts(text) ? parse_counts(b, text, gpus) : parse_lists(b, text);
  size_t most = gpus > 0 ? gpus : (size_t)yk__ncores() < 8 ? (size_t)yk__ncores() : 8;
  for (size_t n = 1; n <= most && status == 0; n *= 2) status = add_count(b, (int64_t)n, gpus);
  return status;
}

/* ---- one set ------------------------------------------------------------------------------------------------------ */

typedef struct gathering { double (*ms)[NSHARES]; } gathering;      /* [devices] */

/* What stands outside the towers and takes no input is work on sums and variables. */
static share share_of(const yk_plan *p, const yk_instr *x) {
  if (x->code != YK_I_LAUNCH) return COPIES;
  if (yk__instr_input(p, x)) return INPUT;
  if (yk__instr_phase(p, x) == YK__UPDATE) return REDUCE;
  return strncmp(p->origin[x->origin].name, "tower_", 6) == 0 ? COMPUTE : REDUCE;
}

static void gather(const yk_plan *p, uint32_t instr, uint64_t ns, void *arg) {
  gathering *g = arg;
  const yk_instr *x = &p->instr[instr];
  g->ms[p->stream_dev[x->stream]][share_of(p, x)] += (double)ns * 1e-6 / TRACED;
}

static bool is_chosen(const yk_job *j, const char *name) {
  for (size_t i = 0; i < j->devices.n; i++)
    if (strcmp(j->devices.at[i], name) == 0) return true;
  return false;
}

static yk_code keep(const yk_job *j, const gathering *g, set *s) {
  size_t n = yk_session_device_count(j->session);
  s->device = yk__calloc(n + 1, sizeof *s->device);
  if (s->device == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    device_time *d = &s->device[s->ndevices];
    yk_device_info info;
    double sum = 0;
    YK_TRY(yk_session_device(j->session, i, &info));
    for (int k = 0; k < NSHARES; k++) sum += d->ms[k] = g->ms[i][k];
    yk__short_name(info.name, d->name);
    d->chosen = is_chosen(j, d->name);
    d->idle = fmax(0, s->traced - sum);
    if (sum > 0) s->ndevices++;
  }
  return YK_OK;
}

static yk_code trace(yk_job *j, set *s) {
  gathering g = { .ms = yk__calloc(yk_session_device_count(j->session) + 1, sizeof *g.ms) };
  yk_code rc = g.ms != NULL ? yk_step_run(j->step, NULL, NULL) : YK_ENOMEM;
  if (rc == YK_OK) rc = yk_trace_start(j->session);
  if (rc == YK_OK) rc = yk_step_run(j->step, NULL, NULL);      /* makes what a traced run needs */
  if (rc == YK_OK) rc = yk_trace_start(j->session);            /* anew: that one does not count */
  uint64_t begin = yk__now_ns();
  for (int i = 0; i < TRACED && rc == YK_OK; i++) rc = yk_step_run(j->step, NULL, NULL);
  s->traced = (double)(yk__now_ns() - begin) * 1e-6 / TRACED;
  if (rc == YK_OK) rc = yk__trace_take(j->session, gather, &g);
  if (rc == YK_OK) rc = keep(j, &g, s);
  yk__free(g.ms);
  return rc;
}

static size_t bytes_of(const yk_desc *one) {
  size_t n = yk_dtype_bytes((yk_dtype)one->dtype);
  for (uint8_t k = 0; k < one->rank; k++) n *= (size_t)one->dim[k];
  return n;
}

/* Takes the examples of all steps, then moves back: a picture that has to be drawn or read from disk for the first time costs what no
 * later epoch pays. */
static yk_code look_at_input(bench *b, yk_job *j) {
  const yk_source *source = yk_queue_source(j->queue);
  int64_t left = (b->steps + WARM_UP + TRACED + 2 + AHEAD) * b->batch, taken;
  void *row[YK_MAX_COMPONENTS] = { NULL };
  yk_code rc = YK_OK;
  if (left > yk_dataset_size(j->train)) left = yk_dataset_size(j->train);
  for (uint32_t c = 0; c < source->ncomponents && rc == YK_OK; c++) {
    row[c] = yk__alloc(LOOK * bytes_of(&source->component[c]));
    if (row[c] == NULL) rc = YK_ENOMEM;
  }
  for (; left > 0 && rc == YK_OK; left -= taken) rc = yk_queue_take(j->queue, YK_TAKE_UP_TO, left < LOOK ? left : LOOK, row, &taken);
  if (rc == YK_OK) rc = yk_queue_seek(j->queue, (yk_position){ 0 });
  for (uint32_t c = 0; c < source->ncomponents; c++) yk__free(row[c]);
  return rc;
}

static yk_code time_steps(bench *b, yk_job *j, set *s) {
  double ms[MOST_STEPS];
  YK_TRY(look_at_input(b, j));
  for (int i = 0; i < WARM_UP; i++) YK_TRY(yk_step_run(j->step, NULL, NULL));
  for (int64_t i = 0; i < b->steps; i++) {
    uint64_t begin = yk__now_ns();
    YK_TRY(yk_step_run(j->step, NULL, NULL));
    ms[i] = (double)(yk__now_ns() - begin) * 1e-6;
  }
  s->median = yk__median(ms, (size_t)b->steps);      /* sorts */
  s->least = ms[0];
  s->most = ms[b->steps - 1];
  return trace(j, s);
}

/* Do all its devices compute on cores of this host? */
static void note_host(bench *b, const yk_job *j) {
  b->shared_cores = true;
  for (size_t i = 0; i < j->devices.n; i++) b->shared_cores &= j->devices.is_virtual[i] || strncmp(j->devices.at[i], "/cpu", 4) == 0;
  b->cores = (uint32_t)yk_session_options_of(j->session)->cores;
}

static int measure(bench *b, set *s) {
  yk_job j = { 0 };
  yk_cli c = *b->c;
  c.devices = s->list;
  c.steps = b->steps + WARM_UP + TRACED + 2;
  int status = yk__job_model(&c, &j);
  b->model = j.model;
  b->batch = j.batch;
  if (status == 0 && (size_t)j.batch < j.devices.n)
    status = yk__die(YK__EXIT_USAGE, "--batch %lld is less than one example for each of %zu devices", (long long)j.batch, j.devices.n);
  if (status == 0) status = yk__job_data(&c, &j, true, false);
  if (status == 0) status = yk__job_build(&c, &j);
  if (status == 0) status = yk__job_start(&j);
  if (status == 0) {
    note_host(b, &j);
    yk_code rc = time_steps(b, &j, s);
    if (rc != YK_OK) status = yk__die_code(rc);
  }
  yk__job_free(&j);
  return status;
}

/* ---- the verdict -------------------------------------------------------------------------------------------------- */

/* Mean over the devices that were chosen, as part of the step. */
static double part(const set *s, int k) {
  double sum = 0;
  int n = 0;
  for (size_t i = 0; i < s->ndevices; i++) {
    if (!s->device[i].chosen) continue;
    sum += k == NSHARES ? s->device[i].idle : s->device[i].ms[k];
    n++;
  }
  return n > 0 && s->traced > 0 ? sum / n / s->traced : 0;
}

/* The part of the step that the busiest device spends on one thing. */
static double most(const set *s, int k) {
  double top = 0;
  for (size_t i = 0; i < s->ndevices; i++) top = fmax(top, s->device[i].ms[k]);
  return s->traced > 0 ? top / s->traced : 0;
}

static double speedup(const bench *b, const set *s) { return b->at[0].median / s->median; }
static double efficiency(const bench *b, const set *s) { return speedup(b, s) * (double)b->at[0].n / (double)s->n; }

/* What limits the set, and what may be done about it. */
static const char *bound_of(const bench *b, const set *s, const char **advice) {
  double input = most(s, INPUT), reduce = most(s, REDUCE), copies = most(s, COPIES), idle = part(s, NSHARES);
  *advice = "a larger batch does not help; bf16, a smaller network or more devices would";
  if (input > 0.05) return *advice = "more threads prepare data with YOKE_DATA_THREADS, and YOKE_DATA_PREFETCH keeps more batches ahead", "input";
  if (s->n > 1 && efficiency(b, s) < 0.9) {
    *advice = "a larger batch gives each exchange more work; fewer devices waste less";
    if (copies > 0.1 && copies >= reduce) return "copies";
    if (reduce > 0.1) return "reduce";
    if (idle > 0.1) return "idle";
  }
  return "compute";
}

static void judge(bench *b) {
  static const struct { const char *bound, *what; } words[] = {
    { "input", "the steps wait for their input" }, { "copies", "copies between the devices cost most of what is lost" },
    { "reduce", "summing the gradients and updating the variables costs most of what is lost" },
    { "idle", "the devices wait for each other" }, { "compute", "computation bounds the step" } };
  set *last = &b->at[0];
  const char *advice, *what = "";
  size_t at = 0;
  for (size_t i = 1; i < b->n; i++)
    if (b->at[i].n > last->n) last = &b->at[i];
  b->bound = bound_of(b, last, &advice);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].bound, b->bound) == 0) what = words[i].what;
  if (last->n > b->at[0].n)
    at += (size_t)snprintf(b->text, sizeof b->text, "%zu devices are %.2f times as fast as %zu (efficiency %.2f): ", last->n,
                           speedup(b, last), b->at[0].n, efficiency(b, last));
  at += (size_t)snprintf(b->text + at, sizeof b->text - at, "%s; of a device's step %.0f%% is compute, %.0f%% reduce, %.0f%% copies, "
                         "%.0f%% input, %.0f%% idle. %c%s", what, 100 * part(last, COMPUTE), 100 * part(last, REDUCE), 100 * part(last, COPIES),
                         100 * part(last, INPUT), 100 * part(last, NSHARES), advice[0] - 'a' + 'A', advice + 1);
  if (b->shared_cores && last->n > 1 && at < sizeof b->text)
    snprintf(b->text + at, sizeof b->text - at, ". All these devices share the %u cores of this host, which bounds them together",
             (unsigned)b->cores);
}

/* ---- output ------------------------------------------------------------------------------------------------------- */

static void put_text(const bench *b) {
  printf("%s, global batch %lld, medians of %lld steps\n", b->model->name, (long long)b->batch, (long long)b->steps);
  printf("%-28s %10s %18s %11s %9s %11s\n", "devices", "step ms", "smallest-largest", "examples/s", "speed-up", "efficiency");
  for (size_t i = 0; i < b->n; i++) {
    const set *s = &b->at[i];
    char spread[40];
    snprintf(spread, sizeof spread, "%.4g-%.4g", s->least, s->most);
    printf("%-28.60s %10.4g %18s %11.4g %9.2f %11.2f\n", s->list, s->median, spread, (double)b->batch / s->median * 1e3, speedup(b, s),
           efficiency(b, s));
  }
  printf("\n%-28s %-8s %10s %10s %10s %10s %10s\n", "ms of a step", "device", "compute", "reduce", "copies", "input", "idle");
  for (size_t i = 0; i < b->n; i++)
    for (size_t k = 0; k < b->at[i].ndevices; k++) {
      const device_time *d = &b->at[i].device[k];
      printf("%-28.60s %-8s %10.4g %10.4g %10.4g %10.4g %10.4g\n", k == 0 ? b->at[i].list : "", d->name, d->ms[COMPUTE], d->ms[REDUCE],
             d->ms[COPIES], d->ms[INPUT], d->idle);
    }
  printf("\n%s\n", b->text);
}

static void json_set(yk_json *o, const bench *b, const set *s) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "devices", s->list);
  yk__json_int(o, "count", (int64_t)s->n);
  yk__json_real(o, "step_ms", s->median);
  yk__json_real(o, "min_ms", s->least);
  yk__json_real(o, "max_ms", s->most);
  yk__json_real(o, "examples_per_second", (double)b->batch / s->median * 1e3);
  yk__json_real(o, "speedup", speedup(b, s));
  yk__json_real(o, "efficiency", efficiency(b, s));
  yk__json_real(o, "traced_ms", s->traced);
  yk__json_open(o, "split", '[');
  for (size_t k = 0; k < s->ndevices; k++) {
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "device", s->device[k].name);
    for (int m = 0; m < NSHARES; m++) {
      char key[24];
      snprintf(key, sizeof key, "%s_ms", share_name[m]);
      yk__json_real(o, key, s->device[k].ms[m]);
    }
    yk__json_real(o, "idle_ms", s->device[k].idle);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
  yk__json_close(o, '}');
}

static void put_json(const bench *b) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "model", b->model->name);
  yk__json_int(&o, "batch", b->batch);
  yk__json_int(&o, "steps", b->steps);
  yk__json_open(&o, "results", '[');
  for (size_t i = 0; i < b->n; i++) json_set(&o, b, &b->at[i]);
  yk__json_close(&o, ']');
  yk__json_text(&o, "bound_by", b->bound);
  yk__json_text(&o, "verdict", b->text);
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

int yk__cmd_bench(const yk_cli *c) {
  bench *b = yk__calloc(1, sizeof *b);
  if (b == NULL) return yk__die_code(YK_ENOMEM);
  b->c = c;
  b->steps = c->steps == 0 ? STEPS : c->steps < MOST_STEPS ? c->steps : MOST_STEPS;
  int status = find_sets(b);
  for (size_t i = 0; i < b->n && status == 0; i++) status = measure(b, &b->at[i]);
  if (status == 0) {
    judge(b);
    if (c->json) put_json(b);
    else put_text(b);
  }
  for (size_t i = 0; i < b->n; i++) yk__free(b->at[i].device);
  yk__free(b);
  return status;
}
