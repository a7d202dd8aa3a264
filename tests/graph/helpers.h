/*
 * helpers.h - what the tests of graphs share: a fresh graph, a check of its error, a check of its text.
 *
 * LINE is the "file.c:12" that a builder on the same line leaves in messages, so tests can ask for the exact place.
 */
#ifndef YK_TEST_GRAPH_HELPERS_H
#define YK_TEST_GRAPH_HELPERS_H

#include "support/check.h"
#include <yoke/math.h>
#include "graph/graph.h"
#include "op/registry.h"

static inline yk_graph *new_graph(void) {
  yk_graph *g = NULL;
  CHECK_OK(yk_graph_new(&g));
  return g;
}

/* The graph is sound; then it is gone. */
static inline void done(yk_graph *g) {
  CHECK_OK(yk_graph_status(g));
  CHECK_OK(yk_graph_verify(g));
  yk_graph_free(g);
}

/* The graph has failed with `code`, and its message holds each of the texts (the last one is NULL); then it is gone. */
static inline void failed(yk_graph *g, yk_code code, const char *const *texts) {
  yk_code got = yk_graph_status(g);
  if (got != code) fail_msg("status is %s (%s), expected %s", yk_code_name(got), yk_error_message(), yk_code_name(code));
  for (; *texts; texts++)
    if (!strstr(yk_error_message(), *texts)) fail_msg("message \"%s\" lacks \"%s\"", yk_error_message(), *texts);
  yk_error_clear();
  yk_graph_free(g);
}
#define FAILED(g, code, ...) failed(g, code, (const char *const[]){ __VA_ARGS__, NULL })

#define CHECK_STR(got, want)                                                                        \
  do {                                                                                              \
    const char *got_ = (got), *want_ = (want);                                                      \
    if (!got_ || strcmp(got_, want_)) fail_msg("%s: got \"%s\", expected \"%s\"", #got, got_ ? got_ : "(null)", want_); \
  } while (0)

/* The last `lines` lines of the graph's text (0 = all of it). */
static inline void check_dump(const yk_graph *g, int lines, const char *want) {
  char *text = NULL;
  CHECK_OK(yk_graph_dump(g, &text));
  char *from = text + strlen(text);
  for (int n = 0; from > text && (!lines || n <= lines); from--)
    if (from[-1] == '\n' && ++n > lines && lines) break;
  if (strcmp(from, want)) fail_msg("graph is\n%s\nexpected\n%s", from, want);
  yk_free(text);
}

static inline yk_value x2(yk_graph *g, const char *name) { return yk_placeholder(g, name, YK_F32, YK_SHAPE(2, 3)); }

#endif
