/*
 * graph.c - life of a graph, its sticky error, and look-ups of nodes and values.
 *
 * The first failure of any builder is kept here with the user's file and line;
 * from then on builders do nothing, so a program may be written as expressions
 * and checked once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"

enum { DEFAULT_SEED = 87654321 };

yk_code yk_graph_new(yk_graph **out) {
  yk_graph *g = yk__calloc(1, sizeof *g);
  if (!g) return YK_ENOMEM;
  atomic_init(&g->refs, 1);
  g->seed = DEFAULT_SEED;
  g->nnode = g->nvalue = 1;               /* entry 0 means "none" */
  g->node_cap = g->value_cap = 64;
  g->node = yk__calloc(g->node_cap, sizeof *g->node);
  g->value = yk__bump(&g->arena, g->value_cap * sizeof *g->value);
  g->scopes = yk__calloc(1, sizeof *g->scopes);
  yk_code code = g->node && g->value && g->scopes ? YK_OK : YK_ENOMEM;
  if (code == YK_OK) code = yk__names_new(g);
  if (code == YK_OK) code = yk__store_new(g);
  if (code != YK_OK) {
    yk_graph_free(g);
    return code;
  }
  *out = g;
  return YK_OK;
}

yk_graph *yk__graph_ref(yk_graph *g) {
  atomic_fetch_add(&g->refs, 1);
  return g;
}

void yk_graph_free(yk_graph *g) {
  if (!g || atomic_fetch_sub(&g->refs, 1) > 1) return;
  for (uint32_t i = 1; g->node && i < g->nnode; i++)
    if (g->node[i]->op == &yk__op_constant) yk_tensor_free((yk_tensor *)((const yk_constant_attrs *)g->node[i]->attrs)->value);
  yk__names_free(g);
  yk__scopes_free(g);
  yk__store_free(g);
  yk__collections_free(g);
  yk__free(g->node);
  yk__free(g->variable);
  yk__bump_free(&g->arena);
  yk__free(g);
}

/* ---- sticky error ---- */

yk_code yk_graph_status(const yk_graph *g) {
  if (!g) return YK_FAIL(EINVAL, "no graph");
  if (g->status == YK_OK) return YK_OK;
  return yk__fail(g->status, __FILE__, __LINE__, "%s", g->message);
}

static yk_value keep(const char *where, yk_graph *g, yk_code code, const char *text) {
  if (!yk__graph_ok(g)) return (yk_value){ 0 };
  if (code == YK_OK) code = YK_EINTERNAL;
  g->status = code;
  int n = snprintf(g->message, sizeof g->message, "%.1024s: ", where ? where : "?");
  size_t used = n < 0 ? 0 : (size_t)n, rest = strlen(text);
  if (rest > sizeof g->message - 1 - used) rest = sizeof g->message - 1 - used;
  memcpy(g->message + used, text, rest);
  g->message[used + rest] = '\0';
  (void)yk__fail(code, __FILE__, __LINE__, "%s", g->message);
  return (yk_value){ 0 };
}

yk_value yk_graph_fail_at(const char *where, yk_graph *g, yk_code code, const char *fmt, ...) {
  char text[YK__ERROR_BYTES];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return keep(where, g, code, text);
}

yk_value yk__graph_fail(const char *where, yk_graph *g, yk_code code) {
  char text[YK__ERROR_BYTES];
  snprintf(text, sizeof text, "%s", yk_error_message());
  return keep(where, g, code, text);
}

/* ---- settings ---- */

void yk_graph_set_seed(yk_graph *g, uint64_t seed) {
  if (g) g->seed = seed;
}

void yk__graph_freeze(yk_graph *g) { g->frozen = true; }

void yk_graph_unfreeze(yk_graph *g) {
  if (g) g->frozen = false;
}

bool yk_graph_frozen(const yk_graph *g) { return g && g->frozen; }

uint64_t yk__seed(yk_graph *g, uint64_t asked) {
  if (asked) return asked;
  uint64_t position = ++g->nseeds, seed = yk__hash(&position, sizeof position, g->seed);
  return seed ? seed : 1;
}

/* ---- look-ups ---- */

const yk_node *yk__node(const yk_graph *g, uint32_t id) { return g && id > 0 && id < g->nnode ? g->node[id] : NULL; }

static const yk_graph_value *value_of(const yk_graph *g, yk_value v) {
  return g && v.id > 0 && v.id < g->nvalue ? &g->value[v.id] : NULL;
}

const yk_node *yk__value_node(const yk_graph *g, yk_value v) {
  const yk_graph_value *x = value_of(g, v);
  return x ? g->node[x->node] : NULL;
}

const yk_desc *yk_value_desc(const yk_graph *g, yk_value v) {
  const yk_graph_value *x = value_of(g, v);
  return x ? &x->desc : NULL;
}

const char *yk_value_name(const yk_graph *g, yk_value v) {
  const yk_node *n = yk__value_node(g, v);
  return n ? n->name : NULL;
}

const yk_op *yk_value_op(const yk_graph *g, yk_value v) {
  const yk_node *n = yk__value_node(g, v);
  return n ? n->op : NULL;
}

const char *yk_value_device(const yk_graph *g, yk_value v) {
  const yk_node *n = yk__value_node(g, v);
  return n ? n->device_text : NULL;
}

yk_value yk_output(const yk_graph *g, yk_value v, uint16_t k) {
  const yk_node *n = yk__value_node(g, v);
  return n && k < n->nout ? (yk_value){ n->first + k } : (yk_value){ 0 };
}

static const char *node_name_at(const yk_graph *g, uint32_t i) { return g->node[i + 1]->name; }

yk_value yk_find(const yk_graph *g, const char *name) {
  if (!g || !name) return (yk_value){ 0 };
  const char *colon = strrchr(name, ':');
  int64_t k = 0;
  uint32_t id = yk__names_find(g, name);
  if (!id && colon && yk__parse_i64(colon + 1, 0, UINT16_MAX, &k)) {
    char *node = yk__strndup(name, (size_t)(colon - name));
    if (!node) return (yk_value){ 0 };
    id = yk__names_find(g, node);
    yk__free(node);
  }
  const yk_node *n = yk__node(g, id);
  if (n && k < n->nout) return (yk_value){ n->first + (uint32_t)k };
  if (n) {
    (void)YK_FAIL(ENOTFOUND, "no value '%s': %s has %u output%s", name, n->name, n->nout, n->nout == 1 ? "" : "s");
  } else {
    char near[512];
    yk__nearest(g, name, node_name_at, g->nnode - 1, near, sizeof near);
    (void)YK_FAIL(ENOTFOUND, "no node '%s' in the graph%s", name, near);
  }
  return (yk_value){ 0 };
}

char *yk__nearest(const yk_graph *g, const char *name, yk_name_at at, uint32_t n, char *buf, size_t bytes) {
  enum { SHOWN = 3 };
  const char *best[SHOWN] = { NULL };
  uint32_t distance[SHOWN] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = yk__str_distance(name, at(g, i));
    int k = SHOWN;
    while (k > 0 && d < distance[k - 1]) k--;
    if (k == SHOWN) continue;
    for (int j = SHOWN - 1; j > k; j--) { best[j] = best[j - 1]; distance[j] = distance[j - 1]; }
    best[k] = at(g, i);
    distance[k] = d;
  }
  size_t used = 0;
  buf[0] = 0;
  for (int k = 0; k < SHOWN && best[k]; k++) {
    int wrote = snprintf(buf + used, bytes - used, "%s'%s'", k ? ", " : "; nearest names: ", best[k]);
    if (wrote < 0 || (size_t)wrote >= bytes - used) break;
    used += (size_t)wrote;
  }
  return buf;
}
