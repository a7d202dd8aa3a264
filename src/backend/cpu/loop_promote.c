/*
 * loop_promote.c - lets a kernel written for f32 and f64 take f16 and bf16 too.
 *
 * Arguments that are halves are converted to f32 in the workspace around the call of the kernel's body. Slower than native
 * halves, but every plain loop has one version less to get wrong.
 */
#include "loop_nn.h"

typedef struct convert_call { yk_elem_fn fn; const char *src; char *dst; int64_t src_bytes, dst_bytes; } convert_call;

static void convert_piece(int64_t begin, int64_t end, void *arg) {
  const convert_call *c = arg;
  c->fn(end - begin, c->src + begin * c->src_bytes, NULL, NULL, c->dst + begin * c->dst_bytes, NULL);
}

static void convert(int64_t n, yk_elem_fn fn, const void *src, int64_t src_bytes, void *dst, int64_t dst_bytes) {
  convert_call c = { fn, src, dst, src_bytes, dst_bytes };
  if (n) yk__cpu_host->parallel_for(n, L_GRAIN, convert_piece, &c);
}

static yk_code promoted_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_loop_body *b = k->state;
  const yk_elem_table *t = yk__loop_elem();
  void *at[LOOP_MAX_ARGS];
  uint32_t n = k->nin + k->nout;
  for (uint32_t i = 0; i < n; i++) {
    at[i] = arg[i];
    if (!b->at[i] || !arg[i]) continue;
    at[i] = (char *)workspace + b->at[i];
    if (i < k->nin) convert(yk__cpu_count(&k->in[i]), t->to_f32[k->in[i].dtype == YK_BF16], arg[i], 2, at[i], 4);
  }
  YK_TRY(b->body(k, at, workspace));
  for (uint32_t i = k->nin; i < n; i++) {
    const yk_desc *d = &k->out[i - k->nin];
    if (b->at[i] && arg[i]) convert(yk__cpu_count(d), t->from_f32[d->dtype == YK_BF16], at[i], 4, arg[i], 2);
  }
  return YK_OK;
}

yk_code yk__loop_body(yk_cpu_prepare *p, size_t state_bytes, yk_loop_run body, const char *impl, void *out) {
  yk_kernel *k = p->k;
  if (k->nin + k->nout > LOOP_MAX_ARGS)
    return YK_CPU_REFUSE("%u arguments, at most %d", (unsigned)(k->nin + k->nout), LOOP_MAX_ARGS);
  YK_TRY(yk__cpu_want_plain(p));
  yk_loop_body *b = yk__cpu_state(p, state_bytes);
  if (!b) return YK_ENOMEM;
  b->body = body;
  k->run = body;
  k->impl = impl;
  *(void **)out = b;
  return YK_OK;
}

void yk__loop_workspace(yk_cpu_prepare *p, uint64_t body_bytes) {
  yk_kernel *k = p->k;
  yk_loop_body *b = k->state;
  uint64_t at = (body_bytes + 64 + 63) & ~(uint64_t)63;          /* never 0: 0 means "not converted" */
  uint32_t halves = 0;
  for (uint32_t i = 0; i < k->nin + k->nout; i++) {
    const yk_desc *d = i < k->nin ? &k->in[i] : &k->out[i - k->nin];
    if (!yk__loop_half(d->dtype)) continue;
    b->at[i] = at;
    at += ((uint64_t)yk__cpu_count(d) * 4 + 63) & ~(uint64_t)63;
    halves++;
  }
  p->workspace = halves ? at : body_bytes;
  if (halves) k->run = promoted_run;
}
