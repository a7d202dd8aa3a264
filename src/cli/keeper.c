/*
 * keeper.c - saves checkpoints while a run goes on, and tells of them.
 *
 * A checkpoint that cannot be written costs a warning, not the run: the one before it is whole. Only when several in a row fail
 * does the run end, because it would go on without a net.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/keeper.h"

enum { FIXED = 64, CHANGING = 8, NEVER = -1 };

bool yk__every_parse(const char *text, int64_t *steps, double *seconds) {
  static const struct { const char *unit; double seconds; } units[] = { { "s", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 } };
  char digits[32];
  size_t n = strspn(text, "0123456789.");
  *steps = 0;
  *seconds = 0;
  if (n == 0 || n >= sizeof digits) return false;
  if (text[n] == '\0') return yk__parse_i64(text, 1, 1000000000000, steps);
  memcpy(digits, text, n);
  digits[n] = '\0';
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcmp(text + n, units[i].unit) == 0) {
      bool good = yk__parse_f64(digits, seconds) && *seconds > 0;
      *seconds *= units[i].seconds;
      return good && *seconds <= 1e9;
    }
  return false;
}

/* ---- texts --------------------------------------------------------------------------------------------------------- */

static bool fix(yk_keeper *k, const char *key, const char *value) {
  if (k->fixed == FIXED) return false;
  char *a = yk__bump_str(&k->texts, key), *b = yk__bump_str(&k->texts, value);
  k->note[k->fixed++] = (yk_note){ a, b };
  return a != NULL && b != NULL;
}

static bool fix_number(yk_keeper *k, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  return fix(k, key, text);
}

static bool fix_option(yk_keeper *k, const yk_opt *o, const yk_cli *c) {
  const char *field = (const char *)c + o->offset;
  char key[64], text[40] = "1";
  const char *value = text;
  int64_t whole;
  double real;
  if (!yk__recorded(o) || !yk__given(o, c)) return true;
  snprintf(key, sizeof key, "option.%s", o->name);
  if (o->kind == YK__OPT_TEXT) memcpy(&value, field, sizeof value);
  if (o->kind == YK__OPT_INT) { memcpy(&whole, field, sizeof whole); snprintf(text, sizeof text, "%" PRId64, whole); }
  if (o->kind == YK__OPT_REAL) { memcpy(&real, field, sizeof real); snprintf(text, sizeof text, "%.17g", real); }
  return fix(k, key, value);
}

static yk_code fix_all(yk_keeper *k) {
  const yk_job *j = k->job;
  char devices[4096];
  k->note = yk__bump(&k->texts, (FIXED + CHANGING) * sizeof *k->note);
  if (k->note == NULL) return YK_ENOMEM;
  yk__job_devices(j, devices, sizeof devices);
  bool good = fix(k, "model", j->model->name) && fix(k, "data", j->data_name) && fix(k, "devices", devices) &&
              fix_number(k, "train_examples", yk_dataset_size(j->train)) && fix_number(k, "batch", j->batch) &&
              fix_number(k, "seed", yk__job_seed(k->cli)) && fix_number(k, "steps", j->steps);
  for (const yk_opt *o = yk__options; o->name != NULL && good; o++) good = fix_option(k, o, k->cli);
  return good ? YK_OK : k->fixed == FIXED ? YK_FAIL(EINTERNAL, "a checkpoint has no room for so many texts") : YK_ENOMEM;
}

/* ---- telling ------------------------------------------------------------------------------------------------------- */

static void say_saved(yk_keeper *k, const yk_saver_report *r) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", "checkpoint");
  yk__json_int(&o, "step", r->step);
  yk__json_text(&o, "path", r->path);
  yk__json_int(&o, "bytes", (int64_t)r->bytes);
  yk__json_real(&o, "seconds", r->seconds);
  yk__json_real(&o, "copy_seconds", r->copy_seconds);
  yk__json_close(&o, '}');
  yk__metrics_emit(k->metrics, &o);
}

/* The library's message is the reason. */
static void say_failed(yk_keeper *k, int64_t step) {
  yk_json o = { 0 };
  k->failures++;
  YK_LOG(WARNING, "the checkpoint of step %lld failed: %s", (long long)step, yk_error_message());
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "event", "checkpoint_failed");
  yk__json_int(&o, "step", step);
  yk__json_text(&o, "error", yk_error_message());
  yk__json_int(&o, "in_a_row", k->failures);
  yk__json_close(&o, '}');
  yk__metrics_emit(k->metrics, &o);
}

/* The end of the one that was being written. */
static void settle(yk_keeper *k, yk_code rc, const yk_saver_report *r) {
  k->pending = false;
  if (rc != YK_OK) {
    say_failed(k, r->step);
    return;
  }
  if (r->step < 0) return;
  k->failures = 0;
  say_saved(k, r);
}

/* ---- saving -------------------------------------------------------------------------------------------------------- */

/* A checkpoint of variables that went wrong must not push out those that are good. */
static yk_code check(const yk_job *j) {
  char *text = yk__sound_variables(j);
  yk_code rc = text != NULL ? YK_FAIL(EINVAL, "%s; nothing is saved over the checkpoints there are", text) : YK_OK;
  yk__free(text);
  return rc;
}

/* Save step k->metrics->step, at once or in the background. */
static yk_code save(yk_keeper *k, bool now) {
  yk_metrics *m = k->metrics;
  yk_position p = yk_queue_position(k->job->queue);
  char epoch[24], example[24], bytes[24], *curves = NULL;
  yk__board_flush(m->board);                         /* what a resumed run does not tell again */
  YK_TRY(check(k->job));
  YK_TRY(yk__metrics_text(m, &curves));
  snprintf(epoch, sizeof epoch, "%" PRId64, p.epoch);
  snprintf(example, sizeof example, "%" PRId64, p.example);
  snprintf(bytes, sizeof bytes, "%lld", (long long)ftello(m->log));
  yk_note *n = k->note + k->fixed;
  *n++ = (yk_note){ "queue.epoch", epoch };
  *n++ = (yk_note){ "queue.example", example };
  *n++ = (yk_note){ "log_bytes", bytes };
  *n++ = (yk_note){ "metrics", curves };
  k->saved = m->step;
  k->saved_ns = yk__now_ns();
  yk_code rc = (now ? yk_saver_save : yk_saver_begin)(k->saver, k->job->session, m->step, (size_t)(n - k->note), k->note);
  yk__free(curves);
  return rc;
}

static bool due(const yk_keeper *k) {
  if (k->metrics->step == k->saved) return false;
  if (k->every > 0) return k->metrics->step % k->every == 0;
  return (double)(yk__now_ns() - k->saved_ns) * 1e-9 >= k->seconds;
}

static int give_up(yk_keeper *k) {
  if (k->failures < YK__MOST_FAILURES) return 0;
  yk__metrics_finish(k->metrics);
  return yk__die(YK__EXIT_RUN, "step %lld: the last %d checkpoints could not be written; the run ends, since it would go on without",
                 (long long)k->metrics->step, k->failures);
}

int yk__keeper_step(yk_keeper *k) {
  yk_saver_report r = { .step = NEVER };
  if (k->saver == NULL) return 0;
  if (k->pending) {
    yk_code rc = yk_saver_poll(k->saver, &r);
    if (rc != YK_EBUSY) settle(k, rc, &r);
  }
  if (due(k)) {
    if (k->pending) {                                /* a slow disk: the step waits for it */
      yk_code rc = yk_saver_wait(k->saver, &r);
      settle(k, rc, &r);
    }
    k->pending = save(k, false) == YK_OK;
    if (!k->pending) say_failed(k, k->metrics->step);
  }
  return k->failures > 0 ? give_up(k) : 0;
}

void yk__keeper_finish(yk_keeper *k) {
  yk_saver_report r = { .step = NEVER };
  if (k->saver == NULL) return;
  if (k->pending) {
    yk_code rc = yk_saver_wait(k->saver, &r);
    settle(k, rc, &r);
  }
  if (k->metrics->step == k->saved && k->failures == 0) return;
  if (save(k, true) != YK_OK) say_failed(k, k->metrics->step);
  else {
    yk_code rc = yk_saver_wait(k->saver, &r);
    settle(k, rc, &r);
  }
}

/* ---- open and close ------------------------------------------------------------------------------------------------ */

int yk__keeper_open(yk_keeper *k, const yk_cli *c, const yk_job *j, yk_metrics *m, const char *folder, const yk_checkpoint *from) {
  yk_saver_options o = YK_SAVER_OPTIONS_INIT;
  char path[YK__PATH];
  *k = (yk_keeper){ .cli = c, .job = j, .metrics = m, .saved = from != NULL ? yk_checkpoint_step(from) : NEVER };
  if (c->checkpoint_every == NULL) return 0;
  if (!yk__every_parse(c->checkpoint_every, &k->every, &k->seconds))
    return yk__die(YK__EXIT_USAGE, "--checkpoint-every '%s' is no number of steps and no time", yk__shown(c->checkpoint_every));
  o.keep = (int32_t)c->keep;
  o.keep_every_hours = c->keep_every;
  yk_code rc = yk__folder_path(folder, "checkpoints", path);
  if (rc == YK_OK) rc = yk_saver_open(path, &o, &k->saver);
  if (rc == YK_OK) rc = fix_all(k);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--checkpoint-every: %s", yk_error_message());
}

int yk__keeper_start(yk_keeper *k) {
  if (k->saver == NULL) return 0;
  int64_t left = k->job->steps - (k->saved > 0 ? k->saved : 0), saves = k->every > 0 ? (left + k->every - 1) / k->every : 0;
  k->saved_ns = yk__now_ns();
  if (k->every > 0 && saves == 0) return 0;
  yk_code rc = yk_saver_check(k->saver, k->job->session, saves);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--checkpoint-every: %s", yk_error_message());
}

void yk__keeper_close(yk_keeper *k) {
  if (yk_saver_close(k->saver) != YK_OK) {
    YK_LOG(WARNING, "the last checkpoint failed: %s", yk_error_message());
    yk_error_clear();
  }
  yk__bump_free(&k->texts);
}
