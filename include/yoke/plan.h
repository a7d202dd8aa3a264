/*
 * plan.h - a step, compiled: what a plan consists of, for those who inspect one.
 *
 * A plan is to a graph what a prepared statement is to a query: made once for
 * given feeds, fetches, shapes and devices, then run many times. It is
 * immutable after compilation. Programs use <yoke/session.h>; this header serves
 * tools and tests.
 */
#ifndef YK_PLAN_H
#define YK_PLAN_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum yk_opcode {
  YK_I_LAUNCH,    /* kernel[a](args) on stream; args: buffer ids of inputs then outputs, YK_NO_BUF where there is no data */
  YK_I_COPY,      /* buf args[1] -> buf args[0], same device */
  YK_I_COPY_PEER, /* the same, across devices; enqueued on the stream of the destination */
  YK_I_FEED,      /* host value a (feed number) -> buf args[0] */
  YK_I_FETCH,     /* buf args[0] -> host value a (fetch number) */
  YK_I_FILL,      /* buf args[0] = byte a */
  YK_I_RECORD,    /* event[a] on stream */
  YK_I_WAIT       /* stream waits for event[a] */
} yk_opcode;

#define YK_NO_BUF UINT32_MAX   /* stands for "no buffer" among the arguments of an instruction */

typedef struct yk_instr {      /* 16 bytes: four to a cache line */
  uint8_t  code;               /* yk_opcode */
  uint8_t  stream;             /* index: one stream a device, stream i belongs to plan->stream_dev[i] */
  uint16_t nargs;
  uint32_t args;               /* first index into plan->arg */
  uint32_t a;
  uint32_t origin;             /* index into plan->origin: for traces, errors, explain */
} yk_instr;

typedef enum yk_buf_kind {
  YK_BUF_ARENA,                /* in the plan's arena `arena` at `offset` */
  YK_BUF_VARIABLE,             /* storage of variable `index`, owned by the session */
  YK_BUF_CONSTANT,             /* uploaded when the plan is compiled; in arena `arena`, never overwritten */
  YK_BUF_COUNTER               /* the run counter, i64, written before the run starts; in arena `arena` at `offset` */
} yk_buf_kind;

typedef struct yk_buf {
  uint8_t  kind, pad;
  uint16_t arena;              /* index into plan->arena, which names the device; for variables too (dev only) */
  uint32_t index;              /* variable number, constant number */
  uint64_t offset, bytes;      /* fixed at compile time */
  yk_desc  desc;               /* with layout */
  uint32_t first, last;        /* instructions that define and last use it */
} yk_buf;

typedef struct yk_arena { uint16_t dev; uint64_t bytes, naive_bytes; } yk_arena;  /* naive: sum of all buffers */
typedef struct yk_origin { const char *name, *label, *where, *note; } yk_origin;  /* node; note: fallback or placement remark or NULL */

typedef struct yk_plan_kernel {
  yk_kernel *kernel;
  const char *impl;
  uint32_t workspace;          /* buffer id, or YK_NO_BUF */
  uint16_t nin, nwritten;      /* inputs among the arguments; how many of the first ones are overwritten in place */
  uint32_t is_reorder;         /* 1: only changes a layout */
  const yk_op *op;             /* what it computes, and its attributes; borrowed from the registry and the graph */
  const void *attrs;
  const yk_desc *desc;         /* [nargs] inputs and outputs as the kernel sees them; a buffer may show another shape of the same bytes */
} yk_plan_kernel;

/* A feed or a fetch: graph value id, its buffer; plain layout. */
typedef struct yk_plan_value { uint32_t value, buf; yk_desc desc; } yk_plan_value;

typedef struct yk_plan yk_plan;

#ifdef __cplusplus
}
#endif
#endif
