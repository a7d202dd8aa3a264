/*
 * names.c - names of nodes and name scopes.
 *
 * Every name that was given out, to a node or to a scope, has a counter under its
 * lower-case form: the next user of the same name gets "_1", "_2", ... skipping
 * names that are taken. Capitals are kept in what the user sees.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"

struct yk_graph_names {
  yk_map used;                  /* lower-case full name -> times asked for */
  yk_map node;                  /* exact name -> node id */
  const char *scope;            /* "" or "a/b/" */
  const char *next;             /* from yk_named(), or NULL */
};

yk_code yk__names_new(yk_graph *g) {
  g->names = yk__calloc(1, sizeof *g->names);
  if (!g->names) return YK_ENOMEM;
  g->names->scope = "";
  return YK_OK;
}

void yk__names_free(yk_graph *g) {
  if (!g->names) return;
  yk__map_free(&g->names->used);
  yk__map_free(&g->names->node);
  yk__free(g->names);
  g->names = NULL;
}

const char *yk__names_current(const yk_graph *g) { return g->names->scope; }
void yk__names_set(yk_graph *g, const char *scope) { g->names->scope = scope; }

const char *yk__names_take(yk_graph *g) {
  const char *name = g->names->next;
  g->names->next = NULL;
  return name;
}

void yk__names_give(yk_graph *g, const char *name) { g->names->next = name; }

uint32_t yk__names_find(const yk_graph *g, const char *name) {
  uint32_t id = 0;
  return yk__map_get(&g->names->node, name, &id) ? id : 0;
}

yk_code yk__names_bind(yk_graph *g, const char *name, uint32_t node) {
  return yk__map_set(&g->names->node, name, node) ? YK_OK : YK_ENOMEM;
}

bool yk__name_valid(const char *name, bool nested) {
  if (!name[0]) return false;
  if (!nested && !isalnum((unsigned char)name[0]) && name[0] != '.') return false;
  for (const char *p = name; *p; p++)
    if ((unsigned char)*p >= 128 || (!isalnum((unsigned char)*p) && !strchr("_.-/", *p))) return false;
  return true;
}

/* Report a bad name for `what`. */
static yk_code check(const char *what, const char *name, bool nested) {
  if (yk__name_valid(name, nested)) return YK_OK;
  return YK_FAIL(EINVAL, "'%.100s' is no name for %s; expected letters, digits and _ . - /%s", name, what,
                 nested ? "" : ", with a letter, a digit or . first");
}

static void lower(char *dst, const char *src) {
  do *dst++ = (char)tolower((unsigned char)*src); while (*src++);
}

/* The count-th use of `full`: pick the first free "_k", in both spellings, and mark it used. */
static yk_code number_it(yk_map *used, char *full, char *key, size_t bytes, uint32_t count) {
  size_t base = strlen(full);
  uint32_t taken = 0;
  do snprintf(key + base, bytes - base, "_%u", count++); while (yk__map_get(used, key, &taken));
  snprintf(full + base, bytes - base, "%s", key + base);
  return yk__map_set(used, key, 1) ? YK_OK : YK_ENOMEM;
}

/* Current scope + name, made unique; with a '/' behind it if it is a scope. */
static yk_code unique(yk_graph *g, const char *name, bool scope, const char **out) {
  enum { TAIL = 16 };                                       /* "_4294967295/" */
  yk_map *used = &g->names->used;
  size_t bytes = strlen(g->names->scope) + strlen(name) + TAIL;
  char *full = yk__bump(&g->arena, bytes), *key = yk__alloc(bytes);
  yk_code code = full && key ? YK_OK : YK_ENOMEM;
  if (code == YK_OK) {
    snprintf(full, bytes, "%s%s", g->names->scope, name);
    lower(key, full);
    uint32_t count = 0;
    (void)yk__map_get(used, key, &count);
    if (!yk__map_set(used, key, count + 1)) code = YK_ENOMEM;
    else if (count > 0) code = number_it(used, full, key, bytes, count);
    if (scope) full[strlen(full)] = '/';                    /* the arena's bytes are zero: stays terminated */
  }
  yk__free(key);
  if (code == YK_OK) *out = full;
  return code;
}

yk_graph *yk_named(yk_graph *g, const char *name) {
  if (!yk__graph_ok(g)) return g;
  g->names->next = name ? yk__bump_str(&g->arena, name) : NULL;
  if (name && !g->names->next) (void)yk_graph_fail_at(YK_HERE, g, YK_ENOMEM, "yk_named '%.100s': %s", name, yk_error_message());
  return g;
}

/* "a/b/": the exact name of a scope that was made unique before, for the node that the scope is about. */
static yk_code exact(yk_graph *g, const char *name, const char **out) {
  char *full = yk__bump_str(&g->arena, name);
  if (!full) return YK_ENOMEM;
  full[strlen(full) - 1] = 0;
  if (yk__names_find(g, full)) return YK_FAIL(EINVAL, "there already is a node named '%s'", full);
  uint32_t count = 0;
  char *key = yk__alloc(strlen(full) + 1);
  if (!key) return YK_ENOMEM;
  lower(key, full);
  int ok = yk__map_get(&g->names->used, key, &count) || yk__map_set(&g->names->used, key, 1);
  yk__free(key);
  if (!ok) return YK_ENOMEM;
  *out = full;
  return YK_OK;
}

yk_code yk__names_node(yk_graph *g, const char *label, const char **out) {
  const char *given = yk__names_take(g), *name = given ? given : label;
  size_t n = strlen(name);
  bool is_exact = n > 1 && name[n - 1] == '/';
  YK_TRY(check("a node", name, !is_exact && g->names->scope[0]));
  return is_exact ? exact(g, name, out) : unique(g, name, false, out);
}

yk_code yk__names_enter(yk_graph *g, const char *name) {
  const char *scope = "";
  if (name && name[0]) {
    size_t n = strlen(name);
    YK_TRY(check("a name scope", name, g->names->scope[0] != 0));
    if (name[n - 1] != '/') {
      YK_TRY(unique(g, name, true, &scope));
    } else {
      scope = yk__bump_str(&g->arena, name);
      if (!scope) return YK_ENOMEM;
    }
  }
  g->names->scope = scope;
  return YK_OK;
}

const char *yk_name_scope(const yk_graph *g) { return g ? g->names->scope : ""; }

void yk_name_scope_push_at(const char *where, yk_graph *g, const char *name) {
  if (!yk__scope_open(where, g, YK__SCOPE_NAME)) return;
  yk_code code = yk__names_enter(g, name);
  if (code != YK_OK) yk__graph_fail(where, g, code);
}

void yk_name_scope_pop_at(const char *where, yk_graph *g) {
  yk_frame was;
  (void)yk__scope_close(where, g, YK__SCOPE_NAME, &was);
}
