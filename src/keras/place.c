/*
 * place.c - a network on its devices, and in a user's own steps.
 *
 * A part of a step is the network on one device, on that device's share of the rows; the spread of towers (model/strategy.h) says where
 * variables live and lends them to the parts.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "graph/graph.h"
#include "keras/compile.h"
#include "keras/engine.h"
#include "tensor/desc.h"

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

void yk__part_open(const yk_network *n, uint32_t i) {
  yk_keras *k = n->self.k;
  char name[32];
  snprintf(name, sizeof name, "replica_%u", (unsigned)i);
  k->part = i;
  k->nparts = n->ndevice;
  yk_name_scope_push_at(n->self.where, k->graph, name);
  yk_device_push_at(n->self.where, k->graph, n->device[i]);
  yk__spread_push(&k->spread, i);
}

void yk__part_close(const yk_network *n) {
  yk_keras *k = n->self.k;
  yk__spread_pop(&k->spread);
  yk_device_pop_at(n->self.where, k->graph);
  yk_name_scope_pop_at(n->self.where, k->graph);
  k->part = 0;
  k->nparts = 0;
}

yk_value yk__part_rows(const yk_network *n, uint32_t i, yk_value x) {
  return n->ndevice > 1 ? yk_batch_shard_at(n->self.where, n->self.k->graph, x, i, n->ndevice) : x;
}

yk_value yk__input_placeholder(const yk_network *n, uint32_t i) {
  const yk_layer *l = n->in[i].layer;
  const yk_desc *d = yk_sym_desc(n->in[i]);
  return yk_placeholder_at(l->where, n->self.k->graph, l->name, (yk_dtype)d->dtype, yk__desc_shape(d));
}

yk_code yk__check_input(const yk_network *n, uint32_t i, const yk_tensor *t, int64_t rows) {
  char want[YK__DESC_TEXT], have[YK__DESC_TEXT];
  const yk_desc *d = yk_sym_desc(n->in[i]), *x = t != NULL ? yk_tensor_desc(t) : NULL;
  bool fits = x != NULL && x->dtype == d->dtype && x->rank == d->rank && x->dim[0] == rows;
  for (uint32_t k = 1; fits && k < d->rank; k++) fits = d->dim[k] < 0 || d->dim[k] == x->dim[k];
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "network '%s': input '%s' needs %s with %lld rows, it got %s", n->self.name, n->in[i].layer->name,
                 yk__desc_text(d, want, sizeof want), (long long)rows, x != NULL ? yk__desc_text(x, have, sizeof have) : "NULL");
}

/* ---- steps of one's own ----------------------------------------------------------------------------------------------------- */

void yk_network_build_at(const char *where, yk_network *n, bool training, const yk_value *in, yk_value *out) {
  if (n == NULL || in == NULL || out == NULL || n->self.k->graph == NULL) return;
  yk_keras *k = n->self.k;
  yk__spread_push(&k->spread, 0);
  yk__network_build(n, k->graph, where, training, in, NULL, out, NULL);
  yk__spread_pop(&k->spread);
}

typedef struct found { yk_variable **out; size_t n, max; } found;

static void find_trained(const yk_layer *l, bool frozen, found *f) {
  frozen = frozen || l->frozen;
  for (uint32_t i = 0; l->network != NULL && i < l->network->nlayer; i++) find_trained(l->network->layer[i], frozen, f);
  for (uint32_t i = 0; i < l->ninner; i++) find_trained(l->inner[i], frozen, f);
  for (uint32_t i = 0; i < l->nweight && !frozen; i++) {
    yk_variable *v = l->weight[i].not_trainable ? NULL : yk__weight_variable(l, &l->weight[i]);
    if (v == NULL) continue;
    if (f->n < f->max) f->out[f->n] = v;
    f->n++;
  }
}

size_t yk_network_variables(const yk_network *n, yk_variable **out, size_t max) {
  found f = { .out = out, .max = out != NULL ? max : 0 };
  if (n != NULL) find_trained(&n->self, false, &f);
  return f.n;
}

/* ---- place ------------------------------------------------------------------------------------------------------------------ */

yk_code yk_network_place(yk_network *n, const yk_network_options *options) {
  if (n == NULL || options == NULL || options->size != sizeof *options)
    return YK_FAIL(EINVAL, "yk_network_place: NULL argument, or options that do not start from YK_NETWORK_OPTIONS_INIT");
  yk_keras *k = n->self.k;
  if (n->predict != NULL || (n->compiled != NULL && yk__has_steps(n->compiled)))
    return YK_FAIL(EINVAL, "network '%s' runs already; place it before its first run", n->self.name);
  if (options->session != NULL && k->session != NULL)
    return YK_FAIL(EINVAL, "the session is open; its options come with the first network that runs");
  if (options->ndevices > YK__MAX_PORTS) return YK_FAIL(EINVAL, "%zu devices; at most %d", options->ndevices, YK__MAX_PORTS);
  if (yk_strategy_name(options->strategy) == NULL) return YK_FAIL(EINVAL, "no strategy has the number %d", (int)options->strategy);
  const char **device = yk__bump(&k->mem, (options->ndevices + 1) * sizeof *device);
  if (device == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < options->ndevices; i++)
    if ((device[i] = yk__bump_str(&k->mem, options->devices[i])) == NULL) return YK_ENOMEM;
  if (options->ndevices == 0) device[0] = YK__HOME;
  n->device = device;
  n->ndevice = options->ndevices > 0 ? (uint32_t)options->ndevices : 1;
  n->strategy = options->strategy;
  if (options->session != NULL) k->options = *options->session;
  return YK_OK;
}
