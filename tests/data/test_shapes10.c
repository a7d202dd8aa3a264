/*
 * The built-in pictures. The same ones on every machine, whatever their number; and as hard as they are meant to be: a colour,
 * or any linear function of the pixels, tells next to nothing, while the outline tells the class.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/str.h"
#include "base/thread.h"
#include <yoke/data.h>

#define TRAIN_HASH 0xe3a2f221558af149u
#define TEST_HASH 0x5a37a5932ea3310cu

enum { PIXELS = 1024, VALUES = 3 * PIXELS, CLASSES = 10, TRAIN = 1000, TEST = 1000 };

static yk_dataset *make(uint64_t seed, yk_split split, int64_t n) {
  yk_dataset *d;
  CHECK_OK(yk_dataset_shapes10(seed, split, n, &d));
  return d;
}

static void test_facts(void **state) {
  yk_dataset *d = make(1, YK_TEST, 0);
  int64_t count[CLASSES] = { 0 };
  (void)state;
  CHECK_INT(yk_dataset_size(d), 4000);
  CHECK_INT(yk_dataset_classes(d), CLASSES);
  assert_string_equal(yk_dataset_name(d), "shapes10");
  CHECK_INT(yk_dataset_shape(d).rank, 3);
  CHECK_INT(yk_dataset_shape(d).dim[0], 32);
  CHECK_INT(yk_dataset_shape(d).dim[1], 32);
  CHECK_INT(yk_dataset_shape(d).dim[2], 3);
  for (int64_t i = 0; i < 4000; i++) count[yk_dataset_label(d, i)]++;
  for (int k = 0; k < CLASSES; k++) {
    CHECK_INT(count[k], 400);
    assert_non_null(yk_dataset_class_name(d, k));
    for (int j = 0; j < k; j++) assert_string_not_equal(yk_dataset_class_name(d, k), yk_dataset_class_name(d, j));
  }
  yk_dataset_free(d);
}

/* Hash of the first n pictures, each asked for by itself: a picture is drawn when it is asked for. */
static uint64_t hash_of(const yk_dataset *d, int64_t n) {
  for (int64_t i = 1; i < n; i++) (void)yk_dataset_image(d, i);
  return yk__hash(yk_dataset_image(d, 0), (size_t)n * VALUES, 0);
}

/* The bytes are part of what is promised: results on these pictures can be compared between machines. */
static void test_same_everywhere(void **state) {
  yk_dataset *d = make(1, YK_TRAIN, 200), *test = make(0xfedcba9876543210u, YK_TEST, 200);
  uint64_t hash = hash_of(d, 200), other = hash_of(test, 200);
  (void)state;
  if (hash != TRAIN_HASH || other != TEST_HASH)
    fail_msg("hashes 0x%016llx and 0x%016llx, expected 0x%016llx and 0x%016llx", (unsigned long long)hash, (unsigned long long)other,
             (unsigned long long)TRAIN_HASH, (unsigned long long)TEST_HASH);
  yk_dataset_free(d);
  yk_dataset_free(test);
}

enum { MANY = 300 };

static void look_at_all(int64_t begin, int64_t end, void *arg) {
  for (int64_t t = begin; t < end; t++)
    for (int64_t i = 0; i < MANY; i++) (void)yk_dataset_image(arg, t % 2 ? i : (i * 7 + 3) % MANY);
}

/* Four threads want the same pictures, in two orders. */
static void test_number_and_threads_do_not_matter(void **state) {
  yk_dataset *few = make(3, YK_TRAIN, 7), *many = make(3, YK_TRAIN, MANY), *shared = make(3, YK_TRAIN, MANY);
  uint64_t a, b;
  int team = yk__team();
  (void)state;
  yk__team_set(4);
  yk__parallel_for(4, 1, look_at_all, shared);
  yk__team_set(team);
  a = hash_of(many, MANY);
  b = hash_of(shared, MANY);
  if (a != b) fail_msg("hashes 0x%016llx and 0x%016llx", (unsigned long long)a, (unsigned long long)b);
  CHECK_INT(hash_of(few, 7) == hash_of(many, 7), 1);
  yk_dataset_free(few);
  yk_dataset_free(many);
  yk_dataset_free(shared);
}

/* No picture comes twice: not within a set, nor in the other split, nor under another seed. */
static void test_all_differ(void **state) {
  enum { N = 400 };
  yk_dataset *d[3] = { make(1, YK_TRAIN, N), make(1, YK_TEST, N), make(2, YK_TRAIN, N) };
  static uint64_t hash[3 * N];
  (void)state;
  for (int i = 0; i < 3 * N; i++) {
    hash[i] = yk__hash(yk_dataset_image(d[i / N], i % N), VALUES, 0);
    for (int j = 0; j < i; j++)
      if (hash[i] == hash[j]) fail_msg("picture %d of set %d is picture %d of set %d", i % N, i / N, j % N, j / N);
  }
  for (int i = 0; i < 3; i++) yk_dataset_free(d[i]);
}

static void standardise(const uint8_t *in, float *out) {
  double mean = 0, variance = 0;
  for (int i = 0; i < VALUES; i++) mean += in[i] / (double)VALUES;
  for (int i = 0; i < VALUES; i++) variance += (in[i] - mean) * (in[i] - mean) / VALUES;
  for (int i = 0; i < VALUES; i++) out[i] = (float)((in[i] - mean) / sqrt(variance));
}

static float dot(const float *a, const float *b) {
  float part[16] = { 0 }, sum = 0;
  for (int i = 0; i < VALUES; i += 16)
    for (int j = 0; j < 16; j++) part[j] += a[i + j] * b[i + j];
  for (int j = 0; j < 16; j++) sum += part[j];
  return sum;
}

/* Class of the largest logit; the gradient of the cross-entropy by the logits into g, if asked for. */
static int classify(float (*w)[VALUES + 1], const float *x, int label, float *g) {
  float z[CLASSES], sum = 0;
  int best = 0;
  for (int k = 0; k < CLASSES; k++) {
    z[k] = dot(w[k], x) + w[k][VALUES];
    if (z[k] > z[best]) best = k;
  }
  for (int k = 0; k < CLASSES && g != NULL; k++) sum += g[k] = expf(z[k] - z[best]);
  for (int k = 0; k < CLASSES && g != NULL; k++) g[k] = g[k] / sum - (k == label);
  return best;
}

/*
 * Softmax regression on standardised pixels, by gradient steps on one picture at a time until it knows its training pictures (so it
 * has converged as far as it matters), gets nowhere on others.
 */
static void test_linear_model_fails(void **state) {
  static float x[VALUES], w[CLASSES][VALUES + 1];
  yk_dataset *train = make(1, YK_TRAIN, TRAIN), *test = make(1, YK_TEST, TEST);
  int known = 0, right = 0;
  (void)state;
  for (int epoch = 0; epoch < 14; epoch++) {
    known = 0;
    for (int i = 0; i < TRAIN; i++) {
      float g[CLASSES], rate = 6e-4f;
      int label = yk_dataset_label(train, i * 7 % TRAIN);          /* 7 and TRAIN have no common divisor */
      standardise(yk_dataset_image(train, i * 7 % TRAIN), x);
      known += classify(w, x, label, g) == label;
      for (int k = 0; k < CLASSES; k++) {
        for (int j = 0; j < VALUES; j++) w[k][j] -= rate * g[k] * x[j];
        w[k][VALUES] -= rate * g[k];
      }
    }
  }
  for (int i = 0; i < TEST; i++) {
    standardise(yk_dataset_image(test, i), x);
    right += classify(w, x, 0, NULL) == yk_dataset_label(test, i);
  }
  print_message("linear model: %.1f%% of the training pictures, %.1f%% of the test pictures\n", 100.0 * known / TRAIN, 100.0 * right / TEST);
  if (known < TRAIN * 6 / 10) fail_msg("the linear model knows only %d of its %d training pictures: not trained enough to tell", known, TRAIN);
  if (right > TEST * 4 / 10) fail_msg("a linear model gets %d of %d right, expected at most 40%%", right, TEST);
  yk_dataset_free(train);
  yk_dataset_free(test);
}

/* How far each pixel is from the colour of the border, the whole scaled to length 1: forgets which of the two is lighter. */
static void distance_map(const uint8_t *in, float *out) {
  double border[3] = { 0 }, length = 0;
  for (int p = 0; p < PIXELS; p++)
    for (int k = 0; k < 3; k++)
      if (p / 32 < 3 || p / 32 > 28 || p % 32 < 3 || p % 32 > 28) border[k] += in[3 * p + k] / 348.0;
  for (int p = 0; p < PIXELS; p++) {
    double d = 0;
    for (int k = 0; k < 3; k++) d += fabs(in[3 * p + k] - border[k]);
    out[p] = (float)d;
    length += d * d;
  }
  for (int p = 0; p < PIXELS; p++) out[p] /= (float)sqrt(length);
}

/* The class whose mean map is nearest to the picture's: crude, but enough to see that figures are what their labels say. */
static void test_outline_tells(void **state) {
  static float mean[CLASSES][PIXELS], x[PIXELS];
  yk_dataset *train = make(1, YK_TRAIN, TRAIN), *test = make(1, YK_TEST, TEST);
  int right[CLASSES] = { 0 }, total = 0;
  (void)state;
  for (int i = 0; i < TRAIN; i++) {
    distance_map(yk_dataset_image(train, i), x);
    for (int p = 0; p < PIXELS; p++) mean[yk_dataset_label(train, i)][p] += x[p] * CLASSES / TRAIN;
  }
  for (int i = 0; i < TEST; i++) {
    int best = 0;
    double least = 1e30;
    distance_map(yk_dataset_image(test, i), x);
    for (int k = 0; k < CLASSES; k++) {
      double d = 0;
      for (int p = 0; p < PIXELS; p++) d += (double)((x[p] - mean[k][p]) * (x[p] - mean[k][p]));
      if (d < least) least = d, best = k;
    }
    if (best == yk_dataset_label(test, i)) right[best]++, total++;
  }
  print_message("nearest mean outline: %.1f%% of the test pictures\n", 100.0 * total / TEST);
  if (total < TEST * 4 / 10) fail_msg("the nearest mean outline gets %d of %d right, expected at least 40%%", total, TEST);
  for (int k = 0; k < CLASSES; k++)
    if (right[k] < TEST / CLASSES * 2 / 10) fail_msg("only %d of %d pictures of class %d are near its mean outline", right[k], TEST / CLASSES, k);
  yk_dataset_free(train);
  yk_dataset_free(test);
}

/* Of each class, the mean colour is the same within what chance allows, and so is the share of pictures lighter in the middle. */
static void test_colour_tells_nothing(void **state) {
  enum { N = 4000 };
  yk_dataset *d = make(5, YK_TRAIN, N);
  double mean[CLASSES][3] = { { 0 } };
  int lighter[CLASSES] = { 0 };
  (void)state;
  for (int64_t i = 0; i < N; i++) {
    const uint8_t *image = yk_dataset_image(d, i);
    int label = yk_dataset_label(d, i);
    double all = 0, middle = 0;
    for (int p = 0; p < PIXELS; p++)
      for (int k = 0; k < 3; k++) {
        mean[label][k] += image[3 * p + k] / (double)PIXELS / (N / CLASSES);
        all += image[3 * p + k] / (double)VALUES;
        if (p / 32 >= 8 && p / 32 < 24 && p % 32 >= 8 && p % 32 < 24) middle += image[3 * p + k] / 768.0;
      }
    lighter[label] += middle > all;
  }
  for (int c = 0; c < CLASSES; c++) {
    for (int k = 0; k < 3; k++)                                    /* deviation of one picture's mean about 50, of 400 pictures' about 2.5 */
      if (fabs(mean[c][k] - 127) > 12) fail_msg("class %d, channel %d: mean %.1f, expected about 127", c, k, mean[c][k]);
    if (abs(lighter[c] - N / CLASSES / 2) > 50)
      fail_msg("class %d: %d of %d pictures are lighter in the middle, expected about half", c, lighter[c], N / CLASSES);
  }
  yk_dataset_free(d);
}

static void test_refusals(void **state) {
  yk_dataset *d = NULL;
  uint64_t live = yk__alloc_live();
  (void)state;
  CHECK_CODE(yk_dataset_shapes10(1, YK_TRAIN, -1, &d), YK_EINVAL, "-1");
  CHECK_CODE(yk_dataset_shapes10(1, YK_TRAIN, INT64_MAX, &d), YK_EINVAL, "9223372036854775807");
  CHECK_CODE(yk_dataset_shapes10(1, (yk_split)2, 1, &d), YK_EINVAL, "2");
  CHECK_CODE(yk_dataset_shapes10(1, YK_TRAIN, 1, NULL), YK_EINVAL, "result");
  for (uint64_t n = 1; n <= 4; n++) {
    yk__alloc_fail_at(n);
    CHECK_CODE(yk_dataset_shapes10(1, YK_TRAIN, 2, &d), YK_ENOMEM, "memory");
    CHECK_INT(yk__alloc_live(), live);
  }
  yk__alloc_fail_at(0);
  assert_null(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_facts),
    cmocka_unit_test(test_same_everywhere),
    cmocka_unit_test(test_number_and_threads_do_not_matter),
    cmocka_unit_test(test_all_differ),
    cmocka_unit_test(test_linear_model_fails),
    cmocka_unit_test(test_outline_tells),
    cmocka_unit_test(test_colour_tells_nothing),
    cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
