/*
 * state.c - what metrics have added up, as text in a checkpoint.
 *
 * Numbers with a point are written in hexadecimal, so that a run that goes on has the very sums it had.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/error.h"
#include "cli/keeper.h"

static void put_sums(yk_str *s, const yk_sums *x) {
  yk__str_add(s, " %a %a %" PRId64 " %" PRIu64, x->loss, x->accuracy, x->n, x->ns);
}

yk_code yk__metrics_text(const yk_metrics *m, char **out) {
  yk_str s = { 0 };
  yk__str_add(&s, "%" PRId64 " %" PRIu64 " %a", m->step, m->ns, m->test_seconds);
  put_sums(&s, &m->interval);
  for (int i = 0; i < YK__RECENT; i++) yk__str_add(&s, " %a %a", (double)m->recent_loss[i], (double)m->recent_accuracy[i]);
  yk__str_add(&s, " %u %" PRId64, m->curve.n, m->curve.per);
  for (uint32_t i = 0; i < m->curve.n; i++) put_sums(&s, &m->curve.point[i]);
  yk__str_add(&s, " %u", m->ntested);
  for (uint32_t i = 0; i < m->ntested; i++) {
    const yk_score *t = &m->tested[i].score;
    yk__str_add(&s, " %" PRId64 " %a %a %a %" PRId64, m->tested[i].step, t->loss, t->accuracy, t->seconds, t->n);
  }
  return yk__str_take(&s, out);
}

typedef struct reader { const char *at; bool failed; } reader;

static double real(reader *r) {
  char *end;
  double x = strtod(r->at, &end);
  r->failed |= end == r->at;
  r->at = end;
  return x;
}

static int64_t whole(reader *r) {
  char *end;
  long long x = strtoll(r->at, &end, 10);
  r->failed |= end == r->at || x < 0;
  r->at = end;
  return r->failed ? 0 : (int64_t)x;
}

static yk_sums sums(reader *r) {
  yk_sums x = { .loss = real(r) };
  x.accuracy = real(r);
  x.n = whole(r);
  x.ns = (uint64_t)whole(r);
  return x;
}

static yk_code take_tested(reader *r, yk_metrics *m) {
  int64_t n = whole(r);
  for (int64_t i = 0; i < n && !r->failed; i++) {
    yk_tested t = { .step = whole(r) };
    t.score.loss = real(r);
    t.score.accuracy = real(r);
    t.score.seconds = real(r);
    t.score.n = whole(r);
    if (!r->failed && !YK_PUSH(m->tested, m->ntested, m->tested_cap, t)) return YK_ENOMEM;
  }
  return YK_OK;
}

yk_code yk__metrics_take(yk_metrics *m, const char *text) {
  reader r = { .at = text };
  m->step = whole(&r);
  m->ns = (uint64_t)whole(&r);
  m->test_seconds = real(&r);
  m->interval = sums(&r);
  for (int i = 0; i < YK__RECENT; i++) {
    m->recent_loss[i] = (float)real(&r);
    m->recent_accuracy[i] = (float)real(&r);
  }
  int64_t n = whole(&r);
  m->curve.per = whole(&r);
  r.failed |= n > YK__CURVE || m->curve.per < 1;
  m->curve.n = r.failed ? 0 : (uint32_t)n;
  for (uint32_t i = 0; i < m->curve.n; i++) {
    m->curve.point[i] = sums(&r);
    r.failed |= m->curve.point[i].n < 1;
  }
  YK_TRY(take_tested(&r, m));
  return r.failed ? YK_FAIL(ECORRUPT, "the curves in the checkpoint are not understood") : YK_OK;
}
