/*
 * sync_core.c - the moves of synchronous replicas.
 *
 * Why it never hangs. After an update as many tokens of the new step enter as workers live (R <= T), or R (R > T). A worker
 * only waits when the queue is empty; if all wait, each token of this step was used for a gradient, which was accepted, or was
 * held by a worker that left. With R <= T each that left also lowers the number that the chief waits for; with R > T its token
 * went back. So the chief has enough. Whatever else goes wrong ends in a time-out that names who is missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "train/sync.h"

/* ---- open and free ----------------------------------------------------------------------------------------------- */

static yk_code check(const yk_sync_options *o, const char *name) {
  int32_t r = o->replicas_to_aggregate, t = o->total_num_replicas;
  if (r < 1 || r > 65536) return YK_FAIL(EINVAL, "%s: replicas_to_aggregate is %d, expected 1 or more", name, r);
  if (t < 0 || t > 65536)
    return YK_FAIL(EINVAL, "%s: total_num_replicas is %d, expected 1 or more, or 0 for replicas_to_aggregate", name, t);
  if (t == 0) t = r;
  if (o->num_tokens < -1)
    return YK_FAIL(EINVAL, "%s: num_tokens is %d, expected 0 or more, or -1 for replicas_to_aggregate", name, o->num_tokens);
  if (o->num_tokens != -1 && o->num_tokens < r - t)
    return YK_FAIL(EINVAL, "%s: num_tokens is %d, but at least replicas_to_aggregate - total_num_replicas = %d are needed", name,
                   o->num_tokens, r - t);
  if (o->timeout_ms < 0) return YK_FAIL(EINVAL, "%s: timeout_ms is %" PRId64 ", expected 0 or more", name, o->timeout_ms);
  return YK_OK;
}

static yk_code open_slots(yk_sync_core *c, const yk_sync_options *o, uint32_t n, const yk_sync_slot *slots) {
  for (uint32_t i = 0; i < n; i++) {
    char name[256];
    snprintf(name, sizeof name, "%.240s:0/grad_accum", slots[i].name);
    yk_accumulator_options a = YK_ACCUMULATOR_OPTIONS_INIT;
    a.name = name;
    a.desc = slots[i].desc;
    a.sparse = c->sparse[i] = slots[i].sparse;
    a.reduction = o->reduction;
    a.timeout_ms = c->timeout_ms;
    YK_TRY(yk_accumulator_open(&a, &c->accumulator[i]));
    c->naccumulators = i + 1;
  }
  return YK_OK;
}

static yk_code open_tokens(yk_sync_core *c) {
  yk_tensor_queue_options q = YK_TENSOR_QUEUE_OPTIONS_INIT;
  q.name = "sync_token_q";
  q.ncomponents = 1;
  q.component[0] = (yk_desc){ .dtype = YK_I64 };
  q.timeout_ms = c->timeout_ms;
  YK_TRY(yk_tensor_queue_open(&q, &c->tokens));
  return yk_tensor_new(YK_I64, YK_SCALAR, &c->token);
}

yk_code yk__sync_new(const yk_sync_options *o, uint32_t n, const yk_sync_slot *slots, yk_sync_core **out) {
  const char *name = o->name ? o->name : "sync_replicas";
  YK_TRY(check(o, name));
  yk_sync_core *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  c->aggregate = o->replicas_to_aggregate;
  c->total = o->total_num_replicas > 0 ? o->total_num_replicas : c->aggregate;
  c->timeout_ms = yk__limit_ms(o->timeout_ms);
  c->live = c->total;
  c->first_failed = -1;
  atomic_init(&c->quorum, c->aggregate);
  yk__mutex_init(&c->lock);
  c->name = yk__strdup(name);
  c->member = c->name ? yk__calloc((size_t)c->total, sizeof *c->member) : NULL;
  c->accumulator = c->member ? yk__calloc(n + 1u, sizeof(yk_accumulator *)) : NULL;
  c->sparse = c->accumulator ? yk__calloc(n + 1u, sizeof *c->sparse) : NULL;
  yk_code rc = c->sparse ? open_slots(c, o, n, slots) : YK_ENOMEM;
  if (rc == YK_OK) rc = open_tokens(c);
  if (rc == YK_OK) *out = c;
  else yk__sync_free(c);
  return rc;
}

void yk__sync_free(yk_sync_core *c) {
  if (c == NULL) return;
  for (uint32_t i = 0; i < c->naccumulators; i++) yk_accumulator_free(c->accumulator[i]);
  yk_tensor_queue_free(c->tokens);
  yk_tensor_free(c->token);
  yk__mutex_free(&c->lock);
  yk__free(c->accumulator);
  yk__free(c->sparse);
  yk__free(c->member);
  yk__free(c->name);
  yk__free(c);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* With the lock held. The queue has no limit, so this does not wait. */
static yk_code add_tokens(yk_sync_core *c, int64_t step, int64_t n) {
  *(int64_t *)yk_tensor_data(c->token) = step;
  for (int64_t i = 0; i < n; i++) {
    YK_TRY(yk_tensor_queue_enqueue(c->tokens, (const yk_tensor *const[]){ c->token }));
    c->entered++;
  }
  return YK_OK;
}

yk_code yk__sync_begin(yk_sync_core *c, int64_t global_step, int32_t num_tokens) {
  for (uint32_t i = 0; i < c->naccumulators; i++) yk_accumulator_set_global_step(c->accumulator[i], global_step);
  yk__mutex_lock(&c->lock);
  c->global_step = global_step;
  for (int32_t w = 0; w < c->total; w++)
    c->member[w] = (yk_sync_member){ .holds = true, .local_step = global_step, .given = -1, .since = yk__now_ns() };
  yk_code rc = add_tokens(c, global_step, num_tokens < 0 ? c->aggregate : num_tokens);
  yk__mutex_unlock(&c->lock);
  return rc;
}

/* ---- who is missing ---------------------------------------------------------------------------------------------- */

/* One worker that has not given a gradient to the step at hand, or left with a failure; "" for others. */
static void describe(const yk_sync_core *c, int32_t w, char *buf, size_t n) {
  static const char *const doing[] = { "has not started", "computes", "waits for a token", "left" };
  const yk_sync_member *m = &c->member[w];
  double s = (double)(yk__now_ns() - m->since) * 1e-9;
  if (m->state == YK__SYNC_LEFT && m->failed) snprintf(buf, n, "worker %d left with %s: %s", w, yk_code_name(m->why), m->message);
  else if (m->state == YK__SYNC_LEFT || m->given >= c->global_step) buf[0] = '\0';
  else if (m->failed) snprintf(buf, n, "worker %d failed %.1f s ago with %s: %s", w, s, yk_code_name(m->why), m->message);
  else snprintf(buf, n, "worker %d %s since %.1f s, at its step %" PRId64, w, doing[m->state], s, m->local_step);
}

/* Returns `rc`, with who is missing behind the thread's message. */
static yk_code name_missing(yk_sync_core *c, yk_code rc, const char *who) {
  char text[1024] = "", one[640];
  size_t used = 0;
  int32_t shown = 0, more = 0;
  yk__mutex_lock(&c->lock);
  for (int32_t w = 0; w < c->total; w++) {
    describe(c, w, one, sizeof one);
    if (one[0] == '\0') continue;
    if (used + strlen(one) + 3 > sizeof text || shown == 8) { more++; continue; }
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", shown++ > 0 ? "; " : "", one);
  }
  int64_t step = c->global_step;
  yk__mutex_unlock(&c->lock);
  char others[32] = "", before[1024];
  if (more > 0) snprintf(others, sizeof others, "; %d more", more);
  snprintf(before, sizeof before, "%s", yk_error_message());
  return yk__fail(rc, __FILE__, __LINE__, "%s: %s at global step %" PRId64 ": %s. Missing: %s%s", c->name, who, step, before,
                  shown > 0 ? text : "nobody", others);
}

/* ---- stop -------------------------------------------------------------------------------------------------------- */

/* With the lock held; who gets true must release the others once it has let go of the lock. */
static bool note_stop(yk_sync_core *c, yk_code why) {
  if (c->stopped) return false;
  c->stopped = true;
  c->why = why;
  if (why != YK_OK) snprintf(c->message, sizeof c->message, "%s", yk_error_message());
  return true;
}

/* Nobody waits any longer. Tokens that are there can still be taken. */
static void let_go(yk_sync_core *c) {
  if (yk_tensor_queue_close(c->tokens, true) != YK_OK) yk_error_clear();
  for (uint32_t i = 0; i < c->naccumulators; i++) yk_accumulator_cancel(c->accumulator[i]);
}

void yk__sync_stop(yk_sync_core *c, yk_code why) {
  yk__mutex_lock(&c->lock);
  bool first = note_stop(c, why);
  yk__mutex_unlock(&c->lock);
  if (first) let_go(c);
}

yk_code yk__sync_ended(yk_sync_core *c) {
  yk__mutex_lock(&c->lock);
  yk_code rc = YK_OK;
  if (c->stopped && c->why == YK_OK) rc = YK_FAIL(ERANGE, "%s: the training has ended, at global step %" PRId64, c->name, c->global_step);
  else if (c->stopped) rc = yk__fail(c->why, __FILE__, __LINE__, "%s", c->message);
  yk__mutex_unlock(&c->lock);
  return rc;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static void set_state(yk_sync_core *c, int32_t w, yk_sync_state state) {
  c->member[w].state = state;
  c->member[w].since = yk__now_ns();
}

yk_code yk__sync_enter(yk_sync_core *c, int32_t w) {
  if (w < 0 || w >= c->total) return YK_FAIL(EINVAL, "%s: there is no worker %d of %d", c->name, w, c->total);
  yk__mutex_lock(&c->lock);
  yk_code rc = YK_OK;
  if (c->member[w].state != YK__SYNC_ABSENT)
    rc = YK_FAIL(EINVAL, "%s: worker %d was opened before%s", c->name, w, c->member[w].state == YK__SYNC_LEFT ? ", and has left" : "");
  else set_state(c, w, YK__SYNC_COMPUTING);
  yk__mutex_unlock(&c->lock);
  return rc;
}

void yk__sync_failed(yk_sync_core *c, int32_t w, yk_code why) {
  yk_sync_member *m = &c->member[w];
  yk__mutex_lock(&c->lock);
  if (m->state == YK__SYNC_LEFT && !m->failed && c->failed++ == 0) c->first_failed = w;
  m->failed = true;
  m->why = why;
  snprintf(m->message, sizeof m->message, "%s", yk_error_message());
  yk__mutex_unlock(&c->lock);
}

static void step_aside(yk_sync_core *c, yk_sync_member *m) {
  if (m->stands) yk__tensor_queue_leave(c->tokens, &m->place);
  m->stands = false;
}

void yk__sync_leave(yk_sync_core *c, int32_t w) {
  yk_sync_member *m = &c->member[w];
  yk_code rc = YK_OK;
  step_aside(c, m);
  yk__mutex_lock(&c->lock);
  if (m->state != YK__SYNC_LEFT) {
    set_state(c, w, YK__SYNC_LEFT);
    c->live--;
    if (m->failed && c->failed++ == 0) c->first_failed = w;
    if (c->aggregate <= c->total) atomic_store(&c->quorum, c->live > c->aggregate ? c->aggregate : c->live > 0 ? c->live : 1);
    else if (m->holds && c->live > 0 && !c->stopped) rc = add_tokens(c, m->local_step, 1);
    m->holds = false;
  }
  bool nobody = c->live == 0;
  yk__mutex_unlock(&c->lock);
  for (uint32_t i = 0; i < c->naccumulators; i++) yk__accumulator_wake(c->accumulator[i], nobody);
  if (rc == YK_OK) return;
  yk__sync_stop(c, rc);
  yk_error_clear();
}

/* It takes its place in the line first: a token that its own gradient brings must not go to somebody who is faster. */
yk_code yk__sync_apply(yk_sync_core *c, int32_t w, const yk_tensor *const *grads) {
  yk_sync_member *m = &c->member[w];
  bool all = true, accepted;
  step_aside(c, m);
  yk__tensor_queue_stand(c->tokens, &m->place);
  m->stands = true;
  yk__mutex_lock(&c->lock);
  int64_t step = m->local_step;
  yk__mutex_unlock(&c->lock);
  for (uint32_t i = 0; i < c->naccumulators; i++) {
    yk_code rc = c->sparse[i] ? yk_accumulator_apply_rows(c->accumulator[i], grads[0], grads[1], step, &accepted)
                              : yk_accumulator_apply(c->accumulator[i], grads[0], step, &accepted);
    if (rc != YK_OK) {
      step_aside(c, m);
      return rc;
    }
    grads += c->sparse[i] ? 2 : 1;
    all = all && accepted;
  }
  yk__mutex_lock(&c->lock);
  m->holds = false;
  m->failed = false;
  m->steps++;
  c->steps++;
  if (all) {
    m->given = step;
  } else {
    m->dropped++;
    c->dropped++;
  }
  yk__mutex_unlock(&c->lock);
  return YK_OK;
}

bool yk__sync_holds(yk_sync_core *c, int32_t w) {
  yk__mutex_lock(&c->lock);
  bool holds = c->member[w].holds;
  yk__mutex_unlock(&c->lock);
  return holds;
}

yk_code yk__sync_token(yk_sync_core *c, int32_t w) {
  yk_sync_member *m = &c->member[w];
  int64_t token = 0;
  yk__mutex_lock(&c->lock);
  set_state(c, w, YK__SYNC_WAITING);
  yk__mutex_unlock(&c->lock);
  yk_code rc = yk__sync_ended(c);
  if (rc != YK_OK && rc != YK_ERANGE) {
    step_aside(c, m);
    return rc;
  }
  if (rc == YK_ERANGE) yk_error_clear();         /* a token that entered before the end is still its due */
  if (!m->stands) yk__tensor_queue_stand(c->tokens, &m->place);
  m->stands = false;
  rc = yk__tensor_queue_take(c->tokens, &m->place, (void *const[]){ &token });
  if (rc == YK_ERANGE) {
    yk_error_clear();
    return yk__sync_ended(c);
  }
  if (rc != YK_OK) {
    char who[64];
    snprintf(who, sizeof who, "worker %d", w);
    return name_missing(c, rc, who);
  }
  yk__mutex_lock(&c->lock);
  c->taken++;
  m->local_step = token;
  m->holds = true;
  set_state(c, w, YK__SYNC_COMPUTING);
  yk__mutex_unlock(&c->lock);
  return YK_OK;
}

/* ---- chief ------------------------------------------------------------------------------------------------------- */

yk_code yk__sync_take(yk_sync_core *c, yk_tensor **means) {
  for (uint32_t i = 0; i < c->naccumulators; i++) {
    yk_code rc = c->sparse[i] ? yk__accumulator_take_rows(c->accumulator[i], &c->quorum, &means[0], &means[1])
                              : yk__accumulator_take(c->accumulator[i], &c->quorum, means[0]);
    if (rc == YK_EBUSY) rc = name_missing(c, rc, "the chief");
    if (rc == YK_ECANCELLED) rc = YK_ERANGE;
    if (rc != YK_OK) return rc;
    means += c->sparse[i] ? 2 : 1;
  }
  return YK_OK;
}

yk_code yk__sync_publish(yk_sync_core *c, int64_t global_step, bool last) {
  yk__mutex_lock(&c->lock);
  c->global_step = global_step;
  c->updates++;
  int64_t n = c->live == 0 || c->stopped ? 0 : c->aggregate > c->total ? c->aggregate : c->live;
  yk_code rc = add_tokens(c, global_step, n);
  bool first = last && rc == YK_OK && note_stop(c, YK_OK);
  yk__mutex_unlock(&c->lock);
  if (first) let_go(c);
  return rc;
}
