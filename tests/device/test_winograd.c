/*
 * test_winograd.c - Winograd convolutions against the double references, on every instruction set of this machine.
 *
 * Sizes that do and do not fill the last tile, pictures smaller than a tile, one-sided and missing padding, channels that fill
 * one panel of a product, several, and one and a half; all layouts of both pictures; one core and two, bit for bit alike.
 * Every case must be taken: a kernel that refused would be tested nowhere.
 */
#include <stdlib.h>
#include "dnnl_bench.h"
#include "backend/cpu/loop.h"

typedef struct wino_case { int64_t n, h, w, c, k, o; yk_conv2d_attrs a; } wino_case;
static const wino_case cases[] = {
  { 2, 8, 8, 16, 3, 16, { .groups = 0 } },
  { 3, 13, 9, 48, 3, 32, { .groups = 0 } },                          /* tiles overhang on two sides */
  { 2, 12, 12, 16, 5, 48, { .groups = 0 } },
  { 2, 16, 16, 64, 5, 32, { .padding = YK_VALID } },
  { 2, 10, 15, 32, 3, 64, { .padding = YK_VALID } },
  { 2, 10, 10, 16, 3, 32, { .padding = YK_EXPLICIT, .pad = { 0, 2, 2, 1 } } },
  { 5, 4, 4, 32, 3, 32, { .groups = 0 } },
  { 24, 12, 12, 64, 3, 16, { .groups = 0 } },                        /* several blocks of tiles, the last one short */
  { 4, 14, 10, 64, 5, 64, { .groups = 0 } },
};

static yk_desc filter_of(const wino_case *v) { return desc4(YK_F32, v->k, v->k, v->c, v->o); }

static yk_desc output_of(const wino_case *v) {
  yk_desc in[2] = { desc4(YK_F32, v->n, v->h, v->w, v->c), filter_of(v) }, out = { 0 };
  yk_infer infer = { .in = in, .nin = 2, .out = &out, .nout = 1, .attrs = &v->a };
  assert_int_equal(yk_op_find("conv2d")->infer(&infer), YK_OK);
  return out;
}

/* With the pictures among the inputs (bits of `pictures`) plain, and blocked by 8 and 16. */
static void each_layout(bench *b, const trial *given, uint32_t pictures) {
  static const int block[] = { 0, 8, 16 };
  for (int l = 0; l < 3; l++) {
    trial t = *given;
    t.family = "winograd";
    for (int i = 0; i < t.nin; i++)
      if (block[l] && (pictures >> i & 1)) t.in[i].layout = picture_layout(&t.in[i], block[l]);
    try_kernel(b, &t);
  }
}

static void each_op(bench *b, const wino_case *v) {
  const yk_desc x = desc4(YK_F32, v->n, v->h, v->w, v->c), w = filter_of(v), y = output_of(v);
  trial forward = { .op = "conv2d", .attrs = &v->a, .nin = 2, .nout = 1, .in = { x, w } };
  trial input = { .op = "conv2d_grad_input", .attrs = &v->a, .nin = 3, .nout = 1, .like = 4, .in = { y, w, x } };
  trial filter = { .op = "conv2d_grad_filter", .attrs = &v->a, .nin = 3, .nout = 1, .like = 4, .in = { x, y, w } };
  each_layout(b, &forward, 1);
  each_layout(b, &input, 1);
  each_layout(b, &filter, 3);
  each_layout(b, &filter, 1);
  filter.op = "conv2d_grad_filter_bias";
  filter.nout = 2;
  each_layout(b, &filter, 3);
}

/* Under a sanitizer, told by YOKE_TEST_QUICK, only the best one: the source is the same. */
static void with_each_instruction_set(void **state) {
  (void)state;
  for (int level = getenv("YOKE_TEST_QUICK") ? 2 : 0; level <= 2; level++) {
    yk__loop_limit_isa(level);
    bench b = bench_open(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) each_op(&b, &cases[i]);
    bench_close(&b);
  }
  yk__loop_limit_isa(-1);
}

static void with_bias_and_activation(void **state) {
  (void)state;
  bench b = bench_open(2);
  static const int acts[] = { YK_ACT_NONE, YK_ACT_RELU, YK_ACT_RELU6 };
  for (int i = 0; i < 3; i++) {
    yk_conv2d_attrs a = { .act = acts[i] };
    trial t = { .op = "conv2d_bias_act", .attrs = &a, .nin = 3, .nout = 1,
                .in = { desc4(YK_F32, 2, 9, 9, 16), desc4(YK_F32, 3, 3, 16, 32), desc1(YK_F32, 32) } };
    each_layout(&b, &t, 1);
  }
  bench_close(&b);
}

static void transposed(void **state) {
  (void)state;
  bench b = bench_open(2);
  static const yk_conv2d_attrs same, valid = { .padding = YK_VALID };
  trial t = { .op = "conv2d_transpose", .attrs = &same, .nin = 2, .nout = 1,
              .in = { desc4(YK_F32, 2, 10, 10, 32), desc4(YK_F32, 3, 3, 16, 32) } };
  each_layout(&b, &t, 1);
  t.attrs = &valid;
  each_layout(&b, &t, 1);
  bench_close(&b);
}

/* What it does not take must go to another kernel, not be computed wrongly. */
static void refusals(void **state) {
  (void)state;
  bench b = bench_open(1);
  static const struct { int64_t c, k, o; yk_conv2d_attrs a; yk_dtype t; } no[] = {
    { 16, 3, 16, { .stride = { 2, 1 } }, YK_F32 }, { 16, 3, 16, { .dilation = { 1, 2 } }, YK_F32 }, { 32, 3, 32, { .groups = 2 }, YK_F32 },
    { 16, 1, 16, { .groups = 0 }, YK_F32 }, { 16, 7, 16, { .groups = 0 }, YK_F32 }, { 3, 3, 16, { .groups = 0 }, YK_F32 },
    { 16, 3, 18, { .groups = 0 }, YK_F32 }, { 16, 3, 16, { .groups = 0 }, YK_F64 }, { 16, 3, 16, { .groups = 0 }, YK_BF16 },
    { 16, 3, 16, { .padding = YK_EXPLICIT, .pad = { 3, 0, 0, 0 } }, YK_F32 } };
  for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
    int64_t groups = no[i].a.groups ? no[i].a.groups : 1;
    trial t = { .op = "conv2d", .attrs = &no[i].a, .nin = 2, .nout = 1, .may_refuse = 1, .family = "winograd",
                .in = { desc4(no[i].t, 2, 12, 12, no[i].c), desc4(no[i].t, no[i].k, no[i].k, no[i].c / groups, no[i].o) } };
    if (try_kernel(&b, &t)) fail_msg("case %zu was taken by %s", i, t.impl);
    b.compared++;
  }
  bench_close(&b);
}

/* ---- the same bits from one core and from two -------------------------------------------------------------------- */

static void outputs(const char *op, const yk_desc *in, int nin, uint32_t cores, float *out, size_t bytes) {
  static const yk_conv2d_attrs a;
  bench b = bench_open(cores);
  yk_desc ins[3] = { in[0], in[1], nin > 2 ? in[2] : in[0] }, outs = { 0 };
  yk_infer infer = { .in = ins, .nin = (uint16_t)nin, .out = &outs, .nout = 1, .attrs = &a };
  assert_int_equal(yk_op_find(op)->infer(&infer), YK_OK);
  assert_int_equal((size_t)yk__desc_count(&outs) * sizeof(float), bytes);
  outs.layout = YK_LAYOUT_ANY;
  yk_kernel_spec spec = { .size = sizeof spec, .op = op, .op_version = 1, .nin = (uint16_t)nin, .nout = 1, .attrs = &a, .in = ins, .out = &outs };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k = NULL;
  assert_int_equal(b.driver->kernel_prepare(b.dev, &spec, &k, &info), YK_OK);
  assert_string_equal(info.impl, strcmp(op, "conv2d") == 0 ? "winograd:conv2d" : "winograd:conv2d_grad_filter");
  void *arg[4];
  for (int i = 0; i < nin; i++) {
    int64_t n = yk__desc_count(&ins[i]);
    float *v = arg[i] = yk__calloc((size_t)n, sizeof *v);
    assert_non_null(v);
    for (int64_t j = 0; j < n; j++) v[j] = yk__rng_uniform_f32(3, (uint64_t)i, 0, (uint64_t)j) - 0.5f;
  }
  arg[nin] = out;
  int before = yk__team();
  yk__team_set((int)cores);
  assert_int_equal(launch(&b, k, arg, (uint32_t)nin + 1, info.workspace), YK_OK);
  yk__team_set(before);
  for (int i = 0; i < nin; i++) yk__free(arg[i]);
  b.driver->kernel_free(k);
  b.compared = 1;
  bench_close(&b);
}

static void same_bits_from_any_team(void **state) {
  (void)state;
  const yk_desc x = desc4(YK_F32, 20, 10, 13, 32), w = desc4(YK_F32, 3, 3, 32, 32);
  const yk_desc forward[] = { x, w }, filter[] = { x, x, w };
  const size_t big = sizeof(float) * 20 * 10 * 13 * 32, small = sizeof(float) * 9 * 32 * 32;
  float *one = yk__alloc(big), *more = yk__alloc(big);
  assert_non_null(one);
  assert_non_null(more);
  for (uint32_t cores = 2; cores <= 3; cores++) {
    outputs("conv2d", forward, 2, 1, one, big);
    outputs("conv2d", forward, 2, cores, more, big);
    assert_memory_equal(one, more, big);
    outputs("conv2d_grad_filter", filter, 3, 1, one, small);
    outputs("conv2d_grad_filter", filter, 3, cores, more, small);
    assert_memory_equal(one, more, small);
  }
  yk__free(one);
  yk__free(more);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(with_each_instruction_set), cmocka_unit_test(with_bias_and_activation), cmocka_unit_test(transposed),
    cmocka_unit_test(refusals),                  cmocka_unit_test(same_bits_from_any_team),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
