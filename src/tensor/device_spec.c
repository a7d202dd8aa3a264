/*
 * device_spec.c - device strings: parsing, merging, printing.
 *
 * A string is a list of components, each "/key:value" or a short "/gpu:1", in
 * any order and none of them twice. Nothing is guessed: what is not understood
 * is an error that quotes the component and says what would be right.
 */
#include "tensor/device_spec.h"
#include "base/error.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { QUOTE = 60, SEEN_JOB = 1, SEEN_REPLICA = 2, SEEN_TASK = 4, SEEN_TYPE = 8 };

typedef struct part { const char *s; size_t n; } part;       /* a piece of the string */

typedef struct parser {
  const char *text;
  yk_device_spec spec;
  int seen;
} parser;

/* At most QUOTE characters of a piece, unprintable ones as '?', "..." if cut. */
static const char *quote(part p, char buf[QUOTE + 4]) {
  size_t n = p.n < QUOTE ? p.n : QUOTE;
  for (size_t i = 0; i < n; i++) buf[i] = p.s[i] >= ' ' && p.s[i] <= '~' ? p.s[i] : '?';
  memcpy(buf + n, p.n > n ? "..." : "", p.n > n ? 4 : 1);
  return buf;
}

static yk_code refuse(const parser *p, part what, const char *problem, const char *expected) {
  char whole[QUOTE + 4], piece[QUOTE + 4];
  size_t n = strlen(p->text);
  quote(what, piece);
  if (n > QUOTE) return YK_FAIL(EINVAL, "device string of %zu characters: \"%s\" %s; expected %s", n, piece, problem, expected);
  return YK_FAIL(EINVAL, "device \"%s\": \"%s\" %s; expected %s", quote((part){ p->text, n }, whole), piece, problem, expected);
}

static int is(part p, const char *word) {
  return p.n == strlen(word) && memcmp(p.s, word, p.n) == 0;
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_digit(char c)  { return c >= '0' && c <= '9'; }

/* [A-Za-z][A-Za-z0-9_]* */
static int is_name(part p) {
  if (p.n == 0 || !is_letter(p.s[0])) return 0;
  for (size_t i = 1; i < p.n; i++) {
    if (!is_letter(p.s[i]) && !is_digit(p.s[i]) && p.s[i] != '_') return 0;
  }
  return 1;
}

/* A number, or "*" for -1. */
static int number(part p, int32_t *out) {
  int64_t v = 0;
  if (is(p, "*")) return *out = -1, 1;
  if (p.n == 0 || p.n > 10) return 0;
  for (size_t i = 0; i < p.n; i++) {
    if (!is_digit(p.s[i])) return 0;
    v = v * 10 + (p.s[i] - '0');
  }
  if (v > INT32_MAX) return 0;
  *out = (int32_t)v;
  return 1;
}

static yk_code once(parser *p, part component, int bit, const char *what) {
  if (p->seen & bit) return refuse(p, component, "comes after another of its kind", what);
  p->seen |= bit;
  return YK_OK;
}

static yk_code set_type(parser *p, part component, part type) {
  YK_TRY(once(p, component, SEEN_TYPE, "one device type"));
  if (is(type, "*")) return YK_OK;
  if (!is_name(type) || type.n >= YK__TYPE_BYTES) {
    return refuse(p, component, "has no device type", "one of letters, digits and _, at most 15, as in /device:GPU:0");
  }
  for (size_t i = 0; i < type.n; i++) {
    p->spec.type[i] = (char)(type.s[i] >= 'a' && type.s[i] <= 'z' ? type.s[i] - 'a' + 'A' : type.s[i]);
  }
  return YK_OK;
}

static yk_code set_id(parser *p, part component, part id) {
  if (number(id, &p->spec.id)) return YK_OK;
  return refuse(p, component, "has no device number", "a number from 0 on or *, as in /gpu:0");
}

/* "device:TYPE" or "device:TYPE:ID"; `rest` is what follows "device:". */
static yk_code parse_device(parser *p, part component, part rest) {
  const char *colon = memchr(rest.s, ':', rest.n);
  if (!colon) return set_type(p, component, rest);
  YK_TRY(set_type(p, component, (part){ rest.s, (size_t)(colon - rest.s) }));
  return set_id(p, component, (part){ colon + 1, rest.n - (size_t)(colon + 1 - rest.s) });
}

static yk_code parse_job(parser *p, part component, part value) {
  YK_TRY(once(p, component, SEEN_JOB, "one job"));
  if (is(value, "*")) return YK_OK;
  if (!is_name(value) || value.n >= YK__JOB_BYTES) {
    return refuse(p, component, "has no job name", "a letter, then letters, digits or _, at most 31 in all; or *");
  }
  memcpy(p->spec.job, value.s, value.n);
  return YK_OK;
}

static yk_code parse_number(parser *p, part component, part value, int bit, int32_t *out) {
  YK_TRY(once(p, component, bit, bit == SEEN_TASK ? "one task" : "one replica"));
  if (number(value, out)) return YK_OK;
  return refuse(p, component, "has no number", "a number from 0 on or *, as in /task:0");
}

static yk_code parse_component(parser *p, part c) {
  const char *colon = memchr(c.s, ':', c.n);
  part key = { c.s, colon ? (size_t)(colon - c.s) : c.n };
  part value = { colon ? colon + 1 : c.s + c.n, colon ? c.n - key.n - 1 : 0 };
  if (key.n == 3 && (strncasecmp(key.s, "cpu", 3) == 0 || strncasecmp(key.s, "gpu", 3) == 0)) {
    YK_TRY(set_type(p, c, key));
    return colon ? set_id(p, c, value) : YK_OK;
  }
  if (colon && is(key, "job")) return parse_job(p, c, value);
  if (colon && is(key, "replica")) return parse_number(p, c, value, SEEN_REPLICA, &p->spec.replica);
  if (colon && is(key, "task")) return parse_number(p, c, value, SEEN_TASK, &p->spec.task);
  if (colon && is(key, "device")) return parse_device(p, c, value);
  return refuse(p, c, "is not understood", "/job:NAME, /replica:N, /task:N, /device:TYPE:N, /cpu:N or /gpu:N");
}

yk_code yk__device_parse(const char *text, yk_device_spec *out) {
  parser p = { text, YK__ANY_DEVICE, 0 };
  const char *s = text;
  if (!text) return YK_FAIL(EINVAL, "device string is NULL; expected something like /gpu:0");
  if (*s == '/') s++;                    /* "gpu:0" is taken too */
  while (*s || s > text + 1) {
    size_t n = strcspn(s, "/");
    YK_TRY(parse_component(&p, (part){ s, n }));
    if (!s[n]) break;
    s += n + 1;
  }
  *out = p.spec;
  return YK_OK;
}

yk_device_spec yk__device_merge(const yk_device_spec *inner, const yk_device_spec *outer) {
  yk_device_spec r = *inner;
  if (!r.job[0]) memcpy(r.job, outer->job, sizeof r.job);
  if (r.replica < 0) r.replica = outer->replica;
  if (r.task < 0) r.task = outer->task;
  if (!r.type[0]) memcpy(r.type, outer->type, sizeof r.type);
  if (r.id < 0) r.id = outer->id;
  return r;
}

char *yk__device_text(const yk_device_spec *d, char buf[YK__DEVICE_TEXT]) {
  size_t n = 0;
  buf[0] = '\0';
  if (d->job[0]) n += (size_t)snprintf(buf + n, YK__DEVICE_TEXT - n, "/job:%.31s", d->job);
  if (d->replica >= 0) n += (size_t)snprintf(buf + n, YK__DEVICE_TEXT - n, "/replica:%d", d->replica);
  if (d->task >= 0) n += (size_t)snprintf(buf + n, YK__DEVICE_TEXT - n, "/task:%d", d->task);
  if (d->type[0] || d->id >= 0) {
    n += (size_t)snprintf(buf + n, YK__DEVICE_TEXT - n, "/device:%.15s:", d->type[0] ? d->type : "*");
    if (d->id >= 0) snprintf(buf + n, YK__DEVICE_TEXT - n, "%d", d->id);
    else snprintf(buf + n, YK__DEVICE_TEXT - n, "*");
  }
  return buf;
}

int yk__device_matches(const yk_device_spec *request, const yk_device_spec *device) {
  if (request->job[0] && strcmp(request->job, device->job) != 0) return 0;
  if (request->replica >= 0 && request->replica != device->replica) return 0;
  if (request->task >= 0 && request->task != device->task) return 0;
  if (request->type[0] && strcmp(request->type, device->type) != 0) return 0;
  return request->id < 0 || request->id == device->id;
}

int yk__device_empty(const yk_device_spec *d) {
  return !d->job[0] && d->replica < 0 && d->task < 0 && !d->type[0] && d->id < 0;
}
