/*
 * save.c - a network as one of Keras's .h5 files: whole, or its weights alone.
 *
 * Groups, attributes and names of weights are those of Keras 2: "dense_1/dense_1/kernel:0". The file is put together in memory and
 * replaces an older one only when it is whole.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/compile_json.h"
#include "keras/h5.h"
#include "keras/json.h"
#include "keras/layout3.h"
#include "keras/load.h"
#include "keras/state_file.h"
#include "keras/weights.h"

static yk_code put_versions(yk_h5_out *f, const yk_network *n, const char *path) {
  YK_TRY(yk__h5_put_text(f, path, "keras_version", n->major >= 3 ? "3.0.0" : "2.11.0"));
  return yk__h5_put_text(f, path, "backend", "tensorflow");
}

static char *joined(const char *a, const char *b, const char *c) {
  yk_str s = { 0 };
  char *out = NULL;
  yk__str_add(&s, "%s%s%s%s%s", a, a[0] ? "/" : "", b, c != NULL ? "/" : "", c != NULL ? c : "");
  return yk__str_take(&s, &out) == YK_OK ? out : NULL;
}

static yk_code put_weight(yk_h5_out *f, const char *group, yk_layer *l, const yk_weight *w, const char *name) {
  yk_tensor *t = NULL;
  char *path = joined(group, name, NULL);
  if (path == NULL) return YK_ENOMEM;
  yk_code rc = yk_layer_weight(l, w->name, &t);
  if (rc == YK_OK) rc = yk__h5_put_tensor(f, path, t);
  yk_tensor_free(t);
  yk__free(path);
  return rc;
}

/* Names as Keras 2 gives them: "<layer>/<weight>:0". */
static yk_code name_weights(const yk_weights *m, yk_texts *names) {
  names->at = yk__calloc(m->n + 1u, sizeof *names->at);
  if (names->at == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < m->n; i++, names->n++) {
    yk_str s = { 0 };
    yk__str_add(&s, "%s/%s:0", m->at[i].layer->name, m->at[i].weight->name);
    YK_TRY(yk__str_take(&s, &names->at[i]));
  }
  return YK_OK;
}

static yk_code put_layer(yk_h5_out *f, const char *root, yk_network *n, yk_layer *l) {
  yk_weights m = { 0 };
  yk_texts names = { 0 };
  char *group = joined(root, l->name, NULL);
  yk_code rc = group != NULL ? yk__weights_of(l, n->self.frozen, &m) : YK_ENOMEM;
  if (rc == YK_OK) rc = yk__h5_put_group(f, group);
  if (rc == YK_OK) rc = name_weights(&m, &names);
  if (rc == YK_OK) rc = yk__h5_put_texts(f, group, "weight_names", &names);
  for (uint32_t i = 0; i < m.n && rc == YK_OK; i++) rc = put_weight(f, group, m.at[i].layer, m.at[i].weight, names.at[i]);
  yk__texts_free(&names);
  yk__free(m.at);
  yk__free(group);
  return rc;
}

static yk_code put_weights(yk_h5_out *f, const char *root, yk_network *n) {
  yk_texts layers = { .at = yk__calloc(n->nlayer + 1u, sizeof *layers.at) };
  if (layers.at == NULL) return YK_ENOMEM;
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++, layers.n++)
    if ((layers.at[i] = yk__strdup(n->layer[i]->name)) == NULL) rc = YK_ENOMEM;
  if (rc == YK_OK && root[0]) rc = yk__h5_put_group(f, root);
  if (rc == YK_OK) rc = yk__h5_put_texts(f, root[0] ? root : "/", "layer_names", &layers);
  if (rc == YK_OK && root[0]) rc = put_versions(f, n, root);
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++) rc = put_layer(f, root, n, n->layer[i]);
  yk__texts_free(&layers);
  return rc;
}

/* How it is trained, if it is compiled. */
static yk_code put_training(yk_h5_out *f, yk_network *n) {
  char *config = NULL;
  YK_TRY(yk__compile_write(n, &config));
  if (config == NULL) return YK_OK;
  yk_code rc = yk__h5_put_text(f, "/", "training_config", config);
  yk__free(config);
  return rc == YK_OK ? yk__state_save(f, n) : rc;
}

static yk_code put_model(yk_h5_out *f, yk_network *n) {
  char *config = NULL;
  YK_TRY(yk__network_write(n, &config));
  yk_code rc = yk__h5_put_text(f, "/", "model_config", config);
  yk__free(config);
  if (rc == YK_OK) rc = put_weights(f, "model_weights", n);
  return rc == YK_OK ? put_training(f, n) : rc;
}

static bool ends_with(const char *path, const char *end) {
  size_t n = strlen(path), e = strlen(end);
  return n >= e && strcmp(path + n - e, end) == 0;
}

static yk_code save(yk_network *n, const char *path, bool whole) {
  yk_h5_out *f;
  if (n == NULL || path == NULL) return YK_FAIL(EINVAL, "saving a network: NULL argument");
  YK_TRY(yk_keras_status(n->self.k));
  if (whole && ends_with(path, ".keras")) return yk__archive_save(n, path);
  bool layout3 = !whole && n->major >= 3 && ends_with(path, ".weights.h5");
  YK_TRY(yk__h5_new(&f));
  yk_code rc = layout3 ? yk__layout3_save(f, n) : put_versions(f, n, "/");
  if (rc == YK_OK && !layout3) rc = whole ? put_model(f, n) : put_weights(f, "", n);
  if (rc == YK_OK) rc = yk__h5_save(f, path);
  yk__h5_drop(f);
  return rc;
}

yk_code yk_network_set_keras(yk_network *n, int major) {
  if (n == NULL || major < 2 || major > 3) return YK_FAIL(EINVAL, "a network's files are for Keras 2 or 3, not %d", major);
  n->major = major;
  return YK_OK;
}

yk_code yk_network_save(yk_network *n, const char *path) { return save(n, path, true); }
yk_code yk_network_save_weights(yk_network *n, const char *path) { return save(n, path, false); }
