/*
 * train.h - what the files of this folder share: sparse gradients, and variables of the library's own.
 *
 * A sparse gradient is the output of a gather_grad along axis 0. It looks dense to everybody else, and costs nothing as
 * long as only its inputs are used: what nobody needs is not part of a plan.
 */
#ifndef YK_TRAIN_TRAIN_H
#define YK_TRAIN_TRAIN_H

#include <yoke/math.h>
#include <yoke/train.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/slots.h"
#include "op/registry.h"
#include "tensor/desc.h"

/* The sparse gradient `like` with other values and rows: of the same variable. */
yk_value yk__rows_like(const char *where, yk_graph *g, yk_value values, yk_value rows, yk_value like);
/* values as [k, a row's dims] and rows as [k], where they are; false after a sticky error or if the gradient is not sparse. */
bool yk__rows_flat(const char *where, yk_graph *g, yk_value grad, yk_value *values, yk_value *rows);
/* n >= 1 sparse gradients of one variable as one, on the current device; {0} if one of them is dense. */
yk_value yk__rows_join(const char *where, yk_graph *g, size_t n, const yk_value *grads);

/* All by the factor that brings gradients of the global norm `have` to `norm` (> 0); {0} after an error. */
void yk__clip_from(const char *where, yk_graph *g, yk_value have, double norm, size_t n, yk_gradient *grads);

/* The collection of scheduled rates that are 0 in the first step. */
#define YK__RATES_FROM_0 "rates from 0"

/* The slot variable, which also joins YK_OPTIMIZER_VARIABLES; of a copy: a copy of its master's slot. NULL after a sticky error. */
yk_variable *yk__optimizer_slot(const char *where, yk_graph *g, yk_variable *v, const char *name, double start);
/* The name of slot i of an optimizer's variables, "Adam_1"; NULL: it has fewer. */
const char *yk__optimizer_slot_name(const yk_optimizer *o, int i);
/* x in the dtype of v. */
yk_value yk__in_dtype_of(const char *where, yk_graph *g, yk_value x, const yk_variable *v);

#endif
