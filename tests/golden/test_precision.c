/*
 * test_precision.c - mixed precision against PyTorch's autocast, and the loss scale against its GradScaler.
 *
 * precision_values.txt holds what PyTorch made of two networks that are repeated here to the bit; see make_precision_values.py.
 * What a loss scale does is exact: every scale, counter and skipped step must be equal. Losses in bf16 and f16 depend on where
 * a sum is rounded, so they have a tolerance; but each must be nearer to PyTorch's of the same type than that is to f32.
 */
#include <yoke/yoke.h>
#include "support/check.h"

enum { LINE = 4096, ROWS = 24, STEPS = 10 };

static FILE *values(void) {
  const char *folder = getenv("YOKE_TEST_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/golden/precision_values.txt", folder ? folder : "tests");
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("cannot read %s", path);
  return f;
}

/* ---- networks ------------------------------------------------------------------------------------------------------------ */

static double made(int64_t i, int k) { return (double)((i * (31 * i + 17) + 101 * k) % 97 - 48); }

static yk_tensor *tensor(int k, double scale, yk_shape shape) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_tensor_new(YK_F32, shape, &t));
  float *x = yk_tensor_data(t);
  for (int64_t i = 0; i < yk_tensor_count(t); i++) x[i] = (float)(scale * made(i, k) / 48);
  return t;
}

/* Variable k, which starts as `made`. */
static yk_value parameter(yk_graph *g, int k, double scale, yk_shape shape) {
  char name[8];
  yk_tensor *t = tensor(k, scale, shape);
  snprintf(name, sizeof name, "v%d", k);
  yk_variable *v = yk_get_variable(g, name, YK_F32, shape, (yk_init){ .kind = YK_INIT_TENSOR, .tensor = t }, NULL);
  yk_tensor_free(t);
  return yk_read(v);
}

static yk_value layer(yk_graph *g, yk_value x, int k, int64_t in, int64_t out) {
  return yk_bias_add(g, yk_matmul(g, x, parameter(g, k, 0.3, YK_SHAPE(in, out)), NULL), parameter(g, k + 1, 0.1, YK_SHAPE(out)));
}

/* Logits; *labels: which of the first five elements of an example is the largest. */
static yk_value network(yk_graph *g, const char *name, int32_t labels[ROWS]) {
  bool dense = strcmp(name, "dense") == 0;
  yk_tensor *t = tensor(0, 1, dense ? YK_SHAPE(ROWS, 12) : YK_SHAPE(ROWS, 6, 6, 3));
  int64_t row = yk_tensor_count(t) / ROWS;
  yk_value h, x = yk_constant(g, t);
  for (int i = 0; i < ROWS; i++) {
    labels[i] = 0;
    for (int j = 1; j < 5; j++)
      if (yk_tensor_at(t, i * row + j) > yk_tensor_at(t, i * row + labels[i])) labels[i] = j;
  }
  yk_tensor_free(t);
  if (dense) {
    h = yk_relu(g, layer(g, x, 1, 12, 32));
    h = yk_relu(g, layer(g, h, 3, 32, 32));
    return layer(g, h, 5, 32, 5);
  }
  h = yk_conv2d(g, x, parameter(g, 1, 0.3, YK_SHAPE(3, 3, 3, 8)),
                &(yk_conv2d_attrs){ .stride = { 2, 2 }, .padding = YK_EXPLICIT, .pad = { 1, 1, 1, 1 } });
  h = yk_relu(g, yk_bias_add(g, h, parameter(g, 2, 0.1, YK_SHAPE(8))));
  return layer(g, yk_reshape(g, h, YK_SHAPE(ROWS, 72)), 3, 72, 5);
}

static yk_session *opened(yk_graph *g, int gpus) {
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_session *s = NULL;
  yk_value init = yk_global_variables_initializer(g);
  so.virtual_gpus = gpus;
  CHECK_OK(yk_session_open(g, &so, &s));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  return s;
}

/* The update, as autocast and GradScaler make it. */
static yk_value update(yk_graph *g, yk_value loss, bool scaled) {
  yk_loss_scale scale;
  yk_gradient grad[8];
  yk_value both[2] = { { 0 } };
  yk_optimizer o = YK_MOMENTUM(0.1, 0.9);
  if (!scaled) return yk_minimize(g, &o, loss, NULL);
  yk_loss_scale_new(g, 0, 0, &scale);
  size_t n = yk_compute_gradients(g, yk_scale_loss(g, &scale, loss), 0, NULL, grad, 8);
  yk_unscale_gradients(g, &scale, n, grad);
  yk_value ok = yk_all_good(g, 0, NULL, n, grad, false);
  YK_GUARD(g, ok) { both[0] = yk_apply_gradients(g, &o, n, grad, NULL); }
  both[1] = yk_loss_scale_update(g, &scale, ok);
  return yk_group(g, 2, both);
}

static void train(const char *name, yk_dtype type, int gpus, double out[STEPS]) {
  yk_graph *g = NULL;
  int32_t labels[ROWS];
  yk_value y = { 0 };
  CHECK_OK(yk_graph_new(&g));
  yk_device_push(g, gpus > 0 ? "/gpu:0" : "/cpu:0");
  YK_PRECISION(g, type) { y = network(g, name, labels); }
  if (type != YK_NONE) y = yk_cast(g, y, YK_F32);
  yk_value loss = yk_sparse_softmax_cross_entropy(g, y, yk_constant_from(g, YK_I32, YK_SHAPE(ROWS), labels));
  loss = yk_reduce_mean(g, loss, NULL);
  yk_value step = update(g, loss, type == YK_F16);
  yk_device_pop(g);
  CHECK_OK(yk_graph_status(g));
  yk_session *s = opened(g, gpus);
  for (int i = 0; i < STEPS; i++) {
    yk_tensor *t = NULL;
    CHECK_OK(yk_session_run(s, 0, NULL, 1, &loss, 1, &step, &t));
    out[i] = yk_tensor_at(t, 0);
    yk_tensor_free(t);
  }
  yk_session_close(s);
  yk_graph_free(g);
}

/* The losses that the file has for network and type. */
static void read_losses(const char *name, const char *type, double out[STEPS]) {
  char line[LINE], n[16], k[16];
  int used = 0, more = 0;
  FILE *f = values();
  while (fgets(line, sizeof line, f)) {
    if (sscanf(line, "loss %15s %15s%n", n, k, &used) != 2 || strcmp(n, name) != 0 || strcmp(k, type) != 0) continue;
    for (int i = 0; i < STEPS; i++, used += more)
      if (sscanf(line + used, "%lf%n", &out[i], &more) != 1) fail_msg("the file has %d losses of %s in %s", i, name, type);
    fclose(f);
    return;
  }
  fail_msg("the file has no losses of %s in %s", name, type);
}

/* The mean over the steps: roundings go up and down. */
static double distance(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < STEPS; i++) sum += fabs(a[i] - b[i]);
  return sum / STEPS;
}

static void show(const char *what, const double *got, const double *want) {
  for (int i = 0; i < STEPS; i++) print_message("%s, step %d: got %.9g, expected %.9g\n", what, i + 1, got[i], want[i]);
}

/*
 * A sum in another order now and then rounds to the neighbour in bf16, and kernels differ in whether a bias is added before or after
 * rounding: half of what separates the type from f32 leaves room for that. Computing in f32, or in the other type, is further off.
 */
static void test_losses(void **state) {
  static const struct { const char *name; yk_dtype type; } types[] = { { "bf16", YK_BF16 }, { "f16", YK_F16 } };
  static const char *const nets[] = { "dense", "conv" };
  (void)state;
  for (int k = 0; k < 2; k++) {
    double full[STEPS];
    read_losses(nets[k], "f32", full);
    for (int gpus = 0; gpus < 2; gpus++) {
      double got[STEPS], want[STEPS];
      train(nets[k], YK_NONE, gpus, got);
      for (int i = 0; i < STEPS; i++) CHECK_NEAR(got[i], full[i], 2e-6);
      for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        train(nets[k], types[t].type, gpus, got);
        read_losses(nets[k], types[t].name, want);
        double off = distance(got, want), allowed = distance(want, full) / 2;
        if (off <= allowed) continue;
        show(nets[k], got, want);
        fail_msg("%s in %s: %g from PyTorch's losses, expected at most %g", nets[k], types[t].name, off, allowed);
      }
    }
  }
}

/* ---- the loss scale ------------------------------------------------------------------------------------------------------- */

typedef struct scaler { yk_graph *g; yk_session *s; yk_value x, train; yk_variable *w; yk_loss_scale scale; } scaler;

/* The gradient of w is x, in f16 x times the scale. */
static void open_scaler(scaler *r, double start, int64_t every) {
  yk_gradient grad[1];
  yk_value both[2] = { { 0 } };
  CHECK_OK(yk_graph_new(&r->g));
  yk_graph *g = r->g;
  r->w = yk_get_variable(g, "w", YK_F32, YK_SCALAR, YK_ONES, NULL);
  r->x = yk_placeholder(g, "x", YK_F32, YK_SCALAR);
  yk_value low = yk_mul(g, yk_cast(g, yk_read(r->w), YK_F16), yk_cast(g, r->x, YK_F16)), loss = yk_cast(g, low, YK_F32);
  yk_loss_scale_new(g, start, every, &r->scale);
  CHECK_INT(yk_compute_gradients(g, yk_scale_loss(g, &r->scale, loss), 1, &r->w, grad, 1), 1);
  yk_unscale_gradients(g, &r->scale, 1, grad);
  yk_value ok = yk_all_good(g, 0, NULL, 1, grad, false);
  YK_GUARD(g, ok) { both[0] = yk_apply_gradients(g, &YK_SGD(0x1p-20), 1, grad, NULL); }
  both[1] = yk_loss_scale_update(g, &r->scale, ok);
  r->train = yk_group(g, 2, both);
  r->s = opened(g, 0);
}

static double value(const scaler *r, const yk_variable *v) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_variable_fetch(r->s, v, &t));
  double x = yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return x;
}

static void check_row(const scaler *r, const char *text, double x, int step) {
  double scale, w, seen;
  int good, skipped;
  if (sscanf(text, "%lf:%lf:%d:%d:%lf", &seen, &scale, &good, &skipped, &w) != 5) fail_msg("step %d of a scaler: '%.40s'", step, text);
  double got[] = { value(r, r->scale.scale), value(r, r->scale.good_steps), value(r, r->scale.skipped), value(r, r->w) };
  if (got[0] == scale && got[1] == good && got[2] == skipped && fabs(got[3] - w) <= 1e-7) return;
  fail_msg("step %d, gradient %g: scale %.17g, %g good steps, %g skipped, w %.9g; PyTorch has %.17g, %d, %d, %.9g", step, x, got[0], got[1],
           got[2], got[3], scale, good, skipped, w);
}

static int follow(const char *text) {
  double start, x;
  long long every;
  int used = 0, steps = 0;
  scaler r;
  if (sscanf(text, "scaler %lf %lld%n", &start, &every, &used) != 2) return 0;
  open_scaler(&r, start, every);
  for (const char *at = strchr(text + used, ' '); at != NULL; at = strchr(at + 1, ' ')) {
    yk_tensor *t = NULL;
    if (sscanf(at, "%lf", &x) != 1) fail_msg("'%.20s' is no step", at);
    CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, (const float[]){ (float)x }, &t));
    CHECK_OK(yk_session_run(r.s, 1, &(yk_feed){ r.x, t }, 0, NULL, 1, &r.train, NULL));
    yk_tensor_free(t);
    check_row(&r, at + 1, x, ++steps);
  }
  yk_session_close(r.s);
  yk_graph_free(r.g);
  return steps;
}

static void test_scaler(void **state) {
  char line[LINE];
  int rows = 0, steps = 0;
  FILE *f = values();
  (void)state;
  while (fgets(line, sizeof line, f)) {
    int n = follow(line);
    rows += n > 0;
    steps += n;
  }
  fclose(f);
  CHECK_INT(rows, 6);
  if (steps < 80) fail_msg("only %d steps of a loss scale were compared", steps);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_losses), cmocka_unit_test(test_scaler) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
