/*
 * place.h - what the placer knows while it places a graph.
 *
 * Nodes that must sit together are one group, and the group's root, its member with the smallest number, stands for it:
 * requests, needs and reasons are kept at the root. place.c decides, place_text.c puts into words what was decided.
 */
#ifndef YK_PLAN_PLACE_H
#define YK_PLAN_PLACE_H

#include "plan/ir.h"

/* Why a group is not where it asked to be. */
typedef enum yk_place_reason {
  YK__AS_ASKED,
  YK__ABSENT,          /* there is no such device */
  YK__HOST_ONLY,       /* a member works on host objects, and the device is no CPU */
  YK__NO_KERNEL,       /* the device has no kernel for a member */
  YK__CONFLICT         /* members ask for different devices */
} yk_place_reason;

typedef struct yk_place_group {      /* at the root */
  yk_device_spec request;            /* merged */
  yk_device_spec other;              /* of a conflict that was dropped: what the other member asked for */
  uint32_t members, asker;           /* nodes; the first that asked for a device, or the root */
  uint32_t host, kernel;             /* a member that needs host objects; that some driver has no kernel for; 0 = none */
  uint32_t lacks;                    /* bit k: driver k of the table has no kernel for some member */
  uint32_t other_node;               /* who asked for `other` */
  uint8_t has_variable, reason;
  uint8_t any_type, any_number;      /* members disagreed on these: open for all of them */
  uint16_t fixed;                    /* device where its variable already lives, or YK__NO_DEV */
} yk_place_group;

typedef struct yk_placer {
  const yk_place_request *r;
  const yk_graph *g;
  const yk_devices *d;
  int soft;
  uint32_t *parent;                  /* [nnode] union-find */
  yk_place_group *group;             /* [nnode] */
  uint16_t *dev;                     /* [nnode] the result */
  const char **note;                 /* [nnode] */
} yk_placer;

enum { YK__MAX_DRIVERS = 32 };
/* kernels.c: the index of a device's driver among those of all devices; and, as bits of these indexes, those without a kernel for
 * the node's op in its data type. Nothing is asked where all devices have one driver: placement could not change anything. */
uint32_t yk__place_driver(const yk_devices *d, uint16_t dev);
yk_code  yk__place_lacks(const yk_graph *g, yk_devices *d, const yk_node *n, uint32_t *out) YK_CHECKED;

/* place_text.c: the refusal of a group that no device can take; of node `n`, which conflicts with its group. */
yk_code yk__place_refuse(const yk_placer *p, uint32_t root, yk_place_reason reason) YK_CHECKED;
yk_code yk__place_conflict(const yk_placer *p, uint32_t root, const yk_node *n) YK_CHECKED;
/* One line for each device asked for, reason and device got instead, over all groups that moved, from node `first` on. */
yk_code yk__place_report(const yk_placer *p, uint32_t first, yk_str *out) YK_CHECKED;

#endif
