/*
 * progbar.c - what fit prints: Keras's bar, or a line for each epoch.
 *
 * On a terminal the bar is written over itself; elsewhere each is a line of its own, and only the last one of an epoch is written, so that a
 * log file stays short.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "base/thread.h"
#include "keras/training.h"

enum { CELLS = 30, REFRESH_NS = 50000000 };

void yk__bar_print(const yk_progbar *b, const char *text) {
  if (b->print != NULL) {
    b->print(text, b->arg);
    return;
  }
  fputs(text, stdout);
  fflush(stdout);
}

static void print(const yk_progbar *b, yk_str *s) {
  char *text = NULL;
  if (yk__str_take(s, &text) != YK_OK) return;             /* no memory for a line that only tells how far it is */
  yk__bar_print(b, text);
  yk__free(text);
}

/* 5s, 1:05, 1:00:05 */
static void add_left(yk_str *s, double seconds) {
  long long t = seconds < 3.6e8 ? (long long)seconds : 360000000;
  if (t >= 3600) yk__str_add(s, "%lld:%02lld:%02lld", t / 3600, t / 60 % 60, t % 60);
  else if (t >= 60) yk__str_add(s, "%lld:%02lld", t / 60, t % 60);
  else yk__str_add(s, "%llds", t);
}

static void add_each(yk_str *s, double seconds, const char *unit) {
  if (seconds >= 1 || seconds == 0) yk__str_add(s, " %.0fs/%s", seconds, unit);
  else if (seconds >= 1e-3) yk__str_add(s, " %.0fms/%s", seconds * 1e3, unit);
  else yk__str_add(s, " %.0fus/%s", seconds * 1e6, unit);
}

static void add_logs(yk_str *s, const yk_logs *logs) {
  for (uint32_t i = 0; i < logs->n; i++)
    yk__str_add(s, fabs(logs->at[i].value) > 1e-3 || logs->at[i].value == 0 ? " - %s: %.4f" : " - %s: %.4e", logs->at[i].name, logs->at[i].value);
}

static void add_bar(yk_str *s, int64_t done, int64_t target) {
  int width = snprintf(NULL, 0, "%lld", (long long)target);
  int full = target > 0 ? (int)(CELLS * done / target) : CELLS;
  yk__str_add(s, "%*lld/%lld [", width, (long long)done, (long long)target);
  for (int i = 0; i < full - 1; i++) yk__str_put(s, "=", 1);
  if (full > 0) yk__str_put(s, done < target ? ">" : "=", 1);
  for (int i = full; i < CELLS; i++) yk__str_put(s, ".", 1);
  yk__str_put(s, "]", 1);
}

void yk__bar_epoch(yk_progbar *b, int64_t epoch, int64_t epochs) {
  yk_str s = { 0 };
  b->start_ns = b->drawn_ns = yk__now_ns();
  b->width = 0;
  if (b->verbose <= 0) return;
  yk__str_add(&s, "Epoch %lld/%lld\n", (long long)epoch + 1, (long long)epochs);
  print(b, &s);
}

/* Over what is there; shorter lines are filled up. */
static void draw(yk_progbar *b, yk_str *line, bool last) {
  char *text = NULL;
  yk_str s = { 0 };
  if (yk__str_take(line, &text) != YK_OK) return;
  size_t n = strlen(text);
  yk__str_add(&s, "%s%s", b->terminal ? "\r" : "", text);
  for (size_t i = n; b->terminal && i < b->width; i++) yk__str_put(&s, " ", 1);
  if (last) yk__str_put(&s, "\n", 1);
  b->width = n;
  yk__free(text);
  print(b, &s);
}

void yk__bar_update(yk_progbar *b, int64_t done, const yk_logs *logs) {
  uint64_t now = b->verbose == 1 && b->terminal ? yk__now_ns() : 0;
  yk_str s = { 0 };
  if (now == 0 || now - b->drawn_ns < REFRESH_NS || done >= b->target) return;
  b->drawn_ns = now;
  double each = (double)(now - b->start_ns) * 1e-9 / (double)(done > 0 ? done : 1);
  add_bar(&s, done, b->target);
  yk__str_add(&s, " - ETA: ");
  add_left(&s, each * (double)(b->target - done));
  add_logs(&s, logs);
  draw(b, &s, false);
}

void yk__bar_end(yk_progbar *b, int64_t done, const yk_logs *logs) {
  double seconds = (double)(yk__now_ns() - b->start_ns) * 1e-9;
  yk_str s = { 0 };
  if (b->verbose <= 0) return;
  if (b->verbose == 1) add_bar(&s, done, b->target);
  yk__str_add(&s, " - %.0fs", seconds);
  if (b->verbose == 1) add_each(&s, seconds / (double)(done > 0 ? done : 1), b->unit);
  add_logs(&s, logs);
  draw(b, &s, true);
}
