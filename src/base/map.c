/*
 * map.c - the map from string to number: open addressing, linear probing.
 *
 * Keys are copied and never removed, so a probe ends at the first free slot.
 * At most three quarters of the slots are used.
 */
#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

struct yk_map_slot {
  char *key;                             /* NULL = free */
  uint64_t hash;
  uint32_t value;
};

/* Slot that holds `key`, or the free one where it belongs. The table is never full. */
static struct yk_map_slot *probe(struct yk_map_slot *slot, uint32_t cap, const char *key, uint64_t hash) {
  uint32_t i = (uint32_t)hash & (cap - 1);
  while (slot[i].key && (slot[i].hash != hash || strcmp(slot[i].key, key) != 0)) i = (i + 1) & (cap - 1);
  return &slot[i];
}

static int rehash(yk_map *m) {
  uint32_t cap = m->cap ? m->cap * 2 : 16;
  struct yk_map_slot *slot = yk__calloc(cap, sizeof *slot);
  if (!slot) return 0;
  for (uint32_t i = 0; i < m->cap; i++) {
    if (m->slot[i].key) *probe(slot, cap, m->slot[i].key, m->slot[i].hash) = m->slot[i];
  }
  yk__free(m->slot);
  m->slot = slot;
  m->cap = cap;
  return 1;
}

int yk__map_get(const yk_map *m, const char *key, uint32_t *out) {
  const struct yk_map_slot *s;
  if (m->n == 0) return 0;
  s = probe(m->slot, m->cap, key, yk__hash(key, strlen(key), 0));
  if (!s->key) return 0;
  *out = s->value;
  return 1;
}

int yk__map_set(yk_map *m, const char *key, uint32_t value) {
  uint64_t hash = yk__hash(key, strlen(key), 0);
  struct yk_map_slot *s;
  if ((m->n + 1) > m->cap / 4 * 3 && !rehash(m)) return 0;
  s = probe(m->slot, m->cap, key, hash);
  if (!s->key) {
    char *copy = yk__strdup(key);
    if (!copy) return 0;
    *s = (struct yk_map_slot){ copy, hash, value };
    m->n++;
  }
  s->value = value;
  return 1;
}

void yk__map_free(yk_map *m) {
  for (uint32_t i = 0; i < m->cap; i++) yk__free(m->slot[i].key);
  yk__free(m->slot);
  *m = (yk_map){ 0 };
}
