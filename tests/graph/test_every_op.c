/*
 * Every op of the registry, every case it declares: it can be built, verified, printed and differentiated, twice where it
 * says so, with known shapes and with an unknown batch. No numbers here: gradients must exist and have their inputs' shapes.
 */
#include "graph/helpers.h"
#include "tensor/desc.h"

enum { MOST = 16 };

typedef struct built { yk_graph *g; uint16_t nin; yk_value in[MOST], out; } built;

static void test_declarations(void **state) {
  (void)state;
  size_t n = 0;
  const yk_op *const *all = yk_op_all(&n);
  assert_true(n > 100);
  for (size_t i = 0; i < n; i++) {
    const yk_op *op = all[i];
    if (yk_op_find(op->name) != op) fail_msg("%s is not found by its name", op->name);
    if (!op->label || !op->doc || !op->version) fail_msg("%s lacks label, doc or version", op->name);
    if (!op->grad && !(op->traits & YK_NO_GRAD)) fail_msg("%s has neither a gradient nor YK_NO_GRAD", op->name);
    if (op->grad && (op->traits & YK_NO_GRAD)) fail_msg("%s has a gradient and YK_NO_GRAD", op->name);
    if (op->attr_bytes > YK__MAX_ATTR_BYTES) fail_msg("%s has %u bytes of attributes", op->name, op->attr_bytes);
    for (const yk_attr *a = op->attrs; a && a->name; a++)
      if (a->offset >= op->attr_bytes) fail_msg("%s: attribute %s lies outside the struct", op->name, a->name);
  }
  assert_null(yk_op_find("no such op"));
  assert_null(yk_op_find(NULL));
}

static yk_dtype dtype_for(uint32_t set) {
  for (unsigned t = YK_F32; t < YK_NDTYPES; t++)
    if (set & YK_T(t)) return (yk_dtype)t;
  return YK_NONE;
}

/* One "T[4,7]" of a case, up to ';'. */
static const char *parse(const char *s, const yk_port *port, yk_dtype *dtype, yk_shape *shape) {
  char name[8] = "";
  int used = 0;
  *shape = YK_SCALAR;
  if (sscanf(s, " %7[a-zA-Z0-9]%n", name, &used) != 1) fail_msg("case \"%s\" is malformed", s);
  s += used;
  *dtype = strcmp(name, "T") ? yk_dtype_parse(name) : dtype_for(port ? port->dtypes : YK_ANYTYPE);
  for (s++; *s && *s != ']'; s += *s == ',') shape->dim[shape->rank++] = strtoll(s, (char **)(uintptr_t)&s, 10);
  if (*s == ']') s++;
  while (*s == ' ' || *s == ';') s++;
  return s;
}

static uint16_t inputs_of(const char *shapes) {
  uint16_t n = 0;
  for (const char *s = shapes; *s; s++) n = (uint16_t)(n + (*s == '['));
  return n;
}

/* The case as a graph; batch: dimension 0 of what has several is unknown. Variables stand in where one is needed. */
static built build(const yk_op *op, const yk_case *c, bool batch) {
  built b = { .g = new_graph(), .nin = inputs_of(c->shapes) };
  const char *s = c->shapes;
  if (b.nin > MOST) fail_msg("%s: case \"%s\" has %u inputs", op->name, c->shapes, b.nin);
  for (uint16_t i = 0; i < b.nin; i++) {
    const yk_port *port = yk__op_in_port(op, c->attrs, b.nin, i);
    yk_dtype dtype;
    yk_shape shape;
    char name[32];
    s = parse(s, port, &dtype, &shape);
    snprintf(name, sizeof name, "in%u", i);
    if (op == &yk__op_read_variable || (port && (port->flags & YK_PORT_WRITE))) {
      yk_variable *v = yk_get_variable(b.g, name, dtype, shape, YK_ZEROS, NULL);
      b.in[i] = v ? v->ref : (yk_value){ 0 };
    } else {
      if (batch && shape.rank > 1) shape.dim[0] = -1;
      b.in[i] = yk_placeholder(b.g, name, dtype, shape);
    }
  }
  b.out = yk_add_node(b.g, op, c->attrs, b.in, b.nin, 0);
  return b;
}

static bool wants_gradient(const yk_op *op, const yk_case *c, const built *b, uint16_t i) {
  const yk_port *port = yk__op_in_port(op, c->attrs, b->nin, i);
  return (YK_T(yk_value_desc(b->g, b->in[i])->dtype) & YK_FLOATS) &&
         !(port->flags & (YK_PORT_NODIFF | YK_PORT_SHAPE | YK_PORT_WRITE));
}

static void check_shape(const yk_op *op, const yk_case *c, const built *b, uint16_t i, yk_value dx) {
  char x[YK__DESC_TEXT], y[YK__DESC_TEXT];
  const yk_desc *want = yk_value_desc(b->g, b->in[i]), *got = yk_value_desc(b->g, dx);
  yk_desc merged;
  if (got->dtype != want->dtype || yk__shape_merge(got, want, &merged) != YK_OK)
    fail_msg("%s (%s): gradient of input %u is %s, the input %s", op->name, c->shapes, i, yk__desc_text(got, x, sizeof x),
             yk__desc_text(want, y, sizeof y));
}

/* Gradients that have none of their own: layers are not differentiated twice through these. An exact list. */
static bool refuses(const yk_op *op) {
  static const char *const list[] = { "reduce_prod_grad", "max_pool_grad", "lrn_grad", "batch_norm_grad", "batch_norm_infer_grad",
                                      "layer_norm_grad", "lstm_grad", "gru_grad", "simple_rnn_grad" };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (!strcmp(op->name, list[i])) return true;
  return false;
}

/* d(sum of output 0)/dx, which must be there; then d(sum of all of these)/dx, which ops on the list above may refuse. */
static void differentiate(const yk_op *op, const yk_case *c, built *b) {
  yk_value x[MOST], dx[MOST], ddx[MOST];
  uint16_t index[MOST], nx = 0, found = 0;
  for (uint16_t i = 0; i < b->nin; i++)
    if (wants_gradient(op, c, b, i)) { index[nx] = i; x[nx++] = b->in[i]; }
  yk_gradients(b->g, 1, &b->out, NULL, nx, x, NULL, dx);
  yk_code code = yk_graph_status(b->g);
  if (code != (refuses(op) ? YK_EUNSUPPORTED : YK_OK))
    fail_msg("%s (%s): %s (%s)", op->name, c->shapes, yk_code_name(code), yk_error_message());
  if (code != YK_OK) return;
  for (uint16_t i = 0; i < nx; i++) {
    if (!dx[i].id) continue;
    check_shape(op, c, b, index[i], dx[i]);
    dx[found++] = dx[i];
  }
  if (nx && !found && (YK_T(yk_value_desc(b->g, b->out)->dtype) & YK_FLOATS))
    fail_msg("%s (%s): no gradient for any input", op->name, c->shapes);
  if (yk_graph_verify(b->g) != YK_OK) fail_msg("gradient of %s (%s): %s", op->name, c->shapes, yk_error_message());
  yk_gradients(b->g, found, dx, NULL, nx, x, NULL, ddx);
  code = yk_graph_status(b->g);
  if (code != YK_OK && code != YK_EUNSUPPORTED)
    fail_msg("%s (%s), second order: %s", op->name, c->shapes, yk_error_message());
}

/* Taking out all dims of 1 needs to know them. */
static bool may_refuse_unknown(const yk_op *op, const yk_case *c) {
  return !strcmp(op->name, "squeeze") && !(c->attrs && ((const yk_axes_attrs *)c->attrs)->naxes);
}

static void run_case(const yk_op *op, const yk_case *c, bool batch) {
  built b = build(op, c, batch);
  if (yk_graph_status(b.g) != YK_OK && batch && may_refuse_unknown(op, c)) {
    FAILED(b.g, YK_EINVAL, "not known yet");
    return;
  }
  if (yk_graph_status(b.g) != YK_OK)
    fail_msg("%s (%s)%s: %s", op->name, c->shapes, batch ? " with an unknown batch" : "", yk_error_message());
  if (yk_graph_verify(b.g) != YK_OK) fail_msg("%s (%s): %s", op->name, c->shapes, yk_error_message());
  const yk_node *n = yk__value_node(b.g, b.out);
  assert_true(yk__attrs_equal(op, n->attrs, c->attrs));
  assert_true(yk__attrs_hash(op, n->attrs, 3) == yk__attrs_hash(op, c->attrs, 3));
  if (!(op->traits & YK_NO_GRAD)) differentiate(op, c, &b);
  yk_graph_free(b.g);
}

static void test_every_case(void **state) {
  (void)state;
  size_t n = 0;
  const yk_op *const *all = yk_op_all(&n);
  for (size_t i = 0; i < n; i++) {
    if ((!all[i]->cases || !all[i]->cases->shapes) && all[i] != &yk__op_constant) fail_msg("%s has no cases", all[i]->name);
    for (const yk_case *c = all[i]->cases; c && c->shapes; c++) run_case(all[i], c, false);
  }
}

static void test_unknown_batch(void **state) {
  (void)state;
  size_t n = 0;
  const yk_op *const *all = yk_op_all(&n);
  for (size_t i = 0; i < n; i++)
    for (const yk_case *c = all[i]->cases; c && c->shapes; c++) run_case(all[i], c, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_declarations), cmocka_unit_test(test_every_case), cmocka_unit_test(test_unknown_batch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
