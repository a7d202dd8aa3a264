/*
 * support.h - what the tests of sessions share: checks that print both sides, and short ways to run.
 *
 * Every failure of the library is shown with its message. Tests run on the driver
 * named by `driver`, NULL being the CPU's own, so main() can run them on several.
 */
#ifndef YK_TESTS_RUN_SUPPORT_H
#define YK_TESTS_RUN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <yoke/math.h>
#include <yoke/session.h>

static const char *driver;

#define OK(call)                                                                                        \
  do {                                                                                                  \
    yk_code rc_ = (call);                                                                               \
    if (rc_ != YK_OK) fail_msg("%s: %s: %s", #call, yk_code_name(rc_), yk_error_message());             \
  } while (0)

/* The call fails with `code`, and its message contains `text`. */
#define FAILS(call, code, text)                                                                         \
  do {                                                                                                  \
    yk_code rc_ = (call);                                                                               \
    if (rc_ != (code)) fail_msg("%s: %s, expected %s (%s)", #call, yk_code_name(rc_), yk_code_name(code), yk_error_message()); \
    if (!strstr(yk_error_message(), (text))) fail_msg("message \"%s\" lacks \"%s\"", yk_error_message(), (text)); \
  } while (0)

static inline yk_session_options options(int gpus) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  o.drivers = driver;
  o.virtual_gpus = gpus;
  o.cores = 1;
  return o;
}

static inline yk_graph *new_graph(void) {
  yk_graph *g;
  OK(yk_graph_new(&g));
  return g;
}

static inline yk_session *open_with(yk_graph *g, yk_session_options o) {
  yk_session *s;
  OK(yk_session_open(g, &o, &s));
  return s;
}

static inline yk_session *open_session(yk_graph *g, int gpus) {
  return open_with(g, options(gpus));
}

static inline yk_tensor *ramp(yk_shape shape) {        /* 0, 1, 2, ... */
  yk_tensor *t;
  OK(yk_tensor_new(YK_F32, shape, &t));
  for (int64_t i = 0; i < yk_tensor_count(t); i++) ((float *)yk_tensor_data(t))[i] = (float)i;
  return t;
}

/* Element i is a*i + b, for all of `count` elements. */
static inline void expect_line(const yk_tensor *t, int64_t count, double a, double b) {
  if (yk_tensor_count(t) != count) fail_msg("%lld elements, expected %lld", (long long)yk_tensor_count(t), (long long)count);
  for (int64_t i = 0; i < count; i++)
    if (yk_tensor_at(t, i) != a * (double)i + b)
      fail_msg("element %lld: %g, expected %g", (long long)i, yk_tensor_at(t, i), a * (double)i + b);
}

static inline void run_target(yk_session *s, yk_value target) {
  OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &target, NULL));
}

static inline yk_tensor *run_fetch(yk_session *s, yk_value fetch) {
  yk_tensor *t;
  OK(yk_session_run(s, 0, NULL, 1, &fetch, 0, NULL, &t));
  return t;
}

static inline void end(yk_session *s, yk_graph *g) {
  yk_session_close(s);
  yk_graph_free(g);
}

#endif
