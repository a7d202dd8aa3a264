/*
 * report.c - a run as one HTML page that needs nothing else: curves, timeline, settings, placement.
 *
 * Drawings are inline SVG. The page is text that a browser shows without scripts
 * and without the network, so it can be mailed or kept.
 */
#include <math.h>
#include <string.h>
#include "cli/metrics.h"

enum { W = 480, H = 240, PAD = 44 };

void yk__html_text(yk_str *html, const char *text) {
  for (; *text != '\0'; text++) {
    const char *e = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;
    if (e != NULL) yk__str_add(html, "%s", e);
    else yk__str_put(html, text, 1);
  }
}

typedef struct yk_axes { double steps, lo, hi; } yk_axes;

static double px(const yk_axes *a, double step) {
  return PAD + (W - PAD - 8) * step / a->steps;
}

static double py(const yk_axes *a, double y) {
  return H - 24 - (H - 34) * (y - a->lo) / (a->hi - a->lo);
}

static double value(const yk_sums *s, bool accuracy) {
  return (accuracy ? s->accuracy : s->loss) / (double)s->n;
}

static yk_axes measure(const yk_metrics *m, bool accuracy) {
  yk_axes a = { .steps = m->step > 0 ? (double)m->step : 1, .lo = 0, .hi = accuracy ? 1 : 0 };
  for (uint32_t i = 0; i < m->curve.n && !accuracy; i++) a.hi = fmax(a.hi, value(&m->curve.point[i], false));
  for (uint32_t i = 0; i < m->ntested && !accuracy; i++) a.hi = fmax(a.hi, m->tested[i].score.loss);
  if (!(a.hi > 0)) a.hi = 1;
  return a;
}

static void grid(yk_str *html, const yk_axes *a) {
  for (int i = 0; i <= 4; i++) {
    double v = a->lo + (a->hi - a->lo) * i / 4, y = py(a, v);
    yk__str_add(html, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>"
                "<text x=\"%d\" y=\"%.1f\" class=\"end\">%.3g</text>\n", PAD, y,
                W - 8, y, PAD - 4, y + 4, v);
  }
  for (int i = 0; i <= 4; i++)
    yk__str_add(html, "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%.0f</text>\n", px(a, a->steps * i / 4), H - 8, a->steps * i / 4);
}

static void curve(yk_str *html, const yk_metrics *m, bool accuracy) {
  yk_axes a = measure(m, accuracy);
  double at = 0;
  yk__str_add(html, "<figure><figcaption>%s by step: <span class=\"train\">training</span>, "
              "<span class=\"test\">test</span></figcaption>\n"
              "<svg viewBox=\"0 0 %d %d\">\n", accuracy ? "accuracy" : "loss", W, H);
  grid(html, &a);
  yk__str_add(html, "<polyline class=\"train\" points=\"");
  for (uint32_t i = 0; i < m->curve.n; i++) {
    const yk_sums *s = &m->curve.point[i];
    yk__str_add(html, "%.1f,%.1f ", px(&a, at + (double)s->n / 2), py(&a, value(s, accuracy)));
    at += (double)s->n;
  }
  yk__str_add(html, "\"/>\n<polyline class=\"test\" points=\"");
  for (uint32_t i = 0; i < m->ntested; i++)
    yk__str_add(html, "%.1f,%.1f ", px(&a, (double)m->tested[i].step),
                py(&a, accuracy ? m->tested[i].score.accuracy : m->tested[i].score.loss));
  yk__str_add(html, "\"/>\n");
  for (uint32_t i = 0; i < m->ntested; i++)
    yk__str_add(html, "<circle class=\"test\" r=\"3\" cx=\"%.1f\" cy=\"%.1f\"/>\n", px(&a, (double)m->tested[i].step),
                py(&a, accuracy ? m->tested[i].score.accuracy : m->tested[i].score.loss));
  yk__str_add(html, "</svg></figure>\n");
}

static void head(yk_str *html, const char *model, const char *headline) {
  yk__str_add(html, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>yoke: %s</title>\n<style>\n"
              "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1040px;padding:0 1em;"
              "color:#222;background:#fff}\n"
              "figure{display:inline-block;margin:0 1em 1em 0}svg{width:480px;max-width:100%%}svg.wide{width:100%%}\n"
              "svg text{font-size:11px;fill:#555}.end{text-anchor:end}.mid{text-anchor:middle}.grid{stroke:#ddd}\n"
              "polyline{fill:none;stroke-width:1.5}polyline.train{stroke:#2563a8}polyline.test{stroke:#c2541b}"
              "circle.test{fill:#c2541b}\n"
              "span.train{color:#2563a8}span.test{color:#c2541b}"
              "pre{background:#f5f5f3;padding:.8em;overflow:auto;max-height:24em;font-size:12px}\n"
              "</style></head><body>\n<h1>%s</h1>\n<p>", model, model);
  yk__html_text(html, headline);
  yk__str_add(html, "</p>\n");
}

static void result(yk_str *html, const yk_metrics *m) {
  yk_sums r = yk__metrics_recent(m);
  yk__str_add(html, "<p>%lld steps in %.1f s, %.0f examples/s; training loss %.4f, accuracy %.4f", (long long)m->step,
              (double)m->ns * 1e-9,
              yk__metrics_rate(m), r.loss, r.accuracy);
  if (m->ntested > 0) {
    const yk_score *s = &m->tested[m->ntested - 1].score;
    yk__str_add(html, "; test loss %.4f, accuracy %.4f", s->loss, s->accuracy);
  }
  yk__str_add(html, ".</p>\n");
}

yk_code yk__report_write(const char *folder, const yk_metrics *m, const char *headline, const char *settings, const char *trace) {
  yk_str html = { 0 };
  char *placement = NULL, *text = NULL;
  YK_TRY(yk_session_placement(m->job->session, &placement));
  head(&html, m->job->model->name, headline);
  result(&html, m);
  curve(&html, m, false);
  curve(&html, m, true);
  yk__str_add(&html, "<h2>Timeline</h2>\n");
  if (trace != NULL) yk__timeline_draw(&html, trace);
  else yk__str_add(&html, "<p>No step was traced.</p>\n");
  yk__str_add(&html, "<h2>Settings</h2>\n<pre>");
  yk__html_text(&html, settings);
  yk__str_add(&html, "</pre>\n<h2>Placement</h2>\n<pre>");
  yk__html_text(&html, placement);
  yk__str_add(&html, "</pre>\n</body></html>\n");
  yk_free(placement);
  size_t n = html.n;
  YK_TRY(yk__str_take(&html, &text));
  yk_code rc = yk__folder_write(folder, "report.html", text, n);
  yk_free(text);
  return rc;
}
