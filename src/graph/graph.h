/*
 * graph.h - the inside of a graph. Public half: <yoke/graph.h>.
 *
 * Nodes and values are numbered from 1 in order of creation, which is a
 * topological order: an input always has a smaller number. Everything is
 * allocated from the graph's bump arena and dies with it. The outputs of a
 * node are consecutive value ids.
 */
#ifndef YK_GRAPH_GRAPH_H
#define YK_GRAPH_GRAPH_H

#include <stdatomic.h>
#include <yoke/graph.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "tensor/device_spec.h"

typedef struct yk_node {
  uint32_t id;                 /* 1.. */
  const yk_op *op;
  const void *attrs;           /* never NULL if op->attr_bytes > 0; owned by the arena */
  const char *name;            /* full, unique */
  const char *where;           /* "file.c:12" */
  yk_device_spec device;       /* requested; merged from the scopes */
  const char *device_text;     /* the same as canonical text, "" = none */
  uint32_t colocate;           /* representative node of its colocation group: smallest id; itself if alone */
  uint32_t first;              /* value id of output 0 */
  uint16_t nin, nout;
  const uint32_t *in;          /* [nin] value ids */
  uint32_t nctrl;
  const uint32_t *ctrl;        /* [nctrl] node ids this one runs after */
} yk_node;

typedef struct yk_graph_value { uint32_t node; uint16_t out; yk_desc desc; } yk_graph_value;

struct yk_variable {
  yk_graph *g;
  uint32_t index;              /* position in g->variable */
  const char *name, *where;
  yk_desc desc;
  yk_value ref, read, initial, assign;
  bool trainable;
  yk_variable *master;         /* the variable of which this is copy number `copy`, kept by another device; NULL: it is none */
  uint32_t copy;
};

struct yk_graph {
  _Atomic uint32_t refs;
  yk_bump arena;
  yk_node **node;              uint32_t nnode, node_cap;        /* node[0] unused */
  yk_graph_value *value;       uint32_t nvalue, value_cap;      /* value[0] unused; grown by copying within the arena, so that
                                                                   descriptions handed out stay where they are */
  yk_variable **variable;      uint32_t nvariable, variable_cap;
  yk_value run_counter;        /* made on first use */
  uint64_t seed, nseeds;
  bool frozen;
  bool sync_norm;              /* batch normalisation in training is synchronised without being asked to */
  uint32_t step, replica;      /* of several training steps in one graph the one being built, 0 = the only one, and of its replicas */
  uint64_t version;            /* raised by every new node */
  yk_code status;
  char message[YK__ERROR_BYTES]; /* of the sticky error; part of the graph, so that telling of no memory needs none */
  struct yk_graph_names *names;   /* names.c: name table and name scopes */
  struct yk_graph_scopes *scopes; /* scopes.c: device, colocation and control scopes */
  struct yk_variable_store *store;/* variables.c: variables by name, variable scopes */
  struct yk_collections *collections;
};

const yk_node *yk__node(const yk_graph *g, uint32_t id);              /* NULL if out of range */
const yk_node *yk__value_node(const yk_graph *g, yk_value v);
yk_graph *yk__graph_ref(yk_graph *g);
void yk__graph_freeze(yk_graph *g);

/* For op files: `return yk__build(where, g, &yk__op_relu, NULL, 1, x)`: add a node with n inputs given as arguments.
 * Returns output 0. */
yk_value yk__build(const char *where, yk_graph *g, const yk_op *op, const void *attrs, int nin, ...);
/* The graph's run counter value (the `step` of random ops), and a fresh seed: derived from the graph's seed and the number of
 * seeds drawn before if asked == 0. */
yk_value yk__run_counter(yk_graph *g);
uint64_t yk__seed(yk_graph *g, uint64_t asked);

#endif
