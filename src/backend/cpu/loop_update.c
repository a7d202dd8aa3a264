/*
 * loop_update.c - kernels that overwrite variables: assign, optimizer steps, moving averages.
 *
 * Nothing here looks at shapes: a value, its gradient and its slots share one layout, padding included, so whole buffers are
 * run over (f(0) = 0 keeps padding zero). A merged update of many variables is one parallel loop over all their elements
 * laid end to end.
 */
#include "loop_isa.h"

#include <string.h>

typedef struct update {
  const yk_update_fns *fn;
  yk_elem_fn load, store;
  uint32_t n, operands;                  /* variables; tensors a variable has (w, g or w, a, g) */
  uint32_t kind, nesterov, bytes, dtype;
  int64_t start[];                       /* [n+1] first element of each variable in the concatenation */
} update;
enum { SGD, MOMENTUM, EMA };

typedef struct update_call { const update *u; void *const *arg; double s[2]; } update_call;

static void apply(const update *u, int64_t n, void *const *t, const double *s) {
  switch (u->kind) {
    case SGD: u->fn->sgd(n, t[0], t[1], s[0]); break;
    case MOMENTUM: u->fn->momentum(n, t[0], t[1], t[2], s[0], s[1], u->nesterov); break;
    default: u->fn->ema(n, t[0], t[1], s[0]); break;
  }
}

/* f16, bf16: through f32, a block at a time; the last operand is only read. */
static void apply_half(const update *u, int64_t n, char *const *t, const double *s) {
  float buf[3][L_BLOCK];
  void *const at[3] = { buf[0], buf[1], buf[2] };
  for (int64_t i = 0; i < n; i += L_BLOCK) {
    int64_t m = n - i < L_BLOCK ? n - i : L_BLOCK;
    for (uint32_t j = 0; j < u->operands; j++) u->load(m, t[j] + i * 2, NULL, NULL, buf[j], NULL);
    apply(u, m, at, s);
    for (uint32_t j = 0; j + 1 < u->operands; j++) u->store(m, buf[j], NULL, NULL, t[j] + i * 2, NULL);
  }
}

static void update_piece(int64_t begin, int64_t end, void *argv) {
  const update_call *c = argv;
  const update *u = c->u;
  uint32_t lo = 0, hi = u->n;
  while (hi - lo > 1) {                                  /* the variable that holds element `begin` */
    uint32_t mid = lo + (hi - lo) / 2;
    if (u->start[mid] <= begin) lo = mid;
    else hi = mid;
  }
  for (; begin < end; lo++) {
    int64_t stop = u->start[lo + 1] < end ? u->start[lo + 1] : end, from = begin - u->start[lo];
    char *t[3] = { NULL, NULL, NULL };
    if (stop <= begin) continue;
    for (uint32_t j = 0; j < u->operands; j++) t[j] = (char *)c->arg[j * u->n + lo] + from * u->bytes;
    if (u->load) apply_half(u, stop - begin, t, c->s);
    else apply(u, stop - begin, (void *const[3]){ t[0], t[1], t[2] }, c->s);
    begin = stop;
  }
}

static double scalar(const update *u, const void *p) {
  float f;
  if (u->dtype == YK_F64) return *(const double *)p;
  if (u->load) u->load(1, p, NULL, NULL, &f, NULL);
  else f = *(const float *)p;
  return (double)f;
}

static yk_code update_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const update *u = k->state;
  update_call c = { u, arg, { 0, 0 } };
  uint32_t first = u->operands * u->n;
  (void)workspace;
  c.s[0] = scalar(u, arg[first]);
  if (u->kind == MOMENTUM) c.s[1] = scalar(u, arg[first + 1]);
  yk__cpu_host->parallel_for(u->start[u->n], L_GRAIN, update_piece, &c);
  return YK_OK;
}

/* All of `count` inputs, from `i` in steps of `step`, take the layout of input i. *elements: of the whole buffer. */
static yk_code follow(yk_cpu_prepare *p, uint32_t i, uint32_t step, uint32_t count, int64_t *elements) {
  yk_kernel *k = p->k;
  uint64_t bytes;
  *elements = yk__cpu_count(&k->in[i]);
  for (uint32_t j = 1; j < count; j++) {
    yk_desc *d = &k->in[i + j * step];
    if (d->layout == k->in[i].layout) continue;
    if (p->spec->flags & YK_SPEC_FIXED)
      return YK_CPU_REFUSE("input %u is in layout %u, input %u in %u", (unsigned)i, (unsigned)k->in[i].layout,
                           (unsigned)(i + j * step), (unsigned)d->layout);
    d->layout = k->in[i].layout;
  }
  if (k->in[i].layout == YK_LAYOUT_PLAIN) return YK_OK;
  YK_TRY(yk__cpu_layout_bytes(&k->in[i], &bytes));
  *elements = (int64_t)(bytes / yk__cpu_dtype_bytes(k->in[i].dtype));
  return YK_OK;
}

yk_code yk__cpu_loop_update(yk_cpu_prepare *p) {
  static const char *const impl[] = { "plain:sgd_update", "plain:momentum_update", "plain:ema_update" };
  yk_kernel *k = p->k;
  const yk_update_attrs *a = k->attrs;
  uint32_t kind = strcmp(p->spec->op, "sgd_update") == 0 ? SGD : strcmp(p->spec->op, "momentum_update") == 0 ? MOMENTUM : EMA;
  uint32_t operands = kind == MOMENTUM ? 3 : 2, scalars = kind == MOMENTUM ? 2 : 1;
  uint32_t n = (k->nin - scalars) / operands;
  update *u = yk__cpu_state(p, sizeof *u + (n + 1) * sizeof u->start[0]);
  if (!u) return YK_ENOMEM;
  u->kind = kind;
  u->operands = operands;
  u->n = n;
  u->dtype = k->in[0].dtype;
  u->bytes = (uint32_t)yk__cpu_dtype_bytes(k->in[0].dtype);
  u->nesterov = a && a->nesterov;
  u->fn = &yk__loop_update()->fn[u->dtype == YK_F64];
  if (yk__loop_half(k->in[0].dtype)) {
    u->load = yk__loop_elem()->to_f32[u->dtype == YK_BF16];
    u->store = yk__loop_elem()->from_f32[u->dtype == YK_BF16];
  }
  for (uint32_t i = 0; i < n; i++) {
    int64_t elements;
    YK_TRY(follow(p, i, n, operands, &elements));
    u->start[i + 1] = u->start[i] + elements;
  }
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  k->run = update_run;
  k->impl = impl[kind];
  return YK_OK;
}

/* ---- assign, assign_add, assign_sub: the variable is input 0, the result its view ------------------------------------ */

typedef struct assign { yk_elem_fn fn, load, store; int64_t n; uint32_t bytes; } assign;
typedef struct assign_call { const assign *a; char *ref; const char *value; char *out; } assign_call;

static void assign_piece(int64_t begin, int64_t end, void *arg) {
  const assign_call *c = arg;
  const assign *a = c->a;
  const double none[2] = { 0, 0 };
  char *ref = c->ref + begin * a->bytes;
  const char *value = c->value + begin * a->bytes;
  int64_t n = end - begin;
  float x[L_BLOCK], y[L_BLOCK];
  if (!a->fn) {
    if (ref != value) memmove(ref, value, (size_t)n * a->bytes);
  } else if (!a->load) {
    a->fn(n, ref, value, NULL, ref, none);
  } else {
    for (int64_t i = 0; i < n; i += L_BLOCK) {
      int64_t m = n - i < L_BLOCK ? n - i : L_BLOCK;
      a->load(m, ref + i * 2, NULL, NULL, x, NULL);
      a->load(m, value + i * 2, NULL, NULL, y, NULL);
      a->fn(m, x, y, NULL, x, none);
      a->store(m, x, NULL, NULL, ref + i * 2, NULL);
    }
  }
  if (c->out && c->out != c->ref) memcpy(c->out + begin * a->bytes, ref, (size_t)n * a->bytes);
}

static yk_code assign_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const assign *a = k->state;
  assign_call c = { a, arg[0], arg[1], arg[2] };
  (void)workspace;
  if (a->n) yk__cpu_host->parallel_for(a->n, L_GRAIN, assign_piece, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_assign(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const char *op = p->spec->op;
  uint8_t dtype = k->in[0].dtype;
  assign *a = yk__cpu_state(p, sizeof *a);
  if (!a) return YK_ENOMEM;
  YK_TRY(follow(p, 0, 1, 2, &a->n));
  a->bytes = (uint32_t)yk__cpu_dtype_bytes(dtype);
  if (strcmp(op, "assign") != 0)
    a->fn = yk__loop_elem()->fn[strcmp(op, "assign_add") == 0 ? E_add : E_sub][yk__loop_type(dtype)][L_VV];
  if (yk__loop_half(dtype)) {
    a->load = yk__loop_elem()->to_f32[dtype == YK_BF16];
    a->store = yk__loop_elem()->from_f32[dtype == YK_BF16];
  }
  k->out[0].layout = k->in[0].layout;
  p->inplace = 1;
  k->run = assign_run;
  k->impl = "plain:assign";
  return YK_OK;
}
