/*
 * recipes.c - --optimizer NAME[:key=value,...] and --schedule NAME[:key=value,...].
 *
 * Names, keys and their meaning are two tables each: the parser, the error messages and the help read the same lines. The
 * library checks the numbers once more when the graph is built; what it says then names the number too.
 */
#include <stdio.h>
#include <string.h>
#include "cli/keyed.h"

/* ---- what there is ----------------------------------------------------------------------------------------------- */

enum { SGD, MOMENTUM, NESTEROV, ADAM, ADAMW, LAMB, RMSPROP, ADAGRAD, ADADELTA, FTRL, KERAS_SGD, KERAS_RMSPROP, KERAS_ADAGRAD, NOPTIMIZERS };
#define BIT(x) (1u << (x))

static const yk_keyed_name optimizers[] = {
  [SGD] = { "sgd", "gradient descent" }, [MOMENTUM] = { "momentum", "with a velocity" },
  [NESTEROV] = { "nesterov", "momentum that looks ahead" }, [ADAM] = { "adam", "first and second moments" },
  [ADAMW] = { "adamw", "Adam with decoupled weight decay" }, [LAMB] = { "lamb", "AdamW in steps relative to each variable's norm" },
  [RMSPROP] = { "rmsprop", "over the root mean square" }, [ADAGRAD] = { "adagrad", "over the root of the sum of squares" },
  [ADADELTA] = { "adadelta", "in units of past steps" }, [FTRL] = { "ftrl", "follow the regularized leader" },
  [KERAS_SGD] = { "keras_sgd", "Keras's momentum: the rate is inside the velocity" },
  [KERAS_RMSPROP] = { "keras_rmsprop", "Keras's: epsilon outside the root" },
  [KERAS_ADAGRAD] = { "keras_adagrad", "Keras's: starts at 0, epsilon outside the root" },
};

static yk_optimizer optimizer_at(int i) {
  switch (i) {
    case SGD: return YK_SGD(0.01);
    case MOMENTUM: return YK_MOMENTUM(0.01, 0.9);
    case NESTEROV: return YK_NESTEROV(0.01, 0.9);
    case ADAM: return YK_ADAM(0.001);
    case ADAMW: return YK_ADAMW(0.001, 0.01);
    case LAMB: return YK_LAMB(0.001, 0.01);
    case RMSPROP: return YK_RMSPROP(0.001);
    case ADAGRAD: return YK_ADAGRAD(0.01);
    case ADADELTA: return YK_ADADELTA(1.0);
    case FTRL: return YK_FTRL(0.05);
    case KERAS_SGD: return YK_KERAS_SGD(0.01, 0.9);
    case KERAS_RMSPROP: return YK_KERAS_RMSPROP(0.001);
    default: return YK_KERAS_ADAGRAD(0.01);
  }
}

#define ADAMS (BIT(ADAM) | BIT(ADAMW) | BIT(LAMB))
#define RMS (BIT(RMSPROP) | BIT(KERAS_RMSPROP))
#define FIELD(f) offsetof(yk_optimizer, f)
static const yk_key optimizer_keys[] = {
  { "lr", "learning rate that the schedule starts from", YK__KEY_REAL, FIELD(rate), UINT32_MAX },
  { "momentum", "of the velocity", YK__KEY_REAL, FIELD(momentum), BIT(MOMENTUM) | BIT(NESTEROV) | BIT(KERAS_SGD) | RMS },
  { "nesterov", "1 = look ahead", YK__KEY_FLAG, FIELD(nesterov), BIT(KERAS_SGD) | BIT(ADAM) | BIT(ADAMW) },
  { "beta1", "decay of the first moment", YK__KEY_REAL, FIELD(beta1), ADAMS },
  { "beta2", "decay of the second moment", YK__KEY_REAL, FIELD(beta2), ADAMS },
  { "weight_decay", "times the rate, or the direction's share", YK__KEY_REAL, FIELD(weight_decay), BIT(ADAMW) | BIT(LAMB) },
  { "rho", "decay of the mean square", YK__KEY_REAL, FIELD(rho), RMS | BIT(ADADELTA) },
  { "centered", "1 = by the variance", YK__KEY_FLAG, FIELD(centered), BIT(RMSPROP) },
  { "epsilon", "keeps divisors from 0", YK__KEY_REAL, FIELD(epsilon), ADAMS | RMS | BIT(ADADELTA) | BIT(KERAS_ADAGRAD) },
  { "start", "of the sum of squares", YK__KEY_REAL, FIELD(initial_accumulator), BIT(ADAGRAD) | BIT(FTRL) },
  { "power", "of the rate's decay, 0 or less", YK__KEY_REAL, FIELD(lr_power), BIT(FTRL) },
  { "l1", "gives zeros", YK__KEY_REAL, FIELD(l1), BIT(FTRL) }, { "l2", "pulls towards 0", YK__KEY_REAL, FIELD(l2), BIT(FTRL) },
  { "shrinkage", "l2 on the gradient", YK__KEY_REAL, FIELD(l2_shrinkage), BIT(FTRL) }, { 0 },
};
#undef FIELD

static const yk_keyed_name schedules[] = {
  [YK_SCHEDULE_CONSTANT] = { "constant", "the rate as it is" },
  [YK_SCHEDULE_EXPONENTIAL] = { "exponential", "rate * factor^(step/steps)" },
  [YK_SCHEDULE_NATURAL_EXP] = { "natural_exp", "rate * exp(-factor*step/steps)" },
  [YK_SCHEDULE_INVERSE_TIME] = { "inverse_time", "rate / (1 + factor*step/steps)" },
  [YK_SCHEDULE_PIECEWISE] = { "piecewise", "rates one after the other" },
  [YK_SCHEDULE_POLYNOMIAL] = { "polynomial", "down to `end` by a power" },
  [YK_SCHEDULE_COSINE] = { "cosine", "down to alpha*rate by half a cosine" },
  [YK_SCHEDULE_RESTARTS] = { "restarts", "cosines of growing length" },
  [YK_SCHEDULE_ONE_CYCLE] = { "one_cycle", "up to the rate, then down" },
};
#define OF(kind) BIT(YK_SCHEDULE_##kind)
#define DECAYS (OF(EXPONENTIAL) | OF(NATURAL_EXP) | OF(INVERSE_TIME))
#define WARM (UINT32_MAX & ~OF(ONE_CYCLE))
#define FIELD(f) offsetof(yk_recipe, f)
#define OWN(f) offsetof(yk_recipe, schedule.f)
static const yk_key schedule_keys[] = {
  { "steps", "length; usually the run's", YK__KEY_WHOLE, OWN(steps), UINT32_MAX & ~(OF(CONSTANT) | OF(PIECEWISE)) },
  { "factor", "usually 0.1; 1 for the last two", YK__KEY_REAL, OWN(factor), DECAYS },
  { "staircase", "1 = in whole stairs", YK__KEY_FLAG, OWN(staircase), DECAYS },
  { "at", "steps after which the next rate holds, as 100/200", YK__KEY_WHOLES, FIELD(boundaries), OF(PIECEWISE) },
  { "rates", "one more than those, as 0.1/0.01/0.001", YK__KEY_REALS, FIELD(rates), OF(PIECEWISE) },
  { "end", "last rate", YK__KEY_REAL, OWN(end), OF(POLYNOMIAL) },
  { "power", "1 = a line", YK__KEY_REAL, OWN(power), OF(POLYNOMIAL) },
  { "cycle", "1 = begin again, longer", YK__KEY_FLAG, OWN(cycle), OF(POLYNOMIAL) },
  { "alpha", "share of the rate that stays", YK__KEY_REAL, OWN(alpha), OF(COSINE) | OF(RESTARTS) },
  { "t_mul", "each period is so much longer", YK__KEY_REAL, OWN(t_mul), OF(RESTARTS) },
  { "m_mul", "and starts at so much of the rate", YK__KEY_REAL, OWN(m_mul), OF(RESTARTS) },
  { "peak", "share of the steps before the top", YK__KEY_REAL, OWN(peak), OF(ONE_CYCLE) },
  { "start_divide", "first rate = rate / this", YK__KEY_REAL, OWN(start_divide), OF(ONE_CYCLE) },
  { "end_divide", "last rate = first rate / this", YK__KEY_REAL, OWN(end_divide), OF(ONE_CYCLE) },
  { "warm_up", "steps of a line up to the rate", YK__KEY_WHOLE, OWN(warm_up), WARM },
  { "warm_from", "where the line begins", YK__KEY_REAL, OWN(warm_from), WARM }, { 0 },
};

static yk_schedule schedule_at(int i) {
  switch (i) {
    case YK_SCHEDULE_EXPONENTIAL: return YK_EXPONENTIAL(0, 0, 0.1);
    case YK_SCHEDULE_NATURAL_EXP: return YK_NATURAL_EXP(0, 0, 1);
    case YK_SCHEDULE_INVERSE_TIME: return YK_INVERSE_TIME(0, 0, 1);
    case YK_SCHEDULE_PIECEWISE: return YK_PIECEWISE(0, NULL, NULL);
    case YK_SCHEDULE_POLYNOMIAL: return YK_POLYNOMIAL(0, 0);
    case YK_SCHEDULE_COSINE: return YK_COSINE(0, 0);
    case YK_SCHEDULE_RESTARTS: return YK_COSINE_RESTARTS(0, 0);
    case YK_SCHEDULE_ONE_CYCLE: return YK_ONE_CYCLE(0, 0);
    default: return YK_CONSTANT_RATE(0);
  }
}

static const yk_keyed optimizer_words = { "--optimizer", "optimizer", optimizers, NOPTIMIZERS, optimizer_keys };
static const yk_keyed schedule_words = { "--schedule", "schedule", schedules, YK_NSCHEDULES, schedule_keys };

void yk__help_recipes(void) {
  printf("\noptimizers, NAME[:key=value,...]:\n");
  yk__keyed_help(&optimizer_words);
  printf("\nschedules, NAME[:key=value,...]:\n");
  yk__keyed_help(&schedule_words);
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static int parse_optimizer(const yk_cli *c, yk_recipe *out) {
  int which = 0, status = yk__keyed_find(&optimizer_words, c->optimizer, &which);
  if (status != 0) return status;
  out->optimizer = optimizer_at(which);
  out->has_optimizer = true;
  if (c->lr >= 0 && strstr(c->optimizer, "lr=") != NULL)
    return yk__die(YK__EXIT_USAGE, "--optimizer and --lr both give a learning rate");
  return yk__keyed_set(&optimizer_words, which, c->optimizer, &out->optimizer);
}

static int parse_schedule(const yk_cli *c, yk_recipe *out) {
  int which = 0, status = yk__keyed_find(&schedule_words, c->schedule, &which);
  if (status != 0) return status;
  out->schedule = schedule_at(which);
  out->has_schedule = true;
  status = yk__keyed_set(&schedule_words, which, c->schedule, out);
  if (status != 0 || which != YK_SCHEDULE_PIECEWISE) return status;
  if (out->rates.n != out->boundaries.n + 1)
    return yk__die(YK__EXIT_USAGE, "--schedule: piecewise has %zu rates for %zu boundaries; expected one more, as at=100,rates=0.1/0.01",
                   out->rates.n, out->boundaries.n);
  out->schedule.nboundaries = out->boundaries.n;
  return 0;
}

int yk__recipe_parse(const yk_cli *c, yk_recipe *out) {
  int status = 0;
  *out = (yk_recipe){ 0 };
  if (c->optimizer != NULL) status = parse_optimizer(c, out);
  if (status == 0 && c->schedule != NULL) status = parse_schedule(c, out);
  return status;
}

yk_schedule yk__recipe_schedule(const yk_recipe *r, double rate, int64_t steps) {
  yk_schedule s = r->schedule;
  s.rate = rate;
  s.boundaries = r->boundaries.whole;
  s.values = r->rates.real;
  if (s.steps == 0) s.steps = steps > s.warm_up ? steps - s.warm_up : 1;
  return s;
}
