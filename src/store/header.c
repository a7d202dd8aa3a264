/*
 * header.c - the JSON header of a safetensors file: a strict parser, and its opposite.
 *
 * The file may come from anywhere, so nothing is assumed: names are checked for repetition, nesting is fixed by the format
 * and cannot grow.
 */
#include "store/header.h"
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "store/token.h"

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

/* ---- entries ----------------------------------------------------------------------------------------------------- */

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4 };

static yk_code read_dtype(yk_tokens *r, yk_st_entry *e) {
  char *text = NULL;
  YK_TRY(yk__tok_text(r, &text));
  yk_dtype t = yk__st_dtype_parse(text);
  e->desc.dtype = (uint8_t)t;
  yk_code rc = t != YK_NONE ? YK_OK
      : YK_FAIL(EUNSUPPORTED, "tensor '%.80s' has dtype '%.16s', which is not supported", e->name, text);
  yk__free(text);
  return rc;
}

static yk_code read_field(yk_tokens *r, const char *key, yk_st_entry *e, int *seen) {
  uint64_t number[YK_MAX_RANK];
  uint32_t n = 0;
  int bit = strcmp(key, "dtype") == 0 ? HAS_DTYPE : strcmp(key, "shape") == 0 ? HAS_SHAPE : strcmp(key, "data_offsets") == 0
      ? HAS_OFFSETS : 0;
  if (bit == 0 || (*seen & bit) != 0) return YK__EXPECTED(r, "\"dtype\", \"shape\" and \"data_offsets\", once each");
  *seen |= bit;
  if (bit == HAS_DTYPE) return read_dtype(r, e);
  YK_TRY(yk__tok_numbers(r, number, bit == HAS_SHAPE ? YK_MAX_RANK : 2, &n));
  if (bit == HAS_SHAPE) {
    e->desc.rank = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++) e->desc.dim[i] = (int64_t)number[i];
    return YK_OK;
  }
  if (n != 2) return YK__EXPECTED(r, "two offsets");
  e->begin = number[0];
  e->end = number[1];
  return YK_OK;
}

static yk_code read_entry(yk_tokens *r, yk_st_entry *e) {
  int seen = 0;
  if (!yk__tok_accept(r, '{')) return YK__EXPECTED(r, "'{'");
  do {
    char *key = NULL;
    YK_TRY(yk__tok_text(r, &key));
    yk_code rc = yk__tok_accept(r, ':') ? read_field(r, key, e, &seen) : YK__EXPECTED(r, "':'");
    yk__free(key);
    if (rc != YK_OK) return rc;
  } while (yk__tok_accept(r, ','));
  if (!yk__tok_accept(r, '}')) return YK__EXPECTED(r, "',' or '}'");
  return seen == (HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS) ? YK_OK
      : YK__EXPECTED(r, "\"dtype\", \"shape\" and \"data_offsets\" before this");
}

const char *yk__st_note(const yk_st_header *h, const char *key) {
  for (uint32_t i = 0; i < h->nnotes; i++)
    if (strcmp(h->note[i].key, key) == 0) return h->note[i].value;
  return NULL;
}

static yk_code read_note(yk_tokens *r, yk_st_header *h) {
  yk_st_note n = { 0 };
  yk_code rc = yk__tok_text(r, &n.key);
  if (rc == YK_OK && !yk__tok_accept(r, ':')) rc = YK__EXPECTED(r, "':'");
  if (rc == YK_OK) rc = yk__tok_text(r, &n.value);
  if (rc == YK_OK && !YK_PUSH(h->note, h->nnotes, h->note_cap, n)) rc = YK_ENOMEM;
  if (rc != YK_OK) { yk__free(n.key); yk__free(n.value); }
  return rc;
}

static yk_code read_notes(yk_tokens *r, yk_st_header *h) {
  if (!yk__tok_accept(r, '{')) return YK__EXPECTED(r, "'{'");
  if (yk__tok_accept(r, '}')) return YK_OK;
  do YK_TRY(read_note(r, h));
  while (yk__tok_accept(r, ','));
  return yk__tok_accept(r, '}') ? YK_OK : YK__EXPECTED(r, "',' or '}'");
}

static yk_code read_pair(yk_tokens *r, yk_st_header *h) {
  yk_st_entry e = { 0 };
  uint32_t before;
  YK_TRY(yk__tok_text(r, &e.name));
  yk_code rc = yk__tok_accept(r, ':') ? YK_OK : YK__EXPECTED(r, "':'");
  if (rc == YK_OK && strcmp(e.name, "__metadata__") == 0) {
    rc = read_notes(r, h);
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
  yk_tokens r = { .s = text, .n = n, .what = "header" };
  if (n == 0 || text[0] != '{') return YK__EXPECTED(&r, "'{'");
  r.at = 1;
  if (!yk__tok_accept(&r, '}')) {
    do YK_TRY(read_pair(&r, out));
    while (yk__tok_accept(&r, ','));
    if (!yk__tok_accept(&r, '}')) return YK__EXPECTED(&r, "',' or '}'");
  }
  yk__tok_blanks(&r);
  return r.at == n ? YK_OK : YK__EXPECTED(&r, "nothing behind the last '}'");
}

void yk__st_free(yk_st_header *h) {
  for (uint32_t i = 0; i < h->n; i++) yk__free(h->entry[i].name);
  for (uint32_t i = 0; i < h->nnotes; i++) {
    yk__free(h->note[i].key);
    yk__free(h->note[i].value);
  }
  yk__free(h->note);
  yk__free(h->entry);
  yk__map_free(&h->index);
  *h = (yk_st_header){ 0 };
}

/* ---- the opposite ------------------------------------------------------------------------------------------------ */

static uint64_t put_entry(yk_str *s, const char *name, const yk_desc *d, uint64_t at) {
  uint64_t end = yk_dtype_bytes((yk_dtype)d->dtype);
  for (uint8_t k = 0; k < d->rank; k++) end *= (uint64_t)d->dim[k];
  end += at;
  yk__tok_quote(s, name);
  yk__str_add(s, ":{\"dtype\":\"%s\",\"shape\":[", yk__st_dtype((yk_dtype)d->dtype));
  for (uint8_t k = 0; k < d->rank; k++) yk__str_add(s, "%s%lld", k > 0 ? "," : "", (long long)d->dim[k]);
  yk__str_add(s, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
  return end;
}

yk_code yk__st_make(size_t n, const char *const *name, const yk_desc *const *desc, size_t nnotes, const yk_note *note, char **out) {
  enum { ALIGN = 8 };
  yk_str s = { 0 };
  uint64_t at = 0;
  const char *before = "{";
  if (nnotes > 0) yk__str_add(&s, "{\"__metadata__\":");
  for (size_t i = 0; i < nnotes; i++) {
    yk__str_put(&s, i > 0 ? "," : "{", 1);
    yk__tok_quote(&s, note[i].key);
    yk__str_put(&s, ":", 1);
    yk__tok_quote(&s, note[i].value);
    before = "},\n";
  }
  for (size_t i = 0; i < n; i++, before = ",\n") {
    yk__str_add(&s, "%s", before);
    at = put_entry(&s, name[i], desc[i], at);
  }
  yk__str_add(&s, "%s}", n > 0 ? "" : nnotes > 0 ? "}" : "{");
  while (s.n % ALIGN != 0 && !s.failed) yk__str_put(&s, " ", 1);
  return yk__str_take(&s, out);
}
