/*
 * shared_lstm.c - one layer on two devices: a shared LSTM reads input a on one GPU and input b on another, at the same time.
 *
 * Do two users write alike? A layer encodes both texts, one on each device; what comes of them is joined on the CPU. The weights are the same, so
 * their gradient is the sum of both branches: the program compares it with that of one device, and leaves a trace that shows the branches side by
 * side (chrome://tracing, Perfetto). The GPUs are emulated here, so that it runs anywhere.
 *
 *   shared_lstm [STEPS [BATCH [TRACE]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yoke/yoke.h>

enum { TIME = 140, FEATURES = 256, UNITS = 64, MOST = 8 };

typedef struct pair {
  yk_keras *k;
  yk_session *s;
  yk_value in[2], target, fetch[1 + MOST], train;          /* the loss, then the gradients */
  size_t ngrads;
  yk_step *step;
} pair;

/* The step with branch a on device[0], branch b on device[1], everything else on the CPU. */
static yk_code build(pair *p, int64_t batch, const char *const device[2]) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  YK_TRY(yk_keras_new(1, &p->k));
  yk_sym text = yk_input(p->k, &(yk_input_config){ .name = "text", .shape = YK_SHAPE(TIME, FEATURES) });
  yk_sym both = yk_input(p->k, &(yk_input_config){ .name = "both", .shape = YK_SHAPE(2 * UNITS) });
  yk_sym code = yk_apply(yk_layer_lstm(p->k, &(yk_recurrent_config){ .name = "shared", .units = UNITS }), text);
  yk_sym alike = yk_apply(yk_layer_dense(p->k, &(yk_dense_config){ .name = "alike", .units = 1 }), both);
  yk_network *encoder = yk_network_new(p->k, "encoder", 1, &text, 1, &code), *judge = yk_network_new(p->k, "judge", 1, &both, 1, &alike);
  YK_TRY(yk_keras_status(p->k));
  o.virtual_gpus = 2;
  YK_TRY(yk_network_place(encoder, &(yk_network_options){ .size = sizeof(yk_network_options), .session = &o }));
  YK_TRY(yk_keras_graph(p->k, &g));
  yk_value branch[2], logits, joined;
  YK_DEVICE(g, "/cpu:0") {
    for (int i = 0; i < 2; i++) p->in[i] = yk_placeholder(g, i ? "b" : "a", YK_F32, YK_SHAPE(batch, TIME, FEATURES));
    p->target = yk_placeholder(g, "target", YK_F32, YK_SHAPE(batch, 1));
  }
  for (int i = 0; i < 2; i++)
    YK_DEVICE(g, device[i]) { yk_network_build(encoder, true, &p->in[i], &branch[i]); }
  YK_DEVICE(g, "/cpu:0") {
    joined = yk_concat(g, 2, branch, 1);
    yk_network_build(judge, true, &joined, &logits);
    p->fetch[0] = yk_reduce_mean(g, yk_sigmoid_cross_entropy(g, logits, p->target), NULL);
    yk_gradient grads[MOST];
    p->ngrads = yk_compute_gradients(g, p->fetch[0], 0, NULL, grads, MOST);
    for (size_t i = 0; i < p->ngrads; i++) p->fetch[1 + i] = grads[i].grad;
    p->train = yk_apply_gradients(g, &YK_KERAS_RMSPROP(1e-3), p->ngrads, grads, NULL);
  }
  YK_TRY(yk_keras_session(p->k, &p->s));
  return yk_step_prepare(p->s, 3, (const yk_value[]){ p->in[0], p->in[1], p->target }, 1 + p->ngrads, p->fetch, 1, &p->train, &p->step);
}

static yk_code fill(yk_tensor **t, yk_shape s, uint32_t seed) {
  YK_TRY(yk_tensor_new(YK_F32, s, t));
  for (int64_t i = 0; i < yk_tensor_count(*t); i++) {
    seed = seed * 1664525u + 1013904223u;
    ((float *)yk_tensor_data(*t))[i] = s.rank == 2 ? (float)(seed >> 31) : (float)(seed >> 8) / (1 << 24) - 0.5f;
  }
  return YK_OK;
}

/* The largest difference of the gradients, relative to the largest element of each. */
static double difference(const yk_tensor *const *a, const yk_tensor *const *b, size_t n) {
  double worst = 0;
  for (size_t k = 1; k <= n; k++) {
    double most = 0, off = 0;
    for (int64_t i = 0; i < yk_tensor_count(a[k]); i++) {
      most = fmax(most, fabs(yk_tensor_at(a[k], i)));
      off = fmax(off, fabs(yk_tensor_at(a[k], i) - yk_tensor_at(b[k], i)));
    }
    if (most > 0) worst = fmax(worst, off / most);
  }
  return worst;
}

static yk_code run(pair p[2], int64_t steps, const yk_tensor *const *data, const char *trace) {
  const yk_tensor *const *got[2];
  for (int i = 0; i < 2; i++) YK_TRY(yk_step_run(p[i].step, data, &got[i]));
  printf("gradients of two devices and of one differ by %.2g\n", difference(got[0], got[1], p[0].ngrads));
  YK_TRY(yk_trace_start(p[0].s));
  for (int64_t i = 0; i < steps; i++) {
    YK_TRY(yk_step_run(p[0].step, data, &got[0]));
    printf("step %lld: loss %.4f\n", (long long)i + 1, yk_tensor_at(got[0][0], 0));
  }
  return yk_trace_write(p[0].s, trace);
}

int main(int argc, char **argv) {
  static const char *const two[] = { "/gpu:0", "/gpu:1" }, *const one[] = { "/cpu:0", "/cpu:0" };
  int64_t steps = argc > 1 ? strtol(argv[1], NULL, 10) : 10, batch = argc > 2 ? strtol(argv[2], NULL, 10) : 64;
  pair p[2] = { { .k = NULL }, { .k = NULL } };
  yk_tensor *data[3] = { NULL };
  yk_code rc = YK_OK;
  for (int i = 0; i < 3 && rc == YK_OK; i++) rc = fill(&data[i], i < 2 ? YK_SHAPE(batch, TIME, FEATURES) : YK_SHAPE(batch, 1), (uint32_t)i + 1);
  if (rc == YK_OK) rc = build(&p[0], batch, two);
  if (rc == YK_OK) rc = build(&p[1], batch, one);
  if (rc == YK_OK) rc = run(p, steps, (const yk_tensor *const *)data, argc > 3 ? argv[3] : "shared_lstm.json");
  if (rc != YK_OK) fprintf(stderr, "shared_lstm: %s\n", yk_error_message());
  for (int i = 0; i < 2; i++) yk_step_free(p[i].step), yk_keras_free(p[i].k);
  for (int i = 0; i < 3; i++) yk_tensor_free(data[i]);
  return rc == YK_OK ? 0 : 1;
}
