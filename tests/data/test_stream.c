/*
 * Queues over data sets of any components: what batches are made of, places that are kept and come back to, batches that end with an
 * epoch, and examples that cannot be read, which fail the same batch whatever the number of threads.
 */
#include "data/files.h"

enum { N = 20, MOST = 200 };

/* Example i: x = { i, -i }, label i % 4, id i. */
static yk_dataset *numbered(int64_t n) {
  static const char *const name[] = { "x", "label", "id" };
  yk_tensor *t[3];
  yk_dataset *d;
  CHECK_OK(yk_tensor_new(YK_F64, YK_SHAPE(n, 2), &t[0]));
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(n), &t[1]));
  CHECK_OK(yk_tensor_new(YK_I64, YK_SHAPE(n), &t[2]));
  for (int64_t i = 0; i < n; i++) {
    ((double *)yk_tensor_data(t[0]))[2 * i] = (double)i;
    ((double *)yk_tensor_data(t[0]))[2 * i + 1] = (double)-i;
    ((int32_t *)yk_tensor_data(t[1]))[i] = (int32_t)(i % 4);
    ((int64_t *)yk_tensor_data(t[2]))[i] = i;
  }
  CHECK_OK(yk_dataset_tensors(3, name, t, &d));
  for (int k = 0; k < 3; k++) yk_tensor_free(t[k]);
  return d;
}

typedef struct batch { double x[2 * MOST]; int32_t label[MOST]; int64_t id[MOST], rows; } batch;

static yk_code take(yk_queue *q, yk_take how, int64_t rows, batch *b) {
  b->rows = -1;
  return yk_queue_take(q, how, rows, (void *const[]){ b->x, b->label, b->id }, &b->rows);
}

static yk_queue *open_queue(const yk_dataset *d, yk_queue_options o) {
  yk_queue *q;
  CHECK_OK(yk_queue_open(d, &o, &q));
  return q;
}

static void test_components(void **state) {
  yk_dataset *d = numbered(N);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  batch b;
  (void)state;
  CHECK_INT(yk_dataset_classes(d), 4);
  CHECK_INT(yk_dataset_components(d), 3);
  CHECK_INT(yk_dataset_shape(d).rank, 0);
  CHECK_INT(yk_dataset_label(d, 6), 2);
  assert_null(yk_dataset_image(d, 0));
  assert_null(yk_dataset_component(d, 3));
  assert_null(yk_dataset_component_name(d, 3));
  CHECK_INT(yk_dataset_skipped(d, NULL), 0);
  o.shuffle = true;
  o.threads = 3;
  yk_queue *q = open_queue(d, o);
  const yk_source *s = yk_queue_source(q);
  CHECK_INT(s->ncomponents, 3);
  CHECK_INT(s->component[0].dtype, YK_F64);
  CHECK_INT(s->component[0].dim[0], 2);
  CHECK_INT(s->component[2].dtype, YK_I64);
  for (int epoch = 0; epoch < 3; epoch++) {
    int seen[N] = { 0 };
    CHECK_OK(take(q, YK_TAKE_ALL, N, &b));
    for (int i = 0; i < N; i++) {
      seen[b.id[i]]++;
      CHECK_INT(b.label[i], b.id[i] % 4);
      CHECK_NEAR(b.x[2 * i + 1], (double)-b.id[i], 0);
    }
    for (int i = 0; i < N; i++) CHECK_INT(seen[i], 1);
  }
  yk_queue_close(q);
  yk_dataset_free(d);
}

static void test_refused_tensors(void **state) {
  yk_tensor *x, *y, *scalar;
  yk_dataset *d = NULL;
  (void)state;
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3, 2), &x));
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(4), &y));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SCALAR, &scalar));
  ((int32_t *)yk_tensor_data(y))[2] = -1;
#define TENSORS(n, a, b, s, t) yk_dataset_tensors(n, (const char *const[]){ a, b }, (yk_tensor *const[]){ s, t }, &d)
  CHECK_CODE(TENSORS(2, "x", "label", x, y), YK_EINVAL, "4 examples of 'label', but there are 3 of 'x'");
  CHECK_CODE(TENSORS(1, "label", "", y, NULL), YK_EINVAL, "label -1 of example 2");
  CHECK_CODE(TENSORS(2, "x", "x", x, x), YK_EINVAL, "two components are called 'x'");
  CHECK_CODE(TENSORS(1, "x", "", scalar, NULL), YK_EINVAL, "a scalar");
  CHECK_CODE(TENSORS(1, "", "", x, NULL), YK_EINVAL, "a component's name");
  CHECK_CODE(TENSORS(1, "x", "", NULL, NULL), YK_EINVAL, "tensor 0 is NULL");
  CHECK_CODE(TENSORS(0, "x", "", x, NULL), YK_EINVAL, "1 to 128 components");
  CHECK_CODE(yk_dataset_tensors(1, NULL, NULL, &d), YK_EINVAL, "needs names");
  assert_null(d);
  yk_tensor_free(x);
  yk_tensor_free(y);
  yk_tensor_free(scalar);
}

/* ---- places ---- */

/* From any place on, a queue that was moved there gives what another one gives that came there. */
static void test_seek(void **state) {
  static const int32_t threads[] = { 1, 4 };
  static const int64_t capacity[] = { 3, 64 };
  yk_dataset *d = numbered(N);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  static batch all, b;
  (void)state;
  o.shuffle = true;
  o.seed = 5;
  yk_queue *q = open_queue(d, o);
  CHECK_OK(take(q, YK_TAKE_ALL, MOST, &all));
  yk_queue_close(q);
  for (int way = 0; way < 4; way++) {
    o.threads = threads[way / 2];
    o.capacity = capacity[way % 2];
    q = open_queue(d, o);
    for (int64_t k = 0, to = 7; k < 60; k++, to = (to * 37 + 11) % (MOST - 9)) {
      yk_position p = { to / N, to % N };
      CHECK_OK(yk_queue_seek(q, p));
      CHECK_INT(yk_queue_taken(q), to);
      CHECK_OK(take(q, YK_TAKE_ALL, 9, &b));
      assert_memory_equal(b.id, all.id + to, 9 * sizeof *b.id);
      p = yk_queue_position(q);
      CHECK_INT(p.epoch * N + p.example, to + 9);
      CHECK_INT(p.example, (to + 9) % N);
    }
    yk_queue_close(q);
  }
  yk_dataset_free(d);
}

static void test_refused_places(void **state) {
  static const yk_position bad[] = { { -1, 0 }, { 0, -1 }, { 0, N }, { 3, 0 + 1 }, { 4, 0 }, { INT64_MAX, 0 } };
  yk_dataset *d = numbered(N);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  batch b;
  (void)state;
  o.epochs = 3;
  yk_queue *q = open_queue(d, o);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    CHECK_CODE(yk_queue_seek(q, bad[i]), YK_EINVAL, "its epochs have 20 examples");
  CHECK_CODE(yk_queue_seek(NULL, (yk_position){ 0, 0 }), YK_EINVAL, "needs a queue");
  CHECK_INT(yk_queue_taken(q), 0);
  CHECK_OK(yk_queue_seek(q, (yk_position){ 3, 0 }));                       /* the end is a place too */
  CHECK_CODE(take(q, YK_TAKE_ALL, 1, &b), YK_ERANGE, "0 examples are left");
  CHECK_OK(yk_queue_seek(q, (yk_position){ 2, 15 }));                      /* and there is a way back */
  CHECK_OK(take(q, YK_TAKE_ALL, 5, &b));
  CHECK_INT(b.id[0], 15);
  yk_queue_close(q);
  yk_dataset_free(d);
}

/* ---- remainders ---- */

static void test_remainders(void **state) {
  yk_dataset *d = numbered(N);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  batch b;
  (void)state;
  o.epochs = 2;
  yk_queue *q = open_queue(d, o);
  for (int64_t at = 0; at < 2 * N; at += b.rows) {
    CHECK_OK(take(q, YK_TAKE_IN_EPOCH, 8, &b));
    CHECK_INT(b.rows, at % N == 16 ? 4 : 8);
    CHECK_INT(b.id[0], at % N);
  }
  CHECK_CODE(take(q, YK_TAKE_IN_EPOCH, 8, &b), YK_ERANGE, "0 examples are left of 40");
  CHECK_INT(b.rows, -1);
  CHECK_OK(yk_queue_seek(q, (yk_position){ 1, 10 }));
  CHECK_CODE(take(q, YK_TAKE_ALL, 11, &b), YK_ERANGE, "10 examples are left of 40, 11 were asked for");
  CHECK_OK(take(q, YK_TAKE_UP_TO, 11, &b));                                /* nothing was taken by that */
  CHECK_INT(b.rows, 10);
  CHECK_CODE(take(q, YK_TAKE_UP_TO, 11, &b), YK_ERANGE, "0 examples are left");
  CHECK_CODE(take(q, YK_TAKE_ALL, 0, &b), YK_EINVAL, "at least 1 row");
  CHECK_CODE(take(q, (yk_take)7, 1, &b), YK_EINVAL, "no way 7");
  CHECK_CODE(yk_queue_take(NULL, YK_TAKE_ALL, 1, NULL, NULL), YK_EINVAL, "needs a queue");
  yk_queue_close(q);
  /* whole batches only: each epoch leaves out others when it is shuffled */
  o.whole_batches = 8;
  o.shuffle = true;
  o.epochs = 0;
  q = open_queue(d, o);
  int seen[N] = { 0 }, never = 0;
  for (int epoch = 0; epoch < 20; epoch++) {
    int once[N] = { 0 };
    CHECK_OK(take(q, YK_TAKE_ALL, 16, &b));
    for (int i = 0; i < 16; i++) {
      CHECK_INT(once[b.id[i]]++, 0);
      seen[b.id[i]]++;
    }
    CHECK_INT(yk_queue_position(q).epoch, epoch + 1);
  }
  for (int i = 0; i < N; i++) never += seen[i] == 0;
  CHECK_INT(never, 0);
  yk_queue_close(q);
  o.whole_batches = N + 1;
  CHECK_CODE(yk_queue_open(d, &o, &q), YK_EINVAL, "do not make whole batches of 21");
  yk_dataset_free(d);
}

/* ---- examples that cannot be read ---- */

/* A file of records with one float and a label, of which number `bad` is damaged. */
static void put_records(const char *name, int64_t n, int64_t bad) {
  static const yk_feature f[] = { { .name = "x", .dtype = YK_F32 }, { .name = "label", .dtype = YK_I32 } };
  yk_record_writer *w;
  size_t bytes;
  CHECK_OK(yk_record_writer_open(in_folder(name), &w));
  for (int64_t i = 0; i < n; i++) {
    float x = (float)i;
    int32_t label = 0;
    CHECK_OK(yk_record_write_example(w, 2, f, (const void *const[]){ &x, &label }));
  }
  CHECK_OK(yk_record_writer_close(w));
  uint8_t *all = get_all(in_folder(name), &bytes);
  all[bytes / (size_t)n * (size_t)bad + 20] ^= 1;
  put(name, all, bytes);
  free(all);
}

static void test_failure(void **state) {
  static const int32_t threads[] = { 1, 2, 7 };
  yk_dataset_options file = YK_DATASET_OPTIONS_INIT;
  float x[64];
  int32_t label[64];
  int64_t n;
  (void)state;
  put_records("f.tfrecord", 50, 33);
  file.classes = 1;
  yk_dataset *d = opened(in_folder("f.tfrecord"), &file, YK_TRAIN);
  for (size_t i = 0; i < 3; i++) {
    yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
    o.threads = threads[i];
    yk_queue *q = open_queue(d, o);
    for (int k = 0; k < 3; k++) CHECK_OK(yk_queue_take(q, YK_TAKE_ALL, 10, (void *const[]){ x, label }, &n));
    for (int k = 0; k < 2; k++) {
      CHECK_CODE(yk_queue_take(q, YK_TAKE_ALL, 10, (void *const[]){ x, label }, &n), YK_ECORRUPT,
                 "f.tfrecord': record 33 (offset ");
      CHECK_INT(yk_queue_taken(q), 30);
    }
    CHECK_CODE(yk_queue_take(q, YK_TAKE_ALL, 1, (void *const[]){ x, label }, &n), YK_ECORRUPT, "record 33");
    CHECK_OK(yk_queue_seek(q, (yk_position){ 0, 34 }));                    /* around it */
    CHECK_OK(yk_queue_take(q, YK_TAKE_ALL, 16, (void *const[]){ x, label }, &n));
    CHECK_NEAR((double)x[0], 34, 0);
    yk_queue_close(q);
  }
  yk_dataset_free(d);
  file.skip = 1;
  d = opened(in_folder("f.tfrecord"), &file, YK_TRAIN);
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  o.threads = 3;
  yk_queue *q = open_queue(d, o);
  for (int epoch = 0; epoch < 2; epoch++) {
    CHECK_OK(yk_queue_take(q, YK_TAKE_ALL, 50, (void *const[]){ x, label }, &n));
    for (int i = 0; i < 50; i++) CHECK_NEAR((double)x[i], i == 33 ? 34 : i, 0);
  }
  CHECK_INT(yk_dataset_skipped(d, NULL), 1);
  yk_queue_close(q);
  yk_dataset_free(d);
}

/* CIFAR-10 with a label that is none: left out, if that is allowed. */
static void test_skipped_cifar10(void **state) {
  enum { RECORD = 3073 };
  static uint8_t all[3 * RECORD];
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  const char *first;
  (void)state;
  for (int i = 0; i < 3; i++) all[i * RECORD] = (uint8_t)(i == 1 ? 200 : i), all[i * RECORD + 1] = (uint8_t)(10 * i);
  put("cifar/data_batch_2.bin", all, sizeof all);
  REFUSED(in_folder("cifar"), NULL, YK_TRAIN, YK_ECORRUPT, "label 200 of record 1 (offset 3073)");
  o.skip = 1;
  yk_dataset *d = opened(in_folder("cifar"), &o, YK_TRAIN);
  CHECK_INT(yk_dataset_size(d), 2);
  CHECK_INT(yk_dataset_label(d, 1), 2);
  CHECK_INT(yk_dataset_image(d, 1)[0], 20);
  CHECK_INT(yk_dataset_skipped(d, &first), 1);
  if (strstr(first, "label 200") == NULL) fail_msg("the first is told as \"%s\"", first);
  yk_dataset_free(d);
}

/* A file that loses its end while it is open: an error, no signal. */
static void test_shrinking_file(void **state) {
  uint8_t head[16] = { 0, 0, 8, 2, 0, 0, 0x10, 0, 0, 0, 0, 4 };
  static uint8_t all[12 + 4096 * 4];
  (void)state;
  memcpy(all, head, 12);
  put("s-images-idx2-ubyte", all, sizeof all);
  yk_dataset *d = opened(in_folder("s-images-idx2-ubyte"), NULL, YK_TRAIN);
  uint8_t x[4];
  CHECK_OK(yk_dataset_read(d, 4095, (void *const[]){ x }));
  put("s-images-idx2-ubyte", all, 400);
  CHECK_CODE(yk_dataset_read(d, 4095, (void *const[]){ x }), YK_EIO, "s-images-idx2-ubyte' ends at offset 16392");
  yk_dataset_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_components), cmocka_unit_test(test_refused_tensors), cmocka_unit_test(test_seek), cmocka_unit_test(test_refused_places),
    cmocka_unit_test(test_remainders), cmocka_unit_test(test_failure), cmocka_unit_test(test_skipped_cifar10), cmocka_unit_test(test_shrinking_file),
  };
  return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
