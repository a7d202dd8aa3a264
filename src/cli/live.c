/*
 * live.c - `yoke train --live`: curves, tests and devices of a run, drawn over themselves at the foot of the terminal.
 *
 * What stays, such as the result of a test, is printed in place of the drawing, which then begins anew below it. Each line is cut
 * to the width of the terminal and the drawing to its height, since what wraps or scrolls could not be drawn over.
 */
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/metrics.h"
#include "measure/measure.h"
#include "run/run.h"

enum { CELLS = 48, HEAD = 27, LEVELS = 8, GAUGE = 10 };            /* cells of a curve; columns before it; heights of a cell */

/* Eight heights, as U+2581 to U+2588 or in ASCII; a cell without a number is a blank. */
static void put_cell(yk_str *s, bool utf8, double share) {
  int level = isfinite(share) ? (int)fmin(LEVELS - 1, fmax(0, share * LEVELS)) : -1;
  if (level < 0) yk__str_put(s, " ", 1);
  else if (utf8) yk__str_add(s, "\xE2\x96%c", 0x81 + level);
  else yk__str_put(s, &"_.-~=+*#"[level], 1);
}

static double finite_mean(const double *x, uint32_t begin, uint32_t end) {
  double sum = 0;
  int n = 0;
  for (uint32_t i = begin; i < end; i++)
    if (isfinite(x[i])) sum += x[i], n++;
  return n > 0 ? sum / n : (double)NAN;
}

/* "loss       2.3030 -> 0.8120  " and n numbers in as many cells as there is room for. */
static void put_curve(yk_str *s, const yk_live *v, const char *name, const double *x, uint32_t n) {
  int room = v->columns - HEAD;
  uint32_t cells = room < CELLS ? (uint32_t)(room > 0 ? room : 0) : CELLS;
  double cell[CELLS], low = INFINITY, high = -INFINITY;
  if (n == 0) return;
  if (cells > n) cells = n;
  for (uint32_t c = 0; c < cells; c++) {
    cell[c] = finite_mean(x, c * n / cells, (c + 1) * n / cells);
    low = fmin(low, cell[c]);
    high = fmax(high, cell[c]);
  }
  yk__str_add(s, "%-9s %7.4g > %-7.4g", name, x[0], x[n - 1]);
  for (uint32_t c = 0; c < cells; c++) {
    if (c == 0) yk__str_put(s, " ", 1);
    put_cell(s, v->utf8, high > low ? (cell[c] - low) / (high - low) : cell[c] - cell[c]);
  }
  yk__str_put(s, "\n", 1);
}

static void put_curves(yk_str *s, const yk_live *v, const yk_metrics *m) {
  double x[YK__CURVE];
  const yk_curve *c = &m->curve;
  for (uint32_t i = 0; i < c->n; i++) x[i] = c->point[i].loss / (double)c->point[i].n;
  put_curve(s, v, "loss", x, c->n);
  for (uint32_t i = 0; i < c->n; i++) x[i] = c->point[i].accuracy / (double)c->point[i].n;
  put_curve(s, v, "accuracy", x, c->n);
  for (uint32_t i = 0; i < c->n; i++) x[i] = (double)c->point[i].ns / (double)c->point[i].n * 1e-6;
  if (c->n > 1) put_curve(s, v, "step, ms", x + 1, c->n - 1);          /* the first one compiles */
  uint32_t n = m->ntested < YK__CURVE ? m->ntested : YK__CURVE;
  for (uint32_t i = 0; i < n; i++) x[i] = m->tested[m->ntested - n + i].score.accuracy;
  put_curve(s, v, "test acc.", x, n);
}

/* Share of the time since the last drawing, whose counters are replaced by those of now. */
static double busy(yk_live *v, const yk_device *d, uint64_t ns) {
  uint64_t now = atomic_load(&d->work->run_ns) + atomic_load(&d->work->stream_ns), before = v->worked[d->index];
  v->worked[d->index] = now;
  return ns == 0 || now < before ? 0 : fmin(1, (double)(now - before) / (double)ns);
}

static void put_devices(yk_str *s, yk_live *v, const yk_session *session, uint64_t ns) {
  char used[YK__BYTES_TEXT], limit[YK__BYTES_TEXT], name[YK__SHORT_BYTES], gauge[GAUGE + 1];
  for (size_t i = 0; i < yk_session_device_count(session) && i < YK__LIVE_DEVICES; i++) {
    const yk_device *d = &session->devices->at[i];
    yk_device_memory memory = YK_DEVICE_MEMORY_INIT;
    if (yk_session_device_memory(session, i, &memory) != YK_OK) continue;
    double share = busy(v, d, ns);
    memset(gauge, '.', GAUGE);
    memset(gauge, '#', (size_t)lround(share * GAUGE));
    gauge[GAUGE] = '\0';
    yk__str_add(s, "%-9s busy %3.0f%% [%s]  %s of %s in use\n", yk__short_name(d->name, name), share * 100, gauge,
                yk__bytes_text(memory.bytes_in_use, used), yk__bytes_text(memory.bytes_limit, limit));
  }
}

/* At most so many lines of `text`, each over what stood there; what stands below them goes. The last one has no line end, so that
 * nothing scrolls. */
static int put_lines(FILE *out, const char *text, int most, int columns) {
  int n = 0;
  while (*text != '\0' && n < most) {
    size_t bytes = strcspn(text, "\n");
    bool fits = (int)bytes < columns || memchr(text, '\xE2', bytes) != NULL;                            /* a curve keeps to its room */
    fprintf(out, "%s\r%.*s\033[K", n > 0 ? "\n" : "", fits ? (int)bytes : columns, text);
    text += bytes + (text[bytes] == '\n');
    n++;
  }
  fputs("\033[J", out);
  return n;
}

static void measure(yk_live *v, FILE *out) {
  struct winsize w;
  bool known = ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0;
  v->columns = known ? w.ws_col - 1 : 79;
  v->rows = known ? w.ws_row - 1 : 23;
}

static void to_first_line(const yk_live *v, FILE *out) {
  if (v->lines > 1) fprintf(out, "\033[%dA", v->lines - 1);
}

void yk__live_begin(yk_live *v) {
  *v = (yk_live){ 0 };
  v->utf8 = setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void yk__live_draw(yk_live *v, FILE *out, const yk_metrics *m, const char *bar) {
  yk_str s = { 0 };
  char *text = NULL;
  uint64_t now = yk__now_ns();
  measure(v, out);
  yk__str_add(&s, "%s\n", bar);
  put_curves(&s, v, m);
  put_devices(&s, v, m->job->session, v->drawn ? now - v->drawn : 0);
  if (yk__str_take(&s, &text) != YK_OK) {                  /* a drawing less */
    yk_error_clear();
    return;
  }
  to_first_line(v, out);
  v->lines = put_lines(out, text, v->rows, v->columns);
  v->drawn = now;
  fflush(out);
  yk__free(text);
}

void yk__live_clear(yk_live *v, FILE *out) {
  to_first_line(v, out);
  if (v->lines > 0) fputs("\r\033[J", out);
  v->lines = 0;
  fflush(out);
}
