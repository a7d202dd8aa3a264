/*
 * yoke_reduce.c - times an all-reduce between devices of one process, beside a copy of memory.
 *
 *   yoke_reduce DEVICES [MEGABYTES [SECONDS]]        DEVICES: 2 to 8, virtual GPUs, or cpu2 to cpu8, CPU devices
 *
 * Each device has a vector (100 MB by default) and ends with the sum of all, as mirrored variables are summed: device k adds up part k
 * and every device takes it from there. What cannot be avoided is that n vectors are read and n written, 2*n*MEGABYTES. What the
 * memory can do is measured in the same run, turn about: a copy of two arrays that no cache holds, by threads that wait for it, as many as
 * there are cores, on huge pages where the system gives them, past the caches where the machine can; of three in a row the last
 * counts, so that it is not charged for threads that wake up or still spin. "share" is the first over the second.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <yoke/yoke.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include "common.h"

enum { MOST = 8, MOST_THREADS = 64, WARM_UP = 3, COPIES = 3, COPIED = 128 << 20, HUGE_PAGE = 2 << 20 };

typedef struct job {
  const char *what;
  int n, threads;
  bool cpu;
  int64_t part;                   /* elements that one device adds up */
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  yk_value first[MOST];           /* an element of each device's result */
} job;

static int die(const char *what) {
  fprintf(stderr, "yoke_reduce: %s%s%s\n", what, yk_error_message()[0] != '\0' ? ": " : "", yk_error_message());
  return 1;
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

typedef struct copier copier;
typedef struct piece { copier *c; char *to; const char *from; size_t n; } piece;
struct copier {
  char *memory;                   /* [2*COPIED] */
  int threads, made;              /* the caller is one of them */
  bool over;
  pthread_barrier_t start, end;
  pthread_t id[MOST_THREADS];
  piece part[MOST_THREADS];
};

#if defined(__x86_64__)
__attribute__((target("avx"))) static void copy_wide(const piece *p) {
  for (size_t i = 0; i < p->n; i += 32)
    _mm256_stream_si256((__m256i *)(void *)(p->to + i), _mm256_load_si256((const __m256i *)(const void *)(p->from + i)));
  _mm_sfence();
}
#endif

static void copy_piece(const piece *p) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) {
    copy_wide(p);
    return;
  }
#endif
  memcpy(p->to, p->from, p->n);
}

static void *work(void *arg) {
  const piece *p = arg;
  for (;;) {
    pthread_barrier_wait(&p->c->start);
    if (p->c->over) return NULL;
    copy_piece(p);
    pthread_barrier_wait(&p->c->end);
  }
}

/* 0, or -1: memory or threads cannot be had. Those that were made then wait for ever; the program ends. */
static int copier_open(copier *c, int threads) {
  size_t each = (size_t)COPIED / (size_t)threads / 64 * 64;
  *c = (copier){ .threads = threads, .memory = aligned_alloc(HUGE_PAGE, 2 * (size_t)COPIED) };
  if (c->memory == NULL) return -1;
  (void)madvise(c->memory, 2 * (size_t)COPIED, MADV_HUGEPAGE);
  memset(c->memory, 1, 2 * (size_t)COPIED);
  if (pthread_barrier_init(&c->start, NULL, (unsigned)threads) != 0 || pthread_barrier_init(&c->end, NULL, (unsigned)threads) != 0) return -1;
  for (int i = 0; i < threads; i++) c->part[i] = (piece){ c, c->memory + (size_t)i * each, c->memory + COPIED + (size_t)i * each, each };
  for (c->made = 1; c->made < threads; c->made++)
    if (pthread_create(&c->id[c->made], NULL, work, &c->part[c->made]) != 0) return -1;
  return 0;
}

static void copier_close(copier *c) {
  c->over = true;
  pthread_barrier_wait(&c->start);
  for (int i = 1; i < c->made; i++) pthread_join(c->id[i], NULL);
  pthread_barrier_destroy(&c->start);
  pthread_barrier_destroy(&c->end);
  free(c->memory);
}

/* Milliseconds of the last of COPIES copies of COPIED bytes. */
static double copy(copier *c) {
  double ms = 0;
  for (int i = 0; i < COPIES; i++) {
    pthread_barrier_wait(&c->start);
    double begin = bench_now_ms();
    copy_piece(&c->part[0]);
    pthread_barrier_wait(&c->end);
    ms = bench_now_ms() - begin;
  }
  return ms;
}

/* ---- the reduction ------------------------------------------------------------------------------------------------- */

static yk_variable *vector(const job *j, const char *name, int device, int part, yk_init init) {
  yk_variable_options fixed = { .not_trainable = true };
  char full[32], at[24];
  yk_variable *v = NULL;
  snprintf(full, sizeof full, "%s%d_%d", name, device, part);
  snprintf(at, sizeof at, "/%s:%d", j->cpu ? "cpu" : "gpu", device);
  YK_DEVICE(j->g, at) { v = yk_get_variable(j->g, full, YK_F32, YK_SHAPE(j->part), init, &fixed); }
  return v;
}

/* Part `part`: the vectors of all devices, their sum on device `part`, stored by each. */
static void reduce(job *j, int part, yk_value *stored) {
  yk_value in[MOST], sum = { 0 };
  for (int d = 0; d < j->n; d++) in[d] = yk_read(vector(j, "g", d, part, YK_CONSTANT(d + 1)));
  YK_COLOCATE(j->g, in[part]) { sum = yk_add_n(j->g, (size_t)j->n, in); }
  for (int d = 0; d < j->n; d++) {
    yk_variable *out = vector(j, "out", d, part, YK_ZEROS);
    stored[d] = yk_assign(j->g, out, sum);
    if (part == 0) YK_COLOCATE(j->g, yk_read(out)) { j->first[d] = yk_reduce_max(j->g, yk_read(out), NULL); }
  }
}

static yk_code prepare(job *j) {
  yk_value stored[MOST * MOST];
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  YK_TRY(yk_graph_new(&j->g));
  for (int k = 0; k < j->n; k++) reduce(j, k, stored + k * j->n);
  yk_value all = yk_group(j->g, (size_t)(j->n * j->n), stored), init = yk_global_variables_initializer(j->g);
  if (j->cpu) so.cpu_devices = j->n;
  else so.virtual_gpus = j->n;
  YK_TRY(yk_session_open(j->g, &so, &j->s));
  YK_TRY(yk_session_run(j->s, 0, NULL, 0, NULL, 1, &init, NULL));
  j->threads = yk_session_options_of(j->s)->cores;
  return yk_step_prepare(j->s, 0, NULL, 0, NULL, 1, &all, &j->step);
}

static yk_code timed(const job *j, double seconds, copier *c, bench_times *reduced, bench_times *copied, double *first) {
  double end = 0;
  for (int i = 0; i < WARM_UP + 1 || bench_now_ms() < end; i++) {
    double begin = bench_now_ms();
    YK_TRY(yk_step_run(j->step, NULL, NULL));
    double ms = bench_now_ms() - begin, other = copy(c);
    if (i == 0) *first = bench_age_ms();
    if (i < WARM_UP) end = bench_now_ms() + seconds * 1e3;
    else if (bench_times_add(reduced, ms) != 0 || bench_times_add(copied, other) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

/* Every device has 1 + 2 + ... + n. */
static yk_code check(const job *j) {
  yk_tensor *got[MOST];
  YK_TRY(yk_session_run(j->s, 0, NULL, (size_t)j->n, j->first, 0, NULL, got));
  bool good = true;
  for (int d = 0; d < j->n; d++) {
    good &= yk_tensor_at(got[d], 0) == j->n * (j->n + 1) / 2.0;
    yk_tensor_free(got[d]);
  }
  return good ? YK_OK : YK_EINTERNAL;
}

static int report(const job *j, double bytes, bench_times *reduced, bench_times *copied, double first) {
  char more[256];
  double rate = 2.0 * j->n * bytes / bench_times_stats(reduced).median * 1e-6, memory = 2.0 * COPIED / bench_times_stats(copied).median * 1e-6;
  snprintf(more, sizeof more, ",\"devices\":%d,\"bytes\":%.0f,\"gb_per_s\":%.2f,\"memory_gb_per_s\":%.2f,\"share\":%.3f", j->n, bytes, rate,
           memory, rate / memory);
  bench_print(&(bench_result){ .contender = "yoke_reduce", .model = j->what, .batch = 0, .threads = j->threads, .times = reduced,
                               .first_step_ms = first, .loss = (double)NAN, .more = more });
  return 0;
}

int main(int argc, char **argv) {
  bench_times reduced = { 0 }, copied = { 0 };
  job j = { .what = argc > 1 ? argv[1] : "" };
  double first = 0;
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: yoke_reduce DEVICES [MEGABYTES [SECONDS]]\n");
    return 2;
  }
  j.cpu = strncmp(argv[1], "cpu", 3) == 0;
  double n = bench_number(argv[1] + (j.cpu ? 3 : 0), 0), megabytes = bench_number(argc > 2 ? argv[2] : NULL, 100);
  double seconds = bench_number(argc > 3 ? argv[3] : NULL, 3);
  if (!(n >= 2 && n <= MOST) || isnan(megabytes) || megabytes > 1e4 || isnan(seconds)) return die("DEVICES must be 2 to 8, the others numbers above 0");
  j.n = (int)n;
  j.part = (int64_t)(megabytes * 1e6 / 4 / j.n);
  yk_code rc = prepare(&j);
  if (rc == YK_OK && (j.threads < 1 || j.threads > MOST_THREADS)) return die("more cores than it knows of");
  static copier c;
  if (rc == YK_OK && copier_open(&c, j.threads) != 0) return die("no memory or threads to measure with");
  if (rc == YK_OK) rc = timed(&j, seconds, &c, &reduced, &copied, &first);
  if (c.memory != NULL) copier_close(&c);
  if (rc == YK_OK) rc = check(&j);
  int status = rc == YK_OK ? report(&j, (double)j.part * 4 * j.n, &reduced, &copied, first) : die("the all-reduce failed");
  yk_step_free(j.step);
  yk_session_close(j.s);
  yk_graph_free(j.g);
  bench_times_free(&reduced);
  bench_times_free(&copied);
  return status;
}
