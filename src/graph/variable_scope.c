/*
 * variable_scope.c - which names variables get, whether they are shared, and what they inherit.
 *
 * A variable scope that is opened again is the same scope: unlike a name scope it is
 * never renamed, which is how sharing works. Only scopes named by `default_name` are
 * made unique, by counting how often each scope was opened.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "graph/store.h"

yk_code yk__store_new(yk_graph *g) {
  g->store = yk__calloc(1, sizeof *g->store);
  if (!g->store) return YK_ENOMEM;
  yk_variable_scope *root = yk__bump(&g->arena, sizeof *root);
  if (!root) return YK_ENOMEM;
  root->g = g;
  root->name = root->name_scope = "";
  g->store->scope = root;
  return YK_OK;
}

void yk__store_free(yk_graph *g) {
  struct yk_variable_store *s = g->store;
  if (!s) return;
  yk__map_free(&s->by_name);
  for (uint32_t i = 0; i < s->nkept; i++) yk_tensor_free(s->kept[i]);
  yk__free(s->kept);
  yk__free(s->count);
  yk__free(s);
  g->store = NULL;
}

/* ---- how often scopes were opened ---- */

static uint32_t opened(const struct yk_variable_store *s, const char *name) {
  for (uint32_t i = 0; i < s->ncount; i++)
    if (!strcmp(s->count[i].name, name)) return s->count[i].n;
  return 0;
}

static yk_code note_opening(struct yk_variable_store *s, const char *name) {
  for (uint32_t i = 0; i < s->ncount; i++) {
    if (strcmp(s->count[i].name, name)) continue;
    s->count[i].n++;
    return YK_OK;
  }
  yk_scope_count c = { name, 1 };
  return YK_PUSH(s->count, s->ncount, s->count_cap, c) ? YK_OK : YK_ENOMEM;
}

/* Scopes below `name` count as never opened, once it is left. */
static void forget_below(struct yk_variable_store *s, const char *name) {
  size_t n = strlen(name);
  for (uint32_t i = 0; i < s->ncount; i++)
    if (!strncmp(s->count[i].name, name, n) && s->count[i].name[n] == '/') s->count[i].n = 0;
}

/* ---- opening ---- */

static char *join(yk_graph *g, const char *scope, const char *name) {
  size_t bytes = strlen(scope) + strlen(name) + 16;        /* room for "_k" */
  char *full = yk__bump(&g->arena, bytes);
  if (full) snprintf(full, bytes, "%s%s%s", scope, scope[0] ? "/" : "", name);
  return full;
}

/* Full name for a scope without a name of its own: default_name, default_name_1, ... */
static yk_code default_name(yk_graph *g, const yk_scope_options *o, char **out) {
  struct yk_variable_store *s = g->store;
  if (!o->default_name || !o->default_name[0])
    return YK_FAIL(EINVAL, "yk_variable_scope_push: neither a name nor a default_name was given");
  if (o->reuse != YK_REUSE_INHERIT)
    return YK_FAIL(EINVAL, "a variable scope named by default_name '%s' cannot be reused: its name is a new one each time; "
                   "pass a name", o->default_name);
  char *full = join(g, s->scope->name, o->default_name);
  if (!full) return YK_ENOMEM;
  size_t base = strlen(full);
  for (unsigned k = 1; opened(s, full); k++) snprintf(full + base, 16, "_%u", k);
  *out = full;
  return YK_OK;
}

/* Settings of a scope: its own, or else the parent's. A tensor to start from is copied. */
static yk_code inherit(yk_graph *g, yk_variable_scope *scope, const yk_variable_scope *from, const yk_scope_options *o) {
  struct yk_variable_store *s = g->store;
  scope->reuse = o->reuse ? o->reuse : from->reuse;
  scope->init = o->init.kind ? o->init : from->init;
  scope->lend = from->lend;
  scope->lend_arg = from->lend_arg;
  scope->regularizer = yk__regularizer_set(&o->regularizer) ? o->regularizer : from->regularizer;
  if (o->init.kind != YK_INIT_TENSOR || !o->init.tensor) return YK_OK;
  yk_tensor *copy = NULL;
  const yk_desc *d = yk_tensor_desc(o->init.tensor);
  yk_shape shape = { d->rank, { 0 } };
  memcpy(shape.dim, d->dim, sizeof shape.dim);
  YK_TRY(yk_tensor_from((yk_dtype)d->dtype, shape, yk_tensor_data(o->init.tensor), &copy));
  if (!YK_PUSH(s->kept, s->nkept, s->kept_cap, copy)) {
    yk_tensor_free(copy);
    return YK_ENOMEM;
  }
  scope->init.tensor = copy;
  return YK_OK;
}

static yk_variable_scope *new_scope(yk_graph *g, const char *name) {
  yk_variable_scope *scope = yk__bump(&g->arena, sizeof *scope);
  if (!scope) return NULL;
  scope->g = g;
  scope->name = name;
  return scope;
}

static yk_code check_reuse(const yk_scope_options *o) {
  int reuse = (int)o->reuse;
  if (reuse >= YK_REUSE_INHERIT && reuse <= YK_AUTO_REUSE) return YK_OK;
  return YK_FAIL(EINVAL, "reuse is %d, expected YK_REUSE_INHERIT, YK_REUSE or YK_AUTO_REUSE", reuse);
}

static yk_code push(yk_graph *g, const char *name, const yk_scope_options *o) {
  struct yk_variable_store *s = g->store;
  char *full = NULL;
  YK_TRY(check_reuse(o));
  if (!name) YK_TRY(default_name(g, o, &full));
  const char *shown = name ? name : o->default_name;
  if (!yk__name_valid(shown, s->scope->name[0] != 0) || shown[strlen(shown) - 1] == '/')
    return YK_FAIL(EINVAL, "'%.100s' is no name for a variable scope; expected letters, digits and _ . - /, not ending in /",
                   shown);
  if (name) full = join(g, s->scope->name, name);
  yk_variable_scope *scope = full ? new_scope(g, full) : NULL;
  if (!scope) return YK_ENOMEM;
  YK_TRY(inherit(g, scope, s->scope, o));
  if (!o->no_name_scope) YK_TRY(yk__names_enter(g, shown));
  scope->name_scope = yk__names_current(g);
  YK_TRY(note_opening(s, full));
  s->scope = scope;
  return YK_OK;
}

static yk_code enter(yk_graph *g, yk_frame *frame, const yk_variable_scope *target, const yk_scope_options *o) {
  struct yk_variable_store *s = g->store;
  YK_TRY(check_reuse(o));
  if (!target) return YK_FAIL(EINVAL, "yk_variable_scope_enter: the scope is NULL");
  if (target->g != g) return YK_FAIL(EINVAL, "yk_variable_scope_enter: scope '%s' belongs to another graph", target->name);
  yk_variable_scope *scope = new_scope(g, target->name);
  if (!scope) return YK_ENOMEM;
  YK_TRY(inherit(g, scope, target, o));
  scope->name_scope = target->name_scope;
  const char *slash = strrchr(target->name, '/'), *last = slash ? slash + 1 : target->name;
  if (!o->no_name_scope && last[0]) YK_TRY(yk__names_enter(g, last));
  YK_TRY(note_opening(s, target->name));
  frame->counts = yk__alloc((s->ncount + 1) * sizeof *s->count);
  if (!frame->counts) return YK_ENOMEM;
  memcpy(frame->counts, s->count, s->ncount * sizeof *s->count);
  frame->ncounts = s->ncount;
  s->scope = scope;
  return YK_OK;
}

void yk_variable_scope_push_at(const char *where, yk_graph *g, const char *name, const yk_scope_options *options) {
  yk_frame *frame = yk__scope_open(where, g, YK__SCOPE_VARIABLE);
  static const yk_scope_options none;
  if (!frame) return;
  frame->variable = g->store->scope;
  yk_code code = push(g, name, options ? options : &none);
  if (code != YK_OK) yk__graph_fail(where, g, code);
}

void yk_variable_scope_enter_at(const char *where, yk_graph *g, yk_variable_scope *scope, const yk_scope_options *options) {
  yk_frame *frame = yk__scope_open(where, g, YK__SCOPE_VARIABLE);
  static const yk_scope_options none;
  if (!frame) return;
  frame->variable = g->store->scope;
  yk_code code = enter(g, frame, scope, options ? options : &none);
  if (code != YK_OK) yk__graph_fail(where, g, code);
}

void yk_variable_scope_pop_at(const char *where, yk_graph *g) {
  yk_frame was;
  if (!yk__scope_close(where, g, YK__SCOPE_VARIABLE, &was)) return;
  struct yk_variable_store *s = g->store;
  if (was.counts) {
    memcpy(s->count, was.counts, was.ncounts * sizeof *s->count);
    for (uint32_t i = was.ncounts; i < s->ncount; i++) s->count[i].n = 0;
    yk__free(was.counts);
  } else {
    forget_below(s, s->scope->name);
  }
  s->scope = was.variable;
}

/* ---- asking ---- */

yk_variable_scope *yk_get_variable_scope(yk_graph *g) { return g ? g->store->scope : NULL; }
const char *yk_variable_scope_name(const yk_variable_scope *s) { return s ? s->name : ""; }
const char *yk_variable_scope_name_scope(const yk_variable_scope *s) { return s ? s->name_scope : ""; }

void yk_reuse_variables(yk_variable_scope *s) {
  if (s) s->reuse = YK_REUSE;
}
