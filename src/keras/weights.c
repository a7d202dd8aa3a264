/*
 * weights.c - see weights.h.
 *
 * Two walks over the same layers, one for each half of the list.
 */
#include "keras/weights.h"
#include "base/error.h"

static bool push(yk_weights *m, yk_layer *l, bool frozen, bool trainable) {
  frozen = frozen || l->frozen;
  if (l->network != NULL) {
    for (uint32_t i = 0; i < l->network->nlayer; i++)
      if (!push(m, l->network->layer[i], frozen, trainable)) return false;
    return true;
  }
  for (uint32_t i = 0; i < l->ninner; i++)
    if (!push(m, l->inner[i], frozen, trainable)) return false;
  for (uint32_t i = 0; i < l->nweight; i++) {
    yk_weight_ref x = { .layer = l, .weight = &l->weight[i] };
    if ((!frozen && !x.weight->not_trainable) == trainable && !YK_PUSH(m->at, m->n, m->cap, x)) return false;
  }
  return true;
}

yk_code yk__weights_of(yk_layer *l, bool frozen, yk_weights *out) {
  return push(out, l, frozen, true) && push(out, l, frozen, false) ? YK_OK : YK_ENOMEM;
}

yk_code yk__trained_weights(const yk_network *n, yk_weights *out) {
  for (uint32_t i = 0; i < n->nlayer; i++)
    if (!push(out, n->layer[i], n->self.frozen, true)) return YK_ENOMEM;
  return YK_OK;
}
