/*
 * rig.h - what the tests of training share: a graph with a session over virtual GPUs, and values of variables.
 *
 * Graphs are built by the test between rig_new() and rig_open(); rig_close() ends both.
 */
#ifndef YK_TESTS_TRAIN_RIG_H
#define YK_TESTS_TRAIN_RIG_H

#include <yoke/yoke.h>
#include "support/check.h"

typedef struct rig { yk_graph *g; yk_session *s; } rig;

static inline yk_graph *rig_new(rig *r) {
  *r = (rig){ 0 };
  CHECK_OK(yk_graph_new(&r->g));
  return r->g;
}

/* Everything is initialized. */
static inline void rig_open(rig *r, int gpus) {
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_value init = yk_global_variables_initializer(r->g);
  o.virtual_gpus = gpus;
  CHECK_OK(yk_session_open(r->g, &o, &r->s));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
}

static inline void rig_close(rig *r) {
  yk_session_close(r->s);
  yk_graph_free(r->g);
}

static inline void rig_run(rig *r, yk_value op) { CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &op, NULL)); }

static inline double rig_fetch(rig *r, yk_value v, int64_t i) {
  yk_tensor *t = NULL;
  CHECK_OK(yk_session_run(r->s, 0, NULL, 1, &v, 0, NULL, &t));
  double x = yk_tensor_at(t, i);
  yk_tensor_free(t);
  return x;
}

static inline double rig_value(rig *r, yk_variable *v, int64_t i) {
  yk_tensor *t = NULL;
  assert_non_null(v);
  CHECK_OK(yk_variable_fetch(r->s, v, &t));
  double x = yk_tensor_at(t, i);
  yk_tensor_free(t);
  return x;
}

static inline yk_variable *rig_find(const yk_graph *g, const char *name) {
  for (size_t i = 0; i < yk_variable_count(g); i++)
    if (strcmp(yk_variable_name(yk_variable_get(g, i)), name) == 0) return yk_variable_get(g, i);
  fail_msg("there is no variable '%s'", name);
  return NULL;
}

/* How often `what` stands in the plan of `target`. */
static inline int rig_count(rig *r, yk_value target, const char *what) {
  char *text = NULL;
  int n = 0;
  CHECK_OK(yk_session_explain(r->s, 0, NULL, 0, NULL, 1, &target, &text));
  for (const char *p = text; (p = strstr(p, what)) != NULL; p++) n++;
  yk_free(text);
  return n;
}

#endif
