/*
 * token.c - lists of numbers, and strings as JSON writes them.
 *
 * What is the same for all JSON is read by base/jread.h.
 */
#include "store/token.h"

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

yk_code yk__tok_number(yk_tokens *r, uint64_t *out) {
  return yk__jread_whole(r, 0, (uint64_t)INT64_MAX, out);
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
