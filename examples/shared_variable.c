/*
 * shared_variable.c - a variable has one home, and other devices borrow it.
 *
 * `ccc` lives on /cpu:0; /gpu:0 (emulated here, so the program runs anywhere)
 * computes with it; assigning at home changes what the GPU sees next time.
 */
#include <stdio.h>
#include <yoke/yoke.h>

static int fail(void) {
  fprintf(stderr, "shared_variable: %s\n", yk_error_message());
  return 1;
}

static int print_run(yk_session *s, yk_value fetch) {
  yk_tensor *t;
  if (yk_session_run(s, 0, NULL, 1, &fetch, 0, NULL, &t) != YK_OK) return fail();
  for (int64_t i = 0; i < yk_tensor_count(t); i++) printf("%.1f%c", yk_tensor_at(t, i), i + 1 < yk_tensor_count(t) ? ' ' : '\n');
  yk_tensor_free(t);
  return 0;
}

int main(void) {
  yk_graph *g;
  yk_variable *ccc = NULL, *again = NULL;
  yk_value doubled = { 0 }, add = { 0 }, init;
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_session *s;
  float ones[24];
  int rc;
  for (int i = 0; i < 24; i++) ones[i] = 1.0f;
  if (yk_graph_new(&g) != YK_OK) return fail();

  YK_DEVICE(g, "/cpu:0") {
    ccc = yk_get_variable(g, "ccc", YK_F32, YK_SHAPE(2, 3, 4), YK_ONES, NULL);
    add = yk_assign_add(g, ccc, yk_constant_f32(g, YK_SHAPE(2, 3, 4), ones));
  }
  yk_reuse_variables(yk_get_variable_scope(g));      /* asked for again: the same variable, not a second one */
  again = yk_get_variable(g, "ccc", YK_F32, YK_SHAPE(2, 3, 4), YK_ONES, NULL);
  YK_DEVICE(g, "/gpu:0") { doubled = yk_mul(g, yk_read(ccc), yk_scalar_f32(g, 2.0f)); }
  init = yk_global_variables_initializer(g);

  o.virtual_gpus = 1;
  o.log_device_placement = true;
  if (yk_session_open(g, &o, &s) != YK_OK) return fail();
  printf("same variable: %s\n", ccc == again ? "yes" : "no");
  if (yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL) != YK_OK) return fail();
  rc = print_run(s, doubled);
  if (rc == 0 && yk_session_run(s, 0, NULL, 0, NULL, 1, &add, NULL) != YK_OK) rc = fail();
  if (rc == 0) rc = print_run(s, doubled);
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}
