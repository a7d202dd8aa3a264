/*
 * yoke_update.c - times an optimizer's update alone, beside a plain pass over memory of the same size.
 *
 *   yoke_update OPTIMIZER [MILLIONS [SECONDS]]      OPTIMIZER: sgd, momentum, adam, adamw, lamb, rmsprop, adagrad, adadelta, ftrl
 *
 * The parameters (25 million by default) are in 161 variables of the sizes of a 50-layer residual network. What the memory can
 * do is measured in the same run, turn about: a[i] += k*b[i] on as many threads as the update has, over arrays that no cache
 * holds. "share" is the update's bytes a second over that; its bytes are each tensor once for every time that the formula
 * must read or write it.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <yoke/yoke.h>
#include "common.h"

enum { VARIABLES = 161, MOST_THREADS = 64, WARM_UP = 3, STREAM = 24 << 20, APART = 2064 };   /* APART: so that a[i] and b[i] do not share the low bits of their address */

/* words: tensors read or written once; LAMB goes over w, m and v twice, for the norms. */
static const struct { const char *name; double words; } known[] = {
  { "sgd", 3 }, { "momentum", 5 }, { "adam", 7 }, { "adamw", 7 }, { "lamb", 10 }, { "rmsprop", 7 }, { "adagrad", 5 }, { "adadelta", 7 },
  { "ftrl", 7 } };
enum { KNOWN = sizeof known / sizeof *known };

static int die(const char *what) {
  fprintf(stderr, "yoke_update: %s%s%s\n", what, yk_error_message()[0] != '\0' ? ": " : "", yk_error_message());
  return 1;
}

static yk_optimizer optimizer(size_t i) {
  yk_optimizer all[KNOWN] = { YK_SGD(1e-3), YK_MOMENTUM(1e-3, 0.9), YK_ADAM(1e-3), YK_ADAMW(1e-3, 0.01), YK_LAMB(1e-3, 0.01),
                              YK_RMSPROP(1e-3), YK_ADAGRAD(1e-3), YK_ADADELTA(1e-3), YK_FTRL(1e-3) };
  return all[i];
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

typedef struct pass { float *a; const float *b; size_t n; } pass;

static void *run_pass(void *arg) {
  const pass *p = arg;
  float *restrict a = p->a;
  const float *restrict b = p->b;
  for (size_t i = 0; i < p->n; i++) a[i] += 1e-3f * b[i];
  return NULL;
}

/* Milliseconds of one pass; 3 words an element. */
static double stream(float *memory, int threads) {
  pthread_t id[MOST_THREADS];
  pass p[MOST_THREADS];
  size_t each = (size_t)STREAM / (size_t)threads;
  double begin = bench_now_ms();
  for (int i = 0; i < threads; i++) p[i] = (pass){ memory + (size_t)i * each, memory + STREAM + APART + (size_t)i * each, each };
  int made = 1;
  while (made < threads && pthread_create(&id[made], NULL, run_pass, &p[made]) == 0) made++;
  for (int i = made; i < threads; i++) run_pass(&p[i]);
  run_pass(&p[0]);
  for (int i = 1; i < made; i++) pthread_join(id[i], NULL);
  return bench_now_ms() - begin;
}

/* The fastest of a few: the update's team may still be waiting for more work, on the cores that the first pass wants. */
static double fastest(float *memory, int threads) {
  double best = stream(memory, threads);
  for (int i = 0; i < 3; i++) {
    double ms = stream(memory, threads);
    if (ms < best) best = ms;
  }
  return best;
}

/* ---- the update ------------------------------------------------------------------------------------------------------ */

typedef struct job { yk_graph *g; yk_session *s; yk_step *step; double parameters; int threads; } job;

/* Sizes that add up: a third of the variables are small, as biases and scales are; the others grow. */
static int64_t size_of(int i, double total) {
  double sum = 0, weight = i % 3 == 0 ? 0 : i + 1;
  for (int k = 0; k < VARIABLES; k++) sum += k % 3 == 0 ? 0 : k + 1;
  return weight == 0 ? 64 + 8 * i : (int64_t)(total * weight / sum);
}

static yk_code prepare(job *j, size_t which, double total) {
  yk_gradient pair[VARIABLES];
  yk_optimizer o = optimizer(which);
  yk_variable_options fixed = { .not_trainable = true };
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  YK_TRY(yk_graph_new(&j->g));
  yk_graph *g = j->g;
  yk_device_push(g, "/cpu:0");
  for (int i = 0; i < VARIABLES; i++) {
    char name[32];
    int64_t n = size_of(i, total);
    snprintf(name, sizeof name, "w%d", i);
    pair[i].variable = yk_get_variable(g, name, YK_F32, YK_SHAPE(n), YK_UNIFORM(-0.1, 0.1), NULL);
    snprintf(name, sizeof name, "g%d", i);
    pair[i].grad = yk_read(yk_get_variable(g, name, YK_F32, YK_SHAPE(n), YK_UNIFORM(-0.1, 0.1), &fixed));
    j->parameters += (double)n;
  }
  yk_value train = yk_apply_gradients(g, &o, VARIABLES, pair, NULL), init = yk_global_variables_initializer(g);
  yk_device_pop(g);
  YK_TRY(yk_session_open(g, &so, &j->s));
  YK_TRY(yk_session_run(j->s, 0, NULL, 0, NULL, 1, &init, NULL));
  j->threads = yk_session_options_of(j->s)->cores;
  return yk_step_prepare(j->s, 0, NULL, 0, NULL, 1, &train, &j->step);
}

static yk_code timed(job *j, double seconds, float *memory, bench_times *update, bench_times *plain, double *first) {
  double end = 0;
  for (int i = 0; i < WARM_UP + 1 || bench_now_ms() < end; i++) {
    const yk_tensor *const *out = NULL;
    double begin = bench_now_ms();
    YK_TRY(yk_step_run(j->step, NULL, &out));
    double ms = bench_now_ms() - begin, other = fastest(memory, j->threads);
    if (i == 0) *first = bench_age_ms();
    if (i < WARM_UP) end = bench_now_ms() + seconds * 1e3;
    else if (bench_times_add(update, ms) != 0 || bench_times_add(plain, other) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

static int report(const char *name, size_t which, const job *j, bench_times *update, bench_times *plain, double first) {
  char more[256];
  double ms = bench_times_stats(update).median, bytes = known[which].words * 4 * j->parameters;
  double rate = bytes / ms * 1e-6, memory = 3.0 * 4 * STREAM / bench_times_stats(plain).median * 1e-6;
  snprintf(more, sizeof more, ",\"parameters\":%.0f,\"bytes\":%.0f,\"gb_per_s\":%.2f,\"memory_gb_per_s\":%.2f,\"share\":%.3f", j->parameters,
           bytes, rate, memory, rate / memory);
  bench_print(&(bench_result){ .contender = "yoke_update", .model = name, .batch = 0, .threads = j->threads, .times = update,
                               .first_step_ms = first, .loss = (double)NAN, .more = more });
  return 0;
}

int main(int argc, char **argv) {
  bench_times update = { 0 }, plain = { 0 };
  job j = { 0 };
  size_t which = 0;
  double first = 0;
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: yoke_update OPTIMIZER [MILLIONS [SECONDS]]\n");
    return 2;
  }
  while (which < KNOWN && strcmp(known[which].name, argv[1]) != 0) which++;
  double millions = bench_number(argc > 2 ? argv[2] : NULL, 25), seconds = bench_number(argc > 3 ? argv[3] : NULL, 3);
  if (which == KNOWN || isnan(millions) || millions > 1e4 || isnan(seconds)) return die("no such optimizer, or MILLIONS and SECONDS are no numbers above 0");
  size_t room = sizeof(float) * (2 * (size_t)STREAM + (1 << 19));
  float *memory = aligned_alloc(2 << 20, room);
  if (memory == NULL) return die("no memory to measure");
  (void)madvise(memory, room, MADV_HUGEPAGE);             /* as the library's own */
  bench_fill(memory, 2 * (size_t)STREAM + APART);
  yk_code rc = prepare(&j, which, millions * 1e6);
  if (rc == YK_OK && (j.threads < 1 || j.threads > MOST_THREADS)) return die("more cores than it knows of");
  if (rc == YK_OK) rc = timed(&j, seconds, memory, &update, &plain, &first);
  int status = rc == YK_OK ? report(argv[1], which, &j, &update, &plain, first) : die("the update failed");
  yk_step_free(j.step);
  yk_session_close(j.s);
  yk_graph_free(j.g);
  free(memory);
  bench_times_free(&update);
  bench_times_free(&plain);
  return status;
}
