/*
 * cmd_train.c - `yoke train MODEL`: data, devices, steps, and a folder with what came of it.
 *
 * Everything that can be refused is refused before the first step: network,
 * devices, data, the folder. The batch the user names is the global one, and the
 * first line says how it is shared out.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/param.h"
#include "base/thread.h"
#include "cli/keeper.h"
#include "cli/network.h"

enum { TRACE_AT = 5, TRACE_STEPS = 3 };

typedef struct yk_train {
  const yk_cli *c;                   /* -> cli */
  yk_cli cli;                        /* what was given, and what a resumed run takes over */
  yk_bump texts;
  yk_checkpoint *from;               /* what is gone on from, until its values are taken */
  int64_t first;                     /* steps done before */
  yk_keeper keeper;
  yk_job job;
  yk_eval eval;
  yk_metrics metrics;
  yk_board board;
  FILE *out, *log;
  char folder[YK__PATH], trace[YK__PATH];
  char *headline, *settings;
  int64_t trace_from, trace_to;      /* steps; from = to: none */
  uint64_t begun, built, initialised, opened;   /* clock: the command began; the ends of the phases before the first step */
  bool traced;
} yk_train;

/* ---- what is said before ----------------------------------------------------------------------------------------- */

/* Where the variables are, and who decided that where there was something to decide. */
static void say_strategy(yk_str *s, const yk_job *j) {
  static const char *const place[] = { [YK_STRATEGY_HOME] = "variables on /cpu:0", [YK_STRATEGY_SHARDED] = "variables sharded over them",
                                       [YK_STRATEGY_MIRRORED] = "variables mirrored on each" };
  yk__str_add(s, ", %s", place[j->towers.strategy]);
  if (j->devices.n > 1) yk__str_add(s, " (%s)", j->towers.why);
}

/* " = 4 + 3 + 3", one term a replica. */
static void say_shares(yk_str *s, const yk_job *j) {
  enum { MOST = 16 };
  yk__str_add(s, ": global batch %lld", (long long)j->batch);
  for (size_t i = 0; i < j->replicas && j->replicas > 1 && j->replicas <= MOST; i++)
    yk__str_add(s, " %s %lld", i == 0 ? "=" : "+", (long long)yk_replica_share(j->batch, j->replicas, i));
  if (j->replicas > MOST) yk__str_add(s, " over %zu replicas", j->replicas);
}

static yk_code headline(yk_train *t) {
  const yk_job *j = &t->job;
  const yk_chosen *d = &j->devices;
  yk_str s = { 0 };
  yk__str_add(&s, "%s on", j->model->name);
  for (size_t i = 0; i < d->n; i++)
    yk__str_add(&s, " %s%s%s%s", d->at[i], d->absent[i] ? " (for the absent " : "", d->absent[i] ? d->name[i] : "",
                d->absent[i] ? ")" : d->is_virtual[i] && (i + 1 == d->n || !d->is_virtual[i + 1]) ? " (virtual)" : "");
  if (d->why[0] != '\0') yk__str_add(&s, " (chosen by auto: no usable GPU, %s)", d->why);
  if (d->automatic && d->why[0] == '\0') yk__str_add(&s, " (chosen by auto)");
  if (j->precision != YK_F32) yk__str_add(&s, ", in %s", yk_dtype_name(j->precision));
  say_strategy(&s, j);
  say_shares(&s, j);
  yk__str_add(&s, "; %s, %lld train, %lld test %s; %lld steps", j->data_name, (long long)yk_dataset_size(j->train),
              (long long)yk_dataset_size(j->test), j->pictures ? "pictures" : "examples", (long long)j->steps);
  return yk__str_take(&s, &t->headline);
}

static void put_run(yk_json *o, const yk_train *t) {
  const yk_job *j = &t->job;
  yk__json_job(o, j);
  yk__json_text(o, "data", j->data_name);
  yk__json_text(o, "strategy", yk_strategy_name(j->towers.strategy));
  yk__json_int(o, "replicas", (int64_t)j->replicas);
}

static yk_code settings(yk_train *t) {
  const yk_cli *c = t->c;
  size_t n;
  const yk_param_info *p = yk__param_all(&n);
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  put_run(&o, t);
  yk__json_text(&o, "data_path", c->data);
  yk__json_int(&o, "steps", t->job.steps);
  yk__json_real(&o, "epochs", t->job.epochs);
  yk__json_text(&o, "optimizer", c->optimizer);
  yk__json_text(&o, "schedule", c->schedule);
  yk__json_real(&o, "learning_rate", t->job.base_rate);
  yk__json_real(&o, "clip_norm", c->clip_norm > 0 ? c->clip_norm : (double)NAN);
  yk__json_text(&o, "nan_check", c->nan_check != NULL ? c->nan_check : "finite");
  yk__json_int(&o, "seed", yk__job_seed(c));
  yk__json_bool(&o, "deterministic", c->deterministic);
  yk__json_bool(&o, "sync_batch_norm", c->sync_batch_norm);
  yk__json_text(&o, "virtual_gpus", c->virtual_gpus);
  yk__json_text(&o, "memory_limit", c->memory_limit);
  if (c->memory_fraction > 0) yk__json_real(&o, "memory_fraction", c->memory_fraction);
  yk__json_bool(&o, "memory_growth", c->memory_growth);
  yk__json_bool(&o, "soft_placement", c->soft_placement);
  yk__json_int(&o, "parameters", t->job.parameters);
  yk__json_text(&o, "version", yk_version());
  yk__json_open(&o, "settings", '{');
  for (size_t i = 0; i < n; i++) {
    yk__json_break(&o);
    yk__json_text(&o, p[i].name, yk__param(p[i].name));
  }
  yk__json_close(&o, '}');
  yk__json_close(&o, '}');
  yk__str_put(&o.text, "\n", 1);
  return yk__str_take(&o.text, &t->settings);
}

/* The folder and its first files: if they can be written, the others can. */
static int open_folder(yk_train *t) {
  char path[YK__PATH];
  int status = yk__folder_make(t->c, t->folder);
  if (status == 0) status = yk__keeper_open(&t->keeper, t->c, &t->job, &t->metrics, t->folder, t->from);
  if (status != 0) return status;
  yk_code rc = yk__folder_write(t->folder, "settings.json", t->settings, strlen(t->settings));
  if (rc == YK_OK) rc = yk__folder_path(t->folder, "metrics.jsonl", path);
  if (rc == YK_OK && (t->log = yk__resume_log(t->from, path)) == NULL) rc = YK_FAIL(EIO, "'%s' cannot be created: %s", path, strerror(errno));
  if (rc == YK_OK) setvbuf(t->log, NULL, _IONBF, 0);        /* a line that a full disk refuses must not wait in a buffer */
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--out: %s", yk_error_message());
}

static yk_code plan_trace(yk_train *t) {
  int64_t steps = t->job.steps, left = steps - t->first, want = t->c->trace != NULL ? yk__param_int("trace.steps") : TRACE_STEPS;
  t->trace_from = t->first + (left > TRACE_AT + want ? TRACE_AT : left > want ? left - want : 0);
  t->trace_to = t->trace_from + want < steps ? t->trace_from + want : steps;
  if (t->c->trace == NULL) return yk__folder_path(t->folder, "trace.json", t->trace);
  snprintf(t->trace, YK__PATH, "%s", t->c->trace);
  bool there = access(t->trace, F_OK) == 0;
  FILE *f = fopen(t->trace, "a");                    /* a wrong path is told now, not after the run */
  if (f == NULL) return YK_FAIL(EIO, "--trace: '%s' cannot be created: %s", t->trace, strerror(errno));
  fclose(f);
  if (!there) remove(t->trace);                      /* a run that fails leaves no empty one */
  return YK_OK;
}

/* --json keeps the standard output for JSON: whatever else is printed there goes to the standard error. */
static int open_output(yk_train *t) {
  t->out = stdout;
  if (!t->c->json) return 0;
  int copy = dup(STDOUT_FILENO);
  t->out = copy >= 0 ? fdopen(copy, "w") : NULL;
  if (t->out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return yk__die(YK__EXIT_RUN, "the standard output cannot be used");
  return 0;
}

static void say_resumed(const yk_train *t) {
  const char *then = yk__resume_precision(t->from), *now = yk_dtype_name(t->job.precision);
  fprintf(t->out, "resumed from %s, of step %lld", yk_checkpoint_path(t->from), (long long)t->first);
  if (strcmp(then, now) != 0) fprintf(t->out, ", which computed in %s; now in %s", then, now);
  fputc('\n', t->out);
}

static void say_start(yk_train *t) {
  yk_json o = { 0 };
  if (t->metrics.show >= YK__SHOW_LINES) {
    fprintf(t->out, "%s\n", t->headline);
    if (t->from != NULL) say_resumed(t);
    fflush(t->out);
  }
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", t->from != NULL ? "resume" : "start");
  if (t->from != NULL) {
    yk__json_text(&o, "checkpoint", yk_checkpoint_path(t->from));
    yk__json_int(&o, "step", t->first);
    yk__json_bool(&o, "other_devices", yk__resume_moved(t->from, &t->job));
    yk__json_bool(&o, "other_precision", strcmp(yk__resume_precision(t->from), yk_dtype_name(t->job.precision)) != 0);
  }
  put_run(&o, t);
  yk__json_int(&o, "steps", t->job.steps);
  yk__json_real(&o, "epochs", t->job.epochs);
  yk__json_int(&o, "train_examples", yk_dataset_size(t->job.train));
  yk__json_int(&o, "test_examples", yk_dataset_size(t->job.test));
  yk__json_int(&o, "parameters", t->job.parameters);
  yk__json_text(&o, "out", t->folder);
  yk__json_close(&o, '}');
  if (!yk__json_flush(&o, t->log, t->c->json ? t->out : NULL)) t->metrics.failed = true;
  yk__str_free(&o.text);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int test(yk_train *t) {
  yk_score score;
  int status = yk__eval_take(&t->eval, &t->job);
  if (status == 0) status = yk__eval_run(&t->eval, yk__stop_flag(), &score);
  if (status == 0 && score.n == yk_dataset_size(t->job.test)) {
    yk__metrics_tested(&t->metrics, &score);
    yk__board_variables(&t->board, t->metrics.step);
  }
  return status;
}

/* The timeline is taken of a few steps, once buffers and caches are warm. */
static yk_code trace(yk_train *t, int64_t step) {
  if (step == t->trace_from && step < t->trace_to) return yk_trace_start(t->job.session);
  if (step != t->trace_to || t->trace_from == t->trace_to) return YK_OK;
  t->traced = true;
  return yk_trace_write(t->job.session, t->trace);
}

static bool epoch_ends(const yk_job *j, int64_t done) {
  int64_t n = yk_dataset_size(j->train);
  return done < j->steps && done * j->batch / n > (done - 1) * j->batch / n;
}

static double seconds(uint64_t from, uint64_t to) {
  return (double)(to - from) * 1e-9;
}

/* How long it took to get here; the first step compiles the plan. */
static void say_first_step(yk_train *t, uint64_t begin, uint64_t end) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", "first_step");
  yk__json_real(&o, "build_seconds", seconds(t->begun, t->built));
  yk__json_real(&o, "initialize_seconds", seconds(t->built, t->initialised));
  yk__json_real(&o, "evaluator_seconds", seconds(t->initialised, t->opened));
  yk__json_real(&o, "step_seconds", seconds(begin, end));
  yk__json_real(&o, "seconds", seconds(t->begun, end));
  yk__json_close(&o, '}');
  if (!yk__json_flush(&o, t->log, t->c->json ? t->out : NULL)) t->metrics.failed = true;
  yk__str_free(&o.text);
}

static void say_bad(yk_train *t, const yk_finding *f, const char *text) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", "nan");
  yk__json_int(&o, "step", t->metrics.step + 1);
  yk__json_text(&o, "finding", text);
  yk__json_text(&o, "node", f->name);
  yk__json_text(&o, "op", f->op);
  yk__json_text(&o, "device", f->device);
  yk__json_text(&o, "where", f->where);
  if (f->row >= 0) yk__json_int(&o, "row", f->row);
  yk__json_close(&o, '}');
  yk__metrics_emit(&t->metrics, &o);
}

/* The weights are those of the step before: keep them, and tell what happened. */
static int bad_step(yk_train *t) {
  yk_finding f;
  char path[YK__PATH];
  long long step = (long long)t->metrics.step + 1;
  yk__metrics_finish(&t->metrics);
  char *text = yk__sound_examine(&t->job, &f);
  const char *what = text != NULL ? text : "a NaN or an infinity";
  say_bad(t, &f, what);
  yk__keeper_finish(&t->keeper);
  yk_code rc = yk__folder_path(t->folder, "weights.safetensors", path);
  int status = rc == YK_OK ? yk__weights_save(&t->job, path) : yk__die_code(rc);
  if (status == 0)
    status = yk__die(YK__EXIT_RUN, "step %lld: %s; the step changed nothing, and %s has the weights of step %lld (a smaller --lr or "
                     "--clip-norm may help; --nan-check off trains on)", step, what, path, step - 1);
  yk__free(text);
  return status;
}

static int one_step(yk_train *t, int64_t step) {
  const yk_tensor *const *got, *const *gradients = NULL;
  yk_code rc = trace(t, step);
  uint64_t begin = yk__now_ns();
  if (rc == YK_OK) rc = yk__job_run(&t->job, step, &got, &gradients);
  uint64_t ns = yk__now_ns() - begin;
  if (rc != YK_OK) {
    yk__metrics_finish(&t->metrics);
    return yk__die(YK__EXIT_RUN, "step %lld: %s", (long long)step + 1, yk_error_message());
  }
  if (t->job.good_at > 0 && yk_tensor_at(got[t->job.good_at], 0) == 0) return bad_step(t);
  double loss = yk_tensor_at(got[0], 0), accuracy = yk_tensor_at(got[1], 0);
  if (t->job.rate_at > 0) t->board.rate = yk_tensor_at(got[t->job.rate_at], 0);
  if (step == t->first) say_first_step(t, begin, begin + ns);
  yk__metrics_step(&t->metrics, loss, accuracy, ns);
  if (gradients != NULL) yk__board_gradients(&t->board, step + 1, gradients);
  if (t->c->check_replicas != 0 && (step + 1) % t->c->check_replicas == 0 && yk_check_replicas(t->job.session, t->job.graph) != YK_OK) {
    yk__metrics_finish(&t->metrics);
    return yk__die(YK__EXIT_RUN, "step %lld: %s", (long long)step + 1, yk_error_message());
  }
  int status = 0;
  if (epoch_ends(&t->job, step + 1)) status = test(t);
  else if (step == t->first) status = yk__eval_take(&t->eval, &t->job);      /* memory for tests is asked for now, not after an epoch */
  return status == 0 ? yk__keeper_step(&t->keeper) : status;
}

/* A run that was stopped in the middle of a test takes it again. */
static int test_missed(yk_train *t) {
  const yk_metrics *m = &t->metrics;
  bool tested = m->ntested > 0 && m->tested[m->ntested - 1].step == t->first;
  return t->first > 0 && epoch_ends(&t->job, t->first) && !tested ? test(t) : 0;
}

static int loop(yk_train *t) {
  int64_t step = t->first;
  int status = test_missed(t);
  for (; step < t->job.steps && *yk__stop_flag() == 0 && status == 0; step++) status = one_step(t, step);
  if (status != 0) return status;
  if (!t->traced && step > t->trace_from) {
    t->trace_to = step;
    if (trace(t, step) != YK_OK) return yk__die_code(YK_EIO);
  }
  yk__keeper_finish(&t->keeper);                     /* before the sums of the last interval are told and gone */
  yk__metrics_finish(&t->metrics);
  return 0;
}

/* ---- what is left ------------------------------------------------------------------------------------------------ */

/* What the session's devices held and used at most. */
static void put_memory(yk_json *o, const yk_session *s) {
  yk__json_open(o, "memory", '[');
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_device_memory m = YK_DEVICE_MEMORY_INIT;
    if (yk_session_device(s, i, &d) != YK_OK || yk_session_device_memory(s, i, &m) != YK_OK) continue;
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "name", d.name);
    yk__json_memory(o, &m);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void say_memory(FILE *out, const yk_session *s) {
  char held[YK__BYTES_TEXT], used[YK__BYTES_TEXT], limit[YK__BYTES_TEXT];
  const char *between = "memory at most: ";
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_device_memory m = YK_DEVICE_MEMORY_INIT;
    if (yk_session_device(s, i, &d) != YK_OK || yk_session_device_memory(s, i, &m) != YK_OK || m.peak_held == 0) continue;
    const char *number = strrchr(d.name, ':');
    fprintf(out, "%s%s%s held %s, used %s of %s", between, strcmp(d.type, "GPU") == 0 ? "/gpu" : "/cpu", number != NULL ? number : "",
            yk__bytes_text(m.peak_held, held), yk__bytes_text(m.peak_in_use, used), yk__bytes_text(m.bytes_limit, limit));
    between = "; ";
  }
  if (between[0] == ';') fputc('\n', out);
}

/* Steps that a loss scale cost so far; -1: there is none, or it cannot be told. */
static int64_t steps_skipped(const yk_job *j) {
  yk_tensor *n = NULL;
  if (j->towers.scale.skipped == NULL || yk_variable_fetch(j->session, j->towers.scale.skipped, &n) != YK_OK) return -1;
  int64_t skipped = *(const int64_t *)yk_tensor_data(n);
  yk_tensor_free(n);
  return skipped;
}

static void say_end(yk_train *t) {
  const yk_metrics *m = &t->metrics;
  const yk_score *s = m->ntested > 0 ? &m->tested[m->ntested - 1].score : NULL;
  yk_sums recent = yk__metrics_recent(m);
  yk_json o = { 0 };
  const char *first;
  int64_t skipped = steps_skipped(&t->job);
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", "end");
  put_run(&o, t);
  yk__json_int(&o, "steps", m->step);
  yk__json_real(&o, "epochs", (double)m->step * (double)t->job.batch / (double)yk_dataset_size(t->job.train));
  yk__json_real(&o, "seconds", (double)m->ns * 1e-9);
  yk__json_real(&o, "test_seconds", m->test_seconds);
  yk__json_real(&o, "examples_per_second", yk__metrics_rate(m));
  yk__json_real(&o, "train_loss", m->step > 0 ? recent.loss : (double)NAN);
  yk__json_real(&o, "train_accuracy", m->step > 0 ? recent.accuracy : (double)NAN);
  yk__json_real(&o, "test_loss", s != NULL ? s->loss : (double)NAN);
  yk__json_real(&o, "test_accuracy", s != NULL ? s->accuracy : (double)NAN);
  yk__json_int(&o, "peak_rss_bytes", (int64_t)yk__rss_peak_bytes());
  put_memory(&o, t->job.session);
  yk__json_bool(&o, "interrupted", *yk__stop_flag() != 0);
  if (skipped >= 0) yk__json_int(&o, "steps_skipped", skipped);
  yk__json_int(&o, "corrupt_records", yk__job_skipped(&t->job, &first));
  yk__json_text(&o, "out", t->folder);
  yk__json_close(&o, '}');
  yk__metrics_emit(&t->metrics, &o);
  if (m->show < YK__SHOW_LINES) return;
  say_memory(t->out, t->job.session);
  if (skipped > 0) fprintf(t->out, "%lld steps changed nothing but the loss scale: their gradients overflowed\n", (long long)skipped);
  fprintf(t->out, "%s%lld steps in %.1f s, %.0f examples/s; training loss %.4f, accuracy %.4f; see %s/report.html\n",
          *yk__stop_flag() != 0 ? "interrupted after " : "", (long long)m->step, (double)m->ns * 1e-9, yk__metrics_rate(m),
          recent.loss, recent.accuracy,
          t->folder);
  yk__job_say_skipped(&t->job, t->out);
}

/* Weights first: a last test that fails must not cost what was learnt. */
static int leave_files(yk_train *t) {
  char path[YK__PATH];
  yk_code rc = yk__folder_path(t->folder, "weights.safetensors", path);
  if (rc != YK_OK) return yk__die_code(rc);
  int status = yk__weights_save(&t->job, path);
  if (status == 0 && *yk__stop_flag() == 0) status = test(t);
  if (status != 0) return status;
  rc = yk__report_write(t->folder, &t->metrics, t->headline, t->settings, t->traced ? t->trace : NULL);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

static int prepare(yk_train *t) {
  const yk_cli *c = t->c;
  yk_job *j = &t->job;
  yk_code rc;
  int status = yk__resume_find(&t->cli, &t->texts, &t->from);
  if (status == 0) status = yk__job_model(c, j);
  if (status == 0 && c->deterministic) t->cli.replicas = (int64_t)j->replicas;     /* so that a checkpoint tells it */
  if (status == 0) status = yk__job_data(c, j, true, true);
  if (status == 0) status = yk__resume_check(t->from, c, j);
  if (status == 0) status = yk__job_build(c, j);
  if (status == 0) status = yk__resume_fits(t->from, c, j);
  if (status == 0) status = yk__resume_input(t->from, j);
  if (status != 0) return status;
  t->first = t->from != NULL ? yk_checkpoint_step(t->from) : 0;
  rc = headline(t);
  if (rc == YK_OK) rc = settings(t);
  if (rc != YK_OK) return yk__die_code(rc);
  status = open_folder(t);
  if (status == 0) status = yk__board_open(&t->board, c, j, t->from != NULL, t->first);
  if (status != 0) return status;
  rc = plan_trace(t);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

static int train(yk_train *t) {
  const yk_cli *c = t->c;
  t->begun = yk__now_ns();
  bool terminal = isatty(STDOUT_FILENO);
  yk_show show = c->json ? YK__SHOW_JSON : c->quiet ? YK__SHOW_NOTHING : !terminal ? YK__SHOW_LINES : c->live ? YK__SHOW_LIVE : YK__SHOW_BAR;
  if (c->live && !terminal) return yk__die(YK__EXIT_USAGE, "--live draws on a terminal, and the standard output is none");
  int status = prepare(t);
  if (status == 0) status = open_output(t);
  if (status != 0) return status;
  yk__metrics_begin(&t->metrics, &t->job, &t->board, show, t->out, t->log, c->interval);
  say_start(t);
  t->built = yk__now_ns();
  status = yk__job_start(&t->job);
  if (status == 0) status = yk__resume_state(t->from, &t->job, &t->metrics);
  if (status == 0) status = yk__keeper_start(&t->keeper);
  if (status == 0) yk__board_start(&t->board, t->settings, t->from != NULL);
  yk_checkpoint_close(t->from);
  t->from = NULL;
  t->initialised = yk__now_ns();
  if (status == 0) status = yk__eval_open(&t->job, &t->eval);
  t->opened = yk__now_ns();
  if (status != 0) return status;
  yk__stop_catch();
  status = loop(t);
  if (status == 0) status = leave_files(t);
  if (status == 0) yk__board_finish(&t->board);
  if (status != 0) return status;
  say_end(t);
  if (t->keeper.failures > 0)
    return yk__die(YK__EXIT_RUN, "the last checkpoint could not be written; the weights are in %s/weights.safetensors", t->folder);
  if (t->board.failed) return yk__die(YK__EXIT_RUN, "writing the event files failed");
  if (t->metrics.failed || fflush(t->out) != 0) return yk__die(YK__EXIT_RUN, "writing the metrics failed");
  return *yk__stop_flag() != 0 ? YK__EXIT_SIGNAL + *yk__stop_flag() : 0;
}

int yk__cmd_train(const yk_cli *c) {
  if (yk__is_keras(c->model)) return yk__model_train(c);
  if (c->rehearse != NULL)
    return yk__die(YK__EXIT_USAGE, "--rehearse: nothing runs on a machine that is only described; 'yoke explain %s --rehearse %s' checks "
                   "placement, memory and plan there", yk__shown(c->model), yk__shown(c->rehearse));
  yk_train *t = yk__calloc(1, sizeof *t);
  if (t == NULL) return yk__die_code(YK_ENOMEM);
  t->cli = *c;
  t->c = &t->cli;
  int status = train(t);
  yk__keeper_close(&t->keeper);
  yk__board_close(&t->board);
  yk_checkpoint_close(t->from);
  if (t->out != NULL && t->out != stdout) fclose(t->out);
  if (t->log != NULL) fclose(t->log);
  yk__eval_close(&t->eval);
  yk__job_free(&t->job);
  yk__metrics_free(&t->metrics);
  yk__bump_free(&t->texts);
  yk__free(t->headline);
  yk__free(t->settings);
  yk__free(t);
  return status;
}
