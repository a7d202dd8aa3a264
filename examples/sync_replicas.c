/*
 * sync_replicas.c - synchronous replicas with Adam, and what a backup replica buys when one of them is slow.
 *
 * Each worker is a thread with a tower of its own on its own CPU device; the gradients of two of them make an update. The last worker sleeps
 * before each step. With 2 of 2 replicas every update waits for it; with 2 of 3 it is left behind, and its late gradients are dropped.
 *
 *   sync_replicas [UPDATES [SLEEP_MS [BATCH]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <yoke/yoke.h>

enum { AGGREGATE = 2, MOST = 3 };

typedef struct training { int workers, sleep_ms; yk_value loss[MOST]; double last_loss[MOST]; } training;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One hidden layer; the second tower shares the variables of the first. */
static yk_value tower(yk_graph *g, const yk_source *queue, int64_t batch) {
  yk_value data[2], x, y = { 0 };
  yk_dequeue(g, queue, batch, data);
  x = yk_flatten(g, data[0]);
  YK_VARIABLE_SCOPE_REUSE(g, "mlp", YK_AUTO_REUSE) {
    yk_variable *w[2] = { NULL, NULL };
    YK_DEVICE(g, "/cpu:0") {
      w[0] = yk_get_variable(g, "hidden", YK_F32, YK_SHAPE(32 * 32 * 3, 64), YK_GLOROT_UNIFORM, NULL);
      w[1] = yk_get_variable(g, "logits", YK_F32, YK_SHAPE(64, 10), YK_GLOROT_UNIFORM, NULL);
    }
    if (w[0] != NULL && w[1] != NULL) y = yk_matmul(g, yk_relu(g, yk_matmul(g, x, yk_read(w[0]), NULL)), yk_read(w[1]), NULL);
  }
  return yk_reduce_mean(g, yk_sparse_softmax_cross_entropy(g, y, data[1]), NULL);
}

/* A worker's thread: steps until the training has ended. */
static yk_code work(yk_sync_replicas *sync, int32_t i, void *arg) {
  training *t = arg;
  yk_sync_worker *w = NULL;
  const yk_tensor *const *out;
  yk_code rc = yk_sync_worker_open(sync, i, 0, NULL, 1, &t->loss[i], 0, NULL, &w);
  while (rc == YK_OK) {
    if (i == t->workers - 1) nanosleep(&(struct timespec){ .tv_nsec = t->sleep_ms * 1000000L }, NULL);
    rc = yk_sync_worker_run(w, NULL, &out);
    if (rc == YK_OK) t->last_loss[i] = yk_tensor_at(out[0], 0);
  }
  yk_sync_worker_leave(w);
  return rc;                                       /* YK_ERANGE: the clean end */
}

static yk_code train(training *t, const yk_source *queue, int64_t batch, int64_t updates) {
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_sync_options o = YK_SYNC_OPTIONS_INIT;
  yk_sync_report r = YK_SYNC_REPORT_INIT;
  yk_sync_replicas *sync = NULL;
  yk_session *s = NULL;
  yk_graph *g = NULL;
  YK_TRY(yk_graph_new(&g));
  for (int i = 0; i < t->workers; i++) {
    char device[16];
    snprintf(device, sizeof device, "/cpu:%d", i);
    YK_DEVICE(g, device) { t->loss[i] = tower(g, queue, batch); }
  }
  o.optimizer = YK_ADAM(1e-3);
  o.replicas_to_aggregate = AGGREGATE;
  o.total_num_replicas = t->workers;
  o.num_tokens = 0;                                /* no first round that is wasted */
  o.last_step = updates;
  yk_code rc = yk_sync_replicas_build(g, &o, (size_t)t->workers, t->loss, &sync);
  yk_value init = yk_global_variables_initializer(g);
  so.cpu_devices = t->workers;
  if (rc == YK_OK) rc = yk_session_open(g, &so, &s);
  if (rc == YK_OK) rc = yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL);
  double start = seconds();
  if (rc == YK_OK) rc = yk_sync_replicas_train(sync, s, work, t);
  if (rc == YK_OK) rc = yk_sync_replicas_report(sync, &r);
  if (rc == YK_OK)
    printf("%d of %d replicas: loss %.3f, %lld updates, %.1f updates/s, %lld worker steps, %lld dropped\n", AGGREGATE, t->workers,
           t->last_loss[0], (long long)r.updates, (double)r.updates / (seconds() - start), (long long)r.steps, (long long)r.dropped);
  yk_sync_replicas_free(sync);
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}

static int number(int argc, char **argv, int i, int dflt) { return i < argc ? (int)strtol(argv[i], NULL, 10) : dflt; }

int main(int argc, char **argv) {
  int updates = number(argc, argv, 1, 100), sleep_ms = number(argc, argv, 2, 20), batch = number(argc, argv, 3, 32), rc = 1;
  yk_queue_options o = { .size = sizeof o, .shuffle = true, .seed = 1 };
  yk_dataset *data = NULL;
  yk_queue *queue = NULL;
  if (updates < 1 || sleep_ms < 0 || sleep_ms > 999 || batch < 1) {
    fprintf(stderr, "usage: sync_replicas [UPDATES [SLEEP_MS 0-999 [BATCH]]]\n");
    return 2;
  }
  if (yk_dataset_shapes10(1, YK_TRAIN, 2000, &data) == YK_OK && yk_queue_open(data, &o, &queue) == YK_OK) {
    const yk_source *source = yk_queue_source(queue);
    if (train(&(training){ .workers = 2, .sleep_ms = sleep_ms }, source, batch, updates) == YK_OK &&
        train(&(training){ .workers = 3, .sleep_ms = sleep_ms }, source, batch, updates) == YK_OK) rc = 0;
  }
  if (rc != 0) fprintf(stderr, "sync_replicas: %s\n", yk_error_message());
  yk_queue_close(queue);
  yk_dataset_free(data);
  return rc;
}
