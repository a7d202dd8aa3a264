/*
 * How a picture becomes network input. A plain chain of the tutorial's steps, checked against what TensorFlow computed, is the
 * yardstick; the library's random choices are read off its results: which window, mirrored or not, and how much contrast.
 */
#include "support/check.h"
#include <yoke/data.h>

enum { H = 6, W = 7, C = 3, SIZE = 4, N = SIZE * SIZE * C };

typedef struct choice { int top, left, flip; double brightness, contrast; } choice;

static void make_picture(uint8_t in[H * W * C]) {
  for (int i = 0; i < H * W * C; i++) in[i] = (uint8_t)(37 * i * i + 11 * i + 5);
}

static void crop(const uint8_t *in, int w, int c, int size, const choice *ch, double *out) {
  for (int y = 0; y < size; y++)
    for (int x = 0; x < size; x++)
      for (int k = 0; k < c; k++) out[(y * size + x) * c + k] = in[((ch->top + y) * w + ch->left + (ch->flip ? size - 1 - x : x)) * c + k];
}

static void change_contrast(double *x, int pixels, int c, double factor) {
  for (int k = 0; k < c; k++) {
    double mean = 0;
    for (int i = 0; i < pixels; i++) mean += x[i * c + k] / pixels;
    for (int i = 0; i < pixels; i++) x[i * c + k] = (x[i * c + k] - mean) * factor + mean;
  }
}

static void standardise(double *x, int n) {
  double mean = 0, variance = 0, deviation;
  for (int i = 0; i < n; i++) mean += x[i] / n;
  for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / n;
  deviation = fmax(sqrt(variance), 1 / sqrt((double)n));
  for (int i = 0; i < n; i++) x[i] = (x[i] - mean) / deviation;
}

/* Cut out, mirror, brightness, contrast, standardise: in the tutorial's order. */
static void chain(const uint8_t *in, int w, int c, int size, const choice *ch, double *out) {
  crop(in, w, c, size, ch, out);
  for (int i = 0; i < size * size * c; i++) out[i] += ch->brightness;
  change_contrast(out, size * size, c, ch->contrast);
  standardise(out, size * size * c);
}

/* TensorFlow 2.21 (tests/golden/make_augment_values.py), on make_picture(): per_image_standardization of the middle; then rows 1 to
 * 4, columns 2 to 5 with flip_left_right, adjust_brightness(-17.5), adjust_contrast(0.7): before and after per_image_standardization. */
static const double tf_standard[N] = {
  -0.483980, 0.023802, 1.705830, 0.499848, 0.468112, 1.610621, -0.134880, -0.706134, -0.103143, 1.674094, 0.563321, 0.626793,
  0.848948, 1.642357, -0.452243, -1.372598, -1.118707, 0.309430, -1.150443, -1.436071, -0.547452, 1.515412, 0.690266, 1.039366,
  0.055539, 1.134575, -0.674398, -1.309125, -0.769607, 0.944157, -0.230089, -0.230089, 0.944157, -0.769607, -1.309125, -0.674398,
  1.198048, -1.499543, 1.039366, 0.690266, 1.515412, -0.547452, -1.436071, -1.150443, 0.309430, -1.118707, -1.372598, -0.452243,
};
static const double tf_contrast[N] = {
  172.250, 96.450, 85.050, 163.850, 111.850, 124.250, 84.050, 55.850, 92.050, 112.050, 107.650, 167.650,
  23.850, 139.850, 141.050, 156.850, 117.450, 142.450, 39.250, 23.650, 72.450, 29.450, 37.650, 110.250,
  140.050, 89.450, 103.250, 56.050, 29.250, 66.850, 79.850, 76.850, 138.250, 32.250, 53.050, 138.250,
  162.450, 124.450, 150.850, 40.650, 26.450, 76.650, 26.650, 36.250, 110.250, 120.450, 153.850, 72.450,
};
static const double tf_chain[N] = {
  1.715648, 0.053717, -0.196231, 1.531476, 0.391365, 0.663238, -0.218156, -0.836447, -0.042754, 0.395750, 0.299279, 1.614792,
  -1.538054, 1.005271, 1.031581, 1.378000, 0.514146, 1.062277, -1.200406, -1.542439, -0.472488, -1.415273, -1.235486, 0.356285,
  1.009656, -0.099760, 0.202808, -0.832062, -1.419658, -0.595270, -0.310242, -0.376018, 0.970191, -1.353882, -0.897837, 0.970191,
  1.500781, 0.667623, 1.246449, -1.169710, -1.481048, -0.380402, -1.476663, -1.266181, 0.356285, 0.579922, 1.312224, -0.472488,
};

static void check_all(const char *what, const double *got, const double *want, int n, double tolerance) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= tolerance)) fail_msg("%s: value %d is %.9g, expected %.9g", what, i, got[i], want[i]);
}

static void check_floats(const char *what, const float *got, const double *want, int n, double tolerance) {
  for (int i = 0; i < n; i++)
    if (!(fabs((double)got[i] - want[i]) <= tolerance)) fail_msg("%s: value %d is %.9g, expected %.9g", what, i, (double)got[i], want[i]);
}

static void test_yardstick(void **state) {
  uint8_t in[H * W * C];
  double x[N];
  choice ch = { .top = 1, .left = 2, .flip = 1, .brightness = -17.5, .contrast = 0.7 };
  (void)state;
  make_picture(in);
  crop(in, W, C, SIZE, &ch, x);
  for (int i = 0; i < N; i++) x[i] += ch.brightness;
  change_contrast(x, SIZE * SIZE, C, ch.contrast);
  check_all("contrast", x, tf_contrast, N, 1e-4);
  chain(in, W, C, SIZE, &ch, x);
  check_all("chain", x, tf_chain, N, 1e-5);
}

static void test_evaluation(void **state) {
  uint8_t in[H * W * C];
  float out[N], again[N];
  (void)state;
  make_picture(in);
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_EVAL, in, H, W, C, SIZE, 1, 2, out));
  check_floats("standardised middle", out, tf_standard, N, 1e-5);
  CHECK_OK(yk_augment_image(YK_AUGMENT_STANDARDISE, in, H, W, C, SIZE, 5, 6, again));
  assert_memory_equal(out, again, sizeof out);
}

static void test_hand_values(void **state) {
  const uint8_t two_by_two[4] = { 0, 51, 255, 102 };
  float out[4], one[1];
  (void)state;
  CHECK_OK(yk_augment_image(YK_AUGMENT_NONE, two_by_two, 2, 2, 1, 2, 0, 0, out));
  check_floats("none", out, (const double[]){ -0.5, -0.3, 0.5, -0.1 }, 4, 1e-7);
  CHECK_OK(yk_augment_image(YK_AUGMENT_NONE, two_by_two, 2, 2, 1, 1, 0, 0, one));
  CHECK_NEAR((double)one[0], -0.5, 1e-7);
  /* mean 102, deviation sqrt((102^2 + 51^2 + 153^2)/4) = 95.4109 */
  CHECK_OK(yk_augment_image(YK_AUGMENT_STANDARDISE, two_by_two, 2, 2, 1, 2, 0, 0, out));
  check_floats("standardised", out, (const double[]){ -1.0690450, -0.5345225, 1.6035675, 0 }, 4, 1e-6);
}

/* A flat picture has no deviation: 1/sqrt(count) takes its place, and nothing becomes NaN. */
static void test_flat_and_nearly_flat(void **state) {
  uint8_t flat[5 * 5 * 3];
  double want[25 * 3];
  float out[25 * 3];
  (void)state;
  memset(flat, 201, sizeof flat);
  for (int kind = YK_AUGMENT_CIFAR_TRAIN; kind <= YK_AUGMENT_STANDARDISE; kind++) {
    CHECK_OK(yk_augment_image((yk_augment)kind, flat, 5, 5, 3, 5, 1, 2, out));
    for (int i = 0; i < 75; i++) CHECK_NEAR((double)out[i], 0, 0);
  }
  flat[7] = 202;                                  /* deviation 0.115 */
  chain(flat, 5, 3, 5, &(choice){ .contrast = 1 }, want);
  CHECK_OK(yk_augment_image(YK_AUGMENT_STANDARDISE, flat, 5, 5, 3, 5, 1, 2, out));
  check_floats("nearly flat", out, want, 75, 2e-4);
  flat[7] = 201;                                  /* contrast 0.2 to 1.8 of nothing is nothing, but channels may differ */
  for (int i = 0; i < 25; i++) flat[3 * i] = 200;
  chain(flat, 5, 3, 5, &(choice){ .contrast = 0.5 }, want);
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, flat, 5, 5, 3, 5, 1, 2, out));
  check_floats("flat channels", out, want, 75, 2e-4);
}

/* The contrast that was used: the channels' deviations grew by it, the distances of their means did not. */
static double contrast_of(const double *before, const float *after, int pixels) {
  double mean[2][2] = { { 0 } }, variance[2] = { 0 };
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < pixels; i++) {
      mean[0][k] += before[i * C + k] / pixels;
      mean[1][k] += (double)after[i * C + k] / pixels;
    }
  for (int i = 0; i < pixels; i++) {
    variance[0] += pow(before[i * C] - mean[0][0], 2);
    variance[1] += pow((double)after[i * C] - mean[1][0], 2);
  }
  return sqrt(variance[1] / variance[0]) / ((mean[1][1] - mean[1][0]) / (mean[0][1] - mean[0][0]));
}

/* Which of all windows, either way round, the result was made from; -1 if from none. */
static int find_window(const uint8_t *in, int h, int w, int size, const float *out, choice *ch) {
  double before[24 * 24 * C], after[24 * 24 * C];
  for (ch->top = 0; ch->top <= h - size; ch->top++)
    for (ch->left = 0; ch->left <= w - size; ch->left++)
      for (ch->flip = 0; ch->flip < 2; ch->flip++) {
        double worst = 0;
        crop(in, w, C, size, ch, before);
        ch->contrast = contrast_of(before, out, size * size);
        chain(in, w, C, size, ch, after);
        for (int i = 0; i < size * size * C && worst < 1e-4; i++) worst = fmax(worst, fabs(after[i] - (double)out[i]));
        if (worst < 1e-4) return 0;
      }
  return -1;
}

/* 2000 draws are all the chain's, for some brightness; each choice covers its range evenly. */
static void test_training(void **state) {
  enum { DRAWS = 2000, LARGE_H = 12, LARGE_W = 11, CUT = 6 };
  uint8_t in[LARGE_H * LARGE_W * C];
  int rows[LARGE_H - CUT + 1] = { 0 }, columns[LARGE_W - CUT + 1] = { 0 }, flips = 0, contrasts[8] = { 0 };
  (void)state;
  for (int i = 0; i < LARGE_H * LARGE_W * C; i++) in[i] = (uint8_t)(i % C * 60 + (i * i * 7 + i / 5) % 120);
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    float out[CUT * CUT * C];
    choice ch = { .brightness = (double)draw / 20 - 50 };
    CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, in, LARGE_H, LARGE_W, C, CUT, 77, draw, out));
    if (find_window(in, LARGE_H, LARGE_W, CUT, out, &ch) != 0) fail_msg("draw %d is made from no window of the picture", (int)draw);
    if (!(ch.contrast > 0.1999 && ch.contrast < 1.8001)) fail_msg("draw %d has contrast %.6g, expected 0.2 to 1.8", (int)draw, ch.contrast);
    rows[ch.top]++;
    columns[ch.left]++;
    flips += ch.flip;
    contrasts[(int)fmin(7, fmax(0, (ch.contrast - 0.2) / 0.2))]++;
  }
  for (int i = 0; i <= LARGE_H - CUT; i++)
    if (abs(rows[i] - DRAWS / 7) > 80) fail_msg("%d windows begin in row %d, expected about %d", rows[i], i, DRAWS / 7);
  for (int i = 0; i <= LARGE_W - CUT; i++)
    if (abs(columns[i] - DRAWS / 6) > 85) fail_msg("%d windows begin in column %d, expected about %d", columns[i], i, DRAWS / 6);
  for (int i = 0; i < 8; i++)
    if (abs(contrasts[i] - DRAWS / 8) > 75) fail_msg("%d contrasts are in eighth %d, expected about %d", contrasts[i], i, DRAWS / 8);
  if (abs(flips - DRAWS / 2) > 110) fail_msg("%d of %d are mirrored, expected about half", flips, DRAWS);
}

static void test_pad_crop_flip(void **state) {
  enum { SIDE = 5, PAD = 4, DRAWS = 1500 };
  uint8_t in[SIDE * SIDE * C];
  double whole[SIDE * SIDE * C];
  int seen[2 * PAD + 1][2 * PAD + 1][2] = { { { 0 } } }, flips = 0, corners = 0;
  (void)state;
  for (int i = 0; i < SIDE * SIDE * C; i++) in[i] = (uint8_t)(37 * i * i + 11 * i + 5);
  chain(in, SIDE, C, SIDE, &(choice){ .contrast = 1 }, whole);
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    float out[SIDE * SIDE * C];
    int found = 0;
    CHECK_OK(yk_augment_image(YK_AUGMENT_PAD_CROP_FLIP, in, SIDE, SIDE, C, SIDE, 3, draw, out));
    for (int v = 0; v < 81 * 2 && !found; v++) {
      int top = v / 18, left = v / 2 % 9, flip = v % 2;
      found = 1;
      for (int i = 0; i < SIDE * SIDE * C && found; i++) {
        int y = i / C / SIDE + top - PAD, x = (flip ? SIDE - 1 - i / C % SIDE : i / C % SIDE) + left - PAD;
        double want = y < 0 || y >= SIDE || x < 0 || x >= SIDE ? 0 : whole[(y * SIDE + x) * C + i % C];
        found = fabs(want - (double)out[i]) < 1e-5;
      }
      if (found) seen[top][left][flip]++, flips += flip, corners += top % 8 == 0 && left % 8 == 0;
    }
    if (!found) fail_msg("draw %d is no window of the padded picture", (int)draw);
  }
  for (int top = 0; top <= 2 * PAD; top++)
    for (int left = 0; left <= 2 * PAD; left++)
      if (seen[top][left][0] + seen[top][left][1] == 0) fail_msg("no window begins at (%d, %d)", top, left);
  if (abs(flips - DRAWS / 2) > 100) fail_msg("%d of %d are mirrored, expected about half", flips, DRAWS);
  if (abs(corners - DRAWS * 4 / 81) > 40) fail_msg("%d windows are in a corner, expected about %d", corners, DRAWS * 4 / 81);
}

static void test_draws(void **state) {
  static uint8_t in[32 * 32 * 3];
  static float out[24 * 24 * 3], again[24 * 24 * 3], other[24 * 24 * 3];
  (void)state;
  for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * i / 7);
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, in, 32, 32, 3, 24, 1, 2, out));
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, in, 32, 32, 3, 24, 1, 2, again));
  assert_memory_equal(out, again, sizeof out);
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, in, 32, 32, 3, 24, 1, 3, other));
  assert_memory_not_equal(out, other, sizeof out);
  CHECK_OK(yk_augment_image(YK_AUGMENT_CIFAR_TRAIN, in, 32, 32, 3, 24, 2, 2, other));
  assert_memory_not_equal(out, other, sizeof out);
}

static void test_refusals(void **state) {
  uint8_t in[4 * 5 * 3] = { 0 };
  float out[60] = { 42 };
  (void)state;
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 4, 5, 3, 5, 0, 0, out), YK_EINVAL, "pictures of 4x5 cannot be cut to 5x5");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 5, 4, 3, 5, 0, 0, out), YK_EINVAL, "pictures of 5x4");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 4, 5, 3, 0, 0, 0, out), YK_EINVAL, "0x0");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 4, 5, 0, 4, 0, 0, out), YK_EINVAL, "4x4x0");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 1, 1, 65, 1, 0, 0, out), YK_EINVAL, "1x1x65");
  CHECK_CODE(yk_augment_image((yk_augment)99, in, 4, 5, 3, 4, 0, 0, out), YK_EINVAL, "99");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, NULL, 4, 5, 3, 4, 0, 0, out), YK_EINVAL, "picture");
  CHECK_CODE(yk_augment_image(YK_AUGMENT_NONE, in, 4, 5, 3, 4, 0, 0, NULL), YK_EINVAL, "result");
  CHECK_NEAR((double)out[0], 42, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_yardstick),
    cmocka_unit_test(test_evaluation),
    cmocka_unit_test(test_hand_values),
    cmocka_unit_test(test_flat_and_nearly_flat),
    cmocka_unit_test(test_training),
    cmocka_unit_test(test_pad_crop_flip),
    cmocka_unit_test(test_draws),
    cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
