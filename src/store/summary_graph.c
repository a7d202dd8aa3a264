/*
 * summary_graph.c - a graph in an event file, as a GraphDef.
 *
 * What readers draw from it: names grouped by '/', inputs, control inputs with '^', devices, attributes, and the shapes on the edges.
 * It tells of a graph and is not meant to be run elsewhere.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph.h"
#include "op/attrs.h"
#include "run/run.h"
#include "store/summary.h"

enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_DEVICE = 4, NODE_ATTR = 5, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { ATTR_LIST = 1, ATTR_S = 2, ATTR_I = 3, ATTR_F = 4, ATTR_B = 5, ATTR_TYPE = 6, ATTR_TENSOR = 8, LIST_I = 3, LIST_SHAPE = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1, TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4 };
enum { MOST_ATTRS = 32, SMALL = 64 };           /* SMALL: elements of a constant that is told */

/* The number of a dtype in a GraphDef. */
static int64_t type_number(int64_t dtype) {
  static const uint8_t number[YK_NDTYPES] = {
    [YK_F32] = 1, [YK_F64] = 2, [YK_F16] = 19, [YK_BF16] = 14, [YK_I32] = 3, [YK_I64] = 9, [YK_U8] = 4, [YK_BOOL] = 10,
  };
  return dtype > 0 && dtype < YK_NDTYPES ? number[dtype] : 0;
}

static void put_shape(yk_str *e, uint32_t field, const yk_desc *d) {
  size_t shape = yk__proto_begin(e, field);
  for (uint8_t i = 0; i < d->rank; i++) {
    size_t dim = yk__proto_begin(e, SHAPE_DIM);
    if (d->dim[i] != 0) yk__proto_int(e, DIM_SIZE, d->dim[i]);
    yk__proto_end(e, dim);
  }
  yk__proto_end(e, shape);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static void put_list(yk_str *e, const yk_attr *a, const void *attrs) {
  unsigned n = a->count;
  while (n > 0 && yk__attr_integer(a, attrs, n - 1) == 0) n--;       /* zeros at the end are the defaults */
  size_t list = yk__proto_begin(e, ATTR_LIST);
  if (n > 0) {
    size_t numbers = yk__proto_begin(e, LIST_I);
    for (unsigned i = 0; i < n; i++) yk__proto_varint(e, (uint64_t)yk__attr_integer(a, attrs, i));
    yk__proto_end(e, numbers);
  }
  yk__proto_end(e, list);
}

static void put_enum(yk_str *e, const yk_attr *a, const void *attrs) {
  int64_t v = yk__attr_integer(a, attrs, 0);
  const char *name = yk__attr_enum(a, v);
  if (strcmp(a->name, "dtype") == 0) yk__proto_int(e, ATTR_TYPE, type_number(v));
  else if (name != NULL) yk__proto_text(e, ATTR_S, name);
  else yk__proto_int(e, ATTR_I, v);
}

/* The only pointer that is told: a small constant. */
static void put_tensor(yk_str *e, const yk_tensor *t) {
  const yk_desc *d = yk_tensor_desc(t);
  size_t tensor = yk__proto_begin(e, ATTR_TENSOR);
  yk__proto_int(e, TENSOR_DTYPE, type_number(d->dtype));
  put_shape(e, TENSOR_SHAPE, d);
  yk__proto_bytes(e, TENSOR_CONTENT, yk_tensor_data(t), yk_tensor_bytes(t));
  yk__proto_end(e, tensor);
}

static void put_value(yk_str *e, const yk_attr *a, const void *attrs) {
  const char *field = (const char *)attrs + a->offset;
  double real;
  uint64_t seed;
  const void *pointer;
  switch (a->kind) {
    case YK_REAL: memcpy(&real, field, sizeof real); yk__proto_float(e, ATTR_F, (float)real); break;
    case YK_SEED: memcpy(&seed, field, sizeof seed); yk__proto_int(e, ATTR_I, (int64_t)seed); break;
    case YK_FLAG: yk__proto_int(e, ATTR_B, yk__attr_integer(a, attrs, 0) != 0); break;
    case YK_ENUM: put_enum(e, a, attrs); break;
    case YK_INTS: case YK_DIMS: put_list(e, a, attrs); break;
    case YK_INT: yk__proto_int(e, ATTR_I, yk__attr_integer(a, attrs, 0)); break;
    case YK_STRING: memcpy(&pointer, field, sizeof pointer); yk__proto_text(e, ATTR_S, pointer); break;
    case YK_POINTER: memcpy(&pointer, field, sizeof pointer); put_tensor(e, pointer); break;
  }
}

/* Is there something to tell? What is zero is the default. */
static bool told(const yk_node *n, const yk_attr *a) {
  static const char none[sizeof(void *)];
  const char *field = (const char *)n->attrs + a->offset;
  const yk_tensor *t;
  if (a->kind == YK_ENUM) return strcmp(a->name, "dtype") != 0 || yk__attr_integer(a, n->attrs, 0) != 0;
  if (a->kind == YK_INT || a->kind == YK_FLAG) return yk__attr_integer(a, n->attrs, 0) != 0;
  if (a->kind == YK_INTS || a->kind == YK_DIMS) {
    for (unsigned i = 0; i < a->count; i++)
      if (yk__attr_integer(a, n->attrs, i) != 0) return true;
    return false;
  }
  if (memcmp(field, none, sizeof none) == 0) return false;
  if (a->kind != YK_POINTER) return true;
  memcpy(&t, field, sizeof t);
  return strcmp(n->op->name, "constant") == 0 && yk_tensor_count(t) <= SMALL;
}

static void put_entry(yk_str *e, const char *key, const yk_attr *a, const void *attrs) {
  size_t entry = yk__proto_begin(e, NODE_ATTR);
  yk__proto_text(e, ENTRY_KEY, key);
  size_t value = yk__proto_begin(e, ENTRY_VALUE);
  put_value(e, a, attrs);
  yk__proto_end(e, value);
  yk__proto_end(e, entry);
}

/* Dtype and shapes of the outputs; a handle of an operation is none. */
static void put_outputs(yk_str *e, const yk_graph *g, const yk_node *n) {
  int64_t type = n->nout > 0 ? type_number(g->value[n->first].desc.dtype) : 0;
  if (type != 0) {
    size_t entry = yk__proto_begin(e, NODE_ATTR);
    yk__proto_text(e, ENTRY_KEY, "T");
    size_t value = yk__proto_begin(e, ENTRY_VALUE);
    yk__proto_int(e, ATTR_TYPE, type);
    yk__proto_end(e, value);
    yk__proto_end(e, entry);
  }
  size_t entry = yk__proto_begin(e, NODE_ATTR);
  yk__proto_text(e, ENTRY_KEY, "_output_shapes");
  size_t value = yk__proto_begin(e, ENTRY_VALUE), list = yk__proto_begin(e, ATTR_LIST);
  for (uint16_t k = 0; k < n->nout; k++)
    if (g->value[n->first + k].desc.dtype != YK_NONE) put_shape(e, LIST_SHAPE, &g->value[n->first + k].desc);
  yk__proto_end(e, list);
  yk__proto_end(e, value);
  yk__proto_end(e, entry);
}

/* In the order of their keys, as a map is written that is to be the same each time. */
static void put_attrs(yk_str *e, const yk_graph *g, const yk_node *n) {
  const yk_attr *list[MOST_ATTRS];
  int count = 0;
  put_outputs(e, g, n);
  for (const yk_attr *a = n->op->attrs; a != NULL && a->name != NULL && n->attrs != NULL && count < MOST_ATTRS; a++) {
    if (!told(n, a)) continue;
    int at = count++;
    for (; at > 0 && strcmp(list[at - 1]->name, a->name) > 0; at--) list[at] = list[at - 1];
    list[at] = a;
  }
  for (int i = 0; i < count; i++) put_entry(e, list[i]->name, list[i], n->attrs);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void put_input(yk_str *e, const char *before, const char *name, uint16_t output) {
  size_t input = yk__proto_begin(e, NODE_INPUT);
  yk__str_add(e, "%s%s", before, name);
  if (output != 0) yk__str_add(e, ":%u", output);
  yk__proto_end(e, input);
}

static void put_node(yk_str *e, const yk_graph *g, const yk_node *n, const char *device, size_t device_bytes) {
  size_t node = yk__proto_begin(e, GRAPH_NODE);
  yk__proto_text(e, NODE_NAME, n->name);
  yk__proto_text(e, NODE_OP, n->op->label);
  for (uint16_t i = 0; i < n->nin; i++)
    if (n->in[i] != 0) put_input(e, "", g->node[g->value[n->in[i]].node]->name, g->value[n->in[i]].out);
  for (uint32_t i = 0; i < n->nctrl; i++) put_input(e, "^", g->node[n->ctrl[i]]->name, 0);
  if (device_bytes > 0) yk__proto_bytes(e, NODE_DEVICE, device, device_bytes);
  put_attrs(e, g, n);
  yk__proto_end(e, node);
}

/* The device in the line "name: (Op): device" that `*lines` begins with, if it is of this node; then *lines is behind it. */
static const char *placed(const char **lines, const char *name, size_t *bytes) {
  size_t n = strlen(name);
  const char *end = strchr(*lines, '\n'), *device;
  *bytes = 0;
  if (end == NULL || strncmp(*lines, name, n) != 0 || (*lines)[n] != ':') return "";
  device = strstr(*lines + n, "): ");
  *lines = end + 1;
  if (device == NULL || device > end) return "";
  *bytes = (size_t)(end - device - 3);
  return device + 3;
}

static void put_graph(yk_str *e, const yk_graph *g, const char *placement) {
  size_t graph = yk__proto_begin(e, YK__EVENT_GRAPH);
  for (uint32_t i = 1; i < g->nnode && !e->failed; i++) {
    const yk_node *n = g->node[i];
    size_t bytes = 0;
    const char *device = placement != NULL ? placed(&placement, n->name, &bytes) : n->device_text;
    put_node(e, g, n, device, placement != NULL ? bytes : strlen(n->device_text));
  }
  yk__proto_end(e, graph);
}

yk_code yk_summary_graph(yk_summary_writer *w, const yk_graph *g, yk_session *s) {
  char *placement = NULL;
  yk_str *e;
  YK_TRY(yk__summary_check(w, "yk_summary_graph", "graph"));
  if (g == NULL) return YK_FAIL(EINVAL, "yk_summary_graph: NULL graph");
  YK_TRY(yk_graph_status(g));
  if (s != NULL && s->g != g) return YK_FAIL(EINVAL, "yk_summary_graph: the session is of another graph");
  if (s != NULL) YK_TRY(yk_session_placement(s, &placement));
  yk_code rc = yk__summary_begin(w, 0, &e);
  if (rc == YK_OK) {
    put_graph(e, g, placement);
    rc = yk__summary_end(w);
  }
  yk_free(placement);
  return rc;
}
