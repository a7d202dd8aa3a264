/*
 * tensorboard.c - TensorBoard: the logs as curves, weights as distributions, the graph.
 *
 * Tags are the names of the logs; the step is the epoch, or with update_freq for the numbers of batches the examples seen so far.
 */
#include <stdio.h>
#include <string.h>
#include <yoke/summary.h>
#include "base/error.h"
#include "keras/keras.h"
#include "keras/logs.h"
#include "keras/weights.h"

typedef struct board {
  yk_callback self;
  yk_tensorboard_config config;
  char *folder;
  yk_summary_writer *writer;
  int64_t seen, written;           /* examples */
  bool graph;                      /* it was written */
} board;

static yk_code begin(yk_callback *self, yk_training *t) {
  board *b = (board *)self;
  (void)t;
  b->seen = b->written = 0;
  b->graph = b->config.no_graph;
  return b->writer == NULL ? yk_summary_writer_open(b->folder, NULL, &b->writer) : YK_OK;
}

static yk_code write_logs(board *b, const yk_logs *logs, int64_t step) {
  for (size_t i = 0; i < yk_logs_count(logs); i++)
    if (strcmp(yk_logs_name(logs, i), "size") != 0)
      YK_TRY(yk_summary_scalar(b->writer, yk_logs_name(logs, i), step, yk_logs_at(logs, i)));
  return YK_OK;
}

static yk_code batch_end(yk_callback *self, yk_training *t, int64_t batch, yk_logs *logs) {
  board *b = (board *)self;
  double size = 0;
  (void)t;
  (void)batch;
  yk_logs_get(logs, "size", &size);
  b->seen += (int64_t)size;
  if (b->config.update_freq <= 0 || b->seen - b->written < b->config.update_freq) return YK_OK;
  b->written = b->seen;
  return write_logs(b, logs, b->seen);
}

static yk_code write_weights(board *b, const yk_weights *all, int64_t epoch) {
  char tag[256];
  for (uint32_t i = 0; i < all->n; i++) {
    yk_tensor *t = NULL;
    YK_TRY(yk_layer_weight(all->at[i].layer, all->at[i].weight->name, &t));
    snprintf(tag, sizeof tag, "%.100s/%.100s_0", all->at[i].layer->name, all->at[i].weight->name);
    yk_code rc = yk_summary_histogram(b->writer, tag, epoch, t);
    yk_tensor_free(t);
    YK_TRY(rc);
  }
  return YK_OK;
}

static yk_code write_histograms(board *b, yk_network *n, int64_t epoch) {
  yk_weights all = { 0 };
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < n->nlayer && rc == YK_OK; i++) rc = yk__weights_of(n->layer[i], n->self.frozen, &all);
  if (rc == YK_OK) rc = write_weights(b, &all, epoch);
  yk__free(all.at);
  return rc;
}

static yk_code epoch_end(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  board *b = (board *)self;
  yk_network *n = yk_training_network(t);
  if (!b->graph) YK_TRY(yk_summary_graph(b->writer, n->self.k->graph, n->self.k->session));
  b->graph = true;
  YK_TRY(write_logs(b, logs, epoch));
  if (b->config.histogram_freq > 0 && epoch % b->config.histogram_freq == 0) YK_TRY(write_histograms(b, n, epoch));
  return yk_summary_flush(b->writer);
}

static yk_code end(yk_callback *self, yk_training *t) {
  board *b = (board *)self;
  yk_summary_writer *w = b->writer;
  (void)t;
  b->writer = NULL;
  return yk_summary_close(w);
}

static void drop(yk_callback *self) {
  board *b = (board *)self;
  if (yk_summary_close(b->writer) != YK_OK) yk_error_clear();      /* a fit that failed has told why */
  yk__free(b->folder);
  yk__free(b);
}

yk_code yk_callback_tensorboard(const yk_tensorboard_config *config, yk_callback **out) {
  yk_tensorboard_config c = config != NULL ? *config : (yk_tensorboard_config){ 0 };
  if (out == NULL) return YK_FAIL(EINVAL, "yk_callback_tensorboard: no place for the callback");
  if (c.update_freq < 0 || c.histogram_freq < 0)
    return YK_FAIL(EINVAL, "update_freq %lld, histogram_freq %lld; expected 0 or more", (long long)c.update_freq,
                   (long long)c.histogram_freq);
  board *b = yk__calloc(1, sizeof *b);
  if (b == NULL) return YK_ENOMEM;
  b->self = (yk_callback){
    .on_train_begin = begin, .on_batch_end = batch_end, .on_epoch_end = epoch_end, .on_train_end = end, .free = drop
  };
  b->config = c;
  b->folder = yk__strdup(c.folder != NULL ? c.folder : "./logs");
  if (b->folder == NULL) {
    drop(&b->self);
    return YK_ENOMEM;
  }
  *out = &b->self;
  return YK_OK;
}
