/* first.c - fit a line: a graph, automatic gradients, a session. The program of the README. */
#include <stdio.h>
#include <yoke/yoke.h>

int main(void) {
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  float xs[] = { 0, 1, 2, 3 }, ys[] = { 1, 3, 5, 7 };          /* y = 2x + 1 */
  if (yk_graph_new(&g) != YK_OK) return 1;

  yk_value x = yk_constant_f32(g, YK_SHAPE(4), xs), y = yk_constant_f32(g, YK_SHAPE(4), ys);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SCALAR, YK_ZEROS, NULL);
  yk_variable *b = yk_get_variable(g, "b", YK_F32, YK_SCALAR, YK_ZEROS, NULL);
  yk_value line = yk_add(g, yk_mul(g, x, yk_read(w)), yk_read(b));
  yk_value loss = yk_reduce_mean(g, yk_squared_difference(g, line, y), NULL);
  yk_value train = yk_minimize(g, &YK_SGD(0.1), loss, NULL);
  yk_value init = yk_global_variables_initializer(g), fetch[] = { loss, yk_read(w), yk_read(b) };

  if (yk_session_open(g, NULL, &s) != YK_OK ||                 /* any mistake above is reported here, with file and line */
      yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL) != YK_OK ||
      yk_step_prepare(s, 0, NULL, 3, fetch, 1, &train, &step) != YK_OK) {
    fprintf(stderr, "%s\n", yk_error_message());
    return 1;
  }
  for (int i = 0; i < 200; i++) {
    const yk_tensor *const *out;
    if (yk_step_run(step, NULL, &out) != YK_OK) return 1;
    if (i == 199) printf("loss %.6f, w %.3f, b %.3f\n", yk_tensor_at(out[0], 0), yk_tensor_at(out[1], 0), yk_tensor_at(out[2], 0));
  }
  yk_step_free(step);
  yk_session_close(s);
  yk_graph_free(g);
}
