/*
 * test_allreduce.c - a sum that every device stores becomes one node, and bits stay what they were.
 *
 * Vectors of several devices are added up into variables of all of them, small ones and some that leave every cache, on virtual GPUs,
 * whose memories are apart, and on CPU devices. Whoever else needs the sum keeps it.
 */
#include <stdlib.h>
#include <string.h>
#include "run/run.h"
#include "run/support.h"

enum { N = 3, LARGE = 3100003 };

typedef struct job { yk_graph *g; yk_session *s; yk_value all, sum, out[N]; } job;

/* Numbers at random in each device's vector. */
static void build(job *j, const char *type, int64_t n) {
  yk_value in[N], stored[N];
  j->g = new_graph();
  for (int d = 0; d < N; d++) {
    char name[16], at[16];
    yk_variable *v = NULL, *out = NULL;
    snprintf(at, sizeof at, "/%s:%d", type, d);
    YK_DEVICE(j->g, at) {
      snprintf(name, sizeof name, "in%d", d);
      yk_variable_options fixed = { .not_trainable = true };
      v = yk_get_variable(j->g, name, YK_F32, YK_SHAPE(n), YK_UNIFORM(-1, 1), &fixed);
      snprintf(name, sizeof name, "out%d", d);
      out = yk_get_variable(j->g, name, YK_F32, YK_SHAPE(n), YK_ZEROS, &fixed);
      j->out[d] = yk_read(out);
    }
    in[d] = yk_read(v);
    stored[d] = (yk_value){ 0 };
  }
  YK_DEVICE(j->g, type[0] == 'g' ? "/gpu:1" : "/cpu:1") { j->sum = yk_add_n(j->g, N, in); }
  for (int d = 0; d < N; d++) {
    char name[16];
    snprintf(name, sizeof name, "out%d", d);
    for (size_t i = 0; i < yk_variable_count(j->g); i++)
      if (strcmp(yk_variable_name(yk_variable_get(j->g, i)), name) == 0) stored[d] = yk_assign(j->g, yk_variable_get(j->g, i), j->sum);
  }
  j->all = yk_group(j->g, N, stored);
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  if (type[0] == 'g') o.virtual_gpus = N;
  else o.cpu_devices = N;
  OK(yk_session_open(j->g, &o, &j->s));
  run_target(j->s, yk_global_variables_initializer(j->g));
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

static void expect_plan(job *j, size_t nfetch, const yk_value *fetch, size_t joined, size_t assigns) {
  char *text;
  OK(yk_session_explain(j->s, 0, NULL, nfetch, fetch, 1, &j->all, &text));
  if (count(text, "plain:assign_sum") != joined || count(text, "[plain:assign]") != assigns)
    fail_msg("expected %zu joined and %zu assigns in\n%s", joined, assigns, text);
  yk_free(text);
}

/* Each device's result has the bits of the sum that is fetched, which is not joined with anything. */
static void check(const char *type, int64_t n) {
  job j;
  yk_tensor *got[N], *sum;
  build(&j, type, n);
  expect_plan(&j, 0, NULL, 1, 0);
  expect_plan(&j, 1, &j.sum, 0, N);
  OK(yk_session_run(j.s, 0, NULL, 1, &j.sum, 0, NULL, &sum));
  run_target(j.s, j.all);
  OK(yk_session_run(j.s, 0, NULL, N, j.out, 0, NULL, got));
  for (int d = 0; d < N; d++) {
    if (memcmp(yk_tensor_data(got[d]), yk_tensor_data(sum), (size_t)n * sizeof(float)) != 0) fail_msg("%s:%d has another sum", type, d);
    yk_tensor_free(got[d]);
  }
  if (((const float *)yk_tensor_data(sum))[n - 1] == 0) fail_msg("nothing was added up");
  yk_tensor_free(sum);
  end(j.s, j.g);
}

static void test_small(void **state) { (void)state; check("gpu", 7); check("cpu", 7); }
static void test_large(void **state) { (void)state; check("gpu", LARGE); check("cpu", LARGE); }

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_small), cmocka_unit_test(test_large) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
