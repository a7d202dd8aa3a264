/*
 * accumulator.c - gradients added up on the host until enough are there.
 *
 * A sum of the gradients' shape is all it holds, so adding one is a loop and no allocation. A sparse accumulator has the same
 * sum, and for each row how many gradients had it: memory as for the variable, and no table to search.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "tensor/desc.h"
#include "train/accumulator.h"
#include "train/options.h"
#include "train/waits.h"

typedef struct taker { struct taker *next; } taker;

struct yk_accumulator {
  yk_accumulator_options o;
  char *name;
  yk_dtype dtype, wide;             /* of gradients; of the sum */
  int64_t count, rows, row;         /* elements; of a sparse one: rows, elements of one */
  yk_mutex lock;
  yk_cond changed;
  void *sum;                        /* [count] */
  int64_t *had;                     /* [rows] gradients that had the row */
  int64_t *seen;                    /* [rows] number of the last of them: a row named twice counts once */
  int64_t serial;                   /* of gradients */
  int64_t touched;                  /* rows with had > 0 */
  int64_t gradients, step, dropped;
  bool cancelled, complete;         /* no take succeeds; no gradient comes any more */
  taker *first, *last;
};

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

enum { CHUNK = 256 };

/* sum += x, n elements from element `at` of the sum on. */
static void add(yk_accumulator *a, int64_t at, const void *x, int64_t from, int64_t n) {
  if (a->dtype == YK_F32) {
    float *to = (float *)a->sum + at;
    const float *in = (const float *)x + from;
    for (int64_t i = 0; i < n; i++) to[i] += in[i];
  } else if (a->dtype == YK_F64) {
    double *to = (double *)a->sum + at;
    const double *in = (const double *)x + from;
    for (int64_t i = 0; i < n; i++) to[i] += in[i];
  } else {
    double part[CHUNK];
    float *to = (float *)a->sum + at;
    const uint16_t *in = (const uint16_t *)x + from;
    for (int64_t i = 0; i < n; i += CHUNK) {
      int64_t k = n - i < CHUNK ? n - i : CHUNK;
      yk__to_double(a->dtype, in + i, part, k);
      for (int64_t j = 0; j < k; j++) to[i + j] += (float)part[j];
    }
  }
}

/* out = sum / by for n elements, and the sum is empty again. */
static void move_out(yk_accumulator *a, int64_t at, double by, void *out, int64_t to, int64_t n) {
  if (a->dtype == YK_F32) {
    float *sum = (float *)a->sum + at, *x = (float *)out + to, d = (float)by;
    for (int64_t i = 0; i < n; i++) { x[i] = sum[i] / d; sum[i] = 0; }
  } else if (a->dtype == YK_F64) {
    double *sum = (double *)a->sum + at, *x = (double *)out + to;
    for (int64_t i = 0; i < n; i++) { x[i] = sum[i] / by; sum[i] = 0; }
  } else {
    double part[CHUNK];
    float *sum = (float *)a->sum + at;
    uint16_t *x = (uint16_t *)out + to;
    for (int64_t i = 0; i < n; i += CHUNK) {
      int64_t k = n - i < CHUNK ? n - i : CHUNK;
      for (int64_t j = 0; j < k; j++) { part[j] = sum[i + j] / by; sum[i + j] = 0; }
      yk__from_double(a->dtype, part, x + i, k);
    }
  }
}

/* ---- open and free ----------------------------------------------------------------------------------------------- */

static yk_code check(const yk_accumulator_options *o) {
  yk_shape s = yk__desc_shape(&o->desc);
  yk_dtype t = (yk_dtype)o->desc.dtype;
  const char *name = o->name ? o->name : "accumulator";
  if (t != YK_F32 && t != YK_F64 && t != YK_F16 && t != YK_BF16)
    return YK_FAIL(EINVAL, "accumulator '%s': gradients of dtype %s; expected f32, f64, f16 or bf16", name, yk_dtype_name(t));
  yk_code rc = yk__shape_check(t, &s, 0);
  if (rc != YK_OK) return yk__fail_prefix(rc, "accumulator '%s'", name);
  if (o->sparse && (s.rank < 1 || s.dim[0] < 1)) return YK_FAIL(EINVAL, "accumulator '%s' is sparse, but has no rows", name);
  if ((unsigned)o->reduction > YK_REDUCE_SUM)
    return YK_FAIL(EINVAL, "accumulator '%s': no such reduction: %d", name, (int)o->reduction);
  if (o->timeout_ms < 0) return YK_FAIL(EINVAL, "accumulator '%s' cannot wait %" PRId64 " ms", name, o->timeout_ms);
  return YK_OK;
}

static bool get_memory(yk_accumulator *a) {
  a->name = yk__strdup(a->o.name ? a->o.name : "accumulator");
  a->sum = a->name ? yk__calloc((size_t)a->count + 1, yk_dtype_bytes(a->wide)) : NULL;
  if (a->sum == NULL || !a->o.sparse) return a->sum != NULL;
  a->had = yk__calloc((size_t)a->rows, sizeof *a->had);
  a->seen = a->had ? yk__calloc((size_t)a->rows, sizeof *a->seen) : NULL;
  return a->seen != NULL;
}

yk_code yk_accumulator_open(const yk_accumulator_options *options, yk_accumulator **out) {
  yk_accumulator_options o = { 0 };
  YK_TRY(yk__options_take(&o, sizeof o, options, "yk_accumulator_options"));
  YK_TRY(check(&o));
  if (out == NULL) return YK_FAIL(EINVAL, "yk_accumulator_open: NULL output");
  yk_accumulator *a = yk__calloc(1, sizeof *a);
  if (a == NULL) return YK_ENOMEM;
  a->o = o;
  a->o.timeout_ms = yk__limit_ms(o.timeout_ms);
  a->dtype = (yk_dtype)o.desc.dtype;
  a->wide = a->dtype == YK_F64 ? YK_F64 : YK_F32;
  a->count = yk__desc_count(&o.desc);
  a->rows = o.sparse ? o.desc.dim[0] : 1;
  a->row = a->count / a->rows;
  yk__mutex_init(&a->lock);
  yk__cond_init(&a->changed);
  if (!get_memory(a)) {
    yk_accumulator_free(a);
    return YK_ENOMEM;
  }
  *out = a;
  return YK_OK;
}

void yk_accumulator_free(yk_accumulator *a) {
  if (a == NULL) return;
  yk__mutex_free(&a->lock);
  yk__cond_free(&a->changed);
  yk__free(a->sum);
  yk__free(a->had);
  yk__free(a->seen);
  yk__free(a->name);
  yk__free(a);
}

/* ---- apply ------------------------------------------------------------------------------------------------------- */

/* EINVAL unless the tensor has the dtype and, behind `skip` dims of it and of ours, the shape of a gradient. */
static yk_code check_like(const yk_accumulator *a, const yk_tensor *t, const char *what, int skip) {
  char x[YK__DESC_TEXT], y[YK__DESC_TEXT];
  yk_desc want = a->o.desc;
  if (t == NULL) return YK_FAIL(EINVAL, "accumulator '%s': %s is NULL", a->name, what);
  const yk_desc *d = yk_tensor_desc(t);
  if (skip > 0) want.dim[0] = -1;
  bool fits = d->dtype == want.dtype && d->rank == want.rank;
  for (int i = skip; fits && i < want.rank; i++) fits = d->dim[i] == want.dim[i];
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "accumulator '%s': %s is %s, expected %s", a->name, what, yk__desc_text(d, x, sizeof x),
                 yk__desc_text(&want, y, sizeof y));
}

static yk_code check_kind(const yk_accumulator *a, bool sparse, const char *what) {
  if (a == NULL) return YK_FAIL(EINVAL, "%s needs an accumulator", what);
  if (a->o.sparse == sparse) return YK_OK;
  return YK_FAIL(EINVAL, "accumulator '%s' is %s: %s is of %s ones", a->name, sparse ? "dense" : "sparse", what, sparse ? "sparse" : "dense");
}

/* With the lock held: is a gradient of that step accepted? */
static bool accept(yk_accumulator *a, int64_t local_step) {
  if (local_step >= a->step) {
    a->gradients++;
    a->serial++;
    yk__cond_broadcast(&a->changed);
    return true;
  }
  a->dropped++;
  return false;
}

yk_code yk_accumulator_apply(yk_accumulator *a, const yk_tensor *grad, int64_t local_step, bool *accepted) {
  YK_TRY(check_kind(a, false, "apply"));
  YK_TRY(check_like(a, grad, "the gradient", 0));
  yk__mutex_lock(&a->lock);
  bool fresh = accept(a, local_step);
  if (fresh) add(a, 0, yk_tensor_data(grad), 0, a->count);
  yk__mutex_unlock(&a->lock);
  if (accepted) *accepted = fresh;
  return YK_OK;
}

static int64_t row_at(const yk_tensor *rows, int64_t i) {
  const void *p = yk_tensor_data(rows);
  return yk_tensor_desc(rows)->dtype == YK_I32 ? ((const int32_t *)p)[i] : ((const int64_t *)p)[i];
}

static yk_code check_rows(const yk_accumulator *a, const yk_tensor *values, const yk_tensor *rows) {
  char x[YK__DESC_TEXT];
  if (rows == NULL) return YK_FAIL(EINVAL, "accumulator '%s': the rows are NULL", a->name);
  const yk_desc *d = yk_tensor_desc(rows);
  int64_t n = yk_tensor_desc(values)->dim[0];
  if ((d->dtype != YK_I32 && d->dtype != YK_I64) || d->rank != 1 || d->dim[0] != n)
    return YK_FAIL(EINVAL, "accumulator '%s': the rows are %s, expected i32[%" PRId64 "] or i64[%" PRId64 "]", a->name,
                   yk__desc_text(d, x, sizeof x), n, n);
  for (int64_t i = 0; i < n; i++) {
    int64_t r = row_at(rows, i);
    if (r < 0 || r >= a->rows)
      return YK_FAIL(EINVAL, "accumulator '%s': row %" PRId64 " of the gradient is row %" PRId64 ", expected 0 to %" PRId64, a->name, i, r,
                     a->rows - 1);
  }
  return YK_OK;
}

yk_code yk_accumulator_apply_rows(yk_accumulator *a, const yk_tensor *values, const yk_tensor *rows, int64_t local_step, bool *accepted) {
  YK_TRY(check_kind(a, true, "apply_rows"));
  YK_TRY(check_like(a, values, "the tensor of values", 1));
  YK_TRY(check_rows(a, values, rows));
  int64_t n = yk_tensor_desc(values)->dim[0];
  yk__mutex_lock(&a->lock);
  bool fresh = accept(a, local_step);
  for (int64_t i = 0; fresh && i < n; i++) {
    int64_t r = row_at(rows, i);
    a->touched += a->had[r] == 0;
    a->had[r] += a->had[r] == 0 || a->seen[r] != a->serial;
    a->seen[r] = a->serial;
    add(a, r * a->row, yk_tensor_data(values), i * a->row, a->row);
  }
  yk__mutex_unlock(&a->lock);
  if (accepted) *accepted = fresh;
  return YK_OK;
}

/* ---- take -------------------------------------------------------------------------------------------------------- */

/* With the lock held: wait in line until *n gradients are there. */
static yk_code await(yk_accumulator *a, const taker *me, const _Atomic int64_t *n) {
  uint64_t until = yk__until(a->o.timeout_ms);
  bool rested = false;
  for (;;) {
    int64_t want = atomic_load(n);
    if (a->cancelled)
      return YK_FAIL(ECANCELLED, "accumulator '%s': the take of %" PRId64 " gradients for step %" PRId64 " was cancelled, %" PRId64 " were there",
                     a->name, want, a->step, a->gradients);
    if (a->first == me && a->gradients >= want) return YK_OK;
    if (a->complete)
      return YK_FAIL(ECANCELLED, "accumulator '%s': nobody is left who could give the %" PRId64 " gradients of step %" PRId64 "; %" PRId64
                     " are there", a->name, want, a->step, a->gradients);
    if (!rested) yk__team_rest();
    rested = true;
    if (!yk__wait_until(&a->changed, &a->lock, until))
      return YK_FAIL(EBUSY, "accumulator '%s': take waited %" PRId64 " ms for %" PRId64 " gradients of step %" PRId64 "; %" PRId64 " are there%s",
                     a->name, a->o.timeout_ms, want, a->step, a->gradients, a->first == me ? "" : ", and an earlier take waits for them");
  }
}

/* Opens a take: the lock is held afterwards, whatever is returned. */
static yk_code begin(yk_accumulator *a, taker *me, const _Atomic int64_t *n) {
  *me = (taker){ NULL };
  yk__mutex_lock(&a->lock);
  if (a->last) a->last->next = me;
  else a->first = me;
  a->last = me;
  return await(a, me, n);
}

static void finish(yk_accumulator *a, taker *me) {
  taker *before = NULL;
  for (taker *p = a->first; p != me; p = p->next) before = p;
  if (before) before->next = me->next;
  else a->first = me->next;
  if (a->last == me) a->last = before;
  yk__cond_broadcast(&a->changed);
  yk__mutex_unlock(&a->lock);
}

/* What was collected is out: the next step begins. */
static void turn(yk_accumulator *a) {
  a->gradients = 0;
  a->touched = 0;
  a->step++;
}

static double divisor(const yk_accumulator *a, int64_t n) { return a->o.reduction == YK_REDUCE_MEAN ? (double)n : 1; }

yk_code yk__accumulator_take(yk_accumulator *a, const _Atomic int64_t *n, yk_tensor *into) {
  taker me;
  YK_TRY(check_kind(a, false, "take"));
  YK_TRY(check_like(a, into, "the tensor to take into", 0));
  yk_code rc = begin(a, &me, n);
  if (rc == YK_OK) {
    move_out(a, 0, divisor(a, a->gradients), yk_tensor_data(into), 0, a->count);
    turn(a);
  }
  finish(a, &me);
  return rc;
}

/* With the lock held: tensors for so many rows. */
static yk_code make_rows(const yk_accumulator *a, int64_t n, yk_tensor **values, yk_tensor **rows) {
  yk_shape s = yk__desc_shape(&a->o.desc);
  yk_tensor *v = NULL, *r = NULL;
  s.dim[0] = n;
  YK_TRY(yk_tensor_new(a->dtype, s, &v));
  yk_code rc = yk_tensor_new(YK_I64, YK_SHAPE(n), &r);
  if (rc != YK_OK) {
    yk_tensor_free(v);
    return rc;
  }
  *values = v;
  *rows = r;
  return YK_OK;
}

/* All touched rows, in order; those behind them repeat the first, with zeros. */
static void fill_rows(yk_accumulator *a, yk_tensor *values, yk_tensor *rows) {
  int64_t n = yk_tensor_count(rows), k = 0, *row = yk_tensor_data(rows);
  for (int64_t r = 0; r < a->rows && k < a->touched; r++) {
    if (a->had[r] == 0) continue;
    move_out(a, r * a->row, divisor(a, a->had[r]), yk_tensor_data(values), k * a->row, a->row);
    a->had[r] = 0;
    row[k++] = r;
  }
  size_t bytes = (size_t)a->row * yk_dtype_bytes(a->dtype);
  if (k < n) memset((char *)yk_tensor_data(values) + (size_t)k * bytes, 0, (size_t)(n - k) * bytes);
  for (; k < n; k++) row[k] = row[0];
}

static int64_t rounded(const yk_accumulator *a) {
  int64_t n = 1;
  while (n < a->touched) n *= 2;
  return a->touched == 0 ? 0 : n < a->rows ? n : a->rows;
}

yk_code yk__accumulator_take_rows(yk_accumulator *a, const _Atomic int64_t *n, yk_tensor **values, yk_tensor **rows) {
  taker me;
  YK_TRY(check_kind(a, true, "take_rows"));
  yk_code rc = begin(a, &me, n);
  if (rc == YK_OK && (*rows == NULL || yk_tensor_count(*rows) != rounded(a))) {
    yk_tensor *v = NULL, *r = NULL;
    rc = make_rows(a, rounded(a), &v, &r);
    if (rc == YK_OK) {
      yk_tensor_free(*values);
      yk_tensor_free(*rows);
      *values = v;
      *rows = r;
    }
  }
  if (rc == YK_OK) {
    fill_rows(a, *values, *rows);
    turn(a);
  }
  finish(a, &me);
  return rc;
}

yk_code yk_accumulator_take(yk_accumulator *a, int64_t n, yk_tensor *into) {
  _Atomic int64_t want = n;
  YK_TRY(check_kind(a, false, "take"));
  if (n < 1) return YK_FAIL(EINVAL, "accumulator '%s': a take of %" PRId64 " gradients, expected 1 or more", a->name, n);
  return yk__accumulator_take(a, &want, into);
}

yk_code yk_accumulator_take_rows(yk_accumulator *a, int64_t n, yk_tensor **values, yk_tensor **rows) {
  _Atomic int64_t want = n;
  taker me;
  yk_tensor *v = NULL, *r = NULL;
  YK_TRY(check_kind(a, true, "take_rows"));
  if (values == NULL || rows == NULL) return YK_FAIL(EINVAL, "accumulator '%s': take_rows needs somewhere to write to", a->name);
  if (n < 1) return YK_FAIL(EINVAL, "accumulator '%s': a take of %" PRId64 " gradients, expected 1 or more", a->name, n);
  yk_code rc = begin(a, &me, &want);
  if (rc == YK_OK) rc = make_rows(a, a->touched, &v, &r);
  if (rc == YK_OK) {
    fill_rows(a, v, r);
    turn(a);
    *values = v;
    *rows = r;
  }
  finish(a, &me);
  return rc;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

void yk__accumulator_wake(yk_accumulator *a, bool complete) {
  yk__mutex_lock(&a->lock);
  a->complete = a->complete || complete;
  yk__cond_broadcast(&a->changed);
  yk__mutex_unlock(&a->lock);
}

void yk_accumulator_set_global_step(yk_accumulator *a, int64_t step) {
  yk__mutex_lock(&a->lock);
  int64_t before = a->step;
  a->step = step;
  yk__mutex_unlock(&a->lock);
  if (step < before) YK_LOG(WARNING, "accumulator '%s': its step goes back from %" PRId64 " to %" PRId64, a->name, before, step);
}

static int64_t read_one(const yk_accumulator *a, const int64_t *field) {
  yk_accumulator *m = (yk_accumulator *)(uintptr_t)a;    /* the lock is not part of what const promises */
  yk__mutex_lock(&m->lock);
  int64_t x = *field;
  yk__mutex_unlock(&m->lock);
  return x;
}

int64_t yk_accumulator_global_step(const yk_accumulator *a) { return read_one(a, &a->step); }
int64_t yk_accumulator_count(const yk_accumulator *a) { return read_one(a, &a->gradients); }
int64_t yk_accumulator_dropped(const yk_accumulator *a) { return read_one(a, &a->dropped); }

void yk_accumulator_cancel(yk_accumulator *a) {
  yk__mutex_lock(&a->lock);
  a->cancelled = true;
  yk__cond_broadcast(&a->changed);
  yk__mutex_unlock(&a->lock);
}
