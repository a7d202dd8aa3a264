/*
 * Training 2k steps is training k steps, saving, and training k steps in a new graph and session from what was saved: every loss and
 * every variable, bit for bit, for each optimizer, with dropout, augmentation, averages and statistics, on one device and on four.
 * What four devices saved is read on one, and the reverse.
 */
#include "folder.h"

#include <yoke/yoke.h>

enum { STEPS = 4, BATCH = 8, PICTURES = 22, MOST_VALUES = 64 };

typedef struct kind { const char *name; yk_optimizer opt; } kind;
static kind kinds[16];
static int nkinds;

static void add_kind(const char *name, yk_optimizer opt) {
  assert_true(nkinds < 16);
  kinds[nkinds++] = (kind){ name, opt };
}

static void add_kinds(void) {
  add_kind("sgd", YK_SGD(0.05));
  add_kind("momentum", YK_MOMENTUM(0.05, 0.9));
  add_kind("nesterov", YK_NESTEROV(0.05, 0.9));
  add_kind("adam", YK_ADAM(0.01));
  add_kind("adamw", YK_ADAMW(0.01, 0.1));
  add_kind("lamb", YK_LAMB(0.01, 0.1));
  add_kind("rmsprop", YK_RMSPROP(0.01));
  add_kind("adagrad", YK_ADAGRAD(0.01));
  add_kind("adadelta", YK_ADADELTA(1));
  add_kind("ftrl", YK_FTRL(0.01));
  add_kind("keras sgd", YK_KERAS_SGD(0.05, 0.9));
  add_kind("keras rmsprop", YK_KERAS_RMSPROP(0.01));
}

typedef struct run {
  const kind *k;
  int devices;
  yk_queue *queue;
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  yk_value loss, train, init;
} run;

static yk_dataset *pictures;

static int setup(void **state) {
  add_kinds();
  CHECK_OK(yk_dataset_shapes10(3, YK_TRAIN, PICTURES, &pictures));
  return folder_setup(state);
}

static int teardown(void **state) {
  yk_dataset_free(pictures);
  return folder_teardown(state);
}

/* ---- a network with everything that has a state ---- */

static yk_value logits_of(yk_graph *g, yk_value x) {
  YK_VARIABLE_SCOPE(g, "conv") {
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3, 3, 3, 8), YK_TRUNCATED_NORMAL(0.1), NULL);
    x = yk_conv2d(g, x, yk_read(w), &(yk_conv2d_attrs){ .stride = { 2, 2 } });
    x = yk_relu(g, yk_batch_norm(g, x, &(yk_batch_norm_options){ .training = true }));
  }
  x = yk_dropout(g, yk_flatten(g, x), 0.4, 0);
  YK_VARIABLE_SCOPE(g, "dense") {
    yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(12 * 12 * 8, 10), YK_GLOROT_UNIFORM, NULL);
    yk_variable *b = yk_get_variable(g, "b", YK_F32, YK_SHAPE(10), YK_ZEROS, NULL);
    x = yk_bias_add(g, yk_matmul(g, x, yk_read(w), NULL), yk_read(b));
  }
  return x;
}

static void tower(run *r, int i, yk_value *loss, yk_gradient *grads, size_t *n) {
  yk_graph *g = r->g;
  yk_value batch[4];
  char name[16];
  yk_scope_options reuse = { .reuse = i > 0 ? YK_REUSE : YK_REUSE_INHERIT, .no_name_scope = true };
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(g, yk_queue_source(r->queue), BATCH / r->devices, batch); }
  snprintf(name, sizeof name, r->devices == 1 ? "/cpu:0" : "/gpu:%d", i);
  yk_variable_scope_enter(g, yk_get_variable_scope(g), &reuse);
  YK_DEVICE(g, name) {
    yk_value sum = yk_reduce_sum(g, yk_sparse_softmax_cross_entropy(g, logits_of(g, batch[0]), batch[1]), NULL);
    *loss = yk_mul(g, sum, yk_scalar_f32(g, 1.0f / BATCH));
  }
  yk_variable_scope_pop(g);
  *n = yk_compute_gradients(g, *loss, 0, NULL, grads, 16);
}

static void build(run *r) {
  static yk_gradient grads[4][16], sum[16];
  const yk_gradient *each[4] = { grads[0], grads[1], grads[2], grads[3] };
  yk_value loss[4], last[3];
  yk_graph *g = r->g;
  size_t n = 0;
  yk_graph_set_seed(g, 11);
  for (int i = 0; i < r->devices; i++) tower(r, i, &loss[i], grads[i], &n);
  YK_DEVICE(g, "/cpu:0") {
    yk_sum_gradients(g, (size_t)r->devices, each, n, sum);
    last[0] = yk_apply_gradients(g, &r->k->opt, n, sum, yk_global_step(g));
    last[1] = yk_update_ops(g);
    YK_CONTROL(g, 1, last) { last[2] = yk_moving_average(g, 0.9, yk_global_step(g), 0, NULL); }
    r->train = yk_group(g, 3, last);
    r->loss = r->devices == 1 ? yk_identity(g, loss[0]) : yk_add_n(g, (size_t)r->devices, loss);
  }
  r->init = yk_global_variables_initializer(g);
  CHECK_OK(yk_graph_status(g));
}

static void start(run *r, const kind *k, int devices, bool initialise) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_queue_options q = YK_QUEUE_OPTIONS_INIT;
  *r = (run){ .k = k, .devices = devices };
  q.augment = YK_AUGMENT_CIFAR_TRAIN;
  q.image_size = 24;
  q.shuffle = true;
  q.seed = 5;
  q.threads = 2;
  q.capacity = 40;
  o.virtual_gpus = devices > 1 ? devices : 0;
  o.virtual_gpu_bytes = 64 << 20;
  CHECK_OK(yk_queue_open(pictures, &q, &r->queue));
  CHECK_OK(yk_graph_new(&r->g));
  build(r);
  CHECK_OK(yk_session_open(r->g, &o, &r->s));
  if (initialise) CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &r->init, NULL));
  CHECK_OK(yk_step_prepare(r->s, 0, NULL, 1, &r->loss, 1, &r->train, &r->step));
}

static void stop(run *r) {
  yk_step_free(r->step);
  yk_session_close(r->s);
  yk_graph_free(r->g);
  yk_queue_close(r->queue);
}

static void train(run *r, int n, float *loss) {
  const yk_tensor *const *got;
  for (int i = 0; i < n; i++) {
    CHECK_OK(yk_step_run(r->step, NULL, &got));
    loss[i] = (float)yk_tensor_at(got[0], 0);
  }
}

/* ---- saving and going on ---- */

static void save(run *r, bool background) {
  yk_saver *s;
  char text[48];
  yk_position p = yk_queue_position(r->queue);
  snprintf(text, sizeof text, "%lld %lld", (long long)p.epoch, (long long)p.example);
  CHECK_OK(yk_saver_open(folder, NULL, &s));
  CHECK_OK((background ? yk_saver_begin : yk_saver_save)(s, r->s, STEPS, 1, &(yk_note){ "input", text }));
  if (background) {                                  /* what is trained meanwhile is not in it */
    float loss[2];
    train(r, 2, loss);
  }
  CHECK_OK(yk_saver_close(s));
}

static void restore(run *r) {
  yk_checkpoint *c;
  yk_position p;
  char *end;
  CHECK_OK(yk_checkpoint_latest(folder, &c));
  const char *text = yk_checkpoint_note(c, "input");
  assert_non_null(text);
  p.epoch = strtoll(text, &end, 10);
  p.example = strtoll(end, NULL, 10);
  CHECK_INT(p.epoch * PICTURES + p.example, STEPS * BATCH);
  CHECK_OK(yk_queue_seek(r->queue, p));
  CHECK_OK(yk_checkpoint_restore(c, r->s, NULL));
  yk_checkpoint_close(c);
}

static void same_losses(const float *got, const float *want, const run *r) {
  for (int i = 0; i < STEPS; i++)
    if (memcmp(&got[i], &want[i], sizeof *got) != 0)
      fail_msg("%s on %d devices: loss %d after going on is %.9g, without a stop it was %.9g", r->k->name, r->devices, i, (double)got[i],
               (double)want[i]);
}

static void same_variables(run *a, run *b) {
  size_t n = yk_variable_count(a->g);
  assert_true(n > 8 && n < MOST_VALUES);
  CHECK_INT(yk_variable_count(b->g), n);
  for (size_t i = 0; i < n; i++) {
    const yk_variable *v = yk_variable_get(a->g, i);
    yk_tensor *x, *y;
    CHECK_OK(yk_variable_fetch(a->s, v, &x));
    CHECK_OK(yk_variable_fetch(b->s, yk_variable_get(b->g, i), &y));
    if (memcmp(yk_tensor_data(x), yk_tensor_data(y), yk_tensor_bytes(x)) != 0)
      fail_msg("%s: %s differs, as %.17g and %.17g", a->k->name, yk_variable_name(v), yk_tensor_at(x, 0), yk_tensor_at(y, 0));
    yk_tensor_free(x);
    yk_tensor_free(y);
  }
}

/* `initialise`: run the initializer before the values are restored over it, or never. */
static void check(const kind *k, int devices, bool initialise) {
  run whole, first, second;
  float want[2 * STEPS], early[STEPS], late[STEPS];
  folder_empty(NULL);
  start(&whole, k, devices, true);
  train(&whole, 2 * STEPS, want);
  start(&first, k, devices, true);
  train(&first, STEPS, early);
  same_losses(early, want, &first);
  save(&first, initialise);
  stop(&first);
  start(&second, k, devices, initialise);
  restore(&second);
  train(&second, STEPS, late);
  same_losses(late, want + STEPS, &second);
  same_variables(&whole, &second);
  if (memcmp(&want[0], &want[STEPS], sizeof want[0]) == 0) fail_msg("the loss does not change");
  stop(&second);
  stop(&whole);
}

static void test_on_one(void **state) {
  (void)state;
  for (int i = 0; i < nkinds; i++) check(&kinds[i], 1, i % 2 == 0);
}

static void test_on_four(void **state) {
  (void)state;
  for (int i = 0; i < nkinds; i++) check(&kinds[i], 4, i % 2 == 1);
}

/* Saved on `from` devices, read on `to`: all variables are what they were. */
static void moves(int from, int to) {
  run a, b;
  float loss[STEPS];
  folder_empty(NULL);
  start(&a, &kinds[1], from, true);
  train(&a, STEPS, loss);
  save(&a, false);
  start(&b, &kinds[1], to, false);
  restore(&b);
  same_variables(&a, &b);
  train(&b, 1, loss);
  stop(&b);
  stop(&a);
}

static void test_other_devices(void **state) {
  (void)state;
  moves(4, 1);
  moves(1, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_on_one), cmocka_unit_test(test_on_four), cmocka_unit_test(test_other_devices) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
