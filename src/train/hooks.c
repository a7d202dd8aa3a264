/*
 * hooks.c - the hooks of monitored sessions: stop, log lines, step counter, checkpoints, summaries, timelines, ends.
 *
 * A hook that acts now and then fetches the global step with every run; what it gets may be one behind, since nothing orders
 * the read and the update, so before it acts it reads the step again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <yoke/monitored.h>
#include "base/log.h"
#include "base/thread.h"
#include "train/monitored.h"
#include "train/train.h"

typedef struct timer { yk_hook_timer t; int64_t last; uint64_t last_ns; bool begun; } timer;

typedef struct hook {            /* each kind uses what it needs */
  const char *name;
  timer when;
  yk_value step, value[YK_HOOK_VALUES];
  char *tag[YK_HOOK_VALUES];
  size_t n;
  int64_t count, last, runs, saved;
  bool flag, acts;
  yk_print_fn print;
  yk_saved_fn told;
  yk_feed_fn feed;
  void *arg;
  yk_summary_writer *writer;
  yk_saver *saver;
  char *folder;
} hook;

/* ---- shared ---------------------------------------------------------------------------------------------------------------- */

static bool due(const timer *x, int64_t step) {
  if (!x->begun) return true;
  if (step == x->last) return false;
  return x->t.steps > 0 ? step >= x->last + x->t.steps : (double)(yk__now_ns() - x->last_ns) * 1e-9 >= x->t.seconds;
}

static void acted(timer *x, int64_t step) {
  x->begun = true;
  x->last = step;
  x->last_ns = yk__now_ns();
}

static yk_code check_timer(const char *name, yk_hook_timer t) {
  if (t.steps >= 0 && t.seconds >= 0 && isfinite(t.seconds) && (t.steps > 0) != (t.seconds > 0)) return YK_OK;
  return YK_FAIL(EINVAL, "hook %s: every %lld steps and every %g seconds: expected exactly one of them above 0", name, (long long)t.steps, t.seconds);
}

static void free_hook(void *self) {
  hook *h = self;
  for (size_t i = 0; i < h->n; i++) yk__free(h->tag[i]);
  yk__free(h->folder);
  yk__free(h);
}

void yk_hook_free(yk_hook *h) {
  if (h == NULL) return;
  if (h->free != NULL) h->free(h->self);
  *h = (yk_hook){ 0 };
}

static void say(const hook *h, const char *line) {
  if (h->print != NULL) h->print(h->arg, line);
  else YK_LOG(INFO, "%s", line);
}

/* The read of the global step, which these hooks need. */
static yk_code find_step(void *self, yk_graph *g) {
  hook *h = self;
  if (yk_get_collection(g, YK_GLOBAL_STEP, NULL, &h->step, 1) == 0) h->step = yk_read(yk_global_step(g));
  return yk_graph_status(g);
}

static yk_code fetch_step(void *self, yk_hook_request *r) {
  const hook *h = self;
  r->fetch[r->nfetch++] = h->step;
  return YK_OK;
}

/* Does the fetched step, which may be one behind, or be it now, call for action? *step: as it is now. */
static yk_code time_to_act(hook *h, const yk_hook_result *r, bool *now, int64_t *step) {
  *now = false;
  if (!due(&h->when, (int64_t)yk_tensor_at(r->fetched[0], 0) + 1)) return YK_OK;
  YK_TRY(yk_monitored_step(r->monitored, step));
  *now = due(&h->when, *step);
  return YK_OK;
}

static yk_code take_values(hook *h, size_t n, const yk_value *values, const char *const *tags) {
  if (n == 0 || n > YK_HOOK_VALUES - 1 || values == NULL) return YK_FAIL(EINVAL, "hook %s: %zu values, expected 1 to %d",
      h->name, n, YK_HOOK_VALUES - 1);
  for (size_t i = 0; i < n; i++) {
    h->value[i] = values[i];
    h->n = i + 1;
    if (tags != NULL && (h->tag[i] = yk__strdup(tags[i] != NULL ? tags[i] : "")) == NULL) return YK_ENOMEM;
  }
  return YK_OK;
}

/* Values without tags of their own have their names. */
static yk_code name_values(void *self, yk_graph *g) {
  hook *h = self;
  for (size_t i = 0; i < h->n; i++) {
    const char *name = yk_value_name(g, h->value[i]);
    if (name == NULL) return YK_FAIL(EINVAL, "value %zu is not one of this graph", i);
    if (h->tag[i] == NULL && (h->tag[i] = yk__strdup(name)) == NULL) return YK_ENOMEM;
  }
  return YK_OK;
}

/* A hook like this one, with the functions of `made`. Of `like` the folder is taken over; n values are copied if it is `valued`. */
static yk_code make_valued(hook like, bool valued, size_t n, const yk_value *values, const char *const *tags, yk_hook made, yk_hook *out) {
  hook *h = yk__alloc(sizeof *h);
  if (h == NULL) {
    yk__free(like.folder);
    return YK_ENOMEM;
  }
  *h = like;
  yk_code rc = valued ? take_values(h, n, values, tags) : YK_OK;
  if (rc != YK_OK) {
    free_hook(h);
    return rc;
  }
  made.name = h->name;
  made.free = free_hook;
  made.self = h;
  *out = made;
  return YK_OK;
}

static yk_code make(hook like, yk_hook made, yk_hook *out) { return make_valued(like, false, 0, NULL, NULL, made, out); }

/* ---- stop at a step ---------------------------------------------------------------------------------------------------------- */

static yk_code stop_created(void *self, yk_monitored *m) {
  hook *h = self;
  int64_t step;
  if (h->last > 0) return YK_OK;                       /* known, or worked out when the session was made before */
  YK_TRY(yk_monitored_step(m, &step));
  h->last = step + h->count;
  return YK_OK;
}

static yk_code stop_after(void *self, const yk_hook_result *r) {
  const hook *h = self;
  int64_t step;
  if ((int64_t)yk_tensor_at(r->fetched[0], 0) + 1 < h->last) return YK_OK;
  YK_TRY(yk_monitored_step(r->monitored, &step));
  if (step >= h->last) yk_monitored_request_stop(r->monitored);
  return YK_OK;
}

yk_code yk_hook_stop_at_step(int64_t count, int64_t last, yk_hook *out) {
  if (count < 0 || last < 0 || (count > 0) == (last > 0))
    return YK_FAIL(EINVAL, "hook stop_at_step: %lld more steps and step %lld: expected exactly one of them above 0",
        (long long)count, (long long)last);
  return make((hook){ .name = "stop_at_step", .count = count, .last = last },
              (yk_hook){ .begin = find_step, .created = stop_created, .before_run = fetch_step, .after_run = stop_after }, out);
}

/* ---- log lines -------------------------------------------------------------------------------------------------------------------- */

static yk_code fetch_values(void *self, yk_hook_request *r) {
  const hook *h = self;
  for (size_t i = 0; i < h->n; i++) r->fetch[r->nfetch++] = h->value[i];
  return YK_OK;
}

static yk_code log_before(void *self, yk_hook_request *r) {
  hook *h = self;
  h->acts = due(&h->when, h->runs);
  return h->acts ? fetch_values(self, r) : YK_OK;
}

static void log_line(hook *h, const yk_tensor *const *got) {
  char line[1024];
  size_t at = 0;
  uint64_t now = yk__now_ns();
  for (size_t i = 0; i < h->n && at < sizeof line; i++)
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%s = %g", i > 0 ? ", " : "", h->tag[i],
        yk_tensor_count(got[i]) > 0 ? yk_tensor_at(got[i], 0) : 0.0);
  if (h->when.begun && at < sizeof line) snprintf(line + at, sizeof line - at, " (%.3f sec)", (double)(now - h->when.last_ns) * 1e-9);
  say(h, line);
}

static yk_code log_after(void *self, const yk_hook_result *r) {
  hook *h = self;
  if (h->acts) {
    log_line(h, r->fetched);
    acted(&h->when, h->runs);
  }
  h->runs++;
  return YK_OK;
}

static yk_code log_end(void *self, yk_monitored *m) {
  hook *h = self;
  yk_tensor *got[YK_HOOK_VALUES] = { NULL };
  if (!h->flag) return YK_OK;
  YK_TRY(yk_session_run(yk_monitored_session(m), 0, NULL, h->n, h->value, 0, NULL, got));
  log_line(h, (const yk_tensor *const *)got);
  for (size_t i = 0; i < h->n; i++) yk_tensor_free(got[i]);
  return YK_OK;
}

yk_code yk_hook_logging(size_t n, const yk_value *values, const char *const *tags, yk_hook_timer t, bool at_end, yk_print_fn print,
                        void *arg, yk_hook *out) {
  YK_TRY(check_timer("logging", t));
  return make_valued((hook){ .name = "logging", .when.t = t, .flag = at_end, .print = print, .arg = arg }, true, n, values, tags,
                     (yk_hook){ .begin = name_values, .before_run = log_before, .after_run = log_after, .end = log_end }, out);
}

/* ---- steps a second ----------------------------------------------------------------------------------------------------------------- */

static yk_code count_after(void *self, const yk_hook_result *r) {
  hook *h = self;
  bool now, first = !h->when.begun;
  int64_t step = 0, before = h->when.last;
  uint64_t since = h->when.last_ns;
  char line[64];
  YK_TRY(time_to_act(h, r, &now, &step));
  if (!now) return YK_OK;
  acted(&h->when, step);
  if (first) return YK_OK;
  double rate = (double)(step - before) / ((double)(h->when.last_ns - since) * 1e-9 + 1e-12);
  snprintf(line, sizeof line, "global_step/sec: %g", rate);
  say(h, line);
  return h->writer != NULL ? yk_summary_scalar(h->writer, "global_step/sec", step, rate) : YK_OK;
}

yk_code yk_hook_step_counter(yk_hook_timer t, yk_summary_writer *writer, yk_print_fn print, void *arg, yk_hook *out) {
  YK_TRY(check_timer("step_counter", t));
  return make((hook){ .name = "step_counter", .when.t = t, .writer = writer, .print = print, .arg = arg },
              (yk_hook){ .begin = find_step, .before_run = fetch_step, .after_run = count_after }, out);
}

/* ---- checkpoints ---------------------------------------------------------------------------------------------------------------------- */

static yk_code save(hook *h, yk_monitored *m, int64_t step) {
  if (yk__monitored_spoilt(m)) {
    YK_LOG(WARNING, "step %lld is not saved: variables hold NaN", (long long)step);
    return YK_OK;
  }
  YK_TRY(yk_saver_save(h->saver, yk_monitored_session(m), step, 0, NULL));
  h->saved = step;
  acted(&h->when, step);
  return h->told != NULL ? h->told(h->arg, step, yk_saver_latest(h->saver)) : YK_OK;
}

/* One that was just restored is not written again. */
static yk_code save_created(void *self, yk_monitored *m) {
  hook *h = self;
  char name[64];
  int64_t step;
  YK_TRY(yk_monitored_step(m, &step));
  const char *latest = yk_saver_latest(h->saver);
  snprintf(name, sizeof name, "/ckpt-%lld.safetensors", (long long)step);
  if (latest == NULL || strstr(latest, name) == NULL) return save(h, m, step);
  h->saved = step;
  acted(&h->when, step);
  return YK_OK;
}

static yk_code save_after(void *self, const yk_hook_result *r) {
  bool now;
  int64_t step = 0;
  YK_TRY(time_to_act(self, r, &now, &step));
  return now ? save(self, r->monitored, step) : YK_OK;
}

static yk_code save_end(void *self, yk_monitored *m) {
  hook *h = self;
  int64_t step;
  YK_TRY(yk_monitored_step(m, &step));
  return step != h->saved ? save(h, m, step) : YK_OK;
}

yk_code yk_hook_checkpoint(yk_saver *saver, yk_hook_timer t, yk_saved_fn saved, void *arg, yk_hook *out) {
  YK_TRY(check_timer("checkpoint", t));
  if (saver == NULL) return YK_FAIL(EINVAL, "hook checkpoint: no saver given");
  return make((hook){ .name = "checkpoint", .when.t = t, .saver = saver, .told = saved, .arg = arg, .saved = -1 },
              (yk_hook){ .begin = find_step, .created = save_created, .before_run = fetch_step, .after_run = save_after, .end = save_end }, out);
}

/* ---- summaries ------------------------------------------------------------------------------------------------------------------------ */

static yk_code summary_begin(void *self, yk_graph *g) {
  YK_TRY(find_step(self, g));
  return name_values(self, g);
}

/* The step this run will have is not known yet: the one before it and one more. */
static yk_code summary_before(void *self, yk_hook_request *r) {
  hook *h = self;
  h->acts = due(&h->when, h->last + 1);
  YK_TRY(fetch_step(self, r));
  return h->acts ? fetch_values(self, r) : YK_OK;
}

static yk_code summary_after(void *self, const yk_hook_result *r) {
  hook *h = self;
  h->last = (int64_t)yk_tensor_at(r->fetched[0], 0) + 1;
  if (!h->acts) return YK_OK;
  YK_TRY(yk_monitored_step(r->monitored, &h->last));
  acted(&h->when, h->last);
  for (size_t i = 0; i < h->n; i++) YK_TRY(yk_summary_scalar(h->writer, h->tag[i], h->last, yk_tensor_at(r->fetched[1 + i], 0)));
  return YK_OK;
}

static yk_code summary_end(void *self, yk_monitored *m) {
  (void)m;
  return yk_summary_flush(((hook *)self)->writer);
}

yk_code yk_hook_summary(yk_summary_writer *writer, size_t n, const yk_value *values, const char *const *tags, yk_hook_timer t, yk_hook *out) {
  YK_TRY(check_timer("summary", t));
  if (writer == NULL) return YK_FAIL(EINVAL, "hook summary: no writer given");
  return make_valued((hook){ .name = "summary", .when.t = t, .writer = writer }, true, n, values, tags,
                     (yk_hook){ .begin = summary_begin, .before_run = summary_before, .after_run = summary_after, .end = summary_end }, out);
}

/* ---- timelines ------------------------------------------------------------------------------------------------------------------------- */

static yk_code profile_before(void *self, yk_hook_request *r) {
  hook *h = self;
  if (h->runs == 0) acted(&h->when, 0);                /* the first run compiles: not that one */
  r->trace = h->acts = h->runs > 0 && due(&h->when, h->runs);
  return YK_OK;
}

static yk_code profile_after(void *self, const yk_hook_result *r) {
  hook *h = self;
  char path[4096];
  int64_t step;
  h->runs++;
  if (!h->acts) return YK_OK;
  acted(&h->when, h->runs - 1);
  YK_TRY(yk_monitored_step(r->monitored, &step));
  if ((size_t)snprintf(path, sizeof path, "%s/timeline-%lld.json", h->folder, (long long)step) >= sizeof path)
    return YK_FAIL(EINVAL, "the folder's name is too long");
  return yk_trace_write(r->session, path);
}

yk_code yk_hook_profiler(const char *folder, yk_hook_timer t, yk_hook *out) {
  YK_TRY(check_timer("profiler", t));
  if (folder == NULL) return YK_FAIL(EINVAL, "hook profiler: no folder given");
  hook like = { .name = "profiler", .when.t = t, .folder = yk__strdup(folder) };
  return like.folder == NULL ? YK_ENOMEM : make(like, (yk_hook){ .before_run = profile_before, .after_run = profile_after }, out);
}

/* ---- small ones ------------------------------------------------------------------------------------------------------------------------ */

static yk_code final_end(void *self, yk_monitored *m) {
  return yk_session_run(yk_monitored_session(m), 0, NULL, 0, NULL, 1, ((hook *)self)->value, NULL);
}

yk_code yk_hook_final_op(yk_value op, yk_hook *out) {
  return make((hook){ .name = "final_op", .value = { op } }, (yk_hook){ .end = final_end }, out);
}

static yk_code feed_before(void *self, yk_hook_request *r) { return ((hook *)self)->feed(((hook *)self)->arg, r); }

yk_code yk_hook_feed(yk_feed_fn fn, void *arg, yk_hook *out) {
  if (fn == NULL) return YK_FAIL(EINVAL, "hook feed: no function given");
  return make((hook){ .name = "feed", .feed = fn, .arg = arg }, (yk_hook){ .before_run = feed_before }, out);
}

static yk_code wait_created(void *self, yk_monitored *m) {
  const hook *h = self;
  for (int64_t step = 0;;) {
    YK_TRY(yk_monitored_step(m, &step));
    if (step >= h->last || yk_monitored_should_stop(m)) return YK_OK;
    nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
  }
}

yk_code yk_hook_wait_for_step(int64_t step, yk_hook *out) {
  if (step < 0) return YK_FAIL(EINVAL, "hook wait_for_step: step %lld, expected 0 or more", (long long)step);
  return make((hook){ .name = "wait_for_step", .last = step }, (yk_hook){ .created = wait_created }, out);
}
