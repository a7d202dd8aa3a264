/*
 * team.c - a chief and workers of monitored training: threads of one process that share a graph and the chief's session.
 *
 * One lock and one condition. The session belongs to the chief, which closes it only when the last worker has gone; so a
 * worker that has it may use it without asking.
 */
#include <stdatomic.h>
#include <stdio.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "train/team.h"
#include "train/waits.h"

typedef enum team_state { ABSENT, OPENING, READY, ENDED } team_state;   /* of the chief */

struct yk_monitored_team {
  yk_mutex lock;                     /* what follows */
  yk_cond change;
  team_state state;
  uint64_t since;                    /* that the chief opens its session */
  const yk_graph *g;
  yk_session *s;
  bool stopped;
  yk_code why;
  char message[480];
  atomic_bool spoilt;
  int32_t workers, here;             /* here: without the chief */
  bool there[];                      /* [workers + 1] */
};

yk_code yk_monitored_team_new(int32_t workers, yk_monitored_team **out) {
  if (out == NULL || workers < 1 || workers > 4096) return YK_FAIL(EINVAL, "a team of %d workers; expected 1 to 4096, and an output", workers);
  yk_monitored_team *t = yk__calloc(1, sizeof *t + ((size_t)workers + 1) * sizeof t->there[0]);
  if (t == NULL) return YK_ENOMEM;
  yk__mutex_init(&t->lock);
  yk__cond_init(&t->change);
  t->workers = workers;
  *out = t;
  return YK_OK;
}

void yk_monitored_team_free(yk_monitored_team *t) {
  if (t == NULL) return;
  yk__cond_free(&t->change);
  yk__mutex_free(&t->lock);
  yk__free(t);
}

/* A chief that comes after one that has ended begins anew. */
static void begin(yk_monitored_team *t) {
  t->state = OPENING;
  t->since = yk__now_ns();
  t->stopped = false;
  t->why = YK_OK;
  atomic_store(&t->spoilt, false);
}

yk_code yk__team_claim(yk_monitored_team *t, int32_t worker) {
  if (worker < 0 || worker > t->workers)
    return YK_FAIL(EINVAL, "worker %d of a team of %d; expected 1 to %d, or 0 for the chief", worker, t->workers, t->workers);
  yk__mutex_lock(&t->lock);
  yk_code rc = !t->there[worker] ? YK_OK : worker == 0 ? YK_FAIL(EINVAL, "the team has a chief already")
                                                      : YK_FAIL(EINVAL, "worker %d of the team is there already", worker);
  if (rc == YK_OK) {
    t->there[worker] = true;
    t->here += worker > 0;
    if (worker == 0) begin(t);
  }
  yk__mutex_unlock(&t->lock);
  return rc;
}

void yk__team_leave(yk_monitored_team *t, int32_t worker) {
  yk__mutex_lock(&t->lock);
  t->there[worker] = false;
  t->here -= worker > 0;
  if (worker == 0) {
    t->state = ENDED;
    t->s = NULL;
  }
  yk__cond_broadcast(&t->change);
  yk__mutex_unlock(&t->lock);
}

void yk__team_ready(yk_monitored_team *t, yk_graph *g, yk_session *s) {
  yk__mutex_lock(&t->lock);
  t->g = g;
  t->s = s;
  t->state = READY;
  yk__cond_broadcast(&t->change);
  yk__mutex_unlock(&t->lock);
}

/* With the lock held. */
static yk_code ended(const yk_monitored_team *t) {
  if (t->stopped && t->why != YK_OK) return yk__fail(t->why, __FILE__, __LINE__, "the chief has failed: %s", t->message);
  if (t->stopped || t->state == ENDED) return YK_FAIL(ERANGE, "the chief has stopped: the training has ended");
  return YK_OK;
}

static yk_code too_late(const yk_monitored_team *t, int32_t worker, int64_t ms) {
  if (t->state == ABSENT)
    return YK_FAIL(EBUSY, "worker %d waited %lld ms for variables to be initialised or restored. Missing: the chief, which has not come", worker,
                   (long long)ms);
  return YK_FAIL(EBUSY, "worker %d waited %lld ms for variables to be initialised or restored. Missing: the chief, which is at it since %.1f s",
                 worker, (long long)ms, (double)(yk__now_ns() - t->since) * 1e-9);
}

yk_code yk__team_wait(yk_monitored_team *t, int32_t worker, int64_t wait_ms, const yk_graph *g, yk_session **out) {
  int64_t ms = yk__limit_ms(wait_ms);
  uint64_t until = yk__until(ms);
  int going = 1;
  yk__mutex_lock(&t->lock);
  while (t->state < READY && !t->stopped && going) going = yk__wait_until(&t->change, &t->lock, until);
  yk_code rc = ended(t);
  if (rc == YK_OK && t->state < READY) rc = too_late(t, worker, ms);
  if (rc == YK_OK && t->g != g) rc = YK_FAIL(EINVAL, "worker %d has another graph than the chief of its team", worker);
  if (rc == YK_OK) *out = t->s;
  yk__mutex_unlock(&t->lock);
  return rc;
}

void yk__team_stop(yk_monitored_team *t, yk_code why) {
  yk__mutex_lock(&t->lock);
  if (!t->stopped) {
    t->stopped = true;
    t->why = why;
    if (why != YK_OK) snprintf(t->message, sizeof t->message, "%s", yk_error_message());
    yk__cond_broadcast(&t->change);
  }
  yk__mutex_unlock(&t->lock);
}

yk_code yk__team_ended(yk_monitored_team *t) {
  yk__mutex_lock(&t->lock);
  yk_code rc = ended(t);
  yk__mutex_unlock(&t->lock);
  return rc;
}

bool yk__team_stopped(yk_monitored_team *t) {
  yk__mutex_lock(&t->lock);
  bool yes = t->stopped || t->state == ENDED;
  yk__mutex_unlock(&t->lock);
  return yes;
}

static yk_code still_there(const yk_monitored_team *t, int64_t ms) {
  yk_str s = { 0 };
  char *names = NULL;
  for (int32_t i = 1; i <= t->workers; i++)
    if (t->there[i]) yk__str_add(&s, "%s%d", s.n > 0 ? ", " : "", i);
  YK_TRY(yk__str_take(&s, &names));
  yk_code rc = YK_FAIL(EBUSY, "the chief waited %lld ms for its workers to close. Still there: worker %s", (long long)ms, names);
  yk__free(names);
  return rc;
}

yk_code yk__team_empty(yk_monitored_team *t, int64_t wait_ms) {
  int64_t ms = yk__limit_ms(wait_ms);
  uint64_t until = yk__until(ms);
  yk_code rc = YK_OK;
  int going = 1;
  yk__mutex_lock(&t->lock);
  while (t->here > 0 && going) going = yk__wait_until(&t->change, &t->lock, until);
  if (t->here > 0) rc = still_there(t, ms);
  yk__mutex_unlock(&t->lock);
  return rc;
}

void yk__team_spoil(yk_monitored_team *t) { atomic_store(&t->spoilt, true); }
bool yk__team_spoilt(yk_monitored_team *t) { return atomic_load(&t->spoilt); }
