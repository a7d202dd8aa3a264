/*
 * metrics.c - sums over steps, and the lines made from them.
 *
 * Two clocks: the bar is redrawn at most ten times a second, the live view four, unless the
 * interval is shorter; a line of metrics is
 * written every interval, to the user and to metrics.jsonl alike.
 */
#include "cli/metrics.h"
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/thread.h"

enum { REDRAW_NS = 100 * 1000 * 1000, REDRAW_LIVE_NS = 250 * 1000 * 1000 };

void yk__metrics_begin(yk_metrics *m, const yk_job *job, yk_board *board, yk_show show, FILE *out, FILE *log, double interval) {
  *m = (yk_metrics){ .job = job, .board = board, .show = show, .out = out, .log = log, .curve = { .per = 1 } };
  m->interval_ns = (uint64_t)(interval * 1e9);
  m->reported = yk__now_ns();
  if (show == YK__SHOW_LIVE) yk__live_begin(&m->live);
}

static void add(yk_sums *s, double loss, double accuracy, uint64_t ns) {
  s->loss += loss;
  s->accuracy += accuracy;
  s->n++;
  s->ns += ns;
}

static void halve(yk_curve *c) {
  for (uint32_t i = 0; i < YK__CURVE / 2; i++) {
    yk_sums *a = &c->point[2 * i], *b = a + 1;
    c->point[i] = (yk_sums){ a->loss + b->loss, a->accuracy + b->accuracy, a->n + b->n, a->ns + b->ns };
  }
  c->n = YK__CURVE / 2;
  c->per *= 2;
}

static void add_to_curve(yk_curve *c, double loss, double accuracy, uint64_t ns) {
  if (c->n > 0 && c->point[c->n - 1].n < c->per) {
    add(&c->point[c->n - 1], loss, accuracy, ns);
    return;
  }
  if (c->n == YK__CURVE) halve(c);
  c->point[c->n] = (yk_sums){ 0 };
  add(&c->point[c->n++], loss, accuracy, ns);
}

static double per_second(const yk_metrics *m, int64_t steps, uint64_t ns) {
  return ns == 0 ? 0 : (double)steps * (double)m->job->batch / ((double)ns * 1e-9);
}

double yk__metrics_rate(const yk_metrics *m) {
  return per_second(m, m->step, m->ns);
}

static double epoch_of(const yk_metrics *m, int64_t step) {
  return (double)step * (double)m->job->batch / (double)yk_dataset_size(m->job->train);
}

static void clear_bar(yk_metrics *m) {
  if (m->on_bar && m->show == YK__SHOW_LIVE) yk__live_clear(&m->live, m->out);
  else if (m->on_bar) yk__bar_clear(m->out);
  m->on_bar = false;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

void yk__metrics_emit(yk_metrics *m, yk_json *j) {
  off_t at = ftello(m->log), whole = at + (off_t)j->text.n + 1;
  if (!yk__json_flush(j, m->log, m->show == YK__SHOW_JSON ? m->out : NULL)) {
    m->failed = true;
    if (ftello(m->log) != whole && ftruncate(fileno(m->log), at) == 0)      /* a full disk took a part of the line */
      (void)fseeko(m->log, at, SEEK_SET);
  }
  yk__str_free(&j->text);
}

static void report(yk_metrics *m) {
  const yk_sums *s = &m->interval;
  double n = (double)s->n, rate = per_second(m, s->n, s->ns);
  yk_json j = { 0 };
  yk__json_open(&j, NULL, '{');
  yk__json_text(&j, "event", "progress");
  yk__json_int(&j, "step", m->step);
  yk__json_real(&j, "epoch", epoch_of(m, m->step));
  yk__json_real(&j, "loss", s->loss / n);
  yk__json_real(&j, "accuracy", s->accuracy / n);
  yk__json_real(&j, "examples_per_second", rate);
  yk__json_real(&j, "seconds", (double)m->ns * 1e-9);
  yk__json_close(&j, '}');
  yk__metrics_emit(m, &j);
  yk__board_progress(m->board, m->step, epoch_of(m, m->step), s->loss / n, s->accuracy / n, rate);
  if (m->show == YK__SHOW_LINES) {
    fprintf(m->out, "step %lld/%lld  epoch %.2f  loss %.4f  accuracy %.4f  %.0f examples/s\n", (long long)m->step,
            (long long)m->job->steps,
            epoch_of(m, m->step), s->loss / n, s->accuracy / n, rate);
    fflush(m->out);
  }
  m->interval = (yk_sums){ 0 };
}

static void draw(yk_metrics *m, uint64_t now) {
  char line[YK__BAR_TEXT];
  yk_sums r = yk__metrics_recent(m);
  double rate = yk__metrics_rate(m), left = (double)m->ns * 1e-9 / (double)m->step * (double)(m->job->steps - m->step);
  yk__bar_text(yk__columns(m->out) - 1, m->step, m->job->steps, r.loss, r.accuracy, rate, left, line);
  if (m->show == YK__SHOW_LIVE) yk__live_draw(&m->live, m->out, m, line);
  else yk__bar_draw(m->out, line);
  m->on_bar = true;
  m->drawn = now;
}

void yk__metrics_step(yk_metrics *m, double loss, double accuracy, uint64_t ns) {
  uint64_t now = yk__now_ns();
  m->recent_loss[m->step % YK__RECENT] = (float)loss;
  m->recent_accuracy[m->step % YK__RECENT] = (float)accuracy;
  m->step++;
  m->ns += ns;
  add(&m->interval, loss, accuracy, ns);
  add_to_curve(&m->curve, loss, accuracy, ns);
  if (now - m->reported >= m->interval_ns) {
    report(m);
    m->reported = now;
  }
  uint64_t redraw = m->show == YK__SHOW_LIVE ? REDRAW_LIVE_NS : REDRAW_NS;
  if (redraw > m->interval_ns) redraw = m->interval_ns;
  if (m->show >= YK__SHOW_BAR && now - m->drawn >= redraw) draw(m, now);
}

void yk__metrics_tested(yk_metrics *m, const yk_score *score) {
  yk_tested t = { .step = m->step, .score = *score };
  yk_json j = { 0 };
  if (!YK_PUSH(m->tested, m->ntested, m->tested_cap, t)) yk_error_clear();
  m->test_seconds += score->seconds;
  yk__json_open(&j, NULL, '{');
  yk__json_text(&j, "event", "evaluation");
  yk__json_int(&j, "step", m->step);
  yk__json_real(&j, "epoch", epoch_of(m, m->step));
  yk__json_real(&j, "test_loss", score->loss);
  yk__json_real(&j, "test_accuracy", score->accuracy);
  yk__json_int(&j, "examples", score->n);
  yk__json_real(&j, "seconds", score->seconds);
  yk__json_close(&j, '}');
  yk__metrics_emit(m, &j);
  yk__board_tested(m->board, m->step, score);
  clear_bar(m);
  if (m->show >= YK__SHOW_LINES) {
    fprintf(m->out, "epoch %.2f: test loss %.4f, test accuracy %.4f on %lld pictures\n", epoch_of(m, m->step), score->loss,
            score->accuracy,
            (long long)score->n);
    fflush(m->out);
  }
}

void yk__metrics_finish(yk_metrics *m) {
  clear_bar(m);
  if (m->interval.n > 0) report(m);
}

yk_sums yk__metrics_recent(const yk_metrics *m) {
  int64_t n = m->step < YK__RECENT ? m->step : YK__RECENT;
  yk_sums s = { 0 };
  for (int64_t i = 0; i < n; i++) add(&s, (double)m->recent_loss[i], (double)m->recent_accuracy[i], 0);
  if (n > 0) {
    s.loss /= (double)n;
    s.accuracy /= (double)n;
  }
  return s;
}

void yk__metrics_free(yk_metrics *m) {
  yk__free(m->tested);
}
