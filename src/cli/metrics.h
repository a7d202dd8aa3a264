/*
 * metrics.h - what a training run measures, and where the numbers go: terminal, JSON lines, metrics.jsonl, curves.
 *
 * Each step is one call that adds to sums; text is made only when an interval is
 * over. The curve keeps a bounded number of points however long the run is.
 */
#ifndef YK_CLI_METRICS_H
#define YK_CLI_METRICS_H

#include <stdio.h>
#include "cli/board.h"
#include "cli/cli.h"
#include "cli/json.h"

enum { YK__CURVE = 512, YK__RECENT = 100, YK__LIVE_DEVICES = 64 };

typedef struct yk_sums { double loss, accuracy; int64_t n; uint64_t ns; } yk_sums;
typedef struct yk_curve {            /* means over `per` steps each; doubles `per` when full */
  yk_sums point[YK__CURVE];
  uint32_t n;
  int64_t per;
} yk_curve;
typedef struct yk_tested { int64_t step; yk_score score; } yk_tested;

typedef enum yk_show { YK__SHOW_NOTHING, YK__SHOW_JSON, YK__SHOW_LINES, YK__SHOW_BAR, YK__SHOW_LIVE } yk_show;   /* from LINES on: text */

typedef struct yk_live {             /* live.c: what stands on the terminal */
  int lines, columns, rows;          /* drawn; what there is room for */
  bool utf8;
  uint64_t drawn, worked[YK__LIVE_DEVICES];   /* clock, and the devices' counters, when it was drawn */
} yk_live;

typedef struct yk_metrics {
  const yk_job *job;
  yk_board *board;                   /* told of all that is reported; not NULL */
  yk_show show;
  yk_live live;
  FILE *out, *log;                   /* what the user sees; metrics.jsonl */
  uint64_t interval_ns, reported, drawn;
  int64_t step;                      /* steps done */
  uint64_t ns;                       /* spent in them */
  yk_sums interval;                  /* since the last report */
  float recent_loss[YK__RECENT], recent_accuracy[YK__RECENT];   /* rings */
  yk_curve curve;
  yk_tested *tested; uint32_t ntested, tested_cap;
  double test_seconds;
  bool on_bar, failed;               /* a bar stands on the current line; a write went wrong */
} yk_metrics;

void yk__metrics_begin(yk_metrics *m, const yk_job *job, yk_board *board, yk_show show, FILE *out, FILE *log, double interval);
void yk__metrics_step(yk_metrics *m, double loss, double accuracy, uint64_t ns);
void yk__metrics_tested(yk_metrics *m, const yk_score *score);
/* One line of JSON to metrics.jsonl, whole or not at all, and to the user who asked for JSON; `j` is empty again. */
void yk__metrics_emit(yk_metrics *m, yk_json *j);
/* Report the last, incomplete interval, and take the bar away. */
void yk__metrics_finish(yk_metrics *m);
/* Means over the last steps, at most YK__RECENT. */
yk_sums yk__metrics_recent(const yk_metrics *m);
double yk__metrics_rate(const yk_metrics *m);          /* examples a second over all steps */
void yk__metrics_free(yk_metrics *m);

/* progress.c: one line over itself; its text, for a terminal of so many columns; columns of a terminal, 80 if it is none. */
enum { YK__BAR_TEXT = 256 };
void yk__bar_text(int width, int64_t step, int64_t steps, double loss, double accuracy, double rate, double left, char line[YK__BAR_TEXT]);
void yk__bar_draw(FILE *out, const char *line);
int  yk__columns(FILE *out);
void yk__bar_clear(FILE *out);

/* live.c: several lines over themselves, the first of them `bar`. Between begin and each drawing the session stays the same. */
void yk__live_begin(yk_live *v);
void yk__live_draw(yk_live *v, FILE *out, const yk_metrics *m, const char *bar);
void yk__live_clear(yk_live *v, FILE *out);

/* folder.c: the folder of a run. */
enum { YK__PATH = 4096 };
/* Make the folder, parents too; --out or runs/MODEL-DATE-TIME. 0 or an exit status with the error printed. */
int yk__folder_make(const yk_cli *c, char folder[YK__PATH]);
/* "folder/name"; EINVAL where that is too long. */
yk_code yk__folder_path(const char *folder, const char *name, char out[YK__PATH]) YK_CHECKED;
/* n bytes to folder/name, through a temporary name. */
yk_code yk__folder_write(const char *folder, const char *name, const char *text, size_t n) YK_CHECKED;

/* report.c: report.html in `folder`, from the metrics, the settings (JSON) and the trace at `trace` (NULL = none). */
yk_code yk__report_write(const char *folder, const yk_metrics *m, const char *headline, const char *settings,
                         const char *trace) YK_CHECKED;
/* The smallest of 1, 2, 5, 10, 20, ... and their tenths, hundredths, ... that divides `span` > 0 into at most `most` parts. */
double yk__nice_step(double span, int most);
/* timeline.c: the drawing of a trace file. */
void yk__timeline_draw(yk_str *html, const char *trace);

#endif
