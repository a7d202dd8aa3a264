/*
 * recipes.c - --optimizer NAME[:key=value,...] and --schedule NAME[:key=value,...].
 *
 * Names, keys and their meaning are two tables each: the parser, the error messages and the help read the same lines. The
 * library checks the numbers once more when the graph is built; what it says then names the number too.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "cli/cli.h"

typedef struct name { const char *name, *doc; } name;
typedef struct key {
  const char *name, *doc;
  enum { REAL, WHOLE, FLAG, WHOLES, REALS } kind;
  size_t offset;
  uint32_t of;                       /* bit i: name number i has it */
} key;

/* ---- what there is ----------------------------------------------------------------------------------------------- */

enum { SGD, MOMENTUM, NESTEROV, ADAM, ADAMW, LAMB, RMSPROP, ADAGRAD, ADADELTA, FTRL, KERAS_SGD, KERAS_RMSPROP, KERAS_ADAGRAD, NOPTIMIZERS };
#define BIT(x) (1u << (x))

static const name optimizers[] = {
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
static const key optimizer_keys[] = {
  { "lr", "learning rate that the schedule starts from", REAL, FIELD(rate), UINT32_MAX },
  { "momentum", "of the velocity", REAL, FIELD(momentum), BIT(MOMENTUM) | BIT(NESTEROV) | BIT(KERAS_SGD) | RMS },
  { "nesterov", "1 = look ahead", FLAG, FIELD(nesterov), BIT(KERAS_SGD) | BIT(ADAM) | BIT(ADAMW) },
  { "beta1", "decay of the first moment", REAL, FIELD(beta1), ADAMS },
  { "beta2", "decay of the second moment", REAL, FIELD(beta2), ADAMS },
  { "weight_decay", "times the rate, or the direction's share", REAL, FIELD(weight_decay), BIT(ADAMW) | BIT(LAMB) },
  { "rho", "decay of the mean square", REAL, FIELD(rho), RMS | BIT(ADADELTA) },
  { "centered", "1 = by the variance", FLAG, FIELD(centered), BIT(RMSPROP) },
  { "epsilon", "keeps divisors from 0", REAL, FIELD(epsilon), ADAMS | RMS | BIT(ADADELTA) | BIT(KERAS_ADAGRAD) },
  { "start", "of the sum of squares", REAL, FIELD(initial_accumulator), BIT(ADAGRAD) | BIT(FTRL) },
  { "power", "of the rate's decay, 0 or less", REAL, FIELD(lr_power), BIT(FTRL) },
  { "l1", "gives zeros", REAL, FIELD(l1), BIT(FTRL) }, { "l2", "pulls towards 0", REAL, FIELD(l2), BIT(FTRL) },
  { "shrinkage", "l2 on the gradient", REAL, FIELD(l2_shrinkage), BIT(FTRL) }, { 0 },
};
#undef FIELD

static const name schedules[] = {
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
static const key schedule_keys[] = {
  { "steps", "length; usually the run's", WHOLE, OWN(steps), UINT32_MAX & ~(OF(CONSTANT) | OF(PIECEWISE)) },
  { "factor", "usually 0.1; 1 for the last two", REAL, OWN(factor), DECAYS },
  { "staircase", "1 = in whole stairs", FLAG, OWN(staircase), DECAYS },
  { "at", "steps after which the next rate holds, as 100/200", WHOLES, FIELD(boundaries), OF(PIECEWISE) },
  { "rates", "one more than those, as 0.1/0.01/0.001", REALS, FIELD(rates), OF(PIECEWISE) },
  { "end", "last rate", REAL, OWN(end), OF(POLYNOMIAL) },
  { "power", "1 = a line", REAL, OWN(power), OF(POLYNOMIAL) },
  { "cycle", "1 = begin again, longer", FLAG, OWN(cycle), OF(POLYNOMIAL) },
  { "alpha", "share of the rate that stays", REAL, OWN(alpha), OF(COSINE) | OF(RESTARTS) },
  { "t_mul", "each period is so much longer", REAL, OWN(t_mul), OF(RESTARTS) },
  { "m_mul", "and starts at so much of the rate", REAL, OWN(m_mul), OF(RESTARTS) },
  { "peak", "share of the steps before the top", REAL, OWN(peak), OF(ONE_CYCLE) },
  { "start_divide", "first rate = rate / this", REAL, OWN(start_divide), OF(ONE_CYCLE) },
  { "end_divide", "last rate = first rate / this", REAL, OWN(end_divide), OF(ONE_CYCLE) },
  { "warm_up", "steps of a line up to the rate", WHOLE, OWN(warm_up), WARM },
  { "warm_from", "where the line begins", REAL, OWN(warm_from), WARM }, { 0 },
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

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void print_list(const char *title, const name *names, size_t n, const key *keys) {
  printf("\n%s:\n", title);
  for (size_t i = 0; i < n; i++) {
    const char *between = "; ";
    printf("  %-24s  %s", names[i].name, names[i].doc);
    for (const key *k = keys; k->name != NULL; k++)
      if ((k->of >> i & 1u) != 0) {
        printf("%s%s", between, k->name);
        between = ", ";
      }
    printf("\n");
  }
}

void yk__help_recipes(void) {
  print_list("optimizers, NAME[:key=value,...]", optimizers, NOPTIMIZERS, optimizer_keys);
  print_list("schedules, NAME[:key=value,...]", schedules, YK_NSCHEDULES, schedule_keys);
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

typedef struct language { const char *option, *what; const name *names; size_t n; const key *keys; } language;
enum { MOST_NAMES = 32, ITEM = 64 };

/* "sgd, momentum, ..." */
static const char *list(const char *const *names, size_t n, char *buffer, size_t bytes) {
  size_t at = 0;
  buffer[0] = '\0';
  for (size_t i = 0; i < n && at < bytes; i++) at += (size_t)snprintf(buffer + at, bytes - at, "%s%s", i > 0 ? ", " : "", names[i]);
  return buffer;
}

static int find_name(const language *l, const char *text, size_t len, int *out) {
  const char *names[MOST_NAMES];
  char have[400], given[ITEM];
  for (size_t i = 0; i < l->n; i++) {
    names[i] = l->names[i].name;
    if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0) return *out = (int)i, 0;
  }
  snprintf(given, sizeof given, "%.*s", (int)len, text);
  return yk__die(YK__EXIT_USAGE, "%s: no %s '%s'%s; there are %s", l->option, l->what, yk__shown(given),
                 yk__did_you_mean(given, l->n, names), list(names, l->n, have, sizeof have));
}

static int no_key(const language *l, int which, const char *given) {
  const char *names[MOST_NAMES];
  char have[400];
  size_t n = 0;
  for (const key *k = l->keys; k->name != NULL; k++)
    if ((k->of >> which & 1u) != 0) names[n++] = k->name;
  return yk__die(YK__EXIT_USAGE, "%s: %s has no '%s'%s; it takes %s", l->option, l->names[which].name, yk__shown(given),
                 yk__did_you_mean(given, n, names), n > 0 ? list(names, n, have, sizeof have) : "nothing");
}

static int bad_value(const language *l, const key *k, const char *value, const char *expected) {
  return yk__die(YK__EXIT_USAGE, "%s: %s '%s': expected %s", l->option, k->name, yk__shown(value), expected);
}

/* "a/b/c": a list of numbers behind a count; both lists of yk_recipe look alike. */
static int set_list(const language *l, const key *k, const char *value, void *target) {
  char item[ITEM];
  yk_recipe_list *list_of = (void *)((char *)target + k->offset);
  for (const char *p = value;; p++) {
    size_t len = strcspn(p, "/");
    double x;
    snprintf(item, sizeof item, "%.*s", (int)(len < ITEM ? len : ITEM - 1), p);
    if (list_of->n == YK__MAX_LIST) return yk__die(YK__EXIT_USAGE, "%s: %s takes at most %d numbers", l->option, k->name, YK__MAX_LIST);
    if (!yk__parse_f64(item, &x) || !(x >= 0) || !isfinite(x) || (k->kind == WHOLES && x != floor(x)))
      return bad_value(l, k, value, k->kind == WHOLES ? "whole numbers, as 100/200" : "numbers of 0 or more, as 0.1/0.01");
    list_of->real[list_of->n] = x;
    list_of->whole[list_of->n++] = x < 9e15 ? (int64_t)x : INT64_MAX;
    p += len;
    if (*p == '\0') return 0;
  }
}

static int set_key(const language *l, const key *k, const char *value, void *target) {
  char *field = (char *)target + k->offset;
  int64_t whole;
  double real;
  bool on;
  switch (k->kind) {
    case WHOLE:
      if (!yk__parse_i64(value, 0, (int64_t)9e15, &whole)) return bad_value(l, k, value, "a whole number");
      memcpy(field, &whole, sizeof whole);
      return 0;
    case FLAG:
      if (!yk__parse_i64(value, 0, 1, &whole)) return bad_value(l, k, value, "0 or 1");
      on = whole != 0;
      memcpy(field, &on, sizeof on);
      return 0;
    case REAL:
      if (!yk__parse_f64(value, &real) || !isfinite(real)) return bad_value(l, k, value, "a number");
      memcpy(field, &real, sizeof real);
      return 0;
    default: return set_list(l, k, value, target);
  }
}

/* "key=value", len characters. */
static int set_item(const language *l, int which, const char *text, size_t len, void *target) {
  char item[512], *value;
  if (len >= sizeof item) return yk__die(YK__EXIT_USAGE, "%s: an item of %zu characters", l->option, len);
  snprintf(item, sizeof item, "%.*s", (int)len, text);
  value = strchr(item, '=');
  if (value == NULL || value == item || value[1] == '\0')
    return yk__die(YK__EXIT_USAGE, "%s: '%s': expected key=value", l->option, yk__shown(item));
  *value++ = '\0';
  for (const key *k = l->keys; k->name != NULL; k++)
    if (strcmp(k->name, item) == 0 && (k->of >> which & 1u) != 0) return set_key(l, k, value, target);
  return no_key(l, which, item);
}

static int set_items(const language *l, int which, const char *text, void *target) {
  for (const char *p = text; *p != '\0';) {
    size_t len = strcspn(p, ",");
    int status = set_item(l, which, p, len, target);
    if (status != 0) return status;
    p += len;
    if (*p == ',' && *++p == '\0') return yk__die(YK__EXIT_USAGE, "%s: nothing after the last comma", l->option);
  }
  return 0;
}

static int parse_optimizer(const yk_cli *c, yk_recipe *out) {
  static const language l = { "--optimizer", "optimizer", optimizers, NOPTIMIZERS, optimizer_keys };
  size_t len = strcspn(c->optimizer, ":");
  int which = 0, status = find_name(&l, c->optimizer, len, &which);
  if (status != 0) return status;
  out->optimizer = optimizer_at(which);
  out->has_optimizer = true;
  if (c->lr >= 0 && strstr(c->optimizer + len, "lr=") != NULL)
    return yk__die(YK__EXIT_USAGE, "--optimizer and --lr both give a learning rate");
  return c->optimizer[len] == ':' ? set_items(&l, which, c->optimizer + len + 1, &out->optimizer) : 0;
}

static int parse_schedule(const yk_cli *c, yk_recipe *out) {
  static const language l = { "--schedule", "schedule", schedules, YK_NSCHEDULES, schedule_keys };
  size_t len = strcspn(c->schedule, ":");
  int which = 0, status = find_name(&l, c->schedule, len, &which);
  if (status != 0) return status;
  out->schedule = schedule_at(which);
  out->has_schedule = true;
  if (c->schedule[len] == ':') status = set_items(&l, which, c->schedule + len + 1, out);
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
