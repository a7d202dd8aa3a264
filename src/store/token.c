/*
 * token.c - strings, numbers and punctuation of JSON, each read by a function that knows what it wants.
 *
 * The text may come from anywhere, so nothing is assumed: numbers are checked for overflow, escapes for what they stand for,
 * and every refusal tells the offset.
 */
#include "store/token.h"
#include <string.h>
#include "base/error.h"

void yk__tok_quote(yk_str *out, const char *s) {
  yk__str_put(out, "\"", 1);
  while (*s != '\0') {
    unsigned char c = (unsigned char)*s;
    size_t n = yk__utf8(s);
    if (c == '"' || c == '\\') yk__str_add(out, "\\%c", c);
    else if (c < 0x20 || n == 0) yk__str_add(out, "\\u%04x", c);
    else yk__str_put(out, s, n);
    s += n == 0 ? 1 : n;
  }
  yk__str_put(out, "\"", 1);
}

void yk__tok_blanks(yk_tokens *r) {
  while (r->at < r->n && (r->s[r->at] == ' ' || r->s[r->at] == '\n' || r->s[r->at] == '\r' || r->s[r->at] == '\t')) r->at++;
}

int yk__tok_accept(yk_tokens *r, char c) {
  yk__tok_blanks(r);
  if (r->at >= r->n || r->s[r->at] != c) return 0;
  r->at++;
  return 1;
}

static yk_code hex4(yk_tokens *r, uint32_t *out) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    char c = r->at < r->n ? r->s[r->at] : '\0';
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return YK__EXPECTED(r, "four hexadecimal digits");
    x = x << 4 | (uint32_t)digit;
  }
  return *out = x, YK_OK;
}

/* A code point as UTF-8; NUL would end our strings and surrogates stand for nothing alone. */
static yk_code put_code(yk_tokens *r, yk_str *out) {
  uint32_t x = 0;
  YK_TRY(hex4(r, &x));
  if (x == 0 || (x >= 0xD800 && x <= 0xDFFF)) return YK__EXPECTED(r, "an escape of a character from U+0001 to U+FFFF");
  char b[3] = { (char)(0xE0 | x >> 12), (char)(0x80 | (x >> 6 & 0x3F)), (char)(0x80 | (x & 0x3F)) };
  if (x < 0x80) b[2] = (char)x;
  else if (x < 0x800) b[1] = (char)(0xC0 | x >> 6);
  yk__str_put(out, x < 0x80 ? b + 2 : x < 0x800 ? b + 1 : b, x < 0x80 ? 1 : x < 0x800 ? 2 : 3);
  return YK_OK;
}

static yk_code put_escape(yk_tokens *r, yk_str *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = r->at < r->n ? r->s[r->at++] : '\0';
  const char *k = c != '\0' ? strchr(from, c) : NULL;
  if (c == 'u') return put_code(r, out);
  if (k == NULL) return YK__EXPECTED(r, "a JSON escape");
  yk__str_put(out, to + (k - from), 1);
  return YK_OK;
}

yk_code yk__tok_text(yk_tokens *r, char **out) {
  yk_str s = { 0 };
  yk_code rc = YK_OK;
  if (!yk__tok_accept(r, '"')) return YK__EXPECTED(r, "a string");
  yk__str_put(&s, "", 0);
  for (;;) {
    unsigned char c = r->at < r->n ? (unsigned char)r->s[r->at] : 0;
    if (c < 0x20) { rc = YK__EXPECTED(r, "the end of a string"); break; }
    r->at++;
    if (c == '"') break;
    if (c == '\\') rc = put_escape(r, &s);
    else yk__str_put(&s, (const char *)&c, 1);
    if (rc != YK_OK) break;
  }
  if (rc == YK_OK) return yk__str_take(&s, out);
  yk__str_free(&s);
  return rc;
}

yk_code yk__tok_number(yk_tokens *r, uint64_t *out) {
  uint64_t x = 0;
  size_t from;
  yk__tok_blanks(r);
  for (from = r->at; r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9'; r->at++) {
    uint64_t digit = (uint64_t)(r->s[r->at] - '0');
    if (x > ((uint64_t)INT64_MAX - digit) / 10) return YK__EXPECTED(r, "a number below 2^63");
    x = 10 * x + digit;
  }
  if (r->at == from || (r->s[from] == '0' && r->at > from + 1)) return YK__EXPECTED(r, "a whole number");
  return *out = x, YK_OK;
}

yk_code yk__tok_numbers(yk_tokens *r, uint64_t *out, uint32_t max, uint32_t *n) {
  uint32_t k = 0;
  if (!yk__tok_accept(r, '[')) return YK__EXPECTED(r, "'['");
  if (yk__tok_accept(r, ']')) return *n = 0, YK_OK;
  do {
    if (k == max) return YK__EXPECTED(r, "no more numbers in this list");
    YK_TRY(yk__tok_number(r, &out[k++]));
  } while (yk__tok_accept(r, ','));
  if (!yk__tok_accept(r, ']')) return YK__EXPECTED(r, "',' or ']'");
  return *n = k, YK_OK;
}
