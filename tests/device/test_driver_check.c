/*
 * test_driver_check.c - a driver's table is refused unless everything that will be called is there.
 *
 * The tables are built here entry by entry from the header's own list, so a new required entry is covered without
 * touching this file.
 */
#include <stdlib.h>
#include "rig.h"

/* Any function will do: the check calls nothing. */
static yk_driver full_table(void) {
  return *yk__driver_find("cpu");
}

static void test_full(void **state) {
  (void)state;
  yk_driver d = full_table();
  OK(yk__driver_check(&d));
  assert_true(YK_HAS(&d, copy_peer));
}

static void test_half_filled(void **state) {
  (void)state;
  char want[64];
#define MISSING(f) {                                                           \
    yk_driver d = full_table();                                                \
    d.f = NULL;                                                                \
    FAILS(EINVAL, yk__driver_check(&d));                                       \
    snprintf(want, sizeof want, "'%s'", #f);                                   \
    SAYS(want);                                                                \
    SAYS("cpu");                                                               \
  }
  YK_DRIVER_REQUIRED(MISSING)
#undef MISSING
  yk_driver d = full_table();
  d.info = NULL;                               /* the first missing one is named */
  d.fill = NULL;
  FAILS(EINVAL, yk__driver_check(&d));
  SAYS("'info'");
}

static void test_without_tail(void **state) {
  (void)state;
  yk_driver d = full_table();
  d.size = offsetof(yk_driver, copy_peer);     /* as a backend built before the optional entries existed */
  OK(yk__driver_check(&d));
  assert_false(YK_HAS(&d, copy_peer));
  assert_false(YK_HAS(&d, event_time));
  d = full_table();
  d.copy_peer = NULL;
  OK(yk__driver_check(&d));
  assert_false(YK_HAS(&d, copy_peer));
  d.size = sizeof d + 64;                      /* and one built after ours, with more */
  OK(yk__driver_check(&d));
}

/* Really short memory, so that a sanitizer sees any look beyond `size`. */
static void test_too_short(void **state) {
  (void)state;
  yk_driver whole = full_table();
  for (size_t bytes = offsetof(yk_driver, count); bytes < offsetof(yk_driver, copy_peer); bytes += sizeof(void *)) {
    void *p = malloc(bytes);
    whole.size = (uint32_t)bytes;
    memcpy(p, &whole, bytes);
    FAILS(EINVAL, yk__driver_check(p));
    if (bytes == offsetof(yk_driver, mem_map)) SAYS("'mem_map'");
    free(p);
  }
  yk_driver tiny = { .size = 8 };
  FAILS(EINVAL, yk__driver_check(&tiny));
  FAILS(EINVAL, yk__driver_check(NULL));
}

static void test_versions(void **state) {
  (void)state;
  yk_driver d = full_table();
  d.major = YK_DEVICE_MAJOR + 1;
  FAILS(EUNSUPPORTED, yk__driver_check(&d));
  SAYS("interface 2.3");
  d = full_table();
  d.minor = 99;                                /* minors only add */
  OK(yk__driver_check(&d));
  d.name = NULL;
  FAILS(EINVAL, yk__driver_check(&d));
  d = full_table();
  d.version = NULL;
  FAILS(EINVAL, yk__driver_check(&d));
}

static void test_find(void **state) {
  (void)state;
  static const char *const names[] = { "cpu", "ref", "null" };
  for (int i = 0; i < 3; i++) {
    const yk_driver *d = yk__driver_find(names[i]);
    assert_non_null(d);
    assert_string_equal(d->name, names[i]);
    assert_ptr_equal(d, yk__driver_find(names[i]));
  }
  assert_null(yk__driver_find("abacus"));
  SAYS("abacus");
  SAYS("cpu ref null");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_full), cmocka_unit_test(test_half_filled), cmocka_unit_test(test_without_tail),
    cmocka_unit_test(test_too_short), cmocka_unit_test(test_versions), cmocka_unit_test(test_find),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
