/*
 * train.h - optimizers, gradients, clipping, schedules, moving averages: the nodes that change variables.
 *
 * Everything here only builds nodes; a session runs them. The order is
 * TensorFlow's: compute gradients, do what you like with them, apply them.
 * docs/training.md shows each of them in use.
 */
#ifndef YK_TRAIN_H
#define YK_TRAIN_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers ------------------------------------------------------------------------------------------------ */

/* Their formulae are below, those of the operations that they make in op_attrs.h. */
typedef enum yk_optimizer_kind { YK_OPT_SGD, YK_OPT_MOMENTUM, YK_OPT_ADAM, YK_OPT_ADAMW, YK_OPT_LAMB, YK_OPT_RMSPROP, YK_OPT_ADAGRAD,
                                 YK_OPT_ADADELTA, YK_OPT_FTRL, YK_NOPTIMIZERS } yk_optimizer_kind;

/*
 * One optimizer and its numbers, which are taken as they are: start from a macro below, which has the usual ones, and change
 * what you like: yk_optimizer o = YK_ADAM(1e-3); o.beta1 = 0.5. g is the gradient, w the variable, t the step from 1.
 *
 * SGD       w -= lr*g
 * Momentum  a = m*a + g; w -= lr*a; Nesterov: w -= lr*g + lr*m*a.      Keras: a = m*a - lr*g; w += a; Nesterov: w += m*a - lr*g
 * Adam      m += (1-beta1)*(g-m); v += (1-beta2)*(g^2-v); w -= lr*sqrt(1-beta2^t)/(1-beta1^t) * m/(sqrt(v)+epsilon)
 * AdamW     the same, and w -= lr*weight_decay*w with the w from before the step
 * LAMB      m, v as Adam; r = m/(1-beta1^t) / (sqrt(v/(1-beta2^t))+epsilon) + weight_decay*w; w -= lr*|w|/|r|*r, a variable at a time
 * RMSProp   s = rho*s + (1-rho)*g^2; b = m*b + lr*g/sqrt(s+epsilon); w -= b. centered: c = rho*c + (1-rho)*g and sqrt(s-c^2+epsilon).
 *           Keras: sqrt(s)+epsilon
 * Adagrad   s += g^2; w -= lr*g/sqrt(s).                               Keras: lr*g/(sqrt(s)+epsilon)
 * Adadelta  s = rho*s + (1-rho)*g^2; u = g*sqrt(d+epsilon)/sqrt(s+epsilon); w -= lr*u; d = rho*d + (1-rho)*u^2
 * Ftrl      n' = n+g^2; z += g + 2*l2_shrinkage*w - (n'^-p - n^-p)/lr*w; w = |z| > l1 ? (l1*sign(z)-z)/(n'^-p/lr + 2*l2) : 0; p = lr_power
 *
 * s of RMSProp and Adagrad and n of Ftrl start at initial_accumulator, all other slots at 0. Keras's learning-rate `decay` is
 * YK_INVERSE_TIME(rate, 1, decay).
 */
typedef struct yk_optimizer {
  yk_optimizer_kind kind;
  yk_value learning_rate;         /* f32 scalar, so that it can be fed or follow a schedule; {0}: `rate` */
  double   rate, momentum;
  bool     nesterov;              /* Momentum, Adam, AdamW */
  bool     keras, centered;
  double   beta1, beta2, rho, epsilon, weight_decay, initial_accumulator, lr_power, l1, l2, l2_shrinkage;
  const char *scope;              /* copied into names. Optimizers of other scopes have slots of their own: "<var>/<scope>/Adam" and
                                     "<scope>/beta1_power". NULL: "<var>/Adam", "beta1_power" */
} yk_optimizer;
#define YK_SGD(lr)            ((yk_optimizer){ .kind = YK_OPT_SGD, .rate = (lr) })
#define YK_MOMENTUM(lr, m)    ((yk_optimizer){ .kind = YK_OPT_MOMENTUM, .rate = (lr), .momentum = (m) })
#define YK_NESTEROV(lr, m)    ((yk_optimizer){ .kind = YK_OPT_MOMENTUM, .rate = (lr), .momentum = (m), .nesterov = true })
#define YK_ADAM(lr)           ((yk_optimizer){ .kind = YK_OPT_ADAM, .rate = (lr), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8 })
#define YK_ADAMW(lr, decay)   ((yk_optimizer){ .kind = YK_OPT_ADAMW, .rate = (lr), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, \
                                               .weight_decay = (decay) })
#define YK_LAMB(lr, decay)    ((yk_optimizer){ .kind = YK_OPT_LAMB, .rate = (lr), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, \
                                               .weight_decay = (decay) })
#define YK_RMSPROP(lr)        ((yk_optimizer){ .kind = YK_OPT_RMSPROP, .rate = (lr), .rho = 0.9, .epsilon = 1e-10, .initial_accumulator = 1 })
#define YK_ADAGRAD(lr)        ((yk_optimizer){ .kind = YK_OPT_ADAGRAD, .rate = (lr), .initial_accumulator = 0.1 })
#define YK_ADADELTA(lr)       ((yk_optimizer){ .kind = YK_OPT_ADADELTA, .rate = (lr), .rho = 0.95, .epsilon = 1e-8 })
#define YK_FTRL(lr)           ((yk_optimizer){ .kind = YK_OPT_FTRL, .rate = (lr), .lr_power = -0.5, .initial_accumulator = 0.1 })
/* Keras's forms, with its epsilon of 1e-7. */
#define YK_KERAS_SGD(lr, m)   ((yk_optimizer){ .kind = YK_OPT_MOMENTUM, .rate = (lr), .momentum = (m), .keras = true })
#define YK_KERAS_ADAM(lr)     ((yk_optimizer){ .kind = YK_OPT_ADAM, .rate = (lr), .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7 })
#define YK_KERAS_RMSPROP(lr)  ((yk_optimizer){ .kind = YK_OPT_RMSPROP, .rate = (lr), .rho = 0.9, .epsilon = 1e-7, .keras = true })
#define YK_KERAS_ADAGRAD(lr)  ((yk_optimizer){ .kind = YK_OPT_ADAGRAD, .rate = (lr), .epsilon = 1e-7, .keras = true })
#define YK_KERAS_ADADELTA(lr) ((yk_optimizer){ .kind = YK_OPT_ADADELTA, .rate = (lr), .rho = 0.95, .epsilon = 1e-7, .keras = true })

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct yk_gradient { yk_value grad; yk_variable *variable; } yk_gradient;   /* grad {0} = the loss does not depend on it */

/* Gradients of `loss` with respect to nvars variables (vars NULL: all trainable ones, in order; nvars is ignored then). Writes at most
 * `max` pairs; returns how many variables there are. No gradient at all is a sticky error naming variables and loss. The gradient of
 * a variable that is only read by yk_gather() along axis 0 is sparse: see yk_gradient_rows(). */
size_t yk_compute_gradients_at(const char *where, yk_graph *g, yk_value loss, size_t nvars, yk_variable *const *vars,
                               yk_gradient *out, size_t max);
#define yk_compute_gradients(...) yk_compute_gradients_at(YK_HERE, __VA_ARGS__)

/*
 * Is this gradient sparse: values [..., a row's dims] that belong to rows i32|i64 [...] of the variable, the other rows being zero?
 * It is a value like any other, [rows, a row's dims], and fetching or computing with it makes it dense. As long as nothing does, the
 * functions below keep it sparse, and SGD, Momentum, RMSProp, Adagrad, Adadelta and Ftrl in TensorFlow's form change the rows that are
 * named and their slots only, the values of a row that is named twice being added first. Adam, AdamW, LAMB and Keras's forms let all
 * slots decay and all rows move: they make it dense. Outputs are written only if it is; either may be NULL.
 */
bool yk_gradient_rows(const yk_graph *g, yk_value grad, yk_value *values, yk_value *rows);

/* The sum over towers of each variable's gradients, on the current device: tower[t][i] belongs to one variable for all t. A tower
 * without a gradient adds nothing. With losses that are sums over examples divided by the global batch, this is the exact gradient
 * of the global mean, whatever the shares. After an error the sums are all {0}. */
void yk_sum_gradients_at(const char *where, yk_graph *g, size_t ntowers, const yk_gradient *const *tower, size_t nvars, yk_gradient *out);
#define yk_sum_gradients(...) yk_sum_gradients_at(YK_HERE, __VA_ARGS__)

/*
 * Clipping of n gradients in place; pairs without one stay so, and after an error all are {0}. Of several towers: clip the sum.
 * by_value: to [lo, hi], element by element. by_norm: each by itself, g*norm/max(|g|, norm). by_global_norm: all by one factor,
 * norm/max(N, norm) with N the root of the sum of all squares; if N is not finite, all become NaN. `norm` is > 0. yk_global_norm and
 * yk_clip_by_global_norm return N, an f32 scalar (f64 if a gradient is). Of a sparse gradient the norm is that of its values,
 * before those of one row are added, as in TensorFlow.
 */
void yk_clip_by_value_at(const char *where, yk_graph *g, double lo, double hi, size_t n, yk_gradient *grads);
void yk_clip_by_norm_at(const char *where, yk_graph *g, double norm, size_t n, yk_gradient *grads);
yk_value yk_clip_by_global_norm_at(const char *where, yk_graph *g, double norm, size_t n, yk_gradient *grads);
yk_value yk_global_norm_at(const char *where, yk_graph *g, size_t n, const yk_gradient *grads);
#define yk_clip_by_value(...) yk_clip_by_value_at(YK_HERE, __VA_ARGS__)
#define yk_clip_by_norm(...) yk_clip_by_norm_at(YK_HERE, __VA_ARGS__)
#define yk_clip_by_global_norm(...) yk_clip_by_global_norm_at(YK_HERE, __VA_ARGS__)
#define yk_global_norm(...) yk_global_norm_at(YK_HERE, __VA_ARGS__)

/*
 * One op that updates all variables, each on its home device, then adds 1 to global_step (NULL = none). Pairs without a gradient are
 * skipped; none at all is a sticky error, and so is a number of `opt` that makes no sense.
 * Slots are variables "<var>/Momentum", "<var>/Adam" and "<var>/Adam_1", ... (TensorFlow's names) beside their variable; building
 * twice shares them. Adam, AdamW and LAMB keep beta1^t and beta2^t in "beta1_power" and "beta2_power", beside the first variable by
 * name; another set of variables gets "beta1_power_1". All of these are in the collection YK_OPTIMIZER_VARIABLES.
 */
#define YK_OPTIMIZER_VARIABLES "optimizer_variables"
yk_value yk_apply_gradients_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *grads,
                               yk_variable *global_step);
#define yk_apply_gradients(...) yk_apply_gradients_at(YK_HERE, __VA_ARGS__)
/* compute + apply over all trainable variables. */
yk_value yk_minimize_at(const char *where, yk_graph *g, const yk_optimizer *opt, yk_value loss, yk_variable *global_step);
#define yk_minimize(...) yk_minimize_at(YK_HERE, __VA_ARGS__)

/* ---- steps that go wrong ------------------------------------------------------------------------------------------- */

/*
 * Bool scalar: true where none of nx values (a loss, a learning rate) and none of n gradients holds a NaN or, unless nan_only, an
 * infinity. Each is looked at where it is; pairs without a gradient are skipped, of sparse ones the values count. As the guard of an
 * update it keeps a step that went wrong from changing anything:
 *
 *   yk_value ok = yk_all_good(g, 1, &loss, n, grads, false);
 *   YK_GUARD(g, ok) { train = yk_apply_gradients(g, &adam, n, grads, step); }
 *
 * Fetch it with the loss; where it is false, yk_step_examine() tells which operation did it.
 */
yk_value yk_all_good_at(const char *where, yk_graph *g, size_t nx, const yk_value *x, size_t n, const yk_gradient *grads, bool nan_only);
#define yk_all_good(...) yk_all_good_at(YK_HERE, __VA_ARGS__)

/* ---- loss scaling ------------------------------------------------------------------------------------------------------ */

/*
 * Gradients worked out in f16 vanish below 6e-8 and overflow above 65504. A loss scale keeps them between: with variables in f32, cast
 * where they are used,
 *
 *   yk_loss_scale_new(g, 0, 0, &s);
 *   n = yk_compute_gradients(g, yk_scale_loss(g, &s, loss), 0, NULL, grads, max);
 *   yk_unscale_gradients(g, &s, n, grads);
 *   ok = yk_all_good(g, 0, NULL, n, grads, false);
 *   YK_GUARD(g, ok) { train = yk_apply_gradients(g, &sgd, n, grads, step); }
 *   both = yk_group(g, 2, (yk_value[]){ train, yk_loss_scale_update(g, &s, ok) });
 *
 * A step that overflowed changes nothing but the scale, which it halves; `every` good steps in a row double it (PyTorch's GradScaler).
 * All three are variables, so that checkpoints have them: "loss_scale" f32, "loss_scale/good_steps" and "loss_scale/skipped" i64, in the
 * collection YK_OPTIMIZER_VARIABLES.
 */
typedef struct yk_loss_scale { yk_variable *scale, *good_steps, *skipped; int64_t every; } yk_loss_scale;
/* start 0 = 2^15, every 0 = 2000. *out is all zero after a sticky error. */
void yk_loss_scale_new_at(const char *where, yk_graph *g, double start, int64_t every, yk_loss_scale *out);
yk_value yk_scale_loss_at(const char *where, yk_graph *g, const yk_loss_scale *s, yk_value loss);
/* In place, each where it is; pairs without a gradient stay so, sparse ones stay sparse. After an error all are {0}. */
void yk_unscale_gradients_at(const char *where, yk_graph *g, const yk_loss_scale *s, size_t n, yk_gradient *grads);
/* ok: bool scalar, was the step good? Returns the op; run it in the same step as the update, and build it outside of the update's
 * guard, under which nothing would change after a bad step. */
yk_value yk_loss_scale_update_at(const char *where, yk_graph *g, const yk_loss_scale *s, yk_value ok);
#define yk_loss_scale_new(...) yk_loss_scale_new_at(YK_HERE, __VA_ARGS__)
#define yk_scale_loss(...) yk_scale_loss_at(YK_HERE, __VA_ARGS__)
#define yk_unscale_gradients(...) yk_unscale_gradients_at(YK_HERE, __VA_ARGS__)
#define yk_loss_scale_update(...) yk_loss_scale_update_at(YK_HERE, __VA_ARGS__)

/* ---- accumulation ------------------------------------------------------------------------------------------------ */

/*
 * One update from the mean gradient of `every` runs. Returns the op that adds this run's gradients to "<var>/Accumulated" beside each
 * variable; mean[n] are (what is accumulated + this run's)/every, to be clipped and handed to yk_apply_accumulated(), which updates
 * and then empties the accumulators. A round is every-1 runs of the first op and one of the second; yk_round_run() counts. Gradients
 * become dense. After an error mean[] is {0}.
 */
yk_value yk_accumulate_gradients_at(const char *where, yk_graph *g, int64_t every, size_t n, const yk_gradient *grads, yk_gradient *mean);
yk_value yk_apply_accumulated_at(const char *where, yk_graph *g, const yk_optimizer *opt, size_t n, const yk_gradient *mean,
                                 yk_variable *global_step);
#define yk_accumulate_gradients(...) yk_accumulate_gradients_at(YK_HERE, __VA_ARGS__)
#define yk_apply_accumulated(...) yk_apply_accumulated_at(YK_HERE, __VA_ARGS__)

/* Two prepared steps of the same feeds and fetches: one that accumulates, one that applies. `done` counts the runs of this round;
 * start at 0. A round that a checkpoint interrupts goes on if `done` is restored with the accumulators. */
typedef struct yk_round { yk_step *accumulate, *apply; int64_t every, done; } yk_round;
/* Run the next one of the round, as yk_step_run(); *done is counted only if it succeeds. EINVAL: a round of fewer than 1. */
yk_code yk_round_run(yk_round *round, const yk_tensor *const *feeds, const yk_tensor *const **out) YK_CHECKED;

/* ---- schedules ----------------------------------------------------------------------------------------------------- */

/* The graph's global step: i64 scalar variable "global_step", made on first use, on /cpu:0, in YK_GLOBAL_STEP. */
yk_variable *yk_global_step_at(const char *where, yk_graph *g);
#define yk_global_step(g) yk_global_step_at(YK_HERE, g)

/* The schedules; their formulae are below. */
typedef enum yk_schedule_kind { YK_SCHEDULE_CONSTANT, YK_SCHEDULE_EXPONENTIAL, YK_SCHEDULE_NATURAL_EXP, YK_SCHEDULE_INVERSE_TIME,
                                YK_SCHEDULE_PIECEWISE, YK_SCHEDULE_POLYNOMIAL, YK_SCHEDULE_COSINE, YK_SCHEDULE_RESTARTS,
                                YK_SCHEDULE_ONE_CYCLE, YK_NSCHEDULES } yk_schedule_kind;

/*
 * A learning rate as a function of the step s; d = steps. Start from a macro below and change what you like.
 *
 * constant      rate
 * exponential   rate * factor^(s/d)                  | TensorFlow's exponential_decay, natural_exp_decay, inverse_time_decay;
 * natural_exp   rate * exp(-factor*s/d)              | with `staircase` s/d is floored
 * inverse_time  rate / (1 + factor*s/d)              |
 * piecewise     values[i] for boundaries[i-1] < s <= boundaries[i]; nboundaries + 1 values          (piecewise_constant)
 * polynomial    (rate-end)*(1 - min(s,d)/d)^power + end; with `cycle` d becomes d*max(1, ceil(s/d))  (polynomial_decay)
 * cosine        rate*((1-alpha)*(1+cos(pi*min(s,d)/d))/2 + alpha)                                   (cosine_decay)
 * restarts      the cosine again and again: period i takes d*t_mul^i steps and starts at rate*m_mul^i (cosine_decay_restarts)
 * one_cycle     rate is the highest, d the length of the run: a half cosine from rate/start_divide up to rate at step peak*d-1, then
 *               down to rate/start_divide/end_divide at step d-1, where it stays                    (PyTorch's OneCycleLR)
 *
 * warm_up > 0: for s < warm_up, warm_from + (r - warm_from)*s/warm_up, where r is the schedule's first rate; afterwards the schedule
 * with s - warm_up in place of s (Keras's CosineDecay does it so).
 */
typedef struct yk_schedule {
  yk_schedule_kind kind;
  double  rate;
  int64_t steps;
  double  factor;
  bool    staircase, cycle;
  double  end, power, alpha, t_mul, m_mul, peak, start_divide, end_divide;
  size_t  nboundaries; const int64_t *boundaries; const double *values;   /* [nboundaries], [nboundaries + 1] */
  int64_t warm_up;
  double  warm_from;
} yk_schedule;
#define YK_CONSTANT_RATE(lr)            ((yk_schedule){ .kind = YK_SCHEDULE_CONSTANT, .rate = (lr) })
#define YK_EXPONENTIAL(lr, d, r)        ((yk_schedule){ .kind = YK_SCHEDULE_EXPONENTIAL, .rate = (lr), .steps = (d), .factor = (r) })
#define YK_NATURAL_EXP(lr, d, r)        ((yk_schedule){ .kind = YK_SCHEDULE_NATURAL_EXP, .rate = (lr), .steps = (d), .factor = (r) })
#define YK_INVERSE_TIME(lr, d, r)       ((yk_schedule){ .kind = YK_SCHEDULE_INVERSE_TIME, .rate = (lr), .steps = (d), .factor = (r) })
#define YK_PIECEWISE(n, at, rates)      ((yk_schedule){ .kind = YK_SCHEDULE_PIECEWISE, .nboundaries = (n), .boundaries = (at), .values = (rates) })
#define YK_POLYNOMIAL(lr, d)            ((yk_schedule){ .kind = YK_SCHEDULE_POLYNOMIAL, .rate = (lr), .steps = (d), .end = 1e-4, .power = 1 })
#define YK_COSINE(lr, d)                ((yk_schedule){ .kind = YK_SCHEDULE_COSINE, .rate = (lr), .steps = (d) })
#define YK_COSINE_RESTARTS(lr, d)       ((yk_schedule){ .kind = YK_SCHEDULE_RESTARTS, .rate = (lr), .steps = (d), .t_mul = 2, .m_mul = 1 })
#define YK_ONE_CYCLE(lr, d)             ((yk_schedule){ .kind = YK_SCHEDULE_ONE_CYCLE, .rate = (lr), .steps = (d), .peak = 0.3, \
                                                        .start_divide = 25, .end_divide = 1e4 })

/* The rate of the step: f32 scalar, worked out in f64 when the update runs, so a resumed run continues where it was. Sticky errors
 * name the number that makes no sense. The arrays are copied. */
yk_value yk_scheduled_rate_at(const char *where, yk_graph *g, const yk_schedule *schedule, yk_variable *step);
#define yk_scheduled_rate(...) yk_scheduled_rate_at(YK_HERE, __VA_ARGS__)

/* YK_EXPONENTIAL and YK_PIECEWISE as functions. */
yk_value yk_exponential_decay_at(const char *where, yk_graph *g, double rate, yk_variable *step, int64_t decay_steps, double factor,
                                 bool staircase);
#define yk_exponential_decay(...) yk_exponential_decay_at(YK_HERE, __VA_ARGS__)
yk_value yk_piecewise_constant_at(const char *where, yk_graph *g, yk_variable *step, size_t nboundaries, const int64_t *boundaries,
                                  const double *values);
#define yk_piecewise_constant(...) yk_piecewise_constant_at(YK_HERE, __VA_ARGS__)

/* ---- moving averages ------------------------------------------------------------------------------------------------- */

/* Moving averages of n variables (vars NULL: all trainable): shadow -= (1-d)*(shadow - v), d = min(decay, (1+step)/(10+step)) if step is
 * given (TensorFlow's num_updates). Shadows "<var>/ExponentialMovingAverage" start at the variable's initial value. Returns one op; run
 * it after the update. */
yk_value yk_moving_average_at(const char *where, yk_graph *g, double decay, yk_variable *step, size_t n, yk_variable *const *vars);
#define yk_moving_average(...) yk_moving_average_at(YK_HERE, __VA_ARGS__)
/* The shadow of v, or v itself if it has none: what an evaluation restores. */
yk_variable *yk_moving_average_of(yk_graph *g, yk_variable *v);
/* v follows a value: v -= (1-decay)*(v - x). zero_debias: as if v had started at nothing instead of its initial value, b -= (1-decay)*(b - x)
 * and v = b/(1 - decay^k) after k updates, with b in "<v>/biased" and k in "<v>/local_step". Returns the op. */
yk_value yk_assign_moving_average_at(const char *where, yk_graph *g, yk_variable *v, yk_value x, double decay, bool zero_debias);
#define yk_assign_moving_average(...) yk_assign_moving_average_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
