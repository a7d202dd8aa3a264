/*
 * graph.h - describe a computation: values, names, devices, variables, scopes.
 *
 * Builders return a yk_value and can be nested as expressions. The first mistake
 * is kept in the graph, with file and line of the call, and turns later calls
 * into no-ops returning {0}; yk_graph_status() or making a session reports it.
 *
 * Each builder `yk_x(g, ...)` is a macro for the function `yk_x_at(where, g, ...)`,
 * where `where` is "file.c:12" with static lifetime, so that every error and every
 * node can name the user's line.
 *
 * Threads: a graph is built by one thread at a time. Strings passed in are copied.
 */
#ifndef YK_GRAPH_H
#define YK_GRAPH_H

#include <stdbool.h>
#include "op.h"
#include "op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* YK_HERE: "file.c:12", the place of the call. */
#define YK__STR2(x) #x
#define YK__STR(x)  YK__STR2(x)
#define YK_HERE     __FILE__ ":" YK__STR(__LINE__)

/* ---- graph ------------------------------------------------------------------------------------------ */

/* *out: the caller's; yk_graph_free() drops it (a session holds the graph too). Errors: ENOMEM. */
yk_code yk_graph_new(yk_graph **out) YK_CHECKED;
void    yk_graph_free(yk_graph *g);

/* The sticky error: YK_OK, or the first failure with its message set on the calling thread again. */
yk_code yk_graph_status(const yk_graph *g);
/* Record a failure found by code that builds on graphs (models, layers); the first one is kept. Returns {0}. */
yk_value yk_graph_fail_at(const char *where, yk_graph *g, yk_code code, const char *fmt, ...) YK_PRINTF(4, 5);

/* Seed from which every random op without its own seed derives one (with its own position in the graph). Default 87654321. */
void yk_graph_set_seed(yk_graph *g, uint64_t seed);

/* A session freezes the graph on its first run: adding ops afterwards is an error naming them. Unfreeze allows it again. */
void yk_graph_unfreeze(yk_graph *g);
bool yk_graph_frozen(const yk_graph *g);

/* Every invariant of the graph; EINTERNAL naming the first that fails. */
yk_code yk_graph_verify(const yk_graph *g) YK_CHECKED;
/* One line a node: name, op, attributes, inputs, shapes, device. *out is the caller's: yk_free(). */
yk_code yk_graph_dump(const yk_graph *g, char **out) YK_CHECKED;
/* Frees memory that a function above handed to the caller; NULL is fine. */
void yk_free(void *p);

/* ---- values ----------------------------------------------------------------------------------------- */

/* Borrowed, valid while the graph lives. NULL (or {0}) if v is not a value of g. */
const yk_desc *yk_value_desc(const yk_graph *g, yk_value v);   /* dims may be -1; dtype YK_NONE for an operation */
const char    *yk_value_name(const yk_graph *g, yk_value v);   /* of its node: "tower_0/conv1/Conv2D" */
const yk_op   *yk_value_op(const yk_graph *g, yk_value v);
const char    *yk_value_device(const yk_graph *g, yk_value v); /* requested: canonical spec, "" = none */
/* Output k of the node that v belongs to. */
yk_value       yk_output(const yk_graph *g, yk_value v, uint16_t k);
/* Value by node name, or "name:k". {0} and ENOTFOUND in the thread's message if there is none (not sticky). */
yk_value       yk_find(const yk_graph *g, const char *name);

/* Give the next node this name instead of its op's label (made unique in its scope); then forgotten. Returns g, so it nests:
 * yk_matmul(yk_named(g, "logits"), a, b, NULL). a and b should be values made before: C does not say in which order arguments
 * are worked out, so a builder called among them might take the name. */
yk_graph *yk_named(yk_graph *g, const char *name);

/* Any op of the registry. attrs NULL = defaults; `nout` 0 = as many as the op has ports. Returns output 0. */
yk_value yk_add_node_at(const char *where, yk_graph *g, const yk_op *op, const void *attrs,
                        const yk_value *in, uint16_t nin, uint16_t nout);
#define yk_add_node(...) yk_add_node_at(YK_HERE, __VA_ARGS__)

/* ---- scopes ------------------------------------------------------------------------------------------- *
 * Each push has its pop; the block macros do both:  YK_DEVICE(g, "/gpu:1") { ... }.  Do not leave a block by
 * return, break or goto. A pop that does not match is a sticky error. */

/* Name scope: semantics of TensorFlow (made unique when opened again; "a/" re-enters exactly; NULL or "" = root). */
void yk_name_scope_push_at(const char *where, yk_graph *g, const char *name);
void yk_name_scope_pop_at(const char *where, yk_graph *g);
#define yk_name_scope_push(...) yk_name_scope_push_at(YK_HERE, __VA_ARGS__)
#define yk_name_scope_pop(g)    yk_name_scope_pop_at(YK_HERE, g)
const char *yk_name_scope(const yk_graph *g);             /* current, with trailing '/' unless root ("") */

/* Device scope: "/cpu:0", "/gpu:1", partial and full specs; inner wins field by field; NULL = forget outer ones; "" = no
 * effect. */
void yk_device_push_at(const char *where, yk_graph *g, const char *spec);
/* A function decides for each node made inside: returns a spec (borrowed until the next call) or NULL for "no opinion". */
typedef const char *(*yk_device_fn)(const yk_op *op, const char *node_name, const char *device_so_far, void *arg);
void yk_device_push_fn_at(const char *where, yk_graph *g, yk_device_fn fn, void *arg);
void yk_device_pop_at(const char *where, yk_graph *g);
#define yk_device_push(...)    yk_device_push_at(YK_HERE, __VA_ARGS__)
#define yk_device_push_fn(...) yk_device_push_fn_at(YK_HERE, __VA_ARGS__)
#define yk_device_pop(g)       yk_device_pop_at(YK_HERE, g)

/*
 * Spreads variables over several devices, as parameter servers do; everything else goes to the worker. Lives in its graph; used in
 * as many scopes as wanted, and counts on from one to the next. Where scopes opened inside say something, they win field by field;
 * a variable that they put into another job is counted nowhere. NULL after a sticky error: EINVAL (a device string, too many).
 */
typedef struct yk_replica_options {
  uint32_t ps_tasks;               /* variables go to tasks 0 .. ps_tasks-1 of ps_device; 0 and no devices: no effect */
  const char *ps_device;           /* NULL = "/job:ps" */
  const char *worker_device;       /* NULL = "/job:worker"; "" = no opinion */
  size_t ndevices;                 /* instead of tasks: variables go to these devices */
  const char *const *devices;      /* [ndevices] "/gpu:0", "/gpu:1" */
  bool by_size;                    /* each to the one with the fewest bytes so far; else in turn, whatever their sizes */
  bool no_merge;                   /* a node for which an inner scope said anything is left as it is */
} yk_replica_options;
typedef struct yk_replica_setter yk_replica_setter;
yk_replica_setter *yk_replica_setter_new_at(const char *where, yk_graph *g, const yk_replica_options *options);
#define yk_replica_setter_new(...) yk_replica_setter_new_at(YK_HERE, __VA_ARGS__)
/* A device scope of it; closed by yk_device_pop(). */
void yk_replica_push_at(const char *where, yk_graph *g, yk_replica_setter *setter);
#define yk_replica_push(...)   yk_replica_push_at(YK_HERE, __VA_ARGS__)
/* Bytes of variables that its i-th device has been given so far; 0 past the last. */
uint64_t yk_replica_bytes(const yk_replica_setter *setter, size_t i);

/* Nodes made inside sit where `with` sits; {0} forgets outer colocations. */
void yk_colocate_push_at(const char *where, yk_graph *g, yk_value with);
void yk_colocate_pop_at(const char *where, yk_graph *g);
#define yk_colocate_push(...) yk_colocate_push_at(YK_HERE, __VA_ARGS__)
#define yk_colocate_pop(g)    yk_colocate_pop_at(YK_HERE, g)

/* Nodes made inside run after `ops`; n = 0 forgets outer control dependencies. */
void yk_control_push_at(const char *where, yk_graph *g, size_t n, const yk_value *ops);
void yk_control_pop_at(const char *where, yk_graph *g);
#define yk_control_push(...) yk_control_push_at(YK_HERE, __VA_ARGS__)
#define yk_control_pop(g)    yk_control_pop_at(YK_HERE, g)

/*
 * Nodes made inside that write variables (assignments, optimizers' updates, moving averages) change nothing in a run where `ok`, a
 * bool scalar, is false; their results are then the old values. The inner scope counts alone; {0} forgets outer guards, and so do
 * the initial values of variables made inside. Sticky errors: EINVAL (no bool scalar).
 */
void yk_guard_push_at(const char *where, yk_graph *g, yk_value ok);
void yk_guard_pop_at(const char *where, yk_graph *g);
yk_value yk_guard(const yk_graph *g);                     /* the one in force; {0}: none */
#define yk_guard_push(...) yk_guard_push_at(YK_HERE, __VA_ARGS__)
#define yk_guard_pop(g)    yk_guard_pop_at(YK_HERE, g)

/*
 * Mixed precision: products and convolutions made inside compute in `low` (YK_BF16 or YK_F16; YK_NONE ends an outer scope): their f32
 * inputs are cast. What lies between them follows: of two inputs that must be of one type the f32 one is cast too. Softmax, losses, sums,
 * means, exp, log and pow are in f32, and so are statistics of batch normalisation, variables, and gradients of variables.
 */
void yk_precision_push_at(const char *where, yk_graph *g, yk_dtype low);
void yk_precision_pop_at(const char *where, yk_graph *g);
#define yk_precision_push(...) yk_precision_push_at(YK_HERE, __VA_ARGS__)
#define yk_precision_pop(g)    yk_precision_pop_at(YK_HERE, g)

/* Runs its body once; each block counts with a variable of its own, so that nested ones do not shadow each other. */
#define YK__BLOCK(push, pop)          YK__BLOCK2(push, pop, __COUNTER__)
#define YK__BLOCK2(push, pop, n)      YK__BLOCK3(push, pop, n)
#define YK__BLOCK3(push, pop, n)      for (int yk__once_##n = ((push), 1); yk__once_##n; yk__once_##n = ((pop), 0))
#define YK_NAME_SCOPE(g, name)  YK__BLOCK(yk_name_scope_push(g, name), yk_name_scope_pop(g))
#define YK_DEVICE(g, spec)      YK__BLOCK(yk_device_push(g, spec), yk_device_pop(g))
#define YK_REPLICA(g, setter)   YK__BLOCK(yk_replica_push(g, setter), yk_device_pop(g))
#define YK_COLOCATE(g, v)       YK__BLOCK(yk_colocate_push(g, v), yk_colocate_pop(g))
#define YK_CONTROL(g, n, ops)   YK__BLOCK(yk_control_push(g, n, ops), yk_control_pop(g))
#define YK_PRECISION(g, low)    YK__BLOCK(yk_precision_push(g, low), yk_precision_pop(g))
#define YK_GUARD(g, ok)         YK__BLOCK(yk_guard_push(g, ok), yk_guard_pop(g))

/* ---- variables ------------------------------------------------------------------------------------------ */

typedef struct yk_variable yk_variable;     /* lives in its graph; two handles of one variable are equal pointers */

/* Initial value of a variable. Truncated normal redraws outside two deviations; glorot uses fan_in, fan_out of the shape. */
typedef enum yk_init_kind { YK_INIT_DEFAULT, YK_INIT_ZEROS, YK_INIT_ONES, YK_INIT_CONSTANT, YK_INIT_UNIFORM, YK_INIT_NORMAL,
                            YK_INIT_TRUNCATED_NORMAL, YK_INIT_GLOROT_UNIFORM, YK_INIT_GLOROT_NORMAL, YK_INIT_HE_NORMAL,
                            YK_INIT_HE_UNIFORM, YK_INIT_TENSOR, YK_INIT_VALUE } yk_init_kind;
typedef struct yk_init {
  yk_init_kind kind;          /* DEFAULT: the scope's; without one, glorot uniform (floats) or zeros */
  double a, b;                /* constant: a; uniform: from a to b; (truncated) normal: mean a, deviation b */
  uint64_t seed;              /* 0 = derived from the graph's seed and the variable's name */
  const yk_tensor *tensor;    /* YK_INIT_TENSOR: copied */
  yk_value value;             /* YK_INIT_VALUE: a value of the graph */
} yk_init;
/* Shorthands: yk_get_variable(g, "w", YK_F32, YK_SHAPE(2, 3), YK_TRUNCATED_NORMAL(0.05), NULL). */
#define YK_ZEROS               ((yk_init){ .kind = YK_INIT_ZEROS })
#define YK_ONES                ((yk_init){ .kind = YK_INIT_ONES })
#define YK_CONSTANT(x)         ((yk_init){ .kind = YK_INIT_CONSTANT, .a = (x) })
#define YK_UNIFORM(lo, hi)     ((yk_init){ .kind = YK_INIT_UNIFORM, .a = (lo), .b = (hi) })
#define YK_NORMAL(dev)         ((yk_init){ .kind = YK_INIT_NORMAL, .b = (dev) })
#define YK_TRUNCATED_NORMAL(dev) ((yk_init){ .kind = YK_INIT_TRUNCATED_NORMAL, .b = (dev) })
#define YK_GLOROT_UNIFORM      ((yk_init){ .kind = YK_INIT_GLOROT_UNIFORM })
#define YK_HE_NORMAL           ((yk_init){ .kind = YK_INIT_HE_NORMAL })
#define YK_DEFAULT_INIT        ((yk_init){ 0 })

/* Builds the penalty of a new variable from its value; {0} = none. l2: scale * l2_loss(w); l1: scale * sum|w|. */
typedef yk_value (*yk_regularizer_fn)(yk_graph *g, yk_value w, void *arg);
typedef struct yk_regularizer {
  yk_regularizer_fn fn; void *arg;
  double l1, l2;              /* variables that are no floats are left out */
  bool none;                  /* block the scope's */
} yk_regularizer;

typedef struct yk_variable_options {
  yk_regularizer regularizer;
  bool not_trainable;
  const char *const *collections;   /* NULL-terminated; NULL = { YK_GLOBAL_VARIABLES } */
} yk_variable_options;

/*
 * The variable `name` of the current variable scope: made new, or shared, as the scope's reuse says. NULL after a sticky error:
 * EINVAL already exists (names it, its first file:line, and how to share it) | ENOTFOUND with reuse on (nearest names) |
 * EINVAL other shape or dtype (shows both). A new one adds nodes v, v/Initializer/..., v/Assign, v/read on the current device.
 */
yk_variable *yk_get_variable_at(const char *where, yk_graph *g, const char *name, yk_dtype dtype, yk_shape shape,
                                yk_init init, const yk_variable_options *options);
#define yk_get_variable(...) yk_get_variable_at(YK_HERE, __VA_ARGS__)

yk_value    yk_read(const yk_variable *v);                /* its value, as borrowed by whoever uses it */
yk_value    yk_initializer_op(const yk_variable *v);      /* v/Assign */
yk_value    yk_initial_value(const yk_variable *v);       /* to initialise another variable from */
const char *yk_variable_name(const yk_variable *v);
const yk_desc *yk_variable_desc(const yk_variable *v);
const char *yk_variable_device(const yk_variable *v);     /* requested home */
const char *yk_variable_where(const yk_variable *v);      /* "file.c:12" of its creation */
bool        yk_variable_trainable(const yk_variable *v);
yk_variable *yk_variable_master(const yk_variable *v);    /* whose copy on another device it is (mirrored towers); v itself if it is none */
size_t      yk_variable_count(const yk_graph *g);
yk_variable *yk_variable_get(const yk_graph *g, size_t i);  /* in order of creation; NULL past the end */
yk_variable *yk_variable_of(const yk_graph *g, yk_value read); /* the variable that this value reads; NULL if it does not */

/* Values: assign -> the value after it; also usable as a target. */
yk_value yk_assign_at(const char *where, yk_graph *g, yk_variable *v, yk_value x);
yk_value yk_assign_add_at(const char *where, yk_graph *g, yk_variable *v, yk_value x);
yk_value yk_assign_sub_at(const char *where, yk_graph *g, yk_variable *v, yk_value x);
#define yk_assign(...)     yk_assign_at(YK_HERE, __VA_ARGS__)
#define yk_assign_add(...) yk_assign_add_at(YK_HERE, __VA_ARGS__)
#define yk_assign_sub(...) yk_assign_sub_at(YK_HERE, __VA_ARGS__)

/* One op that runs all initializers; and one that runs `n` ops. */
yk_value yk_global_variables_initializer_at(const char *where, yk_graph *g);
yk_value yk_group_at(const char *where, yk_graph *g, size_t n, const yk_value *ops);
#define yk_global_variables_initializer(g) yk_global_variables_initializer_at(YK_HERE, g)
#define yk_group(...) yk_group_at(YK_HERE, __VA_ARGS__)

/* ---- variable scopes -------------------------------------------------------------------------------------- */

/* Once on outside, an inner scope cannot turn it off. */
typedef enum yk_reuse { YK_REUSE_INHERIT, YK_REUSE, YK_AUTO_REUSE } yk_reuse;
typedef struct yk_variable_scope yk_variable_scope;    /* lives in its graph */
typedef struct yk_scope_options {
  yk_reuse       reuse;
  yk_init        init;             /* kind DEFAULT = the parent's */
  yk_regularizer regularizer;      /* empty = the parent's */
  bool           no_name_scope;    /* do not open the name scope of the same name */
  const char    *default_name;     /* used, made unique among variable scopes, when name is NULL */
} yk_scope_options;
/* Open `name` under the current variable scope, with a name scope of the same last component. options may be NULL. */
void yk_variable_scope_push_at(const char *where, yk_graph *g, const char *name, const yk_scope_options *options);
/* Jump to a scope opened before, wherever we are. */
void yk_variable_scope_enter_at(const char *where, yk_graph *g, yk_variable_scope *scope, const yk_scope_options *options);
void yk_variable_scope_pop_at(const char *where, yk_graph *g);
#define yk_variable_scope_push(...)  yk_variable_scope_push_at(YK_HERE, __VA_ARGS__)
#define yk_variable_scope_enter(...) yk_variable_scope_enter_at(YK_HERE, __VA_ARGS__)
#define yk_variable_scope_pop(g)     yk_variable_scope_pop_at(YK_HERE, g)
#define YK_VARIABLE_SCOPE(g, name)   YK__BLOCK(yk_variable_scope_push(g, name, NULL), yk_variable_scope_pop(g))
#define YK_VARIABLE_SCOPE_REUSE(g, name, mode) \
  YK__BLOCK(yk_variable_scope_push(g, name, &(yk_scope_options){ .reuse = (mode) }), yk_variable_scope_pop(g))
yk_variable_scope *yk_get_variable_scope(yk_graph *g);
const char *yk_variable_scope_name(const yk_variable_scope *s);           /* "conv1", "" for the root */
const char *yk_variable_scope_name_scope(const yk_variable_scope *s);     /* name scope of its first opening, with '/' */
void yk_reuse_variables(yk_variable_scope *s);                            /* reuse on from here, no undo */

/* ---- collections ------------------------------------------------------------------------------------------- */

#define YK_GLOBAL_VARIABLES         "variables"
#define YK_LOCAL_VARIABLES          "local_variables"
#define YK_TRAINABLE_VARIABLES      "trainable_variables"
#define YK_MODEL_VARIABLES          "model_variables"
#define YK_MOVING_AVERAGE_VARIABLES "moving_average_variables"
#define YK_REGULARIZATION_LOSSES    "regularization_losses"
#define YK_LOSSES                   "losses"
#define YK_UPDATE_OPS               "update_ops"
#define YK_SUMMARIES                "summaries"
#define YK_GLOBAL_STEP              "global_step"
#define YK_TRAIN_OP                 "train_op"

/* Variables are kept as the value of their read; yk_variable_of() leads back. */
void yk_add_to_collection_at(const char *where, yk_graph *g, const char *key, yk_value v);
#define yk_add_to_collection(...) yk_add_to_collection_at(YK_HERE, __VA_ARGS__)
/* Items of `key` in order of insertion, only those whose name starts with `scope` (NULL = all; pass "tower_1/", not "tower_1").
 * Returns how many there are; writes at most `max` to out (NULL = just count). */
size_t yk_get_collection(const yk_graph *g, const char *key, const char *scope, yk_value *out, size_t max);

/* ---- gradients ---------------------------------------------------------------------------------------------- */

/*
 * dx[i] = sum over j of dys[j] * d ys[j] / d xs[i]; dys NULL, or an entry {0} = ones. dx[i] is {0} where ys do not depend on
 * xs[i]. Nodes go under name scope "gradients" (or `name`), each group on its forward op's device. Sticky errors: EUNSUPPORTED
 * naming op, node and path where an op on the way has no gradient. `stop` values are treated as constants.
 */
typedef struct yk_gradient_options {
  const yk_value *stop; size_t nstop;
  bool zeros_if_unconnected;  /* instead of {0}; floats only */
  const char *name;
} yk_gradient_options;
void yk_gradients_at(const char *where, yk_graph *g, size_t ny, const yk_value *ys, const yk_value *dys,
                     size_t nx, const yk_value *xs, const yk_gradient_options *options, yk_value *dx);
#define yk_gradients(...) yk_gradients_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
