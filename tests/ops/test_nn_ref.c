/*
 * test_nn_ref.c - the reference loops against TensorFlow's numbers in golden/op_values.txt.
 *
 * Every case of the file is run; the file's format and origin are in golden/make_op_values.py. What is not in the
 * file, and can be told without another program, is checked below: dropout, empty batches, labels out of range.
 */
#include "nn_support.h"
#include "device/device.h"
#include "support/check.h"
#include "tensor/desc.h"

enum { LINE = 1 << 16, MAX_CASES = 256 };

static void set_attr(const yk_op *op, void *attrs, const char *field, char *values) {
  for (const yk_attr *a = op->attrs; a && a->name; a++) {
    char *p = (char *)attrs + a->offset, *end = values;
    if (strcmp(a->name, field)) continue;
    for (int i = 0; *values && *values != '\n'; i++, values = end) {
      double v = strtod(values, &end);
      if (end == values) break;
      if (a->kind == YK_REAL) *(double *)(void *)p = v;
      else ((int32_t *)(void *)p)[i] = (int32_t)v;
    }
    return;
  }
  fail_msg("%s has no attribute %s", op->name, field);
}

/* "2 3 4 : v v v ..." with the rank first. Values go to *data, NULL if there are none. */
static void parse_array(char *s, yk_desc *d, double **data) {
  int64_t n = 1;
  d->rank = (uint8_t)strtol(s, &s, 10);
  for (int i = 0; i < d->rank; i++) {
    d->dim[i] = strtoll(s, &s, 10);
    n *= d->dim[i];
  }
  s = strchr(s, ':');
  assert_non_null(s);
  s++;
  *data = NULL;
  for (int64_t i = 0; i < n; i++) {
    char *end;
    double v = strtod(s, &end);
    if (end == s) {
      CHECK_INT(i, 0);
      return;
    }
    if (!*data) *data = malloc((size_t)n * sizeof(double));
    (*data)[i] = v;
    s = end;
  }
}

static void compare(const nn_run *r, const char *name, unsigned index, const yk_desc *want, const double *values) {
  char a[512], b[512];
  yk_desc d = *want;
  d.dtype = r->dout[index].dtype;
  if (!yk__desc_same_shape(&d, &r->dout[index]))
    fail_msg("%s: output %u is %s, expected %s", name, index, nn_text(&r->dout[index], 1, a), nn_text(&d, 1, b));
  for (int64_t i = 0; i < yk__desc_count(&d); i++) {
    double got = r->out[index][i], tolerance = 1e-6 * (1 + fabs(values[i]));
    if (!(fabs(got - values[i]) <= tolerance))
      fail_msg("%s: output %u element %lld is %.12g, expected %.12g", name, index, (long long)i, got, values[i]);
  }
}

/* One case, the "case" line already read. */
static void run_case(FILE *f, char *line) {
  char name[64], op[64], attrs[512] = { 0 };
  nn_run r = { 0 };
  int ran = 0;
  if (sscanf(line, "case %63s %63s", name, op) != 2) fail_msg("bad line %s", line);
  r.op = yk_op_find(op);
  if (!r.op) fail_msg("%s: no operation %s", name, op);
  assert_true(r.op->attr_bytes <= sizeof attrs);
  r.attrs = attrs;
  while (fgets(line, LINE, f) && strncmp(line, "end", 3)) {
    char field[32], type[8];
    int at = 0;
    if (sscanf(line, "attr %31s %n", field, &at) == 1 && at) {
      set_attr(r.op, attrs, field, line + at);
    } else if (sscanf(line, "in %7s %n", type, &at) == 1 && at) {
      r.din[r.nin].dtype = (uint8_t)yk_dtype_parse(type);
      parse_array(line + at, &r.din[r.nin], &r.in[r.nin]);
      r.nin++;
    } else if (!strncmp(line, "out ", 4)) {
      char *rest;
      unsigned index = (unsigned)strtoul(line + 4, &rest, 10);
      yk_desc want = { 0 };
      double *values;
      if (!ran++) nn_run_ref(&r);
      parse_array(rest, &want, &values);
      compare(&r, name, index, &want, values);
      free(values);
    } else {
      fail_msg("%s: bad line %s", name, line);
    }
  }
  if (!ran) fail_msg("%s: nothing was compared", name);
  nn_run_free(&r);
}

static void test_golden(void **state) {
  (void)state;
  const char *folder = getenv("YOKE_TEST_DATA");
  char path[1024], *line = malloc(LINE);
  int cases = 0;
  snprintf(path, sizeof path, "%s/golden/op_values.txt", folder ? folder : "tests");
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("cannot read %s", path);
  while (fgets(line, LINE, f)) {
    if (line[0] == '#') continue;
    run_case(f, line);
    cases++;
  }
  fclose(f);
  free(line);
  if (cases < 100) fail_msg("%d cases in %s, expected at least 100", cases, path);
}

/* ---- what needs no other program ------------------------------------------------------------------------------- */

static double *filled(int64_t n, double v) {
  double *p = malloc((size_t)(n ? n : 1) * sizeof *p);
  for (int64_t i = 0; i < n; i++) p[i] = v;
  return p;
}

static void test_dropout(void **state) {
  (void)state;
  enum { N = 1003 };
  yk_dropout_attrs a = { .rate = 0.25, .seed = 99 };
  nn_run r = { .op = &yk__op_dropout, .attrs = &a, .nin = nn_parse("f64[1003]; i64[]", r.din, NN_PORTS) };
  int kept = 0;
  r.in[0] = filled(N, 3);
  r.in[1] = filled(1, 5);
  nn_run_ref(&r);
  for (int i = 0; i < N; i++) {
    uint32_t w[4];
    yk__host.random_block(99, 0, 5, (uint64_t)i / 4, 0, w);
    CHECK_INT(r.out[1][i], (w[i % 4] >> 8) >= (1u << 22) ? 1 : 0);
    CHECK_NEAR(r.out[0][i], r.out[1][i] * 4, 1e-12);
    kept += r.out[1][i] > 0;
  }
  if (kept < 700 || kept > 800) fail_msg("%d of 1003 kept at rate 0.25", kept);
  nn_run_free(&r);
}

/* Among equals the first cell in reading order wins, padding cells being counted but never chosen. */
static void test_max_pool_ties(void **state) {
  (void)state;
  static const double first[4] = { 4, 3, 1, 0 };       /* SAME, 2x2 outputs of 3x3 windows at -1 and 1 of 3 cells */
  yk_pool_attrs a = { .window = { 3, 3 }, .stride = { 2, 2 } };
  nn_run r = { .op = &yk__op_max_pool, .attrs = &a, .nin = nn_parse("f64[1,3,3,1]", r.din, NN_PORTS) };
  r.in[0] = filled(9, -5);
  nn_run_ref(&r);
  for (int i = 0; i < 4; i++) {
    CHECK_NEAR(r.out[0][i], -5, 0);
    CHECK_NEAR(r.out[1][i], first[i], 0);
  }
  nn_run_free(&r);
}

/* A dropped batch must give zero gradients and zero statistics, not NaN. */
static void test_empty(void **state) {
  (void)state;
  static const struct { const yk_op *op; const char *in; int out; } row[] = {
    { &yk__op_conv2d_grad_filter, "f64[0,4,4,2]; f64[0,4,4,3]; f64[3,3,2,3]", 0 },
    { &yk__op_conv2d_grad_filter_bias, "f64[0,4,4,2]; f64[0,4,4,3]; f64[3,3,2,3]", 1 },
    { &yk__op_bias_add_grad, "f64[0,3]", 0 },
    { &yk__op_matmul, "f64[2,0]; f64[0,3]", 0 },
    { &yk__op_batch_norm_train, "f64[0,3]; f64[3]; f64[3]", 2 },
    { &yk__op_batch_norm_grad, "f64[0,3]; f64[0,3]; f64[3]; f64[3]; f64[3]; f64[0,3]", 1 },
    { &yk__op_layer_norm_grad, "f64[0,3]; f64[0,3]; f64[3]; f64[0]; f64[0]", 2 },
  };
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    nn_run r = { .op = row[i].op };
    r.nin = nn_parse(row[i].in, r.din, NN_PORTS);
    for (uint16_t k = 0; k < r.nin; k++) r.in[k] = filled(yk__desc_count(&r.din[k]), 1);
    nn_run_ref(&r);
    assert_true(r.op->traits & YK_ZERO_ON_EMPTY);
    for (int64_t k = 0; k < yk__desc_count(&r.dout[row[i].out]); k++)
      if (r.out[row[i].out][k] != 0) fail_msg("%s: element %lld is %g, expected 0", r.op->name, (long long)k, r.out[row[i].out][k]);
    nn_run_free(&r);
  }
}

static void test_label_range(void **state) {
  (void)state;
  static const double bad[] = { -1, 3, 1e12 };
  yk_desc din[2], dout[2];
  double logits[6] = { 0 }, loss[2], backprop[6];
  nn_parse("f64[2,3]; i64[2]", din, 2);
  CHECK_OK(yk__op_infer(&yk__op_sparse_softmax_xent, NULL, din, 2, dout, 2));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    double labels[2] = { 1, bad[i] }, *out[2] = { loss, backprop };
    const double *in[2] = { logits, labels };
    yk_ref c = { .in = in, .out = out, .din = din, .dout = dout, .nin = 2, .nout = 2, .host = &yk__host };
    char text[64];
    snprintf(text, sizeof text, "label %lld of row 1 is outside [0, 3)", (long long)bad[i]);
    CHECK_CODE(yk__op_sparse_softmax_xent.ref(&c), YK_EINVAL, text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_golden), cmocka_unit_test(test_dropout), cmocka_unit_test(test_empty),
                                      cmocka_unit_test(test_label_range), cmocka_unit_test(test_max_pool_ties) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
