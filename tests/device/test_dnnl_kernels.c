/*
 * test_dnnl_kernels.c - the CPU driver's kernels through oneDNN against the double references.
 *
 * Every shape runs with pictures offered plain and blocked, so that both the layouts a training step uses and the awkward
 * ones (odd channel counts, padding that is not symmetric, groups) are met. A case that no oneDNN kernel takes would test
 * nothing, so each says whether a refusal is acceptable.
 */
#include "dnnl_bench.h"

static int from_dnnl(const trial *t) { return strncmp(t->impl, "dnnl:", 5) == 0 || strncmp(t->impl, "block:", 6) == 0; }

/* With pictures offered plain, blocked by 8 and by 16; some of them must be oneDNN's. */
static void all_layouts(bench *b, const trial *given, uint32_t pictures) {
  int taken = 0;
  static const int block[] = { 0, 8, 16 };
  for (int l = 0; l < 3; l++) {
    trial t = *given;
    t.may_refuse = 1;
    for (int i = 0; i < t.nin; i++)
      if (block[l] && (pictures >> i & 1)) t.in[i].layout = picture_layout(&t.in[i], block[l]);
    if (try_kernel(b, &t) && from_dnnl(&t)) taken++;
  }
  if (!taken && !given->may_refuse) fail_msg("%s: no oneDNN kernel took it in any layout", given->op);
}

/* ---- layouts ---------------------------------------------------------------------------------------------------------- */

static void test_layout_numbers(void **state) {
  (void)state;
  bench b = bench_open(1);
  yk_desc d = desc4(YK_F32, 2, 5, 7, 19);
  assert_int_equal(yk__cpu_layout_count(&d), 2 * 5 * 7 * 19);
  assert_int_equal(yk__cpu_layout_padded(&d), 0);
  uint16_t eight = picture_layout(&d, 8), sixteen = picture_layout(&d, 16);
  assert_int_not_equal(eight, sixteen);
  assert_int_equal(picture_layout(&d, 8), eight);
  yk_desc other = desc4(YK_F32, 1, 9, 3, 64);
  assert_int_equal(picture_layout(&other, 8), eight);
  uint64_t bytes = 0;
  d.layout = eight;
  assert_int_equal(yk__cpu_layout_bytes(&d, &bytes), YK_OK);
  assert_int_equal(bytes, 2 * 5 * 7 * 24 * 4);
  assert_int_equal(yk__cpu_layout_count(&d), 2 * 5 * 7 * 24);
  assert_int_equal(yk__cpu_layout_padded(&d), 1);
  other.layout = eight;
  assert_int_equal(yk__cpu_layout_padded(&other), 0);
  d.layout = 999;
  assert_int_equal(yk__cpu_layout_bytes(&d, &bytes), YK_EUNSUPPORTED);
  b.compared = 1;
  bench_close(&b);
}

/* Plain to private, private to private, back: the same bytes. */
static void reorder_case(bench *b, yk_desc d, const uint16_t *layout, int n) {
  guarded g = guarded_new(b, &d), copy;
  uint64_t bytes = g.bytes;
  for (int64_t i = 0; i < yk__cpu_layout_count(&d); i++) {
    double v = (double)(i * 31 % 127);
    yk__from_double((yk_dtype)d.dtype, &v, g.data + (size_t)i * yk_dtype_bytes((yk_dtype)d.dtype), 1);
  }
  copy = guarded_new(b, &d);
  memcpy(copy.data, g.data, bytes);
  for (int i = 0; i < n; i++) {
    relayout(b, &g, &d, layout[i]);
    d.layout = layout[i];
  }
  relayout(b, &g, &d, YK_LAYOUT_PLAIN);
  if (memcmp(g.data, copy.data, bytes) != 0) fail_msg("reorder of dtype %u changed the value", d.dtype);
  b->compared += (int)bytes;
  guarded_free(&g, "reorder");
  guarded_free(&copy, "reorder");
}

static void test_reorder(void **state) {
  (void)state;
  bench b = bench_open(1);
  static const yk_dtype dtypes[] = { YK_F32, YK_BF16, YK_I32, YK_U8 };
  for (int i = 0; i < 4; i++) {
    yk_desc d = desc4(dtypes[i], 3, 5, 7, 19);
    uint16_t by8 = picture_layout(&d, 8), by16 = picture_layout(&d, 16), chain[] = { by8, by16, by8 };
    reorder_case(&b, d, chain, 3);
    d = desc4(dtypes[i], 1, 64, 64, 32);
    reorder_case(&b, d, chain, 2);
  }
  bench_close(&b);
}

/* ---- convolution ------------------------------------------------------------------------------------------------------- */

typedef struct conv_case { int64_t n, h, w, c, kh, kw, o; yk_conv2d_attrs a; int may_refuse; } conv_case;

static const conv_case convs[] = {
  { 1, 24, 24, 3, 5, 5, 64, { .groups = 0 }, 0 },
  { 1, 8, 8, 64, 5, 5, 64, { .groups = 0 }, 0 },
  { 4, 16, 16, 16, 3, 3, 32, { .stride = { 2, 2 } }, 0 },                     /* even size, stride 2: pads after only */
  { 4, 16, 16, 16, 1, 1, 32, { .stride = { 2, 2 } }, 0 },
  { 1, 15, 9, 16, 3, 3, 16, { .stride = { 2, 2 } }, 0 },
  { 3, 8, 8, 64, 3, 3, 64, { .groups = 0 }, 0 },
  { 2, 9, 7, 1, 3, 5, 8, { .groups = 0 }, 1 },
  { 2, 9, 7, 19, 3, 3, 3, { .groups = 0 }, 1 },
  { 2, 9, 7, 19, 2, 4, 19, { .stride = { 1, 2 } }, 1 },
  { 2, 11, 11, 8, 3, 3, 16, { .padding = YK_VALID, .stride = { 3, 2 } }, 0 },
  { 2, 13, 13, 8, 3, 3, 8, { .dilation = { 2, 3 } }, 0 },
  { 2, 10, 10, 8, 3, 3, 16, { .padding = YK_EXPLICIT, .pad = { 0, 2, 1, 2 } }, 0 },
  { 2, 10, 10, 32, 3, 3, 32, { .groups = 32 }, 0 },                           /* depthwise */
  { 2, 10, 10, 16, 3, 3, 32, { .groups = 2 }, 0 },
  { 2, 6, 6, 12, 3, 3, 6, { .groups = 3 }, 1 },
  { 1, 1, 1, 16, 1, 1, 8, { .groups = 0 }, 0 },
};

static yk_desc conv_filter(const conv_case *v) {
  int64_t groups = v->a.groups ? v->a.groups : 1;
  return desc4(YK_F32, v->kh, v->kw, v->c / groups, v->o);
}

/* Output shape of a case, from the op itself. */
static yk_desc conv_output(const conv_case *v) {
  yk_desc in[2] = { desc4(YK_F32, v->n, v->h, v->w, v->c), conv_filter(v) }, out = { 0 };
  yk_infer infer = { .in = in, .nin = 2, .out = &out, .nout = 1, .attrs = &v->a };
  assert_int_equal(yk_op_find("conv2d")->infer(&infer), YK_OK);
  return out;
}

static void test_conv2d(void **state) {
  (void)state;
  bench b = bench_open(2);
  for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
    const conv_case *v = &convs[i];
    trial t = { .op = "conv2d", .family = "dnnl", .attrs = &v->a, .nin = 2, .nout = 1, .may_refuse = v->may_refuse,
                .in = { desc4(YK_F32, v->n, v->h, v->w, v->c), conv_filter(v) } };
    all_layouts(&b, &t, 1);
  }
  bench_close(&b);
}

static void test_conv2d_bias_act(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (int act = YK_ACT_NONE; act <= YK_ACT_SOFTPLUS; act++) {
    yk_conv2d_attrs a = { .act = act, .alpha = act == YK_ACT_LEAKY_RELU ? 0.3 : 0 };
    trial t = { .op = "conv2d_bias_act", .family = "dnnl", .attrs = &a, .nin = 3, .nout = 1, .may_refuse = act == YK_ACT_SELU,
                .in = { desc4(YK_F32, 2, 9, 9, 16), desc4(YK_F32, 3, 3, 16, 16), desc1(YK_F32, 16) } };
    all_layouts(&b, &t, 1);
  }
  bench_close(&b);
}

static void test_conv2d_grad_input(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
    const conv_case *v = &convs[i];
    trial t = { .op = "conv2d_grad_input", .family = "dnnl", .attrs = &v->a, .nin = 3, .nout = 1, .like = 4, .may_refuse = v->may_refuse,
                .in = { conv_output(v), conv_filter(v), desc4(YK_F32, v->n, v->h, v->w, v->c) } };
    all_layouts(&b, &t, 1);
  }
  bench_close(&b);
}

static void test_conv2d_grad_filter(void **state) {
  (void)state;
  bench b = bench_open(2);
  for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
    const conv_case *v = &convs[i];
    trial t = { .op = "conv2d_grad_filter", .family = "dnnl", .attrs = &v->a, .nin = 3, .nout = 1, .like = 4, .may_refuse = v->may_refuse,
                .in = { desc4(YK_F32, v->n, v->h, v->w, v->c), conv_output(v), conv_filter(v) } };
    all_layouts(&b, &t, 3);
    all_layouts(&b, &t, 1);                        /* x and dy in different layouts */
    t.op = "conv2d_grad_filter_bias";
    t.nout = 2;
    all_layouts(&b, &t, 3);
  }
  bench_close(&b);
}

static void test_conv2d_transpose(void **state) {
  (void)state;
  bench b = bench_open(1);
  static const yk_conv2d_attrs attrs[] = { { .stride = { 2, 2 } }, { .padding = YK_VALID, .stride = { 2, 2 } }, { .groups = 0 },
                                           { .stride = { 2, 2 }, .out = { 15, 16 } } };
  for (int i = 0; i < 4; i++) {
    trial t = { .op = "conv2d_transpose", .family = "dnnl", .attrs = &attrs[i], .nin = 2, .nout = 1,
                .in = { desc4(YK_F32, 2, 8, 8, 16), desc4(YK_F32, 3, 3, 8, 16) } };
    all_layouts(&b, &t, 1);
  }
  bench_close(&b);
}

/* Final layouts: taken as they are, with the outputs' layouts named, or refused. */
static void test_fixed(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (int l = 0; l < 2; l++) {
    static const yk_conv2d_attrs attrs;
    trial t = { .op = "conv2d", .family = "dnnl", .attrs = &attrs, .nin = 2, .nout = 1, .flags = YK_SPEC_FIXED, .may_refuse = 1,
                .in = { desc4(YK_F32, 2, 8, 8, 32), desc4(YK_F32, 3, 3, 32, 32) } };
    if (l) t.in[0].layout = picture_layout(&t.in[0], 8);
    try_kernel(&b, &t);
  }
  bench_close(&b);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------- */

typedef struct pool_case { int64_t n, h, w, c; yk_pool_attrs a; int may_refuse; } pool_case;

static const pool_case pools[] = {
  { 2, 24, 24, 64, { .window = { 3, 3 }, .stride = { 2, 2 } }, 0 },
  { 2, 12, 12, 16, { .window = { 2, 2 } }, 0 },
  { 1, 7, 9, 19, { .window = { 3, 2 }, .stride = { 1, 2 } }, 1 },
  { 2, 7, 9, 3, { .window = { 3, 3 }, .stride = { 2, 2 }, .padding = YK_VALID }, 1 },
  { 2, 8, 8, 64, { .window = { 8, 8 } }, 0 },
  { 2, 9, 9, 8, { .window = { 3, 3 }, .stride = { 2, 2 }, .padding = YK_EXPLICIT, .pad = { 2, 1, 1, 2 } }, 0 },
  { 1, 20, 20, 8, { .window = { 17, 17 }, .stride = { 1, 1 } }, 1 },          /* 289 cells: an i32 index */
};

/* Pictures with many equal values, so that which of them is the maximum matters; none of them positive in every third. */
static double *tied_values(const yk_desc *d) {
  int64_t n = yk__desc_count(d);
  double *v = yk__calloc((size_t)n, sizeof *v);
  assert_non_null(v);
  for (int64_t i = 0; i < n; i++) v[i] = (double)(int)(yk__rng_uniform_f32(3, 1, 0, (uint64_t)i) * 4) - (i / 64 % 3 ? 1 : 5);
  return v;
}

static void test_max_pool(void **state) {
  (void)state;
  bench b = bench_open(2);
  for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
    const pool_case *v = &pools[i];
    yk_desc x = desc4(YK_F32, v->n, v->h, v->w, v->c);
    double *tied = tied_values(&x);
    trial t = { .op = "max_pool", .attrs = &v->a, .nin = 1, .nout = 2, .may_refuse = v->may_refuse, .in = { x },
                .value = { tied } };
    all_layouts(&b, &t, 1);
    t.value[0] = NULL;
    all_layouts(&b, &t, 1);
    yk__free(tied);
  }
  bench_close(&b);
}

/* y and index of the reference, as descriptions and values. */
static void max_pool_reference(const pool_case *v, yk_desc out[2], double *value[2]) {
  yk_desc x = desc4(YK_F32, v->n, v->h, v->w, v->c);
  const yk_op *op = yk_op_find("max_pool");
  yk_infer infer = { .in = &x, .nin = 1, .out = out, .nout = 2, .attrs = &v->a };
  assert_int_equal(op->infer(&infer), YK_OK);
  double *tied = tied_values(&x);
  for (int o = 0; o < 2; o++) value[o] = yk__calloc((size_t)yk__desc_count(&out[o]), sizeof(double));
  const double *in[1] = { tied };
  yk_ref r = { .in = in, .out = value, .din = &x, .dout = out, .nin = 1, .nout = 2, .attrs = &v->a, .host = &bench_host };
  assert_int_equal(op->ref(&r), YK_OK);
  yk__free(tied);
}

static void test_max_pool_grad(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
    const pool_case *v = &pools[i];
    yk_desc out[2];
    double *value[2];
    max_pool_reference(v, out, value);
    trial t = { .op = "max_pool_grad", .attrs = &v->a, .nin = 3, .nout = 1, .like = 4, .may_refuse = v->may_refuse,
                .in = { out[0], out[1], desc4(YK_F32, v->n, v->h, v->w, v->c) }, .value = { NULL, value[1] } };
    all_layouts(&b, &t, 3);
    all_layouts(&b, &t, 1);
    all_layouts(&b, &t, 2);
    yk__free(value[0]);
    yk__free(value[1]);
  }
  bench_close(&b);
}

static void test_avg_pool(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
    const pool_case *v = &pools[i];
    yk_desc out;
    trial t = { .op = "avg_pool", .attrs = &v->a, .nin = 1, .nout = 1, .may_refuse = v->may_refuse,
                .in = { desc4(YK_F32, v->n, v->h, v->w, v->c) } };
    all_layouts(&b, &t, 1);
    yk_infer infer = { .in = t.in, .nin = 1, .out = &out, .nout = 1, .attrs = &v->a };
    assert_int_equal(yk_op_find("avg_pool")->infer(&infer), YK_OK);
    trial g = { .op = "avg_pool_grad", .attrs = &v->a, .nin = 2, .nout = 1, .like = 2, .may_refuse = v->may_refuse,
                .in = { out, t.in[0] } };
    all_layouts(&b, &g, 1);
  }
  bench_close(&b);
}

/* ---- matrix products --------------------------------------------------------------------------------------------------- */

typedef struct product_case { yk_desc a, b; yk_matmul_attrs attrs; } product_case;

static void test_matmul(void **state) {
  (void)state;
  bench b = bench_open(2);
  const product_case cases[] = {
    { desc2(YK_F32, 128, 784), desc2(YK_F32, 784, 256), { .act = 0 } },
    { desc2(YK_F32, 64, 80), desc2(YK_F32, 80, 512), { .act = 0 } },          /* rows a bad distance apart: copied first */
    { desc2(YK_F32, 80, 64), desc2(YK_F32, 80, 1024), { .transpose_a = 1 } },
    { desc2(YK_F32, 5, 7), desc2(YK_F32, 7, 3), { .act = 0 } },
    { desc2(YK_F32, 1, 64), desc2(YK_F32, 64, 10), { .act = 0 } },
    { desc2(YK_F32, 64, 5), desc2(YK_F32, 64, 19), { .transpose_a = 1 } },
    { desc2(YK_F32, 33, 64), desc2(YK_F32, 19, 64), { .transpose_b = 1 } },
    { desc2(YK_F32, 17, 33), desc2(YK_F32, 9, 17), { .transpose_a = 1, .transpose_b = 1 } },
    { { YK_F32, 3, 0, { 4, 5, 6 } }, { YK_F32, 3, 0, { 4, 6, 7 } }, { .act = 0 } },
    { { YK_F32, 3, 0, { 4, 5, 6 } }, desc2(YK_F32, 6, 7), { .act = 0 } },
    { { YK_F32, 3, 0, { 4, 6, 5 } }, desc2(YK_F32, 6, 7), { .transpose_a = 1 } },
    { { YK_F32, 3, 0, { 4, 5, 6 } }, { YK_F32, 3, 0, { 4, 7, 6 } }, { .transpose_b = 1 } },
    { { YK_F32, 4, 0, { 2, 1, 5, 6 } }, { YK_F32, 3, 0, { 3, 6, 7 } }, { .act = 0 } },
    { desc2(YK_F32, 5, 6), { YK_F32, 3, 0, { 3, 6, 7 } }, { .act = 0 } },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    trial t = { .op = "matmul", .attrs = &cases[i].attrs, .nin = 2, .nout = 1, .in = { cases[i].a, cases[i].b } };
    all_layouts(&b, &t, 0);
  }
  bench_close(&b);
}

static void test_matmul_bias_act(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (int act = YK_ACT_NONE; act <= YK_ACT_SOFTPLUS; act++) {
    yk_matmul_attrs a = { .act = act, .alpha = act == YK_ACT_ELU ? 0.7 : 0 };
    trial t = { .op = "matmul_bias_act", .attrs = &a, .nin = 3, .nout = 1,
                .in = { desc2(YK_F32, 48, 96), desc2(YK_F32, 96, 40), desc1(YK_F32, 40) } };
    all_layouts(&b, &t, 0);
    a.transpose_b = 1;
    t.in[1] = desc2(YK_F32, 40, 96);
    all_layouts(&b, &t, 0);
  }
  bench_close(&b);
}

static void test_matmul_grad_bias(void **state) {
  (void)state;
  bench b = bench_open(1);
  static const int64_t sizes[][3] = { { 128, 784, 256 }, { 48, 96, 40 }, { 7, 5, 3 }, { 1, 64, 10 } };
  for (int i = 0; i < 4; i++) {
    static const yk_matmul_attrs a = { .transpose_a = 1 };
    const int64_t *s = sizes[i];
    trial t = { .op = "matmul_grad_bias", .attrs = &a, .nin = 2, .nout = 2,
                .in = { desc2(YK_F32, s[0], s[1]), desc2(YK_F32, s[0], s[2]) } };
    all_layouts(&b, &t, 0);
  }
  bench_close(&b);
}

/* Weights in the layout that a dense layer's forward pass asks for, if it asks for one: forward and input gradient keep it. */
static void test_dense_layout(void **state) {
  (void)state;
  bench b = bench_open(1);
  yk_matmul_attrs a = { .act = YK_ACT_RELU }, back = { .transpose_b = 1 };
  yk_desc in[3] = { desc2(YK_F32, 64, 256), desc2(YK_F32, 256, 512), desc1(YK_F32, 512) }, out = desc2(YK_F32, 64, 512);
  out.layout = YK_LAYOUT_ANY;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "matmul_bias_act", .nin = 3, .nout = 1, .attrs = &a, .in = in, .out = &out };
  yk_kernel *k = NULL;
  assert_int_equal(b.driver->kernel_prepare(b.dev, &spec, &k, NULL), YK_OK);
  b.driver->kernel_free(k);
  trial t = { .op = "matmul_bias_act", .attrs = &a, .nin = 3, .nout = 1, .in = { in[0], in[1], in[2] } };
  trial g = { .op = "matmul", .attrs = &back, .nin = 2, .nout = 1, .in = { desc2(YK_F32, 64, 512), in[1] } };
  all_layouts(&b, &t, 0);
  all_layouts(&b, &g, 0);
  bench_close(&b);
}

/* ---- normalisations in blocked layouts ------------------------------------------------------------------------------------- */

static const int64_t norm_shapes[][4] = { { 3, 5, 7, 16 },  { 2, 4, 4, 19 }, { 1, 33, 40, 8 },
                                          { 40, 1, 1, 32 }, { 1, 1, 1, 8 },  { 5, 16, 16, 64 } };

static void test_batch_norm(void **state) {
  (void)state;
  bench b = bench_open(2);
  for (size_t i = 0; i < sizeof norm_shapes / sizeof norm_shapes[0]; i++)
    for (int relu = 0; relu < 2; relu++) {
      const int64_t *s = norm_shapes[i];
      yk_norm_attrs a = { .epsilon = relu ? 1e-5 : 0, .act = relu ? YK_ACT_RELU : YK_ACT_NONE };
      static const yk_norm_attrs plain = { .epsilon = 0.01 };
      yk_desc x = desc4(YK_F32, s[0], s[1], s[2], s[3]), c = desc1(YK_F32, s[3]);
      trial t = { .op = "batch_norm_train", .attrs = &a, .nin = 3, .nout = 3, .lo = 2, .hi = 3, .in = { x, c, c } };
      all_layouts(&b, &t, 1);
      trial n = { .op = "batch_norm_infer", .attrs = &plain, .nin = 5, .nout = 1, .lo = 0.1, .hi = 1, .in = { x, c, c, c, c } };
      all_layouts(&b, &n, 1);
    }
  bench_close(&b);
}

static void test_batch_norm_grad(void **state) {
  (void)state;
  bench b = bench_open(1);
  for (size_t i = 0; i < sizeof norm_shapes / sizeof norm_shapes[0]; i++)
    for (int relu = 0; relu < 2; relu++) {
      const int64_t *s = norm_shapes[i];
      yk_norm_attrs a = { .act = relu ? YK_ACT_RELU : YK_ACT_NONE };
      yk_desc x = desc4(YK_F32, s[0], s[1], s[2], s[3]), c = desc1(YK_F32, s[3]);
      double *y = tied_values(&x);
      trial t = { .op = "batch_norm_grad", .attrs = &a, .nin = 6, .nout = 3, .lo = 0.1, .hi = 1, .in = { x, x, c, c, c, x },
                  .value = { [5] = y } };
      all_layouts(&b, &t, 1 + 2 + 32);
      all_layouts(&b, &t, 2);
      yk__free(y);
    }
  bench_close(&b);
}

static void test_lrn(void **state) {
  (void)state;
  bench b = bench_open(2);
  static const yk_lrn_attrs attrs[] = { { .radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75 },
                                        { .radius = 2, .alpha = 0.5 }, { .radius = 16, .bias = 2, .alpha = 0.1, .beta = 1 },
                                        { .radius = 0 } };
  for (size_t i = 0; i < sizeof norm_shapes / sizeof norm_shapes[0]; i++)
    for (int a = 0; a < 4; a++) {
      const int64_t *s = norm_shapes[i];
      yk_desc x = desc4(YK_F32, s[0], s[1], s[2], s[3]);
      trial t = { .op = "lrn", .attrs = &attrs[a], .nin = 1, .nout = 1, .in = { x }, .tolerance = 1e-5 };
      trial g = { .op = "lrn_grad", .attrs = &attrs[a], .nin = 2, .nout = 1, .in = { x, x }, .tolerance = 1e-5 };
      all_layouts(&b, &t, 1);
      all_layouts(&b, &g, 3);
    }
  bench_close(&b);
}

/* The same kernels on bf16: values rounded to 8 bits on the way in and out. */
static void test_block_bf16(void **state) {
  (void)state;
  bench b = bench_open(1);
  static const yk_norm_attrs relu = { .act = YK_ACT_RELU };
  static const yk_lrn_attrs lrn = { .radius = 2, .alpha = 0.5, .beta = 0.75 };
  static const yk_pool_attrs pool = { .window = { 3, 3 }, .stride = { 2, 2 } };
  yk_desc x = desc4(YK_BF16, 3, 5, 7, 19), c = desc1(YK_F32, 19);
  double *y = tied_values(&x);
  const trial trials[] = {
    { .op = "batch_norm_train", .attrs = &relu, .nin = 3, .nout = 3, .in = { x, c, c }, .tolerance = 0.02 },
    { .op = "batch_norm_grad", .attrs = &relu, .nin = 6, .nout = 3, .lo = 0.1, .hi = 1, .in = { x, x, c, c, c, x },
      .value = { [5] = y }, .tolerance = 0.05 },
    { .op = "lrn", .attrs = &lrn, .nin = 1, .nout = 1, .in = { x }, .tolerance = 0.02 },
    { .op = "lrn_grad", .attrs = &lrn, .nin = 2, .nout = 1, .in = { x, x }, .tolerance = 0.02 },
    { .op = "max_pool", .attrs = &pool, .nin = 1, .nout = 2, .in = { x }, .tolerance = 1e-6 },
  };
  for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) all_layouts(&b, &trials[i], i == 1 ? 1 + 2 + 32 : i == 3 ? 3 : 1);
  yk__free(y);
  bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_layout_numbers),    cmocka_unit_test(test_reorder),
    cmocka_unit_test(test_conv2d),            cmocka_unit_test(test_conv2d_bias_act),
    cmocka_unit_test(test_conv2d_grad_input), cmocka_unit_test(test_conv2d_grad_filter),
    cmocka_unit_test(test_conv2d_transpose),  cmocka_unit_test(test_fixed),
    cmocka_unit_test(test_max_pool),          cmocka_unit_test(test_max_pool_grad),
    cmocka_unit_test(test_avg_pool),          cmocka_unit_test(test_matmul),
    cmocka_unit_test(test_matmul_bias_act),   cmocka_unit_test(test_matmul_grad_bias),
    cmocka_unit_test(test_dense_layout),      cmocka_unit_test(test_batch_norm),
    cmocka_unit_test(test_batch_norm_grad),   cmocka_unit_test(test_lrn),
    cmocka_unit_test(test_block_bf16),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
