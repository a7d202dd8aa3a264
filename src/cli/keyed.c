/*
 * keyed.c - NAME[:key=value,...] taken apart by its tables.
 *
 * The first mistake is told with what there is to choose from.
 */
#include "cli/keyed.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"

enum { MOST_NAMES = 32, ITEM = 64 };

/* "sgd, momentum, ..." */
static const char *list(const char *const *names, size_t n, char *buffer, size_t bytes) {
  size_t at = 0;
  buffer[0] = '\0';
  for (size_t i = 0; i < n && at < bytes; i++) at += (size_t)snprintf(buffer + at, bytes - at, "%s%s", i > 0 ? ", " : "", names[i]);
  return buffer;
}

int yk__keyed_find(const yk_keyed *l, const char *text, int *out) {
  size_t len = strcspn(text, ":");
  const char *names[MOST_NAMES];
  char have[400], given[ITEM];
  for (size_t i = 0; i < l->n; i++) {
    names[i] = l->names[i].name;
    if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0) return *out = (int)i, 0;
  }
  snprintf(given, sizeof given, "%.*s", (int)len, text);
  return yk__die(YK__EXIT_USAGE, "%s: no %s '%s'%s; there are %s", l->option, l->what, yk__shown(given),
                 yk__did_you_mean(given, l->n, names), list(names, l->n, have, sizeof have));
}

static int no_key(const yk_keyed *l, int which, const char *given) {
  const char *names[MOST_NAMES];
  char have[400];
  size_t n = 0;
  for (const yk_key *k = l->keys; k->name != NULL; k++)
    if ((k->of >> which & 1u) != 0) names[n++] = k->name;
  return yk__die(YK__EXIT_USAGE, "%s: %s has no '%s'%s; it takes %s", l->option, l->names[which].name, yk__shown(given),
                 yk__did_you_mean(given, n, names), n > 0 ? list(names, n, have, sizeof have) : "nothing");
}

static int bad_value(const yk_keyed *l, const yk_key *k, const char *value, const char *expected) {
  return yk__die(YK__EXIT_USAGE, "%s: %s '%s': expected %s", l->option, k->name, yk__shown(value), expected);
}

/* "a/b/c": a list of numbers behind a count; both lists of yk_recipe look alike. */
static int set_list(const yk_keyed *l, const yk_key *k, const char *value, void *target) {
  char item[ITEM];
  yk_recipe_list *list_of = (void *)((char *)target + k->offset);
  for (const char *p = value;; p++) {
    size_t len = strcspn(p, "/");
    double x;
    snprintf(item, sizeof item, "%.*s", (int)(len < ITEM ? len : ITEM - 1), p);
    if (list_of->n == YK__MAX_LIST) return yk__die(YK__EXIT_USAGE, "%s: %s takes at most %d numbers", l->option, k->name, YK__MAX_LIST);
    if (!yk__parse_f64(item, &x) || !(x >= 0) || !isfinite(x) || (k->kind == YK__KEY_WHOLES && x != floor(x)))
      return bad_value(l, k, value, k->kind == YK__KEY_WHOLES ? "whole numbers, as 100/200" : "numbers of 0 or more, as 0.1/0.01");
    list_of->real[list_of->n] = x;
    list_of->whole[list_of->n++] = x < 9e15 ? (int64_t)x : INT64_MAX;
    p += len;
    if (*p == '\0') return 0;
  }
}

static int set_key(const yk_keyed *l, const yk_key *k, const char *value, void *target) {
  char *field = (char *)target + k->offset;
  int64_t whole;
  double real;
  bool on;
  switch (k->kind) {
    case YK__KEY_WHOLE:
      if (!yk__parse_i64(value, 0, (int64_t)9e15, &whole)) return bad_value(l, k, value, "a whole number");
      memcpy(field, &whole, sizeof whole);
      return 0;
    case YK__KEY_FLAG:
      if (!yk__parse_i64(value, 0, 1, &whole)) return bad_value(l, k, value, "0 or 1");
      on = whole != 0;
      memcpy(field, &on, sizeof on);
      return 0;
    case YK__KEY_REAL:
      if (!yk__parse_f64(value, &real) || !isfinite(real)) return bad_value(l, k, value, "a number");
      memcpy(field, &real, sizeof real);
      return 0;
    case YK__KEY_TEXT:
      snprintf(field, YK__KEY_TEXT_BYTES, "%s", value);
      return 0;
    default: return set_list(l, k, value, target);
  }
}

/* "key=value", len characters. */
static int set_item(const yk_keyed *l, int which, const char *text, size_t len, void *target) {
  char item[YK__KEY_TEXT_BYTES], *value;
  if (len >= sizeof item) return yk__die(YK__EXIT_USAGE, "%s: an item of %zu characters", l->option, len);
  snprintf(item, sizeof item, "%.*s", (int)len, text);
  value = strchr(item, '=');
  if (value == NULL || value == item || value[1] == '\0')
    return yk__die(YK__EXIT_USAGE, "%s: '%s': expected key=value", l->option, yk__shown(item));
  *value++ = '\0';
  for (const yk_key *k = l->keys; k->name != NULL; k++)
    if (strcmp(k->name, item) == 0 && (k->of >> which & 1u) != 0) return set_key(l, k, value, target);
  return no_key(l, which, item);
}

int yk__keyed_set(const yk_keyed *l, int which, const char *text, void *target) {
  text += strcspn(text, ":");
  for (const char *p = *text == ':' ? text + 1 : text; *p != '\0';) {
    size_t len = strcspn(p, ",");
    int status = set_item(l, which, p, len, target);
    if (status != 0) return status;
    p += len;
    if (*p == ',' && *++p == '\0') return yk__die(YK__EXIT_USAGE, "%s: nothing after the last comma", l->option);
  }
  return 0;
}

void yk__keyed_help(const yk_keyed *l) {
  for (size_t i = 0; i < l->n; i++) {
    const char *between = "; ";
    printf("  %-24s  %s", l->names[i].name, l->names[i].doc);
    for (const yk_key *k = l->keys; k->name != NULL; k++)
      if ((k->of >> i & 1u) != 0) {
        printf("%s%s", between, k->name);
        between = ", ";
      }
    printf("\n");
  }
}
