/*
 * json.c - writes JSON: escapes, commas, numbers.
 *
 * Text that is not valid UTF-8 is kept byte by byte as Latin-1 escapes, so that the
 * output is valid whatever a path contains.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "cli/json.h"

/* Length of the valid UTF-8 sequence at s, or 0. */
static size_t utf8(const unsigned char *s) {
  size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : s[0] >= 0xE0 && s[0] < 0xF0 ? 3 : s[0] >= 0xF0 && s[0] < 0xF5
      ? 4 : 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  if (n == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0))) return 0;
  if (n == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))) return 0;
  return n;
}

static void quote(yk_str *out, const char *text) {
  yk__str_put(out, "\"", 1);
  for (const unsigned char *s = (const unsigned char *)text; *s != 0;) {
    size_t n = utf8(s);
    if (*s == '"' || *s == '\\') yk__str_add(out, "\\%c", *s);
    else if (*s == '\n') yk__str_put(out, "\\n", 2);
    else if (*s < 0x20 || *s == 0x7F || n == 0) yk__str_add(out, "\\u%04x", *s);
    else yk__str_put(out, (const char *)s, n);
    s += n == 0 ? 1 : n;
  }
  yk__str_put(out, "\"", 1);
}

static void begin(yk_json *j, const char *key) {
  if (j->comma) yk__str_put(&j->text, ",", 1);
  j->comma = true;
  if (key == NULL) return;
  quote(&j->text, key);
  yk__str_put(&j->text, ":", 1);
}

void yk__json_open(yk_json *j, const char *key, char kind) {
  begin(j, key);
  yk__str_put(&j->text, &kind, 1);
  j->comma = false;
}

void yk__json_close(yk_json *j, char kind) {
  yk__str_put(&j->text, &kind, 1);
  j->comma = true;
}

void yk__json_text(yk_json *j, const char *key, const char *value) {
  begin(j, key);
  if (value == NULL) yk__str_put(&j->text, "null", 4);
  else quote(&j->text, value);
}

void yk__json_int(yk_json *j, const char *key, int64_t value) {
  begin(j, key);
  yk__str_add(&j->text, "%" PRId64, value);
}

void yk__json_real(yk_json *j, const char *key, double value) {
  begin(j, key);
  if (isfinite(value)) yk__str_add(&j->text, "%.9g", value);
  else yk__str_put(&j->text, "null", 4);
}

void yk__json_bool(yk_json *j, const char *key, bool value) {
  begin(j, key);
  yk__str_add(&j->text, "%s", value ? "true" : "false");
}

void yk__json_break(yk_json *j) {
  if (j->comma) yk__str_put(&j->text, ",", 1);
  yk__str_put(&j->text, "\n", 1);
  j->comma = false;
}

bool yk__json_flush(yk_json *j, FILE *a, FILE *b) {
  bool good = j->text.s != NULL && !j->text.failed;
  FILE *file[2] = { a, b };
  for (int i = 0; i < 2 && good; i++)
    if (file[i] != NULL) good = fprintf(file[i], "%s\n", j->text.s) > 0 && fflush(file[i]) == 0;
  j->text.n = 0;
  j->comma = false;
  return good;
}
