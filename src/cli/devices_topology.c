/*
 * devices_topology.c - `yoke devices --topology`: a matrix of links, measured, and sentences on what they mean.
 *
 * Rows send and columns receive; the last row and column are memory of the host, which feeds come from and fetches go to.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cli/devices.h"
#include "measure/measure.h"

#define SECONDS 2.0                                  /* for all copies together */
enum { CELL = 8 };

/* Link from i to k; index n is host memory. NULL: host to host. */
static const yk_link *link_at(const yk_topology *t, size_t i, size_t k) {
  if (i == t->n) return k == t->n ? NULL : &t->in[k];
  return k == t->n ? &t->out[i] : &t->between[i * t->n + k];
}

static const char *label(const yk_topology *t, size_t i, char buf[YK__SHORT_BYTES]) {
  return i == t->n ? "host" : yk__short_name(t->device[i].name, buf);
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

typedef void (*put_cell)(const yk_link *l);

static void put_kind(const yk_link *l) { printf("  %*s", CELL, yk__link_text(l->kind)); }
static void put_speed(const yk_link *l) { printf("  %*.2f", CELL, l->bytes_per_second * 1e-9); }
static void put_latency(const yk_link *l) { printf("  %*.1f", CELL, l->latency * 1e6); }

static void put_matrix(const yk_topology *t, const char *title, bool host, put_cell put, bool measured) {
  char name[YK__SHORT_BYTES];
  size_t n = t->n + host;
  printf("%s\n%-8s", title, "");
  for (size_t k = 0; k < n; k++) printf("  %*s", CELL, label(t, k, name));
  putchar('\n');
  for (size_t i = 0; i < n; i++) {
    printf("%-8s", label(t, i, name));
    for (size_t k = 0; k < n; k++) {
      const yk_link *l = link_at(t, i, k);
      if (l == NULL || (measured && !l->measured)) printf("  %*s", CELL, "-");
      else put(l);
    }
    putchar('\n');
  }
  putchar('\n');
}

static void put_reasons(const yk_topology *t) {
  char from[YK__SHORT_BYTES], to[YK__SHORT_BYTES];
  for (size_t i = 0; i <= t->n; i++)
    for (size_t k = 0; k <= t->n; k++) {
      const yk_link *l = link_at(t, i, k);
      if (l != NULL && !l->measured) printf("%s to %s was not measured: %s\n", label(t, i, from), label(t, k, to), l->why);
    }
}

static uint64_t largest(const yk_topology *t) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < t->n; i++)
    if (t->in[i].bytes > bytes) bytes = t->in[i].bytes;
  return bytes;
}

static void put_text(const yk_topology *t, const yk_str *sentences) {
  char title[128];
  put_matrix(t, "link (rows send, columns receive)", false, put_kind, false);
  snprintf(title, sizeof title, "GB/s (median of copies of %.3g MiB, or what fits)", (double)largest(t) / 1048576.0);
  put_matrix(t, title, true, put_speed, true);
  put_matrix(t, "microseconds for 4 bytes", true, put_latency, true);
  put_reasons(t);
  fputs(sentences->s, stdout);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void put_link(yk_json *o, const yk_topology *t, size_t i, size_t k) {
  const yk_link *l = link_at(t, i, k);
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "from", i == t->n ? "host" : t->device[i].name);
  yk__json_text(o, "to", k == t->n ? "host" : t->device[k].name);
  yk__json_text(o, "kind", yk__link_text(l->kind));
  yk__json_real(o, "gigabytes_per_second", l->measured ? l->bytes_per_second * 1e-9 : (double)NAN);
  yk__json_real(o, "latency_us", l->measured ? l->latency * 1e6 : (double)NAN);
  yk__json_int(o, "bytes", (int64_t)l->bytes);
  yk__json_int(o, "copies", l->copies);
  yk__json_text(o, "reason", l->measured ? NULL : l->why);
  yk__json_close(o, '}');
}

static void put_pair(yk_json *o, const yk_topology *t, size_t i, size_t k) {
  char why[YK__WHY_BYTES];
  yk_match m = yk__match(&t->device[i], &t->device[k], why);
  double seconds = yk__exchange_seconds(t, i, k);
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "a", t->device[i].name);
  yk__json_text(o, "b", t->device[k].name);
  yk__json_text(o, "together", yk__match_text(m));
  yk__json_text(o, "reason", why[0] != '\0' ? why : NULL);
  yk__json_real(o, "exchange_100mb_ms", seconds >= 0 ? seconds * 1e3 : (double)NAN);
  yk__json_close(o, '}');
}

static void put_sentences(yk_json *o, char *text) {
  yk__json_open(o, "sentences", '[');
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    yk__json_break(o);
    yk__json_text(o, NULL, line);
  }
  yk__json_close(o, ']');
}

static void put_json(yk_json *o, const yk_topology *t, const yk_str *sentences) {
  yk__json_open(o, "topology", '{');
  yk__json_open(o, "links", '[');
  for (size_t i = 0; i <= t->n; i++)
    for (size_t k = 0; k <= t->n; k++)
      if (link_at(t, i, k) != NULL) put_link(o, t, i, k);
  yk__json_close(o, ']');
  yk__json_open(o, "pairs", '[');
  for (size_t i = 0; i < t->n; i++)
    for (size_t k = i + 1; k < t->n; k++) put_pair(o, t, i, k);
  yk__json_close(o, ']');
  put_sentences(o, sentences->s);
  yk__json_close(o, '}');
}

int yk__devices_topology(yk_session *s, yk_json *o, const char *save) {
  yk_topology t = { 0 };
  yk_str sentences = { 0 };
  yk_code rc = yk__topology_measure(s, SECONDS, &t);
  if (rc == YK_OK) {
    yk__together(&t, &sentences);
    if (sentences.failed || sentences.s == NULL) rc = YK_ENOMEM;
  }
  if (rc == YK_OK && o != NULL) put_json(o, &t, &sentences);
  else if (rc == YK_OK) put_text(&t, &sentences);
  int status = rc != YK_OK ? yk__die_code(rc) : save != NULL ? yk__devices_save(s, save, &t, NULL) : 0;
  yk__str_free(&sentences);
  yk__topology_free(&t);
  return status;
}
