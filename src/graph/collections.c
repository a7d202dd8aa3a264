/*
 * collections.c - named lists of values: variables, losses, updates, summaries.
 *
 * Lists keep the order of insertion and do not mind duplicates. A filter is a plain
 * prefix of the name, so a tower is asked for as "tower_1/", which "tower_10/" is not.
 */
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"

struct yk_collections {
  yk_map by_key;                                   /* key -> index */
  struct list { uint32_t *value; uint32_t n, cap; } *list;
  uint32_t nlist, list_cap;
};

void yk__collections_free(yk_graph *g) {
  struct yk_collections *c = g->collections;
  if (!c) return;
  for (uint32_t i = 0; i < c->nlist; i++) yk__free(c->list[i].value);
  yk__map_free(&c->by_key);
  yk__free(c->list);
  yk__free(c);
  g->collections = NULL;
}

static struct list *find_or_make(yk_graph *g, const char *key) {
  if (!g->collections) g->collections = yk__calloc(1, sizeof *g->collections);
  struct yk_collections *c = g->collections;
  uint32_t i = 0;
  if (!c) return NULL;
  if (yk__map_get(&c->by_key, key, &i)) return &c->list[i];
  struct list empty = { NULL, 0, 0 };
  if (!YK_PUSH(c->list, c->nlist, c->list_cap, empty)) return NULL;
  if (yk__map_set(&c->by_key, key, c->nlist - 1)) return &c->list[c->nlist - 1];
  c->nlist--;
  return NULL;
}

void yk_add_to_collection_at(const char *where, yk_graph *g, const char *key, yk_value v) {
  if (!yk__graph_ok(g)) return;
  if (!key || !key[0]) {
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_add_to_collection: no key given");
  } else if (!yk__value_node(g, v)) {
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_add_to_collection: what should go into '%s' is %s", key,
                     v.id ? "not a value of this graph" : "empty ({0})");
  } else {
    struct list *l = find_or_make(g, key);
    if (!l || !YK_PUSH(l->value, l->n, l->cap, v.id)) yk__graph_fail(where, g, YK_ENOMEM);
  }
}

size_t yk_get_collection(const yk_graph *g, const char *key, const char *scope, yk_value *out, size_t max) {
  uint32_t at = 0;
  size_t n = 0, prefix = scope ? strlen(scope) : 0;
  if (!g || !key || !g->collections || !yk__map_get(&g->collections->by_key, key, &at)) return 0;
  const struct list *l = &g->collections->list[at];
  for (uint32_t i = 0; i < l->n; i++) {
    yk_value v = { l->value[i] };
    if (prefix && strncmp(yk_value_name(g, v), scope, prefix)) continue;
    if (out && n < max) out[n] = v;
    n++;
  }
  return n;
}
