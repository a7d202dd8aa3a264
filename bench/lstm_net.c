/*
 * lstm_net.c - the recurrent network of lstm_net.h as a graph, through the public headers alone.
 */
#include "lstm_net.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 140, FEATURES = 256, UNITS = 64, MAX_INPUTS = 2 };

static yk_value weight(yk_graph *g, const char *name, yk_shape shape, double range) {
  return yk_read(yk_get_variable(g, name, YK_F32, shape, range > 0 ? YK_UNIFORM(-range, range) : YK_ZEROS, NULL));
}

/* The last state of the layer over input number i. */
static yk_value layer(const lstm_net *net, int i, const yk_value w[3]) {
  const yk_variable_options fixed = { .not_trainable = true };
  yk_graph *g = net->g;
  yk_value out[3] = { { 0 } }, none = { 0 };
  char name[16], device[16];
  snprintf(name, sizeof name, "x%d", i);
  snprintf(device, sizeof device, "/cpu:%d", i % net->devices);
  yk_device_push(g, device);
  yk_value x = yk_read(yk_get_variable(g, name, YK_F32, YK_SHAPE(net->batch, STEPS, FEATURES), YK_UNIFORM(-0.5, 0.5), &fixed));
  if (strcmp(net->kind, "gru") == 0) yk_gru(g, x, w[0], w[1], w[2], w[2], none, none, NULL, out);
  else if (strcmp(net->kind, "simple") == 0) yk_simple_rnn(g, x, w[0], w[1], w[2], none, none, NULL, out);
  else if (strcmp(net->kind, "lstm") == 0) yk_lstm(g, x, w[0], w[1], w[2], none, none, none, NULL, out);
  else YK_PRECISION(g, YK_BF16) { yk_lstm(g, x, w[0], w[1], w[2], none, none, none, NULL, out); }
  yk_device_pop(g);
  return out[1];
}

yk_code lstm_net_open(lstm_net *net) {
  const int64_t gates = strncmp(net->kind, "lstm", 4) == 0 ? 4 : strcmp(net->kind, "gru") == 0 ? 3 : 1;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_value last[MAX_INPUTS];
  so.cores = net->cores;
  so.cpu_devices = net->devices;
  YK_TRY(yk_graph_new(&net->g));
  yk_graph *g = net->g;
  yk_device_push(g, "/cpu:0");
  yk_value w[3] = { weight(g, "kernel", YK_SHAPE(FEATURES, gates * UNITS), 0.1),
                    weight(g, "recurrent", YK_SHAPE(UNITS, gates * UNITS), 0.1), weight(g, "bias", YK_SHAPE(gates * UNITS), 0) };
  for (int i = 0; i < net->inputs; i++) last[i] = layer(net, i, w);
  yk_value dense = weight(g, "dense", YK_SHAPE(net->inputs * UNITS, 1), 0.1), bias = weight(g, "dense_bias", YK_SHAPE(1), 0);
  yk_value states = net->inputs > 1 ? yk_concat(g, (uint32_t)net->inputs, last, 1) : last[0];
  yk_value logits = yk_bias_add(g, yk_matmul(g, states, dense, NULL), bias);
  yk_value loss = yk_reduce_mean(g, yk_sigmoid_cross_entropy(g, logits, yk_fill(g, YK_F32, YK_SHAPE(net->batch, 1), 1)), NULL);
  yk_value train = yk_minimize(g, &YK_MOMENTUM(1e-3, 0.9), loss, NULL), init = yk_global_variables_initializer(g);
  yk_device_pop(g);
  YK_TRY(yk_session_open(g, &so, &net->s));
  YK_TRY(yk_session_run(net->s, 0, NULL, 0, NULL, 1, &init, NULL));
  return yk_step_prepare(net->s, 0, NULL, 1, &loss, 1, &train, &net->step);
}

yk_code lstm_net_step(lstm_net *net, double *loss) {
  const yk_tensor *const *out = NULL;
  YK_TRY(yk_step_run(net->step, NULL, &out));
  *loss = yk_tensor_at(out[0], 0);
  return YK_OK;
}

void lstm_net_close(lstm_net *net) {
  yk_step_free(net->step);
  yk_session_close(net->s);
  yk_graph_free(net->g);
}
