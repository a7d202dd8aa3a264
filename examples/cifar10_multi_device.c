/*
 * cifar10_multi_device.c - the CIFAR-10 tutorial's training loop on several devices.
 *
 * Variables live on /cpu:0. Each GPU builds a tower that borrows them and takes
 * its own batch from a shared queue; gradients come back to the CPU, are averaged
 * and applied there; repeat.
 *
 *   cifar10_multi_device [GPUS [STEPS [BATCH_PER_GPU [CIFAR_FOLDER]]]]
 *
 * GPUs are emulated on the host's cores. Without a folder the built-in pictures are used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <yoke/yoke.h>

enum { CLASSES = 10, MAX_GPUS = 8, VARIABLES = 10 };

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A variable at home, with weight decay in the losses collection if asked. */
static yk_value variable_on_cpu(yk_graph *g, const char *name, yk_shape shape, yk_init init, double decay) {
  yk_variable *v = NULL;
  YK_DEVICE(g, "/cpu:0") { v = yk_get_variable(g, name, YK_F32, shape, init, NULL); }
  if (v == NULL) return (yk_value){ 0 };
  if (decay > 0) yk_add_to_collection(g, YK_LOSSES, yk_mul(g, yk_l2_loss(g, yk_read(v)), yk_scalar_f32(g, (float)decay)));
  return yk_read(v);
}

static yk_value conv(yk_graph *g, const char *name, yk_value x, int64_t in, double bias) {
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(g, name) {
    yk_value w = variable_on_cpu(g, "weights", YK_SHAPE(5, 5, in, 64), YK_TRUNCATED_NORMAL(5e-2), 0);
    y = yk_relu(g, yk_bias_add(g, yk_conv2d(g, x, w, NULL), variable_on_cpu(g, "biases", YK_SHAPE(64), YK_CONSTANT(bias), 0)));
  }
  return y;
}

static yk_value dense(yk_graph *g, const char *name, yk_value x, int64_t in, int64_t out, double deviation, double bias, double decay) {
  yk_value y = { 0 };
  YK_VARIABLE_SCOPE(g, name) {
    yk_value w = variable_on_cpu(g, "weights", YK_SHAPE(in, out), YK_TRUNCATED_NORMAL(deviation), decay);
    y = yk_bias_add(g, yk_matmul(g, x, w, NULL), variable_on_cpu(g, "biases", YK_SHAPE(out), YK_CONSTANT(bias), 0));
  }
  return y;
}

static yk_value inference(yk_graph *g, yk_value images) {
  const yk_pool_attrs pool = { .window = { 3, 3 }, .stride = { 2, 2 } };
  const yk_lrn_attrs lrn = { .radius = 4, .bias = 1.0, .alpha = 0.001 / 9.0, .beta = 0.75 };
  yk_value x = conv(g, "conv1", images, 3, 0.0);
  x = yk_lrn(g, yk_max_pool(g, x, &pool), &lrn);
  x = conv(g, "conv2", x, 64, 0.1);
  x = yk_max_pool(g, yk_lrn(g, x, &lrn), &pool);
  x = yk_relu(g, dense(g, "local3", yk_flatten(g, x), 6 * 6 * 64, 384, 0.04, 0.1, 0.004));
  x = yk_relu(g, dense(g, "local4", x, 384, 192, 0.04, 0.1, 0.004));
  return dense(g, "softmax_linear", x, 192, CLASSES, 1 / 192.0, 0.0, 0);
}

/* The tower's total loss: mean cross entropy plus the penalties made under its name scope. */
static yk_value tower_loss(yk_graph *g, const yk_source *queue, int64_t batch) {
  yk_value data[4], parts[8];
  size_t n;
  YK_DEVICE(g, "/cpu:0") { yk_dequeue(g, queue, batch, data); }
  yk_value logits = inference(g, data[0]);
  n = yk_get_collection(g, YK_LOSSES, yk_name_scope(g), parts, 7);
  parts[n++] = yk_reduce_mean(g, yk_sparse_softmax_cross_entropy(g, logits, data[1]), NULL);
  return yk_add_n(g, n, parts);
}

static yk_value build(yk_graph *g, const yk_source *queue, int gpus, int64_t batch, yk_value *loss) {
  yk_gradient tower[MAX_GPUS][VARIABLES], mean[VARIABLES];
  const yk_gradient *towers[MAX_GPUS];
  yk_value op[2] = { { 0 } };
  YK_DEVICE(g, "/cpu:0") {
    yk_variable *global_step = yk_global_step(g);
    yk_optimizer sgd = YK_SGD(0.1);
    sgd.learning_rate = yk_exponential_decay(g, 0.1, global_step, 136718, 0.1, true);
    for (int i = 0; i < gpus; i++) {
      char device[32], name[32];
      snprintf(device, sizeof device, "/gpu:%d", i);
      snprintf(name, sizeof name, "tower_%d", i);
      YK_DEVICE(g, device) {
        YK_NAME_SCOPE(g, name) {
          *loss = tower_loss(g, queue, batch);
          yk_reuse_variables(yk_get_variable_scope(g));        /* the next tower borrows what this one made */
          yk_compute_gradients(g, *loss, 0, NULL, tower[i], VARIABLES);
          towers[i] = tower[i];
        }
      }
    }
    yk_sum_gradients(g, (size_t)gpus, towers, VARIABLES, mean);
    for (int v = 0; v < VARIABLES; v++) mean[v].grad = yk_mul(g, mean[v].grad, yk_scalar_f32(g, 1.0f / (float)gpus));
    op[0] = yk_apply_gradients(g, &sgd, VARIABLES, mean, global_step);
    YK_CONTROL(g, 1, op) { op[1] = yk_moving_average(g, 0.9999, global_step, 0, NULL); }
  }
  return yk_group(g, 2, op);
}

static int train(yk_session *s, yk_value init, yk_value step_op, yk_value loss, int gpus, int64_t batch, int steps) {
  yk_step *step;
  const yk_tensor *const *out;
  if (yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL) != YK_OK) return 1;
  if (yk_step_prepare(s, 0, NULL, 1, &loss, 1, &step_op, &step) != YK_OK) return 1;
  for (int i = 0; i < steps; i++) {
    double start = seconds(), spent;
    if (yk_step_run(step, NULL, &out) != YK_OK) break;
    spent = seconds() - start;
    if (i % 10 == 0 || i + 1 == steps)
      printf("step %d, loss = %.2f (%.1f examples/sec; %.3f sec/batch)\n", i, yk_tensor_at(out[0], 0), (double)(batch * gpus) / spent,
             spent / gpus);
  }
  yk_step_free(step);
  return yk_error_message()[0] != '\0';
}

/* Argument i as a whole number, `dflt` if it is not given, -1 if it is not a number. */
static int number(int argc, char **argv, int i, int dflt) {
  char *end;
  long n;
  if (i >= argc) return dflt;
  n = strtol(argv[i], &end, 10);
  return *argv[i] == '\0' || *end != '\0' || n < 1 || n > 1000000 ? -1 : (int)n;
}

int main(int argc, char **argv) {
  int gpus = number(argc, argv, 1, 2), steps = number(argc, argv, 2, 100), batch = number(argc, argv, 3, 64);
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_queue_options qo = YK_QUEUE_OPTIONS_INIT;
  yk_dataset *data = NULL;
  yk_queue *queue = NULL;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  int rc = 1;
  if (gpus < 1 || gpus > MAX_GPUS || steps < 1 || batch < 1) {
    fprintf(stderr, "usage: cifar10_multi_device [GPUS 1-%d [STEPS [BATCH_PER_GPU [CIFAR_FOLDER]]]]\n", MAX_GPUS);
    return 2;
  }
  qo.augment = YK_AUGMENT_CIFAR_TRAIN;
  qo.image_size = 24;
  qo.shuffle = true;
  qo.seed = 1;
  so.virtual_gpus = gpus;
  if ((argc > 4 ? yk_dataset_cifar10(argv[4], YK_TRAIN, &data) : yk_dataset_shapes10(1, YK_TRAIN, 0, &data)) == YK_OK &&
      yk_queue_open(data, &qo, &queue) == YK_OK && yk_graph_new(&g) == YK_OK) {
    yk_value loss = { 0 }, step = build(g, yk_queue_source(queue), gpus, batch, &loss), init = yk_global_variables_initializer(g);
    if (yk_session_open(g, &so, &s) == YK_OK) rc = train(s, init, step, loss, gpus, batch, steps);
  }
  if (rc != 0) fprintf(stderr, "cifar10_multi_device: %s\n", yk_error_message());
  yk_session_close(s);
  yk_graph_free(g);
  yk_queue_close(queue);
  yk_dataset_free(data);
  return rc;
}
