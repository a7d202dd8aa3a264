/*
 * header.c - a strict parser for the JSON header of a safetensors file.
 *
 * The file may come from anywhere, so nothing is assumed: numbers are checked for
 * overflow, names for repetition, nesting is fixed by the format and cannot grow.
 */
#include "store/header.h"
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

static const struct { const char *name; yk_dtype t; } dtypes[] = {
  { "F32", YK_F32 }, { "F64", YK_F64 }, { "F16", YK_F16 }, { "BF16", YK_BF16 }, { "I32", YK_I32 }, { "I64", YK_I64 },
  { "U8", YK_U8 },   { "BOOL", YK_BOOL },
};
enum { NDTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *yk__st_dtype(yk_dtype t) {
  for (size_t i = 0; i < NDTYPES; i++)
    if (dtypes[i].t == t) return dtypes[i].name;
  return NULL;
}

yk_dtype yk__st_dtype_parse(const char *name) {
  for (size_t i = 0; i < NDTYPES; i++)
    if (strcmp(dtypes[i].name, name) == 0) return dtypes[i].t;
  return YK_NONE;
}

void yk__st_quote(yk_str *out, const char *s) {
  yk__str_put(out, "\"", 1);
  for (; *s != '\0'; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') yk__str_add(out, "\\%c", c);
    else if (c < 0x20) yk__str_add(out, "\\u%04x", c);
    else yk__str_put(out, s, 1);
  }
  yk__str_put(out, "\"", 1);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

typedef struct yk_st_reader { const char *s; size_t n, at; } yk_st_reader;

#define EXPECTED(r, what) YK_FAIL(ECORRUPT, "header, offset %zu: expected %s", (r)->at, what)

static void blanks(yk_st_reader *r) {
  while (r->at < r->n && (r->s[r->at] == ' ' || r->s[r->at] == '\n' || r->s[r->at] == '\r' || r->s[r->at] == '\t')) r->at++;
}

static int accept(yk_st_reader *r, char c) {
  blanks(r);
  if (r->at >= r->n || r->s[r->at] != c) return 0;
  r->at++;
  return 1;
}

static yk_code hex4(yk_st_reader *r, uint32_t *out) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    char c = r->at < r->n ? r->s[r->at] : '\0';
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return EXPECTED(r, "four hexadecimal digits");
    x = x << 4 | (uint32_t)digit;
  }
  return *out = x, YK_OK;
}

/* A code point as UTF-8; NUL would end our strings and surrogates stand for nothing alone. */
static yk_code put_code(yk_st_reader *r, yk_str *out) {
  uint32_t x = 0;
  YK_TRY(hex4(r, &x));
  if (x == 0 || (x >= 0xD800 && x <= 0xDFFF)) return EXPECTED(r, "an escape of a character from U+0001 to U+FFFF");
  char b[3] = { (char)(0xE0 | x >> 12), (char)(0x80 | (x >> 6 & 0x3F)), (char)(0x80 | (x & 0x3F)) };
  if (x < 0x80) b[2] = (char)x;
  else if (x < 0x800) b[1] = (char)(0xC0 | x >> 6);
  yk__str_put(out, x < 0x80 ? b + 2 : x < 0x800 ? b + 1 : b, x < 0x80 ? 1 : x < 0x800 ? 2 : 3);
  return YK_OK;
}

static yk_code put_escape(yk_st_reader *r, yk_str *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char c = r->at < r->n ? r->s[r->at++] : '\0';
  const char *k = c != '\0' ? strchr(from, c) : NULL;
  if (c == 'u') return put_code(r, out);
  if (k == NULL) return EXPECTED(r, "a JSON escape");
  yk__str_put(out, to + (k - from), 1);
  return YK_OK;
}

static yk_code read_text(yk_st_reader *r, char **out) {
  yk_str s = { 0 };
  yk_code rc = YK_OK;
  if (!accept(r, '"')) return EXPECTED(r, "a string");
  yk__str_put(&s, "", 0);
  for (;;) {
    unsigned char c = r->at < r->n ? (unsigned char)r->s[r->at] : 0;
    if (c < 0x20) { rc = EXPECTED(r, "the end of a string"); break; }
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

static yk_code read_number(yk_st_reader *r, uint64_t *out) {
  uint64_t x = 0;
  size_t from;
  blanks(r);
  for (from = r->at; r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9'; r->at++) {
    uint64_t digit = (uint64_t)(r->s[r->at] - '0');
    if (x > ((uint64_t)INT64_MAX - digit) / 10) return EXPECTED(r, "a number below 2^63");
    x = 10 * x + digit;
  }
  if (r->at == from || (r->s[from] == '0' && r->at > from + 1)) return EXPECTED(r, "a whole number");
  return *out = x, YK_OK;
}

static yk_code read_numbers(yk_st_reader *r, uint64_t *out, uint32_t max, uint32_t *n) {
  uint32_t k = 0;
  if (!accept(r, '[')) return EXPECTED(r, "'['");
  if (accept(r, ']')) return *n = 0, YK_OK;
  do {
    if (k == max) return EXPECTED(r, "no more numbers in this list");
    YK_TRY(read_number(r, &out[k++]));
  } while (accept(r, ','));
  if (!accept(r, ']')) return EXPECTED(r, "',' or ']'");
  return *n = k, YK_OK;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4 };

static yk_code read_dtype(yk_st_reader *r, yk_st_entry *e) {
  char *text = NULL;
  YK_TRY(read_text(r, &text));
  yk_dtype t = yk__st_dtype_parse(text);
  e->desc.dtype = (uint8_t)t;
  yk_code rc = t != YK_NONE ? YK_OK
      : YK_FAIL(EUNSUPPORTED, "tensor '%.80s' has dtype '%.16s', which is not supported", e->name, text);
  yk__free(text);
  return rc;
}

static yk_code read_field(yk_st_reader *r, const char *key, yk_st_entry *e, int *seen) {
  uint64_t number[YK_MAX_RANK];
  uint32_t n = 0;
  int bit = strcmp(key, "dtype") == 0 ? HAS_DTYPE : strcmp(key, "shape") == 0 ? HAS_SHAPE : strcmp(key, "data_offsets") == 0
      ? HAS_OFFSETS : 0;
  if (bit == 0 || (*seen & bit) != 0) return EXPECTED(r, "\"dtype\", \"shape\" and \"data_offsets\", once each");
  *seen |= bit;
  if (bit == HAS_DTYPE) return read_dtype(r, e);
  YK_TRY(read_numbers(r, number, bit == HAS_SHAPE ? YK_MAX_RANK : 2, &n));
  if (bit == HAS_SHAPE) {
    e->desc.rank = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++) e->desc.dim[i] = (int64_t)number[i];
    return YK_OK;
  }
  if (n != 2) return EXPECTED(r, "two offsets");
  e->begin = number[0];
  e->end = number[1];
  return YK_OK;
}

static yk_code read_entry(yk_st_reader *r, yk_st_entry *e) {
  int seen = 0;
  if (!accept(r, '{')) return EXPECTED(r, "'{'");
  do {
    char *key = NULL;
    YK_TRY(read_text(r, &key));
    yk_code rc = accept(r, ':') ? read_field(r, key, e, &seen) : EXPECTED(r, "':'");
    yk__free(key);
    if (rc != YK_OK) return rc;
  } while (accept(r, ','));
  if (!accept(r, '}')) return EXPECTED(r, "',' or '}'");
  return seen == (HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS) ? YK_OK
      : EXPECTED(r, "\"dtype\", \"shape\" and \"data_offsets\" before this");
}

static yk_code skip_metadata(yk_st_reader *r) {
  if (!accept(r, '{')) return EXPECTED(r, "'{'");
  if (accept(r, '}')) return YK_OK;
  do {
    char *text = NULL;
    YK_TRY(read_text(r, &text));
    yk__free(text);
    if (!accept(r, ':')) return EXPECTED(r, "':'");
    YK_TRY(read_text(r, &text));
    yk__free(text);
  } while (accept(r, ','));
  return accept(r, '}') ? YK_OK : EXPECTED(r, "',' or '}'");
}

static yk_code read_pair(yk_st_reader *r, yk_st_header *h) {
  yk_st_entry e = { 0 };
  uint32_t before;
  YK_TRY(read_text(r, &e.name));
  yk_code rc = accept(r, ':') ? YK_OK : EXPECTED(r, "':'");
  if (rc == YK_OK && strcmp(e.name, "__metadata__") == 0) {
    rc = skip_metadata(r);
    yk__free(e.name);
    return rc;
  }
  if (rc == YK_OK) rc = read_entry(r, &e);
  if (rc == YK_OK && yk__map_get(&h->index, e.name, &before)) rc = YK_FAIL(ECORRUPT, "tensor '%.80s' is there twice", e.name);
  if (rc == YK_OK && (!yk__map_set(&h->index, e.name, h->n) || !YK_PUSH(h->entry, h->n, h->cap, e))) rc = YK_ENOMEM;
  if (rc != YK_OK) yk__free(e.name);
  return rc;
}

yk_code yk__st_parse(const char *text, size_t n, yk_st_header *out) {
  yk_st_reader r = { .s = text, .n = n };
  if (n == 0 || text[0] != '{') return EXPECTED(&r, "'{'");
  r.at = 1;
  if (!accept(&r, '}')) {
    do YK_TRY(read_pair(&r, out));
    while (accept(&r, ','));
    if (!accept(&r, '}')) return EXPECTED(&r, "',' or '}'");
  }
  blanks(&r);
  return r.at == n ? YK_OK : EXPECTED(&r, "nothing behind the last '}'");
}

void yk__st_free(yk_st_header *h) {
  for (uint32_t i = 0; i < h->n; i++) yk__free(h->entry[i].name);
  yk__free(h->entry);
  yk__map_free(&h->index);
  *h = (yk_st_header){ 0 };
}
