/*
 * common.h - what the files of single operations share: ports, attributes, shape rules, reference loops.
 *
 * An operation's file should read like its definition, so everything that several
 * of them need is here once: port tables by number and kind of inputs, entries of
 * attribute tables, infer functions of the usual kinds, and plain loops in double
 * that ref functions call with a formula. Nothing here is fast; it is the truth
 * that fast kernels are compared with.
 */
#ifndef YK_OPS_COMMON_H
#define YK_OPS_COMMON_H

#include <math.h>
#include <stddef.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph.h"
#include "op/registry.h"
#include "tensor/desc.h"

/* ---- ports: each table ends with {0} ------------------------------------------------------------------ */

#define YK__ARITH (YK_FLOATS | YK_INTS_)             /* what + and * are defined on: bytes would wrap unseen */
#define YK__IDS   YK_INTS_                           /* labels, indices */

extern const yk_port yk__float1[], yk__float2[];     /* x;  a, b of one float type */
extern const yk_port yk__arith1[], yk__arith2[];     /* x;  a, b of one of YK__ARITH */
extern const yk_port yk__number1[], yk__number2[];   /* also u8 */
extern const yk_port yk__any1[], yk__any2[];         /* also bool */
extern const yk_port yk__bool1[], yk__bool2[];
extern const yk_port yk__grad2[];                    /* dy, and x or y: floats of one type */
extern const yk_port yk__grad_like[];                /* dy, and "like": floats, the second one shape-only */
extern const yk_port yk__any_like[];                 /* x, and "like" of any type, shape-only */
extern const yk_port yk__like1[];                    /* like: shape-only */
extern const yk_port yk__out1[];                     /* y, any type */
extern const yk_port yk__out_op[];                   /* no data: the handle of an operation */

#define YK__GUARD_PORT { "guard", YK_T(YK_BOOL), YK_PORT_OPTIONAL | YK_PORT_GUARD, 0 }   /* the last port of what writes variables */

/* ---- attribute tables: YK__INT(yk_axis_attrs, axis, 0, -8, 7); end a table with {0} ----------------------- */

#define YK__ATTR(type, field, kind, n, dflt, lo, hi) { #field, kind, (uint16_t)offsetof(type, field), n, dflt, lo, hi }
#define YK__INT(type, field, dflt, lo, hi)     YK__ATTR(type, field, YK_INT, 1, dflt, lo, hi)
#define YK__FLAG(type, field)                  YK__ATTR(type, field, YK_FLAG, 1, 0, 0, 1)
#define YK__ENUM(type, field, dflt, lo, hi)    YK__ATTR(type, field, YK_ENUM, 1, dflt, lo, hi)
#define YK__REAL(type, field, dflt, lo, hi)    YK__ATTR(type, field, YK_REAL, 1, dflt, lo, hi)
#define YK__SEED(type, field)                  YK__ATTR(type, field, YK_SEED, 1, 0, 0, 0)
#define YK__STRING(type, field)                YK__ATTR(type, field, YK_STRING, 1, 0, 0, 0)
#define YK__POINTER(type, field)               YK__ATTR(type, field, YK_POINTER, 1, 0, 0, 0)
#define YK__INTS(type, field, n, dflt, lo, hi) YK__ATTR(type, field, YK_INTS, n, dflt, lo, hi)
#define YK__DIMS(type, field, n, lo)           YK__ATTR(type, field, YK_DIMS, n, 0, lo, YK__MAX_DIM)
#define YK__DTYPE(type, field)                 YK__ENUM(type, field, 0, 0, YK_NDTYPES - 1)
#define YK__MAX_DIM 4503599627370496.0               /* 2^52: exact as a double */
#define YK__HUGE    1e300

/* A copy of the attributes, the defaults if there are none: yk_alpha_attrs a = YK__ATTRS(yk_alpha_attrs, c). */
#define YK__ATTRS(type, c) ((c)->attrs ? *(const type *)(c)->attrs : (type){ 0 })

/* ---- building inside grad() and lower(): YK__OP2(c, mul, a, b) is a node made for c's forward op ------------- */

#define YK__OP1(c, op, a)             yk__build((c)->where, (c)->g, &yk__op_##op, NULL, 1, a)
#define YK__OP2(c, op, a, b)          yk__build((c)->where, (c)->g, &yk__op_##op, NULL, 2, a, b)
#define YK__OP3(c, op, a, b, d)       yk__build((c)->where, (c)->g, &yk__op_##op, NULL, 3, a, b, d)
#define YK__OPA(c, op, attrs, n, ...) yk__build((c)->where, (c)->g, &yk__op_##op, attrs, n, __VA_ARGS__)

/* A scalar constant of the dtype of `like`: broadcasts in any binary op. */
yk_value yk__scalar_like(const char *where, yk_graph *g, yk_value like, double x);
#define YK__NUM(c, like, x) yk__scalar_like((c)->where, (c)->g, like, x)
/* x, spread to the shape of `like` unless it is known to have it already: for gradient ops that do not broadcast. */
yk_value yk__spread(yk_grad *c, yk_value x, yk_value like);
/* A node from an array of inputs. nout 0 = as many as the op has ports. */
yk_value yk__build_n(const char *where, yk_graph *g, const yk_op *op, const void *attrs, size_t nin, const yk_value *in,
                     size_t nout);

/* What a builder of several outputs ends with: {0} for each of them once the graph has failed. Returns out[0]. */
yk_value yk__outputs(const yk_graph *g, size_t n, yk_value *out);

/* ---- activations by number (fused ops): see activation.c -------------------------------------------------------- */

/* act(x) as a node; x itself for YK_ACT_NONE. */
yk_value yk__act_build(const char *where, yk_graph *g, int act, double alpha, yk_value x);
/* dy times the derivative; x is the input of the activation, y its output. Some need one, some the other. */
yk_value yk__act_grad_build(const char *where, yk_graph *g, int act, double alpha, yk_value dy, yk_value x, yk_value y);
double   yk__act_ref(int act, double alpha, double x);

/* ---- shape rules; messages leave the name of the op to yk__op_infer() ------------------------------------ */

yk_code yk__infer_same(const yk_infer *c) YK_CHECKED;        /* out = in 0 */
yk_code yk__infer_same_all(const yk_infer *c) YK_CHECKED;    /* all inputs and out have one shape; dtype of in 0 */
yk_code yk__infer_broadcast(const yk_infer *c) YK_CHECKED;   /* NumPy broadcasting of all inputs; dtype of the last one */
yk_code yk__infer_compare(const yk_infer *c) YK_CHECKED;     /* the same, but bool */
yk_code yk__infer_like(const yk_infer *c) YK_CHECKED;        /* out = dtype of in 0, shape of the last input */
yk_code yk__infer_op(const yk_infer *c) YK_CHECKED;          /* outputs carry no data */

/* The same value with dtype `t` and plain layout. */
yk_desc yk__as(const yk_desc *d, int t);
/* Both known and different. */
int     yk__dims_clash(int64_t a, int64_t b);
/* *axis, counted from the end if negative, must name one of `rank` axes. */
yk_code yk__axis(int32_t axis, int rank, int *out) YK_CHECKED;
/* Set of axes as bits; naxes 0 = all. Out of range or twice is EINVAL. */
yk_code yk__axes(uint32_t naxes, const int32_t *axis, int rank, uint32_t *bits) YK_CHECKED;
/* in[i] must have this rank. */
yk_code yk__want_rank(const yk_infer *c, uint16_t i, int rank) YK_CHECKED;
/* in[i] must be a scalar: rank 0. */
yk_code yk__want_scalar(const yk_infer *c, const char *port, uint16_t i) YK_CHECKED;

/* ---- reference loops --------------------------------------------------------------------------------------------------- */

/* Element number i of a dense tensor as index[rank], and back. */
void    yk__unravel(const yk_desc *d, int64_t i, int64_t *index);
int64_t yk__ravel(const yk_desc *d, const int64_t *index);
/* Element of `small` that broadcasting pairs with `index` of `big` (rank of big >= rank of small). */
int64_t yk__ravel_broadcast(const yk_desc *small, const yk_desc *big, const int64_t *index);
/* Product of dims [from, to). */
int64_t yk__span(const yk_desc *d, int from, int to);

/* out[0] = f(inputs paired by broadcasting), element by element; v[k] is the element of input k (0 for shape-only ones);
 * attrs is never NULL in f. */
yk_code yk__ref_map(const yk_ref *c, double (*f)(const double *v, const void *attrs)) YK_CHECKED;
yk_code yk__ref_unary(const yk_ref *c, double (*f)(double x)) YK_CHECKED;
yk_code yk__ref_binary(const yk_ref *c, double (*f)(double a, double b)) YK_CHECKED;
yk_code yk__ref_copy(const yk_ref *c) YK_CHECKED;            /* out[0] has the elements of in[0] in the same order */
void    yk__ref_zero(const yk_ref *c, uint16_t out);

/* ---- cases: shapes every element-wise op must meet ------------------------------------------------------- */

#define YK__CASES_1(attrs, lo, hi)                                                              \
  { "T[]", attrs, lo, hi, 0 }, { "T[7]", attrs, lo, hi, 0 }, { "T[33]", attrs, lo, hi, 0 },     \
  { "T[4,7,5]", attrs, lo, hi, 0 }, { "T[3,0]", attrs, lo, hi, 0 }
#define YK__CASES_SAME_2(attrs, lo, hi)                                                         \
  { "T[]; T[]", attrs, lo, hi, 0 }, { "T[7]; T[7]", attrs, lo, hi, 0 },                         \
  { "T[33]; T[33]", attrs, lo, hi, 0 }, { "T[4,7,5]; T[4,7,5]", attrs, lo, hi, 0 },             \
  { "T[3,0]; T[3,0]", attrs, lo, hi, 0 }
#define YK__CASES_BROADCAST(attrs, lo, hi)                                                      \
  YK__CASES_SAME_2(attrs, lo, hi),                                                              \
  { "T[4,7]; T[]", attrs, lo, hi, 0 }, { "T[]; T[33]", attrs, lo, hi, 0 },                      \
  { "T[4,7]; T[7]", attrs, lo, hi, 0 }, { "T[7,1]; T[1,33]", attrs, lo, hi, 0 },                \
  { "T[5]; T[2,3,5]", attrs, lo, hi, 0 }, { "T[2,1,3,1]; T[4,1,7]", attrs, lo, hi, 0 },         \
  { "T[1,3]; T[0,3]", attrs, lo, hi, 0 }

#endif
