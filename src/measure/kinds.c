/*
 * kinds.c - see kinds.h. The plan's own kernels run, but on scratch memory: nothing of a job is touched.
 *
 * What a step would find in a cache lies in the same place at each launch: how much memory a stream has touched since it last used a
 * piece is told by the plan. All else lies in a ring that moves on. Both are full of random numbers; whole numbers are read from
 * zeros, which are valid indices, and written where nobody reads them. Guards are true: an update that was told to do nothing
 * would take no time.
 */
#include "measure/kinds.h"
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "measure/load.h"
#include "measure/measure.h"

enum { RING = 64 << 20, NOISE = 1 << 20, CACHE = 16 << 20, SAMPLES = 7, LEAST_SAMPLES = 3, MOST_LAUNCHES = 64 };
#define SAMPLE_SECONDS 3e-4                          /* shorter launches are timed several in a row */

typedef struct area { yk_mem mem; size_t need, at; } area;
typedef struct bench {               /* one device of the plan */
  yk_device *d;
  yk_stream *stream;
  yk_event *begin, *end;             /* NULL: the driver does not tell when they fired */
  uint64_t from, to;                 /* when they did */
  area hot, ring, zeros, sink, on;   /* floats in a cache; others; whole numbers that are read; those that are written; guards */
} bench;
enum { HOT, RINGS, ZEROS, SINK, ON, AREAS };

typedef struct kind { double seconds; uint32_t first; bool timed; } kind;    /* first: an instruction of it */
enum { MOST_HOT = 64 };              /* arguments of a launch that may be in a cache; further ones are taken not to be */

struct yk_kinds {
  yk_session *s;
  const yk_plan *p;
  bench *at;                         /* [devices] d NULL: not in the plan */
  uint32_t *of;                      /* [ninstr] 1 + kind; 0: no launch */
  kind *kind; uint32_t n, cap;
  yk_mem *arg;                       /* [most arguments of a launch] */
  uint64_t *hot;                     /* [ninstr] bit i: argument i is found in a cache; of the first instructions of kinds */
  uint64_t cache;                    /* bytes of it for one device */
};

/* ---- which kinds there are ---------------------------------------------------------------------------------------- */

static const yk_buf *buf_of(const yk_plan *p, const yk_instr *x, uint16_t k) {
  uint32_t b = p->arg[x->args + k];
  return b == YK_NO_BUF ? NULL : &p->buf[b];
}

static bool same_desc(const yk_desc *a, const yk_desc *b) {
  if (a->dtype != b->dtype || a->rank != b->rank || a->layout != b->layout) return false;
  for (uint8_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

static bool same_device(const yk_device *a, const yk_device *b) {
  return a == b || (a->driver == b->driver && a->config.ncores == b->config.ncores && a->is_virtual == b->is_virtual);
}

static bool same_kind(const yk_kinds *k, const yk_instr *a, const yk_instr *b) {
  const yk_plan *p = k->p;
  const yk_plan_kernel *x = &p->kernel[a->a], *y = &p->kernel[b->a];
  if (x->op != y->op || a->nargs != b->nargs || strcmp(x->impl, y->impl) != 0) return false;
  if (x->op && x->op->attr_bytes > 0 && x->attrs != y->attrs && memcmp(x->attrs, y->attrs, x->op->attr_bytes) != 0) return false;
  if (!same_device(&k->s->devices->at[p->stream_dev[a->stream]], &k->s->devices->at[p->stream_dev[b->stream]])) return false;
  for (uint16_t i = 0; i < a->nargs; i++) {
    if ((buf_of(p, a, i) == NULL) != (buf_of(p, b, i) == NULL) || !same_desc(&x->desc[i], &y->desc[i])) return false;
  }
  return true;
}

static yk_code find_kinds(yk_kinds *k) {
  for (uint32_t i = 0; i < k->p->ninstr; i++) {
    const yk_instr *x = &k->p->instr[i];
    uint32_t n = 0;
    if (x->code != YK_I_LAUNCH) continue;
    while (n < k->n && !same_kind(k, &k->p->instr[k->kind[n].first], x)) n++;
    if (n == k->n && !YK_PUSH(k->kind, k->n, k->cap, ((kind){ .first = i }))) return YK_ENOMEM;
    k->of[i] = n + 1;
  }
  return YK_OK;
}

/* ---- what is in a cache -------------------------------------------------------------------------------------------- */

static bool overlap(const yk_buf *a, const yk_buf *b) {
  bool variable = a->kind == YK_BUF_VARIABLE;
  if (variable != (b->kind == YK_BUF_VARIABLE) || a->arena != b->arena) return false;
  if (variable) return a->index == b->index;
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Is less than a cache touched on the stream between the last use of `b`, in this step or the one before, and instruction i? */
static bool is_hot(const yk_kinds *k, uint32_t i, const yk_buf *b) {
  uint64_t touched = 0;
  for (uint32_t back = 1; back <= k->p->ninstr; back++) {
    const yk_instr *x = &k->p->instr[(i + k->p->ninstr - back) % k->p->ninstr];
    if (x->stream != k->p->instr[i].stream || !yk__instr_works(x)) continue;
    uint16_t mine = x->code == YK_I_LAUNCH || x->code == YK_I_COPY ? x->nargs : 1;           /* the other side of a copy lies elsewhere */
    for (uint16_t n = 0; n < mine; n++) {
      const yk_buf *other = buf_of(k->p, x, n);
      if (other == NULL) continue;
      if (overlap(b, other)) return true;
      touched += other->bytes;
    }
    if (touched + b->bytes > k->cache) return false;
  }
  return false;
}

static void find_hot(yk_kinds *k) {
  uint64_t last = yk__last_cache("/sys");
  k->cache = (last > 0 ? last : CACHE) / (k->p->nstream > 1 ? 2 : 1);
  for (uint32_t n = 0; n < k->n; n++) {
    const yk_instr *x = &k->p->instr[k->kind[n].first];
    for (uint16_t i = 0; i < x->nargs && i < MOST_HOT; i++) {
      const yk_buf *b = buf_of(k->p, x, i);
      if (b && is_hot(k, k->kind[n].first, b)) k->hot[k->kind[n].first] |= (uint64_t)1 << i;
    }
  }
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

static bool has_guard(const yk_op *op) {
  const yk_port *last = op ? op->in : NULL;
  while (last && last->name && last[1].name) last++;
  return last && last->name && (last->flags & YK_PORT_GUARD);
}

/* Where argument i of nargs lies; the workspace is number nargs. */
static int area_for(const yk_plan_kernel *kernel, uint16_t i, uint16_t nargs, const yk_buf *b, bool hot) {
  if (i < nargs && (YK_T(b->desc.dtype) & YK_FLOATS)) return hot ? HOT : RINGS;
  if (i >= kernel->nin || i < kernel->nwritten) return SINK;
  return i + 1 == kernel->nin && b->desc.dtype == YK_BOOL && has_guard(kernel->op) ? ON : ZEROS;
}

/* Room for the arguments of one launch: how much of each area it needs, and, unless arg is NULL, where they are. `first` is the
 * instruction that stands for the kind. */
static void place(yk_kinds *k, const yk_instr *x, uint32_t first, yk_mem *arg, yk_mem *work) {
  const yk_plan_kernel *kernel = &k->p->kernel[x->a];
  bench *b = &k->at[k->p->stream_dev[x->stream]];
  area *all[AREAS] = { &b->hot, &b->ring, &b->zeros, &b->sink, &b->on };
  size_t used[AREAS] = { 0 }, start[AREAS];
  for (int a = 0; a < AREAS; a++) start[a] = all[a]->at + all[a]->need <= all[a]->mem.bytes ? all[a]->at : 0;
  for (uint16_t i = 0; i <= x->nargs; i++) {
    uint32_t w = kernel->workspace;
    const yk_buf *buf = i < x->nargs ? buf_of(k->p, x, i) : w != YK_NO_BUF ? &k->p->buf[w] : NULL;
    yk_mem *to = i < x->nargs ? arg ? &arg[i] : NULL : work;
    if (to) *to = (yk_mem){ 0 };
    if (buf == NULL) continue;
    int a = area_for(kernel, i, x->nargs, buf, i < MOST_HOT && (k->hot[first] >> i & 1u));
    if (to) *to = (yk_mem){ all[a]->mem.base, all[a]->mem.offset + start[a] + used[a], (size_t)buf->bytes };
    used[a] += aligned((size_t)buf->bytes);
  }
  for (int a = 0; a < AREAS; a++) {
    if (arg) all[a]->at = a == RINGS ? start[a] + used[a] : 0;
    else if (used[a] > all[a]->need) all[a]->need = used[a];
  }
}

static yk_code take(bench *b, area *a, size_t want) {
  size_t bytes = want > a->need ? want : a->need;
  yk_code rc = yk__device_alloc(b->d, bytes ? bytes : 1, &a->mem);
  while (rc == YK_ENOMEM && bytes > a->need) {
    yk_error_clear();
    bytes = bytes / 2 > a->need ? bytes / 2 : a->need;
    rc = yk__device_alloc(b->d, bytes ? bytes : 1, &a->mem);
  }
  return rc;
}

/* Numbers in [-1, 1), whatever was there before. */
static yk_code make_noise(const bench *b, const yk_mem *to, const float *noise) {
  for (size_t at = 0; at < to->bytes; at += NOISE) {
    yk_mem part = { to->base, to->offset + at, to->bytes - at < NOISE ? to->bytes - at : NOISE };
    YK_TRY(b->d->driver->copy_in(b->stream, part, noise));
  }
  return YK_OK;
}

static yk_code fill(bench *b, const float *noise) {
  uint64_t failed = 0;
  YK_TRY(make_noise(b, &b->ring.mem, noise));
  YK_TRY(b->d->driver->fill(b->stream, b->zeros.mem, 0));
  YK_TRY(b->d->driver->fill(b->stream, b->sink.mem, 0));
  YK_TRY(b->d->driver->fill(b->stream, b->on.mem, 1));
  return b->d->driver->stream_sync(b->stream, &failed);
}

static yk_code open_benches(yk_kinds *k, const float *noise) {
  for (uint32_t s = 0; s < k->p->nstream; s++) {
    bench *b = &k->at[k->p->stream_dev[s]];
    b->d = &k->s->devices->at[k->p->stream_dev[s]];
    YK_TRY(yk__device_stream(b->d, &b->stream));
    if (!YK_HAS(b->d->driver, event_time)) continue;
    YK_TRY(b->d->driver->event_open(b->d->dev, &b->begin));
    YK_TRY(b->d->driver->event_open(b->d->dev, &b->end));
  }
  for (uint32_t i = 0; i < k->p->ninstr; i++)
    if (k->of[i]) place(k, &k->p->instr[i], k->kind[k->of[i] - 1].first, NULL, NULL);
  for (uint16_t i = 0; i < k->s->devices->n; i++) {
    bench *b = &k->at[i];
    if (b->d == NULL) continue;
    YK_TRY(take(b, &b->hot, 0));
    YK_TRY(take(b, &b->zeros, 0));
    YK_TRY(take(b, &b->sink, 0));
    YK_TRY(take(b, &b->on, 0));
    YK_TRY(take(b, &b->ring, RING));                 /* the last: it may be smaller */
    YK_TRY(fill(b, noise));
  }
  return YK_OK;
}

static void close_benches(yk_kinds *k) {
  for (uint16_t i = 0; k->at && i < k->s->devices->n; i++) {
    bench *b = &k->at[i];
    if (b->d == NULL) continue;
    if (b->begin) b->d->driver->event_close(b->begin);
    if (b->end) b->d->driver->event_close(b->end);
    yk__device_free(b->d, b->hot.mem);
    yk__device_free(b->d, b->ring.mem);
    yk__device_free(b->d, b->zeros.mem);
    yk__device_free(b->d, b->sink.mem);
    yk__device_free(b->d, b->on.mem);
    *b = (bench){ 0 };
  }
}

/* With little memory, all tensors take turns in the ring. */
static yk_code open_somehow(yk_kinds *k, const float *noise) {
  yk_code rc = open_benches(k, noise);
  if (rc != YK_ENOMEM) return rc;
  yk_error_clear();
  close_benches(k);
  memset(k->hot, 0, k->p->ninstr * sizeof *k->hot);
  return open_benches(k, noise);
}

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static bool on_host(const yk_op *op) {
  return op == NULL || (op->out[0].name && (op->out[0].flags & YK_PORT_HOST)) || (op->in[0].name && (op->in[0].flags & YK_PORT_HOST));
}

/* The kind's first instruction on each device that has one, [devices] 1 + instruction. */
static void on_devices(const yk_kinds *k, uint32_t n, uint32_t *at) {
  memset(at, 0, k->s->devices->n * sizeof *at);
  for (uint32_t i = k->p->ninstr; i-- > 0;)
    if (k->of[i] == n + 1) at[k->p->stream_dev[k->p->instr[i].stream]] = i + 1;
}

static yk_code mark(const yk_kinds *k, const uint32_t *at, bool end) {
  for (uint16_t d = 0; d < k->s->devices->n; d++) {
    const bench *b = &k->at[d];
    if (at[d] && b->begin) YK_TRY(b->d->driver->event_record(b->stream, end ? b->end : b->begin));
  }
  return YK_OK;
}

/* Do both compute on the same cores of the host? */
static bool share_cores(const yk_device *a, const yk_device *b) {
  const yk_dev_config *x = &a->config, *y = &b->config;
  return a->driver == b->driver && x->ncores > 0 && y->ncores > 0 && x->first_core < y->first_core + y->ncores &&
         y->first_core < x->first_core + x->ncores;
}

/* Nanoseconds from the first begin to the last end of device d and those that share its cores: whoever has a core to itself for a
 * while only makes another one wait. */
static uint64_t span(const yk_kinds *k, const uint32_t *at, uint16_t d) {
  uint64_t begin = k->at[d].from, end = k->at[d].to;
  for (uint16_t e = 0; e < k->s->devices->n; e++) {
    if (!at[e] || !k->at[e].begin || !share_cores(k->at[d].d, k->at[e].d)) continue;
    if (k->at[e].from < begin) begin = k->at[e].from;
    if (k->at[e].to > end) end = k->at[e].to;
  }
  return end - begin;
}

/* Between the marks; `wall` where a driver does not tell. Halfway between the devices' mean and the slowest: in a step, one that is
 * disturbed is waited for at some places only. */
static yk_code marked(const yk_kinds *k, const uint32_t *at, double wall, double *seconds) {
  double sum = 0, most = 0;
  uint32_t n = 0;
  for (uint16_t d = 0; d < k->s->devices->n; d++) {
    bench *b = &k->at[d];
    if (!at[d] || !b->begin) continue;
    YK_TRY(b->d->driver->event_time(b->begin, &b->from));
    YK_TRY(b->d->driver->event_time(b->end, &b->to));
  }
  for (uint16_t d = 0; d < k->s->devices->n; d++) {
    if (!at[d]) continue;
    double one = k->at[d].begin ? (double)span(k, at, d) * 1e-9 : wall;
    if (one > most) most = one;
    sum += one;
    n++;
  }
  *seconds = (sum / n + most) / 2;
  return YK_OK;
}

static yk_code sync_all(const yk_kinds *k, const uint32_t *at, yk_code rc) {
  uint64_t failed = 0;
  for (uint16_t d = 0; d < k->s->devices->n; d++) {
    if (!at[d]) continue;
    yk_code last = k->at[d].d->driver->stream_sync(k->at[d].stream, &failed);
    if (rc == YK_OK) rc = last;
  }
  return rc;
}

/* All devices of the kind launch it so often, side by side; all are waited for. */
static yk_code launch(yk_kinds *k, uint32_t n, const uint32_t *at, uint32_t times, double *seconds) {
  uint64_t begin = yk__now_ns();
  yk_code rc = mark(k, at, false);
  for (uint32_t t = 0; t < times; t++)
    for (uint16_t d = 0; d < k->s->devices->n && rc == YK_OK; d++) {
      if (!at[d]) continue;
      const yk_instr *x = &k->p->instr[at[d] - 1];
      yk_mem work;
      place(k, x, k->kind[n].first, k->arg, &work);
      rc = k->at[d].d->driver->kernel_launch(k->p->kernel[x->a].kernel, k->at[d].stream, k->arg, x->nargs, work);
    }
  if (rc == YK_OK) rc = mark(k, at, true);
  YK_TRY(sync_all(k, at, rc));
  YK_TRY(marked(k, at, (double)(yk__now_ns() - begin) * 1e-9, seconds));
  *seconds /= times;
  return YK_OK;
}

/* What the kinds before have left in the part that stays in place is replaced. */
static yk_code refresh(yk_kinds *k, uint32_t n, const uint32_t *at, const float *noise) {
  const yk_instr *x = &k->p->instr[k->kind[n].first];
  size_t bytes = 0;
  for (uint16_t i = 0; i < x->nargs && i < MOST_HOT; i++)
    if ((k->hot[k->kind[n].first] >> i & 1u) && buf_of(k->p, x, i)) bytes += aligned((size_t)buf_of(k->p, x, i)->bytes);
  for (uint16_t d = 0; d < k->s->devices->n; d++) {
    yk_mem part = k->at[d].hot.mem;
    if (!at[d]) continue;
    if (bytes < part.bytes) part.bytes = bytes;
    YK_TRY(make_noise(&k->at[d], &part, noise));
  }
  return YK_OK;
}

static yk_code time_kind(yk_kinds *k, uint32_t n, uint32_t *at, const float *noise, double seconds) {
  double sample[SAMPLES], one = 0;
  uint32_t taken = 0;
  on_devices(k, n, at);
  YK_TRY(refresh(k, n, at, noise));
  YK_TRY(launch(k, n, at, 1, &one));                    /* the first one pays for pages and code */
  YK_TRY(launch(k, n, at, 1, &one));
  uint32_t times = one < SAMPLE_SECONDS / MOST_LAUNCHES ? MOST_LAUNCHES : one > SAMPLE_SECONDS ? 1 : (uint32_t)(SAMPLE_SECONDS / one);
  for (uint64_t begin = yk__now_ns(); taken < LEAST_SAMPLES || (taken < SAMPLES && (double)(yk__now_ns() - begin) * 1e-9 < seconds);)
    YK_TRY(launch(k, n, at, times, &sample[taken++]));
  k->kind[n].seconds = yk__median(sample, taken);
  k->kind[n].timed = true;
  return YK_OK;
}

static yk_code time_all(yk_kinds *k, const float *noise, double seconds) {
  uint32_t *at = yk__alloc((k->s->devices->n + 1u) * sizeof *at);
  if (at == NULL) return YK_ENOMEM;
  yk__team_rest();
  for (uint32_t n = 0; n < k->n; n++) {
    if (on_host(k->p->kernel[k->p->instr[k->kind[n].first].a].op)) continue;
    if (time_kind(k, n, at, noise, seconds / k->n) != YK_OK) yk_error_clear();          /* it has no time then */
  }
  yk__free(at);
  return YK_OK;
}

static yk_code measure(yk_kinds *k, double seconds) {
  uint16_t most = 1;
  for (uint32_t i = 0; i < k->p->ninstr; i++)
    if (k->p->instr[i].nargs > most) most = k->p->instr[i].nargs;
  float *noise = yk__alloc(NOISE);
  k->at = yk__calloc(k->s->devices->n + 1u, sizeof *k->at);
  k->of = yk__calloc(k->p->ninstr + 1u, sizeof *k->of);
  k->arg = yk__calloc(most, sizeof *k->arg);
  k->hot = yk__calloc(k->p->ninstr + 1u, sizeof *k->hot);
  yk_code rc = noise && k->at && k->of && k->arg && k->hot ? YK_OK : YK_ENOMEM;
  for (uint32_t i = 0; rc == YK_OK && i < NOISE / sizeof *noise; i++) noise[i] = (float)(i * 2654435761u >> 8) * 0x1p-23f - 1.0f;
  if (rc == YK_OK) rc = find_kinds(k);
  if (rc == YK_OK) find_hot(k);
  if (rc == YK_OK) rc = open_somehow(k, noise);
  if (rc == YK_OK) rc = time_all(k, noise, seconds);
  close_benches(k);
  yk__free(noise);
  return rc;
}

yk_code yk__kinds_measure(yk_session *s, const yk_plan *p, double seconds, yk_kinds **out) {
  yk_kinds *k = yk__calloc(1, sizeof *k);
  if (k == NULL) return YK_ENOMEM;
  k->s = s;
  k->p = p;
  yk_code rc = measure(k, seconds);
  if (rc == YK_OK) *out = k;
  else yk__kinds_free(k);
  return rc;
}

void yk__kinds_free(yk_kinds *k) {
  if (k == NULL) return;
  yk__free(k->at);
  yk__free(k->of);
  yk__free(k->kind);
  yk__free(k->arg);
  yk__free(k->hot);
  yk__free(k);
}

double yk__kind_seconds(const yk_kinds *k, uint32_t i) {
  return k->of[i] && k->kind[k->of[i] - 1].timed ? k->kind[k->of[i] - 1].seconds : -1;
}

uint32_t yk__kinds_count(const yk_kinds *k, uint32_t *without) {
  *without = 0;
  for (uint32_t n = 0; n < k->n; n++) *without += !k->kind[n].timed;
  return k->n;
}
