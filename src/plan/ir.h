/*
 * ir.h - the mutable form of a step while it is compiled.
 *
 * Import copies the needed part of a graph into it, passes rewrite it, encode
 * turns it into a plan. Nodes and values are numbered from 1; a dead node keeps
 * its number. Memory comes from the plan's bump arena and dies with the plan.
 */
#ifndef YK_PLAN_IR_H
#define YK_PLAN_IR_H

#include "plan/plan.h"

typedef enum yk_ir_kind {
  YK_IR_DEAD,
  YK_IR_OP,          /* runs a kernel, or is a view */
  YK_IR_FEED,        /* `index` = feed number */
  YK_IR_CONSTANT,    /* `index` = constant number */
  YK_IR_VARIABLE,    /* `index` = variable number */
  YK_IR_COUNTER,     /* the run counter */
  YK_IR_COPY         /* in[0] of another device, copied to `dev` */
} yk_ir_kind;

/* NOTHING: a view, a group, or empty; ZERO: outputs are filled with 0. */
typedef enum yk_ir_action { YK_IR_RUN, YK_IR_NOTHING, YK_IR_ZERO } yk_ir_action;

enum { YK__NO_DEV = 0xFFFF };

typedef struct yk_ir_node {
  uint8_t kind, action;
  uint16_t dev;
  uint16_t nin, nout;
  const yk_op *op;             /* of sources too; NULL for copies */
  const void *attrs;
  uint32_t *in;                /* [nin] value ids; 0 = absent optional input */
  const uint8_t *port;         /* [nin] yk_port flags of each input, all 0 for sources and copies: passes ask often */
  uint32_t out;                /* value id of output 0 */
  uint32_t nctrl, ctrl_cap;
  uint32_t *ctrl;              /* node ids this one runs after */
  uint32_t index;
  uint32_t origin;             /* graph node id */
  const char *note;            /* why it is not what was asked for, or NULL */
  yk_kernel *kernel;
  yk_kernel_info info;
  uint32_t workspace;          /* buffer, or YK_NO_BUF */
} yk_ir_node;

typedef struct yk_ir_value {
  uint32_t node;
  uint16_t out;
  yk_desc desc;                /* concrete; with layout once negotiated */
  uint32_t root;               /* value whose bytes it shares; itself if none */
  uint32_t family;             /* 1 + number of the variable whose layout it has; 0 = its own */
  uint32_t buf;                /* of a root, after memory planning */
  uint8_t used;                /* a kernel reads or writes its bytes */
  uint8_t fetched;
} yk_ir_value;

typedef struct yk_ir {
  const yk_plan_request *req;
  yk_plan *plan;
  yk_bump *mem;
  yk_ir_node *node;            uint32_t nnode, node_cap;        /* [0] unused */
  yk_ir_value *value;          uint32_t nvalue, value_cap;      /* [0] unused */
  uint32_t *of_graph;          /* [graph->nvalue] IR value of a graph value, 0 = not imported */
  uint32_t *node_of_graph;     /* [graph->nnode] */
  uint16_t *dev_of_graph;      /* [graph->nnode] device index */
  const yk_tensor **constant;  uint32_t nconstant, constant_cap;
  yk_tensor **owned;           uint32_t nowned, owned_cap;      /* constants made by folding */
  uint32_t *fetch;             /* [req->nfetch] value ids */
  uint32_t *order;             uint32_t norder, order_cap;      /* node ids, after the order pass */
  uint16_t *var_layout;        /* [nvariable] layout each variable has in this plan */
} yk_ir;

/* 0 on ENOMEM (message set). Inputs are copied. `nout` values are made, their descs zero. */
uint32_t yk__ir_node(yk_ir *ir, yk_ir_kind kind, const yk_op *op, const void *attrs, uint16_t nin, const uint32_t *in,
                     uint16_t nout, uint32_t origin, uint16_t dev);
int  yk__ir_ctrl(yk_ir *ir, uint32_t node, uint32_t after);           /* node runs after `after`; 0 on ENOMEM */
uint32_t yk__ir_constant(yk_ir *ir, const yk_tensor *t, uint32_t origin, uint16_t dev);
/* Every use of value `from` (inputs, fetches) becomes `to`. */
void yk__ir_replace(yk_ir *ir, uint32_t from, uint32_t to);
void yk__ir_kill(yk_ir *ir, uint32_t node);
/* `node` dies and `heir` stands for it: whoever waited for it, or had it as a target, now means the heir. */
void yk__ir_succeed(yk_ir *ir, uint32_t node, uint32_t heir);
/* Number of data uses (inputs and fetches; shape-only inputs not counted) of each value: [nvalue], from the heap (yk__free). */
uint32_t *yk__ir_uses(const yk_ir *ir);
/* Input i's bytes are needed; it is overwritten in place. */
static inline int yk__ir_reads(const yk_ir_node *n, uint16_t i) { return n->in[i] != 0 && !(n->port[i] & YK_PORT_SHAPE); }
static inline int yk__ir_writes(const yk_ir_node *n, uint16_t i) { return (n->port[i] & YK_PORT_WRITE) != 0; }
/* The k-th of a node's nin + nctrl predecessors; 0 where an input's bytes are not needed. */
static inline uint32_t yk__ir_pred(const yk_ir *ir, const yk_ir_node *n, uint32_t k) {
  if (k >= n->nin) return n->ctrl[k - n->nin];
  return yk__ir_reads(n, (uint16_t)k) ? ir->value[n->in[k]].node : 0;
}
/* Edges the other way round: the users of a node, one entry for each input or control edge. Zeros to start with. */
typedef struct yk_ir_edge { uint32_t to, next; } yk_ir_edge;
typedef struct yk_ir_edges {
  uint32_t *first;             /* [nnode] index into edge, 0 = none */
  yk_ir_edge *edge;            uint32_t n, cap;                 /* [0] unused */
} yk_ir_edges;
int  yk__ir_edges(const yk_ir *ir, yk_ir_edges *e);                   /* of all live nodes; 0 on ENOMEM; yk__ir_edges_free either way */
int  yk__ir_edge(yk_ir_edges *e, uint32_t from, uint32_t to);         /* one more */
void yk__ir_edges_free(yk_ir_edges *e);
/* The variable node whose storage value `v` shows, through reads, views and in-place writers; 0 if none. */
uint32_t yk__ir_variable_behind(const yk_ir *ir, uint32_t v);
/* 1 if `to` can be reached from `from` along data and control edges (from != to). *failed = 1: no memory to find out. */
int  yk__ir_reaches(const yk_ir *ir, uint32_t from, uint32_t to, int *failed);
/* Live nodes in topological order of data and control edges, program order among the free ones. Heap array (yk__free).
 * EINTERNAL on a cycle. */
yk_code yk__ir_topo(const yk_ir *ir, uint32_t **order, uint32_t *n) YK_CHECKED;
/* Set ir->order: program order, but no stream waits for a far result while it has other work. */
yk_code yk__ir_schedule(yk_ir *ir) YK_CHECKED;
/* "name (Label), file.c:12" of the origin, for messages; valid until the next call on this thread's buffer `buf`. */
const char *yk__ir_where(const yk_ir *ir, uint32_t node, char buf[256]);
yk_code yk__ir_verify(const yk_ir *ir, const char *pass) YK_CHECKED;  /* EINTERNAL naming pass and node */

/* The passes, in this order; each leaves what its file says. */
yk_code yk__pass_import(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_place(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_collect(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_simplify(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_fuse(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_allreduce(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_merge(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_partition(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_order(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_layout(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_memory(yk_ir *ir) YK_CHECKED;
yk_code yk__pass_encode(yk_ir *ir) YK_CHECKED;

#endif
