/*
 * scopes.h - what is open while a graph is built: one stack of frames for scopes of all kinds.
 *
 * A frame holds the state from before it was opened, so leaving any scope is one
 * assignment, and a pop that does not belong to the innermost frame is noticed. After
 * the graph's first error pushes and pops do nothing: nothing is built any more.
 */
#ifndef YK_GRAPH_SCOPES_H
#define YK_GRAPH_SCOPES_H

#include "graph/graph.h"

typedef enum yk_scope_kind {
  YK__SCOPE_NAME, YK__SCOPE_DEVICE, YK__SCOPE_COLOCATE, YK__SCOPE_CONTROL, YK__SCOPE_VARIABLE, YK__SCOPE_GUARD, YK__SCOPE_PRECISION
} yk_scope_kind;

typedef struct yk_device_frame {       /* one entry of the device stack */
  bool barrier;                        /* ignore everything outside */
  yk_device_spec spec;
  yk_device_fn fn;                     /* instead of spec, if set */
  void *arg;
  yk_replica_setter *setter;           /* instead of both, if set */
} yk_device_frame;

typedef struct yk_control_frame { const uint32_t *node; uint32_t n; } yk_control_frame;   /* n = 0: barrier */

typedef struct yk_frame {
  yk_scope_kind kind;
  const char *where;
  const char *name;                    /* state before the push */
  uint32_t ndevice, ncolocate, ncontrol;
  yk_value guard;
  yk_dtype low;
  struct yk_variable_scope *variable;
  struct yk_scope_count *counts;       /* of variable scopes, to be put back; NULL = only those below `variable` are cleared */
  uint32_t ncounts;
} yk_frame;

struct yk_graph_scopes {
  yk_frame *frame;           uint32_t nframe, frame_cap;
  yk_device_frame *device;   uint32_t ndevice, device_cap;
  uint32_t *colocate;        uint32_t ncolocate, colocate_cap;    /* node ids, 0 = barrier */
  yk_control_frame *control; uint32_t ncontrol, control_cap;
  yk_value guard;                                                 /* {0}: none */
  yk_dtype low;                                                   /* YK_NONE: no mixed precision */
};

/* scopes.c: a new frame with the present state (NULL after recording the error); close the innermost, which must be of `kind`
 * (true: *was holds it, state is put back except for what belongs to variable scopes). Both do nothing once the graph has
 * failed. */
yk_frame *yk__scope_open(const char *where, yk_graph *g, yk_scope_kind kind);
bool yk__scope_close(const char *where, yk_graph *g, yk_scope_kind kind, yk_frame *was);
/* Device of a node about to be made, from the scopes and the nodes it sits with. `stored`: what a variable holds. */
yk_code yk__scope_device(yk_graph *g, const yk_op *op, const char *name, const yk_desc *stored, yk_device_spec *out) YK_CHECKED;
/* Push a frame onto the device stack of a scope that was opened. */
void yk__scope_push_device(const char *where, yk_graph *g, yk_device_frame f);
/* replicas.c: what a setter makes of the device that inner scopes gave; `stored` NULL: no variable. */
void yk__replica_device(yk_replica_setter *s, const yk_desc *stored, yk_device_spec *device);
/* The i-th node to sit with, from the innermost; 0 past the end or at a barrier. */
uint32_t yk__scope_colocate(const yk_graph *g, uint32_t i);
/* Append the control inputs of a node about to be made to *ctrl (heap). */
yk_code yk__scope_control(const yk_graph *g, uint32_t **ctrl, uint32_t *n, uint32_t *cap) YK_CHECKED;
/* What a node about to be made takes at its last port, beside its nin inputs: the guard of the scope, or {0}. */
yk_value yk__scope_guard(const yk_graph *g, const yk_op *op, const void *attrs, uint16_t nin);
void yk__scopes_free(yk_graph *g);

/* names.c */
yk_code yk__names_new(yk_graph *g) YK_CHECKED;
void    yk__names_free(yk_graph *g);
const char *yk__names_current(const yk_graph *g);                      /* name scope, "" or "a/b/" */
void    yk__names_set(yk_graph *g, const char *scope);
/* Name for the next node (a yk_named() one, or `label`), unique and full, in the arena; and note whose it is. */
yk_code yk__names_node(yk_graph *g, const char *label, const char **out) YK_CHECKED;
yk_code yk__names_bind(yk_graph *g, const char *name, uint32_t node) YK_CHECKED;
uint32_t yk__names_find(const yk_graph *g, const char *name);          /* node id, 0 if none */
const char *yk__names_take(yk_graph *g);                               /* a pending yk_named(), now forgotten; or NULL */
void    yk__names_give(yk_graph *g, const char *name);                 /* put it back */
/* Open a name scope inside an already opened frame: makes it unique and sets it. */
yk_code yk__names_enter(yk_graph *g, const char *name) YK_CHECKED;
/* Is `name` made of the characters that names may have? `nested`: the first one may be any of them. */
bool    yk__name_valid(const char *name, bool nested);

/* variable_scope.c, variables.c, collections.c */
yk_code yk__store_new(yk_graph *g) YK_CHECKED;
void    yk__store_free(yk_graph *g);
void    yk__collections_free(yk_graph *g);

/* graph.c: record the thread's present message as the graph's error. Returns {0}. */
yk_value yk__graph_fail(const char *where, yk_graph *g, yk_code code);
/* May something be built? false: the graph is NULL or has failed. */
static inline bool yk__graph_ok(const yk_graph *g) { return g && g->status == YK_OK; }
/* "; nearest names: 'a', 'b'" from n names, or "" when there are none. */
typedef const char *(*yk_name_at)(const yk_graph *g, uint32_t i);
char *yk__nearest(const yk_graph *g, const char *name, yk_name_at at, uint32_t n, char *buf, size_t bytes);

#endif
