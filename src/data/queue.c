/*
 * queue.c - background threads prepare examples; devices take them in order.
 *
 * Example k of the stream is fixed by the seed: epoch k/n, place k%n of that epoch's permutation. Threads claim short runs of
 * k and prepare them into a ring; a taker copies the next rows out as soon as they are ready, so the stream does not depend on
 * the number or speed of the threads. One taker at a time copies, which keeps the rows of a batch consecutive; while its rows
 * are not ready it prepares some of them itself, because the cores of a step that waits for data are idle.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/dataset.h"

enum { RUN = 16, MAX_THREADS = 64, STREAM = 200 };
#define ENDLESS   (INT64_MAX / 2)
#define MAX_BYTES ((int64_t)1 << 46)

struct yk_queue {
  const yk_dataset *d;
  yk_queue_options o;
  yk_frame frame;
  int64_t elements;                 /* floats of a prepared picture */
  int64_t capacity, limit;          /* examples in the ring; of the whole stream */
  float *image;                     /* [capacity, elements] */
  int32_t *label;                   /* [capacity] */
  int64_t *ready;                   /* [capacity] 1 + number of the example in the slot */
  yk_mutex taker;                   /* held while a batch is copied out */
  yk_mutex lock;                    /* the fields below, and `ready`; never held while a picture is made or copied */
  yk_cond filled, freed, left;      /* a picture is ready; a slot is free; a taker has gone */
  int64_t claimed, taken;
  int takers, closed;               /* takers: calls of `next` under way */
  int making, moving;               /* makers at work; a seek waits for them */
  yk_thread thread[MAX_THREADS];
  int nthreads;
  yk_source source;
};

/* Without a table: four Feistel rounds on enough bits, walked until the result is below n. */
int64_t yk__permute(uint64_t seed, uint64_t epoch, int64_t n, int64_t i) {
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

static void prepare(yk_queue *q, int64_t k) {
  int64_t epoch = k / q->d->n, i = k % q->d->n, slot = k % q->capacity;
  if (q->o.shuffle) i = yk__permute(q->o.seed, (uint64_t)epoch, q->d->n, i);
  q->label[slot] = q->d->label[i];
  yk__augment(q->o.augment, &q->frame, yk_dataset_image(q->d, i), q->o.seed, (uint64_t)k, q->image + slot * q->elements);
}

/* With the lock held: claim the next run of examples, none at or beyond `end`; how many. */
static int64_t claim(yk_queue *q, int64_t end, int64_t *first) {
  int64_t n = (end < q->limit ? end : q->limit) - q->claimed;
  if (n <= 0 || q->moving) return 0;
  if (n > RUN) n = RUN;
  *first = q->claimed;
  q->claimed += n;
  return n;
}

/* With the lock held, which is let go of meanwhile: prepare a claimed run. */
static void make(yk_queue *q, int64_t first, int64_t n) {
  q->making++;
  yk__mutex_unlock(&q->lock);
  for (int64_t k = first; k < first + n; k++) prepare(q, k);
  yk__mutex_lock(&q->lock);
  q->making--;
  for (int64_t k = first; k < first + n; k++) q->ready[k % q->capacity] = k + 1;
  yk__cond_broadcast(&q->filled);
}

static void *work(void *arg) {
  yk_queue *q = arg;
  int64_t first, n;
  yk__mutex_lock(&q->lock);
  while (!q->closed) {
    n = claim(q, q->taken + q->capacity, &first);
    if (n > 0) make(q, first, n);
    else yk__cond_wait(&q->freed, &q->lock);
  }
  yk__mutex_unlock(&q->lock);
  return NULL;
}

/* Give back the slots of `done` examples just copied, and wait for the next ones, or make them where no thread is at it yet: how
 * many are ready in a row, at most `rows`. 0 = closed. */
static int64_t await(yk_queue *q, int64_t done, int64_t rows) {
  int64_t n = 0, first;
  yk__mutex_lock(&q->lock);
  q->taken += done;
  if (done > 0) yk__cond_broadcast(&q->freed);
  if (rows > q->capacity) rows = q->capacity;
  while (rows > 0 && !q->closed && q->ready[q->taken % q->capacity] != q->taken + 1) {
    n = claim(q, q->taken + rows, &first);
    if (n > 0) make(q, first, n);
    else yk__cond_wait(&q->filled, &q->lock);
  }
  n = 0;
  while (n < rows && !q->closed && q->ready[(q->taken + n) % q->capacity] == q->taken + n + 1) n++;
  yk__mutex_unlock(&q->lock);
  return n;
}

/* Only the taker changes q->taken, so it may read it without the lock. */
static yk_code take_rows(yk_queue *q, int64_t rows, float *image, int32_t *label) {
  int64_t n = 0;
  if (rows > q->limit - q->taken)
    return YK_FAIL(ECANCELLED, "the batch queue is used up: %" PRId64 " examples are left of %" PRId64 ", %" PRId64 " were asked for",
                   q->limit - q->taken, q->limit, rows);
  while (rows > 0) {
    n = await(q, n, rows);
    if (n == 0) return YK_FAIL(ECANCELLED, "the batch queue was closed");
    for (int64_t k = q->taken; k < q->taken + n; k++) {
      memcpy(image, q->image + k % q->capacity * q->elements, (size_t)q->elements * sizeof *image);
      *label++ = q->label[k % q->capacity];
      image += q->elements;
    }
    rows -= n;
  }
  await(q, n, 0);
  return YK_OK;
}

/* Count this call in or out; a queue is not freed while one is under way. */
static void come_or_go(yk_queue *q, int by) {
  yk__mutex_lock(&q->lock);
  q->takers += by;
  yk__cond_broadcast(&q->left);
  yk__mutex_unlock(&q->lock);
}

static yk_code next(void *self, int64_t rows, void *const *out) {
  yk_queue *q = self;
  yk_code rc;
  come_or_go(q, 1);
  yk__mutex_lock(&q->taker);
  rc = take_rows(q, rows, out[0], out[1]);
  yk__mutex_unlock(&q->taker);
  come_or_go(q, -1);
  return rc;
}

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. */
static yk_code take_options(const yk_dataset *d, const yk_queue_options *given, yk_queue_options *o) {
  yk_frame f = { .h = d->height, .w = d->width, .c = d->channels };
  *o = (yk_queue_options)YK_QUEUE_OPTIONS_INIT;
  if (given->size < sizeof given->size || given->size > 4096)
    return YK_FAIL(EINVAL, "yk_queue_options.size is %u; start from YK_QUEUE_OPTIONS_INIT", given->size);
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  if (o->threads < 0 || o->threads > MAX_THREADS)
    return YK_FAIL(EINVAL, "a queue has 1 to %d threads (0 = 1), not %d", MAX_THREADS, o->threads);
  if (o->epochs < 0) return YK_FAIL(EINVAL, "a queue's epochs are %" PRId64 "; expected 0 (endless) or more", o->epochs);
  if (o->image_size == 0) o->image_size = d->height < d->width ? d->height : d->width;
  if (o->capacity == 0) o->capacity = 1024;
  if (o->threads == 0) o->threads = 1;
  f.size = o->image_size;
  YK_TRY(yk__augment_check(o->augment, &f));
  if (o->capacity < 1 || o->capacity > MAX_BYTES / (f.size * f.size * f.c * (int64_t)sizeof(float)))
    return YK_FAIL(EINVAL, "a queue cannot keep %" PRId64 " prepared pictures ahead", o->capacity);
  return YK_OK;
}

static yk_code start(yk_queue *q) {
  q->image = yk__alloc((size_t)(q->capacity * q->elements) * sizeof *q->image);
  q->label = yk__calloc((size_t)q->capacity, sizeof *q->label);
  q->ready = yk__calloc((size_t)q->capacity, sizeof *q->ready);
  if (q->image == NULL || q->label == NULL || q->ready == NULL) return YK_ENOMEM;
  for (int i = 0; i < q->o.threads; i++) {
    YK_TRY(yk__thread_start(&q->thread[i], "yk-data", work, q));
    q->nthreads++;
  }
  return YK_OK;
}

yk_code yk_queue_open(const yk_dataset *d, const yk_queue_options *options, yk_queue **out) {
  yk_queue_options o;
  yk_queue *q;
  yk_code rc;
  if (d == NULL || options == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_queue_open needs a data set, options and a place for the result");
  YK_TRY(take_options(d, options, &o));
  q = yk__calloc(1, sizeof *q);
  if (q == NULL) return YK_ENOMEM;
  q->d = d;
  q->o = o;
  q->frame = (yk_frame){ .h = d->height, .w = d->width, .c = d->channels, .size = o.image_size };
  q->elements = o.image_size * o.image_size * d->channels;
  q->capacity = o.capacity;
  q->limit = o.epochs > 0 && o.epochs < ENDLESS / d->n ? o.epochs * d->n : ENDLESS;
  yk__mutex_init(&q->lock);
  yk__mutex_init(&q->taker);
  yk__cond_init(&q->filled);
  yk__cond_init(&q->freed);
  yk__cond_init(&q->left);
  q->source = (yk_source){ .self = q, .next = next, .ncomponents = 2 };
  q->source.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { o.image_size, o.image_size, d->channels } };
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
  while (q->takers > 0) yk__cond_wait(&q->left, &q->lock);
  yk__mutex_unlock(&q->lock);
  for (int i = 0; i < q->nthreads; i++) yk__thread_join(&q->thread[i]);
  yk__mutex_free(&q->lock);
  yk__mutex_free(&q->taker);
  yk__cond_free(&q->filled);
  yk__cond_free(&q->freed);
  yk__cond_free(&q->left);
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

yk_position yk_queue_position(const yk_queue *q) {
  int64_t taken = yk_queue_taken(q);
  return (yk_position){ taken / q->d->n, taken % q->d->n };
}

static void move(yk_queue *q, int64_t to) {
  yk__mutex_lock(&q->lock);
  q->moving = 1;
  while (q->making > 0) yk__cond_wait(&q->filled, &q->lock);
  q->moving = 0;
  memset(q->ready, 0, (size_t)q->capacity * sizeof *q->ready);
  q->claimed = q->taken = to;
  yk__cond_broadcast(&q->freed);
  yk__mutex_unlock(&q->lock);
}

yk_code yk_queue_seek(yk_queue *q, yk_position p) {
  if (q == NULL) return YK_FAIL(EINVAL, "yk_queue_seek needs a queue");
  if (p.epoch < 0 || p.example < 0 || p.example >= q->d->n || p.epoch > (q->limit - p.example) / q->d->n)
    return YK_FAIL(EINVAL, "there is no example %" PRId64 " of epoch %" PRId64 " in this queue: its epochs have %" PRId64 " examples",
                   p.example, p.epoch, q->d->n);
  come_or_go(q, 1);
  yk__mutex_lock(&q->taker);
  move(q, p.epoch * q->d->n + p.example);
  yk__mutex_unlock(&q->taker);
  come_or_go(q, -1);
  return YK_OK;
}
