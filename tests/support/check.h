/*
 * check.h - what every test includes: cmocka with its prerequisites, and a few checks of our own.
 *
 * A failed check prints both values and the library's message. CHECK_CODE also clears the message, as whoever handles a
 * failure does.
 */
#ifndef YK_TEST_CHECK_H
#define YK_TEST_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <yoke/status.h>

#define CHECK_OK(call)                                                                              \
  do {                                                                                              \
    yk_code rc_ = (call);                                                                           \
    if (rc_ != YK_OK) fail_msg("%s: %s: %s", #call, yk_code_name(rc_), yk_error_message());         \
  } while (0)

/* `call` fails with `code`, and its message contains `text`. */
#define CHECK_CODE(call, code, text)                                                                \
  do {                                                                                              \
    yk_code rc_ = (call);                                                                           \
    if (rc_ != (code)) {                                                                            \
      fail_msg("%s: got %s (%s), expected %s", #call, yk_code_name(rc_), yk_error_message(), yk_code_name(code)); \
    }                                                                                               \
    if (!strstr(yk_error_message(), (text))) {                                                      \
      fail_msg("%s: message \"%s\" lacks \"%s\"", #call, yk_error_message(), (text));               \
    }                                                                                               \
    yk_error_clear();                                                                               \
  } while (0)

#define CHECK_NEAR(got, want, tolerance)                                                            \
  do {                                                                                              \
    double got_ = (got), want_ = (want);                                                            \
    if (!(fabs(got_ - want_) <= (tolerance))) {                                                     \
      fail_msg("%s: got %.17g, expected %.17g", #got, got_, want_);                                 \
    }                                                                                               \
  } while (0)

#define CHECK_INT(got, want)                                                                        \
  do {                                                                                              \
    long long got_ = (long long)(got), want_ = (long long)(want);                                   \
    if (got_ != want_) fail_msg("%s: got %lld, expected %lld", #got, got_, want_);                  \
  } while (0)

#endif
