/*
 * layout3.c - see layout3.h.
 *
 * Recurrent layers keep their weights in a cell, attention in a layer for each product, wrappers in what they wrap.
 */
#include "keras/layout3.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "keras/json.h"
#include "keras/load.h"

enum { PATH = 1024, NAME = 100 };

typedef struct walk { const yk_h5 *f; yk_layout3_fn each; void *arg; } walk;

static yk_code walk_network(const walk *w, const yk_network *n, const char *base);

static bool is_recurrent(const yk_layer *l) {
  return l->class == &yk__class_lstm || l->class == &yk__class_gru || l->class == &yk__class_simple_rnn;
}

/* Attention's kernels and biases are those of four layers, whose names Keras 2 begins with "_". */
static void path_of(const walk *w, const yk_layer *l, const char *base, uint32_t i, char out[PATH]) {
  static const char *const product[] = { "query_dense", "key_dense", "value_dense", "output_dense" };
  if (l->class == &yk__class_multi_head_attention) {
    uint32_t each = l->nweight / 4;
    snprintf(out, PATH, "%.900s/_%s", base, product[i / each]);
    const char *mark = w->f != NULL && yk__h5_has(w->f, out) ? "_" : "";
    snprintf(out, PATH, "%.900s/%s%s/vars/%u", base, mark, product[i / each], (unsigned)(i % each));
  } else {
    snprintf(out, PATH, "%.900s%s/vars/%u", base, is_recurrent(l) ? "/cell" : "", (unsigned)i);
  }
}

static yk_code walk_layer(const walk *w, yk_layer *l, const char *base) {
  char path[PATH];
  if (l->network != NULL) return walk_network(w, l->network, base);
  for (uint32_t i = 0; i < l->ninner; i++) {
    const char *inner = l->class == &yk__class_bidirectional ? (i ? "backward_layer" : "forward_layer") : "layer";
    snprintf(path, sizeof path, "%.900s/%s", base, inner);
    YK_TRY(walk_layer(w, l->inner[i], path));
  }
  uint32_t at = 0;                                         /* those that train come first, as everywhere */
  for (int trains = 1; trains >= 0; trains--)
    for (uint32_t i = 0; i < l->nweight; i++) {
      if (l->weight[i].not_trainable == (trains == 1)) continue;
      path_of(w, l, base, at++, path);
      YK_TRY(w->each(w->arg, path, l, &l->weight[i]));
    }
  return YK_OK;
}

/* The path of the next layer of a class: "layers/dense", then "layers/dense_1". */
static yk_code group_of(yk_map *seen, const char *base, const char *class, char out[PATH]) {
  char name[NAME];
  uint32_t n = 0;
  yk__snake_case(class, name, sizeof name);
  if (!yk__map_get(seen, name, &n)) snprintf(out, PATH, "%.800s/layers/%s", base, name);
  else snprintf(out, PATH, "%.800s/layers/%s_%u", base, name, (unsigned)n);
  return yk__map_set(seen, name, n + 1) ? YK_OK : YK_ENOMEM;
}

/* Keras's class of a network inside another. Where a file has groups of one class alone, they are of that class, whatever the program made. */
static const char *class_of(const walk *w, const yk_layer *l, const char *base) {
  char path[PATH];
  if (l->network == NULL) return l->class->name;
  if (w->f == NULL) return "Functional";                   /* as the config says that is written with it */
  snprintf(path, sizeof path, "%.800s/layers/functional", base);
  bool functional = yk__h5_has(w->f, path);
  snprintf(path, sizeof path, "%.800s/layers/sequential", base);
  if (functional != yk__h5_has(w->f, path)) return functional ? "Functional" : "Sequential";
  return l->network->sequential ? "Sequential" : "Functional";
}

static yk_code walk_network(const walk *w, const yk_network *n, const char *base) {
  yk_map seen = { 0 };
  char path[PATH];
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++) {
    yk_layer *l = n->layer[i];
    rc = group_of(&seen, base, class_of(w, l, base), path);
    if (rc == YK_OK) rc = walk_layer(w, l, path);
  }
  yk__map_free(&seen);
  return rc;
}

yk_code yk__layout3_walk(const yk_network *n, const yk_h5 *f, yk_layout3_fn each, void *arg) {
  walk w = { f, each, arg };
  return walk_network(&w, n, "");
}

yk_code yk__layout3_is(const yk_h5 *f, bool *out) {
  yk_texts names = { 0 };
  YK_TRY(yk__h5_texts(f, "/", "layer_names", &names));     /* a layer of a Keras 2 file may be called "layers" */
  *out = names.n == 0 && yk__h5_has(f, "layers") && !yk__h5_has(f, "model_weights");
  yk__texts_free(&names);
  return YK_OK;
}

/* ---- loading and saving ----------------------------------------------------------------------------------------------------- */

typedef struct loading { const yk_h5 *f; yk_weights all; } loading;

static yk_code load_one(void *arg, const char *path, yk_layer *l, yk_weight *w) {
  loading *x = arg;
  yk_weight_ref ref = { .layer = l, .weight = w };
  YK_TRY(yk__weight_read(x->f, yk__h5_name(x->f), path + 1, &ref));
  if (YK_PUSH(x->all.at, x->all.n, x->all.cap, ref)) return YK_OK;
  yk_tensor_free(ref.value);
  return YK_ENOMEM;
}

yk_code yk__layout3_load(const yk_h5 *f, yk_network *n) {
  loading x = { .f = f };
  yk_code rc = yk__layout3_walk(n, f, load_one, &x);
  if (rc == YK_OK) rc = yk__weights_put(&x.all);
  for (uint32_t i = 0; i < x.all.n; i++) yk_tensor_free(x.all.at[i].value);
  yk__free(x.all.at);
  return rc;
}

static yk_code save_one(void *arg, const char *path, yk_layer *l, yk_weight *w) {
  yk_tensor *t = NULL;
  YK_TRY(yk_layer_weight(l, w->name, &t));
  yk_code rc = yk__h5_put_tensor(arg, path + 1, t);
  yk_tensor_free(t);
  return rc;
}

yk_code yk__layout3_save(yk_h5_out *f, yk_network *n) {
  YK_TRY(yk__h5_put_group(f, "layers"));
  return yk__layout3_walk(n, NULL, save_one, f);
}
