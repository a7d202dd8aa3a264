/*
 * test_kernels.c - what the sweep's small cases do not reach: big shapes, teams, instruction sets, failures, queues.
 *
 * Big shapes take the paths that are cut into pieces; the plain loops promise the same bits for every size of the team there.
 * Failing kernels must name the row, the value and the range.
 */
#include "support/sweep.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/loop.h"
#include "device/device.h"
#include "op/registry.h"
#include "support/check.h"
#include "tensor/desc.h"

/* ---- big shapes --------------------------------------------------------------------------------------------- */

static const yk_reduce_attrs first = { .naxes = 1, .axis = { 0 } }, middle = { .naxes = 1, .axis = { 1 } },
                             outer_two = { .naxes = 2, .axis = { 0, 2 } }, mean_last = { .naxes = 1, .axis = { -1 }, .mean = 1 };
static const yk_axis_attrs axis1 = { 1 };
static const yk_transpose_attrs swap = { .rank = 3, .perm = { 0, 2, 1 } }, turn = { .rank = 4, .perm = { 3, 1, 0, 2 } };
static const yk_norm_attrs relu_norm = { .act = YK_ACT_RELU };
static const yk_lrn_attrs lrn = { .radius = 4, .bias = 1, .alpha = 0.001 / 9, .beta = 0.75 };
static const yk_matmul_attrs both_turned = { .transpose_a = 1, .transpose_b = 1, .act = YK_ACT_TANH };
static const yk_random_attrs normal = { .dtype = YK_F32, .rank = 2, .dim = { 301, 217 }, .seed = 7 };
static const yk_pool_attrs pool = { .window = { 3, 3 }, .stride = { 2, 2 } };
static const yk_pad_attrs pad = { .rank = 2, .before = { 3, 5 }, .after = { 1, 2 }, .value = 0.5 };
static const yk_dropout_attrs dropout = { .rate = 0.4, .seed = 5 };

static const yk_rnn_attrs reset_before = { .reset_before = 1 };
static const yk_resize_attrs larger = { { 2, 3 } };
static const yk_roi_attrs roi = { .size = { 7, 7 }, .scale = 12 };
static const yk_nms_attrs nms = { .max_outputs = 100, .iou_threshold = 0.4 };

static const struct { const char *op; yk_case c[3]; } big[] = {
  { "add", { { "f32[70001]; f32[70001]", NULL, 0, 0, 0 }, { "f32[900,71]; f32[71]", NULL, 0, 0, 0 } } },
  { "mul", { { "f32[9000,7]; f32[7]", NULL, 0, 0, 0 }, { "f32[50,1,60]; f32[40,1]", NULL, 0, 0, 0 } } },
  { "exp", { { "T[50003]", NULL, -5, 5, 0 } } },
  { "where", { { "bool[200,1]; f32[200,300]; f32[300]", NULL, 0, 0, 0 } } },
  { "add_n", { { "f32[40007]; f32[40007]; f32[40007]", NULL, 0, 0, 0 } } },
  { "reduce_sum", { { "f32[200000]", NULL, 0, 0, 0 }, { "f32[3000,70]", &first, 0, 0, 0 } } },
  { "reduce_max", { { "f32[60,500,5]", &middle, 0, 0, 0 }, { "f32[300,7,90]", &outer_two, 0, 0, 0 } } },
  { "reduce_mean", { { "f32[7,30000]", &mean_last, 0, 0, 0 } } },
  { "l2_loss", { { "f32[150000]", NULL, 0, 0, 0 } } },
  { "bias_add_grad", { { "f32[40,33,33,5]", NULL, 0, 0, 0 } } },
  { "sum_to", { { "f32[900,90]; f32[90]", NULL, 0, 0, 0 } } },
  { "transpose", { { "f32[12,130,75]", &swap, 0, 0, 0 }, { "f32[20,30,10,17]", &turn, 0, 0, 0 } } },
  { "concat", { { "f32[300,70]; f32[300,130]", &axis1, 0, 0, 0 } } },
  { "pad", { { "f32[400,300]", &pad, 0, 0, 0 } } },
  { "softmax", { { "f32[150,1000]", NULL, -9, 9, 0 } } },
  { "layer_norm_grad", { { "f32[900,70]; f32[900,70]; f32[70]; f32[900]; f32[900]", NULL, 0.5, 1.5, 0 } } },
  { "lrn", { { "f32[500,64]", &lrn, 0, 0, 0 }, { "f32[20,600]", &lrn, 0, 0, 0 } } },
  { "lrn_grad", { { "f32[500,64]; f32[500,64]", &lrn, 0, 0, 0 }, { "f32[20,600]; f32[20,600]", &lrn, 0, 0, 0 } } },
  { "batch_norm_train", { { "f32[40,23,23,20]; f32[20]; f32[20]", &relu_norm, 0.5, 2, 0 },
                          { "f64[4000,33]; f64[33]; f64[33]", NULL, 0, 0, 1e-12 } } },
  { "batch_norm_grad",
    { { "f32[30,20,20,9]; f32[30,20,20,9]; f32[9]; f32[9]; f32[9]; f32[30,20,20,9]", &relu_norm, 0.5, 2, 1e-5 } } },
  { "max_pool", { { "f32[9,33,35,20]", &pool, 0, 0, 0 } } },
  { "avg_pool", { { "f32[9,33,35,20]", &pool, 0, 0, 0 } } },
  { "matmul", { { "f32[130,300]; f32[300,270]", NULL, 0, 0, 0 }, { "f32[6,40,50]; f32[50,60]", NULL, 0, 0, 0 } } },
  { "matmul_bias_act", { { "f32[300,130]; f32[270,300]; f32[270]", &both_turned, -0.2, 0.2, 0 } } },
  { "conv2d", { { "f32[3,20,21,16]; f32[3,3,16,32]", NULL, 0, 0, 0 } } },
  { "conv2d_grad_filter", { { "f32[3,20,21,16]; f32[3,20,21,32]; f32[3,3,16,32]", NULL, 0, 0, 0 } } },
  { "random_normal", { { "i64[]", &normal, 0, 9, 0 }, { "i64[]; f32[301,217]", &normal, 0, 9, 0 } } },
  { "dropout", { { "f32[300,217]; i64[]", &dropout, 0, 9, 0 } } },
  { "top_k", { { "f32[2000,30]", NULL, 0, 0, 0 } } },
  { "sgd_update", { { "T[70001]; T[70001]; T[]", NULL, 0, 0, 0 } } },
  { "lstm", { { "f32[67,9,256]; f32[64,256]; f32[67,64]; f32[67,64]", NULL, -0.3, 0.3, 0 },
              { "f32[40,3,800]; f32[200,800]", NULL, -0.1, 0.1, 0 } } },
  { "lstm_grad", { { "f32[67,9,256]; f32[64,256]; f32[67,9,64]; f32[67,9,64]", NULL, -0.3, 0.3, 0 },
                   { "f32[40,3,800]; f32[200,800]; f32[40,3,200]; f32[40,3,200]", NULL, -0.1, 0.1, 0 } } },
  { "gru", { { "f32[67,9,192]; f32[64,192]; f32[67,64]; bool[67,9]; f32[192]", NULL, -0.3, 0.3, 0 },
             { "f32[40,5,300]; f32[100,300]; f32[40,100]", &reset_before, -0.2, 0.2, 0 } } },
  { "gru_grad", { { "f32[67,9,256]; f32[64,192]; f32[67,9,64]; f32[67,9,64]", NULL, 0.1, 0.2, 0 },
                  { "f32[40,5,400]; f32[100,300]; f32[40,5,100]; f32[40,5,100]", &reset_before, 0.1, 0.15, 0 } } },
  { "simple_rnn", { { "f32[67,9,130]; f32[130,130]", NULL, -0.05, 0.05, 0 } } },
  { "resize_bilinear", { { "f32[5,19,21,20]", &larger, 0, 0, 0 } } },
  { "resize_bilinear_grad", { { "f32[5,38,63,20]", &larger, 0, 0, 0 } } },
  { "roi_align", { { "f32[3,25,30,33]; f32[70,4]; i32[70]", &roi, 0, 2, 0 } } },
  { "roi_align_grad", { { "f32[70,7,7,33]; f32[70,4]; i32[70]; f32[3,25,30,33]", &roi, 0, 2, 0 } } },
  { "non_max_suppression", { { "f32[500,4]; f32[500]", &nms, 0, 1, 0 } } },
};

/* All big cases with the plain loops, which are the last candidate of their ops. */
static void sweep_big(sweep_total *total) {
  sweep_device d;
  sweep_open(yk__driver_find("cpu"), 1, &d);
  d.team = 1;
  d.team_again = 2;
  for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
    const yk_op *op = yk_op_find(big[i].op);
    if (!op) fail_msg("no op %s", big[i].op);
    for (d.only = 0; yk__cpu_candidate_name(op->name, d.only + 1);) d.only++;
    d.name = yk__cpu_candidate_name(op->name, d.only);
    sweep_op(&d, op, big[i].c, total);
  }
  sweep_close(&d);
  if (total->failed || total->refused)
    fail_msg("%llu cases failed, %llu refused", (unsigned long long)total->failed, (unsigned long long)total->refused);
  if (total->values == 0) fail_msg("nothing was compared");
}

/* One core, then two: the bits must not change. */
static void big_shapes_with_each_team(void **state) {
  sweep_total total = { .devices = 1 };
  (void)state;
  sweep_big(&total);
}

/* The lowest instruction set: slower, but its results count too. */
static void big_shapes_with_lowest_isa(void **state) {
  sweep_total total = { .devices = 1 };
  (void)state;
  yk__loop_limit_isa(0);
  sweep_big(&total);
  yk__loop_limit_isa(-1);
}

/* The whole registry on the lowest instruction set: every function of it is another one. */
static void registry_with_lowest_isa(void **state) {
  sweep_total total = { .devices = 1 };
  sweep_device d;
  size_t n;
  const yk_op *const *ops = yk_op_all(&n);
  (void)state;
  yk__loop_limit_isa(0);
  sweep_open(yk__driver_find("cpu"), 1, &d);
  for (size_t i = 0; i < n; i++) {
    const char *name;
    for (d.only = 0; (name = yk__cpu_candidate_name(ops[i]->name, d.only)); d.only++)
      if (strncmp(name, "loop_", 5) == 0 && strcmp(name, "loop_dequeue") != 0) sweep_op(&d, ops[i], ops[i]->cases, &total);
  }
  sweep_close(&d);
  yk__loop_limit_isa(-1);
  if (total.failed) fail_msg("%llu cases failed", (unsigned long long)total.failed);
  if (total.ops < 100) fail_msg("only %llu ops were run", (unsigned long long)total.ops);
}

/* ---- private layouts --------------------------------------------------------------------------------------------- */

static const yk_reduce_attrs channels = { .naxes = 1, .axis = { 3 } };
static const yk_concat_grad_attrs last_second = { 3, 1 };
static const yk_axis_attrs last_axis = { 3 };
static const yk_split_attrs halves = { .axis = 3, .n = 2 };
static const yk_cast_attrs to_half = { YK_BF16 };
static const yk_update_attrs one_group = { .n = 1 };
#define PAIR "T[2,5,7,12]; T[2,5,7,12]"
#define FULL_PAIR "T[2,5,7,16]; T[2,5,7,16]"
/* Channels that fill their blocks, and channels that leave padding. */
static const struct { const char *op; yk_case c[5]; } blocked[] = {
  { "relu", { { "T[2,5,7,16]", NULL, 0, 0, 0 }, { "T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "exp", { { "T[2,5,7,16]", NULL, 0, 0, 0 }, { "T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "add", { { PAIR, NULL, 0, 0, 0 }, { FULL_PAIR, NULL, 0, 0, 0 }, { "T[2,5,7,12]; T[]", NULL, 0, 0, 0 },
             { "T[2,5,7,12]; T[12]", NULL, 0, 0, 0 } } },
  { "mul", { { PAIR, NULL, 0, 0, 0 }, { "T[]; T[2,5,7,12]", NULL, 0, 0, 0 }, { "T[2,5,7,12]; T[1,1,1]", NULL, 0, 0, 0 } } },
  { "div", { { PAIR, NULL, 1, 2, 0 }, { FULL_PAIR, NULL, 1, 2, 0 }, { "T[2,5,7,12]; T[]", NULL, 1, 2, 0 } } },
  { "relu_grad", { { PAIR, NULL, 0, 0, 0 }, { FULL_PAIR, NULL, 0, 0, 0 } } },
  { "tanh_grad", { { PAIR, NULL, 0, 0, 0 } } },
  { "greater", { { PAIR, NULL, 0, 0, 0 } } },
  { "add_n", { { PAIR, NULL, 0, 0, 0 }, { "T[2,5,7,12]; T[2,5,7,12]; T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "cast", { { "T[2,5,7,12]", &to_half, 0, 0, 0 } } },
  { "l2_loss", { { "T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "reduce_sum", { { "T[2,5,7,12]", NULL, 0, 0, 0 }, { "T[2,5,7,12]", &channels, 0, 0, 0 } } },
  { "reduce_mean", { { "T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "reduce_max", { { "T[2,5,7,12]", NULL, -2, -1, 0 } } },
  { "bias_add", { { "T[2,5,7,12]; T[12]", NULL, 0, 0, 0 }, { "T[2,5,7,16]; T[16]", NULL, 0, 0, 0 } } },
  { "bias_add_grad", { { "T[2,5,7,12]", NULL, 0, 0, 0 } } },
  { "concat", { { "T[2,5,7,16]; T[2,5,7,8]; T[2,5,7,24]", &last_axis, 0, 0, 0 },
                { "T[2,5,7,12]; T[2,5,7,16]", &last_axis, 0, 0, 0 },
                { "T[2,5,7,16]; T[3,5,7,16]", NULL, 0, 0, 0 } } },
  { "concat_grad", { { "T[2,5,7,40]; T[2,5,7,16]; T[2,5,7,24]", &last_second, 0, 0, 0 },
                     { "T[2,5,7,28]; T[2,5,7,12]; T[2,5,7,16]", &last_second, 0, 0, 0 } } },
  { "split", { { "T[2,5,7,32]", &halves, 0, 0, 0 }, { "T[2,5,7,24]", &halves, 0, 0, 0 } } },
  { "sgd_update", { { "T[2,5,7,12]; T[2,5,7,12]; T[]", &one_group, 0, 0, 0 } } },
  { "ema_update", { { "T[2,5,7,12]; T[2,5,7,12]; T[]", &one_group, 0, 0, 0 } } },
  { "assign_add", { { PAIR, NULL, 0, 0, 0 } } },
};

/* The layout that oneDNN's convolution gives its result on this machine; 0 if it is the plain one. */
static uint16_t picture_layout(const sweep_device *d) {
  yk_desc in[2] = { yk__desc(YK_F32, YK_SHAPE(2, 9, 9, 32)), yk__desc(YK_F32, YK_SHAPE(3, 3, 32, 32)) }, out = in[0];
  yk_kernel_spec spec = { .size = sizeof spec, .op = "conv2d", .op_version = 1, .nin = 2, .nout = 1, .in = in, .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k;
  out.layout = YK_LAYOUT_ANY;
  CHECK_OK(d->driver->kernel_prepare(d->dev, &spec, &k, &info));
  d->driver->kernel_free(k);
  return out.layout;
}

static void private_layouts(void **state) {
  sweep_total total = { .devices = 1 };
  sweep_device d;
  size_t n;
  const yk_op *const *ops = yk_op_all(&n);
  (void)state;
  sweep_open(yk__driver_find("cpu"), 1, &d);
  d.offer = picture_layout(&d);
  if (d.offer == YK_LAYOUT_PLAIN) print_message("convolutions keep the plain layout on this machine\n");
  for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) sweep_op(&d, yk_op_find(blocked[i].op), blocked[i].c, &total);
  for (size_t i = 0; i < n; i++)                        /* also what others wrote for such layouts */
    if (yk__cpu_candidate_name(ops[i]->name, 0) && strcmp(ops[i]->name, "dequeue") != 0 && strcmp(ops[i]->name, "reorder") != 0)
      sweep_op(&d, ops[i], ops[i]->cases, &total);
  sweep_close(&d);
  if (total.failed) fail_msg("%llu cases failed", (unsigned long long)total.failed);
}

/* ---- one kernel by hand ------------------------------------------------------------------------------------------ */

enum { MAX_ARGS = 8 };
typedef struct one {
  const yk_driver *driver;
  yk_dev *dev;
  yk_stream *stream;
  yk_kernel *kernel;
  yk_kernel_info info;
  yk_desc in[MAX_ARGS], out[MAX_ARGS];
  uint16_t nin, nout;
} one;

static void one_open(one *o, const char *op, const void *attrs, uint16_t nin, uint16_t nout) {
  yk_kernel_spec spec = { .size = sizeof spec, .op = op, .op_version = 1, .nin = nin, .nout = nout, .attrs = attrs,
                          .in = o->in, .out = o->out };
  sweep_device d;
  sweep_open(yk__driver_find("cpu"), 1, &d);
  o->driver = d.driver;
  o->dev = d.dev;
  o->stream = d.stream;
  o->nin = nin;
  o->nout = nout;
  o->info.size = sizeof o->info;
  for (int i = 0; i < nout; i++) o->out[i].layout = YK_LAYOUT_ANY;
  CHECK_OK(o->driver->kernel_prepare(o->dev, &spec, &o->kernel, &o->info));
}

/* Host memory serves as the device's: this is the CPU. */
static yk_code one_run(one *o, void *const *p) {
  yk_mem arg[MAX_ARGS], workspace = { 0 };
  uint64_t failed;
  for (int i = 0; i < o->nin + o->nout; i++) arg[i] = (yk_mem){ p[i], 0, p[i] ? 1 : 0 };
  if (o->info.workspace) CHECK_OK(o->driver->mem_alloc(o->dev, YK_DEVICE_MEM, o->info.workspace, &workspace));
  yk_code launched = o->driver->kernel_launch(o->kernel, o->stream, arg, (uint32_t)o->nin + o->nout, workspace);
  yk_code rc = o->driver->stream_sync(o->stream, &failed);
  o->driver->mem_free(o->dev, workspace);
  return launched != YK_OK ? launched : rc;
}

static void one_close(one *o) {
  o->driver->kernel_free(o->kernel);
  o->driver->stream_close(o->stream);
  o->driver->close(o->dev);
}

#define DESC(type, ...) yk__desc(type, YK_SHAPE(__VA_ARGS__))

static void a_label_out_of_range_is_told(void **state) {
  one o = { .in = { DESC(YK_F32, 3, 4), DESC(YK_I64, 3) }, .out = { DESC(YK_F32, 3), DESC(YK_F32, 3, 4) } };
  float x[12] = { 0 }, loss[3] = { 7, 7, 7 }, back[12] = { 7 };
  int64_t label[3] = { 0, 3, 4 };
  (void)state;
  one_open(&o, "sparse_softmax_xent", NULL, 2, 2);
  CHECK_CODE(one_run(&o, (void *[]){ x, label, loss, back }), YK_EINVAL, "the label of row 2 is 4, outside [0, 4)");
  CHECK_NEAR(loss[0], 7, 0);
  label[2] = 3;
  CHECK_OK(one_run(&o, (void *[]){ x, label, loss, back }));
  CHECK_NEAR(loss[0], log(4), 1e-6);
  one_close(&o);
}

static void an_index_out_of_range_is_told(void **state) {
  one o = { .in = { DESC(YK_F32, 3, 2), DESC(YK_I32, 2) }, .out = { DESC(YK_F32, 2, 2) } };
  float x[6] = { 0 }, y[4] = { 0 };
  int32_t index[2] = { 1, -1 };
  (void)state;
  one_open(&o, "gather", NULL, 2, 1);
  CHECK_CODE(one_run(&o, (void *[]){ x, index, y }), YK_EINVAL, "index -1 at position 1 is outside [0, 3)");
  one_close(&o);
}

static void check_numerics_tells_count_and_first(void **state) {
  yk_check_attrs attrs = { "loss" };
  one o = { .in = { DESC(YK_F32, 5) }, .out = { DESC(YK_F32, 5) } };
  float x[5] = { 1, 2, INFINITY, 4, NAN }, y[5] = { 0 };
  (void)state;
  one_open(&o, "check_numerics", &attrs, 1, 1);
  CHECK_CODE(one_run(&o, (void *[]){ x, y }), YK_EINVAL, "loss: 2 of 5 elements are not finite, the first is element 2: inf");
  x[2] = 3;
  x[4] = 5;
  CHECK_OK(one_run(&o, (void *[]){ x, y }));
  CHECK_NEAR(y[4], 5, 0);
  one_close(&o);
}

static yk_code next(void *self, int64_t rows, void *const *out) {
  int *calls = self;
  for (int64_t i = 0; i < rows; i++) {
    ((float *)out[0])[i] = (float)i + 0.5f;
    ((int32_t *)out[1])[i] = (int32_t)(10 * i);
  }
  return (*calls)++ == 0 ? YK_OK : YK_ECANCELLED;
}

static void dequeue_asks_its_source(void **state) {
  int calls = 0;
  yk_source source = { .self = &calls, .next = next, .ncomponents = 2, .component = { DESC(YK_F32, 1), DESC(YK_I32, 1) } };
  yk_dequeue_attrs attrs = { &source, 3 };
  one o = { .out = { DESC(YK_F32, 3, 1), DESC(YK_I32, 3, 1) } };
  float x[3] = { 0 };
  int32_t y[3] = { 0 };
  (void)state;
  one_open(&o, "dequeue", &attrs, 0, 2);
  CHECK_OK(one_run(&o, (void *[]){ x, y }));
  CHECK_NEAR(x[2], 2.5, 0);
  CHECK_INT(y[2], 20);
  CHECK_INT(one_run(&o, (void *[]){ x, y }), YK_ECANCELLED);
  one_close(&o);
}

/* Sums must not drown: 2^24 + 4 ones added one by one in f32 would stop at 2^24. */
static void long_sums_lose_nothing(void **state) {
  enum { N = (1 << 24) + 4 };
  one o = { .in = { DESC(YK_F32, N) }, .out = { yk__desc(YK_F32, YK_SCALAR) } };
  float *x = malloc(N * sizeof *x), y = 0;
  (void)state;
  for (int i = 0; i < N; i++) x[i] = 1;
  one_open(&o, "reduce_sum", NULL, 1, 1);
  CHECK_OK(one_run(&o, (void *[]){ x, &y }));
  CHECK_NEAR(y, N, 0);
  one_close(&o);
  free(x);
}

/* NaN and infinities through the vector functions. */
static void special_values_go_through(void **state) {
  static const struct { const char *op; float x[6], y[6]; } cases[] = {
    { "exp", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { INFINITY, 0, NAN, 1, INFINITY, 0 } },
    { "log", { INFINITY, -1, NAN, 0, 1, -INFINITY }, { INFINITY, NAN, NAN, -INFINITY, 0, NAN } },
    { "tanh", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { 1, -1, NAN, 0, 1, -1 } },
    { "sigmoid", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { 1, 0, NAN, 0.5, 1, 0 } },
    { "softplus", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { INFINITY, 0, NAN, 0.693147182f, 200, 0 } },
    { "relu", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { INFINITY, 0, NAN, 0, 200, 0 } },
    { "sign", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { 1, -1, NAN, 0, 1, -1 } },
    { "elu", { INFINITY, -INFINITY, NAN, 0, 200, -200 }, { INFINITY, -1, NAN, 0, 200, -1 } } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    one o = { .in = { DESC(YK_F32, 6) }, .out = { DESC(YK_F32, 6) } };
    float x[6], y[6];
    memcpy(x, cases[i].x, sizeof x);
    one_open(&o, cases[i].op, NULL, 1, 1);
    CHECK_OK(one_run(&o, (void *[]){ x, y }));
    for (int j = 0; j < 6; j++)
      if (!(y[j] == cases[i].y[j] || (isnan(y[j]) && isnan(cases[i].y[j]))))
        fail_msg("%s(%g): got %.9g, expected %.9g", cases[i].op, (double)x[j], (double)y[j], (double)cases[i].y[j]);
    one_close(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(big_shapes_with_each_team), cmocka_unit_test(big_shapes_with_lowest_isa),
    cmocka_unit_test(registry_with_lowest_isa), cmocka_unit_test(private_layouts),
    cmocka_unit_test(a_label_out_of_range_is_told), cmocka_unit_test(an_index_out_of_range_is_told),
    cmocka_unit_test(check_numerics_tells_count_and_first), cmocka_unit_test(dequeue_asks_its_source),
    cmocka_unit_test(long_sums_lose_nothing), cmocka_unit_test(special_values_go_through) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
