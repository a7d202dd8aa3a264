/*
 * loop_update.c - kernels that overwrite variables: assign, optimizer steps, moving averages.
 *
 * Nothing here looks at shapes: a value, its gradient and its slots share one layout, padding included, so whole buffers are
 * run over (f(0) = 0 keeps padding zero). A merged update of many variables is one parallel loop over all their elements
 * laid end to end.
 */
#include "loop_update.h"

#include <math.h>
#include <string.h>

/* ---- from an operation to its formula ---------------------------------------------------------------------------------- */

static const struct { const char *op, *impl, *impl_rows; yk_update_id id; uint32_t operands, scalars; } formulae[] = {
  { "sgd_update", "plain:sgd_update", "plain:sparse_sgd_update", U_sgd, 2, 1 },
  { "momentum_update", "plain:momentum_update", "plain:sparse_momentum_update", U_momentum, 3, 2 },
  { "ema_update", "plain:ema_update", NULL, U_ema, 2, 1 },
  { "adam_update", "plain:adam_update", NULL, U_adam, 4, 3 },
  { "lamb_update", "plain:lamb_update", NULL, U_lamb, 4, 3 },
  { "rmsprop_update", "plain:rmsprop_update", "plain:sparse_rmsprop_update", U_rmsprop, 4, 1 },
  { "rmsprop_centered_update", "plain:rmsprop_centered_update", "plain:sparse_rmsprop_centered_update", U_centered, 5, 1 },
  { "adagrad_update", "plain:adagrad_update", "plain:sparse_adagrad_update", U_adagrad, 3, 1 },
  { "adadelta_update", "plain:adadelta_update", "plain:sparse_adadelta_update", U_adadelta, 4, 1 },
  { "ftrl_update", "plain:ftrl_update", "plain:sparse_ftrl_update", U_ftrl, 4, 1 },
};

/* The formula that the attributes choose. */
static yk_update_id variant(yk_update_id id, const void *attrs) {
  const yk_update_attrs *u = attrs;
  const yk_rule_attrs *a = attrs;
  switch (id) {
    case U_momentum: return u->keras ? u->nesterov ? U_keras_nesterov : U_keras_momentum : u->nesterov ? U_nesterov : U_momentum;
    case U_adam: return a->nesterov ? U_adam_nesterov : U_adam;
    case U_rmsprop: return a->keras ? U_keras_rmsprop : U_rmsprop;
    case U_adagrad: return a->keras ? U_keras_adagrad : U_adagrad;
    case U_ftrl: return a->lr_power == -0.5 ? U_ftrl : U_ftrl_power;
    default: return id;
  }
}

yk_code yk__loop_rule(yk_cpu_prepare *p, yk_loop_rule *out) {
  static const yk_rule_attrs zeros;
  const yk_kernel *k = p->k;
  uint8_t dtype = k->in[0].dtype;
  int rows = strncmp(p->spec->op, "sparse_", 7) == 0;
  const char *op = p->spec->op + (rows ? 7 : 0);
  for (size_t i = 0; i < sizeof formulae / sizeof *formulae; i++) {
    if (strcmp(formulae[i].op, op) != 0) continue;
    yk_loop_rule r = { .impl = rows ? formulae[i].impl_rows : formulae[i].impl, .attrs = k->attrs ? k->attrs : &zeros,
                       .operands = formulae[i].operands, .scalars = formulae[i].scalars };
    r.id = variant(formulae[i].id, r.attrs);
    r.fn = yk__loop_update()->fn[r.id][dtype == YK_F64];
    r.bytes = (uint32_t)yk__cpu_dtype_bytes(dtype);
    if (yk__loop_half(dtype)) {
      r.load = yk__loop_elem()->to_f32[dtype == YK_BF16];
      r.store = yk__loop_elem()->from_f32[dtype == YK_BF16];
    }
    *out = r;
    return YK_OK;
  }
  return YK_CPU_REFUSE("no formula for it");
}

static double scalar(const yk_loop_rule *r, uint8_t dtype, const void *p) {
  float f;
  if (dtype == YK_F64) return *(const double *)p;
  if (dtype == YK_F32) return (double)*(const float *)p;
  r->load(1, p, NULL, NULL, &f, NULL);
  return (double)f;
}

/* 1 - x, x having been rounded to f32 first. */
static double rest(double x) { return 1 - (double)(float)x; }

static void adaptive(const yk_loop_rule *r, const double *s, double *p) {
  const yk_rule_attrs *a = r->attrs;
  switch (r->id) {
    case U_adam: case U_adam_nesterov:
      p[0] = s[0] * sqrt(1 - s[2]) / (1 - s[1]);
      p[1] = rest(a->beta1); p[2] = rest(a->beta2); p[3] = a->epsilon; p[4] = a->decay * s[0];
      break;
    case U_lamb:
      p[0] = rest(a->beta1); p[1] = rest(a->beta2); p[2] = a->epsilon; p[3] = a->decay;
      p[4] = 1 / (1 - s[1]); p[5] = 1 / (1 - s[2]); p[6] = s[0];
      break;
    case U_rmsprop: case U_keras_rmsprop: case U_centered:
      p[0] = rest(a->rho); p[1] = a->momentum; p[2] = s[0]; p[3] = a->epsilon;
      break;
    case U_adagrad: case U_keras_adagrad:
      p[0] = s[0]; p[1] = a->epsilon;
      break;
    case U_adadelta:
      p[0] = s[0]; p[1] = (double)(float)a->rho; p[2] = a->epsilon;
      break;
    default:                                              /* both of ftrl */
      p[0] = s[0]; p[1] = a->l1; p[2] = 2 * a->l2; p[3] = 2 * a->shrinkage; p[4] = -a->lr_power;
  }
}

void yk__loop_rule_numbers(const yk_loop_rule *r, const yk_kernel *k, void *const *arg, uint32_t first, double p[U_NUMBERS]) {
  double s[3] = { 0 };
  for (uint32_t i = 0; i < r->scalars; i++) s[i] = scalar(r, k->in[first + i].dtype, arg[first + i]);
  if (r->id > U_ema) {
    adaptive(r, s, p);
    return;
  }
  p[0] = r->id == U_ema ? 1 - s[0] : s[0];
  p[1] = s[1];
}

/* f16, bf16: through f32, a block at a time; the last operand is only read. */
static void apply_half(const yk_loop_rule *r, int64_t n, char *const *t, const double *p, const float *ready) {
  float buf[U_OPERANDS][L_BLOCK];
  uint32_t last = r->operands - 1;
  void *at[U_OPERANDS];
  for (uint32_t j = 0; j < U_OPERANDS; j++) at[j] = buf[j];
  if (ready) at[last] = (void *)(uintptr_t)ready;
  for (int64_t i = 0; i < n; i += L_BLOCK) {
    int64_t m = n - i < L_BLOCK ? n - i : L_BLOCK;
    for (uint32_t j = 0; j < (ready ? last : r->operands); j++) r->load(m, t[j] + i * 2, NULL, NULL, buf[j], NULL);
    r->fn(m, at, p);
    for (uint32_t j = 0; j < last; j++) r->store(m, buf[j], NULL, NULL, t[j] + i * 2, NULL);
  }
}

void yk__loop_rule_apply(const yk_loop_rule *r, int64_t n, char *const *t, const double *p, const float *ready) {
  void *at[U_OPERANDS];
  if (r->load) {
    apply_half(r, n, t, p, ready);
    return;
  }
  for (uint32_t j = 0; j < r->operands; j++) at[j] = t[j];
  r->fn(n, at, p);
}

/* ---- dense updates ----------------------------------------------------------------------------------------------------- */

typedef struct update {
  yk_loop_rule r;
  uint32_t n;                            /* variables */
  int64_t start[];                       /* [n+1] first element of each variable in the concatenation */
} update;

typedef struct update_call { const update *u; void *const *arg; double p[U_NUMBERS]; } update_call;

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
    char *t[U_OPERANDS] = { NULL };
    if (stop <= begin) continue;
    for (uint32_t j = 0; j < u->r.operands; j++) t[j] = (char *)c->arg[j * u->n + lo] + from * u->r.bytes;
    yk__loop_rule_apply(&u->r, stop - begin, t, c->p, NULL);
    begin = stop;
  }
}

static yk_code update_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const update *u = k->state;
  update_call c = { u, arg, { 0 } };
  (void)workspace;
  if (yk__loop_off(k, arg, u->r.operands * u->n + u->r.scalars)) return YK_OK;
  yk__loop_rule_numbers(&u->r, k, arg, u->r.operands * u->n, c.p);
  yk__cpu_host->parallel_for(u->start[u->n], L_GRAIN, update_piece, &c);
  return YK_OK;
}

yk_code yk__loop_follow(yk_cpu_prepare *p, uint32_t i, uint32_t step, uint32_t count, int64_t *elements) {
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
  yk_kernel *k = p->k;
  yk_loop_rule r;
  YK_TRY(yk__loop_rule(p, &r));
  uint32_t n = (k->nin - r.scalars) / r.operands;
  update *u = yk__cpu_state(p, sizeof *u + (n + 1) * sizeof u->start[0]);
  if (!u) return YK_ENOMEM;
  u->r = r;
  u->n = n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t elements;
    YK_TRY(yk__loop_follow(p, i, n, r.operands, &elements));
    u->start[i + 1] = u->start[i] + elements;
  }
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  k->run = update_run;
  k->impl = r.impl;
  return YK_OK;
}

/* ---- assign, assign_add, assign_sub: the variable is input 0, a guard input 2, the result its view ------------------------------------ */

typedef struct assign { yk_elem_fn fn, load, store; int64_t n; uint32_t bytes; } assign;
typedef struct assign_call { const assign *a; char *ref; const char *value; char *out; int off; } assign_call;

static void change(const assign *a, int64_t n, char *ref, const char *value) {
  const double none[2] = { 0, 0 };
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
}

static void assign_piece(int64_t begin, int64_t end, void *arg) {
  const assign_call *c = arg;
  const assign *a = c->a;
  char *ref = c->ref + begin * a->bytes;
  if (!c->off) change(a, end - begin, ref, c->value + begin * a->bytes);
  if (c->out && c->out != c->ref) memcpy(c->out + begin * a->bytes, ref, (size_t)(end - begin) * a->bytes);
}

static yk_code assign_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const assign *a = k->state;
  assign_call c = { a, arg[0], arg[1], arg[k->nin], yk__loop_off(k, arg, 2) };
  (void)workspace;
  if (c.off && (c.out == NULL || c.out == c.ref)) return YK_OK;
  if (a->n) yk__cpu_host->parallel_for(a->n, L_GRAIN, assign_piece, &c);
  return YK_OK;
}

yk_code yk__cpu_loop_assign(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const char *op = p->spec->op;
  uint8_t dtype = k->in[0].dtype;
  assign *a = yk__cpu_state(p, sizeof *a);
  if (!a) return YK_ENOMEM;
  YK_TRY(yk__loop_follow(p, 0, 1, 2, &a->n));
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
