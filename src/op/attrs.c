/*
 * attrs.c - attribute structs as data: range checks, text, equality, hash.
 *
 * An op describes the fields of its attribute struct in op->attrs; everything
 * here walks that description, so padding bytes never matter. Zero means the
 * default: a zero is accepted wherever the field's default is not zero.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "op/attrs.h"
#include "op/registry.h"

static const uint64_t zeros[YK__MAX_ATTR_BYTES / sizeof(uint64_t)];

const void *yk__attrs_or_zero(const yk_op *op, const void *attrs) {
  (void)op;
  return attrs ? attrs : zeros;
}

static const char *field(const yk_attr *a, const void *attrs) { return (const char *)attrs + a->offset; }

static unsigned items(const yk_attr *a) {
  return a->kind == YK_INTS || a->kind == YK_DIMS ? a->count : 1;
}

int64_t yk__attr_integer(const yk_attr *a, const void *attrs, unsigned i) {
  if (a->kind == YK_DIMS) {
    int64_t v;
    memcpy(&v, field(a, attrs) + i * sizeof v, sizeof v);
    return v;
  }
  int32_t v;
  memcpy(&v, field(a, attrs) + i * sizeof v, sizeof v);
  return v;
}

static double real(const yk_attr *a, const void *attrs) {
  double v;
  memcpy(&v, field(a, attrs), sizeof v);
  return v;
}

static uint64_t seed_of(const yk_attr *a, const void *attrs) {
  uint64_t v;
  memcpy(&v, field(a, attrs), sizeof v);
  return v;
}

static const void *pointer(const yk_attr *a, const void *attrs) {
  const void *v;
  memcpy(&v, field(a, attrs), sizeof v);
  return v;
}

static yk_code check_number(const yk_op *op, const yk_attr *a, unsigned i, double v) {
  if (v == 0 && a->dflt != 0) return YK_OK;
  if (isnan(v)) return YK_FAIL(EINVAL, "%s: attribute %s is not a number", op->label, a->name);
  double lo = a->min, hi = a->max;
  if (a->kind == YK_FLAG && lo == 0 && hi == 0) hi = 1;
  else if (lo == 0 && hi == 0) return YK_OK;
  if (v >= lo && v <= hi) return YK_OK;
  char index[16] = "";
  if (items(a) > 1) snprintf(index, sizeof index, "[%u]", i);
  return YK_FAIL(EINVAL, "%s: attribute %s%s is %.17g, expected %.17g to %.17g", op->label, a->name, index, v, lo, hi);
}

yk_code yk__attrs_check(const yk_op *op, const void *attrs) {
  if (op->attr_bytes > YK__MAX_ATTR_BYTES)
    return YK_FAIL(EINTERNAL, "%s: attribute struct of %u bytes, at most %d", op->label, op->attr_bytes, YK__MAX_ATTR_BYTES);
  attrs = yk__attrs_or_zero(op, attrs);
  for (const yk_attr *a = op->attrs; a && a->name; a++) {
    if (a->kind == YK_REAL) {
      YK_TRY(check_number(op, a, 0, real(a, attrs)));
    } else if (a->kind != YK_SEED && a->kind != YK_STRING && a->kind != YK_POINTER) {
      for (unsigned i = 0; i < items(a); i++) YK_TRY(check_number(op, a, i, (double)yk__attr_integer(a, attrs, i)));
    }
  }
  return YK_OK;
}

/* ---- text ---- */

typedef struct text { char *buf; size_t n, at; } text;

static void add(text *t, const char *fmt, ...) YK_PRINTF(2, 3);
static void add(text *t, const char *fmt, ...) {
  if (t->at + 1 >= t->n) return;
  va_list ap;
  va_start(ap, fmt);
  int k = vsnprintf(t->buf + t->at, t->n - t->at, fmt, ap);
  va_end(ap);
  if (k > 0) t->at += (size_t)k < t->n - t->at ? (size_t)k : t->n - t->at - 1;
}

/* The names behind the enumerations that attribute structs use, by field name. */
const char *yk__attr_enum(const yk_attr *a, int64_t v) {
  static const char *const padding[] = { "SAME", "VALID", "EXPLICIT" };
  static const char *const act[] = { "NONE", "RELU", "RELU6", "LEAKY_RELU", "ELU", "SELU", "GELU",
                                     "SILU", "TANH", "SIGMOID", "SOFTPLUS" };
  static const char *const activation[] = { "TANH", "RELU", "LINEAR" };
  static const char *const recurrent[] = { "SIGMOID", "HARD_SIGMOID", "HARD_SIGMOID_6" };
  if (!strcmp(a->name, "activation") && v >= 0 && v < 3) return activation[v];
  if (!strcmp(a->name, "recurrent_activation") && v >= 0 && v < 3) return recurrent[v];
  if (!strcmp(a->name, "dtype") && v > 0 && v < YK_NDTYPES) return yk_dtype_name((yk_dtype)v);
  if (!strcmp(a->name, "padding") && v >= 0 && v < 3) return padding[v];
  if (!strcmp(a->name, "act") && v >= 0 && v < 11) return act[v];
  return NULL;
}

static void add_integers(text *t, const yk_attr *a, const void *attrs) {
  unsigned n = items(a);
  while (n > 0 && yk__attr_integer(a, attrs, n - 1) == 0) n--;     /* zeros at the end are the defaults */
  int differs = 0;
  for (unsigned i = 0; i < n; i++) differs |= yk__attr_integer(a, attrs, i) != 0 && (double)yk__attr_integer(a, attrs, i) != a->dflt;
  if (!differs) return;
  add(t, "%s%s=", t->at ? " " : "", a->name);
  for (unsigned i = 0; i < n; i++) {
    int64_t v = yk__attr_integer(a, attrs, i);
    const char *name = yk__attr_enum(a, v);
    if (i) add(t, ",");
    if (name) add(t, "%s", name); else add(t, "%lld", (long long)v);
  }
}

char *yk__attrs_text(const yk_op *op, const void *attrs, char *buf, size_t n) {
  if (n == 0) return buf;
  text t = { buf, n, 0 };
  buf[0] = 0;
  attrs = yk__attrs_or_zero(op, attrs);
  for (const yk_attr *a = op->attrs; a && a->name; a++) {
    const char *gap = t.at ? " " : "";
    if (a->kind == YK_REAL) {
      double v = real(a, attrs);
      if (v != 0 && v != a->dflt) add(&t, "%s%s=%.9g", gap, a->name, v);
    } else if (a->kind == YK_SEED) {
      if (seed_of(a, attrs)) add(&t, "%s%s=%llu", gap, a->name, (unsigned long long)seed_of(a, attrs));
    } else if (a->kind == YK_STRING) {
      if (pointer(a, attrs)) add(&t, "%s%s=\"%s\"", gap, a->name, (const char *)pointer(a, attrs));
    } else if (a->kind != YK_POINTER) {
      add_integers(&t, a, attrs);
    }
  }
  return buf;
}

/* ---- equality and hash ---- */

/* Bytes of one field as it lies in the struct. */
static size_t field_bytes(const yk_attr *a) {
  switch (a->kind) {
    case YK_REAL: return sizeof(double);
    case YK_DIMS: return sizeof(int64_t) * a->count;
    case YK_INTS: return sizeof(int32_t) * a->count;
    case YK_SEED: return sizeof(uint64_t);
    case YK_STRING: case YK_POINTER: return sizeof(void *);
    default: return sizeof(int32_t);
  }
}

int yk__attrs_equal(const yk_op *op, const void *a, const void *b) {
  a = yk__attrs_or_zero(op, a);
  b = yk__attrs_or_zero(op, b);
  if (a == b) return 1;
  if (!op->attrs) return op->attr_bytes == 0 || !memcmp(a, b, op->attr_bytes);
  for (const yk_attr *f = op->attrs; f->name; f++) {
    if (f->kind == YK_STRING && pointer(f, a) && pointer(f, b)) {
      if (strcmp(pointer(f, a), pointer(f, b))) return 0;
    } else if (memcmp(field(f, a), field(f, b), field_bytes(f))) {
      return 0;
    }
  }
  return 1;
}

uint64_t yk__attrs_hash(const yk_op *op, const void *a, uint64_t seed) {
  a = yk__attrs_or_zero(op, a);
  if (!op->attrs) return op->attr_bytes ? yk__hash(a, op->attr_bytes, seed) : seed;
  for (const yk_attr *f = op->attrs; f->name; f++) {
    const char *s = f->kind == YK_STRING ? pointer(f, a) : NULL;
    seed = s ? yk__hash(s, strlen(s), seed) : yk__hash(field(f, a), field_bytes(f), seed);
  }
  return seed;
}
