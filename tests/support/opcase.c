/*
 * opcase.c - reads the text of a yk_case and makes values for its inputs. See opcase.h.
 */
#include "support/opcase.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/rng.h"

static const char *skip(const char *p) {
  while (isspace((unsigned char)*p)) p++;
  return p;
}

/* One "f32[4,7]" at *at; moves *at behind it. */
static yk_code read_one(const char **at, yk_dtype t, yk_desc *d, int *is_t) {
  const char *p = skip(*at);
  size_t n = strcspn(p, "[ ;");
  char name[8] = "";
  if (n == 0 || n >= sizeof name || p[n] != '[') return YK_FAIL(EINVAL, "expected a dtype and '[' at \"%s\"", p);
  memcpy(name, p, n);
  *is_t = !strcmp(name, "T");
  *d = (yk_desc){ .dtype = (uint8_t)(*is_t ? t : yk_dtype_parse(name)) };
  if (d->dtype == YK_NONE) return YK_FAIL(EINVAL, "\"%s\" is no dtype", name);
  for (p = skip(p + n + 1); *p != ']'; p = skip(p)) {
    char *end;
    if (d->rank == YK_MAX_RANK) return YK_FAIL(EINVAL, "more than %d dims before \"%s\"", YK_MAX_RANK, p);
    d->dim[d->rank++] = strtoll(p, &end, 10);
    if (end == p) return YK_FAIL(EINVAL, "expected a dim at \"%s\"", p);
    p = skip(end);
    if (*p == ',') p++;
    else if (*p != ']') return YK_FAIL(EINVAL, "expected ',' or ']' at \"%s\"", p);
  }
  *at = skip(p + 1);
  return YK_OK;
}

yk_code opcase_parse(const char *shapes, yk_dtype t, opcase *out) {
  opcase c = { 0 };
  const char *p = skip(shapes);
  while (*p) {
    if (c.n == OPCASE_MOST) return YK_FAIL(EINVAL, "more than %d inputs in \"%s\"", OPCASE_MOST, shapes);
    YK_TRY(read_one(&p, t, &c.in[c.n], &c.is_t[c.n]));
    c.n++;
    if (*p == ';') p = skip(p + 1);
    else if (*p) return YK_FAIL(EINVAL, "expected ';' at \"%s\" in \"%s\"", p, shapes);
  }
  *out = c;
  return YK_OK;
}

int opcase_has_t(const opcase *c) {
  int has = 0;
  for (uint16_t i = 0; i < c->n; i++) has |= c->is_t[i];
  return has;
}

double opcase_uniform(uint64_t seed, uint64_t index) {
  uint32_t w[4];
  yk__rng_block(seed, 99, 0, index, 0, w);
  return ((double)(w[0] >> 5) * 0x1p26 + (double)(w[1] >> 6)) * 0x1p-53;
}

void opcase_fill(const yk_case *c, yk_dtype t, uint64_t seed, unsigned input, double *out, int64_t n) {
  double lo = c->lo, hi = c->hi;
  if (lo == 0 && hi == 0) { lo = -1; hi = 1; }
  for (int64_t i = 0; i < n; i++) {
    double u = opcase_uniform(seed + input, (uint64_t)i);
    out[i] = lo + (hi - lo) * u;
    if (t == YK_BOOL) out[i] = u >= 0.5;
    else if (t == YK_I32 || t == YK_I64 || t == YK_U8) out[i] = nearbyint(out[i]);
    if (t == YK_U8 && out[i] < 0) out[i] = 0;
  }
}
