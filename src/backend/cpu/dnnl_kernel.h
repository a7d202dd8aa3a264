/*
 * dnnl_kernel.h - from a primitive description to a prepared kernel.
 *
 * The part every kernel through oneDNN shares: the engine, the team a primitive is made for and run with, and the execution
 * arguments, which are made while preparing so that a run only sets addresses and calls oneDNN once.
 */
#ifndef YK_BACKEND_CPU_DNNL_KERNEL_H
#define YK_BACKEND_CPU_DNNL_KERNEL_H

#include "layout.h"

/* Which argument of the launch (inputs, then outputs) is which of the primitive's (DNNL_ARG_*). */
typedef struct yk_bind { int arg, slot; } yk_bind;

/* The process's engine; NULL after reporting EDEVICE. Any thread. */
dnnl_engine_t yk__dnnl_engine(void);

/*
 * Descriptions depend on the team: make them between begin and end. `flops` and `bytes` are what one run costs; work too
 * small for a team gets a team of one. A deterministic product gets one as well: oneDNN cuts a sum of products by its team, so
 * that bits would depend on the device's cores; what only moves or pools values does not. Pair them on every path.
 */
typedef struct yk_dnnl_team { int before, size; } yk_dnnl_team;
yk_dnnl_team yk__dnnl_team_begin(const yk_cpu_prepare *p, double flops, double bytes);
void         yk__dnnl_team_end(yk_dnnl_team t);

/* How good an implementation must be: anything; generated code, be it around a matrix product; made for just this layout. */
typedef enum yk_impl { YK_IMPL_ANY, YK_IMPL_FAST, YK_IMPL_DIRECT } yk_impl;

/* yk__prim_desc with the refusal reported, slower implementations refused too. *out is the caller's. */
yk_code yk__dnnl_describe(const yk_prim *prim, yk_impl least, dnnl_primitive_desc_t *out) YK_CHECKED;

/* Fill in p->k (run, destroy, state, impl "dnnl:<impl>") and p->workspace from pd, which stays the caller's. Arguments that
 * the primitive does not have are left out. Call inside the team the description was made in. */
yk_code yk__dnnl_finish(yk_cpu_prepare *p, const_dnnl_primitive_desc_t pd, yk_dnnl_team team, const yk_bind *bind,
                        int nbind) YK_CHECKED;

/* After finish: before each run, argument `slot`, a matrix of `rows` rows of row_bytes, is copied into the workspace with
 * rows `pitch` bytes apart, and the primitive sees the copy. */
void yk__dnnl_stage(yk_cpu_prepare *p, int slot, int64_t rows, size_t row_bytes, size_t pitch);

/* oneDNN's name, parameters and scale of an activation (scale * act(x)); refuses what it lacks. */
yk_code yk__dnnl_act(int act, double alpha, dnnl_alg_kind_t *alg, float *a, float *b, float *scale) YK_CHECKED;

/* Window, stride and padding of a pooling from x to y; attrs may be NULL. */
void yk__dnnl_pool_geometry(const yk_pool_attrs *a, const yk_desc *x, const yk_desc *y, yk_prim *q);

/* Refuse values without elements: they are the planner's business. Also dtypes other than f32, bf16, f16 for in[0]. */
yk_code yk__dnnl_accepts(const yk_cpu_prepare *p) YK_CHECKED;

#endif
