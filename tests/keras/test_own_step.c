/*
 * Steps of one's own over networks: built in the keras's graph, trained there, seen by every other network of the same keras.
 */
#include "support/check.h"
#include <yoke/yoke.h>

/* Two networks over one layer: what a step built on the first one trains, the second one predicts with; the frozen layer stays. */
static void test_shared_layer(void **state) {
  (void)state;
  yk_keras *k;
  CHECK_OK(yk_keras_new(3, &k));
  yk_layer *body = yk_layer_dense(k, &(yk_dense_config){ .name = "body", .units = 4, .activation = "tanh" });
  yk_layer *head = yk_layer_dense(k, &(yk_dense_config){ .name = "head", .units = 1, .frozen = true });
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(3) }), x = yk_apply(body, in), y = yk_apply(head, x);
  yk_network *one = yk_network_new(k, "one", 1, &in, 1, &y), *two = yk_network_new(k, "two", 1, &in, 1, &x);
  yk_graph *g;
  CHECK_OK(yk_keras_graph(k, &g));
  const float data[6] = { 1, 2, 3, -1, 0, 1 };
  yk_value a = yk_constant_f32(g, YK_SHAPE(2, 3), data), out;
  yk_network_build(one, true, &a, &out);
  yk_value loss = yk_reduce_mean(g, yk_square(g, yk_sub(g, out, yk_scalar_f32(g, 2))), NULL);
  yk_variable *v[8];
  CHECK_INT(yk_network_variables(one, v, 8), 2);           /* body's; the head is frozen */
  assert_string_equal(yk_variable_name(v[0]), "body/kernel");
  yk_gradient grads[2];
  yk_compute_gradients(g, loss, 2, v, grads, 2);
  yk_value train = yk_apply_gradients(g, &YK_KERAS_SGD(0.05, 0.9), 2, grads, NULL);
  CHECK_OK(yk_graph_status(g));
  yk_session *s;
  CHECK_OK(yk_keras_session(k, &s));
  yk_tensor *before, *after, *w, *kept, *first, *last, *t, *p;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2, 3), data, &t));
  CHECK_OK(yk_network_predict(two, (const yk_tensor *const *)&t, 0, &before));
  CHECK_OK(yk_layer_weight(head, "kernel", &kept));
  CHECK_OK(yk_session_run(s, 0, NULL, 1, &loss, 0, NULL, &first));
  for (int i = 0; i < 30; i++) CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &train, NULL));
  CHECK_OK(yk_session_run(s, 0, NULL, 1, &loss, 0, NULL, &last));
  if (!(yk_tensor_at(last, 0) < 0.8 * yk_tensor_at(first, 0)))
    fail_msg("loss %g, before %g", yk_tensor_at(last, 0), yk_tensor_at(first, 0));
  CHECK_OK(yk_network_predict(two, (const yk_tensor *const *)&t, 0, &after));
  CHECK_OK(yk_layer_weight(head, "kernel", &w));
  for (int64_t i = 0; i < 4; i++) CHECK_NEAR(yk_tensor_at(w, i), yk_tensor_at(kept, i), 0);
  double moved = 0;
  for (int64_t i = 0; i < yk_tensor_count(after); i++) moved += fabs(yk_tensor_at(after, i) - yk_tensor_at(before, i));
  if (!(moved > 0.1)) fail_msg("the other network moved by %g only", moved);
  /* another network, made and run after the session was opened */
  yk_network *three = yk_network_new(k, "three", 1, &x, 1, &y);
  assert_null(three);                                      /* x is no input: one clear error, and the graph still runs */
  CHECK_OK(yk_session_run(s, 0, NULL, 1, &loss, 0, NULL, &p));
  yk_tensor_free(before); yk_tensor_free(after); yk_tensor_free(w); yk_tensor_free(kept);
  yk_tensor_free(first); yk_tensor_free(last); yk_tensor_free(t); yk_tensor_free(p);
  yk_keras_free(k);
}

/* A network of two inputs and outputs, cut in two at its own symbols: each part runs alone, with the weights of the whole. */
static void test_cut(void **state) {
  (void)state;
  yk_keras *k;
  CHECK_OK(yk_keras_new(3, &k));
  yk_sym in[2], out[2];
  for (int i = 0; i < 2; i++) {
    in[i] = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(3) });
    out[i] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 2 + i, .activation = "tanh" }), in[i]);
  }
  yk_network *whole = yk_network_new(k, "whole", 2, in, 2, out), *part[2];
  size_t n[2];
  const yk_sym *from = yk_network_inputs(whole, &n[0]), *to = yk_network_outputs(whole, &n[1]);
  CHECK_INT(n[0], 2);
  CHECK_INT(n[1], 2);
  yk_tensor *x[2], *all[2], *one;
  for (int i = 0; i < 2; i++) CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(2, 3), (const float[]){ 1, 2, (float)i, -1, 0, 1 }, &x[i]));
  CHECK_OK(yk_network_predict(whole, (const yk_tensor *const *)x, 0, all));
  for (int i = 0; i < 2; i++) {
    part[i] = yk_network_new(k, i ? "second" : "first", 1, from + i, 1, to + i);
    CHECK_OK(yk_keras_status(k));
    CHECK_OK(yk_network_predict(part[i], (const yk_tensor *const *)&x[i], 0, &one));
    assert_memory_equal(yk_tensor_data(one), yk_tensor_data(all[i]), yk_tensor_bytes(one));
    yk_tensor_free(one);
  }
  assert_null(yk_network_inputs(NULL, &n[0]));
  assert_null(yk_network_outputs(NULL, NULL));
  CHECK_INT(n[0], 0);
  for (int i = 0; i < 2; i++) yk_tensor_free(x[i]), yk_tensor_free(all[i]);
  yk_keras_free(k);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_shared_layer), cmocka_unit_test(test_cut) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
