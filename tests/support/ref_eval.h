/*
 * ref_eval.h - compute values of a graph with the references of its ops alone: double, one node after the other.
 *
 * No plan, no device, no rounding to the dtype: what a graph means, for tests to compare with. Shapes are inferred
 * again from the fed ones, so unknown dims are fine. Nodes run in order of creation, each at most once a run, only
 * those that the fetched values need (through data or control inputs); variables keep their contents between runs.
 */
#ifndef YK_TEST_REF_EVAL_H
#define YK_TEST_REF_EVAL_H

#include <yoke/graph.h>

typedef struct ref_eval ref_eval;

/* An evaluator of g, which must outlive it and may grow. NULL when memory runs out. */
ref_eval *ref_eval_new(const yk_graph *g);
void      ref_eval_free(ref_eval *e);

/* The value v (a placeholder, or any other) from now on: copied. shape NULL = as in the graph, which must then be known.
 * A variable is set by its ref, or by its read (yk_read). */
yk_code ref_eval_feed(ref_eval *e, yk_value v, const yk_shape *shape, const double *data) YK_CHECKED;
/* The run counter; starts with 0 and is raised by every run. */
void    ref_eval_counter(ref_eval *e, int64_t run);

/* Compute n values. EINVAL names what was not fed; failures of a reference name its node. */
yk_code ref_eval_run(ref_eval *e, size_t n, const yk_value *fetch) YK_CHECKED;

/* Elements of a value computed in the last run, NULL if it was not; its description. Borrowed until the next run. */
const double  *ref_eval_data(const ref_eval *e, yk_value v);
const yk_desc *ref_eval_desc(const ref_eval *e, yk_value v);
/* The contents of a variable, NULL if it has none yet. */
const double  *ref_eval_variable(const ref_eval *e, const yk_variable *v);

#endif
