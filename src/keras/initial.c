/*
 * initial.c - first values of weights, worked out on the host.
 *
 * Formulae are those of Keras 2.2.4 and later (semantics of VarianceScaling: the deviation of a truncated normal is made up for the
 * cut). Each number depends on the seed and its place alone, so that a weight is the same on any device.
 */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/rng.h"
#include "keras/keras.h"
#include "tensor/desc.h"

/* Deviation of a standard normal that is cut off at two deviations. */
#define CUT_DEVIATION .87962566103423978
#define TWO_PI 6.283185307179586

typedef struct named { const char *name; yk_initializer init; } named;
#define SCALED(s, f, n) { .kind = YK_INITIALIZER_SCALED, .a = (s), .fan = (f), .normal = (n) }
static const named NAMED[] = {
  { "zeros", { .kind = YK_INITIALIZER_ZEROS } },
  { "ones", { .kind = YK_INITIALIZER_ONES } },
  { "constant", { .kind = YK_INITIALIZER_CONSTANT } },
  { "random_uniform", { .kind = YK_INITIALIZER_UNIFORM, .a = -.05, .b = .05 } },
  { "random_normal", { .kind = YK_INITIALIZER_NORMAL, .b = .05 } },
  { "truncated_normal", { .kind = YK_INITIALIZER_TRUNCATED, .b = .05 } },
  { "orthogonal", { .kind = YK_INITIALIZER_ORTHOGONAL, .a = 1 } },
  { "identity", { .kind = YK_INITIALIZER_IDENTITY, .a = 1 } },
  { "glorot_uniform", SCALED(1, YK_FAN_AVG, false) },
  { "glorot_normal", SCALED(1, YK_FAN_AVG, true) },
  { "he_uniform", SCALED(2, YK_FAN_IN, false) },
  { "he_normal", SCALED(2, YK_FAN_IN, true) },
  { "lecun_uniform", SCALED(1, YK_FAN_IN, false) },
  { "lecun_normal", SCALED(1, YK_FAN_IN, true) },
};

bool yk__initializer_named(const char *name, yk_initializer *out) {
  for (size_t i = 0; i < sizeof NAMED / sizeof NAMED[0]; i++)
    if (strcmp(NAMED[i].name, name) == 0) return *out = NAMED[i].init, true;
  return false;
}

/* ---- draws ------------------------------------------------------------------------------------------------------------- */

typedef struct drawer { uint64_t seed, index; uint32_t word[4]; unsigned left; } drawer;

/* In (0, 1), 32 bits of it random. */
static double next_uniform(drawer *d) {
  if (d->left == 0) {
    yk__rng_block(d->seed, 0x6b65726173, 0, d->index++, 0, d->word);
    d->left = 4;
  }
  return ((double)d->word[--d->left] + 0.5) * 0x1p-32;
}

static double next_normal(drawer *d) {
  double r = sqrt(-2 * log(next_uniform(d)));
  return r * cos(TWO_PI * next_uniform(d));
}

static double next_cut(drawer *d) {
  double z = next_normal(d);
  while (fabs(z) > 2) z = next_normal(d);
  return z;
}

/* ---- kinds -------------------------------------------------------------------------------------------------------------- */

static void fans(const yk_desc *d, double *in, double *out) {
  double receptive = 1, all = 1;
  for (int i = 0; i < d->rank; i++) all *= (double)d->dim[i];
  for (int i = 0; i < d->rank - 2; i++) receptive *= (double)d->dim[i];
  *in = *out = d->rank < 2 ? sqrt(all) : 0;
  if (d->rank < 2) return;
  *in = receptive * (double)d->dim[d->rank - 2];
  *out = receptive * (double)d->dim[d->rank - 1];
}

static void scaled(const yk_initializer *init, const yk_desc *desc, drawer *d, double *x, int64_t n) {
  double in, out;
  fans(desc, &in, &out);
  double fan = init->fan == YK_FAN_IN ? in : init->fan == YK_FAN_OUT ? out : (in + out) / 2, scale = init->a / fmax(1, fan);
  double deviation = sqrt(scale) / CUT_DEVIATION, limit = sqrt(3 * scale);
  for (int64_t i = 0; i < n; i++) x[i] = init->normal ? deviation * next_cut(d) : limit * (2 * next_uniform(d) - 1);
}

/* Rows of a [rows, cols] matrix, rows <= cols, made orthonormal one after the other (modified Gram-Schmidt, twice). */
static void orthonormal(double *a, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++) {
    double *x = a + r * cols, norm = 0;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t p = 0; p < r; p++) {
        double dot = 0;
        for (int64_t c = 0; c < cols; c++) dot += x[c] * a[p * cols + c];
        for (int64_t c = 0; c < cols; c++) x[c] -= dot * a[p * cols + c];
      }
    for (int64_t c = 0; c < cols; c++) norm += x[c] * x[c];
    norm = 1 / sqrt(norm);
    for (int64_t c = 0; c < cols; c++) x[c] *= norm;
  }
}

/* All dims but the last one are rows; the shorter side is orthonormal. */
static yk_code orthogonal(const yk_initializer *init, const yk_desc *desc, drawer *d, double *x, int64_t n) {
  int64_t cols = desc->rank > 0 ? desc->dim[desc->rank - 1] : 1, rows = cols > 0 ? n / cols : 0;
  bool wide = rows <= cols;
  int64_t m = wide ? rows : cols, k = wide ? cols : rows;
  double *a = yk__alloc((size_t)(n + 1) * sizeof *a);
  if (a == NULL) return YK_ENOMEM;
  for (int64_t i = 0; i < n; i++) a[i] = next_normal(d);
  orthonormal(a, m, k);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++) x[r * cols + c] = init->a * (wide ? a[r * k + c] : a[c * k + r]);
  yk__free(a);
  return YK_OK;
}

static yk_code fill(const yk_initializer *init, const yk_desc *desc, drawer *d, double *x, int64_t n) {
  int64_t cols = desc->rank > 0 ? desc->dim[desc->rank - 1] : 1;
  switch (init->kind) {
    case YK_INITIALIZER_SCALED: return scaled(init, desc, d, x, n), YK_OK;
    case YK_INITIALIZER_ORTHOGONAL: return orthogonal(init, desc, d, x, n);
    default: break;
  }
  for (int64_t i = 0; i < n; i++) switch (init->kind) {
      case YK_INITIALIZER_ONES: x[i] = 1; break;
      case YK_INITIALIZER_CONSTANT: x[i] = init->a; break;
      case YK_INITIALIZER_UNIFORM: x[i] = init->a + (init->b - init->a) * next_uniform(d); break;
      case YK_INITIALIZER_NORMAL: x[i] = init->a + init->b * next_normal(d); break;
      case YK_INITIALIZER_TRUNCATED: x[i] = init->a + init->b * next_cut(d); break;
      case YK_INITIALIZER_IDENTITY: x[i] = i / cols == i % cols ? init->a : 0; break;
      default: x[i] = 0;
    }
  return YK_OK;
}

yk_code yk__first_value(const yk_initializer *init, const yk_desc *desc, uint64_t seed, yk_tensor **out) {
  drawer d = { .seed = seed };
  yk_tensor *t = NULL;
  if (init->kind == YK_INITIALIZER_IDENTITY && desc->rank != 2)
    return YK_FAIL(EINVAL, "an identity has 2 dimensions, not %u", desc->rank);
  YK_TRY(yk_tensor_new((yk_dtype)desc->dtype, yk__desc_shape(desc), &t));
  int64_t n = yk_tensor_count(t);
  double *x = yk__alloc((size_t)(n + 1) * sizeof *x);
  yk_code rc = x != NULL ? fill(init, desc, &d, x, n) : YK_ENOMEM;
  if (rc == YK_OK) yk__from_double((yk_dtype)desc->dtype, x, yk_tensor_data(t), n);
  yk__free(x);
  if (rc == YK_OK) *out = t;
  else yk_tensor_free(t);
  return rc;
}
