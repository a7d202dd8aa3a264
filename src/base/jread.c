/*
 * jread.c - the strict JSON reader.
 *
 * One flag is all that nesting costs: `fresh` is set by an opening bracket and cleared by whatever follows, so a comma is wanted
 * exactly where it is not set. Positions in messages point at the beginning of what is wrong.
 */
#include "base/jread.h"

#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

enum { DEPTH = 64 };

char *yk__jread_place(const yk_jread *r, size_t at, char *buf, size_t n) {
  size_t line = 1, column = 1;
  if (!r->lines) {
    snprintf(buf, n, "%.400s, offset %zu", r->what, at);
    return buf;
  }
  for (size_t i = 0; i < at && i < r->n; i++) {
    if (r->s[i] == '\n') line++, column = 1;
    else column++;
  }
  snprintf(buf, n, "%.400s:%zu:%zu", r->what, line, column);
  return buf;
}

yk_code yk__jread_expected(const yk_jread *r, const char *expected) {
  char place[480];
  return YK_FAIL(ECORRUPT, "%s: expected %s", yk__jread_place(r, r->at, place, sizeof place), expected);
}

static void blanks(yk_jread *r) {
  while (r->at < r->n && (r->s[r->at] == ' ' || r->s[r->at] == '\n' || r->s[r->at] == '\r' || r->s[r->at] == '\t')) r->at++;
}

size_t yk__jread_at(yk_jread *r) {
  blanks(r);
  return r->at;
}

int yk__jread_accept(yk_jread *r, char c) {
  blanks(r);
  if (r->at >= r->n || r->s[r->at] != c) return 0;
  r->at++;
  return 1;
}

/* ---- nesting ----------------------------------------------------------------------------------------------------- */

yk_code yk__jread_enter(yk_jread *r, char kind) {
  if (!yk__jread_accept(r, kind)) return yk__jread_expected(r, kind == '{' ? "'{'" : "'['");
  r->fresh = 1;
  return YK_OK;
}

/* Past the comma before the next member, or past the end. */
static yk_code member(yk_jread *r, char close, int *more) {
  int first = r->fresh;
  r->fresh = 0;
  *more = 0;
  if (yk__jread_accept(r, close)) return YK_OK;
  if (!first && !yk__jread_accept(r, ',')) return yk__jread_expected(r, close == '}' ? "',' or '}'" : "',' or ']'");
  *more = 1;
  return YK_OK;
}

yk_code yk__jread_key(yk_jread *r, char **out) {
  char *key = NULL;
  int more;
  YK_TRY(member(r, '}', &more));
  if (more) YK_TRY(yk__jread_text(r, &key));
  if (more && !yk__jread_accept(r, ':')) {
    yk__free(key);
    return yk__jread_expected(r, "':'");
  }
  *out = key;
  return YK_OK;
}

yk_code yk__jread_more(yk_jread *r, int *more) {
  return member(r, ']', more);
}

yk_code yk__jread_end(yk_jread *r) {
  blanks(r);
  return r->at == r->n ? YK_OK : yk__jread_expected(r, "nothing behind the end");
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static yk_code hex4(yk_jread *r, uint32_t *out) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    char c = r->at < r->n ? r->s[r->at] : '\0';
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return yk__jread_expected(r, "four hexadecimal digits");
    x = x << 4 | (uint32_t)digit;
  }
  return *out = x, YK_OK;
}

/* A code point behind "\u", as UTF-8. NUL would end our strings; half of a surrogate pair stands for nothing. */
static yk_code put_code(yk_jread *r, yk_str *out) {
  uint32_t x = 0, low = 0;
  YK_TRY(hex4(r, &x));
  if (x >= 0xD800 && x < 0xDC00 && r->at + 1 < r->n && r->s[r->at] == '\\' && r->s[r->at + 1] == 'u') {
    r->at += 2;
    YK_TRY(hex4(r, &low));
    if (low < 0xDC00 || low > 0xDFFF) return yk__jread_expected(r, "the second half of a surrogate pair before this");
    x = 0x10000 + ((x - 0xD800) << 10 | (low - 0xDC00));
  }
  if (x == 0 || (x >= 0xD800 && x <= 0xDFFF))
    return yk__jread_expected(r, "an escape of a character other than U+0000 before this");
  char b[4] = { (char)(0xF0 | x >> 18), (char)(0x80 | (x >> 12 & 0x3F)), (char)(0x80 | (x >> 6 & 0x3F)),
                (char)(0x80 | (x & 0x3F)) };
  size_t skip = x < 0x80 ? 3 : x < 0x800 ? 2 : x < 0x10000 ? 1 : 0;
  if (skip == 3) b[3] = (char)x;
  if (skip == 2) b[2] = (char)(0xC0 | x >> 6);
  if (skip == 1) b[1] = (char)(0xE0 | x >> 12);
  yk__str_put(out, b + skip, 4 - skip);
  return YK_OK;
}

static yk_code put_escape(yk_jread *r, yk_str *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = r->at < r->n ? r->s[r->at++] : '\0';
  const char *k = c != '\0' ? strchr(from, c) : NULL;
  if (c == 'u') return put_code(r, out);
  if (k == NULL) return yk__jread_expected(r, "a JSON escape");
  yk__str_put(out, to + (k - from), 1);
  return YK_OK;
}

/* Bytes of the character at r->at that needs no escape; 0 = none. */
static size_t plain(const yk_jread *r) {
  char next[5] = "";
  size_t left = r->n - r->at;
  unsigned char c = left ? (unsigned char)r->s[r->at] : 0;
  if (c < 0x80) return c >= 0x20 && c != '"' && c != '\\';
  memcpy(next, r->s + r->at, left < 4 ? left : 4);
  return yk__utf8(next);
}

static yk_code characters(yk_jread *r, yk_str *out) {
  for (;;) {
    size_t from = r->at;
    for (size_t n; (n = plain(r)) > 0;) r->at += n;
    yk__str_put(out, r->s + from, r->at - from);
    if (r->at < r->n && (unsigned char)r->s[r->at] >= 0x80) return yk__jread_expected(r, "UTF-8");
    if (r->at >= r->n || (unsigned char)r->s[r->at] < 0x20) return yk__jread_expected(r, "the end of a string");
    if (r->s[r->at++] == '"') return YK_OK;
    YK_TRY(put_escape(r, out));
  }
}

yk_code yk__jread_text(yk_jread *r, char **out) {
  yk_str s = { 0 };
  if (!yk__jread_accept(r, '"')) return yk__jread_expected(r, "a string");
  yk__str_put(&s, "", 0);
  yk_code rc = characters(r, &s);
  if (rc == YK_OK) return yk__str_take(&s, out);
  yk__str_free(&s);
  return rc;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static yk_code no_whole(yk_jread *r, size_t from, uint64_t lo, uint64_t hi) {
  char text[80];
  r->at = from;
  if (hi == (uint64_t)INT64_MAX && lo == 0) return yk__jread_expected(r, "a whole number below 2^63");
  if (lo == hi) snprintf(text, sizeof text, "the number %llu", (unsigned long long)lo);
  else snprintf(text, sizeof text, "a whole number from %llu to %llu", (unsigned long long)lo, (unsigned long long)hi);
  return yk__jread_expected(r, text);
}

yk_code yk__jread_whole(yk_jread *r, uint64_t lo, uint64_t hi, uint64_t *out) {
  uint64_t x = 0;
  blanks(r);
  size_t from = r->at;
  for (; r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9'; r->at++) {
    uint64_t digit = (uint64_t)(r->s[r->at] - '0');
    if (x > ((uint64_t)INT64_MAX - digit) / 10) return no_whole(r, from, lo, hi);
    x = 10 * x + digit;
  }
  if (r->at == from || (r->s[from] == '0' && r->at > from + 1) || x < lo || x > hi) return no_whole(r, from, lo, hi);
  return *out = x, YK_OK;
}

static size_t digits(yk_jread *r) {
  size_t from = r->at;
  while (r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9') r->at++;
  return r->at - from;
}

/* Past a number of JSON's grammar; false if there is none. */
static int number(yk_jread *r) {
  size_t from;
  if (r->at < r->n && r->s[r->at] == '-') r->at++;
  from = r->at;
  size_t whole = digits(r);
  if (whole == 0 || (whole > 1 && r->s[from] == '0')) return 0;
  if (r->at < r->n && r->s[r->at] == '.') {
    r->at++;
    if (digits(r) == 0) return 0;
  }
  if (r->at < r->n && (r->s[r->at] == 'e' || r->s[r->at] == 'E')) {
    r->at++;
    if (r->at < r->n && (r->s[r->at] == '-' || r->s[r->at] == '+')) r->at++;
    if (digits(r) == 0) return 0;
  }
  return 1;
}

yk_code yk__jread_real(yk_jread *r, double lo, double hi, double *out) {
  char text[64], expected[80];
  double x = 0;
  blanks(r);
  size_t from = r->at, n;
  int good = number(r) && (n = r->at - from) < sizeof text;
  if (good) {
    memcpy(text, r->s + from, n);
    text[n] = '\0';
    good = yk__parse_f64(text, &x) && x >= lo && x <= hi;
  }
  if (good) return *out = x, YK_OK;
  r->at = from;
  snprintf(expected, sizeof expected, "a number from %g to %g", lo, hi);
  return yk__jread_expected(r, expected);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static int word(yk_jread *r, const char *text) {
  size_t n = strlen(text);
  blanks(r);
  if (r->n - r->at < n || memcmp(r->s + r->at, text, n) != 0) return 0;
  r->at += n;
  return 1;
}

yk_code yk__jread_bool(yk_jread *r, int *out) {
  int yes = word(r, "true");
  if (!yes && !word(r, "false")) return yk__jread_expected(r, "true or false");
  return *out = yes, YK_OK;
}

static yk_code skip_text(yk_jread *r) {
  char *text = NULL;
  YK_TRY(yk__jread_text(r, &text));
  yk__free(text);
  return YK_OK;
}

/* A text, number or word. */
static yk_code skip_scalar(yk_jread *r) {
  size_t from = r->at;
  if (r->at < r->n && r->s[r->at] == '"') return skip_text(r);
  if (word(r, "true") || word(r, "false") || word(r, "null") || number(r)) return YK_OK;
  r->at = from;
  return yk__jread_expected(r, "a value");
}

/* With a bit a level instead of a call a level, so that no text can use up the stack. */
yk_code yk__jread_skip(yk_jread *r) {
  uint64_t objects = 0;                      /* bit 0: the innermost one is an object */
  int depth = 0;
  do {
    int more = 1;
    blanks(r);
    char c = r->at < r->n ? r->s[r->at] : '\0';
    if (c == '{' || c == '[') {
      if (depth == DEPTH) return yk__jread_expected(r, "at most 64 levels");
      YK_TRY(yk__jread_enter(r, c));
      objects = objects << 1 | (c == '{');
      depth++;
    } else {
      YK_TRY(skip_scalar(r));
    }
    while (depth > 0) {                      /* on to the next value, or out of what has ended */
      char *key = NULL;
      if (objects & 1) {
        YK_TRY(yk__jread_key(r, &key));
        more = key != NULL;
        yk__free(key);
      } else {
        YK_TRY(yk__jread_more(r, &more));
      }
      if (more) break;
      objects >>= 1;
      depth--;
    }
  } while (depth > 0);
  return YK_OK;
}
