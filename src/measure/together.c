/*
 * together.c - from measured links to sentences: can these devices train together, and what does it cost?
 *
 * Each device of a training step gets the same share of the batch, so equal ones wait for nobody and the slowest of unequal ones
 * sets the pace. Equal devices are told of in one sentence, however many they are.
 */
#include <stdio.h>
#include <string.h>
#include "measure/measure.h"

#define GIB (1024.0 * 1024.0 * 1024.0)
enum { LEAST_MEMORY = 16 << 20 };                    /* bytes: no network of any use fits into less */

const char *yk__match_text(yk_match m) {
  static const char *const text[] = { "equal", "unequal", "no" };
  return text[m];
}

static bool share_cores(const yk_device_info *a, const yk_device_info *b) {
  return a->ncores > 0 && b->ncores > 0 && a->first_core < b->first_core + b->ncores && b->first_core < a->first_core + a->ncores;
}

yk_match yk__match(const yk_device_info *a, const yk_device_info *b, char *why) {
  const yk_device_info *small = a->bytes_limit < b->bytes_limit ? a : b;
  char name[YK__SHORT_BYTES];
  why[0] = '\0';
  if (strcmp(a->type, b->type) != 0) {
    snprintf(why, YK__WHY_BYTES, "one is a %s, the other a %s", a->type, b->type);
    return YK__APART;
  }
  if (small->bytes_limit < LEAST_MEMORY) {
    snprintf(why, YK__WHY_BYTES, "%s has %.1f MiB of memory, which no network fits into", yk__short_name(small->name, name),
             (double)small->bytes_limit / 1048576.0);
    return YK__APART;
  }
  if (strcmp(a->model, b->model) != 0 || strcmp(a->driver, b->driver) != 0)
    snprintf(why, YK__WHY_BYTES, "%s and %s", a->model, b->model);
  else if (a->bytes_limit != b->bytes_limit)
    snprintf(why, YK__WHY_BYTES, "%.2f and %.2f GiB of memory", (double)a->bytes_limit / GIB, (double)b->bytes_limit / GIB);
  else if (a->ncores != b->ncores)
    snprintf(why, YK__WHY_BYTES, "%u and %u cores", a->ncores, b->ncores);
  return why[0] != '\0' ? YK__UNEQUAL : YK__EQUAL;
}

static double way_seconds(const yk_link *l) {
  return l->measured ? l->latency + YK__EXCHANGE_BYTES / l->bytes_per_second : -1;
}

double yk__exchange_seconds(const yk_topology *t, size_t i, size_t k) {
  double there = way_seconds(&t->between[i * t->n + k]), back = way_seconds(&t->between[k * t->n + i]);
  if (there < 0 || back < 0) return -1;
  return there > back ? there : back;
}

/* ---- sentences ----------------------------------------------------------------------------------------------------- */

/* The worst of the ways within a set of devices. */
typedef struct worst { double seconds; yk_link_kind kind; bool unknown, shared; } worst;

static void add_pair(const yk_topology *t, size_t i, size_t k, worst *w) {
  double s = yk__exchange_seconds(t, i, k);
  yk_link_kind kind = t->between[i * t->n + k].kind;
  w->unknown |= s < 0;
  w->shared |= share_cores(&t->device[i], &t->device[k]);
  if (s > w->seconds) w->seconds = s;
  if (kind > w->kind) w->kind = kind;
}

static void put_way(const worst *w, yk_str *out) {
  static const char *const way[] = { "within one device", "in one memory, without a copy", "directly, by the driver's peer copy",
                                     "through host memory, in two copies" };
  yk__str_add(out, "gradients go from one to the other %s", way[w->kind]);
  if (w->unknown) yk__str_add(out, " (not measured)");
  else if (w->kind != YK__LINK_MEMORY) yk__str_add(out, ": 100 MB in %.1f ms", w->seconds * 1e3);
}

static void put_end(const yk_topology *t, size_t i, const worst *w, yk_str *out) {
  if (w->shared) yk__str_add(out, "; they share host cores, so together they are no faster than one");
  if (t->device[i].is_virtual) yk__str_add(out, "; they are virtual, so this rehearses cards and does not time them");
  yk__str_add(out, "\n");
}

static bool leads(const yk_topology *t, size_t i) {
  char why[YK__WHY_BYTES];
  for (size_t k = 0; k < i; k++)
    if (yk__match(&t->device[k], &t->device[i], why) == YK__EQUAL) return false;
  return true;
}

static size_t count_type(const yk_topology *t, const char *type) {
  size_t n = 0;
  for (size_t i = 0; i < t->n; i++) n += strcmp(t->device[i].type, type) == 0;
  return n;
}

/* All devices that equal device i, which is the first of them. */
static void put_equals(const yk_topology *t, size_t i, yk_str *out) {
  char why[YK__WHY_BYTES], name[YK__SHORT_BYTES];
  size_t n = 0, seen = 0;
  worst w = { 0 };
  for (size_t k = 0; k < t->n; k++) {
    if (yk__match(&t->device[i], &t->device[k], why) != YK__EQUAL) continue;
    n++;
    for (size_t m = 0; m < k; m++)
      if (yk__match(&t->device[i], &t->device[m], why) == YK__EQUAL) add_pair(t, m, k, &w);
  }
  if (n < 2) return;
  for (size_t k = i; k < t->n; k++) {
    if (yk__match(&t->device[i], &t->device[k], why) != YK__EQUAL) continue;
    yk__str_add(out, "%s%s", seen == 0 ? "" : seen + 1 == n ? " and " : ", ", yk__short_name(t->device[k].name, name));
    seen++;
  }
  yk__str_add(out, " can train together: equal devices with %.2f GiB each; ", (double)t->device[i].bytes_limit / GIB);
  put_way(&w, out);
  put_end(t, i, &w, out);
}

/* Two devices of one type that are not equal; i and k stand for all that equal them. */
static void put_unequals(const yk_topology *t, size_t i, size_t k, yk_str *out) {
  char why[YK__WHY_BYTES], a[YK__SHORT_BYTES], b[YK__SHORT_BYTES];
  worst w = { 0 };
  yk_match m = yk__match(&t->device[i], &t->device[k], why);
  yk__short_name(t->device[i].name, a);
  yk__short_name(t->device[k].name, b);
  if (m == YK__APART) {
    yk__str_add(out, "%s and %s cannot train together: %s\n", a, b, why);
    return;
  }
  add_pair(t, i, k, &w);
  yk__str_add(out, "%s and %s can train together, but are unequal (%s): the slower one sets the pace, since each gets the same "
              "share of a batch; ", a, b, why);
  put_way(&w, out);
  put_end(t, i, &w, out);
}

/* What a step adds: gradients to the device that keeps the variables, and weights back. */
static void put_home(const yk_topology *t, yk_str *out) {
  double in = 0, back = 0;
  for (size_t i = 0; i < t->n; i++) {
    if (strcmp(t->device[i].type, "GPU") != 0) continue;
    double a = way_seconds(&t->between[i * t->n]), b = way_seconds(&t->between[i]);
    if (a < 0 || b < 0) return;
    if (a > in) in = a;
    if (b > back) back = b;
  }
  if (in > 0)
    yk__str_add(out, "/cpu:0 keeps the variables and is no partner for a GPU, whose pace it would set: 100 MB of gradients reach "
                "it in %.1f ms, and weights go back in %.1f ms\n", in * 1e3, back * 1e3);
}

void yk__together(const yk_topology *t, yk_str *out) {
  char name[YK__SHORT_BYTES];
  size_t ngpu = count_type(t, "GPU");
  for (size_t i = 0; i < t->n; i++)
    if (leads(t, i)) put_equals(t, i, out);
  for (size_t i = 0; i < t->n; i++)
    for (size_t k = i + 1; k < t->n; k++)
      if (strcmp(t->device[i].type, t->device[k].type) == 0 && leads(t, i) && leads(t, k)) put_unequals(t, i, k, out);
  if (t->n == 1) yk__str_add(out, "%s is the only device: there is no pair\n", yk__short_name(t->device[0].name, name));
  else if (ngpu == 1) yk__str_add(out, "there is one GPU, hence no pair of them\n");
  if (ngpu > 0 && strcmp(t->device[0].type, "CPU") == 0) put_home(t, out);
}
