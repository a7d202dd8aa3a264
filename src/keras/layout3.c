/*
 * layout3.c - see layout3.h.
 *
 * Recurrent layers keep their weights in a cell, attention in a layer for each product, wrappers in what they wrap. Keras 2 has the same groups, but
 * calls some of them otherwise, and on Windows it puts the path of a group into its name.
 */
#include "keras/layout3.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "keras/json.h"
#include "keras/load.h"

enum { PATH = 1024, NAME = 100 };

/* What a network keeps its layers in, and what stands between a group and the next one inside. */
typedef struct naming { const char *layers; char between; } naming;
typedef struct walk { const yk_h5 *f; naming by; yk_layout3_fn each; void *arg; } walk;

/* Keras 3, Keras 2.15 and later; Keras 2.14. */
static const naming namings[] = { { "layers", '/' }, { "layers", '\\' },
                                  { "_layer_checkpoint_dependencies", '/' }, { "_layer_checkpoint_dependencies", '\\' } };

/* NULL: it has no layers of either kind. */
static const naming *naming_of(const yk_h5 *f) {
  char text[64];
  for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
    snprintf(text, sizeof text, "%s%c", namings[i].layers, namings[i].between);
    if (namings[i].between == '/' ? yk__h5_has(f, namings[i].layers) : yk__h5_any(f, text)) return &namings[i];
  }
  return NULL;
}

static yk_code walk_network(const walk *w, const yk_network *n, const char *base);

static bool is_recurrent(const yk_layer *l) {
  return l->class == &yk__class_lstm || l->class == &yk__class_gru || l->class == &yk__class_simple_rnn;
}

/* A group inside another: its path begins with what stands between, which those who look for it leave out. */
static void inside(const walk *w, const char *base, const char *name, char out[PATH]) {
  snprintf(out, PATH, "%.850s%c%.150s", base, w->by.between, name);
}

/* Attention's kernels and biases are those of four layers, "_query_dense" for Keras 2. */
static void path_of(const walk *w, const yk_layer *l, const char *base, uint32_t i, char out[PATH]) {
  static const char *const product[] = { "_query_dense", "_key_dense", "_value_dense", "_output_dense" };
  char group[PATH];
  uint32_t each = l->nweight / 4;
  if (l->class == &yk__class_multi_head_attention) {
    inside(w, base, product[i / each], group);
    if (w->f == NULL || !yk__h5_has(w->f, group + 1)) inside(w, base, product[i / each] + 1, group);
    i %= each;
  } else if (is_recurrent(l)) {
    inside(w, base, "cell", group);
  } else {
    snprintf(group, sizeof group, "%s", base);
  }
  snprintf(out, PATH, "%.1000s/vars/%u", group, (unsigned)i);
}

/*
 * Keras writes a network once, for the first that holds it, and its config says in each that it is one of its own: not even Keras can load
 * such a file.
 */
static yk_code check_kept(const walk *w, const yk_layer *l, const char *base) {
  if (w->f == NULL || w->by.between != '/' || yk__h5_has(w->f, base + 1) || yk__layer_parameters(l) == 0) return YK_OK;
  return YK_FAIL(ECORRUPT, "'%s': %s: the network '%s' has no weights there. Keras keeps them once where two networks, or a network and a "
                 "wrapper, hold the same one, and cannot load this file either: save the model as .h5", yk__h5_name(w->f), base + 1, l->name);
}

static yk_code walk_layer(const walk *w, yk_layer *l, const char *base) {
  char path[PATH];
  if (l->network != NULL) {
    YK_TRY(check_kept(w, l, base));
    return walk_network(w, l->network, base);
  }
  for (uint32_t i = 0; i < l->ninner; i++) {
    inside(w, base, l->class == &yk__class_bidirectional ? (i ? "backward_layer" : "forward_layer") : "layer", path);
    YK_TRY(walk_layer(w, l->inner[i], path));
  }
  uint32_t at = 0;                                         /* those that train come first, as everywhere */
  for (int trains = 1; trains >= 0; trains--)
    for (uint32_t i = 0; i < l->nweight; i++) {
      if (l->weight[i].not_trainable == (trains == 1)) continue;
      path_of(w, l, base, at++, path);
      YK_TRY(w->each(w->arg, path + 1, l, &l->weight[i]));
    }
  return YK_OK;
}

/* The next layer of a class among `layers`: "dense", then "dense_1". */
static yk_code group_of(const walk *w, yk_map *seen, const char *layers, const char *class, char out[PATH]) {
  char name[NAME], numbered[NAME + 12];
  uint32_t n = 0;
  yk__snake_case(class, name, sizeof name);
  bool another = yk__map_get(seen, name, &n);
  snprintf(numbered, sizeof numbered, "%s_%u", name, (unsigned)n);
  inside(w, layers, another ? numbered : name, out);
  return yk__map_set(seen, name, n + 1) ? YK_OK : YK_ENOMEM;
}

/* Keras's class of a network inside another. Where a file has groups of one class alone, they are of that class, whatever the program made. */
static const char *class_of(const walk *w, const yk_layer *l, const char *layers) {
  char path[PATH];
  if (l->network == NULL) return l->class->name;
  if (w->f == NULL) return "Functional";                   /* as the config says that is written with it */
  inside(w, layers, "functional", path);
  bool functional = yk__h5_has(w->f, path + 1);
  inside(w, layers, "sequential", path);
  if (functional != yk__h5_has(w->f, path + 1)) return functional ? "Functional" : "Sequential";
  return l->network->sequential ? "Sequential" : "Functional";
}

static yk_code walk_network(const walk *w, const yk_network *n, const char *base) {
  yk_map seen = { 0 };
  char layers[PATH], path[PATH];
  yk_code rc = YK_OK;
  inside(w, base, w->by.layers, layers);
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++) {
    yk_layer *l = n->layer[i];
    rc = group_of(w, &seen, layers, class_of(w, l, layers), path);
    if (rc == YK_OK) rc = walk_layer(w, l, path);
  }
  yk__map_free(&seen);
  return rc;
}

yk_code yk__layout3_walk(const yk_network *n, const yk_h5 *f, yk_layout3_fn each, void *arg) {
  const naming *by = f != NULL ? naming_of(f) : NULL;
  walk w = { f, by != NULL ? *by : namings[0], each, arg };
  return walk_network(&w, n, "");
}

yk_code yk__layout3_is(const yk_h5 *f, bool *out) {
  yk_texts names = { 0 };
  YK_TRY(yk__h5_texts(f, "/", "layer_names", &names));     /* a layer of a Keras 2 file may be called "layers" */
  *out = names.n == 0 && naming_of(f) != NULL && !yk__h5_has(f, "model_weights");
  yk__texts_free(&names);
  return YK_OK;
}

/* ---- loading and saving ----------------------------------------------------------------------------------------------------- */

typedef struct loading { const yk_h5 *f; yk_weights all; } loading;

static yk_code load_one(void *arg, const char *path, yk_layer *l, yk_weight *w) {
  loading *x = arg;
  yk_weight_ref ref = { .layer = l, .weight = w };
  YK_TRY(yk__weight_read(x->f, yk__h5_name(x->f), path, &ref));
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
  yk_code rc = yk__h5_put_tensor(arg, path, t);
  yk_tensor_free(t);
  return rc;
}

yk_code yk__layout3_save(yk_h5_out *f, yk_network *n) {
  YK_TRY(yk__h5_put_group(f, "layers"));
  return yk__layout3_walk(n, NULL, save_one, f);
}
