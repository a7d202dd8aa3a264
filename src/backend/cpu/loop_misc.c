/*
 * loop_misc.c - kernels that fit nowhere else: check_numerics, shapes as data, product gradients, queues, nothing.
 *
 * shape, size and dim read descriptions only, so their values are known when the kernel is prepared.
 */
#include "loop_nn.h"

#include <math.h>
#include <string.h>

/* ---- check_numerics ------------------------------------------------------------------------------------------------ */

/* An exponent of all ones is an infinity or a NaN, whatever the type. */
static int not_finite(const void *p, uint8_t dtype, int64_t i) {
  switch (dtype) {
    case YK_F64: return !isfinite(((const double *)p)[i]);
    case YK_F32: return !isfinite(((const float *)p)[i]);
    case YK_F16: return (((const uint16_t *)p)[i] & 0x7c00u) == 0x7c00u;
    case YK_BF16: return (((const uint16_t *)p)[i] & 0x7f80u) == 0x7f80u;
    default: return 0;
  }
}

static double bad_value(const void *p, uint8_t dtype, int64_t i) {
  float f = 0;
  if (dtype == YK_F64) return ((const double *)p)[i];
  if (dtype == YK_F32) return (double)((const float *)p)[i];
  yk__loop_elem()->to_f32[dtype == YK_BF16](1, (const uint16_t *)p + i, NULL, NULL, &f, NULL);
  return (double)f;
}

static yk_code check_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_check_attrs *a = k->attrs;
  int64_t n = yk__cpu_count(&k->in[0]), first = -1, count = 0;
  uint8_t dtype = k->in[0].dtype;
  (void)workspace;
  for (int64_t i = 0; i < n; i++) {
    if (!not_finite(arg[0], dtype, i)) continue;
    if (count++ == 0) first = i;
  }
  if (count)
    return YK_CPU_FAIL(EINVAL, "%s: %lld of %lld elements are not finite, the first is element %lld: %g",
                       a && a->message ? a->message : "check_numerics", (long long)count, (long long)n, (long long)first,
                       bad_value(arg[0], dtype, first));
  if (arg[1] != arg[0] && n) yk__cpu_copy_bytes(arg[1], arg[0], (size_t)n * yk__cpu_dtype_bytes(dtype));
  return YK_OK;
}

yk_code yk__cpu_loop_check_numerics(yk_cpu_prepare *p) {
  YK_TRY(yk__cpu_want_plain(p));
  p->inplace = 1;
  p->k->run = check_run;
  p->k->impl = "plain:check_numerics";
  return YK_OK;
}

/* ---- shape, size, dim ---------------------------------------------------------------------------------------------- */

typedef struct known { uint32_t n; int64_t v[YK_MAX_RANK]; } known;

static yk_code known_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const known *s = k->state;
  (void)workspace;
  if (s->n) memcpy(arg[1], s->v, s->n * sizeof s->v[0]);
  return YK_OK;
}

yk_code yk__cpu_loop_shape(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const yk_axis_attrs *a = k->attrs;
  const yk_desc *x = &k->in[0];
  known *s = yk__cpu_state(p, sizeof *s);
  if (!s) return YK_ENOMEM;
  s->n = 1;
  if (strcmp(p->spec->op, "shape") == 0) {
    s->n = x->rank;
    memcpy(s->v, x->dim, x->rank * sizeof x->dim[0]);
  } else if (strcmp(p->spec->op, "dim") == 0) {
    s->v[0] = x->dim[yk__loop_axis(x, a ? a->axis : 0)];
  } else {
    s->v[0] = yk__cpu_count(x);
  }
  k->out[0].layout = YK_LAYOUT_PLAIN;
  k->run = known_run;
  k->impl = "plain:shape";
  return YK_OK;
}

/* ---- reduce_prod_grad: dx = dy * product of the others, exact where elements are zero --------------------------------- */

typedef struct prod_grad {
  yk_loop_body body;
  uint32_t rank, mask;                   /* mask: folded axes */
  int64_t groups, folded;
  int64_t dim[YK_MAX_RANK], stride[YK_MAX_RANK];
} prod_grad;
typedef struct prod_call { const prod_grad *s; int f64; const void *dy, *x; void *dx; } prod_call;

static double load(int f64, const void *p, int64_t i) { return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i]; }

/* Offset of element `index` over the dims that are folded (or kept). */
static int64_t offset(const prod_grad *s, int64_t index, uint32_t folded) {
  int64_t off = 0;
  for (uint32_t d = s->rank; d-- > 0;) {
    if ((s->mask >> d & 1u) != folded) continue;
    off += index % s->dim[d] * s->stride[d];
    index /= s->dim[d];
  }
  return off;
}

static void prod_groups(int64_t begin, int64_t end, void *arg) {
  const prod_call *c = arg;
  for (int64_t g = begin; g < end; g++) {
    int64_t base = offset(c->s, g, 0), zeros = 0;
    double product = 1;
    for (int64_t j = 0; j < c->s->folded; j++) {
      double x = load(c->f64, c->x, base + offset(c->s, j, 1));
      if (x == 0) zeros++;
      else product *= x;
    }
    for (int64_t j = 0; j < c->s->folded; j++) {
      int64_t at = base + offset(c->s, j, 1);
      double x = load(c->f64, c->x, at), others = zeros == 0 ? product / x : zeros == 1 && x == 0 ? product : 0;
      double dx = load(c->f64, c->dy, g) * others;
      if (c->f64) ((double *)c->dx)[at] = dx;
      else ((float *)c->dx)[at] = (float)dx;
    }
  }
}

static yk_code prod_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const prod_grad *s = k->state;
  prod_call c = { s, yk__loop_is_f64(k), arg[0], arg[1], arg[2] };
  (void)workspace;
  if (s->folded) yk__cpu_host->parallel_for(s->groups, 1 + L_GRAIN / 4 / s->folded, prod_groups, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_reduce_prod_grad(yk_cpu_prepare *p) {
  const yk_reduce_attrs *a = p->k->attrs;
  const yk_desc *x = &p->k->in[1];
  int64_t stride = 1;
  prod_grad *s;
  if (x->dtype == YK_I32 || x->dtype == YK_I64 || x->dtype == YK_U8) return YK_CPU_REFUSE("only floating point");
  YK_TRY(yk__loop_body(p, sizeof *s, prod_run, "plain:reduce_prod_grad", &s));
  s->rank = x->rank;
  for (uint32_t i = 0; a && i < a->naxes; i++) s->mask |= 1u << yk__loop_axis(x, a->axis[i]);
  if (!a || a->naxes == 0) s->mask = (1u << x->rank) - 1;
  s->groups = s->folded = 1;
  for (uint32_t d = x->rank; d-- > 0; stride *= x->dim[d]) {
    s->dim[d] = x->dim[d];
    s->stride[d] = stride;
    if (s->mask >> d & 1u) s->folded *= x->dim[d];
    else s->groups *= x->dim[d];
  }
  yk__loop_workspace(p, 0);
  return YK_OK;
}

/* ---- dequeue, no_op -------------------------------------------------------------------------------------------------- */

static yk_code dequeue_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_dequeue_attrs *a = k->attrs;
  (void)workspace;
  return a->source->next(a->source->self, a->rows, arg + k->nin);
}

yk_code yk__cpu_loop_dequeue(yk_cpu_prepare *p) {
  const yk_dequeue_attrs *a = p->k->attrs;
  YK_TRY(yk__cpu_want_plain(p));
  if (!a || !a->source || !a->source->next) return YK_CPU_REFUSE("a dequeue without a source");
  p->k->run = dequeue_run;
  p->k->impl = "plain:dequeue";
  return YK_OK;
}

static yk_code nothing(const yk_kernel *k, void *const *arg, void *workspace) {
  (void)k; (void)arg; (void)workspace;
  return YK_OK;
}

yk_code yk__cpu_loop_no_op(yk_cpu_prepare *p) {
  for (uint32_t i = 0; i < p->k->nout; i++) p->k->out[i].layout = YK_LAYOUT_PLAIN;
  p->k->run = nothing;
  p->k->impl = "plain:no_op";
  return YK_OK;
}
