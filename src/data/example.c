/*
 * example.c - see example.h. Of protocol buffers only what tf.Example needs: varints, fields with a length, and stepping over others.
 *
 * Numbers come packed (one field with all of them) or one field each; both may be mixed, as every parser has to accept. Each read is
 * checked against the end of the message that it is in.
 */
#include "data/example.h"

#include <inttypes.h>
#include <string.h>
#include "base/error.h"
#include "data/file.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static bool varint(yk_span *s, uint64_t *out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 64 && s->p < s->end; shift += 7) {
    uint8_t b = *s->p++;
    v |= (uint64_t)(b & 127) << shift;
    if (b < 128) {
      *out = v;
      return true;
    }
  }
  return false;
}

/* One field: its number and kind, and its content (empty for a varint, whose value is *value). */
typedef struct yk_wire { uint64_t number; unsigned kind; uint64_t value; yk_span body; } yk_wire;

static bool wire(yk_span *s, yk_wire *w) {
  uint64_t key, n = 0;
  if (!varint(s, &key)) return false;
  *w = (yk_wire){ .number = key >> 3, .kind = (unsigned)(key & 7) };
  if (w->number == 0) return false;
  switch (w->kind) {
    case VARINT: return varint(s, &w->value);
    case FIXED64: n = 8; break;
    case FIXED32: n = 4; break;
    case BYTES: if (!varint(s, &n)) return false; break;
    default: return false;                             /* groups: no writer of examples makes them */
  }
  if (n > (uint64_t)(s->end - s->p)) return false;
  w->body = (yk_span){ s->p, s->p + n };
  s->p += n;
  return true;
}

bool yk__span_is(yk_span s, const char *text) {
  size_t n = strlen(text);
  return (size_t)(s.end - s.p) == n && memcmp(s.p, text, n) == 0;
}

/* An entry of the map: key = 1, value = 2, a Feature with one of three lists. */
static bool entry(yk_span s, yk_entry *out) {
  yk_wire w, v;
  *out = (yk_entry){ .name = { s.p, s.p } };
  while (s.p < s.end) {
    if (!wire(&s, &w)) return false;
    if (w.number == 1 && w.kind == BYTES) out->name = w.body;
    if (w.number != 2 || w.kind != BYTES) continue;
    while (w.body.p < w.body.end) {
      if (!wire(&w.body, &v)) return false;
      if (v.number > 3 || v.kind != BYTES) continue;
      out->kind = (yk_list_kind)v.number;
      out->list = v.body;
    }
  }
  return true;
}

/* The position is that within an Example; its field 1, Features, has entries as its field 1. There is one Features, but there may be more. */
bool yk__example_next(yk_span record, const uint8_t **at, yk_entry *out, const char **why) {
  yk_span outer = record;
  yk_wire w, e;
  *why = NULL;
  while (outer.p < outer.end) {
    if (!wire(&outer, &w)) { *why = "it is no tf.Example"; return false; }
    if (w.number != 1 || w.kind != BYTES || (*at != NULL && *at >= w.body.end)) continue;
    if (*at == NULL || *at < w.body.p) *at = w.body.p;
    for (yk_span s = { *at, w.body.end }; s.p < s.end;) {
      bool good = wire(&s, &e);
      *at = s.p;
      if (!good) { *why = "its features are malformed"; return false; }
      if (e.number != 1 || e.kind != BYTES) continue;
      if (entry(e.body, out)) return true;
      *why = "a feature of it is malformed";
      return false;
    }
  }
  return false;
}

yk_code yk__example_find(yk_span record, const char *name, yk_entry *out) {
  const uint8_t *at = NULL;
  const char *why;
  yk_entry e;
  *out = (yk_entry){ .kind = YK_LIST_NONE };
  while (yk__example_next(record, &at, &e, &why))
    if (yk__span_is(e.name, name)) *out = e;
  return why == NULL ? YK_OK : YK_FAIL(ECORRUPT, "%s", why);
}

/* ---- lists ---- */

static const char *kind_name(yk_list_kind k) {
  static const char *const name[] = { "nothing", "bytes", "floats", "integers" };
  return name[k];
}

/* One value of a list at a time; `packed` is what is left of a packed run. */
typedef struct yk_values { yk_list_kind kind; yk_span list, packed; } yk_values;
typedef struct yk_one { uint64_t whole; float real; yk_span bytes; } yk_one;

/* 1: a value; 0: the end; -1: malformed. */
static int next_value(yk_values *v, yk_one *out) {
  yk_wire w;
  while (v->packed.p == v->packed.end) {
    if (v->list.p == v->list.end) return 0;
    if (!wire(&v->list, &w)) return -1;
    if (w.number != 1) continue;
    if (v->kind == YK_LIST_INTS && w.kind == VARINT) { out->whole = w.value; return 1; }
    if (w.kind == BYTES && v->kind == YK_LIST_BYTES) { out->bytes = w.body; return 1; }
    if (w.kind != BYTES && !(v->kind == YK_LIST_FLOATS && w.kind == FIXED32)) return -1;
    v->packed = w.body;
  }
  if (v->kind == YK_LIST_INTS) return varint(&v->packed, &out->whole) ? 1 : -1;
  if (v->packed.end - v->packed.p < 4) return -1;
  uint32_t bits = yk__le32(v->packed.p);
  memcpy(&out->real, &bits, sizeof bits);
  v->packed.p += 4;
  return 1;
}

int64_t yk__list_count(const yk_entry *e) {
  yk_values v = { .kind = e->kind, .list = e->list };
  yk_one one = { 0 };
  int64_t n = 0;
  int got = 0;
  if (e->kind == YK_LIST_NONE) return 0;
  while ((got = next_value(&v, &one)) > 0) n++;
  return got < 0 ? -1 : n;
}

static bool store_whole(int64_t v, yk_dtype dtype, int64_t i, void *out) {
  switch (dtype) {
    case YK_I64: ((int64_t *)out)[i] = v; return true;
    case YK_I32: ((int32_t *)out)[i] = (int32_t)v; return v >= INT32_MIN && v <= INT32_MAX;
    case YK_U8: ((uint8_t *)out)[i] = (uint8_t)v; return v >= 0 && v <= UINT8_MAX;
    default: ((uint8_t *)out)[i] = v != 0; return v == 0 || v == 1;
  }
}

yk_code yk__list_numbers(const yk_entry *e, yk_dtype dtype, int64_t n, void *out) {
  bool real = dtype == YK_F32 || dtype == YK_F64;
  yk_values v = { .kind = e->kind, .list = e->list };
  yk_one one = { 0 };
  int64_t i = 0;
  int got = 0;
  if (e->kind != (real ? YK_LIST_FLOATS : YK_LIST_INTS))
    return YK_FAIL(ECORRUPT, "holds %s; expected %s for %s", kind_name(e->kind), real ? "floats" : "integers",
                   yk_dtype_name(dtype));
  for (; (got = next_value(&v, &one)) > 0; i++) {
    if (i >= n) continue;
    if (dtype == YK_F32) ((float *)out)[i] = one.real;
    else if (real) ((double *)out)[i] = one.real;
    else if (!store_whole((int64_t)one.whole, dtype, i, out))
      return YK_FAIL(ECORRUPT, "value %" PRId64 " is %" PRId64 ", which is no %s", i, (int64_t)one.whole, yk_dtype_name(dtype));
  }
  if (got < 0) return YK_FAIL(ECORRUPT, "is malformed");
  return i == n ? YK_OK : YK_FAIL(ECORRUPT, "has %" PRId64 " values; expected %" PRId64, i, n);
}

yk_code yk__list_bytes(const yk_entry *e, yk_span *out) {
  yk_values v = { .kind = e->kind, .list = e->list };
  yk_one one = { .whole = 0 }, more;
  if (e->kind != YK_LIST_BYTES) return YK_FAIL(ECORRUPT, "holds %s; expected bytes", kind_name(e->kind));
  int got = next_value(&v, &one), then = got > 0 ? next_value(&v, &more) : 0;
  if (got < 0 || then < 0) return YK_FAIL(ECORRUPT, "is malformed");
  if (got == 0 || then > 0) return YK_FAIL(ECORRUPT, "has %s; expected one", got == 0 ? "no value" : "several values");
  *out = one.bytes;
  return YK_OK;
}
