/*
 * board.c - puts a run's numbers into event files.
 *
 * A disk that fails costs the curves, not the run: it is told once, in a warning and by the exit status at the end.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/board.h"
#include "cli/metrics.h"

enum { PICTURES = 6 };

/* False: no more of it. */
static bool good(yk_board *b, yk_code rc) {
  if (rc == YK_OK) return true;
  if (!b->failed) YK_LOG(WARNING, "--tensorboard: %s; the run goes on without", yk_error_message());
  yk_error_clear();
  b->failed = true;
  return false;
}

static bool wanted(const yk_board *b) {
  return b->train != NULL && b->eval != NULL && !b->failed;
}

static yk_code open_one(const char *folder, const char *name, const yk_summary_options *o, yk_summary_writer **out) {
  char path[YK__PATH];
  YK_TRY(yk__folder_path(folder, name, path));
  return yk_summary_writer_open(path, o, out);
}

int yk__board_open(yk_board *b, const yk_cli *c, const yk_job *j, bool resumed, int64_t first) {
  yk_summary_options o = YK_SUMMARY_OPTIONS_INIT;
  b->job = j;
  if (c->tensorboard == NULL) return 0;
  o.flush_seconds = 10;
  o.restart = resumed;
  o.step = first + 1;
  yk_code rc = open_one(c->tensorboard, "train", &o, &b->train);
  if (rc == YK_OK) rc = open_one(c->tensorboard, "eval", &o, &b->eval);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--tensorboard: %s", yk_error_message());
}

/* ---- before the first step --------------------------------------------------------------------------------------- */

static yk_code put_settings(yk_board *b, const char *settings) {
  yk_str s = { 0 };
  char *text = NULL;
  yk__str_add(&s, "```json\n%s\n```\n", settings);
  YK_TRY(yk__str_take(&s, &text));
  yk_code rc = yk_summary_text(b->train, "settings", 0, text);
  yk__free(text);
  return rc;
}

/* The first pictures as they are in the data set. `label` has room for any label. */
static yk_code read_pictures(const yk_dataset *d, int64_t n, size_t bytes, yk_tensor *t) {
  uint64_t label;
  for (int64_t i = 0; i < n; i++)
    YK_TRY(yk_dataset_read(d, i, (void *const[]){ (uint8_t *)yk_tensor_data(t) + (size_t)i * bytes, &label }));
  return YK_OK;
}

static yk_code put_pictures(yk_board *b) {
  const yk_dataset *d = b->job->train;
  yk_shape s = yk_dataset_shape(d);
  int64_t n = yk_dataset_size(d) < PICTURES ? yk_dataset_size(d) : PICTURES;
  yk_tensor *t;
  if (!b->job->pictures || yk_dataset_components(d) != 2 || yk_dataset_component(d, 1)->rank != 0) return YK_OK;
  if (s.rank != 3 || yk_dataset_component(d, 0)->dtype != YK_U8 || (s.dim[2] != 1 && s.dim[2] != 3 && s.dim[2] != 4)) return YK_OK;
  YK_TRY(yk_tensor_new(YK_U8, YK_SHAPE(n, s.dim[0], s.dim[1], s.dim[2]), &t));
  yk_code rc = read_pictures(d, n, (size_t)(s.dim[0] * s.dim[1] * s.dim[2]), t);
  if (rc == YK_OK) rc = yk_summary_image(b->train, "input", 0, t, PICTURES);
  else yk_error_clear();                             /* the run itself will tell of data that cannot be read */
  yk_tensor_free(t);
  return rc == YK_ECORRUPT ? YK_OK : rc;
}

void yk__board_start(yk_board *b, const char *settings, bool resumed) {
  if (!wanted(b)) return;
  if (!good(b, yk_summary_graph(b->train, b->job->graph, b->job->session)) || resumed) return;
  if (!good(b, put_settings(b, settings)) || !good(b, put_pictures(b))) return;
  yk__board_variables(b, 0);                         /* also: to be seen at once */
}

/* ---- while it goes on -------------------------------------------------------------------------------------------- */

static yk_code put_memory(yk_board *b, int64_t step) {
  yk_device_info info;
  char tag[128];
  for (size_t i = 0; i < yk_session_device_count(b->job->session); i++) {
    YK_TRY(yk_session_device(b->job->session, i, &info));
    const char *name = strstr(info.name, "device:");
    name = name != NULL ? name + strlen("device:") : info.name;
    snprintf(tag, sizeof tag, "memory_MiB/%s", name);
    YK_TRY(yk_summary_scalar(b->train, tag, step, (double)info.bytes_in_use / 1048576.0));
    snprintf(tag, sizeof tag, "memory_peak_MiB/%s", name);
    YK_TRY(yk_summary_scalar(b->train, tag, step, (double)info.bytes_peak / 1048576.0));
  }
  return YK_OK;
}

void yk__board_progress(yk_board *b, int64_t step, double epoch, double loss, double accuracy, double examples_per_second) {
  const struct { const char *tag; double value; } all[] = {
    { "loss", loss }, { "accuracy", accuracy }, { "learning_rate", b->rate }, { "examples_per_second", examples_per_second },
    { "epoch", epoch },
  };
  if (!wanted(b)) return;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (!good(b, yk_summary_scalar(b->train, all[i].tag, step, all[i].value))) return;
  (void)good(b, put_memory(b, step));
}

void yk__board_tested(yk_board *b, int64_t step, const yk_score *score) {
  if (!wanted(b)) return;
  if (good(b, yk_summary_scalar(b->eval, "loss", step, score->loss)))
    (void)good(b, yk_summary_scalar(b->eval, "accuracy", step, score->accuracy));
}

/* One that has values which are not finite has no distribution, and is left out. */
static yk_code put_histogram(yk_board *b, const char *tag, int64_t step, const yk_tensor *t) {
  yk_code rc = yk_summary_histogram(b->train, tag, step, t);
  if (rc != YK_EINVAL) return rc;
  YK_LOG(INFO, "%s", yk_error_message());
  yk_error_clear();
  return YK_OK;
}

static yk_code put_variable(yk_board *b, const yk_variable *v, int64_t step) {
  yk_tensor *t;
  YK_TRY(yk_variable_fetch(b->job->session, v, &t));
  yk_code rc = put_histogram(b, yk_variable_name(v), step, t);
  yk_tensor_free(t);
  return rc;
}

static yk_code put_gradients(yk_board *b, int64_t step, const yk_tensor *const *gradients) {
  const yk_job *j = b->job;
  char tag[256];
  yk_value *read = yk__alloc((j->ngradients + 1) * sizeof *read);
  if (read == NULL) return YK_ENOMEM;
  yk_get_collection(j->graph, YK_TOWER_TRAINED, NULL, read, j->ngradients);
  yk_code rc = YK_OK;
  for (size_t i = 0; i < j->ngradients && rc == YK_OK; i++) {
    snprintf(tag, sizeof tag, "gradients/%.240s", yk_variable_name(yk_variable_of(j->graph, read[i])));
    rc = put_histogram(b, tag, step, gradients[i]);
  }
  yk__free(read);
  return rc;
}

void yk__board_gradients(yk_board *b, int64_t step, const yk_tensor *const *gradients) {
  if (wanted(b)) (void)good(b, put_gradients(b, step, gradients));
}

void yk__board_variables(yk_board *b, int64_t step) {
  if (!wanted(b)) return;
  for (size_t i = 0; i < yk_variable_count(b->job->graph); i++) {
    const yk_variable *v = yk_variable_get(b->job->graph, i);
    if (yk_variable_trainable(v) && !good(b, put_variable(b, v, step))) return;
  }
  yk__board_flush(b);
}

void yk__board_flush(yk_board *b) {
  if (wanted(b) && good(b, yk_summary_flush(b->train))) (void)good(b, yk_summary_flush(b->eval));
}

static void close_one(yk_board *b, yk_summary_writer **w) {
  yk_code rc = yk_summary_close(*w);
  *w = NULL;
  (void)good(b, rc);
}

void yk__board_finish(yk_board *b) {
  close_one(b, &b->train);
  close_one(b, &b->eval);
}

void yk__board_close(yk_board *b) {
  if (yk_summary_close(b->train) != YK_OK || yk_summary_close(b->eval) != YK_OK) yk_error_clear();
  b->train = NULL;
  b->eval = NULL;
}
