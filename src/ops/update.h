/*
 * update.h - what the merged update ops share: k groups of n tensors, then scalars, then perhaps a guard. Group k, entry i is
 * input k*n + i; entries of one i have one shape. A rule is a formula of one element; dense updates apply it to every element, updates
 * of rows to the rows that their last group names, with the values of one row added first.
 */
#ifndef YK_OPS_UPDATE_H
#define YK_OPS_UPDATE_H

#include "common.h"

/* One element: t[k] of the written groups, the gradient g, the scalars s. */
typedef void (*yk_update_rule)(double *const *t, double g, const double *s, const void *attrs);

/* Number of tensors a group: the attribute, 0 meaning 1. */
uint32_t yk__update_n(const void *attrs);
/* Shapes of an update with `groups` groups and `scalars` scalars. */
yk_code yk__update_infer(const yk_infer *c, uint32_t groups, uint32_t scalars) YK_CHECKED;
/* Shapes of an update of rows: `written` groups like the variables, values, rows, scalars. */
yk_code yk__update_infer_rows(const yk_infer *c, uint32_t written, uint32_t scalars) YK_CHECKED;
/* Is there a guard behind `first` other inputs, and does it forbid the update? For references. */
bool yk__update_off(const yk_ref *c, uint32_t first);
/* References: the rule for every element, with `written` groups before the gradient; for the rows that are named. */
yk_code yk__update_ref(const yk_ref *c, uint32_t written, uint32_t scalars, yk_update_rule rule) YK_CHECKED;
yk_code yk__update_ref_rows(const yk_ref *c, uint32_t written, uint32_t scalars, yk_update_rule rule) YK_CHECKED;

/* A node over groups of n values, then scalars. */
yk_value yk__update_build(const char *where, yk_graph *g, const yk_op *op, yk_update_attrs a, uint32_t groups,
                          const yk_value *const *group, uint32_t nscalars, const yk_value *scalar);
/* The storage values of n variables, in memory for the caller to yk__free(); NULL after a sticky error. */
yk_value *yk__update_refs(const char *where, yk_graph *g, size_t n, yk_variable *const *v);

extern const yk_attr yk__update_attrs[];

/* ---- declaring one ---------------------------------------------------------------------------------------------- */

#define YK__WRITTEN(name, same) { name, YK_FLOATS, YK_PORT_VARIADIC | YK_PORT_WRITE, same }
#define YK__GRADIENT            { "g", YK_FLOATS, YK_PORT_VARIADIC, 1 }
#define YK__ROWS                { "values", YK_FLOATS, YK_PORT_VARIADIC, 1 }, { "rows", YK__IDS, YK_PORT_VARIADIC, 0 }
#define YK__RATE                { "lr", YK_T(YK_F32), 0, 0 }
#define YK__UPDATE_END          YK__GUARD_PORT, { 0 }    /* of the input ports */
#define YK__COUNT(type)         YK__INT(type, n, 1, 1, 16383)

/* The op yk__op_<name>, all of whose parts but ports, attributes, functions and cases are those of every update. */
#define YK__UPDATE_OP(id, label_, doc_, type, attrs_, in_, infer_, ref_, cases_)                        \
  const yk_op yk__op_##id = {                                                                           \
    .name = #id, .label = label_, .doc = doc_, .version = 1, .attr_bytes = sizeof(type),                \
    .traits = YK_STATEFUL | YK_NO_GRAD | YK_MERGE, .attrs = attrs_, .in = in_, .out = yk__out_op,       \
    .infer = infer_, .ref = ref_, .cases = cases_,                                                      \
  }

#endif
