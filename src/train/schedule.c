/*
 * schedule.c - the global step, and learning rates as functions of it.
 *
 * A schedule is part of the graph: it reads the step when the update runs, so a
 * resumed run continues where it was. It is worked out in f64, which holds any
 * step, and rounded to f32 once.
 */
#include <math.h>
#include "train/train.h"

yk_variable *yk_global_step_at(const char *where, yk_graph *g) {
  static const char *const collections[] = { YK_GLOBAL_VARIABLES, YK_GLOBAL_STEP, NULL };
  yk_variable *v;
  yk_device_push_at(where, g, "/cpu:0");
  v = yk__root_variable(where, g, "global_step", YK_I64, YK_SCALAR, YK_ZEROS, collections);
  yk_device_pop_at(where, g);
  return v;
}

/* ---- arithmetic on f64 scalars of one graph ---------------------------------------------------------------------------- */

typedef struct maker { const char *where; yk_graph *g; } maker;
static yk_value num(maker m, double x) { return yk_scalar_at(m.where, m.g, YK_F64, x); }
static yk_value plus(maker m, yk_value a, yk_value b) { return yk_add_at(m.where, m.g, a, b); }
static yk_value minus(maker m, yk_value a, yk_value b) { return yk_sub_at(m.where, m.g, a, b); }
static yk_value times(maker m, yk_value a, yk_value b) { return yk_mul_at(m.where, m.g, a, b); }
static yk_value over(maker m, yk_value a, yk_value b) { return yk_div_at(m.where, m.g, a, b); }
static yk_value least(maker m, yk_value a, yk_value b) { return yk_minimum_at(m.where, m.g, a, b); }
static yk_value most(maker m, yk_value a, yk_value b) { return yk_maximum_at(m.where, m.g, a, b); }
static yk_value power(maker m, yk_value a, yk_value b) { return yk_pow_at(m.where, m.g, a, b); }
static yk_value down(maker m, yk_value a) { return yk_floor_at(m.where, m.g, a); }
static yk_value up(maker m, yk_value a) { return yk_ceil_at(m.where, m.g, a); }
static yk_value scaled(maker m, double k, yk_value a) { return times(m, num(m, k), a); }

/* (1 + cos(pi*x))/2: 1 at 0, 0 at 1. */
static yk_value half_cosine(maker m, yk_value x) {
  yk_value c = yk_cos_at(m.where, m.g, scaled(m, 3.14159265358979323846, x));
  return scaled(m, 0.5, plus(m, num(m, 1), c));
}

/* ---- the schedules ------------------------------------------------------------------------------------------------------- */

static yk_value passed(maker m, const yk_schedule *c, yk_value s) {
  yk_value x = over(m, s, num(m, (double)c->steps));
  return c->staircase ? down(m, x) : x;
}

static yk_value constant(maker m, const yk_schedule *c, yk_value s) {
  (void)s;
  return num(m, c->rate);
}

static yk_value exponential(maker m, const yk_schedule *c, yk_value s) {
  return scaled(m, c->rate, power(m, num(m, c->factor), passed(m, c, s)));
}

static yk_value natural_exp(maker m, const yk_schedule *c, yk_value s) {
  return scaled(m, c->rate, yk_exp_at(m.where, m.g, scaled(m, -c->factor, passed(m, c, s))));
}

static yk_value inverse_time(maker m, const yk_schedule *c, yk_value s) {
  return over(m, num(m, c->rate), plus(m, num(m, 1), scaled(m, c->factor, passed(m, c, s))));
}

static yk_value piecewise(maker m, const yk_schedule *c, yk_value s) {
  yk_value result = num(m, c->values[c->nboundaries]);
  for (size_t i = c->nboundaries; i-- > 0;) {
    yk_value before = yk_less_equal_at(m.where, m.g, s, num(m, (double)c->boundaries[i]));
    result = yk_where_at(m.where, m.g, before, num(m, c->values[i]), result);
  }
  return result;
}

static yk_value polynomial(maker m, const yk_schedule *c, yk_value s) {
  yk_value d = num(m, (double)c->steps), left;
  if (c->cycle) d = times(m, d, most(m, num(m, 1), up(m, over(m, s, d))));
  else s = least(m, s, d);
  left = minus(m, num(m, 1), over(m, s, d));
  return plus(m, scaled(m, c->rate - c->end, power(m, left, num(m, c->power))), num(m, c->end));
}

static yk_value cosine(maker m, const yk_schedule *c, yk_value s) {
  yk_value x = least(m, over(m, s, num(m, (double)c->steps)), num(m, 1));
  return plus(m, scaled(m, c->rate * (1 - c->alpha), half_cosine(m, x)), num(m, c->rate * c->alpha));
}

/* Period number i begins at d*(t_mul^i - 1)/(t_mul - 1). The step that begins a period must not fall to the one before it
 * by the rounding of the logarithm. */
static yk_value restarts(maker m, const yk_schedule *c, yk_value s) {
  yk_value x = over(m, s, num(m, (double)c->steps)), i, begun, length;
  if (c->t_mul == 1) {
    i = down(m, x);
    x = minus(m, x, i);
  } else {
    yk_value grown = yk_log_at(m.where, m.g, plus(m, num(m, 1), scaled(m, c->t_mul - 1, x)));
    i = down(m, plus(m, scaled(m, 1 / log(c->t_mul), grown), num(m, 1e-9)));
    length = power(m, num(m, c->t_mul), i);
    begun = scaled(m, 1 / (c->t_mul - 1), minus(m, length, num(m, 1)));
    x = over(m, minus(m, x, begun), length);
  }
  x = times(m, power(m, num(m, c->m_mul), i), half_cosine(m, x));
  return plus(m, scaled(m, c->rate * (1 - c->alpha), x), num(m, c->rate * c->alpha));
}

static yk_value one_cycle(maker m, const yk_schedule *c, yk_value s) {
  double top = c->peak * (double)c->steps - 1, last = (double)c->steps - 1, start = c->rate / c->start_divide, end = start / c->end_divide;
  yk_value rise = over(m, s, num(m, top)), fall = over(m, minus(m, least(m, s, num(m, last)), num(m, top)), num(m, last - top));
  yk_value rising = plus(m, num(m, c->rate), scaled(m, start - c->rate, half_cosine(m, rise)));
  yk_value falling = plus(m, num(m, end), scaled(m, c->rate - end, half_cosine(m, fall)));
  return yk_where_at(m.where, m.g, yk_less_equal_at(m.where, m.g, s, num(m, top)), rising, falling);
}

static const struct { const char *name; yk_value (*rate)(maker m, const yk_schedule *c, yk_value s); } kinds[YK_NSCHEDULES] = {
  [YK_SCHEDULE_CONSTANT] = { "constant", constant }, [YK_SCHEDULE_EXPONENTIAL] = { "exponential decay", exponential },
  [YK_SCHEDULE_NATURAL_EXP] = { "natural exponential decay", natural_exp }, [YK_SCHEDULE_INVERSE_TIME] = { "inverse time decay", inverse_time },
  [YK_SCHEDULE_PIECEWISE] = { "piecewise constant", piecewise }, [YK_SCHEDULE_POLYNOMIAL] = { "polynomial decay", polynomial },
  [YK_SCHEDULE_COSINE] = { "cosine decay", cosine }, [YK_SCHEDULE_RESTARTS] = { "cosine decay with restarts", restarts },
  [YK_SCHEDULE_ONE_CYCLE] = { "one cycle", one_cycle },
};

/* ---- numbers that make sense ----------------------------------------------------------------------------------------------- */

static yk_code check_piecewise(const yk_schedule *c) {
  if (c->values == NULL || (c->nboundaries > 0 && c->boundaries == NULL))
    return YK_FAIL(EINVAL, "a piecewise constant needs its boundaries, and a value more than them");
  for (size_t i = 1; i < c->nboundaries; i++)
    if (c->boundaries[i] <= c->boundaries[i - 1])
      return YK_FAIL(EINVAL, "boundaries of a piecewise constant must rise: %lld comes after %lld", (long long)c->boundaries[i],
                     (long long)c->boundaries[i - 1]);
  return YK_OK;
}

static yk_code want(const char *name, const char *what, double x, double lo, double hi) {
  if (x >= lo && x <= hi && isfinite(x)) return YK_OK;
  if (hi >= 1e300) return YK_FAIL(EINVAL, "%s: %s is %g, expected %g or more", name, what, x, lo);
  return YK_FAIL(EINVAL, "%s: %s is %g, expected %g to %g", name, what, x, lo, hi);
}

static yk_code above_zero(const char *name, const char *what, double x) {
  return x > 0 && isfinite(x) ? YK_OK : YK_FAIL(EINVAL, "%s: %s is %g, expected a number above 0", name, what, x);
}

static yk_code check_one_cycle(const yk_schedule *c, const char *name) {
  YK_TRY(above_zero(name, "start_divide", c->start_divide));
  YK_TRY(above_zero(name, "end_divide", c->end_divide));
  if (c->peak * (double)c->steps > 1 && c->peak < 1) return YK_OK;
  return YK_FAIL(EINVAL, "%s: the peak at %g of %lld steps leaves no step to rise or to fall", name, c->peak, (long long)c->steps);
}

static yk_code check(const yk_schedule *c) {
  const char *name = kinds[c->kind].name;
  YK_TRY(want(name, "warm_up", (double)c->warm_up, 0, 1e300));
  YK_TRY(want(name, "warm_from", c->warm_from, 0, 1e300));
  if (c->kind == YK_SCHEDULE_PIECEWISE) return check_piecewise(c);
  YK_TRY(want(name, "rate", c->rate, 0, 1e300));
  if (c->kind == YK_SCHEDULE_CONSTANT) return YK_OK;
  YK_TRY(want(name, "steps", (double)c->steps, 1, 1e300));
  switch (c->kind) {
    case YK_SCHEDULE_EXPONENTIAL: return above_zero(name, "factor", c->factor);
    case YK_SCHEDULE_NATURAL_EXP: case YK_SCHEDULE_INVERSE_TIME: return want(name, "factor", c->factor, 0, 1e300);
    case YK_SCHEDULE_POLYNOMIAL:
      YK_TRY(want(name, "end", c->end, 0, 1e300));
      return above_zero(name, "power", c->power);
    case YK_SCHEDULE_RESTARTS:
      YK_TRY(want(name, "t_mul", c->t_mul, 1, 1e300));
      YK_TRY(above_zero(name, "m_mul", c->m_mul));
      return want(name, "alpha", c->alpha, 0, 1);
    case YK_SCHEDULE_ONE_CYCLE: return check_one_cycle(c, name);
    default: return want(name, "alpha", c->alpha, 0, 1);
  }
}

/* ---- the whole --------------------------------------------------------------------------------------------------------------- */

/* The schedule begins after the warm-up, which rises in a line to its first rate. */
static yk_value with_warm_up(maker m, const yk_schedule *c, yk_value s) {
  yk_value length, after, first, rising, rate;
  if (c->warm_up == 0) return kinds[c->kind].rate(m, c, s);
  length = num(m, (double)c->warm_up);
  after = most(m, minus(m, s, length), num(m, 0));
  rate = kinds[c->kind].rate(m, c, after);
  first = kinds[c->kind].rate(m, c, num(m, 0));
  rising = plus(m, num(m, c->warm_from), times(m, minus(m, first, num(m, c->warm_from)), over(m, s, length)));
  return yk_where_at(m.where, m.g, yk_less_at(m.where, m.g, s, length), rising, rate);
}

/* Is the rate of step 0 nothing? */
static bool from_0(const yk_schedule *c) {
  if (c->warm_up > 0) return c->warm_from == 0;
  return (c->kind == YK_SCHEDULE_PIECEWISE ? c->values[0] : c->rate) == 0;
}

yk_value yk_scheduled_rate_at(const char *where, yk_graph *g, const yk_schedule *schedule, yk_variable *step) {
  yk_value rate;
  if (yk_graph_status(g) != YK_OK) return (yk_value){ 0 };
  if (step == NULL) return yk_graph_fail_at(where, g, YK_EINVAL, "a schedule needs a step variable");
  if (schedule == NULL || (unsigned)schedule->kind >= YK_NSCHEDULES)
    return yk_graph_fail_at(where, g, YK_EINVAL, "no such schedule: kind %d", schedule != NULL ? (int)schedule->kind : -1);
  if (check(schedule) != YK_OK) return yk_graph_fail_at(where, g, YK_EINVAL, "%s", yk_error_message());
  rate = with_warm_up((maker){ where, g }, schedule, yk_cast_at(where, g, yk_read(step), YK_F64));
  rate = yk_cast_at(where, g, rate, YK_F32);
  if (rate.id != 0 && from_0(schedule)) yk_add_to_collection_at(where, g, YK__RATES_FROM_0, rate);
  return rate;
}

yk_value yk_exponential_decay_at(const char *where, yk_graph *g, double rate, yk_variable *step, int64_t decay_steps, double factor,
                                 bool staircase) {
  yk_schedule c = YK_EXPONENTIAL(rate, decay_steps, factor);
  c.staircase = staircase;
  return yk_scheduled_rate_at(where, g, &c, step);
}

yk_value yk_piecewise_constant_at(const char *where, yk_graph *g, yk_variable *step, size_t nboundaries, const int64_t *boundaries,
                                  const double *values) {
  return yk_scheduled_rate_at(where, g, &YK_PIECEWISE(nboundaries, boundaries, values), step);
}
