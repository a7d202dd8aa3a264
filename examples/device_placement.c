/*
 * device_placement.c - an operation runs on the device that it names, and the log shows where everything went.
 *
 * A product of two matrices is pinned to /gpu:1; the GPUs are emulated here, so the program runs anywhere. With an
 * argument, that device is asked for instead: one that is not there is refused, and the refusal says what to do.
 */
#include <stdio.h>
#include <yoke/yoke.h>

static int fail(void) {
  fprintf(stderr, "device_placement: %s\n", yk_error_message());
  return 1;
}

static void print_matrix(const yk_tensor *t, int rows, int columns) {
  for (int i = 0; i < rows; i++) {
    printf("%s", i == 0 ? "[[" : " [");
    for (int k = 0; k < columns; k++) printf("%s%g", k > 0 ? " " : "", yk_tensor_at(t, (int64_t)i * columns + k));
    printf("]");
  }
  printf("]\n");
}

int main(int argc, char **argv) {
  const char *where = argc > 1 ? argv[1] : "/gpu:1";
  const float numbers[] = { 1, 2, 3, 4, 5, 6 };
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_graph *g;
  yk_session *s;
  yk_tensor *product;
  yk_value c = { 0 };
  if (yk_graph_new(&g) != YK_OK) return fail();

  YK_DEVICE(g, where) {
    yk_value a = yk_constant_f32(yk_named(g, "a"), YK_SHAPE(2, 3), numbers);
    yk_value b = yk_constant_f32(yk_named(g, "b"), YK_SHAPE(3, 2), numbers);
    c = yk_matmul(g, a, b, NULL);
  }

  o.virtual_gpus = 2;
  o.log_device_placement = true;
  if (yk_session_open(g, &o, &s) != YK_OK) {
    yk_graph_free(g);
    return fail();
  }
  int rc = 0;
  if (yk_session_run(s, 0, NULL, 1, &c, 0, NULL, &product) != YK_OK) {
    rc = fail();
  } else {
    print_matrix(product, 2, 2);
    yk_tensor_free(product);
  }
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}
