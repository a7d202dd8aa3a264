/*
 * summary.c - a network as a table, and its numbers counted.
 *
 * A weight that several calls share counts once, and so does a network that is called twice.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/keras.h"
#include "tensor/desc.h"

enum { NAME = 40, SHAPE = 24, COUNT = 12, WIDTH = 110 };

/* ---- counting ------------------------------------------------------------------------------------------------------------- */

static void count_layer(const yk_layer *l, bool frozen, int64_t *all, int64_t *trainable) {
  for (uint32_t i = 0; i < l->ninner; i++) {
    int64_t inside = 0;
    if (l->inner[i]->network != NULL) {
      yk_network_parameters(l->inner[i]->network, &inside, NULL);
      *all += inside;
      if (!frozen && !l->frozen) *trainable += inside;
    } else {
      count_layer(l->inner[i], frozen || l->frozen, all, trainable);
    }
  }
  for (uint32_t i = 0; i < l->nweight; i++) {
    int64_t n = yk__desc_count(&l->weight[i].desc);
    *all += n;
    if (!frozen && !l->frozen && !l->weight[i].not_trainable) *trainable += n;
  }
}

/* Layers that were counted bear the number of this count, since two nested networks may share one. */
static void count_network(const yk_network *n, bool frozen, uint64_t count, int64_t *all, int64_t *trainable) {
  for (uint32_t i = 0; i < n->nlayer; i++) {
    yk_layer *l = n->layer[i];
    if (l->counted == count) continue;
    l->counted = count;
    if (l->network != NULL) count_network(l->network, frozen || l->frozen, count, all, trainable);
    else count_layer(l, frozen, all, trainable);
  }
}

void yk_network_parameters(const yk_network *n, int64_t *all, int64_t *trainable) {
  int64_t a = 0, t = 0;
  if (n != NULL) count_network(n, n->self.frozen, ++n->self.k->counts, &a, &t);
  if (all != NULL) *all = a;
  if (trainable != NULL) *trainable = t;
}

int64_t yk__layer_parameters(const yk_layer *l) {
  int64_t all = 0, trainable = 0;
  if (l->network != NULL) yk_network_parameters(l->network, &all, NULL);
  else count_layer(l, false, &all, &trainable);
  return all;
}

/* ---- the table -------------------------------------------------------------------------------------------------------------- */

void yk__shape_put(yk_str *s, const yk_desc *d, const char brackets[2]) {
  yk__str_put(s, brackets, 1);
  for (uint32_t i = 0; d != NULL && i < d->rank; i++) {
    if (d->dim[i] < 0) yk__str_add(s, "%sNone", i ? ", " : "");
    else yk__str_add(s, "%s%lld", i ? ", " : "", (long long)d->dim[i]);
  }
  if (d != NULL && d->rank == 1 && brackets[0] == '(') yk__str_put(s, ",", 1);       /* as Python writes it */
  yk__str_put(s, brackets + 1, 1);
}

/* "conv_1[0][0]", as Keras writes it, of every call of the layer in this network. */
static void put_sources(yk_str *s, const yk_network *n, const yk_layer *l) {
  bool first = true;
  for (uint32_t node = 0; node < l->ncall; node++) {
    if (!yk__network_calls(n, l, node)) continue;
    for (uint32_t i = 0; i < l->call[node].nin; i++, first = false) {
      yk_sym x = l->call[node].in[i];
      yk__str_add(s, "%s%s[%u][%u]", first ? "" : ", ", x.layer->name, (unsigned)x.node, (unsigned)x.index);
    }
  }
}

static yk_code put_layer(yk_str *s, const yk_network *n, const yk_layer *l) {
  yk_str shape = { 0 };
  char name[200], *text = NULL;
  uint32_t node = yk__network_first_call(n, l);
  if (node < l->ncall) yk__shape_put(&shape, yk_value_desc(l->k->sketch, l->call[node].out[0]), "()");
  YK_TRY(yk__str_take(&shape, &text));
  snprintf(name, sizeof name, "%.150s (%.40s)", l->name, l->class->name);
  yk__str_add(s, "%-*s %-*s %*lld  ", NAME, name, SHAPE, text, COUNT, (long long)yk__layer_parameters(l));
  yk__free(text);
  put_sources(s, n, l);
  yk__str_put(s, "\n", 1);
  return YK_OK;
}

static void put_line(yk_str *s, char c) {
  char line[WIDTH + 2];
  memset(line, c, WIDTH);
  memcpy(line + WIDTH, "\n", 2);
  yk__str_put(s, line, WIDTH + 1);
}

yk_code yk_network_summary(const yk_network *n, char **out) {
  yk_str s = { 0 };
  yk_code rc = YK_OK;
  int64_t all, trainable;
  if (n == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_network_summary: NULL argument");
  yk__str_add(&s, "network '%s'\n", n->self.name);
  put_line(&s, '_');
  yk__str_add(&s, "%-*s %-*s %*s  %s\n", NAME, "layer (class)", SHAPE, "output shape", COUNT, "parameters", "connected to");
  put_line(&s, '=');
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++) rc = put_layer(&s, n, n->layer[i]);
  put_line(&s, '=');
  yk_network_parameters(n, &all, &trainable);
  yk__str_add(&s, "parameters: %lld; trainable: %lld, not trainable: %lld\n", (long long)all, (long long)trainable,
              (long long)(all - trainable));
  if (rc != YK_OK) return yk__str_free(&s), rc;
  return yk__str_take(&s, out);
}
