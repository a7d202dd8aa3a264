/*
 * evaluate.c - a network measured on the test pictures, each exactly once.
 *
 * It has a graph and a session of its own, without gradients or updates, so the
 * training graph stays what it is; the weights are copied over, so no initializer
 * runs. The last batch may be smaller, and has tensors of its own.
 */
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "cli/cli.h"

static void build(yk_eval *e, const char *device, int64_t classes, yk_value feed[2], yk_value fetch[2]) {
  yk_graph *g = e->graph;
  yk_value logits;
  YK_DEVICE(g, device) {
    feed[0] = yk_placeholder(g, "images", YK_F32, YK_SHAPE(-1, e->size, e->size, e->channels));
    feed[1] = yk_placeholder(g, "labels", YK_I32, YK_SHAPE(-1));
    logits = e->model->build(g, feed[0], classes, false);
    fetch[0] = yk_reduce_sum(g, yk_sparse_softmax_cross_entropy(g, logits, feed[1]), NULL);
    fetch[1] = yk_reduce_sum(g, yk_cast(g, yk_in_top_k(g, logits, feed[1], 1), YK_F32), NULL);
  }
}

static yk_code buffers(const yk_eval *e, int64_t rows, yk_tensor **images, yk_tensor **labels) {
  if (rows == 0) return YK_OK;
  YK_TRY(yk_tensor_new(YK_F32, YK_SHAPE(rows, e->size, e->size, e->channels), images));
  return yk_tensor_new(YK_I32, YK_SHAPE(rows), labels);
}

static yk_code open_all(const yk_job *j, yk_eval *e) {
  yk_value feed[2], fetch[2];
  yk_session_options options = j->devices.session;
  options.log_device_placement = false;
  YK_TRY(yk_graph_new(&e->graph));
  build(e, j->devices.at[0], yk_dataset_classes(e->data), feed, fetch);
  YK_TRY(yk_graph_status(e->graph));
  YK_TRY(yk_session_open(e->graph, &options, &e->session));
  YK_TRY(yk_step_prepare(e->session, 2, feed, 2, fetch, 0, NULL, &e->step));
  YK_TRY(buffers(e, e->batch, &e->images, &e->labels));
  return buffers(e, yk_dataset_size(e->data) % e->batch, &e->last_images, &e->last_labels);
}

int yk__eval_open(const yk_job *j, yk_eval *out) {
  int64_t n = yk_dataset_size(j->test);
  *out = (yk_eval){ .model = j->model, .data = j->test, .batch = j->batch < n ? j->batch : n, .size = j->size,
                    .channels = j->channels };
  yk_code rc = open_all(j, out);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

/* The training run's variable of the same name, or its average. */
static yk_code take_one(yk_eval *e, const yk_job *j, yk_variable *mine) {
  size_t n = yk_variable_count(j->graph), i = 0;
  yk_tensor *value = NULL;
  while (i < n && strcmp(yk_variable_name(yk_variable_get(j->graph, i)), yk_variable_name(mine)) != 0) i++;
  if (i == n) return YK_FAIL(EINTERNAL, "the training graph has no variable '%s'", yk_variable_name(mine));
  YK_TRY(yk_variable_fetch(j->session, yk_moving_average_of(j->graph, yk_variable_get(j->graph, i)), &value));
  yk_code rc = yk_variable_set(e->session, mine, value);
  yk_tensor_free(value);
  return rc;
}

int yk__eval_take(yk_eval *e, const yk_job *j) {
  yk_code rc = YK_OK;
  for (size_t i = 0; i < yk_variable_count(e->graph) && rc == YK_OK; i++) rc = take_one(e, j, yk_variable_get(e->graph, i));
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

typedef struct yk_rows { const yk_eval *e; int64_t first; yk_tensor *images, *labels; } yk_rows;

static yk_code fill_row(const yk_rows *r, int64_t i) {
  const yk_eval *e = r->e;
  yk_shape s = yk_dataset_shape(e->data);
  float *x = (float *)yk_tensor_data(r->images) + i * e->size * e->size * e->channels;
  int32_t *y = yk_tensor_data(r->labels);
  y[i] = yk_dataset_label(e->data, r->first + i);
  return yk_augment_image(e->model->eval_augment, yk_dataset_image(e->data, r->first + i), s.dim[0], s.dim[1], s.dim[2], e->size,
                          0, 0, x);
}

static void fill_others(int64_t begin, int64_t end, void *arg) {
  for (int64_t i = begin; i < end; i++)
    if (fill_row(arg, i + 1) != YK_OK) return;
}

/* The first row tells whether such pictures can be prepared at all; the others are shared out to all cores. */
static yk_code fill(const yk_eval *e, int64_t first, yk_tensor *images, yk_tensor *labels) {
  yk_rows r = { .e = e, .first = first, .images = images, .labels = labels };
  YK_TRY(fill_row(&r, 0));
  yk__parallel_for(yk_tensor_count(labels) - 1, 1, fill_others, &r);
  return YK_OK;
}

static yk_code run(yk_eval *e, const volatile sig_atomic_t *stop, yk_score *score) {
  int64_t total = yk_dataset_size(e->data);
  for (int64_t at = 0; at < total && *stop == 0;) {
    bool whole = total - at >= e->batch;
    yk_tensor *images = whole ? e->images : e->last_images, *labels = whole ? e->labels : e->last_labels;
    const yk_tensor *feed[2] = { images, labels };
    const yk_tensor *const *got;
    YK_TRY(fill(e, at, images, labels));
    YK_TRY(yk_step_run(e->step, feed, &got));
    score->loss += yk_tensor_at(got[0], 0);
    score->accuracy += yk_tensor_at(got[1], 0);
    at += yk_tensor_count(labels);
    score->n = at;
  }
  return YK_OK;
}

int yk__eval_run(yk_eval *e, const volatile sig_atomic_t *stop, yk_score *out) {
  yk_score score = { 0 };
  uint64_t begin = yk__now_ns();
  yk_code rc = run(e, stop, &score);
  if (rc != YK_OK) return yk__die_code(rc);
  if (score.n > 0) {
    score.loss /= (double)score.n;
    score.accuracy /= (double)score.n;
  }
  score.seconds = (double)(yk__now_ns() - begin) * 1e-9;
  *out = score;
  return 0;
}

void yk__eval_close(yk_eval *e) {
  yk_step_free(e->step);
  yk_session_close(e->session);
  yk_graph_free(e->graph);
  yk_tensor_free(e->images);
  yk_tensor_free(e->labels);
  yk_tensor_free(e->last_images);
  yk_tensor_free(e->last_labels);
}
