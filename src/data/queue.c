/*
 * queue.c - background threads prepare examples; devices take them in order.
 *
 * Example k of the stream is fixed by the seed: epoch k/n, place k%n of that epoch's permutation. Threads claim short runs of
 * k and prepare them into a ring; a taker copies the next rows out as soon as they are ready, so the stream does not depend on
 * the number or speed of the threads, and moving the queue is setting k. One taker at a time copies, which keeps the rows of a
 * batch consecutive; while its rows are not ready it prepares some of them itself, because the cores of a step that waits for
 * data are idle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/dataset.h"

enum { RUN = 16, MAX_THREADS = 64, STREAM = 200 };
#define ENDLESS   (INT64_MAX / 2)
#define MAX_BYTES ((int64_t)1 << 46)

/* Who prepares: a thread of the queue, or the taker. */
typedef struct yk_maker { yk_queue *q; yk_thread thread; uint8_t *picture; } yk_maker;   /* picture: as read, NULL if it is in memory */

struct yk_queue {
  const yk_dataset *d;
  yk_queue_options o;
  yk_frame frame;                   /* of the picture; all 0 if there is none */
  int64_t pass;                     /* examples of an epoch */
  int64_t capacity, limit;          /* examples in the ring; of the whole stream */
  uint8_t *ring[YK_MAX_COMPONENTS]; /* [capacity] prepared components */
  int64_t bytes[YK_MAX_COMPONENTS]; /* of one of them */
  int64_t *ready;                   /* [capacity] 1 + number of the example in the slot */
  yk_mutex taker;                   /* held while a batch is copied out, and while the queue is moved */
  yk_mutex lock;                    /* the fields below, and `ready`; never held while an example is made or copied */
  yk_cond filled, freed, left;      /* an example is ready; a slot is free; a taker has gone */
  int64_t claimed, taken;
  int takers, closed;               /* takers: calls of `next` under way */
  int making, moving;               /* makers at work; a seek waits for them */
  int64_t fail_at;                  /* first example that cannot be had; ENDLESS: none */
  int failed;                       /* somebody was told */
  yk_code fail_code;
  char fail_text[1024];
  yk_maker maker[MAX_THREADS + 1];  /* the last one is the taker */
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

/* Example k into its slot. */
static yk_code prepare(const yk_maker *m, int64_t k) {
  yk_queue *q = m->q;
  const yk_dataset *d = q->d;
  int64_t epoch = k / q->pass, i = k % q->pass, slot = k % q->capacity;
  void *out[YK_MAX_COMPONENTS];
  const uint8_t *picture = m->picture;
  if (q->o.shuffle) i = yk__permute(q->o.seed, (uint64_t)epoch, d->n, i);
  for (uint32_t c = 0; c < d->ncomponents; c++) out[c] = q->ring[c] + slot * q->bytes[c];
  float *to = d->picture >= 0 ? out[d->picture] : NULL;
  if (d->reader->image != NULL) {
    int32_t label = yk_dataset_label(d, i);
    memcpy(out[d->label], &label, sizeof label);
    picture = yk_dataset_image(d, i);
  } else {
    if (to != NULL) out[d->picture] = m->picture;
    YK_TRY(yk__dataset_get(d, i, out));
  }
  if (to != NULL) yk__augment(q->o.augment, &q->frame, picture, q->o.seed, (uint64_t)k, to);
  return YK_OK;
}

/* With the lock held: claim the next run of examples, none at or beyond `end`; how many. */
static int64_t claim(yk_queue *q, int64_t end, int64_t *first) {
  if (end > q->limit) end = q->limit;
  if (end > q->fail_at) end = q->fail_at;
  int64_t n = end - q->claimed;
  if (n <= 0 || q->moving) return 0;
  if (n > RUN) n = RUN;
  *first = q->claimed;
  q->claimed += n;
  return n;
}

/* With the lock held: example k cannot be had; this thread's message says why. The first one in the stream counts. */
static void note_failure(yk_queue *q, int64_t k, yk_code rc) {
  if (k < q->fail_at) {
    q->fail_at = k;
    q->fail_code = rc;
    snprintf(q->fail_text, sizeof q->fail_text, "%s", yk_error_message());
  }
  yk_error_clear();
}

/* With the lock held, which is let go of meanwhile: prepare a claimed run. */
static void make(const yk_maker *m, int64_t first, int64_t n) {
  yk_queue *q = m->q;
  yk_code rc = YK_OK;
  int64_t made = 0;
  q->making++;
  yk__mutex_unlock(&q->lock);
  while (made < n && (rc = prepare(m, first + made)) == YK_OK) made++;
  yk__mutex_lock(&q->lock);
  q->making--;
  for (int64_t k = first; k < first + made; k++) q->ready[k % q->capacity] = k + 1;
  if (rc != YK_OK) note_failure(q, first + made, rc);
  yk__cond_broadcast(&q->filled);
}

static void *work(void *arg) {
  yk_maker *m = arg;
  yk_queue *q = m->q;
  int64_t first, n;
  yk__mutex_lock(&q->lock);
  while (!q->closed) {
    n = claim(q, q->taken + q->capacity, &first);
    if (n > 0) make(m, first, n);
    else yk__cond_wait(&q->freed, &q->lock);
  }
  yk__mutex_unlock(&q->lock);
  return NULL;
}

/* Give back the slots of `done` examples just copied, and wait for the next ones, or make them where no thread is at it yet: how
 * many are ready in a row, at most `rows`. 0 = closed, or the next one cannot be had. */
static int64_t await(yk_queue *q, int64_t done, int64_t rows) {
  int64_t n = 0, first;
  yk__mutex_lock(&q->lock);
  q->taken += done;
  if (done > 0) yk__cond_broadcast(&q->freed);
  if (rows > q->capacity) rows = q->capacity;
  while (rows > 0 && !q->closed && q->taken < q->fail_at && q->ready[q->taken % q->capacity] != q->taken + 1) {
    n = claim(q, q->taken + rows, &first);
    if (n > 0) make(&q->maker[MAX_THREADS], first, n);
    else yk__cond_wait(&q->filled, &q->lock);
  }
  n = 0;
  while (n < rows && !q->closed && q->ready[(q->taken + n) % q->capacity] == q->taken + n + 1) n++;
  yk__mutex_unlock(&q->lock);
  return n;
}

/* A batch that cannot be had: nothing was taken, and nothing will be before the queue is moved. */
static yk_code refuse(yk_queue *q, int64_t began) {
  yk__mutex_lock(&q->lock);
  int closed = q->closed;
  if (!closed) {
    q->failed = 1;
    q->taken = began;
  }
  yk__mutex_unlock(&q->lock);
  if (closed) return YK_FAIL(ECANCELLED, "the batch queue was closed");
  return yk__fail(q->fail_code, __FILE__, __LINE__, "%s", q->fail_text);
}

/* Only the taker changes q->taken and q->failed, so it may read them without the lock. */
static yk_code copy_rows(yk_queue *q, int64_t rows, void *const *out) {
  int64_t n = 0, done = 0, began = q->taken;
  if (q->failed) return refuse(q, began);
  for (; done < rows; done += n) {
    n = await(q, n, rows - done);
    if (n == 0) return refuse(q, began);
    for (uint32_t c = 0; c < q->d->ncomponents; c++) {
      size_t bytes = (size_t)q->bytes[c];
      uint8_t *to = (uint8_t *)out[c] + (size_t)done * bytes;
      for (int64_t k = q->taken; k < q->taken + n; k++, to += bytes) memcpy(to, q->ring[c] + (size_t)(k % q->capacity) * bytes, bytes);
    }
  }
  await(q, n, 0);
  return YK_OK;
}

static yk_code take_rows(yk_queue *q, yk_take how, int64_t rows, void *const *out, int64_t *taken) {
  int64_t left = q->limit - q->taken, in_epoch = q->pass - q->taken % q->pass;
  if (how == YK_TAKE_IN_EPOCH && rows > in_epoch) rows = in_epoch;
  if (how != YK_TAKE_ALL && left > 0 && rows > left) rows = left;
  if (rows > left)
    return YK_FAIL(ERANGE, "the batch queue is used up: %" PRId64 " examples are left of %" PRId64 ", %" PRId64 " were asked for",
                   left, q->limit, rows);
  YK_TRY(copy_rows(q, rows, out));
  *taken = rows;
  return YK_OK;
}

/* Count this call in or out; a queue is not freed while one is under way. */
static void come_or_go(yk_queue *q, int by) {
  yk__mutex_lock(&q->lock);
  q->takers += by;
  yk__cond_broadcast(&q->left);
  yk__mutex_unlock(&q->lock);
}

static yk_code take(yk_queue *q, yk_take how, int64_t rows, void *const *out, int64_t *taken) {
  come_or_go(q, 1);
  yk__mutex_lock(&q->taker);
  yk_code rc = take_rows(q, how, rows, out, taken);
  yk__mutex_unlock(&q->taker);
  come_or_go(q, -1);
  return rc;
}

static yk_code next(void *self, int64_t rows, void *const *out) {
  int64_t taken;
  return take(self, YK_TAKE_ALL, rows, out, &taken);
}

yk_code yk_queue_take(yk_queue *q, yk_take how, int64_t rows, void *const *out, int64_t *taken) {
  if (q == NULL || out == NULL || taken == NULL) return YK_FAIL(EINVAL, "yk_queue_take needs a queue and places for the result");
  if ((unsigned)how > YK_TAKE_IN_EPOCH) return YK_FAIL(EINVAL, "there is no way %d to take examples", (int)how);
  if (rows < 1) return YK_FAIL(EINVAL, "a batch has at least 1 row, not %" PRId64, rows);
  return take(q, how, rows, out, taken);
}

/* ---- opening and closing ---- */

static yk_code check_picture(const yk_dataset *d, yk_queue_options *o) {
  yk_shape s = yk_dataset_shape(d);
  if (d->picture < 0) return YK_OK;
  if (o->image_size == 0) o->image_size = s.dim[0] < s.dim[1] ? s.dim[0] : s.dim[1];
  return yk__augment_check(o->augment, &(yk_frame){ .h = s.dim[0], .w = s.dim[1], .c = s.dim[2], .size = o->image_size });
}

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. */
static yk_code take_options(const yk_dataset *d, const yk_queue_options *given, yk_queue_options *o) {
  *o = (yk_queue_options)YK_QUEUE_OPTIONS_INIT;
  if (given->size < sizeof given->size || given->size > 4096)
    return YK_FAIL(EINVAL, "yk_queue_options.size is %u; start from YK_QUEUE_OPTIONS_INIT", given->size);
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  if (o->threads < 0 || o->threads > MAX_THREADS)
    return YK_FAIL(EINVAL, "a queue has 1 to %d threads (0 = 1), not %d", MAX_THREADS, o->threads);
  if (o->epochs < 0) return YK_FAIL(EINVAL, "a queue's epochs are %" PRId64 "; expected 0 (endless) or more", o->epochs);
  if (o->whole_batches < 0 || o->whole_batches > d->n)
    return YK_FAIL(EINVAL, "%" PRId64 " examples do not make whole batches of %" PRId64, d->n, o->whole_batches);
  if (o->capacity == 0) o->capacity = 1024;
  if (o->threads == 0) o->threads = 1;
  return check_picture(d, o);
}

/* What a batch is made of, and the room that an example takes. */
static yk_code describe(yk_queue *q) {
  const yk_dataset *d = q->d;
  int64_t bytes = 0;
  q->source = (yk_source){ .self = q, .next = next, .ncomponents = d->ncomponents };
  for (uint32_t c = 0; c < d->ncomponents; c++) {
    yk_desc *one = &q->source.component[c];
    *one = d->component[c];
    if ((int)c == d->picture) *one = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { q->o.image_size, q->o.image_size, one->dim[2] } };
    q->bytes[c] = yk__example_bytes(one);
    bytes += q->bytes[c];
  }
  if (q->capacity < 1 || q->capacity > MAX_BYTES / (bytes > 0 ? bytes : 1))
    return YK_FAIL(EINVAL, "a queue cannot keep %" PRId64 " prepared examples of %" PRId64 " bytes ahead", q->capacity, bytes);
  return YK_OK;
}

static yk_code get_room(yk_queue *q) {
  const yk_dataset *d = q->d;
  for (uint32_t c = 0; c < d->ncomponents; c++)
    if ((q->ring[c] = yk__alloc((size_t)(q->capacity * q->bytes[c]) + 1)) == NULL) return YK_ENOMEM;
  q->ready = yk__calloc((size_t)q->capacity, sizeof *q->ready);
  if (q->ready == NULL) return YK_ENOMEM;
  for (int i = 0; i <= MAX_THREADS; i++) {
    q->maker[i].q = q;
    if (d->picture < 0 || d->reader->image != NULL || (i >= q->o.threads && i < MAX_THREADS)) continue;
    if ((q->maker[i].picture = yk__alloc((size_t)yk__example_bytes(&d->component[d->picture]))) == NULL) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code start(yk_queue *q) {
  YK_TRY(describe(q));
  YK_TRY(get_room(q));
  for (int i = 0; i < q->o.threads; i++) {
    YK_TRY(yk__thread_start(&q->maker[i].thread, "yk-data", work, &q->maker[i]));
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
  if (d->picture >= 0) {
    const int64_t *dim = d->component[d->picture].dim;
    q->frame = (yk_frame){ .h = dim[0], .w = dim[1], .c = dim[2], .size = o.image_size };
  }
  q->capacity = o.capacity;
  q->pass = o.whole_batches > 0 ? d->n - d->n % o.whole_batches : d->n;
  q->limit = o.epochs > 0 && o.epochs < ENDLESS / q->pass ? o.epochs * q->pass : ENDLESS;
  q->fail_at = ENDLESS;
  yk__mutex_init(&q->lock);
  yk__mutex_init(&q->taker);
  yk__cond_init(&q->filled);
  yk__cond_init(&q->freed);
  yk__cond_init(&q->left);
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
  for (int i = 0; i < q->nthreads; i++) yk__thread_join(&q->maker[i].thread);
  yk__mutex_free(&q->lock);
  yk__mutex_free(&q->taker);
  yk__cond_free(&q->filled);
  yk__cond_free(&q->freed);
  yk__cond_free(&q->left);
  for (uint32_t c = 0; c < YK_MAX_COMPONENTS; c++) yk__free(q->ring[c]);
  for (int i = 0; i <= MAX_THREADS; i++) yk__free(q->maker[i].picture);
  yk__free(q->ready);
  yk__free(q);
}

const yk_source *yk_queue_source(const yk_queue *q) {
  return &q->source;
}

/* ---- where it is ---- */

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
  return (yk_position){ .epoch = taken / q->pass, .example = taken % q->pass };
}

/* With the taker's mutex held, so nobody takes; what was prepared is forgotten once nobody prepares. */
static void move(yk_queue *q, int64_t to) {
  yk__mutex_lock(&q->lock);
  q->moving = 1;
  while (q->making > 0) yk__cond_wait(&q->filled, &q->lock);
  q->moving = 0;
  memset(q->ready, 0, (size_t)q->capacity * sizeof *q->ready);
  q->claimed = q->taken = to;
  q->fail_at = ENDLESS;
  q->failed = 0;
  yk__cond_broadcast(&q->freed);
  yk__mutex_unlock(&q->lock);
}

yk_code yk_queue_seek(yk_queue *q, yk_position p) {
  if (q == NULL) return YK_FAIL(EINVAL, "yk_queue_seek needs a queue");
  if (p.epoch < 0 || p.example < 0 || p.example >= q->pass || p.epoch > (q->limit - p.example) / q->pass)
    return YK_FAIL(EINVAL, "there is no example %" PRId64 " of epoch %" PRId64 " in this queue: its epochs have %" PRId64 " examples%s",
                   p.example, p.epoch, q->pass, q->limit < ENDLESS ? ", and their number is limited" : "");
  come_or_go(q, 1);
  yk__mutex_lock(&q->taker);
  move(q, p.epoch * q->pass + p.example);
  yk__mutex_unlock(&q->taker);
  come_or_go(q, -1);
  return YK_OK;
}
