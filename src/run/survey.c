/*
 * survey.c - see survey.h. What the executor would do with a plan, added up.
 *
 * Whose part a kernel is, is told by what it does and by its name: what overwrites a variable is the update, what stands in the
 * name scope of gradients is backward, the rest is forward.
 */
#include "run/survey.h"
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/desc.h"

static yk_code hold(yk_survey *v, yk_holding h) {
  return YK_PUSH(v->held, v->nheld, v->held_cap, h) ? YK_OK : YK_ENOMEM;
}

/* Every variable of the graph, whether or not this step uses it: a job has to keep them all. */
static yk_code count_variables(yk_survey *v, const yk_var_slot *var, const uint16_t *dev_of_node) {
  const yk_graph *g = v->s->g;
  for (uint32_t i = 0; i < v->s->nvar; i++) {
    const yk_variable *x = g->variable[i];
    uint16_t dev = var[i].dev != YK__NO_DEVICE ? var[i].dev : dev_of_node[yk__value_node(g, x->ref)->id];
    if (dev >= v->s->devices->n) return YK_FAIL(EINTERNAL, "variable %s was not placed", x->name);
    yk_device *d = &v->s->devices->at[dev];
    uint64_t bytes = 0;
    YK_TRY(d->driver->desc_bytes(d->dev, &var[i].desc, &bytes));
    if (bytes == 0) bytes = 1;                         /* as it is allocated */
    v->use[dev].variables++;
    v->use[dev].variable_bytes += yk__device_rounded(d, bytes);
    YK_TRY(hold(v, (yk_holding){ x->name, &var[i].desc, bytes, dev, true }));
  }
  return YK_OK;
}

/* Who makes each value: the first instruction that has to do with its buffer. */
static void find_makers(const yk_plan *p, const char **maker) {
  for (uint32_t i = p->ninstr; i-- > 0;) {
    const yk_instr *x = &p->instr[i];
    const char *name = p->origin[x->origin].name;
    for (uint16_t k = 0; k < x->nargs; k++)
      if (p->arg[x->args + k] != YK_NO_BUF) maker[p->arg[x->args + k]] = name;
    if (x->code == YK_I_LAUNCH && p->kernel[x->a].workspace != YK_NO_BUF) maker[p->kernel[x->a].workspace] = name;
  }
}

static yk_code count_arenas(yk_survey *v, const char *const *maker) {
  const yk_plan *p = v->p;
  for (uint32_t a = 0; a < p->narena; a++) {
    uint16_t dev = p->arena[a].dev;
    v->use[dev].arena_bytes += yk__device_rounded(&v->s->devices->at[dev], p->arena[a].bytes ? p->arena[a].bytes : 1);
  }
  for (uint32_t b = 0; b < p->nbuf; b++) {
    const yk_buf *x = &p->buf[b];
    const char *name = x->kind == YK_BUF_CONSTANT ? "a constant" : "the run counter";
    if (x->kind == YK_BUF_VARIABLE) continue;
    if (x->kind == YK_BUF_ARENA) name = maker[b] ? maker[b] : "a value";
    YK_TRY(hold(v, (yk_holding){ name, &x->desc, x->bytes, p->arena[x->arena].dev, false }));
  }
  return YK_OK;
}

static yk_code add_copy(yk_survey *v, uint16_t from, uint16_t to, uint64_t bytes) {
  uint32_t k = 0;
  while (k < v->nroute && (v->route[k].from != from || v->route[k].to != to)) k++;
  if (k == v->nroute && !YK_PUSH(v->route, v->nroute, v->route_cap, ((yk_route){ .from = from, .to = to }))) return YK_ENOMEM;
  v->route[k].copies++;
  v->route[k].bytes += bytes;
  return YK_OK;
}

/* What a kernel reads and writes in memory that is another device's, as if it were copied. */
static yk_code count_reach(yk_survey *v, const yk_instr *x) {
  const yk_plan *p = v->p;
  const yk_plan_kernel *k = &p->kernel[x->a];
  uint16_t here = p->stream_dev[x->stream];
  for (uint16_t i = 0; i < x->nargs; i++) {
    uint32_t b = p->arg[x->args + i];
    if (b == YK_NO_BUF) continue;
    uint16_t there = p->arena[p->buf[b].arena].dev;
    if (yk__device_same_memory(&v->s->devices->at[here], &v->s->devices->at[there])) continue;
    bool written = i < k->nwritten || i >= k->nin;
    YK_TRY(add_copy(v, written ? here : there, written ? there : here, p->buf[b].bytes));
  }
  return YK_OK;
}

static yk_code count_copies(yk_survey *v) {
  const yk_plan *p = v->p;
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *x = &p->instr[i];
    uint16_t to = p->stream_dev[x->stream];
    if (x->code == YK_I_LAUNCH) YK_TRY(count_reach(v, x));
    if (x->code != YK_I_COPY_PEER && x->code != YK_I_FEED && x->code != YK_I_FETCH) continue;
    uint64_t bytes = p->buf[p->arg[x->args]].bytes;
    if (x->code == YK_I_COPY_PEER) YK_TRY(add_copy(v, p->arena[p->buf[p->arg[x->args + 1]].arena].dev, to, bytes));
    else if (strcmp(v->s->devices->at[to].spec.type, "CPU") == 0) continue;                   /* the host's own memory */
    else if (x->code == YK_I_FEED) YK_TRY(add_copy(v, YK__NO_DEVICE, to, bytes));
    else YK_TRY(add_copy(v, to, YK__NO_DEVICE, bytes));
  }
  return YK_OK;
}

static yk_code count_operations(yk_survey *v, uint16_t *dev_of_node) {
  const yk_graph *g = v->s->g;
  yk_place_request r = yk__session_placing(v->s);
  memset(dev_of_node, 0xFF, (g->nnode + 1u) * sizeof *dev_of_node);
  YK_TRY(yk__place_graph(&r, dev_of_node, NULL));
  for (uint32_t i = 1; i < g->nnode; i++)
    if (yk__node(g, i) && dev_of_node[i] < v->s->devices->n) v->use[dev_of_node[i]].operations++;
  return YK_OK;
}

/* ---- one launch --------------------------------------------------------------------------------------------------- */

static bool has_scope(const char *name, const char *scope) {
  size_t n = strlen(scope);
  for (const char *at = name; (at = strstr(at, scope)) != NULL; at++)
    if ((at == name || at[-1] == '/') && at[n] == '/') return true;
  return false;
}

bool yk__instr_input(const yk_plan *p, const yk_instr *i) {
  const yk_op *op = p->kernel[i->a].op;
  return op && op->out[0].name && (op->out[0].flags & YK_PORT_HOST);
}

yk_phase yk__instr_phase(const yk_plan *p, const yk_instr *i) {
  if (p->kernel[i->a].nwritten > 0) return YK__UPDATE;
  return has_scope(p->origin[i->origin].name, "gradients") ? YK__BACKWARD : YK__FORWARD;
}

double yk__instr_flops(const yk_plan *p, const yk_instr *i) {
  const yk_plan_kernel *k = &p->kernel[i->a];
  double most = 0, written = 0;
  if (k->is_reorder || k->op == NULL) return 0;
  if (k->op->flops != NULL) {
    yk_infer c = { .in = k->desc, .nin = k->nin, .out = (yk_desc *)k->desc + k->nin, .nout = (uint16_t)(i->nargs - k->nin), .attrs = k->attrs };
    return k->op->flops(&c);
  }
  for (uint16_t n = 0; n < i->nargs; n++) {
    double count = p->arg[i->args + n] == YK_NO_BUF ? 0 : (double)yk__desc_count(&k->desc[n]);
    if (count > most) most = count;
    if (n < k->nwritten) written += count;             /* a merged update has several tensors of each sort */
  }
  return k->nwritten > 0 ? written : most;
}

uint64_t yk__instr_bytes(const yk_plan *p, const yk_instr *i) {
  uint64_t sum = 0;
  for (uint16_t k = 0; k < i->nargs; k++) {
    uint32_t b = p->arg[i->args + k];
    if (b != YK_NO_BUF) sum += p->buf[b].bytes * (k < p->kernel[i->a].nwritten ? 2u : 1u);
  }
  return sum;
}

static void count_flops(yk_survey *v) {
  for (uint32_t i = 0; i < v->p->ninstr; i++) {
    const yk_instr *x = &v->p->instr[i];
    if (x->code == YK_I_LAUNCH) v->flops[v->p->stream_dev[x->stream]][yk__instr_phase(v->p, x)] += yk__instr_flops(v->p, x);
  }
}

/* ---- all ---------------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
  const yk_holding *x = a, *y = b;
  return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static yk_code look_into(yk_survey *v, const yk_var_slot *var, uint16_t *dev_of_node) {
  YK_TRY(count_operations(v, dev_of_node));
  YK_TRY(count_variables(v, var, dev_of_node));
  const char **maker = yk__calloc(v->p->nbuf + 1u, sizeof(char *));
  if (maker == NULL) return YK_ENOMEM;
  find_makers(v->p, maker);
  yk_code rc = count_arenas(v, maker);
  yk__free(maker);
  YK_TRY(rc);
  YK_TRY(count_copies(v));
  count_flops(v);
  if (v->nheld > 0) qsort(v->held, v->nheld, sizeof *v->held, by_size);
  v->fits = true;
  for (uint16_t i = 0; i < v->s->devices->n; i++) {
    yk_device_use *u = &v->use[i];
    u->bytes_limit = v->s->devices->at[i].limit;
    u->fits = u->variable_bytes <= u->bytes_limit && u->arena_bytes <= u->bytes_limit - u->variable_bytes;
    v->fits = v->fits && u->fits;
  }
  return YK_OK;
}

yk_code yk__survey(const yk_session *s, const yk_plan *p, const yk_var_slot *var, yk_survey *out) {
  yk_survey v = { .s = s, .p = p };
  uint16_t *dev_of_node = yk__alloc((s->g->nnode + 1u) * sizeof *dev_of_node);
  v.use = yk__calloc(s->devices->n + 1u, sizeof *v.use);
  v.flops = yk__calloc(s->devices->n + 1u, sizeof *v.flops);
  yk_code rc = dev_of_node && v.use && v.flops ? look_into(&v, var, dev_of_node) : YK_ENOMEM;
  yk__free(dev_of_node);
  if (rc == YK_OK) *out = v;
  else yk__survey_free(&v);
  return rc;
}

void yk__survey_free(yk_survey *v) {
  yk__free(v->use);
  yk__free(v->flops);
  yk__free(v->route);
  yk__free(v->held);
  *v = (yk_survey){ 0 };
}
