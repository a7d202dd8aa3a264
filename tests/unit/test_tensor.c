/*
 * Host tensors: what they hold, who owns it, and what is refused. Every
 * allocation of every constructor is made to fail once.
 */
#include "support/check.h"
#include "base/alloc.h"
#include "base/thread.h"

#include <yoke/tensor.h>

static void test_dtypes(void **state) {
  static const size_t bytes[YK_NDTYPES] = { 0, 4, 8, 2, 2, 4, 8, 1, 1 };
  (void)state;
  for (int i = 0; i < (int)YK_NDTYPES; i++) {
    CHECK_INT(yk_dtype_bytes((yk_dtype)i), bytes[i]);
    if (i) CHECK_INT(yk_dtype_parse(yk_dtype_name((yk_dtype)i)), i);
  }
  assert_string_equal(yk_dtype_name(YK_BF16), "bf16");
  assert_string_equal(yk_dtype_name(YK_BOOL), "bool");
  CHECK_INT(yk_dtype_bytes((yk_dtype)99), 0);
  assert_string_equal(yk_dtype_name((yk_dtype)99), "dtype?");
  CHECK_INT(yk_dtype_parse("float32"), YK_NONE);
  CHECK_INT(yk_dtype_parse("none"), YK_NONE);
  CHECK_INT(yk_dtype_parse(NULL), YK_NONE);
}

static void test_new_and_from(void **state) {
  static const int32_t data[6] = { 1, -2, 3, 4, 5, 6 };
  yk_tensor *z, *t;
  uint64_t live = yk__alloc_live();
  (void)state;
  CHECK_OK(yk_tensor_new(YK_F64, YK_SHAPE(3, 5), &z));
  CHECK_INT(yk_tensor_count(z), 15);
  CHECK_INT(yk_tensor_bytes(z), 120);
  CHECK_INT((uintptr_t)yk_tensor_data(z) % 64, 0);
  for (int i = 0; i < 15; i++) CHECK_NEAR(yk_tensor_at(z, i), 0, 0);
  CHECK_OK(yk_tensor_from(YK_I32, YK_SHAPE(2, 3), data, &t));
  CHECK_INT(yk_tensor_desc(t)->rank, 2);
  CHECK_INT(yk_tensor_desc(t)->dim[1], 3);
  CHECK_INT(yk_tensor_desc(t)->dtype, YK_I32);
  for (int i = 0; i < 6; i++) CHECK_NEAR(yk_tensor_at(t, i), data[i], 0);
  assert_true(isnan(yk_tensor_at(t, 6)));
  assert_true(isnan(yk_tensor_at(t, -1)));
  yk_tensor_free(z);
  yk_tensor_free(t);
  yk_tensor_free(NULL);
  CHECK_INT(yk__alloc_live(), live);
}

static void test_scalar_and_empty(void **state) {
  float x = 2.5f;
  yk_tensor *s, *e;
  (void)state;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SCALAR, &x, &s));
  CHECK_INT(yk_tensor_count(s), 1);
  CHECK_NEAR(yk_tensor_at(s, 0), 2.5, 0);
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(4, 0, 3), &e));
  CHECK_INT(yk_tensor_count(e), 0);
  CHECK_INT(yk_tensor_bytes(e), 0);
  assert_true(isnan(yk_tensor_at(e, 0)));
  yk_tensor_free(s);
  yk_tensor_free(e);
}

static void count_release(void *data, void *arg) {
  (void)data;
  ++*(int *)arg;
}

static void test_wrap(void **state) {
  uint8_t data[4] = { 1, 0, 7, 0 };
  int released = 0;
  yk_tensor *t;
  (void)state;
  CHECK_OK(yk_tensor_wrap(YK_BOOL, YK_SHAPE(4), data, count_release, &released, &t));
  assert_ptr_equal(yk_tensor_data(t), data);
  CHECK_NEAR(yk_tensor_at(t, 2), 1, 0);
  assert_ptr_equal(yk_tensor_ref(t), t);
  yk_tensor_free(t);
  CHECK_INT(released, 0);
  yk_tensor_free(t);
  CHECK_INT(released, 1);
  CHECK_CODE(yk_tensor_wrap(YK_U8, YK_SHAPE(-4), data, count_release, &released, &t), YK_EINVAL, "dimension 0");
  CHECK_INT(released, 1);
  CHECK_OK(yk_tensor_wrap(YK_U8, YK_SHAPE(4), data, NULL, NULL, &t));
  yk_tensor_free(t);
}

static void test_refusals(void **state) {
  float x = 0;
  yk_tensor *t = NULL;
  (void)state;
  CHECK_CODE(yk_tensor_new(YK_NONE, YK_SHAPE(1), &t), YK_EINVAL, "dtype");
  CHECK_CODE(yk_tensor_new((yk_dtype)77, YK_SHAPE(1), &t), YK_EINVAL, "77");
  CHECK_CODE(yk_tensor_new(YK_F32, YK_SHAPE(2, -1), &t), YK_EINVAL, "dimension 1 of f32[2,?] is -1");
  CHECK_CODE(yk_tensor_new(YK_F32, ((yk_shape){ 9, { 0 } }), &t), YK_EINVAL, "at most 8");
  CHECK_CODE(yk_tensor_new(YK_F32, YK_SHAPE(INT64_MAX, 2), &t), YK_EINVAL, "too large");
  CHECK_CODE(yk_tensor_new(YK_F64, YK_SHAPE(INT64_C(1) << 60), &t), YK_EINVAL, "too large");
  CHECK_CODE(yk_tensor_from(YK_F32, YK_SHAPE(2), NULL, &t), YK_EINVAL, "NULL");
  CHECK_CODE(yk_tensor_wrap(YK_F32, YK_SHAPE(2), NULL, NULL, NULL, &t), YK_EINVAL, "NULL");
  CHECK_CODE(yk_tensor_from((yk_dtype)-1, YK_SHAPE(2), &x, &t), YK_EINVAL, "dtype");
  assert_null(t);
}

static void test_every_allocation_can_fail(void **state) {
  float data[2] = { 1, 2 };
  uint64_t live = yk__alloc_live();
  (void)state;
  for (int which = 0; which < 3; which++) {
    for (uint64_t n = 1;; n++) {
      yk_tensor *t = NULL;
      yk_code rc;
      yk__alloc_fail_at(n);
      if (which == 0) rc = yk_tensor_new(YK_F32, YK_SHAPE(2), &t);
      else if (which == 1) rc = yk_tensor_from(YK_F32, YK_SHAPE(2), data, &t);
      else rc = yk_tensor_wrap(YK_F32, YK_SHAPE(2), data, NULL, NULL, &t);
      yk__alloc_fail_at(0);
      if (rc == YK_OK) {
        yk_tensor_free(t);
        CHECK_INT(n, which == 2 ? 2 : 3);
        break;
      }
      CHECK_INT(rc, YK_ENOMEM);
      assert_null(t);
      CHECK_INT(yk__alloc_live(), live);
    }
  }
  CHECK_INT(yk__alloc_live(), live);
}

static void *ref_and_free(void *arg) {
  for (int i = 0; i < 10000; i++) yk_tensor_free(yk_tensor_ref(arg));
  return NULL;
}

static void test_references_are_thread_safe(void **state) {
  int released = 0;
  float x = 1;
  yk_tensor *t;
  yk_thread a, b;
  (void)state;
  CHECK_OK(yk_tensor_wrap(YK_F32, YK_SCALAR, &x, count_release, &released, &t));
  CHECK_OK(yk__thread_start(&a, "a", ref_and_free, t));
  CHECK_OK(yk__thread_start(&b, "b", ref_and_free, t));
  yk__thread_join(&a);
  yk__thread_join(&b);
  CHECK_INT(released, 0);
  yk_tensor_free(t);
  CHECK_INT(released, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dtypes), cmocka_unit_test(test_new_and_from), cmocka_unit_test(test_scalar_and_empty),
    cmocka_unit_test(test_wrap), cmocka_unit_test(test_refusals), cmocka_unit_test(test_every_allocation_can_fail),
    cmocka_unit_test(test_references_are_thread_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
