/*
 * trainer.c - see trainer.h. The towers are written out here, so that dropout stands in them.
 *
 * On four devices each has a tower of its own with a quarter of the batch; variables stay at home.
 */
#include "trainer.h"
#include "folder.h"

kind kinds[16];
int nkinds;

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

static yk_dataset *pictures;

void trainer_setup(void) {
  add_kinds();
  CHECK_OK(yk_dataset_shapes10(3, YK_TRAIN, PICTURES, &pictures));
}

void trainer_teardown(void) {
  yk_dataset_free(pictures);
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

void start(run *r, const kind *k, int devices, bool initialise) {
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

void stop(run *r) {
  yk_step_free(r->step);
  yk_session_close(r->s);
  yk_graph_free(r->g);
  yk_queue_close(r->queue);
}

void train(run *r, int n, float *loss) {
  const yk_tensor *const *got;
  for (int i = 0; i < n; i++) {
    CHECK_OK(yk_step_run(r->step, NULL, &got));
    loss[i] = (float)yk_tensor_at(got[0], 0);
  }
}

void save_as(run *r, yk_saver *s, int64_t step, bool background) {
  char text[48];
  yk_position p = yk_queue_position(r->queue);
  snprintf(text, sizeof text, "%lld %lld", (long long)p.epoch, (long long)p.example);
  CHECK_OK((background ? yk_saver_begin : yk_saver_save)(s, r->s, step, 1, &(yk_note){ "input", text }));
}

int64_t restore_newest(run *r) {
  yk_checkpoint *c;
  yk_position p;
  char *end;
  CHECK_OK(yk_checkpoint_latest(folder, &c));
  const char *text = yk_checkpoint_note(c, "input");
  assert_non_null(text);
  int64_t step = yk_checkpoint_step(c);
  p.epoch = strtoll(text, &end, 10);
  p.example = strtoll(end, NULL, 10);
  CHECK_INT(p.epoch * PICTURES + p.example, step * BATCH);
  CHECK_OK(yk_queue_seek(r->queue, p));
  CHECK_OK(yk_checkpoint_restore(c, r->s, NULL));
  yk_checkpoint_close(c);
  return step;
}

void same_variables(run *a, run *b) {
  size_t n = yk_variable_count(a->g);
  assert_true(n > 8 && n < 64);
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
