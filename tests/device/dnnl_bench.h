/*
 * dnnl_bench.h - the workbench of the tests of single CPU kernels.
 *
 * Prepares one kernel straight through the CPU driver's table, brings its inputs into the layouts it asked for with the
 * driver's own "reorder", launches it between guard bytes, brings the outputs back to the plain layout and compares them with
 * the op's double reference.
 */
#ifndef YK_TESTS_DNNL_BENCH_H
#define YK_TESTS_DNNL_BENCH_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <yoke/device.h>
#include <yoke/op.h>
#include <yoke/op_attrs.h>
#include "backend/cpu/layout.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/thread.h"
#include "tensor/desc.h"

const yk_driver *yk__cpu_plugin(const yk_host *host);

static const yk_host bench_host = {
  .size = sizeof(yk_host), .major = YK_DEVICE_MAJOR, .minor = YK_DEVICE_MINOR,
  .fail = yk__fail, .log = yk__log, .alloc = yk__alloc_aligned, .free = yk__free, .param = yk__param,
  .team_set = yk__team_set, .team = yk__team, .parallel_for = yk__parallel_for, .random_block = yk__rng_block,
  .now_ns = yk__now_ns,
};

enum { BENCH_PORTS = 12, GUARD = 256 };
typedef struct bench {
  const yk_driver *driver;
  yk_dev *dev;
  yk_stream *stream;
  uint64_t draws;
  int compared;                                /* elements compared so far: a test that compares nothing fails */
} bench;

static inline bench bench_open(uint32_t cores) {
  bench b = { .driver = yk__cpu_plugin(&bench_host) };
  yk_dev_config config = { .size = sizeof config, .ncores = cores };
  assert_int_equal(b.driver->open(0, &config, &b.dev), YK_OK);
  assert_int_equal(b.driver->stream_open(b.dev, YK_STREAM_INLINE, &b.stream), YK_OK);
  return b;
}

static inline void bench_close(bench *b) {
  b->driver->stream_close(b->stream);
  b->driver->close(b->dev);
  assert_true(b->compared > 0);
}

static inline yk_desc desc4(yk_dtype t, int64_t n, int64_t h, int64_t w, int64_t c) {
  return (yk_desc){ .dtype = (uint8_t)t, .rank = 4, .dim = { n, h, w, c } };
}
static inline yk_desc desc2(yk_dtype t, int64_t m, int64_t n) {
  return (yk_desc){ .dtype = (uint8_t)t, .rank = 2, .dim = { m, n } };
}
static inline yk_desc desc1(yk_dtype t, int64_t n) { return (yk_desc){ .dtype = (uint8_t)t, .rank = 1, .dim = { n } }; }

/* ---- buffers between guard bytes ------------------------------------------------------------------------------------ */

typedef struct guarded { unsigned char *base, *data; uint64_t bytes; } guarded;

static inline guarded guarded_new(bench *b, const yk_desc *d) {
  guarded g = { 0 };
  assert_int_equal(b->driver->desc_bytes(b->dev, d, &g.bytes), YK_OK);
  uint64_t room = (g.bytes + 63) / 64 * 64;
  g.base = yk__alloc_aligned(room + 2 * GUARD, 64);
  assert_non_null(g.base);
  memset(g.base, 0xA5, room + 2 * GUARD);
  g.data = g.base + GUARD;
  return g;
}

static inline void guarded_free(guarded *g, const char *what) {
  if (!g->base) return;
  for (int i = 0; i < GUARD; i++)
    if (g->base[i] != 0xA5 || g->data[g->bytes + (uint64_t)i] != 0xA5)
      fail_msg("%s: a byte beyond the buffer of %llu bytes was written", what, (unsigned long long)g->bytes);
  yk__free(g->base);
  g->base = NULL;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------ */

static inline yk_code launch(bench *b, yk_kernel *k, void *const *arg, uint32_t n, uint64_t workspace) {
  yk_mem mem[BENCH_PORTS], ws = { 0 };
  guarded scratch = { 0 };
  for (uint32_t i = 0; i < n; i++) mem[i] = (yk_mem){ .base = arg[i] };
  if (workspace) {
    yk_desc d = desc1(YK_U8, (int64_t)workspace);
    scratch = guarded_new(b, &d);
    ws = (yk_mem){ .base = scratch.data, .bytes = workspace };
  }
  yk_code rc = b->driver->kernel_launch(k, b->stream, mem, n, ws);
  uint64_t failed = 0;
  if (rc == YK_OK) rc = b->driver->stream_sync(b->stream, &failed);
  guarded_free(&scratch, "workspace");
  return rc;
}

/* Value in layout from->layout to layout `to`; frees the old buffer. */
static inline void relayout(bench *b, guarded *g, const yk_desc *from, uint16_t to) {
  if (from->layout == to) return;
  yk_desc in = *from, out = *from;
  out.layout = to;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "reorder", .op_version = 1, .nin = 1, .nout = 1, .flags = YK_SPEC_FIXED,
                          .in = &in, .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k = NULL;
  if (b->driver->kernel_prepare(b->dev, &spec, &k, &info) != YK_OK)
    fail_msg("reorder %u to %u: %s", from->layout, to, yk_error_message());
  guarded next = guarded_new(b, &out);
  void *arg[2] = { g->data, next.data };
  if (launch(b, k, arg, 2, info.workspace) != YK_OK) fail_msg("reorder: %s", yk_error_message());
  b->driver->kernel_free(k);
  guarded_free(g, "reorder input");
  *g = next;
}

/* ---- one comparison ------------------------------------------------------------------------------------------------------ */

typedef struct trial {
  const char *op;
  const void *attrs;
  int nin, nout;
  yk_desc in[BENCH_PORTS], out[BENCH_PORTS];    /* plain logical descriptions; layouts: what is offered. out is inferred */
  uint16_t flags;
  double lo, hi;                                /* 0, 0 = [-1, 1] */
  double tolerance;                             /* times 1 + |value|; 0 = 2e-4 */
  double *value[BENCH_PORTS];                   /* inputs given instead of drawn; borrowed; NULL = draw */
  uint32_t like;                                /* bit i: input i is shape-only */
  uint32_t skip;                                /* bit o: output o is not compared */
  int may_refuse;                               /* a refusal is fine */
  const char *family;                           /* only the first candidate whose name starts so; NULL = all in order */
  char impl[64];                                /* out: what took it */
} trial;

static inline double *draw(bench *b, const trial *t, int i) {
  int64_t n = yk__desc_count(&t->in[i]);
  double lo = t->lo, hi = t->hi, *v = yk__calloc((size_t)n + 1, sizeof *v);
  assert_non_null(v);
  if (lo == 0 && hi == 0) lo = -1, hi = 1;
  for (int64_t j = 0; j < n; j++) {
    if (t->value[i]) v[j] = t->value[i][j];
    else v[j] = lo + (hi - lo) * (double)yk__rng_uniform_f32(7, b->draws, 0, (uint64_t)j);
  }
  b->draws++;
  /* as the kernel sees them */
  void *rounded = yk__calloc((size_t)n + 1, 8);
  yk__from_double((yk_dtype)t->in[i].dtype, v, rounded, n);
  yk__to_double((yk_dtype)t->in[i].dtype, rounded, v, n);
  yk__free(rounded);
  return v;
}

static inline void reference(const trial *t, double **in, double **out, const yk_op *op) {
  const double *ci[BENCH_PORTS];
  for (int i = 0; i < t->nin; i++) ci[i] = t->like >> i & 1 ? NULL : in[i];
  for (int o = 0; o < t->nout; o++) {
    out[o] = yk__calloc((size_t)yk__desc_count(&t->out[o]) + 1, sizeof(double));
    assert_non_null(out[o]);
  }
  yk_ref r = { .in = ci, .out = out, .din = t->in, .dout = t->out, .nin = (uint16_t)t->nin, .nout = (uint16_t)t->nout,
               .attrs = t->attrs, .host = &bench_host };
  assert_int_equal(op->ref(&r), YK_OK);
}

static inline void compare(bench *b, const trial *t, int o, const guarded *g, const double *want) {
  int64_t n = yk__desc_count(&t->out[o]);
  double *got = yk__calloc((size_t)n + 1, sizeof *got), tol = t->tolerance == 0 ? 2e-4 : t->tolerance;
  char text[YK__DESC_TEXT];
  yk__to_double((yk_dtype)t->out[o].dtype, g->data, got, n);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= tol * (1 + fabs(want[i]))))
      fail_msg("%s (%s), input 0 %s in layout %u: output %d element %lld is %.9g, expected %.9g", t->op, t->impl,
               yk__desc_text(&t->in[0], text, sizeof text), t->in[0].layout, o, (long long)i, got[i], want[i]);
  b->compared += (int)n;
  yk__free(got);
}

/* Number of the candidate that the trial is confined to; -1 = none in particular. */
static inline int candidate_of(const trial *t) {
  const char *name;
  if (!t->family) return -1;
  for (int n = 0; (name = yk__cpu_candidate_name(t->op, n)); n++)
    if (strncmp(name, t->family, strlen(t->family)) == 0) return n;
  fail_msg("%s has no candidate %s", t->op, t->family);
  return -1;
}

/* Run the trial. 1 if a kernel took it. */
static inline int try_kernel(bench *b, trial *t) {
  const yk_op *op = yk_op_find(t->op);
  assert_non_null(op);
  yk_desc in[BENCH_PORTS], out[BENCH_PORTS];
  for (int i = 0; i < t->nin; i++) {
    in[i] = t->in[i];
    in[i].layout = YK_LAYOUT_PLAIN;
  }
  yk_infer infer = { .in = in, .nin = (uint16_t)t->nin, .out = t->out, .nout = (uint16_t)t->nout, .attrs = t->attrs };
  if (op->infer(&infer) != YK_OK) fail_msg("%s: %s", t->op, yk_error_message());
  memcpy(in, t->in, sizeof in);
  for (int o = 0; o < t->nout; o++) {
    out[o] = t->out[o];
    out[o].layout = YK_LAYOUT_ANY;
  }
  yk_kernel_spec spec = { .size = sizeof spec, .op = t->op, .op_version = 1, .nin = (uint16_t)t->nin, .nout = (uint16_t)t->nout,
                          .flags = t->flags, .attrs = t->attrs, .in = in, .out = out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k = NULL;
  yk_code rc = yk__cpu_kernel_prepare_only(b->dev, &spec, candidate_of(t), &k, &info);
  if (rc == YK_EUNSUPPORTED && t->may_refuse) return 0;
  if (rc != YK_OK) fail_msg("%s: %s", t->op, yk_error_message());
  snprintf(t->impl, sizeof t->impl, "%s", info.impl);

  double *vin[BENCH_PORTS] = { 0 }, *vout[BENCH_PORTS] = { 0 };
  guarded g[BENCH_PORTS] = { 0 };
  void *arg[BENCH_PORTS] = { 0 };
  for (int i = 0; i < t->nin; i++) {
    if (t->like >> i & 1) continue;
    yk_desc plain = in[i];
    plain.layout = YK_LAYOUT_PLAIN;
    vin[i] = draw(b, t, i);
    g[i] = guarded_new(b, &plain);
    yk__from_double((yk_dtype)plain.dtype, vin[i], g[i].data, yk__desc_count(&plain));
    relayout(b, &g[i], &plain, in[i].layout);
    arg[i] = g[i].data;
  }
  reference(t, vin, vout, op);
  for (int o = 0; o < t->nout; o++) {
    g[t->nin + o] = guarded_new(b, &out[o]);
    arg[t->nin + o] = g[t->nin + o].data;
  }
  for (int twice = 0; twice < 2; twice++)
    if (launch(b, k, arg, (uint32_t)(t->nin + t->nout), info.workspace) != YK_OK) fail_msg("%s: %s", t->op, yk_error_message());
  for (int o = 0; o < t->nout; o++) {
    relayout(b, &g[t->nin + o], &out[o], YK_LAYOUT_PLAIN);
    if (!(t->skip >> o & 1)) compare(b, t, o, &g[t->nin + o], vout[o]);
  }
  for (int i = 0; i < BENCH_PORTS; i++) {
    guarded_free(&g[i], t->op);
    yk__free(vin[i]);
    yk__free(vout[i]);
  }
  b->driver->kernel_free(k);
  return 1;
}

/* The number of the picture layout that blocks channels by 8 or 16. */
static inline uint16_t picture_layout(const yk_desc *d, int block) {
  dnnl_dim_t dim[4] = { d->dim[0], d->dim[3], d->dim[1], d->dim[2] };
  yk_md md = { 0 };
  uint16_t layout = 0;
  assert_int_equal(yk__md_tag(4, dim, yk__layout_dtype(d->dtype), block == 8 ? dnnl_aBcd8b : dnnl_aBcd16b, &md), 0);
  assert_int_equal(yk__layout_of(&md, YK_ROLE_PICTURE, 1, &layout), YK_OK);
  yk__md_free(&md);
  assert_int_not_equal(layout, YK_LAYOUT_PLAIN);
  return layout;
}

#endif
