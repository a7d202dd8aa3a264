/*
 * queue.c - background threads prepare examples; devices take them in order.
 *
 * Example k of the stream is fixed by the seed: epoch k/n, place k%n of that
 * epoch's permutation. Threads claim short runs of k and prepare them into a
 * ring; a taker copies the next rows out as soon as they are ready, so the
 * stream does not depend on the number or speed of the threads.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/dataset.h"

enum { RUN = 16, MAX_THREADS = 64, STREAM = 200 };

struct yk_queue {
  const yk_dataset *d;
  yk_queue_options o;
  int64_t size, elements;           /* side of a prepared picture, and its floats */
  int64_t capacity, limit;          /* examples in the ring; of the whole stream */
  float *image;                     /* [capacity, elements] */
  int32_t *label;                   /* [capacity] */
  int64_t *ready;                   /* [capacity] 1 + number of the example in the slot */
  yk_mutex lock, taker;             /* `taker` keeps one batch's rows consecutive */
  yk_cond filled, freed;
  int64_t claimed, taken;
  int closed;
  char failure[256];                /* "" = none */
  yk_thread thread[MAX_THREADS];
  int nthreads;
  yk_source source;
};

/* A permutation of [0, n) without a table: four Feistel rounds on enough bits, walked until the result is below n. */
static int64_t permute(uint64_t seed, uint64_t epoch, int64_t n, int64_t i) {
  uint32_t half = 1;
  uint64_t x = (uint64_t)i, mask;
  while (((uint64_t)1 << (2 * half)) < (uint64_t)n) half++;
  mask = ((uint64_t)1 << half) - 1;
  do {
    uint64_t l = x >> half, r = x & mask;
    for (uint32_t round = 0; round < 4; round++) {
      uint32_t w[4];
      uint64_t t;
      yk__rng_block(seed, STREAM, epoch, r, round, w);
      t = l ^ (w[0] & mask);
      l = r;
      r = t;
    }
    x = l << half | r;
  } while (x >= (uint64_t)n);
  return (int64_t)x;
}

static yk_code prepare(yk_queue *q, int64_t k) {
  int64_t epoch = k / q->d->n, i = k % q->d->n, slot = k % q->capacity;
  if (q->o.shuffle) i = permute(q->o.seed, (uint64_t)epoch, q->d->n, i);
  q->label[slot] = q->d->label[i];
  return yk_augment_image(q->o.augment, yk_dataset_image(q->d, i), q->d->height, q->d->width, q->d->channels, q->size, q->o.seed, (uint64_t)k,
                          q->image + slot * q->elements);
}

/* Claim the next run of examples that fits into the ring; 0 = the queue is closed or used up. */
static int64_t claim(yk_queue *q, int64_t *first) {
  int64_t n = 0;
  yk__mutex_lock(&q->lock);
  while (!q->closed && q->claimed < q->limit && q->claimed >= q->taken + q->capacity) yk__cond_wait(&q->freed, &q->lock);
  if (!q->closed && q->claimed < q->limit) {
    n = q->taken + q->capacity - q->claimed;
    if (n > RUN) n = RUN;
    if (n > q->limit - q->claimed) n = q->limit - q->claimed;
    *first = q->claimed;
    q->claimed += n;
  }
  yk__mutex_unlock(&q->lock);
  return n;
}

static void *work(void *arg) {
  yk_queue *q = arg;
  int64_t first, n;
  while ((n = claim(q, &first)) > 0) {
    yk_code rc = YK_OK;
    for (int64_t k = first; k < first + n && rc == YK_OK; k++) rc = prepare(q, k);
    yk__mutex_lock(&q->lock);
    for (size_t i = 0; rc != YK_OK && i + 1 < sizeof q->failure; i++)
      if ((q->failure[i] = yk_error_message()[i]) == '\0') break;
    for (int64_t k = first; k < first + n; k++) q->ready[k % q->capacity] = k + 1;
    yk__cond_broadcast(&q->filled);
    yk__mutex_unlock(&q->lock);
  }
  return NULL;
}

/* Wait until example k is ready. */
static yk_code await(yk_queue *q, int64_t k) {
  yk_code rc = YK_OK;
  yk__mutex_lock(&q->lock);
  while (!q->closed && q->failure[0] == '\0' && q->ready[k % q->capacity] != k + 1) yk__cond_wait(&q->filled, &q->lock);
  if (q->failure[0] != '\0') rc = YK_FAIL(EINVAL, "preparing an example for the batch queue failed: %s", q->failure);
  else if (q->closed) rc = YK_FAIL(ECANCELLED, "the batch queue was closed");
  yk__mutex_unlock(&q->lock);
  return rc;
}

static yk_code take_rows(yk_queue *q, int64_t rows, float *image, int32_t *label) {
  if (q->taken + rows > q->limit)
    return YK_FAIL(ECANCELLED, "the batch queue is used up: %" PRId64 " examples are left of %" PRId64 ", %" PRId64 " were asked for",
                   q->limit - q->taken, q->limit, rows);
  for (int64_t r = 0; r < rows; r++) {
    int64_t k = q->taken, slot = k % q->capacity;
    YK_TRY(await(q, k));
    memcpy(image + r * q->elements, q->image + slot * q->elements, (size_t)q->elements * sizeof *image);
    label[r] = q->label[slot];
    yk__mutex_lock(&q->lock);
    q->taken = k + 1;
    if (q->taken % RUN == 0 || r == rows - 1) yk__cond_broadcast(&q->freed);
    yk__mutex_unlock(&q->lock);
  }
  return YK_OK;
}

static yk_code next(void *self, int64_t rows, void *const *out) {
  yk_queue *q = self;
  yk_code rc;
  yk__mutex_lock(&q->taker);
  rc = take_rows(q, rows, out[0], out[1]);
  yk__mutex_unlock(&q->taker);
  return rc;
}

static yk_code check_options(const yk_dataset *d, const yk_queue_options *o) {
  if (o->threads < 0 || o->threads > MAX_THREADS) return YK_FAIL(EINVAL, "a queue takes 1 to %d threads, not %d", MAX_THREADS, o->threads);
  if (o->capacity < 0 || o->epochs < 0) return YK_FAIL(EINVAL, "a queue's capacity and epochs cannot be negative");
  if (o->image_size < 0 || o->image_size > d->height || o->image_size > d->width)
    return YK_FAIL(EINVAL, "pictures of %" PRId64 "x%" PRId64 " cannot be cut to %" PRId64, d->height, d->width, o->image_size);
  return YK_OK;
}

static yk_code start(yk_queue *q) {
  q->image = yk__alloc((size_t)(q->capacity * q->elements) * sizeof *q->image);
  q->label = yk__calloc((size_t)q->capacity, sizeof *q->label);
  q->ready = yk__calloc((size_t)q->capacity, sizeof *q->ready);
  if (q->image == NULL || q->label == NULL || q->ready == NULL) return YK_ENOMEM;
  for (int i = 0; i < (q->o.threads ? q->o.threads : 1); i++) {
    YK_TRY(yk__thread_start(&q->thread[i], "yk-data", work, q));
    q->nthreads++;
  }
  return YK_OK;
}

yk_code yk_queue_open(const yk_dataset *d, const yk_queue_options *options, yk_queue **out) {
  yk_queue *q;
  yk_code rc;
  if (d == NULL || options == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_queue_open needs a data set, options and a place for the result");
  YK_TRY(check_options(d, options));
  q = yk__calloc(1, sizeof *q);
  if (q == NULL) return YK_ENOMEM;
  q->d = d;
  q->o = *options;
  q->size = options->image_size ? options->image_size : d->height < d->width ? d->height : d->width;
  q->elements = q->size * q->size * d->channels;
  q->capacity = options->capacity ? options->capacity : 1024;
  q->limit = options->epochs ? options->epochs * d->n : INT64_MAX / 2;
  yk__mutex_init(&q->lock);
  yk__mutex_init(&q->taker);
  yk__cond_init(&q->filled);
  yk__cond_init(&q->freed);
  q->source = (yk_source){ .self = q, .next = next, .ncomponents = 2 };
  q->source.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { q->size, q->size, d->channels } };
  q->source.component[1] = (yk_desc){ .dtype = YK_I32, .rank = 0 };
  rc = start(q);
  if (rc == YK_OK) *out = q;
  else yk_queue_close(q);
  return rc;
}

void yk_queue_close(yk_queue *q) {
  if (q == NULL) return;
  yk__mutex_lock(&q->lock);
  q->closed = 1;
  yk__cond_broadcast(&q->filled);
  yk__cond_broadcast(&q->freed);
  yk__mutex_unlock(&q->lock);
  for (int i = 0; i < q->nthreads; i++) yk__thread_join(&q->thread[i]);
  yk__mutex_free(&q->lock);
  yk__mutex_free(&q->taker);
  yk__cond_free(&q->filled);
  yk__cond_free(&q->freed);
  yk__free(q->image);
  yk__free(q->label);
  yk__free(q->ready);
  yk__free(q);
}

const yk_source *yk_queue_source(const yk_queue *q) {
  return &q->source;
}

int64_t yk_queue_taken(const yk_queue *q) {
  yk_queue *m = (yk_queue *)(uintptr_t)q;       /* the lock is not part of what const promises */
  int64_t n;
  yk__mutex_lock(&m->lock);
  n = m->taken;
  yk__mutex_unlock(&m->lock);
  return n;
}
