/*
 * train.h - optimizers, moving averages, schedules: the nodes that change variables.
 *
 * Everything here only builds nodes; a session runs them. The order is
 * TensorFlow's: compute gradients, do what you like with them, apply them.
 */
#ifndef YK_TRAIN_H
#define YK_TRAIN_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The optimizers; their formulae are below. */
typedef enum yk_optimizer_kind { YK_OPT_SGD, YK_OPT_MOMENTUM } yk_optimizer_kind;

/*
 * SGD: w -= lr*g. Momentum: a = m*a + g; w -= lr*a; Nesterov: w -= lr*g + lr*m*a. (TensorFlow's forms: the rate multiplies
 * when applied.) learning_rate is a scalar value of f32 (or {0}: use `rate`), so that it can be fed or follow a schedule.
 */
typedef struct yk_optimizer {
  yk_optimizer_kind kind;
  yk_value learning_rate;
  double   rate, momentum;
  bool     nesterov;
} yk_optimizer;
#define YK_SGD(lr)         ((yk_optimizer){ .kind = YK_OPT_SGD, .rate = (lr) })
#define YK_MOMENTUM(lr, m) ((yk_optimizer){ .kind = YK_OPT_MOMENTUM, .rate = (lr), .momentum = (m) })

typedef struct yk_gradient { yk_value grad; yk_variable *variable; } yk_gradient;   /* grad {0} = the loss does not depend on it */

/* Gradients of `loss` with respect to nvars variables (vars NULL: all trainable ones, in order; nvars is ignored then). Writes at most
 * `max` pairs; returns how many variables there are. No gradient at all is a sticky error naming variables and loss. */
size_t yk_compute_gradients_at(const char *where, yk_graph *g, yk_value loss, size_t nvars, yk_variable *const *vars,
                               yk_gradient *out, size_t max);
#define yk_compute_gradients(...) yk_compute_gradients_at(YK_HERE, __VA_ARGS__)

/* The sum over towers of each variable's gradients, on the current device: tower[t][i] belongs to one variable for all t. A tower
 * without a gradient adds nothing. With losses that are sums over examples divided by the global batch, this is the exact gradient
 * of the global mean, whatever the shares. After an error the sums are all {0}. */
void yk_sum_gradients_at(const char *where, yk_graph *g, size_t ntowers, const yk_gradient *const *tower, size_t nvars, yk_gradient *out);
#define yk_sum_gradients(...) yk_sum_gradients_at(YK_HERE, __VA_ARGS__)

/* One op that updates all variables, each on its home device, then adds 1 to global_step (NULL = none). Pairs without a gradient are
 * skipped; none at all is a sticky error. Slots are variables "<var>/Momentum" beside their variable; building twice shares them. */
yk_value yk_apply_gradients_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *grads,
                               yk_variable *global_step);
#define yk_apply_gradients(...) yk_apply_gradients_at(YK_HERE, __VA_ARGS__)
/* compute + apply over all trainable variables. */
yk_value yk_minimize_at(const char *where, yk_graph *g, const yk_optimizer *opt, yk_value loss, yk_variable *global_step);
#define yk_minimize(...) yk_minimize_at(YK_HERE, __VA_ARGS__)

/* The graph's global step: i64 scalar variable "global_step", made on first use, on /cpu:0, in YK_GLOBAL_STEP. */
yk_variable *yk_global_step_at(const char *where, yk_graph *g);
#define yk_global_step(g) yk_global_step_at(YK_HERE, g)

/* rate * factor^(step/decay_steps), the exponent floored if staircase; f32 scalar. decay_steps > 0. */
yk_value yk_exponential_decay_at(const char *where, yk_graph *g, double rate, yk_variable *step, int64_t decay_steps, double factor,
                                 bool staircase);
#define yk_exponential_decay(...) yk_exponential_decay_at(YK_HERE, __VA_ARGS__)
/* values[i] for boundaries[i-1] < step <= boundaries[i]; nvalues = nboundaries + 1; f32 scalar. */
yk_value yk_piecewise_constant_at(const char *where, yk_graph *g, yk_variable *step, size_t nboundaries, const int64_t *boundaries,
                                  const double *values);
#define yk_piecewise_constant(...) yk_piecewise_constant_at(YK_HERE, __VA_ARGS__)

/* Moving averages of n variables (vars NULL: all trainable): shadow -= (1-d)*(shadow - v), d = min(decay, (1+step)/(10+step)) if step is
 * given. Shadows "<var>/ExponentialMovingAverage" start at the variable's initial value. Returns one op; run it after the update. */
yk_value yk_moving_average_at(const char *where, yk_graph *g, double decay, yk_variable *step, size_t n, yk_variable *const *vars);
#define yk_moving_average(...) yk_moving_average_at(YK_HERE, __VA_ARGS__)
/* The shadow of v, or v itself if it has none: what an evaluation restores. */
yk_variable *yk_moving_average_of(yk_graph *g, yk_variable *v);

#ifdef __cplusplus
}
#endif
#endif
