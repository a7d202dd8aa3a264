/*
 * timeline.c - a trace file drawn as rows of boxes, one row a device and lane.
 *
 * Reads what yk_trace_write() wrote, one event a line, and nothing else: a line it
 * does not understand is passed over. The operations that took most time get colours
 * that are far apart, and a key says which is which and what it cost.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cli/metrics.h"

enum { WIDTH = 1000, LEFT = 70, RIGHT = 12, ROW = 26, AXIS = 20, MAX_ROWS = 64, MAX_BOXES = 6000, NAME = 48, KINDS = 64,
       SHOWN = 16 };

typedef struct yk_box { char name[NAME]; uint32_t pid, tid, row; double at, lasts; bool copy; } yk_box;
typedef struct yk_kind { char name[NAME]; bool copy; double total; uint32_t n; } yk_kind;      /* all boxes of one name */
typedef struct yk_row { uint32_t pid, tid; } yk_row;
typedef struct yk_timeline {
  yk_box *box; uint32_t n, cap;
  yk_row row[MAX_ROWS]; uint32_t nrows;
  char device[MAX_ROWS][NAME]; uint32_t ndevices;      /* by pid */
  yk_kind kind[KINDS]; uint32_t nkinds;                /* by time, the longest first */
  double begin, end;
  bool cut;                                            /* there was no room for all events */
} yk_timeline;

/* The text after `key` up to the next quote. */
static bool text_after(const char *line, const char *key, char out[NAME]) {
  const char *p = strstr(line, key);
  size_t n;
  if (p == NULL) return false;
  p += strlen(key);
  n = strcspn(p, "\"");
  snprintf(out, NAME, "%.*s", (int)(n < NAME ? n : NAME - 1), p);
  return true;
}

static bool number_after(const char *line, const char *key, double *out) {
  const char *p = strstr(line, key);
  if (p == NULL) return false;
  *out = strtod(p + strlen(key), NULL);
  return true;
}

static void device_line(yk_timeline *t, const char *line) {
  double pid;
  char name[NAME * 2] = "", *last;
  const char *args = strstr(line, "\"args\"");
  if (args == NULL || !number_after(line, "\"pid\":", &pid) || pid < 0 || pid >= MAX_ROWS ||
      !text_after(args, "\"name\":\"", name))
    return;
  last = strrchr(name, '/');
  if (last != NULL && strncmp(last, "/device:", 8) == 0) last += 7;
  snprintf(t->device[(int)pid], NAME, "%.*s", NAME - 1, last != NULL ? last + 1 : name);
}

static void event_line(yk_timeline *t, const char *line) {
  yk_box b = { 0 };
  double pid, tid;
  if (!text_after(line, "\"name\":\"", b.name) || !number_after(line, "\"pid\":", &pid) ||
      !number_after(line, "\"tid\":", &tid) ||
      !number_after(line, "\"ts\":", &b.at) || !number_after(line, "\"dur\":", &b.lasts) || pid < 0 || pid >= MAX_ROWS ||
          tid < 0 || tid > 1e6)
    return;
  b.pid = (uint32_t)pid;
  b.tid = (uint32_t)tid;
  b.copy = strstr(line, "\"cat\":\"copy\"") != NULL;
  while (b.row < t->nrows && (t->row[b.row].pid != b.pid || t->row[b.row].tid != b.tid)) b.row++;
  if (b.row == MAX_ROWS || t->n == MAX_BOXES) t->cut = true;
  if (t->cut) return;
  if (b.row == t->nrows) t->row[t->nrows++] = (yk_row){ b.pid, b.tid };
  if (t->n == 0 || b.at < t->begin) t->begin = b.at;
  if (b.at + b.lasts > t->end) t->end = b.at + b.lasts;
  if (!YK_PUSH(t->box, t->n, t->cap, b)) { yk_error_clear(); t->cut = true; }
}

static void read_trace(yk_timeline *t, const char *path) {
  char line[4096];
  FILE *f = fopen(path, "r");
  if (f == NULL) return;
  while (fgets(line, sizeof line, f) != NULL) {
    if (strstr(line, "\"ph\":\"X\"") != NULL) event_line(t, line);
    else if (strstr(line, "\"ph\":\"M\"") != NULL) device_line(t, line);
  }
  fclose(f);
}

/* ---- kinds: operations by name ---------------------------------------------------------------------------------- */

static uint32_t kind_of(const yk_timeline *t, const yk_box *b) {
  uint32_t k = 0;
  while (k < t->nkinds && (t->kind[k].copy != b->copy || strcmp(t->kind[k].name, b->name) != 0)) k++;
  return k;
}

static int by_time(const void *a, const void *b) {
  const yk_kind *x = a, *y = b;
  return x->total > y->total ? -1 : x->total < y->total ? 1 : strcmp(x->name, y->name);
}

static void find_kinds(yk_timeline *t) {
  for (uint32_t i = 0; i < t->n; i++) {
    const yk_box *b = &t->box[i];
    uint32_t k = kind_of(t, b);
    if (k == KINDS) continue;
    if (k == t->nkinds) {
      t->kind[t->nkinds] = (yk_kind){ .copy = b->copy };
      snprintf(t->kind[t->nkinds++].name, NAME, "%s", b->name);
    }
    t->kind[k].total += b->lasts;
    t->kind[k].n++;
  }
  qsort(t->kind, t->nkinds, sizeof *t->kind, by_time);
}

/* Neighbours in the order of time are a golden angle apart; copies are pale. */
static void colour(yk_str *html, uint32_t kind, bool copy) {
  yk__str_add(html, "hsl(%u,%d%%,%d%%)", (210u + kind * 137u) % 360u, copy ? 18 : 62, copy ? 66 : 64);
}

static void draw_key(yk_str *html, const yk_timeline *t) {
  double all = 0;
  for (uint32_t k = 0; k < t->nkinds; k++) all += t->kind[k].total;
  yk__str_add(html, "<ul class=\"key\">\n");
  for (uint32_t k = 0; k < t->nkinds && k < SHOWN; k++) {
    yk__str_add(html, "<li><i style=\"background:");
    colour(html, k, t->kind[k].copy);
    yk__str_add(html, "\"></i>");
    yk__str_put_xml(html, t->kind[k].name);
    yk__str_add(html, " <span class=\"soft\">%u times, %.2f ms, %.0f%%</span></li>\n", t->kind[k].n, t->kind[k].total / 1e3,
                100 * t->kind[k].total / all);
  }
  if (t->nkinds > SHOWN) yk__str_add(html, "<li class=\"soft\">and %u more</li>\n", t->nkinds - SHOWN);
  yk__str_add(html, "</ul>\n");
}

/* ---- drawing ---------------------------------------------------------------------------------------------------- */

static double px(const yk_timeline *t, double at) {
  return LEFT + (WIDTH - LEFT - RIGHT) * (at - t->begin) / (t->end - t->begin);
}

static void draw_axis(yk_str *html, const yk_timeline *t) {
  double span = (t->end - t->begin) / 1e3, step = yk__nice_step(span, 10);
  uint32_t bottom = t->nrows * ROW;
  for (int i = 0; i * step <= span * (1 + 1e-9); i++) {
    double x = px(t, t->begin + i * step * 1e3);
    yk__str_add(html,
                "<line x1=\"%.1f\" y1=\"0\" x2=\"%.1f\" y2=\"%u\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%u\" class=\"mid\">%.6g</text>\n", x, x,
                bottom + 4, x, bottom + AXIS - 3, i * step);
  }
  yk__str_add(html, "<text x=\"0\" y=\"%u\">ms</text>\n", bottom + AXIS - 3);
}

static void draw_row(yk_str *html, const yk_timeline *t, uint32_t i) {
  yk__str_add(html, "<text x=\"0\" y=\"%u\">", i * ROW + 17);
  yk__str_put_xml(html, t->device[t->row[i].pid]);
  if (t->row[i].tid > 0) yk__str_add(html, " (%u)", t->row[i].tid + 1);
  yk__str_add(html, "</text>\n");
}

static void draw_box(yk_str *html, const yk_timeline *t, const yk_box *b) {
  double x = px(t, b->at), w = px(t, b->at + b->lasts) - x;
  int high = b->copy ? ROW / 2 - 2 : ROW - 4;
  yk__str_add(html, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"", x, b->row * ROW + 2, w < 0.4 ? 0.4 : w,
              high);
  colour(html, kind_of(t, b), b->copy);
  yk__str_add(html, "\"><title>");
  yk__str_put_xml(html, b->name);
  yk__str_add(html, ", %.1f us</title></rect>", b->lasts);
  if (!b->copy && w > 6.0 * (double)strlen(b->name) + 4) {
    yk__str_add(html, "<text x=\"%.1f\" y=\"%u\" class=\"in mid\">", x + w / 2, b->row * ROW + 17);
    yk__str_put_xml(html, b->name);
    yk__str_add(html, "</text>");
  }
  yk__str_add(html, "\n");
}

static void draw(yk_str *html, yk_timeline *t) {
  find_kinds(t);
  yk__str_add(html, "<p>%.2f ms; boxes of half height are copies; point at one to see what it is.%s</p>\n"
              "<svg viewBox=\"0 0 %d %u\" class=\"wide\">\n", (t->end - t->begin) / 1e3,
              t->cut ? " There was no room for all of them: the rest is in the trace file." : "", WIDTH, t->nrows * ROW + AXIS);
  draw_axis(html, t);
  for (uint32_t i = 0; i < t->nrows; i++) draw_row(html, t, i);
  for (uint32_t i = 0; i < t->n; i++) draw_box(html, t, &t->box[i]);
  yk__str_add(html, "</svg>\n");
  draw_key(html, t);
}

void yk__timeline_draw(yk_str *html, const char *trace) {
  yk_timeline *t = yk__calloc(1, sizeof *t);
  if (t != NULL) read_trace(t, trace);
  if (t != NULL && t->n > 0 && t->end > t->begin) draw(html, t);
  else yk__str_add(html, "<p>%s</p>\n", t != NULL ? "No step was traced." : "There was no memory to draw it.");
  if (t == NULL) { yk_error_clear(); return; }
  yk__free(t->box);
  yk__free(t);
}
