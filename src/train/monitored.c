/*
 * monitored.c - the life of a monitored session: hooks told, variables restored or initialised, runs merged, an end.
 *
 * A run asks the hooks, gathers feeds and fetches in arrays of fixed size, and finds the prepared step for exactly these
 * values among the last few. So hooks that want something now and then cost two steps, not a compilation each time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yoke/monitored.h>
#include "base/log.h"
#include "train/monitored.h"
#include "train/team.h"
#include "train/train.h"

enum { MOST = 256, KEPT = 8, TRIES = 3, BUILT_IN = 3 };

typedef struct prepared { yk_step *step; uint32_t nfeed, nfetch, ntarget; yk_value value[3 * MOST]; uint64_t used; } prepared;

typedef struct added { size_t first; yk_hook_request r; } added;   /* of one hook: where its fetches begin */

struct yk_monitored {
  yk_graph *g;
  yk_monitored_options o;
  yk_session *s;
  yk_saver *saver;
  yk_summary_writer *writer;
  yk_hook own[BUILT_IN]; size_t nown;
  const yk_hook **hook; added *add; size_t nhook;
  prepared *kept;                /* [KEPT] */
  prepared *last;                /* what the run under way, or the last one, runs */
  uint64_t runs;
  bool stop, failed, spoilt;
  bool claimed, ready;           /* a place in the team; of the chief: workers may have its session */
  /* the run under way */
  size_t nfeed, nfetch, ntarget;
  yk_value feed[MOST], fetch[MOST], target[MOST];
  const yk_tensor *tensor[MOST];
  const char *by[MOST];          /* who feeds */
};

/* ---- creation ------------------------------------------------------------------------------------------------------------ */

static yk_code all_initialised(yk_monitored *m) {
  yk_str missing = { 0 };
  size_t n = 0;
  for (size_t i = 0; i < yk_variable_count(m->g); i++) {
    yk_tensor *t = NULL;
    yk_code rc = yk_variable_fetch(m->s, yk_variable_get(m->g, i), &t);
    yk_tensor_free(t);
    if (rc == YK_OK) continue;
    if (rc != YK_EINVAL) { yk__str_free(&missing); return rc; }
    yk__str_add(&missing, "%s%s", n++ > 0 ? ", " : "", yk_variable_name(yk_variable_get(m->g, i)));
  }
  char *names = NULL;
  if (n == 0) { yk__str_free(&missing); yk_error_clear(); return YK_OK; }
  YK_TRY(yk__str_take(&missing, &names));
  yk_code rc = YK_FAIL(EINVAL, "the session is not ready: %zu variables have no value: %s", n, names);
  yk__free(names);
  return rc;
}

/* The newest checkpoint, or else the initializers. */
static yk_code fill_variables(yk_monitored *m) {
  yk_checkpoint *c = NULL;
  yk_code rc = m->saver != NULL ? yk_checkpoint_latest(m->o.folder, &c) : YK_ENOTFOUND;
  if (rc == YK_OK) rc = yk_checkpoint_restore(c, m->s, NULL);
  else if (rc == YK_ENOTFOUND) {
    yk_error_clear();
    rc = yk_session_run(m->s, 0, NULL, 0, NULL, 1, &m->o.init, NULL);
  }
  yk_checkpoint_close(c);
  if (rc == YK_OK && m->o.local_init.id != 0) rc = yk_session_run(m->s, 0, NULL, 0, NULL, 1, &m->o.local_init, NULL);
  return rc == YK_OK ? all_initialised(m) : rc;
}

static bool is_worker(const yk_monitored *m) { return m->o.team != NULL && m->o.worker > 0; }

/* A worker's session is the chief's. */
static void drop_session(yk_monitored *m) {
  for (int i = 0; m->kept != NULL && i < KEPT; i++) {
    yk_step_free(m->kept[i].step);
    m->kept[i] = (prepared){ 0 };
  }
  if (!is_worker(m)) yk_session_close(m->s);
  m->s = NULL;
  m->last = NULL;
}

static yk_code create(yk_monitored *m) {
  drop_session(m);
  if (is_worker(m)) YK_TRY(yk__team_wait(m->o.team, m->o.worker, m->o.wait_ms, m->g, &m->s));
  else {
    YK_TRY(yk_session_open(m->g, m->o.session, &m->s));
    YK_TRY(fill_variables(m));
  }
  for (size_t i = 0; i < m->nhook; i++) {
    const yk_hook *h = m->hook[i];
    yk_code rc = h->created != NULL ? h->created(h->self, m) : YK_OK;
    if (rc != YK_OK) return yk__fail_prefix(rc, "hook %s", h->name);
  }
  return YK_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static bool none(yk_hook_timer t) { return t.steps == 0 && t.seconds == 0; }

static yk_code built_in(yk_monitored *m) {
  yk_monitored_options *o = &m->o;
  const char *summaries = o->summary_folder != NULL ? o->summary_folder : o->folder;
  if (none(o->save)) o->save.seconds = 600;
  if (none(o->summary_timer)) o->summary_timer.steps = 100;
  if (o->log_steps == 0) o->log_steps = 100;
  if (summaries != NULL && (o->log_steps > 0 || o->nsummaries > 0)) YK_TRY(yk_summary_writer_open(summaries, NULL, &m->writer));
  if (m->writer != NULL && o->log_steps > 0) {
    YK_TRY(yk_hook_step_counter((yk_hook_timer){ .steps = o->log_steps }, m->writer, NULL, NULL, &m->own[m->nown]));
    m->nown++;
  }
  if (m->writer != NULL && o->nsummaries > 0) {
    YK_TRY(yk_hook_summary(m->writer, o->nsummaries, o->summaries, o->summary_tags, o->summary_timer, &m->own[m->nown]));
    m->nown++;
  }
  if (o->folder == NULL) return YK_OK;
  YK_TRY(yk_saver_open(o->folder, NULL, &m->saver));
  if (o->save.steps < 0 || o->save.seconds < 0) return YK_OK;
  YK_TRY(yk_hook_checkpoint(m->saver, o->save, NULL, NULL, &m->own[m->nown]));
  m->nown++;
  return YK_OK;
}

/* What is the chief's alone. */
static yk_code check_worker(const yk_monitored_options *o) {
  const char *what = o->session != NULL ? "session options" : o->folder != NULL ? "a folder of checkpoints" : !none(o->save) ? "a time to save" :
                     o->summary_folder != NULL || o->nsummaries > 0 ? "summaries" : o->init.id != 0 || o->local_init.id != 0 ? "initializers" : NULL;
  if (what == NULL) return YK_OK;
  return YK_FAIL(EINVAL, "worker %d has %s of its own; those are the chief's: expected hooks at most", o->worker, what);
}

static yk_code begin_hooks(yk_monitored *m) {
  for (size_t i = 0; i < m->nhook; i++) {
    const yk_hook *h = m->hook[i];
    yk_code rc = h->begin != NULL ? h->begin(h->self, m->g) : YK_OK;
    if (rc != YK_OK) return yk__fail_prefix(rc, "hook %s", h->name);
  }
  return YK_OK;
}

/* The graph is final once the chief is ready, so its hooks begin after that. */
static yk_code join(yk_monitored *m) {
  yk_session *s = NULL;
  YK_TRY(yk__team_wait(m->o.team, m->o.worker, m->o.wait_ms, m->g, &s));
  YK_TRY(begin_hooks(m));
  return create(m);
}

static yk_code enter_team(yk_monitored *m) {
  if (m->o.team == NULL) return m->o.worker == 0 ? YK_OK : YK_FAIL(EINVAL, "worker %d without a team", m->o.worker);
  if (is_worker(m)) YK_TRY(check_worker(&m->o));
  YK_TRY(yk__team_claim(m->o.team, m->o.worker));
  m->claimed = true;
  return YK_OK;
}

static yk_code open_all(yk_monitored *m) {
  YK_TRY(enter_team(m));
  if (!is_worker(m)) YK_TRY(yk_graph_status(m->g));
  if (!is_worker(m)) YK_TRY(built_in(m));
  m->hook = yk__calloc(m->nown + m->o.nhooks + 1, sizeof(yk_hook *));
  m->add = yk__calloc(m->nown + m->o.nhooks + 1, sizeof *m->add);
  m->kept = yk__calloc(KEPT, sizeof *m->kept);
  if (m->hook == NULL || m->add == NULL || m->kept == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < m->nown; i++) m->hook[m->nhook++] = &m->own[i];
  for (size_t i = 0; i < m->o.nhooks; i++) m->hook[m->nhook++] = &m->o.hooks[i];
  if (is_worker(m)) return join(m);
  YK_TRY(begin_hooks(m));
  if (m->o.team != NULL) yk_global_step(m->g);         /* hooks of workers read it */
  if (m->o.init.id == 0) m->o.init = yk_global_variables_initializer(m->g);
  YK_TRY(yk_graph_status(m->g));
  yk__graph_freeze(m->g);
  YK_TRY(create(m));
  m->ready = m->o.team != NULL;
  if (m->ready) yk__team_ready(m->o.team, m->g, m->s);
  return YK_OK;
}

/* The chief's end is everybody's: `why` with this thread's message. */
static void stop(yk_monitored *m, yk_code why) {
  m->stop = true;
  if (m->claimed && !is_worker(m)) yk__team_stop(m->o.team, why == YK_ERANGE ? YK_OK : why);
}

yk_code yk_monitored_open(yk_graph *g, const yk_monitored_options *options, yk_monitored **out) {
  if (g == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_monitored_open: NULL graph or output");
  if (options != NULL && options->size != sizeof *options)
    return YK_FAIL(EINVAL, "yk_monitored_options.size is %u; start from YK_MONITORED_OPTIONS_INIT", options->size);
  yk_monitored *m = yk__calloc(1, sizeof *m);
  if (m == NULL) return YK_ENOMEM;
  m->g = g;
  if (options != NULL) m->o = *options;
  yk_code rc = open_all(m);
  if (rc == YK_OK) {
    *out = m;
    return YK_OK;
  }
  char why[YK__ERROR_BYTES];
  snprintf(why, sizeof why, "%s", yk_error_message());
  m->failed = true;
  stop(m, rc);
  if (yk_monitored_close(m) != YK_OK) yk_error_clear();
  return yk__fail(rc, __FILE__, __LINE__, "%s", why);
}

/* ---- a run --------------------------------------------------------------------------------------------------------------- */

static yk_code too_many(const char *what) { return YK_FAIL(EINVAL, "a run of a monitored session has more than %d %s", MOST, what); }

static yk_code add_feeds(yk_monitored *m, size_t n, const yk_feed *feeds, const char *by) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < m->nfeed; k++)
      if (m->feed[k].id == feeds[i].value.id)
        return YK_FAIL(EINVAL, "'%s' is fed twice: by %s and by %s", yk_value_name(m->g, feeds[i].value), m->by[k], by);
    if (m->nfeed == MOST) return too_many("feeds");
    m->by[m->nfeed] = by;
    m->tensor[m->nfeed] = feeds[i].tensor;
    m->feed[m->nfeed++] = feeds[i].value;
  }
  return YK_OK;
}

static yk_code add_values(size_t n, const yk_value *v, yk_value *all, size_t *have, const char *what) {
  if (n > MOST - *have) return too_many(what);
  for (size_t i = 0; i < n; i++) all[(*have)++] = v[i];
  return YK_OK;
}

static yk_code ask_hooks(yk_monitored *m, bool *trace) {
  for (size_t i = 0; i < m->nhook; i++) {
    const yk_hook *h = m->hook[i];
    added *a = &m->add[i];
    a->first = m->nfetch;
    a->r.nfetch = a->r.nfeed = 0;
    a->r.trace = false;
    yk_code rc = h->before_run != NULL ? h->before_run(h->self, &a->r) : YK_OK;
    if (rc != YK_OK) return yk__fail_prefix(rc, "hook %s", h->name);
    if (a->r.nfetch > YK_HOOK_VALUES || a->r.nfeed > YK_HOOK_VALUES) return YK_FAIL(EINVAL, "hook %s asks for too many values", h->name);
    YK_TRY(add_values(a->r.nfetch, a->r.fetch, m->fetch, &m->nfetch, "fetches"));
    YK_TRY(add_feeds(m, a->r.nfeed, a->r.feed, h->name));
    *trace |= a->r.trace;
  }
  return YK_OK;
}

static bool same(const yk_monitored *m, const prepared *p) {
  return p->step != NULL && p->nfeed == m->nfeed && p->nfetch == m->nfetch && p->ntarget == m->ntarget &&
         memcmp(p->value, m->feed, m->nfeed * sizeof *m->feed) == 0 && memcmp(p->value + MOST, m->fetch, m->nfetch * sizeof *m->fetch) == 0 &&
         memcmp(p->value + 2 * MOST, m->target, m->ntarget * sizeof *m->target) == 0;
}

/* The step for the present feeds, fetches and targets; the one not used for longest gives way to a new one. */
static yk_code find_step(yk_monitored *m, prepared **out) {
  prepared *old = &m->kept[0];
  for (int i = 0; i < KEPT; i++) {
    if (same(m, &m->kept[i])) { *out = &m->kept[i]; return YK_OK; }
    if (m->kept[i].used < old->used) old = &m->kept[i];
  }
  yk_step *step = NULL;
  YK_TRY(yk_step_prepare(m->s, m->nfeed, m->feed, m->nfetch, m->fetch, m->ntarget, m->target, &step));
  yk_step_free(old->step);
  old->step = step;
  old->nfeed = (uint32_t)m->nfeed;
  old->nfetch = (uint32_t)m->nfetch;
  old->ntarget = (uint32_t)m->ntarget;
  memcpy(old->value, m->feed, m->nfeed * sizeof *m->feed);
  memcpy(old->value + MOST, m->fetch, m->nfetch * sizeof *m->fetch);
  memcpy(old->value + 2 * MOST, m->target, m->ntarget * sizeof *m->target);
  *out = old;
  return YK_OK;
}

static yk_code once(yk_monitored *m, bool trace, const yk_tensor *const **got) {
  prepared *p = NULL;
  YK_TRY(find_step(m, &p));
  m->last = p;
  p->used = ++m->runs;
  if (trace) YK_TRY(yk_trace_start(m->s));
  return yk_step_run(p->step, m->tensor, got);
}

static yk_code tell_hooks(yk_monitored *m, const yk_tensor *const *got, bool first) {
  for (size_t i = 0; i < m->nhook; i++) {
    const yk_hook *h = m->hook[i];
    yk_hook_result r = { m, m->s, got + m->add[i].first };
    yk_code rc = h->after_run != NULL && h->first == first ? h->after_run(h->self, &r) : YK_OK;
    if (rc != YK_OK) return yk__fail_prefix(rc, "hook %s", h->name);
  }
  return YK_OK;
}

static yk_code run(yk_monitored *m, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches, size_t ntarget,
                   const yk_value *targets, const yk_tensor *const **out) {
  const yk_tensor *const *got = NULL;
  bool trace = false;
  m->nfeed = m->nfetch = m->ntarget = 0;
  YK_TRY(add_feeds(m, nfeed, feeds, "the caller"));
  YK_TRY(add_values(nfetch, fetches, m->fetch, &m->nfetch, "fetches"));
  YK_TRY(add_values(ntarget, targets, m->target, &m->ntarget, "targets"));
  YK_TRY(ask_hooks(m, &trace));
  yk_code rc = once(m, trace, &got);
  for (int i = 0; i < TRIES && rc == YK_EPEER && m->o.team == NULL; i++) {
    YK_LOG(WARNING, "the session is made anew: %s", yk_error_message());
    yk_error_clear();
    rc = create(m);
    if (rc == YK_OK) rc = once(m, trace, &got);
  }
  if (rc != YK_OK) return rc;
  YK_TRY(tell_hooks(m, got, true));
  YK_TRY(tell_hooks(m, got, false));
  if (out != NULL) *out = got;
  return YK_OK;
}

yk_code yk_monitored_run(yk_monitored *m, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches, size_t ntarget,
                         const yk_value *targets, const yk_tensor *const **out) {
  if (m == NULL) return YK_FAIL(EINVAL, "yk_monitored_run: NULL session");
  if (m->stop) return YK_FAIL(EINVAL, "the monitored session was to stop: ask yk_monitored_should_stop() before each run");
  yk_code rc = is_worker(m) ? yk__team_ended(m->o.team) : YK_OK;
  if (rc == YK_OK) rc = run(m, nfeed, feeds, nfetch, fetches, ntarget, targets, out);
  if (rc != YK_OK) stop(m, rc);
  if (rc != YK_OK && rc != YK_ERANGE) m->failed = true;
  return rc;
}

/* ---- the rest -------------------------------------------------------------------------------------------------------------- */

bool yk_monitored_should_stop(const yk_monitored *m) {
  return m == NULL || m->stop || (m->o.coordinator && yk_coordinator_should_stop(m->o.coordinator)) ||
         (is_worker(m) && yk__team_stopped(m->o.team));
}

void yk_monitored_request_stop(yk_monitored *m) { if (m) stop(m, YK_OK); }
yk_session *yk_monitored_session(yk_monitored *m) { return m->s; }

yk_code yk_monitored_step(yk_monitored *m, int64_t *out) {
  yk_value v = { 0 };
  yk_tensor *t = NULL;
  *out = 0;
  if (yk_get_collection(m->g, YK_GLOBAL_STEP, NULL, &v, 1) == 0) return YK_OK;
  YK_TRY(yk_variable_fetch(m->s, yk_variable_of(m->g, v), &t));
  *out = (int64_t)yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return YK_OK;
}

/* ---- after a NaN ------------------------------------------------------------------------------------------------------------- */

yk_code yk__monitored_examine(yk_monitored *m, yk_finding *out) {
  if (m->last == NULL) return YK_FAIL(EINVAL, "there is no run to go over");
  return yk_step_examine(m->last->step, m->tensor, out);
}

static bool has_nan(const yk_tensor *t) {
  if ((YK_T(yk_tensor_desc(t)->dtype) & YK_FLOATS) == 0) return false;
  for (int64_t i = 0; i < yk_tensor_count(t); i++)
    if (isnan(yk_tensor_at(t, i))) return true;
  return false;
}

/* The first variable that holds one; NULL: none does. */
static yk_code find_bad(yk_monitored *m, const char **name) {
  *name = NULL;
  for (size_t i = 0; i < yk_variable_count(m->g) && *name == NULL; i++) {
    yk_tensor *t = NULL;
    YK_TRY(yk_variable_fetch(m->s, yk_variable_get(m->g, i), &t));
    if (has_nan(t)) *name = yk_variable_name(yk_variable_get(m->g, i));
    yk_tensor_free(t);
  }
  return YK_OK;
}

/* From the newest checkpoint, if there is one. */
static yk_code go_back(yk_monitored *m, const char *bad, yk_str *text) {
  yk_checkpoint *c = NULL;
  yk_code rc = m->saver != NULL && yk_saver_latest(m->saver) != NULL ? yk_checkpoint_latest(m->o.folder, &c) : YK_ENOTFOUND;
  if (rc == YK_OK) rc = yk_checkpoint_restore(c, m->s, NULL);
  if (rc == YK_OK)
    yk__str_add(text, "'%s' held it too, so the variables are those of '%s' again", bad, yk_checkpoint_path(c));
  yk_checkpoint_close(c);
  if (rc != YK_ENOTFOUND) return rc;
  yk_error_clear();
  m->spoilt = true;
  if (m->o.team != NULL) yk__team_spoil(m->o.team);
  yk__str_add(text, "'%s' holds it too, and there is no checkpoint to go back to: nothing is saved any more", bad);
  return YK_OK;
}

yk_code yk__monitored_keep(yk_monitored *m, char **text) {
  const char *bad;
  yk_str s = { 0 };
  YK_TRY(find_bad(m, &bad));
  yk_code rc = YK_OK;
  if (bad == NULL) yk__str_add(&s, "no variable holds it");
  else rc = go_back(m, bad, &s);
  if (rc == YK_OK) return yk__str_take(&s, text);
  yk__str_free(&s);
  return rc;
}

bool yk__monitored_spoilt(yk_monitored *m) { return m->spoilt || (m->o.team != NULL && yk__team_spoilt(m->o.team)); }

/* ---- the end ----------------------------------------------------------------------------------------------------------------- */

static yk_code end_hooks(yk_monitored *m) {
  for (size_t i = 0; i < m->nhook; i++) {
    const yk_hook *h = m->hook[i];
    yk_code rc = h->end != NULL ? h->end(h->self, m) : YK_OK;
    if (rc != YK_OK) return yk__fail_prefix(rc, "hook %s", h->name);
  }
  return YK_OK;
}

yk_code yk_monitored_close(yk_monitored *m) {
  if (m == NULL) return YK_OK;
  if (m->claimed && !is_worker(m)) {
    stop(m, YK_OK);
    if (m->ready) YK_TRY(yk__team_empty(m->o.team, m->o.wait_ms));
  }
  yk_code rc = m->failed ? YK_OK : end_hooks(m), now;
  if (m->o.coordinator != NULL) {
    yk_coordinator_request_stop(m->o.coordinator, YK_OK);
    now = yk_coordinator_join(m->o.coordinator, m->o.grace_ms > 0 ? m->o.grace_ms : 120000);
    if (rc == YK_OK && !m->failed) rc = now;
  }
  for (size_t i = 0; i < m->nown; i++) yk_hook_free(&m->own[i]);
  now = yk_saver_close(m->saver);
  if (rc == YK_OK) rc = now;
  now = yk_summary_close(m->writer);
  if (rc == YK_OK) rc = now;
  drop_session(m);
  if (m->claimed) yk__team_leave(m->o.team, m->o.worker);
  yk__free(m->kept);
  yk__free(m->hook);
  yk__free(m->add);
  yk__free(m);
  return rc;
}
