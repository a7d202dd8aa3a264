/*
 * state_file.c - see state_file.h.
 *
 * Values are matched by order, as Keras does it; names are written as Keras writes them, and told apart by the first ones alone.
 */
#include "keras/state_file.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/json.h"
#include "keras/state.h"
#include "tensor/desc.h"

static const char GROUP[] = "optimizer_weights", GROUP3[] = "optimizer/vars";

/* What Keras calls slot i. */
static const char *slot_name(const yk_optimizer *o, int i, int major) {
  switch (o->kind) {
    case YK_OPT_MOMENTUM: return "momentum";
    case YK_OPT_ADAM:
    case YK_OPT_ADAMW: return major >= 3 ? (i ? "velocity" : "momentum") : (i ? "v" : "m");
    case YK_OPT_ADAGRAD: return "accumulator";
    case YK_OPT_ADADELTA:
      return major >= 3 ? (i ? "accumulated_delta_var" : "accumulated_grad") : (i ? "accum_var" : "accum_grad");
    default: break;
  }
  if (i == 0) return major >= 3 ? "velocity" : "rms";
  return i == 1 && o->momentum > 0 ? "momentum" : major >= 3 ? "average_gradient" : "mg";
}

static const char *optimizer_name(const yk_optimizer *o, int major) {
  switch (o->kind) {
    case YK_OPT_SGD:
    case YK_OPT_MOMENTUM: return major >= 3 ? "sgd" : "SGD";
    case YK_OPT_ADAM: return major >= 3 ? "adam" : "Adam";
    case YK_OPT_ADAMW: return major >= 3 ? "adam_w" : "AdamW";
    case YK_OPT_RMSPROP: return major >= 3 ? "rm_sprop" : "RMSprop";
    case YK_OPT_ADAGRAD: return major >= 3 ? "adagrad" : "Adagrad";
    case YK_OPT_ADADELTA: return major >= 3 ? "adadelta" : "Adadelta";
    default: return "optimizer";
  }
}

/* ---- saving ---------------------------------------------------------------------------------------------------------------- */

typedef struct saving { yk_h5_out *f; yk_network *n; yk_weights all; yk_texts names; int slots; bool numbered; } saving;

/* One more value, under the name that fmt gives. */
YK_PRINTF(3, 4) static yk_code put(saving *s, const yk_tensor *t, const char *fmt, ...) {
  char name[800], path[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(name, sizeof name, fmt, ap);
  va_end(ap);
  snprintf(path, sizeof path, "%s/%s", GROUP, name);
  if (s->numbered) snprintf(path, sizeof path, "%s/%u", GROUP3, (unsigned)s->names.n);
  s->names.at[s->names.n] = yk__strdup(name);
  if (s->names.at[s->names.n] == NULL) return YK_ENOMEM;
  s->names.n++;
  return yk__h5_put_tensor(s->f, path, t);
}

static yk_code put_counters(saving *s) {
  const yk_compiled *c = s->n->compiled;
  const char *name = optimizer_name(&c->optimizer, s->n->major);
  int64_t iterations = 0;
  yk_tensor *t = NULL;
  YK_TRY(yk__state_iterations(s->n, &iterations));
  YK_TRY(yk_tensor_from(YK_I64, YK_SCALAR, &iterations, &t));
  yk_code rc = s->n->major >= 3                     ? put(s, t, "%s/iteration", name)
               : c->optimizer.kind == YK_OPT_ADAMW ? put(s, t, "iteration:0")
                                                    : put(s, t, "%s/iter:0", name);
  yk_tensor_free(t);
  if (rc != YK_OK || s->n->major < 3) return rc;
  const float rate = (float)c->rate;
  YK_TRY(yk_tensor_from(YK_F32, YK_SCALAR, &rate, &t));
  rc = put(s, t, "%s/learning_rate", name);
  yk_tensor_free(t);
  return rc;
}

static yk_code put_slot(saving *s, uint32_t w, int slot) {
  const yk_weight_ref *m = &s->all.at[w];
  const yk_optimizer *o = &s->n->compiled->optimizer;
  yk_tensor *t = NULL;
  YK_TRY(yk__state_get(s->n, m->layer, m->weight, slot, &t));
  if (t == NULL)
    return YK_FAIL(EINTERNAL, "weight '%s' of layer '%s' lacks a slot of its optimizer", m->weight->name, m->layer->name);
  const char *own = slot_name(o, slot, s->n->major), *name = optimizer_name(o, s->n->major);
  yk_code rc = s->n->major >= 3 ? put(s, t, "%s/%s_%s_%s", name, m->layer->name, m->weight->name, own)
                                : put(s, t, "%s/%s/%s/%s:0", name, m->layer->name, m->weight->name, own);
  yk_tensor_free(t);
  return rc;
}

static yk_code put_all(saving *s) {
  YK_TRY(put_counters(s));
  yk_optimizer_kind kind = s->n->compiled->optimizer.kind;
  bool by_weight = kind == YK_OPT_ADAMW || (s->n->major >= 3 && kind != YK_OPT_RMSPROP);
  uint32_t inner = by_weight ? (uint32_t)s->slots : s->all.n, total = s->all.n * (uint32_t)s->slots;
  for (uint32_t i = 0; i < total; i++) {
    uint32_t a = i / inner, b = i % inner;
    YK_TRY(by_weight ? put_slot(s, a, (int)b) : put_slot(s, b, (int)a));
  }
  return s->numbered ? YK_OK : yk__h5_put_texts(s->f, GROUP, "weight_names", &s->names);
}

/* Is there anything yet? */
static yk_code is_known(const yk_network *n, const yk_weights *all, int slots, bool *out) {
  yk_tensor *t = NULL;
  int64_t iterations = 0;
  YK_TRY(yk__state_iterations(n, &iterations));
  *out = iterations > 0;
  if (!*out || slots == 0 || all->n == 0) return YK_OK;
  YK_TRY(yk__state_get(n, all->at[0].layer, all->at[0].weight, 0, &t));
  *out = t != NULL;
  yk_tensor_free(t);
  return YK_OK;
}

static yk_code save_state(yk_h5_out *f, yk_network *n, bool numbered) {
  saving s = { .f = f, .n = n, .numbered = numbered, .slots = yk__state_slots(&n->compiled->optimizer) };
  bool known = false;
  yk_code rc = yk__trained_weights(n, &s.all);
  if (rc == YK_OK) rc = is_known(n, &s.all, s.slots, &known);
  if (rc == YK_OK && known) {
    s.names.at = yk__calloc((size_t)s.all.n * (size_t)s.slots + 2, sizeof *s.names.at);
    rc = s.names.at != NULL ? yk__h5_put_group(f, numbered ? GROUP3 : GROUP) : YK_ENOMEM;
    if (rc == YK_OK) rc = put_all(&s);
  }
  yk__texts_free(&s.names);
  yk__free(s.all.at);
  return rc;
}

yk_code yk__state_save(yk_h5_out *f, yk_network *n) { return save_state(f, n, false); }
yk_code yk__state_save3(yk_h5_out *f, yk_network *n) { return save_state(f, n, true); }

/* ---- loading ---------------------------------------------------------------------------------------------------------------------- */

typedef struct loading {
  const yk_h5 *f;
  const char *what, *group;
  yk_network *n;
  yk_weights all;
  yk_texts names;
  int slots;
} loading;

enum { PATH = 1024 };

static void path_of(const loading *l, uint32_t i, char path[PATH]) {
  snprintf(path, PATH, "%s/%.900s", l->group, l->names.at[i]);
}

static yk_code take_slot(const loading *l, uint32_t i, uint32_t w, int slot) {
  const yk_weight_ref *m = &l->all.at[w];
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  yk_tensor *t = NULL;
  char path[PATH];
  yk_desc d;
  path_of(l, i, path);
  YK_TRY(yk__h5_desc(l->f, path, &d));
  if (d.dtype != m->weight->desc.dtype || !yk__desc_same_shape(&d, &m->weight->desc))
    return YK_FAIL(ECORRUPT, "%s: optimizer weight '%s' is %s; weight '%s' of layer '%s' is %s", l->what, l->names.at[i],
                   yk__desc_text(&d, have, sizeof have), m->weight->name, m->layer->name,
                   yk__desc_text(&m->weight->desc, want, sizeof want));
  YK_TRY(yk__h5_tensor(l->f, path, &t));
  return yk__state_put(l->n, m->layer, m->weight, slot, t);
}

static yk_code take_iterations(const loading *l) {
  yk_tensor *t = NULL;
  char path[PATH];
  yk_desc d;
  path_of(l, 0, path);
  YK_TRY(yk__h5_desc(l->f, path, &d));
  if (yk__desc_count(&d) != 1) return YK_FAIL(ECORRUPT, "%s: %s is no number of iterations", l->what, path);
  YK_TRY(yk__h5_tensor(l->f, path, &t));
  l->n->compiled->kept_iterations = (int64_t)yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return YK_OK;
}

/* `first` values stand before the slots, and alone where nothing was trained yet. */
static yk_code take_all(const loading *l, uint32_t first, bool by_weight) {
  uint32_t total = l->all.n * (uint32_t)l->slots, inner = by_weight ? (uint32_t)l->slots : l->all.n;
  YK_TRY(take_iterations(l));
  if (l->names.n == first && l->n->compiled->kept_iterations == 0) return YK_OK;
  if (l->names.n < first + total)
    return YK_FAIL(ECORRUPT, "%s: %u optimizer weights; expected %u for %u weights that are trained", l->what,
                   (unsigned)l->names.n, (unsigned)(first + total), (unsigned)l->all.n);
  for (uint32_t i = 0; i < total; i++)
    YK_TRY(by_weight ? take_slot(l, first + i, i / inner, (int)(i % inner))
                     : take_slot(l, first + i, i % inner, (int)(i / inner)));
  return YK_OK;
}

/* Which order it is shows in the first names. */
static yk_code take_named(const loading *l) {
  bool rate = l->names.n > 1 && strstr(l->names.at[1], "learning_rate") != NULL;
  bool by_weight = (rate || strncmp(l->names.at[0], "iteration:", 10) == 0) && l->n->compiled->optimizer.kind != YK_OPT_RMSPROP;
  if (strstr(l->names.at[0], "iter") == NULL && strstr(l->names.at[0], "Variable") == NULL)
    return YK_FAIL(ECORRUPT, "%s: optimizer weights begin with '%s'; expected a number of iterations", l->what, l->names.at[0]);
  return take_all(l, rate ? 2 : 1, by_weight);
}

/* "0", "1", ...: as many as there are. */
static yk_code number_names(loading *l) {
  uint32_t cap = 0;
  for (;;) {
    char path[64];
    snprintf(path, sizeof path, "%s/%u", GROUP3, (unsigned)l->names.n);
    if (!yk__h5_has(l->f, path)) return YK_OK;
    char *name = yk__strdup(path + sizeof GROUP3);
    if (name != NULL && YK_PUSH(l->names.at, l->names.n, cap, name)) continue;
    yk__free(name);
    return YK_ENOMEM;
  }
}

static yk_code load_state(const yk_h5 *f, const char *what, yk_network *n, const char *group, bool numbered) {
  loading l = { .f = f, .what = what, .group = group, .n = n, .slots = yk__state_slots(&n->compiled->optimizer) };
  if (!yk__h5_has(f, group)) return YK_OK;
  yk_code rc = numbered ? number_names(&l) : yk__h5_texts(f, group, "weight_names", &l.names);
  if (rc == YK_OK) rc = yk__trained_weights(n, &l.all);
  if (rc == YK_OK && l.names.n > 0)                        /* Keras 3 keeps the learning rate too, behind the iterations */
    rc = numbered ? take_all(&l, n->major >= 3 ? 2 : 1, n->compiled->optimizer.kind != YK_OPT_RMSPROP) : take_named(&l);
  if (rc != YK_OK) yk__state_free(n->compiled);
  yk__texts_free(&l.names);
  yk__free(l.all.at);
  return rc;
}

yk_code yk__state_load(const yk_h5 *f, const char *what, yk_network *n) { return load_state(f, what, n, GROUP, false); }
yk_code yk__state_load3(const yk_h5 *f, const char *what, yk_network *n) { return load_state(f, what, n, GROUP3, true); }
