/*
 * activations.c - Keras's activations by name.
 *
 * hard_sigmoid is that of Keras 2, 0.2*x + 0.5 clipped to [0, 1]; Keras 3 calls something else so, here hard_sigmoid_6. gelu is exact, as
 * Keras's default.
 */
#include <string.h>
#include "keras/keras.h"

typedef yk_value (*activation_fn)(const char *where, yk_graph *g, yk_value x);

static yk_value linear(const char *where, yk_graph *g, yk_value x) {
  (void)where;
  (void)g;
  return x;
}
static yk_value elu(const char *where, yk_graph *g, yk_value x) { return yk_elu_at(where, g, x, 1); }
static yk_value gelu(const char *where, yk_graph *g, yk_value x) { return yk_gelu_at(where, g, x, false); }
static yk_value leaky(const char *where, yk_graph *g, yk_value x) { return yk_leaky_relu_at(where, g, x, 0.2); }

static yk_value like(const char *where, yk_graph *g, yk_value x, double number) {
  const yk_desc *d = yk_value_desc(g, x);
  return d != NULL ? yk_scalar_at(where, g, (yk_dtype)d->dtype, number) : (yk_value){ 0 };
}

static yk_value hard_sigmoid(const char *where, yk_graph *g, yk_value x) {
  yk_value y = yk_mul_at(where, g, x, like(where, g, x, 0.2));
  return yk_clip_at(where, g, yk_add_at(where, g, y, like(where, g, x, 0.5)), 0, 1);
}

static yk_value hard_sigmoid_6(const char *where, yk_graph *g, yk_value x) {
  yk_value y = yk_relu6_at(where, g, yk_add_at(where, g, x, like(where, g, x, 3)));
  return yk_mul_at(where, g, y, like(where, g, x, 1.0 / 6));
}

static yk_value softsign(const char *where, yk_graph *g, yk_value x) {
  return yk_div_at(where, g, x, yk_add_at(where, g, yk_abs_at(where, g, x), like(where, g, x, 1)));
}

static const struct { const char *name; activation_fn fn;
} ACTIVATIONS[] = {
  { "linear", linear },
  { "relu", yk_relu_at },
  { "relu6", yk_relu6_at },
  { "elu", elu },
  { "selu", yk_selu_at },
  { "gelu", gelu },
  { "swish", yk_silu_at },
  { "silu", yk_silu_at },
  { "softplus", yk_softplus_at },
  { "softsign", softsign },
  { "tanh", yk_tanh_at },
  { "sigmoid", yk_sigmoid_at },
  { "hard_sigmoid", hard_sigmoid },
  { "hard_sigmoid_6", hard_sigmoid_6 },
  { "exponential", yk_exp_at },
  { "softmax", yk_softmax_at },
  { "log_softmax", yk_log_softmax_at },
  { "leaky_relu", leaky },
};

static activation_fn find(const char *name) {
  for (size_t i = 0; i < sizeof ACTIVATIONS / sizeof ACTIVATIONS[0]; i++)
    if (strcmp(ACTIVATIONS[i].name, name) == 0) return ACTIVATIONS[i].fn;
  return NULL;
}

bool yk__activation_known(const char *name) { return find(name) != NULL; }

yk_value yk__activation(const char *where, yk_graph *g, const char *name, yk_value x) {
  activation_fn fn = find(name);
  return fn != NULL ? fn(where, g, x) : (yk_value){ 0 };
}
