/*
 * report.c - a run as one HTML page that needs nothing else: curves, timeline, settings, placement.
 *
 * Drawings are inline SVG. The page is text that a browser shows without scripts
 * and without the network, so it can be mailed or kept.
 */
#include <math.h>
#include <string.h>
#include "cli/metrics.h"

enum { W = 480, H = 240, LEFT = 44, RIGHT = 20, TOP = 10, BOTTOM = 24, TICKS = 6 };

double yk__nice_step(double span, int most) {
  double step = pow(10, floor(log10(span / most)));
  for (int i = 0; span / step > most; i = (i + 1) % 3) step *= i == 1 ? 2.5 : 2;        /* 1, 2, 5, 10 */
  return step;
}

typedef struct yk_axes { double steps, hi, dx, dy; } yk_axes;      /* both from 0; distances of the grid's lines */

static double px(const yk_axes *a, double step) {
  return LEFT + (W - LEFT - RIGHT) * step / a->steps;
}

static double py(const yk_axes *a, double y) {
  return H - BOTTOM - (H - TOP - BOTTOM) * y / a->hi;
}

static double value(const yk_sums *s, bool accuracy) {
  return (accuracy ? s->accuracy : s->loss) / (double)s->n;
}

static yk_axes measure(const yk_metrics *m, bool accuracy) {
  yk_axes a = { .steps = m->step > 0 ? (double)m->step : 1, .hi = accuracy ? 1 : 0 };
  for (uint32_t i = 0; i < m->curve.n && !accuracy; i++) a.hi = fmax(a.hi, value(&m->curve.point[i], false));
  for (uint32_t i = 0; i < m->ntested && !accuracy; i++) a.hi = fmax(a.hi, m->tested[i].score.loss);
  if (!(a.hi > 0)) a.hi = 1;
  a.dx = fmax(1, yk__nice_step(a.steps, TICKS));
  a.dy = yk__nice_step(a.hi, TICKS + 2);
  a.hi = a.dy * ceil(a.hi / a.dy - 1e-9);
  return a;
}

static void grid(yk_str *html, const yk_axes *a) {
  for (int i = 0; i * a->dy <= a->hi * (1 + 1e-9); i++) {
    double y = py(a, i * a->dy);
    yk__str_add(html, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>"
                "<text x=\"%d\" y=\"%.1f\" class=\"end\">%.6g</text>\n", LEFT, y, W - RIGHT, y, LEFT - 5, y + 4, i * a->dy);
  }
  for (int i = 0; i * a->dx <= a->steps * (1 + 1e-9); i++)
    yk__str_add(html,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/>"
                "<text x=\"%.1f\" y=\"%d\" class=\"mid\">%.0f</text>\n",
                px(a, i * a->dx), H - BOTTOM, px(a, i * a->dx), H - BOTTOM + 4, px(a, i * a->dx), H - 6, i * a->dx);
}

static void curve(yk_str *html, const yk_metrics *m, bool accuracy) {
  yk_axes a = measure(m, accuracy);
  double at = 0;
  yk__str_add(html, "<figure><figcaption>%s by step: <span class=\"train\">training%s</span>, "
              "<span class=\"test\">test</span></figcaption>\n"
              "<svg viewBox=\"0 0 %d %d\">\n", accuracy ? "accuracy" : "loss", accuracy ? "" : " (with penalties)", W, H);
  grid(html, &a);
  yk__str_add(html, "<polyline class=\"train\" points=\"");
  for (uint32_t i = 0; i < m->curve.n; i++) {
    const yk_sums *s = &m->curve.point[i];
    for (int twice = 0; twice < (m->curve.n == 1 ? 2 : 1); twice++)              /* a single point would not be drawn */
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
              ":root{color-scheme:light dark;--text:#222;--soft:#5a5a58;--page:#fff;--panel:#f5f5f3;--line:#ddd;--train:#2563a8;"
              "--test:#c2541b}\n"
              "@media(prefers-color-scheme:dark){:root{--text:#e6e6e3;--soft:#a9a9a5;--page:#17181a;"
              "--panel:#222427;--line:#3a3c40;"
              "--train:#7db3ee;--test:#f0a070}}\n"
              "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:1040px;padding:0 1em;color:var(--text);"
              "background:var(--page)}\n"
              "figure{display:inline-block;width:480px;max-width:100%%;margin:0 1.5em 1em 0}svg{display:block;width:100%%}\n"
              "svg text{font-size:11px;fill:var(--soft)}.end{text-anchor:end}.mid{text-anchor:middle}.grid{stroke:var(--line)}\n"
              "polyline{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}polyline.train{stroke:var(--train)}"
              "polyline.test{stroke:var(--test)}circle.test{fill:var(--test)}\n"
              "span.train{color:var(--train)}span.test{color:var(--test)}"
              "svg text.in{fill:#111;font-size:10px;pointer-events:none}\n"
              ".key{display:flex;flex-wrap:wrap;gap:.2em 1.4em;font-size:13px;padding:0;list-style:none}"
              ".key i{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}.soft{color:var(--soft)}\n"
              "pre{background:var(--panel);padding:.8em;overflow:auto;max-height:24em;font-size:12px;white-space:pre-wrap;"
              "overflow-wrap:anywhere}\n"
              "</style></head><body>\n<h1>%s</h1>\n<p>", model, model);
  yk__str_put_xml(html, headline);
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
  yk__str_put_xml(&html, settings);
  yk__str_add(&html, "</pre>\n<h2>Placement</h2>\n<pre>");
  yk__str_put_xml(&html, placement);
  yk__str_add(&html, "</pre>\n</body></html>\n");
  yk_free(placement);
  size_t n = html.n;
  YK_TRY(yk__str_take(&html, &text));
  yk_code rc = yk__folder_write(folder, "report.html", text, n);
  yk_free(text);
  return rc;
}
