/*
 * plan.h - the inside of a compiled step. Its parts are in <yoke/plan.h>.
 *
 * Made by yk__plan_compile() from a graph, the feeds' shapes and the open
 * devices; run by src/run. Immutable and reference counted; kernels belong to it,
 * so one run at a time may use them (run/executor.c holds the plan's lock).
 */
#ifndef YK_PLAN_PLAN_H
#define YK_PLAN_PLAN_H

#include <yoke/plan.h>
#include "device/device.h"
#include "graph/graph.h"

struct yk_plan {
  uint64_t  fingerprint;       /* graph, shapes, devices, options */
  uint32_t  ninstr, nbuf, narena, nkernel, nevent, nstream, nfeed, nfetch, norigin, nconstant;
  yk_instr *instr;
  uint32_t *arg;               uint32_t narg;
  yk_buf   *buf;
  yk_arena *arena;             /* at most one a device */
  yk_plan_kernel *kernel;
  uint16_t *stream_dev;        /* [nstream] device index */
  uint16_t *event_stream;      /* [nevent] the stream that records it */
  yk_plan_value *feed, *fetch; /* in the order asked for */
  yk_origin *origin;
  const yk_tensor **constant;  /* [nconstant] borrowed from the graph or from `owned` */
  yk_tensor **owned;           uint32_t nowned;   /* constants made by folding */
  uint8_t   uses_counter;      /* some kernel reads the run counter */
  uint32_t  nreads, nwrites;   /* variables used: indexes, for locking and layout checks */
  uint32_t *reads, *writes;
  yk_devices *devices;         /* borrowed from the session, which outlives its plans */
  yk_graph *graph;             /* a reference */
  yk_bump   mem;
};

/* Where a variable lives and how it is laid out: session state that plans agree on. Entry i is variable i of the graph. */
typedef struct yk_var_slot {
  uint16_t dev;                /* device index; 0xFFFF = not placed yet */
  uint8_t  layout_settled;     /* 1: `desc.layout` is final; 0: a plan that wants another layout may change it (once) */
  uint8_t  initialized;
  yk_desc  desc;
  uint64_t bytes;
  yk_mem   mem;                /* base NULL until allocated */
} yk_var_slot;

typedef struct yk_plan_request {
  yk_graph *graph;
  yk_devices *devices;
  yk_var_slot *var;            /* [graph->nvariable]; compile sets dev, and desc.layout where not settled */
  uint32_t nfeed;  const yk_value *feed;  const yk_desc *feed_desc;   /* concrete shapes */
  uint32_t nfetch; const yk_value *fetch;
  uint32_t ntarget; const yk_value *target;
  uint8_t soft_placement, strict, deterministic;
} yk_plan_request;

/* Compile. Errors name the node and the user's line. A layout it wants for a settled variable becomes a reorder. */
yk_code yk__plan_compile(const yk_plan_request *r, yk_plan **out) YK_CHECKED;
void    yk__plan_free(yk_plan *p);
yk_code yk__plan_check(const yk_plan *p) YK_CHECKED;              /* every invariant; run after compile in debug builds and tests */
yk_code yk__plan_explain(const yk_plan *p, char **out) YK_CHECKED;
typedef struct yk_place_request {
  const yk_graph *graph;
  yk_devices *devices;
  const yk_var_slot *var;      /* [nvar] a variable that has memory stays where it is */
  uint32_t nvar;               /* at most graph->nvariable */
  int soft;
  uint32_t first;              /* node from which on moves are told */
} yk_place_request;
/* Device of every node of the graph, [nnode] device indexes; does not prune. moves, unless NULL: a line for all nodes that
 * soft placement moved alike. Errors name op, device asked for, devices there are, reason and a way out. */
yk_code yk__place_graph(const yk_place_request *r, uint16_t *dev_of_node, yk_str *moves) YK_CHECKED;

#endif
