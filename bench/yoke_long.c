/*
 * yoke_long.c - what a long run costs beside its steps: does it grow or slow down, and what do checkpoints take?
 *
 *   yoke_long steady [STEPS [MODEL]]              10000 steps of the mlp on small pictures, through a real queue
 *   yoke_long checkpoint [EVERY [SECONDS [MODEL]]]     a save every 100 steps of cifar10, beside blocks of as many steps without one
 *
 * "steady" prints resident memory in the second tenth of the run and in the last one; the first tenth warms up. Then a fresh session of the
 * same network takes turns with the old one: "slower" is the old one's step over the fresh one's, so that a machine whose speed
 * drifts during the run does not pass for a session that ages.
 * "checkpoint" prints the cost of a save as part of its block; blocks with and without one take turns, so that drift hits both.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "common.h"

enum { STEPS = 10000, EVERY = 100, WARM_UP = 5, PICTURES = 2000, SMALL_SIDE = 12, SMALL_BATCH = 32, LEAST_BLOCKS = 2 };

typedef struct run {
  const yk_model *model;
  int64_t batch, side;
  yk_dataset *data;
  yk_queue *queue;
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  bench_times times;
  double first_ms, loss;
} run;

static int die(const char *what) {
  fprintf(stderr, "yoke_long: %s%s%s\n", what, yk_error_message()[0] != '\0' ? ": " : "", yk_error_message());
  return 1;
}

static yk_code start(run *r) {
  yk_queue_options q = YK_QUEUE_OPTIONS_INIT;
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  static const char *const cpu = "/cpu:0";
  yk_towers t;
  q.augment = r->model->train_augment;
  q.image_size = r->side;
  q.shuffle = true;
  q.seed = 1;
  q.capacity = 2 * r->batch;
  YK_TRY(yk_dataset_shapes10(1, YK_TRAIN, PICTURES, &r->data));
  YK_TRY(yk_queue_open(r->data, &q, &r->queue));
  YK_TRY(yk_graph_new(&r->g));
  o.model = r->model;
  o.source = yk_queue_source(r->queue);
  o.classes = yk_dataset_classes(r->data);
  o.batch = r->batch;
  o.ndevices = 1;
  o.devices = &cpu;
  YK_DEVICE(r->g, "/cpu:0") { o.learning_rate = yk_scalar_f32(r->g, 1e-3f); }
  yk_build_towers(r->g, &o, &t);
  yk_value init = yk_global_variables_initializer(r->g);
  YK_TRY(yk_session_open(r->g, NULL, &r->s));
  YK_TRY(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
  return yk_step_prepare(r->s, 0, NULL, 1, &t.loss, 1, &t.train, &r->step);
}

static void stop(run *r) {
  yk_step_free(r->step);
  yk_session_close(r->s);
  yk_graph_free(r->g);
  yk_queue_close(r->queue);
  yk_dataset_free(r->data);
  bench_times_free(&r->times);
}

static yk_code one_step(run *r, double *ms) {
  const yk_tensor *const *out;
  double begin = bench_now_ms();
  YK_TRY(yk_step_run(r->step, NULL, &out));
  *ms = bench_now_ms() - begin;
  r->loss = yk_tensor_at(out[0], 0);
  if (r->first_ms == 0) r->first_ms = bench_age_ms();
  return isfinite(r->loss) ? YK_OK : YK_EINTERNAL;
}

static int report(const char *mode, run *r, const char *more) {
  bench_print(&(bench_result){ .contender = "yoke_long", .model = mode, .batch = r->batch, .threads = yk_session_options_of(r->s)->cores,
                               .times = &r->times, .first_step_ms = r->first_ms, .loss = r->loss, .more = more });
  return 0;
}

/* ---- steady ------------------------------------------------------------------------------------------------------- */

/* The smallest of the medians of ten pieces: what a step takes while nothing else disturbs this machine. */
static double undisturbed(const bench_times *t) {
  enum { PIECES = 10 };
  double best = 0;
  for (int i = 0; i < PIECES; i++) {
    bench_times piece = { 0 };
    for (size_t k = t->n * (size_t)i / PIECES; k < t->n * (size_t)(i + 1) / PIECES; k++)
      if (bench_times_add(&piece, t->at[k]) != 0) return 0;
    double median = bench_times_stats(&piece).median;
    if (piece.n > 0 && (best == 0 || median < best)) best = median;
    bench_times_free(&piece);
  }
  return best;
}

static yk_code many_steps(run *r, int64_t steps, bench_times *early, double rss[2]) {
  int64_t tenth = steps / 10 > 0 ? steps / 10 : 1;
  for (int64_t i = 0; i < steps; i++) {
    double ms;
    YK_TRY(one_step(r, &ms));
    if (i >= tenth && bench_times_add(&r->times, ms) != 0) return YK_ENOMEM;
    if (i >= tenth && i < 2 * tenth && bench_times_add(early, ms) != 0) return YK_ENOMEM;
    if (i == 2 * tenth - 1) rss[0] = bench_rss_mib();
  }
  rss[1] = bench_rss_mib();
  return YK_OK;
}

/* A tenth of `steps` of both, in blocks that take turns, after as many of the fresh one. */
static yk_code in_turns(run *r, run *fresh, int64_t steps, bench_times *late, bench_times *anew) {
  enum { BLOCK = 50 };
  int64_t tenth = steps / 10 > 0 ? steps / 10 : 1;
  double ms;
  YK_TRY(start(fresh));
  for (int64_t i = 0; i < tenth; i++) YK_TRY(one_step(fresh, &ms));
  for (int64_t i = 0; i < tenth; i += BLOCK)
    for (int who = 0; who < 2; who++)
      for (int64_t k = i; k < i + BLOCK && k < tenth; k++) {
        YK_TRY(one_step(who ? fresh : r, &ms));
        if (bench_times_add(who ? anew : late, ms) != 0) return YK_ENOMEM;
      }
  return YK_OK;
}

static int steady(run *r, int64_t steps) {
  bench_times early = { 0 }, late = { 0 }, anew = { 0 };
  run fresh = { .model = r->model, .batch = r->batch, .side = r->side };
  double rss[2] = { 0 };
  char more[300];
  yk_code rc = start(r);
  if (rc == YK_OK) rc = many_steps(r, steps, &early, rss);
  if (rc == YK_OK) rc = in_turns(r, &fresh, steps, &late, &anew);
  stop(&fresh);
  double a = undisturbed(&early), b = undisturbed(&late), c = undisturbed(&anew);
  bench_times_free(&early);
  bench_times_free(&late);
  bench_times_free(&anew);
  if (rc != YK_OK) return die("the run failed");
  snprintf(more, sizeof more, ",\"of\":%lld,\"start_ms\":%.6f,\"end_ms\":%.6f,\"fresh_ms\":%.6f,\"slower\":%.4f,\"rss_start_mib\":%.2f,"
           "\"rss_end_mib\":%.2f,\"growth_mib\":%.2f", (long long)steps, a, b, c, b / c, rss[0], rss[1], rss[1] - rss[0]);
  return report("steady", r, more);
}

/* ---- checkpoints -------------------------------------------------------------------------------------------------- */

/* `every` steps; the first begins with a save, if there is a saver. Milliseconds. */
static yk_code block(run *r, yk_saver *saver, int64_t step, int64_t every, double *ms) {
  double begin = bench_now_ms(), one;
  if (saver != NULL) YK_TRY(yk_saver_begin(saver, r->s, step, 0, NULL));
  for (int64_t i = 0; i < every; i++) {
    YK_TRY(one_step(r, &one));
    if (bench_times_add(&r->times, one) != 0) return YK_ENOMEM;
  }
  *ms = bench_now_ms() - begin;
  return YK_OK;
}

static yk_code blocks(run *r, yk_saver *saver, int64_t every, double seconds, bench_times *with, bench_times *without) {
  double end = bench_now_ms() + seconds * 1e3, ms;
  for (int i = 0; i < WARM_UP; i++) YK_TRY(one_step(r, &ms));
  for (int64_t i = 0; i < LEAST_BLOCKS || bench_now_ms() < end; i++) {
    YK_TRY(block(r, NULL, 0, every, &ms));
    if (bench_times_add(without, ms) != 0) return YK_ENOMEM;
    YK_TRY(block(r, saver, i + 1, every, &ms));
    YK_TRY(yk_saver_wait(saver, NULL));              /* one that takes longer than its block is paid for in full */
    if (bench_times_add(with, ms) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

/* Files that a saver made, and the folder. */
static void clear(const char *folder) {
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) fprintf(stderr, "yoke_long: %s is left behind\n", folder);
}

static int checkpoint(run *r, int64_t every, double seconds) {
  bench_times with = { 0 }, without = { 0 };
  yk_saver *saver = NULL;
  yk_saver_options o = YK_SAVER_OPTIONS_INIT;
  char folder[] = "yoke-long-XXXXXX", more[300];
  o.keep = 2;
  if (mkdtemp(folder) == NULL) return die("no folder for checkpoints here");
  yk_code rc = start(r);
  if (rc == YK_OK) rc = yk_saver_open(folder, &o, &saver);
  if (rc == YK_OK) rc = blocks(r, saver, every, seconds, &with, &without);
  yk_code last = yk_saver_close(saver);
  clear(folder);
  if (rc != YK_OK || last != YK_OK) return die("the run failed");
  size_t n = with.n;
  bench_stats a = bench_times_stats(&without), b = bench_times_stats(&with);
  bench_times_free(&with);
  bench_times_free(&without);
  snprintf(more, sizeof more, ",\"every\":%lld,\"saves\":%zu,\"block_ms\":%.3f,\"block_with_save_ms\":%.3f,\"cost\":%.5f", (long long)every, n,
           a.median, b.median, b.median / a.median - 1);
  return report("checkpoint", r, more);
}

int main(int argc, char **argv) {
  run r = { 0 };
  bool long_run = argc > 1 && strcmp(argv[1], "steady") == 0;
  if (!long_run && (argc < 2 || strcmp(argv[1], "checkpoint") != 0)) {
    fprintf(stderr, "usage: yoke_long steady [STEPS [MODEL]] | checkpoint [EVERY [SECONDS [MODEL]]]\n");
    return 2;
  }
  double count = bench_number(argc > 2 ? argv[2] : NULL, long_run ? STEPS : EVERY), seconds = bench_number(!long_run && argc > 3 ? argv[3] : NULL, 30);
  const char *name = long_run ? argc > 3 ? argv[3] : "mlp" : argc > 4 ? argv[4] : "cifar10";
  r.model = yk_model_find(name);
  if (r.model == NULL || isnan(count) || count > 1e9 || isnan(seconds)) return die("no such model, or no number above 0");
  r.batch = long_run ? SMALL_BATCH : r.model->batch;
  r.side = r.model->image_size != 0 ? r.model->image_size : long_run ? SMALL_SIDE : 32;
  int status = long_run ? steady(&r, (int64_t)count) : checkpoint(&r, (int64_t)count, seconds);
  stop(&r);
  return status;
}
