/*
 * fields.c - the config of a layer, completed and checked by its class's table.
 *
 * What is 0 takes its default, so that a program names only what it wants otherwise. Texts are copied into the keras.
 */
#include <math.h>
#include <string.h>
#include "keras/keras.h"

typedef struct field { yk_layer *l; const yk_config_field *f; void *at; } field;

static bool fail_number(const field *x, double value) {
  yk__layer_fail(x->l, x->l->where, "%s is %g; expected %g to %g", x->f->key, value, x->f->lo, x->f->hi);
  return false;
}

static bool in_range(const field *x, double value) {
  if (x->f->lo >= x->f->hi) return isfinite(value) != 0 || fail_number(x, value);
  return (value >= x->f->lo && value <= x->f->hi) || fail_number(x, value);
}

static bool settle_int(const field *x, int64_t *v) {
  if (*v == 0) *v = (int64_t)x->f->number;
  return in_range(x, (double)*v);
}

static bool settle_real(const field *x, double *v) {
  if (*v == 0) *v = signbit(*v) ? 0 : x->f->number;
  return in_range(x, *v);
}

bool yk__named_in(const char *words, const char *word) {
  size_t n = strlen(word);
  for (const char *at = words; *at != '\0'; at += strcspn(at, "|"), at += *at == '|')
    if (strcspn(at, "|") == n && strncmp(at, word, n) == 0) return true;
  return false;
}

static bool settle_word(const field *x, const char **v) {
  yk_bump *mem = &x->l->k->mem;
  bool activation = x->f->kind == YK__F_ACTIVATION;
  if (*v == NULL) {
    size_t n = strcspn(x->f->words, "|");
    char *first = yk__bump(mem, n + 1);
    if (first != NULL) memcpy(first, x->f->words, n);
    *v = first;
  } else if (activation ? yk__activation_known(*v) : yk__named_in(x->f->words, *v)) {
    *v = yk__bump_str(mem, *v);
  } else {
    yk__layer_fail(x->l, x->l->where, "%s is '%.60s'; expected %s", x->f->key, *v,
                   activation ? "an activation of layers.h" : x->f->words);
    return false;
  }
  if (*v == NULL) yk_graph_fail_at(x->l->where, x->l->k->sketch, YK_ENOMEM, "no memory for the config of layer '%s'", x->l->name);
  return *v != NULL;
}

static bool settle_initializer(const field *x, yk_initializer *v) {
  if (v->kind != YK_INITIALIZER_DEFAULT) return true;
  uint64_t seed = v->seed;
  bool known = yk__initializer_named(x->f->words, v);
  v->seed = seed;
  return known;
}

static bool settle_pair(const field *x, int64_t v[2]) { return settle_int(x, &v[0]) && settle_int(x, &v[1]); }

static bool settle_axis(const field *x, int32_t *v) {
  if (*v == 0) *v = (int32_t)x->f->number;
  return in_range(x, *v);
}

static bool settle_edges(const field *x, int64_t v[2][2]) {
  for (int i = 0; i < 4; i++)
    if (v[i / 2][i % 2] < 0) return fail_number(x, (double)v[i / 2][i % 2]);
  return true;
}

static bool settle_one(const field *x) {
  switch (x->f->kind) {
    case YK__F_INT:
    case YK__F_FIRST: return settle_int(x, x->at);
    case YK__F_PAIR:
    case YK__F_SIDES: return settle_pair(x, x->at);
    case YK__F_REAL: return settle_real(x, x->at);
    case YK__F_WORD:
    case YK__F_ACTIVATION: return settle_word(x, x->at);
    case YK__F_INITIALIZER: return settle_initializer(x, x->at);
    case YK__F_AXIS: return settle_axis(x, x->at);
    case YK__F_EDGES: return settle_edges(x, x->at);
    default: return true;
  }
}

bool yk__config_settle(yk_layer *l) {
  ((yk_plain_config *)l->config)->name = l->name;
  for (const yk_config_field *f = l->class->fields; f->key != NULL; f++) {
    field x = { l, f, (char *)l->config + f->offset };
    if (!settle_one(&x)) return false;
  }
  return true;
}
