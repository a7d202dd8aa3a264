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

static void quote(yk_str *out, const char *text) {
  yk__str_put(out, "\"", 1);
  for (const unsigned char *s = (const unsigned char *)text; *s != 0;) {
    size_t n = yk__utf8((const char *)s);
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

void yk__json_memory(yk_json *j, const yk_device_memory *m) {
  yk__json_int(j, "bytes_total", (int64_t)m->bytes_total);
  yk__json_int(j, "bytes_limit", (int64_t)m->bytes_limit);
  yk__json_int(j, "bytes_held", (int64_t)m->bytes_held);
  yk__json_int(j, "peak_held", (int64_t)m->peak_held);
  yk__json_int(j, "bytes_in_use", (int64_t)m->bytes_in_use);
  yk__json_int(j, "peak_in_use", (int64_t)m->peak_in_use);
  yk__json_int(j, "bytes_requested", (int64_t)m->bytes_requested);
  yk__json_int(j, "largest_free", (int64_t)m->largest_free);
  yk__json_real(j, "fragmentation", m->fragmentation);
  yk__json_int(j, "regions", m->regions);
  yk__json_int(j, "allocations", (int64_t)m->allocations);
  yk__json_int(j, "refusals", (int64_t)m->refusals);
  yk__json_int(j, "largest_allocation", (int64_t)m->largest_allocation);
}

void yk__json_break(yk_json *j) {
  if (j->comma) yk__str_put(&j->text, ",", 1);
  if (!j->flat) yk__str_put(&j->text, "\n", 1);
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
