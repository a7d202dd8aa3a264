/*
 * variables.c - get_variable: make a variable or share one, and say clearly why not.
 *
 * A variable is four nodes: v (its storage), v/Initializer/... (its first value),
 * v/Assign and v/read. All of them sit together, on the device that was current when
 * the variable was made: its home. Whoever uses the read value borrows it.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "graph/store.h"
#include "op/registry.h"
#include "tensor/desc.h"

/* What was asked for. */
typedef struct request {
  const char *where;
  yk_graph *g;
  const char *name;             /* full */
  yk_desc desc;                 /* dims may be -1 */
  yk_init init;
  yk_regularizer regularizer;
  const yk_variable_options *options;
} request;

/* ---- sharing ---- */

static yk_code already_exists(const yk_graph *g, const yk_variable *v) {
  const yk_variable_scope *s = g->store->scope;
  if (!s->name[0])
    return YK_FAIL(EINVAL, "variable '%s' already exists, first made at %s; to share it, call "
                   "yk_reuse_variables(yk_get_variable_scope(g)) before, or make it in a variable scope that has reuse set to "
                   "YK_REUSE (it must exist) or YK_AUTO_REUSE (it is made by whoever comes first)", v->name, v->where);
  return YK_FAIL(EINVAL, "variable '%s' already exists, first made at %s; to share it, open its scope as "
                 "YK_VARIABLE_SCOPE_REUSE(g, \"%s\", YK_REUSE) (it must exist) or with YK_AUTO_REUSE (it is made by whoever "
                 "comes first)", v->name, v->where, s->name);
}

static const char *variable_name_at(const yk_graph *g, uint32_t i) { return g->variable[i]->name; }

static yk_code does_not_exist(const yk_graph *g, const char *name) {
  char near[512];
  return YK_FAIL(ENOTFOUND, "variable '%s' does not exist, or was not made by yk_get_variable, and scope '%s' only reuses "
                 "variables (YK_REUSE)%s; with YK_AUTO_REUSE it would be made", name, g->store->scope->name,
                 yk__nearest(g, name, variable_name_at, g->nvariable, near, sizeof near));
}

static yk_code check_same(const request *r, const yk_variable *v) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  yk_desc merged, asked = r->desc;
  asked.dtype = v->desc.dtype;
  bool shape_fits = yk__shape_merge(&asked, &v->desc, &merged) == YK_OK;
  if (shape_fits && r->desc.dtype == v->desc.dtype) return YK_OK;
  return YK_FAIL(EINVAL, "variable '%s' was asked for with another %s than it has: asked %s, exists as %s, made at %s", v->name,
                 !shape_fits ? "shape" : "dtype", yk__desc_text(&r->desc, a, sizeof a), yk__desc_text(&v->desc, b, sizeof b),
                 v->where);
}

/* ---- making ---- */

static yk_value make_storage(const request *r, const char *scope) {
  yk_variable_attrs attrs = { .dtype = r->desc.dtype, .rank = r->desc.rank, .index = r->g->nvariable };
  memcpy(attrs.dim, r->desc.dim, sizeof attrs.dim);
  return yk_add_node_at(r->where, yk_named(r->g, scope), &yk__op_variable, &attrs, NULL, 0, 0);
}

/* The nodes, under the name scope of the variable. */
static void make_nodes(const request *r, yk_variable *v) {
  yk_graph *g = r->g;
  const char *where = r->where;
  v->ref = make_storage(r, yk__names_current(g));
  yk_colocate_push_at(where, g, v->ref);
  yk_name_scope_push_at(where, g, "Initializer");
  v->initial = yk__initial_value(where, g, r->name, &r->desc, &r->init);
  yk_name_scope_pop_at(where, g);
  v->assign = yk__build(where, yk_named(g, "Assign"), &yk__op_assign, NULL, 2, v->ref, v->initial);
  v->read = yk__build(where, yk_named(g, "read"), &yk__op_read_variable, NULL, 1, v->ref);
  yk_colocate_pop_at(where, g);
}

static void add_to_collections(const request *r, const yk_variable *v) {
  static const char *const usual[] = { YK_GLOBAL_VARIABLES, NULL };
  const char *const *keys = r->options && r->options->collections ? r->options->collections : usual;
  bool trainable = v->trainable;
  for (; *keys; keys++) {
    yk_add_to_collection_at(r->where, r->g, *keys, v->read);
    if (!strcmp(*keys, YK_TRAINABLE_VARIABLES)) trainable = false;
  }
  if (trainable) yk_add_to_collection_at(r->where, r->g, YK_TRAINABLE_VARIABLES, v->read);
}

/* Only for a new variable: sharing it must not punish it twice. */
static void add_penalty(const request *r, const yk_variable *v) {
  yk_graph *g = r->g;
  if (r->regularizer.none || !yk__regularizer_set(&r->regularizer)) return;
  yk_colocate_push_at(r->where, g, v->ref);
  yk_name_scope_push_at(r->where, g, "Regularizer");
  yk_value penalty = yk__penalty(r->where, g, &r->regularizer, v->read);
  yk_name_scope_pop_at(r->where, g);
  yk_colocate_pop_at(r->where, g);
  if (penalty.id) yk_add_to_collection_at(r->where, g, YK_REGULARIZATION_LOSSES, penalty);
}

static yk_code keep(yk_graph *g, yk_variable *v) {
  if (!YK_PUSH(g->variable, g->nvariable, g->variable_cap, v)) return YK_ENOMEM;
  return yk__map_set(&g->store->by_name, v->name, v->index) ? YK_OK : YK_ENOMEM;
}

static yk_code make(const request *r, yk_variable **out) {
  yk_graph *g = r->g;
  char text[YK__DESC_TEXT];
  if (!yk__desc_known(&r->desc))
    return YK_FAIL(EINVAL, "new variable '%s' is %s: every dimension must be known", r->name,
                   yk__desc_text(&r->desc, text, sizeof text));
  yk_variable *v = yk__bump(&g->arena, sizeof *v);
  if (!v) return YK_ENOMEM;
  *v = (yk_variable){ .g = g, .index = g->nvariable, .name = yk__bump_str(&g->arena, r->name), .where = r->where,
                      .desc = r->desc, .trainable = !(r->options && r->options->not_trainable) };
  if (!v->name) return YK_ENOMEM;
  yk_control_push_at(r->where, g, 0, NULL);               /* a first value must not wait for a step's work, */
  yk_guard_push_at(r->where, g, (yk_value){ 0 });         /* nor for its success */
  yk_name_scope_push_at(r->where, g, NULL);
  yk_name_scope_push_at(r->where, g, r->name);
  if (yk__graph_ok(g)) make_nodes(r, v);
  yk_code code = yk__graph_ok(g) ? keep(g, v) : YK_OK;
  if (code == YK_OK) {
    add_to_collections(r, v);
    add_penalty(r, v);
  }
  yk_name_scope_pop_at(r->where, g);
  yk_name_scope_pop_at(r->where, g);
  yk_guard_pop_at(r->where, g);
  yk_control_pop_at(r->where, g);
  if (code == YK_OK) *out = v;
  return code;
}

/* The decision table: what is there, against what the scope allows. */
static yk_code get(const request *r, yk_variable **out) {
  yk_graph *g = r->g;
  yk_reuse reuse = g->store->scope->reuse;
  uint32_t at = 0;
  if (!yk__map_get(&g->store->by_name, r->name, &at)) return reuse == YK_REUSE ? does_not_exist(g, r->name) : make(r, out);
  if (reuse == YK_REUSE_INHERIT) return already_exists(g, g->variable[at]);
  YK_TRY(check_same(r, g->variable[at]));
  *out = g->variable[at];
  return YK_OK;
}

static yk_code prepare(request *r, const char *name, yk_dtype dtype, yk_shape shape, yk_init init) {
  const yk_variable_scope *s = r->g->store->scope;
  if (!name || !yk__name_valid(name, s->name[0] != 0) || name[strlen(name) - 1] == '/')
    return YK_FAIL(EINVAL, "'%.100s' is no name for a variable; expected letters, digits and _ . - /, not ending in /",
                   name ? name : "(null)");
  size_t bytes = strlen(s->name) + strlen(name) + 2;
  char *full = yk__bump(&r->g->arena, bytes);
  if (!full) return YK_ENOMEM;
  snprintf(full, bytes, "%s%s%s", s->name, s->name[0] ? "/" : "", name);
  r->name = full;
  yk_code code = yk__shape_check(dtype, &shape, 1);
  if (code != YK_OK) return yk__fail_prefix(code, "variable '%s'", full);
  r->desc = yk__desc(dtype, shape);
  r->init = init.kind ? init : s->init;
  if (init.seed && !r->init.seed) r->init.seed = init.seed;
  bool own = r->options && yk__regularizer_set(&r->options->regularizer);
  r->regularizer = own ? r->options->regularizer : s->regularizer;
  return YK_OK;
}

yk_variable *yk_get_variable_at(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape, yk_init init,
                                const yk_variable_options *options) {
  if (!yk__graph_ok(g)) return NULL;
  request r = { .where = where, .g = g, .options = options };
  yk_variable *v = NULL;
  (void)yk__names_take(g);                                /* variables are named here, not by yk_named() */
  yk_code code = prepare(&r, name, dtype, shape, init);
  if (code == YK_OK) code = get(&r, &v);
  if (code != YK_OK) yk__graph_fail(where, g, code);
  else if (g->store->scope->lend) v = g->store->scope->lend(g, v, g->store->scope->lend_arg);
  return yk__graph_ok(g) ? v : NULL;
}

/* ---- what a variable is ---- */

yk_value    yk_read(const yk_variable *v) { return v ? v->read : (yk_value){ 0 }; }
yk_value    yk_initializer_op(const yk_variable *v) { return v ? v->assign : (yk_value){ 0 }; }
yk_value    yk_initial_value(const yk_variable *v) { return v ? v->initial : (yk_value){ 0 }; }
const char *yk_variable_name(const yk_variable *v) { return v ? v->name : NULL; }
const char *yk_variable_where(const yk_variable *v) { return v ? v->where : NULL; }
bool        yk_variable_trainable(const yk_variable *v) { return v && v->trainable; }
const yk_desc *yk_variable_desc(const yk_variable *v) { return v ? &v->desc : NULL; }
yk_variable *yk_variable_master(const yk_variable *v) { return v && v->master ? v->master : (yk_variable *)v; }
const char *yk_variable_device(const yk_variable *v) { return v ? yk_value_device(v->g, v->ref) : NULL; }

size_t yk_variable_count(const yk_graph *g) { return g ? g->nvariable : 0; }
yk_variable *yk_variable_get(const yk_graph *g, size_t i) { return g && i < g->nvariable ? g->variable[i] : NULL; }

yk_variable *yk_variable_of(const yk_graph *g, yk_value read) {
  const yk_node *n = yk__value_node(g, read);
  if (!n || n->op != &yk__op_read_variable) return NULL;
  const yk_node *var = yk__value_node(g, (yk_value){ n->in[0] });
  if (!var || var->op != &yk__op_variable) return NULL;
  return yk_variable_get(g, ((const yk_variable_attrs *)var->attrs)->index);
}
