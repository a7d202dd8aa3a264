/*
 * evaluate.c - a network measured on the test pictures, each exactly once.
 *
 * It has a graph and a session of its own, without gradients or updates, so the
 * training graph stays what it is; the weights are copied over, so no initializer
 * runs. The last batch may be smaller, and has tensors of its own.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "cli/cli.h"

/* One example as the network is fed it. */
static yk_desc input_of(const yk_eval *e) {
  if (e->size > 0) return (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { e->size, e->size, e->channels } };
  return *yk_dataset_component(e->data, 0);
}

static yk_shape batch_of(const yk_desc *one, int64_t rows) {
  yk_shape s = { .rank = one->rank + 1u, .dim = { rows } };
  for (int k = 0; k < one->rank; k++) s.dim[k + 1] = one->dim[k];
  return s;
}

static void build(yk_eval *e, const char *device, int64_t classes, yk_value feed[2], yk_value fetch[2]) {
  yk_graph *g = e->graph;
  yk_desc one = input_of(e);
  yk_value logits;
  YK_DEVICE(g, device) {
    feed[0] = yk_placeholder(g, "images", (yk_dtype)one.dtype, batch_of(&one, -1));
    feed[1] = yk_placeholder(g, "labels", YK_I32, YK_SHAPE(-1));
    logits = e->model->build(g, one.dtype == YK_F32 ? feed[0] : yk_cast(g, feed[0], YK_F32), classes, false);
    fetch[0] = yk_reduce_sum(g, yk_sparse_softmax_cross_entropy(g, logits, feed[1]), NULL);
    fetch[1] = yk_reduce_sum(g, yk_cast(g, yk_in_top_k(g, logits, feed[1], 1), YK_F32), NULL);
  }
}

static yk_code buffers(const yk_eval *e, int64_t rows, yk_tensor **images, yk_tensor **labels) {
  yk_desc one = input_of(e);
  if (rows == 0) return YK_OK;
  YK_TRY(yk_tensor_new((yk_dtype)one.dtype, batch_of(&one, rows), images));
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
  *out = (yk_eval){ .model = j->model, .data = j->test, .batch = j->batch < n ? j->batch : n, .size = j->pictures ? j->size : 0,
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

/* Rows being filled in; the first failure of any thread is kept. */
typedef struct yk_rows {
  const yk_eval *e;
  int64_t first;
  yk_tensor *images, *labels;
  yk_mutex lock;
  yk_code rc;
  char why[1024];
} yk_rows;

static yk_code augment(const yk_eval *e, const uint8_t *picture, float *to) {
  yk_shape s = yk_dataset_shape(e->data);
  return yk_augment_image(e->model->eval_augment, picture, s.dim[0], s.dim[1], s.dim[2], e->size, 0, 0, to);
}

/* A picture that is not in memory is read into some that is given back at once. */
static yk_code fill_row(const yk_rows *r, int64_t i) {
  const yk_eval *e = r->e;
  int64_t at = r->first + i;
  size_t bytes = yk_tensor_bytes(r->images) / (size_t)yk_tensor_count(r->labels);
  uint8_t *x = (uint8_t *)yk_tensor_data(r->images) + (size_t)i * bytes;
  int32_t *y = (int32_t *)yk_tensor_data(r->labels) + i;
  const uint8_t *picture = yk_dataset_image(e->data, at);
  yk_shape s = yk_dataset_shape(e->data);
  if (e->size == 0) return yk_dataset_read(e->data, at, (void *const[]){ x, y });
  if (picture != NULL) {
    *y = yk_dataset_label(e->data, at);
    return augment(e, picture, (float *)(void *)x);
  }
  uint8_t *room = yk__alloc((size_t)(s.dim[0] * s.dim[1] * s.dim[2]));
  if (room == NULL) return YK_ENOMEM;
  yk_code rc = yk_dataset_read(e->data, at, (void *const[]){ room, y });
  if (rc == YK_OK) rc = augment(e, room, (float *)(void *)x);
  yk__free(room);
  return rc;
}

static void fill_some(int64_t begin, int64_t end, void *arg) {
  yk_rows *r = arg;
  yk_code rc = YK_OK;
  for (int64_t i = begin; i < end && rc == YK_OK; i++) rc = fill_row(r, i);
  if (rc == YK_OK) return;
  yk__mutex_lock(&r->lock);
  if (r->rc == YK_OK) {
    r->rc = rc;
    snprintf(r->why, sizeof r->why, "%s", yk_error_message());
  }
  yk__mutex_unlock(&r->lock);
}

/* The rows are shared out to all cores. */
static yk_code fill(const yk_eval *e, int64_t first, yk_tensor *images, yk_tensor *labels) {
  yk_rows r = { .e = e, .first = first, .images = images, .labels = labels };
  yk__mutex_init(&r.lock);
  yk__parallel_for(yk_tensor_count(labels), 1, fill_some, &r);
  yk__mutex_free(&r.lock);
  return r.rc == YK_OK ? YK_OK : yk__fail(r.rc, __FILE__, __LINE__, "%s", r.why);
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
