/*
 * dnnl_kernel.c - preparing and running one oneDNN primitive.
 *
 * A run sets the addresses that changed since the last one and executes; in a step of a plan nothing changes, so a launch
 * costs one comparison an argument. Scratch memory comes from the launch's workspace, never from oneDNN's own allocator.
 */
#include "dnnl_kernel.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { STAGE_GRAIN = 65536 };
enum { MAX_BIND = 6, SCRATCH = -1 };        /* SCRATCH: slot of the primitive's scratch memory, which is the workspace */

typedef struct yk_stage { int slot; int64_t rows; size_t row_bytes, pitch, at; const char *from; char *to; } yk_stage;

typedef struct yk_dnnl_state {
  dnnl_primitive_t prim;
  dnnl_stream_t stream;
  int n, solo;
  dnnl_exec_arg_t exec[MAX_BIND];
  int slot[MAX_BIND];
  void *last[MAX_BIND];
  yk_stage stage;                           /* rows 0 = none; `at` is its offset in the workspace */
  char impl[48];
} yk_dnnl_state;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static void engine_make(void) { if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL; }

dnnl_engine_t yk__dnnl_engine(void) {
  pthread_once(&once, engine_make);
  if (!engine) (void)YK_CPU_FAIL(EDEVICE, "oneDNN has no engine for this processor");
  return engine;
}

/* A team of two takes about 4 us to start and gather; below that it only costs. */
static int team_for(const yk_dev *dev, double flops, double bytes) {
  double ns = flops / 20.0 + bytes / 10.0;
  return ns < 3000.0 || dev->ncores == 0 ? 1 : (int)dev->ncores;
}

yk_dnnl_team yk__dnnl_team_begin(const yk_cpu_prepare *p, double flops, double bytes) {
  int alone = (p->spec->flags & YK_SPEC_DETERMINISTIC) && flops > 0;
  yk_dnnl_team t = { yk__cpu_host->team(), alone ? 1 : team_for(p->k->dev, flops, bytes) };
  if (t.size != t.before) yk__cpu_host->team_set(t.size);
  return t;
}

void yk__dnnl_team_end(yk_dnnl_team t) {
  if (t.size != t.before) yk__cpu_host->team_set(t.before);
}

static yk_impl quality(const_dnnl_primitive_desc_t pd) {
  const char *s = yk__desc_impl(pd);
  if (strncmp(s, "jit", 3) == 0 || strncmp(s, "brg", 3) == 0) return YK_IMPL_DIRECT;
  return strstr(s, "jit") || strstr(s, "brg") ? YK_IMPL_FAST : YK_IMPL_ANY;
}

yk_code yk__dnnl_describe(const yk_prim *prim, yk_impl least, dnnl_primitive_desc_t *out) {
  dnnl_engine_t e = yk__dnnl_engine();
  dnnl_primitive_desc_t pd = NULL;
  if (!e) return YK_EDEVICE;
  int rc = yk__prim_desc(e, prim, &pd);
  if (rc == (int)dnnl_out_of_memory) return YK_CPU_FAIL(ENOMEM, "oneDNN ran out of memory while preparing");
  if (rc) return YK_CPU_REFUSE("oneDNN has no such primitive (status %d)", rc);
  if (quality(pd) < least) {
    yk_code code = YK_CPU_REFUSE("oneDNN has only its slow implementation %s", yk__desc_impl(pd));
    (void)dnnl_primitive_desc_destroy(pd);
    return code;
  }
  *out = pd;
  return YK_OK;
}

static void copy_rows(int64_t begin, int64_t end, void *arg) {
  const yk_stage *s = arg;
  for (int64_t i = begin; i < end; i++) memcpy(s->to + (size_t)i * s->pitch, s->from + (size_t)i * s->row_bytes, s->row_bytes);
}

/* Copy the staged argument and say where it is now. */
static void *staged(const yk_dnnl_state *s, const void *from, void *workspace) {
  yk_stage now = s->stage;
  now.from = from;
  now.to = (char *)workspace + now.at;
  yk__cpu_host->parallel_for(now.rows, (int64_t)(STAGE_GRAIN / now.row_bytes) + 1, copy_rows, &now);
  return now.to;
}

static yk_code run(const yk_kernel *k, void *const *arg, void *workspace) {
  yk_dnnl_state *s = k->state;
  for (int i = 0; i < s->n; i++) {
    void *at = s->slot[i] == SCRATCH ? workspace : arg[s->slot[i]];
    if (s->stage.rows && s->slot[i] == s->stage.slot) at = staged(s, at, workspace);
    if (at == s->last[i]) continue;
    if (yk__memory_point(s->exec[i].memory, at, s->stream))
      return YK_CPU_FAIL(EDEVICE, "%s: oneDNN refused the address of argument %d", s->impl, i);
    s->last[i] = at;
  }
  int team = s->solo ? yk__cpu_host->team() : 1;
  if (team > 1) yk__cpu_host->team_set(1);
  dnnl_status_t rc = dnnl_primitive_execute(s->prim, s->stream, s->n, s->exec);
  if (team > 1) yk__cpu_host->team_set(team);
  if (rc == dnnl_out_of_memory) return YK_CPU_FAIL(ENOMEM, "%s: oneDNN ran out of memory", s->impl);
  if (rc != dnnl_success) return YK_CPU_FAIL(EDEVICE, "%s: oneDNN failed with status %d", s->impl, (int)rc);
  return YK_OK;
}

static void destroy(yk_kernel *k) {
  yk_dnnl_state *s = k->state;
  if (!s) return;
  for (int i = 0; i < s->n; i++)
    if (s->exec[i].memory) (void)dnnl_memory_destroy(s->exec[i].memory);
  if (s->stream) (void)dnnl_stream_destroy(s->stream);
  if (s->prim) (void)dnnl_primitive_destroy(s->prim);
}

/* One execution argument. Skips what the primitive does not have. */
static int add_arg(yk_dnnl_state *s, const_dnnl_primitive_desc_t pd, yk_bind b) {
  yk_md md;
  int rc = yk__desc_md(pd, b.arg, &md);
  if (rc || !yk__md_is_set(&md)) return rc;
  rc = yk__memory(&md, engine, &s->exec[s->n].memory);
  yk__md_free(&md);
  if (rc) return rc;
  s->exec[s->n].arg = b.arg;
  s->slot[s->n++] = b.slot;
  return 0;
}

yk_code yk__dnnl_finish(yk_cpu_prepare *p, const_dnnl_primitive_desc_t pd, yk_dnnl_team team, const yk_bind *bind, int nbind) {
  yk_dnnl_state *s = yk__cpu_state(p, sizeof *s);
  if (!s) return YK_ENOMEM;
  p->k->destroy = destroy;
  size_t scratch = yk__desc_scratch(pd);
  snprintf(s->impl, sizeof s->impl, "dnnl:%s", yk__desc_impl(pd));
  int rc = (int)dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags);
  for (int i = 0; i < nbind && !rc; i++) rc = s->n < MAX_BIND - 1 ? add_arg(s, pd, bind[i]) : 1;
  if (!rc && scratch) rc = add_arg(s, pd, (yk_bind){ DNNL_ARG_SCRATCHPAD, SCRATCH });
  if (!rc) rc = (int)dnnl_primitive_create(&s->prim, pd);
  if (rc == (int)dnnl_out_of_memory) return YK_CPU_FAIL(ENOMEM, "oneDNN ran out of memory while preparing");
  if (rc) return YK_CPU_REFUSE("oneDNN could not make its primitive %s (status %d)", s->impl, rc);
  s->solo = team.size == 1;
  p->workspace = scratch;
  p->k->run = run;
  p->k->impl = s->impl;
  return YK_OK;
}

void yk__dnnl_stage(yk_cpu_prepare *p, int slot, int64_t rows, size_t row_bytes, size_t pitch) {
  yk_dnnl_state *s = p->k->state;
  size_t at = (size_t)(p->workspace + 63) / 64 * 64;
  s->stage = (yk_stage){ .slot = slot, .rows = rows, .row_bytes = row_bytes, .pitch = pitch, .at = at };
  p->workspace = at + (size_t)rows * pitch;
}

yk_code yk__dnnl_act(int act, double alpha, dnnl_alg_kind_t *alg, float *a, float *b, float *scale) {
  *a = *b = 0.0f;
  *scale = 1.0f;
  switch (act) {
    case YK_ACT_RELU: *alg = dnnl_eltwise_relu; return YK_OK;
    case YK_ACT_RELU6: *alg = dnnl_eltwise_clip; *b = 6.0f; return YK_OK;
    case YK_ACT_LEAKY_RELU: *alg = dnnl_eltwise_relu; *a = alpha == 0.0 ? 0.2f : (float)alpha; return YK_OK;
    case YK_ACT_ELU: *alg = dnnl_eltwise_elu; *a = alpha == 0.0 ? 1.0f : (float)alpha; return YK_OK;
    case YK_ACT_SELU: *alg = dnnl_eltwise_elu; *a = 1.6732632423543772f; *scale = 1.0507009873554805f; return YK_OK;
    case YK_ACT_GELU: *alg = dnnl_eltwise_gelu_erf; return YK_OK;
    case YK_ACT_SILU: *alg = dnnl_eltwise_swish; *a = 1.0f; return YK_OK;
    case YK_ACT_TANH: *alg = dnnl_eltwise_tanh; return YK_OK;
    case YK_ACT_SIGMOID: *alg = dnnl_eltwise_logistic; return YK_OK;
    case YK_ACT_SOFTPLUS: *alg = yk__alg_softplus(a); return YK_OK;
    default: return YK_CPU_REFUSE("no activation %d", act);
  }
}

yk_code yk__dnnl_accepts(const yk_cpu_prepare *p) {
  const yk_kernel *k = p->k;
  for (uint32_t i = 0; i < k->nin; i++)
    if (yk__cpu_count(&k->in[i]) == 0) return YK_CPU_REFUSE("input %u is empty", (unsigned)i);
  for (uint32_t i = 0; i < k->nout; i++)
    if (yk__cpu_count(&k->out[i]) == 0) return YK_CPU_REFUSE("output %u is empty", (unsigned)i);
  if (k->nin == 0) return YK_CPU_REFUSE("no input");
  uint8_t t = k->in[0].dtype;
  if (t != YK_F32 && t != YK_BF16 && t != YK_F16) return YK_CPU_REFUSE("oneDNN computes in f32, bf16 and f16 only");
  return YK_OK;
}
