/*
 * The allocators. Every n-th allocation is made to fail in turn: the functions
 * under test must report ENOMEM, leave their object usable and leak nothing.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/thread.h"

static void test_counts(void **state) {
  uint64_t made = yk__alloc_count(), live = yk__alloc_live();
  void *a, *b, *c;
  (void)state;
  a = yk__alloc(0);
  b = yk__calloc(10, 4);
  c = yk__alloc_aligned(100, 64);
  assert_non_null(a);
  assert_non_null(b);
  CHECK_INT((uintptr_t)c % 64, 0);
  for (int i = 0; i < 40; i++) CHECK_INT(((unsigned char *)b)[i], 0);
  CHECK_INT(yk__alloc_count() - made, 3);
  CHECK_INT(yk__alloc_live() - live, 3);
  b = yk__realloc(b, 1000, 4);
  assert_non_null(b);
  CHECK_INT(yk__alloc_count() - made, 4);
  CHECK_INT(yk__alloc_live() - live, 3);
  yk__free(a);
  yk__free(b);
  yk__free(c);
  yk__free(NULL);
  CHECK_INT(yk__alloc_live() - live, 0);
}

static void test_sizes_do_not_wrap(void **state) {
  void *p = yk__alloc(16);
  (void)state;
  assert_null(yk__calloc(SIZE_MAX / 2, 3));
  assert_non_null(strstr(yk_error_message(), "memory"));
  assert_null(yk__realloc(p, SIZE_MAX / 4, 8));
  yk__free(p);
  yk_error_clear();
}

static void test_strings(void **state) {
  char *a = yk__strdup("yoke"), *b = yk__strndup("yoke", 2), *c = yk__strndup("yoke", 100);
  (void)state;
  assert_string_equal(a, "yoke");
  assert_string_equal(b, "yo");
  assert_string_equal(c, "yoke");
  yk__free(a);
  yk__free(b);
  yk__free(c);
}

static void *allocate_elsewhere(void *arg) {
  void *p = yk__alloc(8);
  *(int *)arg = p != NULL;
  yk__free(p);
  return NULL;
}

static void test_fail_at_is_once_and_per_thread(void **state) {
  void *p;
  yk_thread t;
  int worked = 0;
  (void)state;
  yk__alloc_fail_at(2);
  p = yk__alloc(1);
  assert_non_null(p);
  yk__free(p);
  assert_null(yk__alloc(1));
  p = yk__alloc(1);
  assert_non_null(p);
  yk__free(p);
  CHECK_OK(yk__thread_start(&t, "other", allocate_elsewhere, &worked));
  yk__thread_join(&t);
  yk__alloc_fail_at(1);
  yk__alloc_fail_at(0);
  p = yk__alloc(1);
  assert_non_null(p);
  yk__free(p);
  CHECK_INT(worked, 1);
  yk_error_clear();
}

static void test_bump(void **state) {
  uint64_t live = yk__alloc_live();
  yk_bump b = { 0 };
  size_t total = 0;
  (void)state;
  for (size_t i = 0; i < 3000; i++) {
    size_t n = i % 500 == 499 ? 300000 : i % 97;
    unsigned char *p = yk__bump(&b, n);
    assert_non_null(p);
    CHECK_INT((uintptr_t)p % 16, 0);
    for (size_t k = 0; k < n; k++) {
      if (p[k]) fail_msg("byte %zu of object %zu is %d, expected 0", k, i, p[k]);
    }
    memset(p, 0xff, n);
    total += n;
  }
  assert_true(b.used >= total);
  assert_string_equal(yk__bump_str(&b, "conv1/weights"), "conv1/weights");
  assert_memory_equal(yk__bump_copy(&b, "abc", 3), "abc", 3);
  assert_true(yk__alloc_live() - live < 100);
  yk__bump_free(&b);
  CHECK_INT(yk__alloc_live() - live, 0);
  CHECK_INT(b.used, 0);
}

static void test_bump_refuses_what_cannot_be(void **state) {
  yk_bump b = { 0 };
  (void)state;
  assert_null(yk__bump(&b, SIZE_MAX));
  assert_null(yk__bump(&b, SIZE_MAX / 2));
  assert_non_null(yk__bump(&b, 10));
  yk__bump_free(&b);
  yk_error_clear();
}

static void test_push(void **state) {
  int *a = NULL;
  uint32_t n = 0, cap = 0;
  (void)state;
  for (int i = 0; i < 1000; i++) assert_true(YK_PUSH(a, n, cap, i * i));
  CHECK_INT(n, 1000);
  for (int i = 0; i < 1000; i++) CHECK_INT(a[i], i * i);
  assert_false(yk__grow((void **)(void *)&a, &cap, 0, sizeof *a));       /* 2^32 items */
  CHECK_INT(a[999], 999 * 999);
  yk__free(a);
  yk_error_clear();
}

/* What the fault test runs: one of everything. Returns 0 when something failed. */
static int one_of_everything(void) {
  int ok = 0;
  yk_bump b = { 0 };
  int *a = NULL;
  uint32_t n = 0, cap = 0;
  char *s = yk__strdup("x");
  void *aligned = yk__alloc_aligned(10, 64);
  int pushed = 1;
  for (int i = 0; i < 20 && pushed; i++) pushed = YK_PUSH(a, n, cap, i);
  for (uint32_t i = 0; i < n; i++) CHECK_INT(a[i], i);
  if (!pushed) assert_true(n < 20);                          /* untouched */
  ok = s && aligned && pushed && yk__bump(&b, 5000) && yk__bump(&b, 50000);
  yk__bump_free(&b);
  yk__free(a);
  yk__free(aligned);
  yk__free(s);
  return ok;
}

static uint64_t fail_each(uint64_t (*ask)(uint64_t n)) {
  uint64_t live = yk__alloc_live(), n;
  for (n = 1;; n++) {
    yk_error_clear();
    ask(n);
    int ok = one_of_everything();
    uint64_t refused = ask(0);
    CHECK_INT(yk__alloc_live() - live, 0);
    CHECK_INT(refused == 0, ok);
    if (ok) return n - 1;
    assert_non_null(strstr(yk_error_message(), "out of host memory"));
  }
}

/* Two, an item twenty times whether or not there was room, and two blocks with an object each. */
static void test_every_allocation_can_fail(void **state) {
  (void)state;
  CHECK_INT(fail_each(yk__alloc_fail_at), 26);
  CHECK_INT(fail_each(yk__alloc_fail_from), 26);
}

static void test_fail_from_stays(void **state) {
  (void)state;
  CHECK_INT(yk__alloc_fail_from(2), 0);
  void *p = yk__alloc(1);
  assert_non_null(p);
  yk__free(p);
  assert_null(yk__alloc(1));
  assert_null(yk__calloc(1, 1));
  CHECK_INT(yk__alloc_fail_at(0), 2);
  CHECK_INT(yk__alloc_fail_at(0), 0);
  p = yk__alloc(1);
  assert_non_null(p);
  yk__free(p);
  yk_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_counts), cmocka_unit_test(test_sizes_do_not_wrap), cmocka_unit_test(test_strings),
    cmocka_unit_test(test_fail_at_is_once_and_per_thread), cmocka_unit_test(test_bump),
    cmocka_unit_test(test_bump_refuses_what_cannot_be), cmocka_unit_test(test_push),
    cmocka_unit_test(test_every_allocation_can_fail), cmocka_unit_test(test_fail_from_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
