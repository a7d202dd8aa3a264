/*
 * place_text.c - the placer in words: refusals, and what soft placement moved.
 *
 * A refusal names the operation, the device it asks for, the devices there are, the
 * reason, and a way out. What moved is told once for all groups that moved alike,
 * so that a network of thousands of nodes gives a line and not thousands.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "plan/place.h"

enum { HAVE = 1024, ALIKE = 64 };

static const char *asked_text(const yk_device_spec *d, char buf[YK__DEVICE_TEXT]) {
  yk__device_text(d, buf);
  return buf[0] ? buf : "any device";
}

/* ", which sits with 2 others: 'a' (Add, asks for /device:GPU:1), 'b' (Mul)" or "". */
static void members_text(const yk_placer *p, uint32_t root, uint32_t but, char *buf, size_t bytes) {
  enum { SHOWN = 3 };
  uint32_t n = p->group[root].members, shown = 0;
  size_t at = 0;
  buf[0] = '\0';
  if (n < 2) return;
  for (uint32_t id = root; id < p->g->nnode && shown < SHOWN && at < bytes; id++) {
    const yk_node *x = p->g->node[id];
    uint32_t r = id;
    while (p->parent[r] != r) r = p->parent[r];
    if (r != root || id == but) continue;
    int wrote = shown ? snprintf(buf + at, bytes - at, ", ")
                      : snprintf(buf, bytes, ", which sits with %u other%s: ", (unsigned)n - 1, n == 2 ? "" : "s");
    if (wrote > 0) at += (size_t)wrote;
    const char *asks = x->device_text[0] ? ", asks for " : "";
    if (at < bytes) wrote = snprintf(buf + at, bytes - at, "'%.80s' (%s%s%s)", x->name, x->op->label, asks, x->device_text);
    if (wrote > 0) at += (size_t)wrote;
    shown++;
  }
  if (n - 1 > SHOWN && at < bytes) snprintf(buf + at, bytes - at, ", ...");
}

/* Devices that could take the operation if they were asked for. */
static void able_text(const yk_placer *p, const yk_place_group *t, char *buf, size_t bytes) {
  size_t at = 0;
  snprintf(buf, bytes, "no device");
  for (uint16_t i = 0; i < p->d->n && at < bytes; i++) {
    if (t->lacks >> yk__place_driver(p->d, i) & 1u) continue;
    int wrote = snprintf(buf + at, bytes - at, "%s%s", at ? ", " : "", p->d->at[i].name);
    if (wrote > 0) at += (size_t)wrote;
  }
}

yk_code yk__place_refuse(const yk_placer *p, uint32_t root, yk_place_reason reason) {
  const yk_place_group *t = &p->group[root];
  uint32_t id = reason == YK__HOST_ONLY ? t->host : reason == YK__NO_KERNEL && t->kernel ? t->kernel : t->asker ? t->asker : root;
  const yk_node *n = p->g->node[id];
  char asked[YK__DEVICE_TEXT], have[HAVE], able[HAVE], with[512];
  yk__devices_text(p->d, have, sizeof have);
  members_text(p, root, id, with, sizeof with);
  asked_text(&t->request, asked);
  if (reason == YK__HOST_ONLY)
    return YK_FAIL(EUNSUPPORTED, "no device can be assigned for '%s' (%s, %s)%s: it asks for %s, which exists, but %s works on host "
                   "objects and runs on CPU devices only. Devices: %s. Put it on /cpu:0 or allow soft placement", n->name,
                   n->op->label, n->where, with, asked, n->op->label, have);
  if (reason == YK__NO_KERNEL) {
    able_text(p, t, able, sizeof able);
    return YK_FAIL(EUNSUPPORTED, "no device can be assigned for '%s' (%s, %s)%s: it asks for %s, which exists, but has no kernel for "
                   "%s in this data type; %s has. Devices: %s. Ask for one that has a kernel ('yoke ops' lists them), cast, or "
                   "allow soft placement", n->name, n->op->label, n->where, with, asked, n->op->label, able, have);
  }
  return YK_FAIL(ENOTFOUND, "no device can be assigned for '%s' (%s, %s)%s: it asks for %s, and there is no such device. Devices: %s. "
                 "Check the device string, open more devices, or allow soft placement", n->name, n->op->label, n->where, with,
                 asked, have);
}

yk_code yk__place_conflict(const yk_placer *p, uint32_t root, const yk_node *n) {
  const yk_place_group *t = &p->group[root];
  const yk_node *first = p->g->node[t->asker && t->asker != n->id ? t->asker : root];
  char a[YK__DEVICE_TEXT], b[YK__DEVICE_TEXT], have[HAVE];
  yk__devices_text(p->d, have, sizeof have);
  return YK_FAIL(EINVAL, "no device can be assigned for '%s' (%s, %s): it asks for %s, but it must sit with '%s' (%s, %s), which asks "
                 "for %s. Devices: %s. Give both the same device, do not colocate them, or allow soft placement (for devices of one "
                 "task)", n->name, n->op->label, n->where, asked_text(&n->device, a), first->name, first->op->label, first->where,
                 asked_text(&t->request, b), have);
}

/* ---- what moved ------------------------------------------------------------------------------------------------- */

typedef struct yk_moved {              /* groups that moved alike */
  const yk_place_group *like;
  uint32_t root, groups, nodes;
} yk_moved;

static int alike(const yk_placer *p, const yk_moved *m, const yk_place_group *t, uint32_t root) {
  char a[YK__DEVICE_TEXT], b[YK__DEVICE_TEXT];
  if (m->like->reason != t->reason || p->dev[m->root] != p->dev[root]) return 0;
  if (t->reason == YK__CONFLICT) return 0;            /* two devices each: one line each */
  return strcmp(yk__device_text(&m->like->request, a), yk__device_text(&t->request, b)) == 0;
}

static void add_line(const yk_placer *p, const yk_moved *m, yk_str *out) {
  const yk_place_group *t = m->like;
  uint32_t asker = t->asker ? t->asker : m->root;
  const yk_node *n = p->g->node[t->reason == YK__HOST_ONLY ? t->host : t->reason == YK__NO_KERNEL ? t->kernel : asker];
  char a[YK__DEVICE_TEXT], b[YK__DEVICE_TEXT];
  yk__str_add(out, "soft placement: '%s' (%s, %s)", n->name, n->op->label, n->where);
  if (m->nodes > 1)
    yk__str_add(out, m->groups == 1 ? " and %u more that must sit together" : " and %u more", (unsigned)m->nodes - 1);
  if (t->reason == YK__CONFLICT)
    yk__str_add(out, " ask for %s and %s", asked_text(&p->g->node[t->asker]->device, a), asked_text(&t->other, b));
  else yk__str_add(out, m->nodes > 1 ? " ask for %s" : " asks for %s", asked_text(&t->request, a));
  if (t->reason == YK__ABSENT) yk__str_add(out, ", and there is no such device");
  if (t->reason == YK__HOST_ONLY) yk__str_add(out, ", but %s works on host objects", n->op->label);
  if (t->reason == YK__NO_KERNEL) yk__str_add(out, ", which has no kernel for %s in this data type", n->op->label);
  yk__str_add(out, m->nodes > 1 ? "; they run on %s\n" : "; it runs on %s\n", p->d->at[p->dev[m->root]].name);
}

yk_code yk__place_report(const yk_placer *p, uint32_t first, yk_str *out) {
  yk_moved *moved = NULL;
  uint32_t n = 0, cap = 0;
  for (uint32_t id = first ? first : 1; id < p->g->nnode; id++) {
    const yk_place_group *t = &p->group[id];
    uint32_t k = 0;
    if (p->parent[id] != id || t->reason == YK__AS_ASKED) continue;
    while (k < n && k < ALIKE && !alike(p, &moved[k], t, id)) k++;
    if (k == n || k == ALIKE) {
      if (!YK_PUSH(moved, n, cap, ((yk_moved){ .like = t, .root = id }))) {
        yk__free(moved);
        return YK_ENOMEM;
      }
      k = n - 1;
    }
    moved[k].groups++;
    moved[k].nodes += t->members;
  }
  for (uint32_t k = 0; k < n; k++) add_line(p, &moved[k], out);
  yk__free(moved);
  return out->failed ? YK_FAIL(ENOMEM, "no memory to tell what soft placement moved") : YK_OK;
}
