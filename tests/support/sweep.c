/*
 * sweep.c - see sweep.h.
 *
 * Every buffer lies between two guards. Outputs are filled with a pattern before each run, so an element that is not
 * written shows. Tolerances follow from the dtype's rounding and from how many terms an output element can have.
 */
#include "support/sweep.h"

#include <stdarg.h>
#include "backend/cpu/cpu.h"
#include "base/thread.h"
#include "device/device.h"
#include "op/registry.h"
#include "support/case.h"
#include "support/check.h"
#include "tensor/desc.h"

enum { GUARD = 256, GUARD_BYTE = 0x5A, MAX_VALUES = 32, SEEDS = 2 };

typedef struct value {
  yk_desc plain, laid;             /* as the case says; as the kernel wants it */
  double *want;                    /* inputs: what goes in; outputs: the reference */
  uint8_t *bytes, *first;          /* plain bytes now; of the first run */
  size_t plain_bytes;
  uint64_t laid_bytes;
  yk_mem whole, at;
  int has_data, is_written;        /* shape-only ports and handles have no data; variables are written */
} value;

typedef struct sweep {
  const sweep_device *d;
  const yk_op *op;
  const yk_case *c;
  const void *attrs;
  uint16_t nin, nout;
  value v[MAX_VALUES];             /* inputs, then outputs */
  yk_kernel *kernel;
  yk_kernel_info info;
  yk_mem workspace_whole, workspace;
  char *why;
  size_t why_bytes;
} sweep;

static sweep_verdict wrong(sweep *s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(s->why, s->why_bytes, fmt, ap);
  va_end(ap);
  return SWEEP_FAIL;
}
#define DEVICE(call)                                                                                     \
  do {                                                                                                   \
    if ((call) != YK_OK) return wrong(s, "%s: %s", #call, yk_error_message());                            \
  } while (0)
#define STEP(call)                                                                                       \
  do {                                                                                                   \
    sweep_verdict v_ = (call);                                                                           \
    if (v_ != SWEEP_OK) return v_;                                                                       \
  } while (0)

/* ---- devices -------------------------------------------------------------------------------------------- */

void sweep_open(const yk_driver *driver, int inline_stream, sweep_device *out) {
  yk_dev_config config = { .size = sizeof config };
  *out = (sweep_device){ .name = driver->name, .driver = driver, .only = -1 };
  CHECK_OK(driver->open(0, &config, &out->dev));
  CHECK_OK(driver->stream_open(out->dev, inline_stream ? YK_STREAM_INLINE : 0, &out->stream));
}

void sweep_close(sweep_device *d) {
  d->driver->stream_close(d->stream);
  d->driver->close(d->dev);
}

static yk_code prepare(const sweep_device *d, const yk_kernel_spec *spec, yk_kernel **out, yk_kernel_info *info) {
  if (d->only >= 0) return yk__cpu_kernel_prepare_only(d->dev, spec, d->only, out, info);
  return d->driver->kernel_prepare(d->dev, spec, out, info);
}

static sweep_verdict guarded_alloc(sweep *s, size_t bytes, yk_mem *whole, yk_mem *at) {
  const yk_driver *driver = s->d->driver;
  size_t padded = (bytes + GUARD - 1) / GUARD * GUARD;
  DEVICE(driver->mem_alloc(s->d->dev, YK_DEVICE_MEM, padded + 2 * GUARD, whole));
  DEVICE(driver->fill(s->d->stream, *whole, GUARD_BYTE));
  *at = (yk_mem){ whole->base, whole->offset + GUARD, bytes };
  return SWEEP_OK;
}

static sweep_verdict check_guard(sweep *s, yk_mem whole, yk_mem at, const char *what, int number) {
  const yk_driver *driver = s->d->driver;
  uint8_t *all = malloc(whole.bytes);
  size_t bad = whole.bytes;
  uint64_t failed;
  yk_code rc = driver->copy_out(s->d->stream, all, whole);
  if (rc == YK_OK) rc = driver->stream_sync(s->d->stream, &failed);
  for (size_t i = 0; i < whole.bytes && rc == YK_OK; i++)
    if ((i < GUARD || i >= GUARD + at.bytes) && all[i] != GUARD_BYTE && bad == whole.bytes) bad = i;
  free(all);
  if (rc != YK_OK) return wrong(s, "reading a guard: %s", yk_error_message());
  if (bad != whole.bytes) return wrong(s, "wrote outside %s %d: byte %lld of %zu", what, number, (long long)bad - GUARD,
                                            at.bytes);
  return SWEEP_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 11;
}

static void make_input(const sweep *s, value *v, uint64_t *state) {
  double lo = s->c->lo, hi = s->c->hi;
  int64_t n = yk__desc_count(&v->plain);
  int whole = v->plain.dtype == YK_I32 || v->plain.dtype == YK_I64 || v->plain.dtype == YK_U8 || v->plain.dtype == YK_BOOL;
  if (lo == 0 && hi == 0) {
    lo = -1;
    hi = 1;
  }
  for (int64_t i = 0; i < n; i++) {
    double u = (double)(int64_t)next_random(state) * 0x1p-53;
    v->want[i] = whole ? ceil(lo) + floor(u * (floor(hi) - ceil(lo) + 1)) : lo + (hi - lo) * u;
    if (v->plain.dtype == YK_BOOL) v->want[i] = (double)(int)(next_random(state) >> 20 & 1);
  }
  yk__from_double((yk_dtype)v->plain.dtype, v->want, v->bytes, n);
  yk__to_double((yk_dtype)v->plain.dtype, v->bytes, v->want, n);        /* what the device will see */
}

static void value_init(value *v, const yk_desc *d, int has_data, int is_written) {
  size_t n = (size_t)yk__desc_count(d);
  *v = (value){ .plain = *d, .laid = *d, .has_data = has_data, .is_written = is_written };
  v->plain_bytes = n * yk_dtype_bytes((yk_dtype)d->dtype);
  v->want = malloc((n + 1) * sizeof(double));
  v->bytes = malloc(v->plain_bytes + 1);
  v->first = malloc(v->plain_bytes + 1);
}

static sweep_verdict describe(sweep *s, yk_dtype t) {
  yk_desc in[CASE_MAX_INPUTS], out[MAX_VALUES - CASE_MAX_INPUTS] = { 0 };
  uint16_t nin;
  if (!case_parse(s->c->shapes, t, in, &nin)) return wrong(s, "the case does not parse");
  s->attrs = yk__attrs_or_zero(s->op, s->c->attrs);
  uint16_t nout = yk__op_nout(s->op, s->attrs);
  if (nout > MAX_VALUES - CASE_MAX_INPUTS) return wrong(s, "%u outputs", nout);
  DEVICE(yk__op_infer(s->op, s->attrs, in, nin, out, nout));
  for (uint16_t i = 0; i < nin; i++) {
    const yk_port *p = yk__op_in_port(s->op, s->attrs, nin, i);
    value_init(&s->v[i], &in[i], !(p->flags & YK_PORT_SHAPE), p->flags & YK_PORT_WRITE);
  }
  for (uint16_t i = 0; i < nout; i++) value_init(&s->v[nin + i], &out[i], out[i].dtype != YK_NONE, 0);
  s->nin = nin;
  s->nout = nout;
  return SWEEP_OK;
}

/* ---- the reference ----------------------------------------------------------------------------------------- */

/* Fills want of the outputs, and of written inputs what they hold afterwards (bytes keep what they held before). */
static sweep_verdict reference(sweep *s) {
  const double *in[MAX_VALUES];
  double *out[MAX_VALUES];
  yk_desc din[MAX_VALUES], dout[MAX_VALUES];
  yk_ref r = { .in = in, .out = out, .din = din, .dout = dout, .nin = s->nin, .nout = s->nout, .attrs = s->attrs,
               .host = &yk__host };
  for (uint16_t i = 0; i < s->nin; i++) {
    in[i] = s->v[i].has_data ? s->v[i].want : NULL;
    din[i] = s->v[i].plain;
  }
  for (uint16_t i = 0; i < s->nout; i++) {
    out[i] = s->v[s->nin + i].want;
    dout[i] = s->v[s->nin + i].plain;
  }
  DEVICE(s->op->ref(&r));
  return SWEEP_OK;
}

/* ---- one run --------------------------------------------------------------------------------------------------- */

static sweep_verdict reorder(sweep *s, yk_desc from, yk_mem src, yk_desc to, yk_mem dst) {
  const yk_driver *driver = s->d->driver;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "reorder", .op_version = 1, .nin = 1, .nout = 1, .in = &from, .out = &to };
  yk_kernel_info info = { .size = sizeof info };
  yk_mem arg[2] = { src, dst }, workspace = { 0 };
  yk_kernel *k;
  uint64_t failed;
  DEVICE(driver->kernel_prepare(s->d->dev, &spec, &k, &info));
  if (info.workspace) DEVICE(driver->mem_alloc(s->d->dev, YK_DEVICE_MEM, info.workspace, &workspace));
  DEVICE(driver->kernel_launch(k, s->d->stream, arg, 2, workspace));
  DEVICE(driver->stream_sync(s->d->stream, &failed));
  if (info.workspace) driver->mem_free(s->d->dev, workspace);
  driver->kernel_free(k);
  return SWEEP_OK;
}

static sweep_verdict upload(sweep *s, value *v, yk_mem to) {
  const yk_driver *driver = s->d->driver;
  uint64_t failed;
  if (v->plain_bytes == 0) return SWEEP_OK;
  if (v->laid.layout == YK_LAYOUT_PLAIN) {
    DEVICE(driver->copy_in(s->d->stream, to, v->bytes));
  } else {
    yk_mem tmp;
    DEVICE(driver->mem_alloc(s->d->dev, YK_DEVICE_MEM, v->plain_bytes, &tmp));
    DEVICE(driver->copy_in(s->d->stream, tmp, v->bytes));
    STEP(reorder(s, v->plain, tmp, v->laid, to));
    driver->mem_free(s->d->dev, tmp);
  }
  DEVICE(driver->stream_sync(s->d->stream, &failed));
  return SWEEP_OK;
}

static sweep_verdict download(sweep *s, value *v, yk_mem from, uint8_t *to) {
  const yk_driver *driver = s->d->driver;
  uint64_t failed;
  if (v->plain_bytes == 0) return SWEEP_OK;
  if (v->laid.layout == YK_LAYOUT_PLAIN) {
    DEVICE(driver->copy_out(s->d->stream, to, from));
  } else {
    yk_mem tmp;
    DEVICE(driver->mem_alloc(s->d->dev, YK_DEVICE_MEM, v->plain_bytes, &tmp));
    STEP(reorder(s, v->laid, from, v->plain, tmp));
    DEVICE(driver->copy_out(s->d->stream, to, tmp));
    DEVICE(driver->stream_sync(s->d->stream, &failed));
    driver->mem_free(s->d->dev, tmp);
  }
  DEVICE(driver->stream_sync(s->d->stream, &failed));
  return SWEEP_OK;
}

/* Upload, launch, check guards. overlay >= 0: out[0] shares the memory of that input. */
static sweep_verdict launch(sweep *s, uint8_t pattern, int overlay) {
  const yk_driver *driver = s->d->driver;
  yk_mem arg[MAX_VALUES];
  uint64_t failed;
  uint32_t n = (uint32_t)s->nin + s->nout;
  for (uint32_t i = 0; i < n; i++) {
    value *v = &s->v[i];
    arg[i] = (yk_mem){ 0 };
    if (!v->has_data) continue;
    arg[i] = v->at;
    if (i < s->nin) STEP(upload(s, v, v->at));
    else if (v->laid_bytes) DEVICE(driver->fill(s->d->stream, v->at, pattern));
  }
  if (overlay >= 0) arg[s->nin] = s->v[overlay].at;
  if (s->info.workspace) DEVICE(driver->fill(s->d->stream, s->workspace, pattern));
  DEVICE(driver->kernel_launch(s->kernel, s->d->stream, arg, n, s->workspace));
  DEVICE(driver->stream_sync(s->d->stream, &failed));
  for (uint32_t i = 0; i < n; i++) {
    const value *v = &s->v[i];
    if (v->has_data) STEP(check_guard(s, v->whole, v->at, i < s->nin ? "input" : "output", (int)(i < s->nin ? i : i - s->nin)));
  }
  if (s->info.workspace) STEP(check_guard(s, s->workspace_whole, s->workspace, "the workspace", 0));
  return SWEEP_OK;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

static double largest(const value *v) {
  int64_t n = yk__desc_count(&v->plain);
  double m = 0;
  for (int64_t i = 0; i < n; i++)
    if (isfinite(v->want[i]) && fabs(v->want[i]) > m) m = fabs(v->want[i]);
  return m;
}

typedef struct tolerance { double relative, absolute; } tolerance;

/*
 * One rounding to the dtype, relative; and absolutely, what `terms` roundings of the type computed in (f32 or f64) may add up to
 * for values as large as those in sight. Terms: input elements an output element may depend on.
 */
static tolerance tolerance_of(const sweep *s, const value *out) {
  static const double unit[YK_NDTYPES] = { [YK_F32] = 0x1p-24, [YK_F64] = 0x1p-53, [YK_F16] = 0x1p-11, [YK_BF16] = 0x1p-8 };
  double u = unit[out->plain.dtype], compute = out->plain.dtype == YK_F64 ? 0x1p-53 : 0x1p-24, scale = largest(out), terms = 1;
  int64_t n = yk__desc_count(&out->plain);
  for (uint16_t i = 0; i < s->nin; i++) {
    double count = (double)yk__desc_count(&s->v[i].plain) / (double)(n ? n : 1), m = s->v[i].has_data ? largest(&s->v[i]) : 0;
    if (count > terms) terms = count;
    if (m > scale) scale = m;
  }
  tolerance t = { 1.01 * u + 8 * compute, 8 * compute * scale * (1 + sqrt(terms)) };
  if (s->c->rtol > t.relative) t.relative = s->c->rtol;
  if (out->plain.dtype == YK_F16) t.absolute += 0x1p-24;
  return t;
}

static sweep_verdict compare(sweep *s, const value *v, const char *what, int number, uint64_t *values) {
  int64_t n = yk__desc_count(&v->plain);
  double *got = malloc(((size_t)n + 1) * sizeof *got), *want = malloc(((size_t)n + 1) * sizeof *want);
  int real = YK_FLOATS >> v->plain.dtype & 1u;
  tolerance t = tolerance_of(s, v);
  sweep_verdict verdict = SWEEP_OK;
  yk__to_double((yk_dtype)v->plain.dtype, v->bytes, got, n);
  memcpy(want, v->want, (size_t)n * sizeof *want);
  if (!real) {                                             /* as the dtype holds it */
    uint8_t *bytes = malloc(v->plain_bytes + 1);
    yk__from_double((yk_dtype)v->plain.dtype, v->want, bytes, n);
    yk__to_double((yk_dtype)v->plain.dtype, bytes, want, n);
    free(bytes);
  }
  for (int64_t i = 0; i < n && verdict == SWEEP_OK; i++) {
    double allowed = real && isfinite(want[i]) ? t.relative * fabs(want[i]) + t.absolute : 0;
    int same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) || fabs(got[i] - want[i]) <= allowed;
    if (!same)
      verdict = wrong(s, "%s %d, element %lld of %lld: got %.9g, expected %.9g, allowed difference %.3g", what, number,
                      (long long)i, (long long)n, got[i], want[i], allowed);
  }
  free(got);
  free(want);
  *values += (uint64_t)n;
  return verdict;
}

/* Equal as numbers: a -0 equals 0. */
static int same_values(uint8_t dtype, const uint8_t *a, const uint8_t *b, size_t bytes) {
  size_t each = yk_dtype_bytes((yk_dtype)dtype);
  for (size_t i = 0; i < bytes; i += each) {
    double x, y;
    yk__to_double((yk_dtype)dtype, a + i, &x, 1);
    yk__to_double((yk_dtype)dtype, b + i, &y, 1);
    if (!(x == y || (isnan(x) && isnan(y)))) return 0;
  }
  return 1;
}

/* Padding of a private layout must be zero: the plain value put into that layout again gives the same buffer. */
static sweep_verdict check_padding(sweep *s, value *v) {
  const yk_driver *driver = s->d->driver;
  uint8_t *is = malloc(v->laid_bytes + 1), *should = malloc(v->laid_bytes + 1), *before = v->bytes;
  uint64_t failed;
  yk_mem tmp;
  DEVICE(driver->mem_alloc(s->d->dev, YK_DEVICE_MEM, v->laid_bytes, &tmp));
  v->bytes = v->first;
  sweep_verdict verdict = upload(s, v, tmp);
  v->bytes = before;
  if (verdict == SWEEP_OK) {
    DEVICE(driver->copy_out(s->d->stream, should, tmp));
    DEVICE(driver->copy_out(s->d->stream, is, v->at));
    DEVICE(driver->stream_sync(s->d->stream, &failed));
    if (!same_values(v->plain.dtype, is, should, v->laid_bytes))
      verdict = wrong(s, "padding of layout %u is not zero", (unsigned)v->laid.layout);
  }
  driver->mem_free(s->d->dev, tmp);
  free(is);
  free(should);
  return verdict;
}

/* Values after the first run of a seed: outputs and variables against the reference, other inputs as they were. */
static sweep_verdict check_first(sweep *s, uint64_t *values) {
  for (uint32_t i = 0; i < (uint32_t)s->nin + s->nout; i++) {
    value *v = &s->v[i];
    if (!v->has_data) continue;
    STEP(download(s, v, v->at, v->first));
    uint8_t *before = v->bytes;
    if (i < s->nin && !v->is_written) {
      if (memcmp(v->first, v->bytes, v->plain_bytes) != 0) return wrong(s, "input %u was overwritten", (unsigned)i);
      continue;
    }
    v->bytes = v->first;
    sweep_verdict verdict = compare(s, v, i < s->nin ? "variable" : "output", (int)(i < s->nin ? i : i - s->nin), values);
    v->bytes = before;
    int real = YK_FLOATS >> v->plain.dtype & 1u;            /* nobody computes with an index's padding */
    if (verdict == SWEEP_OK && real && v->laid.layout != YK_LAYOUT_PLAIN && v->plain_bytes) verdict = check_padding(s, v);
    if (verdict != SWEEP_OK) return verdict;
  }
  return SWEEP_OK;
}

/* The same bits as in the first run? */
static sweep_verdict check_again(sweep *s, int overlay) {
  for (uint32_t i = 0; i < (uint32_t)s->nin + s->nout; i++) {
    value *v = &s->v[i];
    if (!v->has_data || (i < s->nin && !v->is_written)) continue;
    uint8_t *now = malloc(v->plain_bytes + 1);
    sweep_verdict verdict = download(s, v, i == s->nin && overlay >= 0 ? s->v[overlay].at : v->at, now);
    if (verdict == SWEEP_OK && memcmp(now, v->first, v->plain_bytes) != 0)
      verdict = overlay >= 0 ? wrong(s, "in place of input %d output 0 has other bits", overlay)
                             : wrong(s, "value %u has other bits in a second run", (unsigned)i);
    free(now);
    STEP(verdict);
  }
  return SWEEP_OK;
}

/* ---- a case -------------------------------------------------------------------------------------------------------- */

static sweep_verdict prepare_kernel(sweep *s) {
  yk_desc in[MAX_VALUES], out[MAX_VALUES];
  yk_kernel_spec spec = { .size = sizeof spec, .op = s->op->name, .op_version = s->op->version, .nin = s->nin, .nout = s->nout,
                          .attrs = s->attrs, .in = in, .out = out };
  for (uint16_t i = 0; i < s->nin; i++) {
    in[i] = s->v[i].plain;
    int computed = (YK_FLOATS >> in[i].dtype & 1u) && in[i].dtype != YK_F64;
    if (computed && in[i].rank == 4 && yk__desc_count(&in[i])) in[i].layout = s->d->offer;
  }
  for (uint16_t i = 0; i < s->nout; i++) {
    out[i] = s->v[s->nin + i].plain;
    out[i].layout = YK_LAYOUT_ANY;
  }
  s->info.size = sizeof s->info;
  yk_code rc = prepare(s->d, &spec, &s->kernel, &s->info);
  if (rc != YK_OK) {
    wrong(s, "refused: %s", yk_error_message());
    yk_error_clear();
    return rc == YK_EUNSUPPORTED ? SWEEP_REFUSED : SWEEP_FAIL;
  }
  for (uint32_t i = 0; i < (uint32_t)s->nin + s->nout; i++) {
    value *v = &s->v[i];
    v->laid = i < s->nin ? in[i] : out[i - s->nin];
    if (!v->has_data) continue;
    if (v->laid.layout == YK_LAYOUT_ANY) return wrong(s, "value %u was left without a layout", (unsigned)i);
    DEVICE(s->d->driver->desc_bytes(s->d->dev, &v->laid, &v->laid_bytes));
    STEP(guarded_alloc(s, (size_t)v->laid_bytes, &v->whole, &v->at));
  }
  if (s->info.workspace) STEP(guarded_alloc(s, (size_t)s->info.workspace, &s->workspace_whole, &s->workspace));
  return SWEEP_OK;
}

static sweep_verdict run_seed(sweep *s, uint64_t seed, uint64_t *values) {
  for (uint16_t i = 0; i < s->nin; i++) make_input(s, &s->v[i], &seed);
  STEP(reference(s));
  if (s->d->team) yk__team_set(s->d->team);
  STEP(launch(s, 0x11, -1));
  STEP(check_first(s, values));
  if (s->d->team_again) yk__team_set(s->d->team_again);
  STEP(launch(s, 0xEE, -1));
  STEP(check_again(s, -1));
  for (int i = 0; i < s->nin && i < 32; i++) {
    const value *v = &s->v[i], *y = &s->v[s->nin];
    if (!(s->info.inplace >> i & 1u) || !v->has_data || !y->has_data) continue;
    if (v->laid_bytes != y->laid_bytes) return wrong(s, "in place of input %d, which has another size than output 0", i);
    STEP(launch(s, 0x77, i));
    STEP(check_again(s, i));
  }
  return SWEEP_OK;
}

static void sweep_free(sweep *s) {
  const yk_driver *driver = s->d->driver;
  for (uint32_t i = 0; i < (uint32_t)s->nin + s->nout; i++) {
    value *v = &s->v[i];
    free(v->want);
    free(v->bytes);
    free(v->first);
    if (v->whole.base) driver->mem_free(s->d->dev, v->whole);
  }
  if (s->workspace_whole.base) driver->mem_free(s->d->dev, s->workspace_whole);
  driver->kernel_free(s->kernel);
}

sweep_verdict sweep_case(const sweep_device *d, const yk_op *op, const yk_case *c, yk_dtype t, char *why, size_t why_bytes,
                         uint64_t *values) {
  sweep *s = calloc(1, sizeof *s);
  *s = (sweep){ .d = d, .op = op, .c = c, .why = why, .why_bytes = why_bytes };
  why[0] = '\0';
  sweep_verdict verdict = describe(s, t);
  if (verdict == SWEEP_OK) verdict = prepare_kernel(s);
  for (uint64_t seed = 1; seed <= SEEDS && verdict == SWEEP_OK; seed++) verdict = run_seed(s, seed, values);
  sweep_free(s);
  free(s);
  return verdict;
}

void sweep_op(const sweep_device *d, const yk_op *op, const yk_case *cases, sweep_total *total) {
  uint32_t seen = 0;
  for (const yk_case *c = cases; c && c->shapes; c++) {
    uint32_t set = case_dtypes(op, c), any = set ? set : YK_T(YK_NONE);
    for (int t = YK_NONE; t < YK_NDTYPES; t++) {
      char why[1024];
      if (!(any >> t & 1u)) continue;
      sweep_verdict verdict = sweep_case(d, op, c, (yk_dtype)t, why, sizeof why, &total->values);
      total->cases += verdict != SWEEP_REFUSED;
      total->refused += verdict == SWEEP_REFUSED;
      if (verdict != SWEEP_REFUSED && !(seen >> t & 1u)) total->dtypes++;
      if (verdict != SWEEP_REFUSED) seen |= 1u << t;
      if (verdict == SWEEP_OK || (verdict == SWEEP_REFUSED && d->only >= 0)) continue;
      total->failed++;
      print_message("%s: %s, case \"%s\" (number %d), T = %s: %s\n", d->name, op->name, c->shapes, (int)(c - cases),
                    yk_dtype_name((yk_dtype)t), why);
    }
  }
  total->ops += seen != 0;
}
