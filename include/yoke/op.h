/*
 * op.h - what one operation is.
 *
 * One operation = one file src/ops/<name>.c holding one `const yk_op` with
 * everything the core knows about it, plus one line in src/ops/ops.def.
 * Fast kernels live with their backend: src/backend/<dev>/<name>.c.
 */
#ifndef YK_OP_H
#define YK_OP_H

#include <stddef.h>
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yk_graph yk_graph;
typedef struct yk_value { uint32_t id; } yk_value;   /* an output of a node; {0} = none */

/* Traits drive the passes, so no pass ever switches on an op name. */
enum {
  YK_PURE          = 1u << 0,  /* same inputs, same outputs: may be merged, moved, dropped */
  YK_STATEFUL      = 1u << 1,  /* reads or writes something outside its outputs: never merged, kept in creation order
                                  with others of the same resource (a variable, a source) */
  YK_ELEMENTWISE   = 1u << 2,  /* one output element depends on the same element of each input: may join a fused group */
  YK_VIEW          = 1u << 3,  /* out[0] has the bytes of in[0], plain layout: costs nothing */
  YK_COLLECTIVE    = 1u << 4,  /* every rank must run it, in the same order */
  YK_NO_GRAD       = 1u << 5,  /* gradient is zero by definition (shape, argmax, ...) */
  YK_ZERO_ON_EMPTY = 1u << 6,  /* a non-empty output of empty inputs is zero (sums, filter gradients) */
  YK_MERGE         = 1u << 7,  /* attrs start with `uint32_t n`; inputs are k groups of n, then shared ones: nodes whose
                                  attrs and shared inputs agree may become one node with a larger n (updates) */
  YK_SOURCE        = 1u << 8,  /* value exists without a kernel: constant, placeholder, variable, run_counter */
  YK_NARROW        = 1u << 9,  /* gains from f16 and bf16: under yk_precision_push() f32 inputs are cast to that type */
  YK_WIDE          = 1u << 10, /* loses too much in them: there f16 and bf16 inputs are cast to f32 */
  YK_FAR           = 1u << 11  /* touches each element of each input once: may do so in another device's memory, where that can be reached */
};

enum {
  YK_PORT_OPTIONAL = 1,
  YK_PORT_VARIADIC = 2,
  YK_PORT_NODIFF   = 4,         /* of an output: a by-product for the op's own gradient, through which none flows */
  YK_PORT_HOST     = 8,        /* the kernel's function touches host objects: /cpu only */
  YK_PORT_SHAPE    = 16,       /* only the description is used, never the data: no dependency on the bytes */
  YK_PORT_WRITE    = 32,       /* a variable, read and overwritten in place */
  YK_PORT_GUARD    = 64        /* the last port, optional: a bool scalar; where it is false the node changes no variable */
};
#define YK_T(dtype) (1u << (dtype))
#define YK_FLOATS   (YK_T(YK_F32) | YK_T(YK_F64) | YK_T(YK_F16) | YK_T(YK_BF16))
#define YK_INTS_    (YK_T(YK_I32) | YK_T(YK_I64))
#define YK_NUMBERS  (YK_FLOATS | YK_INTS_ | YK_T(YK_U8))
#define YK_ANYTYPE  (YK_NUMBERS | YK_T(YK_BOOL))

typedef struct yk_port {
  const char *name;
  uint32_t    dtypes;         /* set of YK_T(): what is accepted */
  uint8_t     flags;
  uint8_t     same_as;        /* 1 + index of the input whose dtype this one shares; 0 = own */
} yk_port;

/* YK_ENUM, YK_SEED: int32 and uint64 fields; YK_POINTER: not printable, compared by address. */
typedef enum yk_attr_kind { YK_INT, YK_REAL, YK_FLAG, YK_INTS, YK_STRING, YK_ENUM, YK_SEED, YK_DIMS, YK_POINTER } yk_attr_kind;
/* INT, FLAG, ENUM: int32_t; REAL: double; INTS: int32_t[count]; DIMS: int64_t[count]; SEED: uint64_t. min = max = 0: any. */
typedef struct yk_attr {
  const char  *name;
  yk_attr_kind kind;
  uint16_t     offset;        /* of the field in the op's attribute struct */
  uint16_t     count;         /* of INTS and DIMS */
  double       dflt, min, max;
} yk_attr;

typedef struct yk_infer {     /* handed to infer(); in[i].dim may be -1 while a graph is built, never in a plan */
  const yk_desc *in;  uint16_t nin;
  yk_desc       *out; uint16_t nout;
  const void    *attrs;
} yk_infer;

typedef struct yk_grad {      /* handed to grad() and lower() */
  yk_graph       *g;
  const char     *where;      /* "file.c:12": the user's line of the forward op; pass it on to builders */
  const yk_value *in, *out;   /* of the forward node */
  const yk_value *dout;       /* one per output; {0} = zero: nothing flows back here. grad() is only called if some are not {0} */
  yk_value       *din;        /* one per input; leave {0} for "no gradient" */
  uint16_t        nin, nout;
  const void     *attrs;
} yk_grad;

typedef struct yk_ref {       /* handed to ref(): dense, row-major, double only; in[i] NULL for shape-only ports;
                                 variables (YK_PORT_WRITE) are updated in place through `in`, cast to double * */
  const double *const *in;  double *const *out;
  const yk_desc *din, *dout;
  uint16_t nin, nout;
  const void *attrs;
  const yk_host *host;        /* random_block */
} yk_ref;

typedef struct yk_case {      /* one shape and attribute set the op sweep must run */
  const char *shapes;         /* inputs: "f32[4,7,5]" or "T[4,7]; i32[4]"; T = each dtype the port accepts */
  const void *attrs;          /* NULL = defaults (all zero) */
  double lo, hi;              /* input range, chosen away from kinks and poles; both 0 = [-1, 1] */
  double rtol;                /* 0 = the dtype's default */
} yk_case;

typedef struct yk_op {
  const char    *name, *label, *doc;  /* "matmul", "MatMul" (the field's name, shown in logs), one sentence */
  uint16_t       version;     /* raise when stored graphs would mean something else */
  uint16_t       attr_bytes;
  uint32_t       traits;
  const yk_port *in, *out;    /* each ends with {0} */
  const yk_attr *attrs;       /* ends with {0}; NULL if none */
  yk_code (*infer)(const yk_infer *c);    /* shapes and dtypes; the only place that rejects */
  yk_code (*grad)(yk_grad *c);            /* builds nodes; NULL only with YK_NO_GRAD */
  yk_code (*lower)(yk_grad *c);           /* optional: the same op out of simpler ones; din receives the outputs */
  yk_code (*ref)(const yk_ref *c);        /* plain loops in double: the truth for tests */
  const yk_case *cases;                   /* ends with {0}; the sweep fails if empty */
  double (*flops)(const yk_infer *c);     /* optional: what a run costs, a multiplication with its addition being 2; NULL: one for each
                                             element of the largest tensor. out is only read; an absent input is all zero */
} yk_op;

/* The registry is a constant table, built from ops.def; no constructors, no locks. Any thread.
 * yk_op_find: NULL if unknown. yk_op_all: *count entries, in the order of ops.def. */
const yk_op *yk_op_find(const char *name);
const yk_op *const *yk_op_all(size_t *count);

#ifdef __cplusplus
}
#endif
#endif
