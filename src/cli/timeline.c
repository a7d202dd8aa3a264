/*
 * timeline.c - a trace file drawn as rows of boxes, one row a device and lane.
 *
 * Reads what yk_trace_write() wrote, one event a line, and nothing else: a line it
 * does not understand is passed over. Colours tell operations apart by name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "cli/metrics.h"

enum { WIDTH = 1000, LEFT = 70, ROW = 22, MAX_ROWS = 64, MAX_BOXES = 6000, NAME = 48 };

typedef struct yk_box { char name[NAME]; uint32_t pid, tid, row; double at, lasts; bool copy; } yk_box;
typedef struct yk_row { uint32_t pid, tid; } yk_row;
typedef struct yk_timeline {
  yk_box *box; uint32_t n, cap;
  yk_row row[MAX_ROWS]; uint32_t nrows;
  char device[MAX_ROWS][NAME]; uint32_t ndevices;      /* by pid */
  double begin, end;
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
  if (b.row == MAX_ROWS || t->n == MAX_BOXES) return;
  if (b.row == t->nrows) t->row[t->nrows++] = (yk_row){ b.pid, b.tid };
  if (t->n == 0 || b.at < t->begin) t->begin = b.at;
  if (b.at + b.lasts > t->end) t->end = b.at + b.lasts;
  if (!YK_PUSH(t->box, t->n, t->cap, b)) yk_error_clear();
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

static void draw_box(yk_str *html, const yk_timeline *t, const yk_box *b) {
  double scale = (WIDTH - LEFT) / (t->end - t->begin), x = LEFT + (b->at - t->begin) * scale, w = b->lasts * scale;
  unsigned hue = (unsigned)(yk__hash(b->name, strlen(b->name), 0) % 360);
  yk__str_add(html, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,%d%%,60%%)\"><title>", x,
              b->row * ROW + 2, w < 0.4 ? 0.4 : w,
              b->copy ? ROW / 2 : ROW - 4, hue, b->copy ? 15 : 65);
  yk__html_text(html, b->name);
  yk__str_add(html, ", %.1f us</title></rect>\n", b->lasts);
}

void yk__timeline_draw(yk_str *html, const char *trace) {
  yk_timeline *t = yk__calloc(1, sizeof *t);
  if (t == NULL) { yk_error_clear(); return; }
  read_trace(t, trace);
  if (t->n > 0 && t->end > t->begin) {
    yk__str_add(html, "<p>%.2f ms; boxes of half height are copies; point at one to see what it is.</p>\n"
                "<svg viewBox=\"0 0 %d %u\" class=\"wide\">\n",
                (t->end - t->begin) / 1e3, WIDTH, t->nrows * ROW + 4);
    for (uint32_t i = 0; i < t->nrows; i++) {
      yk__str_add(html, "<text x=\"0\" y=\"%u\">", i * ROW + 15);
      yk__html_text(html, t->device[t->row[i].pid]);
      if (t->row[i].tid > 0) yk__str_add(html, " (%u)", t->row[i].tid + 1);
      yk__str_add(html, "</text>\n");
    }
    for (uint32_t i = 0; i < t->n; i++) draw_box(html, t, &t->box[i]);
    yk__str_add(html, "</svg>\n");
  } else {
    yk__str_add(html, "<p>No step was traced.</p>\n");
  }
  yk__free(t->box);
  yk__free(t);
}
