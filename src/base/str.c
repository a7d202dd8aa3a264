/*
 * str.c - the growing string, strict parsing of numbers, and the hash.
 *
 * Parsing takes the whole string or refuses it, and does not look at the
 * locale. The hash is stored in files and fingerprints, so it may not change.
 */
#include "base/str.h"
#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make room for n more characters and the terminator. */
static int reserve(yk_str *b, size_t n) {
  size_t need, cap = b->cap ? b->cap : 64;
  char *s;
  if (b->failed) return 0;
  if (n >= SIZE_MAX / 2 - b->n) {
    b->failed = 1;
    return 0;
  }
  need = b->n + n + 1;
  if (need <= b->cap) return 1;
  while (cap < need) cap *= 2;
  s = yk__realloc(b->s, cap, 1);
  if (!s) {
    b->failed = 1;
    return 0;
  }
  b->s = s;
  b->cap = cap;
  return 1;
}

void yk__str_add(yk_str *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0) {
    b->failed = 1;
  } else if (reserve(b, (size_t)n)) {
    vsnprintf(b->s + b->n, (size_t)n + 1, fmt, again);
    b->n += (size_t)n;
  }
  va_end(again);
}

void yk__str_put(yk_str *b, const char *s, size_t n) {
  if (!reserve(b, n)) return;
  if (n) memcpy(b->s + b->n, s, n);
  b->n += n;
  b->s[b->n] = '\0';
}

yk_code yk__str_take(yk_str *b, char **out) {
  yk__str_put(b, "", 0);                 /* an empty string is a string too */
  if (b->failed) {
    yk__str_free(b);
    return YK_FAIL(ENOMEM, "out of host memory while making a text");
  }
  *out = b->s;
  *b = (yk_str){ 0 };
  return YK_OK;
}

void yk__str_free(yk_str *b) {
  yk__free(b->s);
  *b = (yk_str){ 0 };
}

/* Control characters, and the two that end the plane, are none that XML knows. */
static int is_xml(const char *s, size_t n) {
  unsigned char c = (unsigned char)s[0];
  if (n == 1) return c >= 0x20 || c == '\t' || c == '\n' || c == '\r';
  return n != 0 && memcmp(s, "\xEF\xBF\xBE", 3) != 0 && memcmp(s, "\xEF\xBF\xBF", 3) != 0;
}

void yk__str_put_xml(yk_str *b, const char *text) {
  for (size_t n; *text != '\0'; text += n > 0 ? n : 1) {
    const char *e = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;
    n = yk__utf8(text);
    if (e == NULL && !is_xml(text, n)) e = "\xEF\xBF\xBD";
    if (e != NULL) yk__str_put(b, e, strlen(e));
    else yk__str_put(b, text, n);
  }
}

size_t yk__utf8(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : s[0] >= 0xE0 && s[0] < 0xF0 ? 3 : s[0] >= 0xF0 && s[0] < 0xF5
      ? 4 : 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  if (n == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0))) return 0;
  if (n == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))) return 0;
  return n;
}

int yk__parse_i64(const char *s, int64_t lo, int64_t hi, int64_t *out) {
  int negative = *s == '-';
  int64_t v = 0;
  if (*s == '-' || *s == '+') s++;
  if (!*s) return 0;
  for (; *s; s++) {                      /* counted downwards: the most negative number has no positive twin */
    if (*s < '0' || *s > '9') return 0;
    if (__builtin_mul_overflow(v, (int64_t)10, &v) || __builtin_sub_overflow(v, (int64_t)(*s - '0'), &v)) return 0;
  }
  if (!negative && __builtin_sub_overflow((int64_t)0, v, &v)) return 0;
  if (v < lo || v > hi) return 0;
  *out = v;
  return 1;
}

int yk__parse_f64(const char *s, double *out) {
  const char *first = *s == '-' || *s == '+' ? s + 1 : s;
  char *end;
  double v;
  locale_t c;
  if (!((*first >= '0' && *first <= '9') || *first == '.')) return 0;     /* no blanks, "inf" or "nan" */
  if (strpbrk(s, "xXpP")) return 0;
  c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c) return 0;
  v = strtod_l(s, &end, c);
  freelocale(c);
  if (end == s || *end || !isfinite(v)) return 0;
  *out = v;
  return 1;
}

/* Factor of a suffix: "" and "B" 1; k, KiB 2^10; kB 10^3; and so on for M, G, T. 0 if it is none. */
static double byte_unit(const char *s) {
  static const char letters[] = "kmgt";
  const char *at;
  double binary = 1, decimal = 1;
  char c;
  if (!*s || strcmp(s, "B") == 0 || strcmp(s, "b") == 0) return 1;
  c = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
  at = strchr(letters, c);
  if (!at) return 0;
  for (const char *p = letters; p <= at; p++) {
    binary *= 1024;
    decimal *= 1000;
  }
  s++;
  if (!*s || strcmp(s, "i") == 0 || strcmp(s, "iB") == 0 || strcmp(s, "ib") == 0) return binary;
  return strcmp(s, "B") == 0 || strcmp(s, "b") == 0 ? decimal : 0;
}

int yk__parse_bytes(const char *s, uint64_t *out) {
  uint64_t whole = 0;
  double part = 0, scale = 0.1, unit, total;
  int digits = 0;
  for (; *s >= '0' && *s <= '9'; s++, digits++) {
    if (__builtin_mul_overflow(whole, (uint64_t)10, &whole)) return 0;
    if (__builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole)) return 0;
  }
  if (*s == '.') {
    for (s++; *s >= '0' && *s <= '9'; s++, digits++, scale /= 10) part += scale * (*s - '0');
  }
  if (!digits) return 0;
  while (*s == ' ') s++;
  unit = byte_unit(s);
  total = ((double)whole + part) * unit;
  if (unit <= 0 || total >= 18446744073709551616.0) return 0;
  *out = whole * (uint64_t)unit + (uint64_t)(part * unit + 0.5);
  return 1;
}

char *yk__bytes_text(uint64_t bytes, char buf[YK__BYTES_TEXT]) {
  static const char unit[] = "KMGTPE";
  double x = (double)bytes / 1024;
  int i = 0;
  if (bytes < 1024) {
    snprintf(buf, YK__BYTES_TEXT, "%uB", (unsigned)bytes);
    return buf;
  }
  for (; x >= 1024; i++) x /= 1024;
  snprintf(buf, YK__BYTES_TEXT, "%.*f%ciB", i ? 2 : 1, x, unit[i]);
  return buf;
}

uint32_t yk__str_distance(const char *a, const char *b) {
  enum { MAX = 128 };                    /* longer names are compared by their beginnings */
  uint32_t row[MAX + 1];
  uint32_t na = (uint32_t)strnlen(a, MAX), nb = (uint32_t)strnlen(b, MAX);
  for (uint32_t j = 0; j <= nb; j++) row[j] = j;
  for (uint32_t i = 1; i <= na; i++) {
    uint32_t diagonal = row[0];
    row[0] = i;
    for (uint32_t j = 1; j <= nb; j++) {
      uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[nb];
}

static uint64_t mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

uint64_t yk__hash(const void *p, size_t bytes, uint64_t seed) {
  const unsigned char *s = p;
  uint64_t h = mix(seed + 0x9e3779b97f4a7c15u) ^ (uint64_t)bytes;
  while (bytes > 0) {
    size_t n = bytes < 8 ? bytes : 8;
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)s[i] << (8 * i);       /* little-endian on every machine */
    h = mix(h ^ w) * 0x9e3779b97f4a7c15u + 1;
    s += n;
    bytes -= n;
  }
  return mix(h);
}
