/*
 * strategy.h - where the variables of towers live, and how the towers' gradients become updates.
 *
 * A strategy is three answers: on which device a variable is made, which variables a tower on a device reads, and
 * where the sum of its gradients is worked out. The planner does the rest: it copies what crosses devices, orders the
 * work so that sums run beside the backward pass, and joins the updates of each device.
 */
#ifndef YK_MODEL_STRATEGY_H
#define YK_MODEL_STRATEGY_H

#include <yoke/model.h>

typedef struct yk_spread {
  const char *where;
  yk_graph *g;
  yk_strategy strategy;        /* never AUTO */
  const char *home;
  const char *const *devices;
  size_t ncopies;              /* devices that keep the variables: 1, or with MIRRORED all that have a tower */
  yk_replica_setter *setter;   /* of SHARDED */
} yk_spread;

/* Never AUTO; *why: who chose it, a static text. */
yk_strategy yk__strategy_choose(const yk_tower_options *o, const char **why);
/* `used`: devices that have a tower, the first ones of o->devices. Sticky errors. */
void yk__spread_open(const char *where, yk_graph *g, const yk_tower_options *o, size_t used, yk_spread *out);

/* Around the building of a tower on device number k: variables made inside go to their place, those that are there are lent to it. */
void yk__spread_push(const yk_spread *s, size_t k);
void yk__spread_pop(const yk_spread *s);

/* What a tower on device k reads of the n trainable variables; out NULL: only count. Copies have their masters' places. */
size_t yk__spread_variables(const yk_spread *s, size_t k, yk_variable **out, size_t max);
/* Gradients [ntowers][nvars] of the masters into [ncopies][nvars]: for each copy of each variable the sum, where it is to be used. */
void yk__spread_sum(const yk_spread *s, size_t ntowers, const yk_gradient *const *tower, size_t nvars, yk_gradient *sum);
/* Clip those to one global norm. */
void yk__spread_clip(const yk_spread *s, double norm, size_t nvars, yk_gradient *sum);

#endif
