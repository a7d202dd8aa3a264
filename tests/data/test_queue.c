/*
 * Batch queues. One stream of examples, fixed by the seed, whatever the number of threads, the room ahead and the sizes of the
 * batches; takers on other threads get rows of their own; and every way of coming to an end.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/thread.h"
#include <sched.h>
#include <yoke/data.h>

enum { H = 6, W = 5, C = 3, SIDE = 4, ELEMENTS = SIDE * SIDE * C };

/* n pictures that differ, with labels i % 10. */
static yk_dataset *make_set(int64_t n) {
  uint8_t *images = calloc((size_t)n, H * W * C), *labels = calloc((size_t)n, 1);
  yk_dataset *d;
  assert_non_null(images);
  assert_non_null(labels);
  for (int64_t i = 0; i < n * H * W * C; i++) images[i] = (uint8_t)(i * i / 3 + i);
  for (int64_t i = 0; i < n; i++) labels[i] = (uint8_t)(i % 10);
  CHECK_OK(yk_dataset_images(n, H, W, C, images, labels, 10, &d));
  free(images);
  free(labels);
  return d;
}

/* n pictures of one colour, from 0 on, so that a row tells its picture when it is not augmented; and the label is i too. */
static yk_dataset *make_numbered(int64_t n) {
  uint8_t images[256 * SIDE * SIDE * C], labels[256];
  yk_dataset *d;
  assert_true(n <= 256);
  for (int64_t i = 0; i < n; i++) {
    memset(images + i * ELEMENTS, (int)i, ELEMENTS);
    labels[i] = (uint8_t)i;
  }
  CHECK_OK(yk_dataset_images(n, SIDE, SIDE, C, images, labels, 256, &d));
  return d;
}

static yk_queue *open_queue(const yk_dataset *d, yk_queue_options o) {
  yk_queue *q;
  CHECK_OK(yk_queue_open(d, &o, &q));
  return q;
}

static yk_code take(yk_queue *q, int64_t rows, float *images, int32_t *labels) {
  const yk_source *s = yk_queue_source(q);
  return s->next(s->self, rows, (void *const[]){ images, labels });
}

/* The number of the picture that a row of a numbered set shows. */
static int64_t number_of(const float *row) {
  return (int64_t)lrint(((double)row[0] + 0.5) * 255);
}

static void test_source(void **state) {
  yk_dataset *d = make_set(3);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  yk_queue *q;
  const yk_source *s;
  (void)state;
  o.augment = YK_AUGMENT_CIFAR_TRAIN;
  o.image_size = SIDE;
  q = open_queue(d, o);
  s = yk_queue_source(q);
  CHECK_INT(s->ncomponents, 2);
  CHECK_INT(s->component[0].dtype, YK_F32);
  CHECK_INT(s->component[0].rank, 3);
  CHECK_INT(s->component[0].dim[0], SIDE);
  CHECK_INT(s->component[0].dim[1], SIDE);
  CHECK_INT(s->component[0].dim[2], C);
  CHECK_INT(s->component[1].dtype, YK_I32);
  CHECK_INT(s->component[1].rank, 0);
  CHECK_INT(yk_queue_taken(q), 0);
  yk_queue_close(q);
  o.image_size = 0;
  q = open_queue(d, o);
  CHECK_INT(yk_queue_source(q)->component[0].dim[0], W);         /* the largest square */
  yk_queue_close(q);
  yk_queue_close(NULL);
  yk_dataset_free(d);
  yk_dataset_free(NULL);
}

static void test_in_order_without_shuffle(void **state) {
  yk_dataset *d = make_numbered(7);
  yk_queue *q = open_queue(d, (yk_queue_options)YK_QUEUE_OPTIONS_INIT);
  float images[5 * ELEMENTS];
  int32_t labels[5];
  (void)state;
  for (int64_t k = 0; k < 35; k += 5) {
    CHECK_OK(take(q, 5, images, labels));
    CHECK_INT(yk_queue_taken(q), k + 5);
    for (int64_t r = 0; r < 5; r++) {
      CHECK_INT(labels[r], (k + r) % 7);
      CHECK_INT(number_of(images + r * ELEMENTS), (k + r) % 7);
    }
  }
  CHECK_OK(take(q, 0, images, labels));
  CHECK_INT(yk_queue_taken(q), 35);
  yk_queue_close(q);
  yk_dataset_free(d);
}

/* The first 500 examples, taken in batches of `batch`. */
static void read_stream(const yk_dataset *d, uint64_t seed, int32_t threads, int64_t capacity, int64_t batch, float *images, int32_t *labels) {
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  yk_queue *q;
  o.augment = YK_AUGMENT_CIFAR_TRAIN;
  o.image_size = SIDE;
  o.shuffle = true;
  o.seed = seed;
  o.threads = threads;
  o.capacity = capacity;
  q = open_queue(d, o);
  for (int64_t k = 0; k < 500; k += batch) CHECK_OK(take(q, batch < 500 - k ? batch : 500 - k, images + k * ELEMENTS, labels + k));
  CHECK_INT(yk_queue_taken(q), 500);
  yk_queue_close(q);
}

static void test_same_stream(void **state) {
  static const struct { int32_t threads; int64_t capacity, batch; } way[] = {
    { 1, 1024, 1 }, { 1, 1, 10 }, { 2, 3, 128 }, { 2, 17, 7 }, { 4, 64, 64 }, { 4, 5, 500 }, { 8, 1000, 33 },
  };
  static float want[500 * ELEMENTS], got[500 * ELEMENTS];
  static int32_t want_label[500], label[500];
  yk_dataset *d = make_set(77);
  (void)state;
  read_stream(d, 9, 1, 1024, 100, want, want_label);
  for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
    memset(got, 0, sizeof got);
    read_stream(d, 9, way[i].threads, way[i].capacity, way[i].batch, got, label);
    if (memcmp(got, want, sizeof want) != 0 || memcmp(label, want_label, sizeof label) != 0)
      fail_msg("another stream with %d threads, capacity %lld, batches of %lld", way[i].threads, (long long)way[i].capacity, (long long)way[i].batch);
  }
  read_stream(d, 10, 1, 1024, 100, got, label);
  assert_memory_not_equal(got, want, sizeof want);
  assert_memory_not_equal(label, want_label, sizeof label);
  yk_dataset_free(d);
}

/* A picture is not made the same way in every epoch. */
static void test_draws_differ_by_epoch(void **state) {
  yk_dataset *d = make_set(1);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  float first[ELEMENTS], then[ELEMENTS];
  int32_t label;
  yk_queue *q;
  (void)state;
  o.augment = YK_AUGMENT_CIFAR_TRAIN;
  o.image_size = SIDE;
  q = open_queue(d, o);
  CHECK_OK(take(q, 1, first, &label));
  CHECK_OK(take(q, 1, then, &label));
  assert_memory_not_equal(first, then, sizeof first);
  yk_queue_close(q);
  yk_dataset_free(d);
}

static void test_epochs_are_permutations(void **state) {
  enum { N = 101 };
  yk_dataset *d = make_numbered(N);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  static float images[N * ELEMENTS];
  int32_t labels[N];
  int64_t last[N] = { 0 }, moved;
  yk_queue *q;
  (void)state;
  o.shuffle = true;
  o.seed = 5;
  o.threads = 2;
  o.capacity = 40;
  q = open_queue(d, o);
  for (int epoch = 0; epoch < 6; epoch++) {
    char seen[N] = { 0 };
    CHECK_OK(take(q, N, images, labels));
    moved = 0;
    for (int r = 0; r < N; r++) {
      int64_t i = number_of(images + r * ELEMENTS);
      CHECK_INT(labels[r], i);
      if (seen[i]) fail_msg("epoch %d: picture %lld comes twice", epoch, (long long)i);
      seen[i] = 1;
      moved += last[r] != i;
      last[r] = i;
    }
    if (moved < N * 9 / 10) fail_msg("epoch %d is in the order of the one before, but for %lld pictures", epoch, (long long)moved);
  }
  yk_queue_close(q);
  yk_dataset_free(d);
}

typedef struct taker { yk_queue *q; int64_t rows; int batches; yk_code rc; int64_t *first; } taker;

/* Take batches of an unshuffled numbered set of 200; note where each begins, and check that it goes on from there. */
static void *take_batches(void *arg) {
  taker *t = arg;
  float images[40 * ELEMENTS];
  int32_t labels[40];
  for (int b = 0; b < t->batches && t->rc == YK_OK; b++) {
    t->rc = take(t->q, t->rows, images, labels);
    if (t->rc != YK_OK) break;
    t->first[b] = labels[0];
    for (int64_t r = 0; r < t->rows; r++)
      if (labels[r] != (labels[0] + r) % 200 || number_of(images + r * ELEMENTS) != labels[r]) t->rc = YK_EINTERNAL;
  }
  return NULL;
}

/* Batches of 40 of 200 pictures begin at 0, 40, ... 160 in turn: three takers get each of them equally often between them. */
static void test_takers_get_rows_of_their_own(void **state) {
  yk_dataset *d = make_numbered(200);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  int64_t first[3][10];
  int count[5] = { 0 };
  taker t[3];
  yk_thread thread[3];
  yk_queue *q;
  (void)state;
  o.capacity = 64;
  o.threads = 2;
  q = open_queue(d, o);
  for (int i = 0; i < 3; i++) {
    t[i] = (taker){ .q = q, .rows = 40, .batches = 10, .first = first[i] };
    CHECK_OK(yk__thread_start(&thread[i], "taker", take_batches, &t[i]));
  }
  for (int i = 0; i < 3; i++) {
    yk__thread_join(&thread[i]);
    CHECK_INT(t[i].rc, YK_OK);
    for (int b = 0; b < 10; b++) {
      CHECK_INT(first[i][b] % 40, 0);
      count[first[i][b] / 40]++;
    }
  }
  for (int i = 0; i < 5; i++) CHECK_INT(count[i], 6);
  CHECK_INT(yk_queue_taken(q), 1200);
  yk_queue_close(q);
  yk_dataset_free(d);
}

static void test_epochs_are_used_up(void **state) {
  yk_dataset *d = make_numbered(10);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  static float images[30 * ELEMENTS];
  int32_t labels[30] = { 0 };
  yk_queue *q;
  (void)state;
  o.epochs = 2;
  o.capacity = 8;
  o.threads = 3;
  q = open_queue(d, o);
  CHECK_OK(take(q, 13, images, labels));
  labels[0] = 77;
  CHECK_CODE(take(q, 8, images, labels), YK_ERANGE, "used up: 7 examples are left of 20, 8 were asked for");
  CHECK_INT(labels[0], 77);
  CHECK_INT(yk_queue_taken(q), 13);
  CHECK_OK(take(q, 7, images, labels));
  CHECK_INT(labels[6], 9);
  CHECK_CODE(take(q, 1, images, labels), YK_ERANGE, "0 examples are left");
  CHECK_OK(take(q, 0, images, labels));
  yk_queue_close(q);
  o.epochs = INT64_MAX;                   /* as good as endless; does not wrap */
  q = open_queue(d, o);
  CHECK_OK(take(q, 30, images, labels));
  yk_queue_close(q);
  yk_dataset_free(d);
}

enum { MANY = 2000000 };                             /* rows: far more than anybody prepares before the queue is closed */
typedef struct hungry { yk_queue *q; float *images; int32_t *labels; yk_code rc; char message[200]; } hungry;

/* One call only: a queue must not be used once it is closed, and only a call under way is waited for. */
static void *take_many(void *arg) {
  hungry *h = arg;
  h->rc = take(h->q, MANY, h->images, h->labels);
  snprintf(h->message, sizeof h->message, "%s", yk_error_message());
  return NULL;
}

static void test_close_wakes_taker(void **state) {
  yk_dataset *d = make_numbered(200);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  hungry h = { .images = calloc(MANY, ELEMENTS * sizeof(float)), .labels = calloc(MANY, sizeof(int32_t)) };
  (void)state;
  assert_non_null(h.images);
  assert_non_null(h.labels);
  o.capacity = 2;
  for (int round = 0; round < 20; round++) {
    yk_thread thread;
    h.q = open_queue(d, o);
    CHECK_OK(yk__thread_start(&thread, "taker", take_many, &h));
    while (yk_queue_taken(h.q) == 0) sched_yield();
    yk_queue_close(h.q);
    yk__thread_join(&thread);
    CHECK_INT(h.rc, YK_ECANCELLED);
    assert_string_equal(h.message, "the batch queue was closed");
  }
  free(h.images);
  free(h.labels);
  yk_dataset_free(d);
}

/* A taker that stands still cannot run into a freed queue: close waits until it has left. Workers that stand still are woken too. */
static void test_close_without_taking(void **state) {
  yk_dataset *d = make_set(50);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  uint64_t live = yk__alloc_live();
  (void)state;
  o.threads = 4;
  for (int64_t capacity = 1; capacity < 2000; capacity += 199) {
    o.capacity = capacity;
    yk_queue_close(open_queue(d, o));
  }
  CHECK_INT(yk__alloc_live(), live);
  yk_dataset_free(d);
}

static void test_refusals(void **state) {
  yk_dataset *d = make_set(2);
  yk_queue_options ok = YK_QUEUE_OPTIONS_INIT, o = ok;
  yk_queue *q = NULL;
  (void)state;
  CHECK_CODE(yk_queue_open(NULL, &ok, &q), YK_EINVAL, "data set");
  CHECK_CODE(yk_queue_open(d, NULL, &q), YK_EINVAL, "options");
  CHECK_CODE(yk_queue_open(d, &ok, NULL), YK_EINVAL, "result");
  o.size = 0;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "yk_queue_options.size is 0");
  o = ok, o.threads = -1;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "-1");
  o = ok, o.threads = 65;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "65");
  o = ok, o.epochs = -2;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "-2");
  o = ok, o.capacity = -3;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "-3");
  o = ok, o.capacity = INT64_MAX;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "9223372036854775807 prepared examples");
  o = ok, o.image_size = W + 1;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "pictures of 6x5 cannot be cut to 6x6");
  o = ok, o.image_size = -1;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "-1");
  o = ok, o.augment = (yk_augment)17;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "unknown augmentation 17");
  assert_null(q);
  yk_dataset_free(d);
}

static void test_no_memory(void **state) {
  yk_dataset *d = make_set(20);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  uint64_t live = yk__alloc_live(), n = 1;
  yk_queue *q = NULL;
  (void)state;
  o.threads = 2;
  for (;; n++) {
    yk_code rc;
    yk__alloc_fail_at(n);
    rc = yk_queue_open(d, &o, &q);
    yk__alloc_fail_at(0);
    if (rc == YK_OK) break;
    CHECK_INT(rc, YK_ENOMEM);
    assert_non_null(strstr(yk_error_message(), "memory"));
    assert_null(q);
    CHECK_INT(yk__alloc_live(), live);
  }
  yk_error_clear();
  CHECK_INT(n, 7);                         /* the queue, three arrays, two threads */
  yk_queue_close(q);
  CHECK_INT(yk__alloc_live(), live);
  yk_dataset_free(d);
}

static void test_nothing_is_allocated_while_it_runs(void **state) {
  yk_dataset *d = make_set(50);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  static float images[100 * ELEMENTS];
  int32_t labels[100];
  uint64_t made;
  yk_queue *q;
  (void)state;
  o.augment = YK_AUGMENT_CIFAR_TRAIN;
  o.image_size = SIDE;
  o.shuffle = true;
  q = open_queue(d, o);
  CHECK_OK(take(q, 100, images, labels));
  made = yk__alloc_count();
  for (int i = 0; i < 20; i++) CHECK_OK(take(q, 100, images, labels));
  CHECK_INT(yk__alloc_count(), made);
  yk_queue_close(q);
  yk_dataset_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_source),
    cmocka_unit_test(test_in_order_without_shuffle),
    cmocka_unit_test(test_same_stream),
    cmocka_unit_test(test_draws_differ_by_epoch),
    cmocka_unit_test(test_epochs_are_permutations),
    cmocka_unit_test(test_takers_get_rows_of_their_own),
    cmocka_unit_test(test_epochs_are_used_up),
    cmocka_unit_test(test_close_wakes_taker),
    cmocka_unit_test(test_close_without_taking),
    cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_no_memory),
    cmocka_unit_test(test_nothing_is_allocated_while_it_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
