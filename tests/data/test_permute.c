/*
 * The order of an epoch. Every number from 0 to n-1 comes once, whatever n, seed and epoch; orders differ; and no place is
 * preferred.
 */
#include "support/check.h"
#include "data/dataset.h"

static void test_every_n_is_a_permutation(void **state) {
  (void)state;
  for (int64_t n = 1; n <= 300; n++)
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
      char seen[300] = { 0 };
      for (int64_t i = 0; i < n; i++) {
        int64_t to = yk__permute(7 * (uint64_t)n, epoch, n, i);
        if (to < 0 || to >= n || seen[to]) fail_msg("n %lld, epoch %llu: %lld goes to %lld, out of range or twice", (long long)n,
                                                    (unsigned long long)epoch, (long long)i, (long long)to);
        seen[to] = 1;
      }
    }
}

static void test_large(void **state) {
  enum { N = 50000 };
  static char seen[N];
  (void)state;
  for (int64_t i = 0; i < N; i++) seen[yk__permute(1, 2, N, i)]++;
  for (int64_t i = 0; i < N; i++) CHECK_INT(seen[i], 1);
}

static void test_seeds_and_epochs_differ(void **state) {
  int64_t moved_by_epoch = 0, moved_by_seed = 0, moved = 0;
  (void)state;
  for (int64_t i = 0; i < 1000; i++) {
    int64_t to = yk__permute(3, 0, 1000, i);
    CHECK_INT(yk__permute(3, 0, 1000, i), to);
    moved += to != i;
    moved_by_epoch += yk__permute(3, 1, 1000, i) != to;
    moved_by_seed += yk__permute(4, 0, 1000, i) != to;
  }
  if (moved < 980 || moved_by_epoch < 980 || moved_by_seed < 980)
    fail_msg("of 1000 places %lld differ from none, %lld by epoch, %lld by seed; expected about 999", (long long)moved, (long long)moved_by_epoch,
             (long long)moved_by_seed);
}

/* Each of n places is taken by 0 about as often, over the epochs: chi-squared with n-1 degrees of freedom, 1 in 100,000. */
static void test_no_place_is_preferred(void **state) {
  static const struct { int64_t n; double limit; } size[] = { { 2, 19.6 }, { 5, 28.5 }, { 10, 39.4 }, { 17, 52.0 } };
  (void)state;
  for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
    int64_t count[17] = { 0 }, n = size[s].n;
    double expected = 4000.0 / (double)n, chi = 0;
    for (uint64_t epoch = 0; epoch < 4000; epoch++) count[yk__permute(11, epoch, n, 0)]++;
    for (int64_t i = 0; i < n; i++) chi += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    if (chi > size[s].limit) fail_msg("n %lld: chi-squared %.1f, expected at most %.1f", (long long)n, chi, size[s].limit);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_n_is_a_permutation),
    cmocka_unit_test(test_large),
    cmocka_unit_test(test_seeds_and_epochs_differ),
    cmocka_unit_test(test_no_place_is_preferred),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
