/*
 * load.c - Keras's .h5 files: a whole model, or weights alone.
 *
 * Groups and weights are matched by order as Keras matches them: layers that have weights one after the other, and in each its weights,
 * those that train first. Nothing of a network changes unless the whole file fits it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/log.h"
#include "keras/compile_json.h"
#include "keras/cudnn_weights.h"
#include "keras/engine.h"
#include "keras/h5.h"
#include "keras/json.h"
#include "keras/layout3.h"
#include "keras/load.h"
#include "keras/state_file.h"
#include "keras/weights.h"
#include "tensor/desc.h"

/* ---- the file's side ----------------------------------------------------------------------------------------------------------- */

static void path_of(char out[1024], const char *root, const char *group, const char *weight) {
  snprintf(out, 1024, "%s%s%.300s%s%.600s", root, root[0] ? "/" : "", group, weight ? "/" : "", weight ? weight : "");
}

yk_code yk__weight_read(const yk_h5 *f, const char *what, const char *path, yk_weight_ref *m) {
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  yk_desc d;
  YK_TRY(yk__h5_desc(f, path, &d));
  if ((d.dtype == m->weight->desc.dtype && yk__desc_same_shape(&d, &m->weight->desc)) || yk__cudnn_has_bias(m, &d))
    return yk__h5_tensor(f, path, &m->value);
  return YK_FAIL(ECORRUPT, "%s: %s is %s; weight '%s' of layer '%s' is %s", what, path, yk__desc_text(&d, have, sizeof have),
                 m->weight->name, m->layer->name, yk__desc_text(&m->weight->desc, want, sizeof want));
}

/* One layer's group into m[from...]; the group's weights are as many as the layer's. */
static yk_code read_group(const yk_h5 *f, const char *what, const char *root, const char *group, const yk_layer *l,
                          yk_weight_ref *m, uint32_t n, const yk_texts *names) {
  char path[1024];
  if (names->n != n)
    return YK_FAIL(ECORRUPT, "%s: group '%s' has %u weights; layer '%s' has %u", what, group, (unsigned)names->n, l->name,
                   (unsigned)n);
  for (uint32_t i = 0; i < n; i++) {
    path_of(path, root, group, names->at[i]);
    YK_TRY(yk__weight_read(f, what, path, &m[i]));
  }
  return yk__cudnn_convert(m, n);
}

/* Groups that have weights, in the order of the file, against layers that have. */
static yk_code read_groups(const yk_h5 *f, const char *what, const char *root, const yk_texts *groups, yk_network *n,
                           yk_weights *all) {
  uint32_t g = 0, ngroups = 0, nlayers = 0;
  char path[1024];
  for (uint32_t i = 0; i < n->nlayer; i++) {
    yk_layer *l = n->layer[i];
    uint32_t from = all->n;
    yk_texts names = { 0 };
    YK_TRY(yk__weights_of(l, n->self.frozen, all));
    if (all->n == from) continue;
    nlayers++;
    for (; g < groups->n && names.n == 0; g++) {
      path_of(path, root, groups->at[g], NULL);
      YK_TRY(yk__h5_texts(f, path, "weight_names", &names));
    }
    yk_code rc = names.n == 0 ? YK_FAIL(ECORRUPT, "%s: weights of %u layers are there; network '%s' has more: '%s' gets none",
                                        what, (unsigned)ngroups, n->self.name, l->name)
                              : read_group(f, what, root, groups->at[g - 1], l, all->at + from, all->n - from, &names);
    yk__texts_free(&names);
    YK_TRY(rc);
    ngroups++;
  }
  for (; g < groups->n; g++) {
    yk_texts names = { 0 };
    path_of(path, root, groups->at[g], NULL);
    YK_TRY(yk__h5_texts(f, path, "weight_names", &names));
    uint32_t more = names.n;
    yk__texts_free(&names);
    if (more > 0)
      return YK_FAIL(ECORRUPT, "%s: group '%s' has weights, but network '%s' has only %u layers that have", what, groups->at[g],
                     n->self.name, (unsigned)nlayers);
  }
  return YK_OK;
}

/* The group that is called like the layer, if there is one; the layer's weights are added to *all only if they all fit. */
static yk_code read_named(const yk_h5 *f, const char *what, const char *root, const yk_texts *groups, yk_layer *l, bool frozen,
                          bool skip_mismatch, yk_weights *all, size_t *loaded) {
  char path[1024];
  uint32_t from = all->n;
  yk_texts names = { 0 };
  bool there = false;
  for (uint32_t i = 0; i < groups->n; i++) there = there || strcmp(groups->at[i], l->name) == 0;
  if (!there) return YK_OK;
  YK_TRY(yk__weights_of(l, frozen, all));
  path_of(path, root, l->name, NULL);
  yk_code rc = yk__h5_texts(f, path, "weight_names", &names);
  if (rc == YK_OK) rc = read_group(f, what, root, l->name, l, all->at + from, all->n - from, &names);
  yk__texts_free(&names);
  if (rc == YK_OK) return *loaded += all->n > from, YK_OK;
  if (rc != YK_ECORRUPT || !skip_mismatch) return rc;
  for (; all->n > from; all->n--) yk_tensor_free(all->at[all->n - 1].value);
  yk_error_clear();
  return YK_OK;
}

yk_code yk__weights_put(yk_weights *m) {
  for (uint32_t i = 0; i < m->n; i++) {
    yk_tensor *value = m->at[i].value;
    m->at[i].value = NULL;
    YK_TRY(yk__weight_take(m->at[i].layer, m->at[i].weight, value));
  }
  return YK_OK;
}

/* How to match: by order, or by name. */
typedef struct match { bool by_name, skip_mismatch; size_t loaded; } match;

static yk_code match_groups(const yk_h5 *f, const char *path, const char *root, const yk_texts *groups, yk_network *n, match *how,
                            yk_weights *m) {
  if (!how->by_name) return read_groups(f, path, root, groups, n, m);
  for (uint32_t i = 0; i < n->nlayer; i++)
    YK_TRY(read_named(f, path, root, groups, n->layer[i], n->self.frozen, how->skip_mismatch, m, &how->loaded));
  return YK_OK;
}

static yk_code load_weights(const yk_h5 *f, const char *path, yk_network *n, match *how) {
  const char *root = yk__h5_has(f, "model_weights") ? "model_weights" : "";
  yk_weights m = { 0 };
  yk_texts groups = { 0 };
  YK_TRY(yk__h5_texts(f, root[0] ? root : "/", "layer_names", &groups));
  yk_code rc = groups.n > 0 ? match_groups(f, path, root, &groups, n, how, &m)
                            : YK_FAIL(ECORRUPT, "%s: no weights of Keras: there is no list layer_names", path);
  if (rc == YK_OK) rc = yk__weights_put(&m);
  for (uint32_t i = 0; i < m.n; i++) yk_tensor_free(m.at[i].value);
  yk__free(m.at);
  yk__texts_free(&groups);
  return rc;
}

/* ---- public ----------------------------------------------------------------------------------------------------------------------- */

yk_code yk_network_load_weights(yk_network *n, const char *path) {
  yk_h5 *f;
  if (n == NULL || path == NULL) return YK_FAIL(EINVAL, "yk_network_load_weights: NULL argument");
  if (yk__archive_is(path)) return yk__archive_load_weights(n, path);
  YK_TRY(yk__h5_open(path, &f));
  bool numbered = false;
  yk_code rc = yk__layout3_is(f, &numbered);
  if (rc == YK_OK) rc = numbered ? yk__layout3_load(f, n) : load_weights(f, path, n, &(match){ .by_name = false });
  yk__h5_close(f);
  return rc;
}

static yk_code no_names(const char *path) {
  return YK_FAIL(EUNSUPPORTED, "'%s' has weights as Keras 3 keeps them, by number; they can only be loaded by order", path);
}

yk_code yk_network_load_weights_by_name(yk_network *n, const char *path, bool skip_mismatch, size_t *loaded) {
  match how = { .by_name = true, .skip_mismatch = skip_mismatch };
  yk_h5 *f;
  if (n == NULL || path == NULL) return YK_FAIL(EINVAL, "yk_network_load_weights_by_name: NULL argument");
  bool numbered = yk__archive_is(path);
  if (numbered) return no_names(path);
  YK_TRY(yk__h5_open(path, &f));
  yk_code rc = yk__layout3_is(f, &numbered);
  if (rc == YK_OK) rc = numbered ? no_names(path) : load_weights(f, path, n, &how);
  yk__h5_close(f);
  if (rc == YK_OK && loaded != NULL) *loaded = how.loaded;
  return rc;
}

/* The root's attribute keras_version, "2.2.4" or "3.1.0". */
static yk_code major_of(const yk_h5 *f, int *out) {
  char *version = NULL;
  YK_TRY(yk__h5_text(f, "/", "keras_version", &version));
  *out = version != NULL && version[0] >= '3' && version[0] <= '9' ? 3 : 2;
  yk__free(version);
  return YK_OK;
}

static yk_code tell(yk_code rc, const yk_network *n, const char *what) {
  if (rc == YK_OK || rc == YK_ENOMEM) return rc;
  YK_LOG(NOTICE, "network '%s' %s: %s", n->self.name, what, yk_error_message());
  yk_error_clear();
  return YK_OK;
}

yk_code yk__training_load(const yk_h5 *f, const char *what, const char *text, yk_network *n,
                          yk_code (*state)(const yk_h5 *f, const char *what, yk_network *n)) {
  if (text == NULL) return YK_OK;
  YK_TRY(tell(yk__compile_read(n, what, text), n, "is not compiled as its file says"));
  return n->compiled != NULL ? tell(state(f, what, n), n, "has an optimizer that begins anew") : YK_OK;
}

static yk_code load_training(const yk_h5 *f, const char *path, yk_network *n) {
  char *config = NULL;
  YK_TRY(yk__h5_text(f, "/", "training_config", &config));
  yk_code rc = yk__training_load(f, path, config, n, yk__state_load);
  yk__free(config);
  return rc;
}

static yk_code load_model(const yk_h5 *f, const char *path, yk_keras *k, yk_network **out) {
  char *config = NULL;
  int major;
  yk_network *n = NULL;
  YK_TRY(major_of(f, &major));
  YK_TRY(yk__h5_text(f, "/", "model_config", &config));
  if (config == NULL)
    return YK_FAIL(
        ECORRUPT,
        "%s: no attribute model_config, so it is no whole model; weights alone go into a network by yk_network_load_weights()",
        path);
  k->major = major;
  yk_code rc = yk__network_read(k, path, config, strlen(config), major, &n);
  yk__free(config);
  if (rc == YK_OK) rc = load_weights(f, path, n, &(match){ .by_name = false });
  if (rc != YK_OK) return rc;
  n->major = major;
  YK_TRY(load_training(f, path, n));
  *out = n;
  return YK_OK;
}

yk_code yk_network_load(yk_keras *k, const char *path, yk_network **out) {
  yk_h5 *f;
  if (k == NULL || path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_network_load: NULL argument");
  YK_TRY(yk_keras_status(k));
  if (yk__archive_is(path)) return yk__archive_load(k, path, out);
  YK_TRY(yk__h5_open(path, &f));
  yk_code rc = load_model(f, path, k, out);
  yk__h5_close(f);
  return rc;
}
