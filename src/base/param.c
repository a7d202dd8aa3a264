/*
 * param.c - the values of the settings, and the only reader of the environment.
 *
 * The environment is read once, on first use. A text handed out stays valid for
 * ever: replaced values are kept (and found again when set again), so readers
 * need no lock. Numbers are parsed when set, so that reading one cannot fail.
 */
#include "base/param.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const yk_param_info infos[] = {
#define INT "int"
#define BYTES "bytes"
#define BOOL "bool"
#define TEXT "text"
#define LIST "list"
#define PARAM(name, env, kind, dflt, doc) { name, env, kind, dflt, doc },
#include "param.def"
#undef PARAM
#undef LIST
#undef TEXT
#undef BOOL
#undef BYTES
#undef INT
};

enum { NPARAMS = sizeof infos / sizeof infos[0] };

typedef struct kept { struct kept *next; char text[]; } kept;

static struct {
  _Atomic(const char *) text;
  _Atomic int64_t number;                /* of "int", "bytes", "bool" */
  _Atomic int origin;
  kept *old;                             /* every text that a call has set */
} values[NPARAMS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int bad_env = -1;

static int parse_bool(const char *s, int64_t *out) {
  static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "off", "on" };
  for (int i = 0; i < 8; i++) {
    if (strcasecmp(s, words[i]) == 0) return *out = i % 2, 1;
  }
  return 0;
}

/* Check `s` against the kind of setting i; a number goes to *out. NULL if good, else what was expected. */
static const char *check(size_t i, const char *s, int64_t *out) {
  const char *kind = infos[i].kind;
  uint64_t bytes;
  *out = 0;
  if (strcmp(kind, "int") == 0) return yk__parse_i64(s, 0, INT64_MAX, out) ? NULL : "a whole number, 0 or more";
  if (strcmp(kind, "bool") == 0) return parse_bool(s, out) ? NULL : "0 or 1 (or false, true, no, yes, off, on)";
  if (strcmp(kind, "bytes") == 0) {
    if (!yk__parse_bytes(s, &bytes) || bytes > INT64_MAX) return "a number of bytes, as 1000, 64k or 1.5GiB";
    *out = (int64_t)bytes;
    return NULL;
  }
  if (strcmp(kind, "list") == 0) {
    size_t n = strlen(s);
    if (s[0] == ',' || (n && s[n - 1] == ',') || strstr(s, ",,")) return "a list with commas between its items, none empty";
  }
  return NULL;
}

static void store(size_t i, const char *text, int64_t number, yk_param_origin origin) {
  atomic_store(&values[i].number, number);
  atomic_store(&values[i].text, text);
  atomic_store(&values[i].origin, (int)origin);
}

static void load(void) {
  for (size_t i = 0; i < NPARAMS; i++) {
    int64_t number;
    const char *text = getenv(infos[i].env);
    const char *wrong = check(i, infos[i].dflt, &number);
    (void)wrong;                         /* the defaults are good: a unit test sees to it */
    store(i, infos[i].dflt, number, YK_FROM_DEFAULT);
    if (!text) continue;
    if (check(i, text, &number)) {
      if (bad_env < 0) bad_env = (int)i;
    } else {
      store(i, text, number, YK_FROM_ENV);
    }
  }
}

static void start(void) {
  static _Atomic int warned;
  pthread_once(&once, load);
  if (bad_env >= 0 && !atomic_exchange(&warned, 1)) {
    int64_t number;
    const char *text = getenv(infos[bad_env].env);
    if (!text) text = "";
    YK_LOG(WARNING, "%s=%.60s is ignored: expected %s", infos[bad_env].env, text, check((size_t)bad_env, text, &number));
  }
}

static int find(const char *name) {
  start();
  for (int i = 0; i < NPARAMS; i++) {
    if (strcmp(infos[i].name, name) == 0) return i;
  }
  return -1;
}

const yk_param_info *yk__param_all(size_t *count) {
  *count = NPARAMS;
  return infos;
}

const char *yk__param(const char *name) {
  int i = find(name);
  return i < 0 ? NULL : atomic_load(&values[i].text);
}

yk_param_origin yk__param_origin_of(const char *name) {
  int i = find(name);
  return i < 0 ? YK_FROM_DEFAULT : (yk_param_origin)atomic_load(&values[i].origin);
}

int64_t yk__param_int(const char *name) {
  int i = find(name);
  return i < 0 ? 0 : atomic_load(&values[i].number);
}

int yk__param_bool(const char *name) {
  return yk__param_int(name) != 0;
}

yk_code yk__param_check_env(void) {
  int64_t number;
  const char *text;
  start();
  if (bad_env < 0) return YK_OK;
  text = getenv(infos[bad_env].env);
  if (!text) return YK_OK;
  const char *expected = check((size_t)bad_env, text, &number);
  if (!expected) return YK_OK;
  return YK_FAIL(EINVAL, "environment variable %s=%.60s: expected %s", infos[bad_env].env, text, expected);
}

/* The three settings whose names are nearest to `name`, and then ENOTFOUND. */
static yk_code unknown(const char *name) {
  int best[3] = { -1, -1, -1 };
  uint32_t dist[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
  for (int i = 0; i < NPARAMS; i++) {
    uint32_t d = yk__str_distance(name, infos[i].name);
    for (int k = 0; k < 3; k++) {
      if (d >= dist[k]) continue;
      for (int m = 2; m > k; m--) dist[m] = dist[m - 1], best[m] = best[m - 1];
      dist[k] = d, best[k] = i;
      break;
    }
  }
  return YK_FAIL(ENOTFOUND, "no setting \"%.60s\"; the nearest are %s, %s, %s", name, infos[best[0]].name, infos[best[1]].name,
                 infos[best[2]].name);
}

/* A copy of `text` that lives for ever; the same one again if it was set before. */
static const char *keep(int i, const char *text) {
  kept *k;
  size_t n = strlen(text) + 1;
  for (k = values[i].old; k; k = k->next) {
    if (strcmp(k->text, text) == 0) return k->text;
  }
  k = yk__alloc(sizeof *k + n);
  if (!k) return NULL;
  memcpy(k->text, text, n);
  k->next = values[i].old;
  values[i].old = k;
  return k->text;
}

yk_code yk__param_set(const char *name, const char *value) {
  int i = find(name);
  int64_t number;
  const char *text, *expected;
  if (i < 0) return unknown(name);
  if (!value) return YK_FAIL(EINVAL, "setting %s: the value is NULL; expected %s", name, infos[i].kind);
  expected = check((size_t)i, value, &number);
  if (expected) return YK_FAIL(EINVAL, "setting %s = \"%.60s\": expected %s", name, value, expected);
  pthread_mutex_lock(&lock);
  text = keep(i, value);
  if (text) store((size_t)i, text, number, YK_FROM_CALL);
  pthread_mutex_unlock(&lock);
  return text ? YK_OK : YK_ENOMEM;
}

const char *yk__env(const char *name) {
  return getenv(name);
}
