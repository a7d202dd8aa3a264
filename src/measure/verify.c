/*
 * verify.c - see verify.h. Only the public interface is used: what is verified is what a program gets.
 *
 * Gradients are read off the variables, which works for whatever sums and applies them: one step of plain descent with a rate of 2^20
 * leaves w - 2^20*g, where nothing of g is lost beside w.
 */
#include "measure/verify.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

#define GRADIENT_RATE 1048576.0
#define LEAST_SCALE 1e-3             /* of the largest value of all tensors */
enum { MOST_SKIPPED = 24 };          /* a scale begins at 2^15 */
#define ADAPTIVE_PART 0.1            /* of what training has changed, in norm */

typedef struct side {                /* a run of one side, and what it left */
  const yk_verify_job *job;
  yk_tower_options towers;
  yk_optimizer optimizer;
  bool fixed;                        /* statistics of normalisation */
  int64_t steps;
  yk_queue *queue;
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  yk_towers t;
  double loss[YK__VERIFY_STEPS];
  size_t n;
  yk_tensor **first, **last;         /* [n] variables before and after */
} side;

/* ---- running ------------------------------------------------------------------------------------------------------ */

static _Thread_local yk_model_fn built;              /* by with_fixed_statistics(), which a model's interface hands nothing else to */

static yk_value with_fixed_statistics(yk_graph *g, yk_value images, int64_t classes, bool training) {
  (void)training;
  return built(g, images, classes, false);
}

static yk_code build(side *r) {
  const yk_verify_job *j = r->job;
  const yk_model *given = r->towers.model;
  yk_model model = *given;
  YK_TRY(yk_queue_open(j->data, &j->queue, &r->queue));
  YK_TRY(yk_graph_new(&r->g));
  yk_graph_set_seed(r->g, j->seed);
  built = model.build;
  if (r->fixed) model.build = with_fixed_statistics;
  r->towers.model = &model;
  r->towers.source = yk_queue_source(r->queue);
  r->towers.optimizer = &r->optimizer;
  YK_DEVICE(r->g, "/cpu:0") { r->towers.learning_rate = yk_scalar_f32(r->g, (float)r->optimizer.rate); }
  yk_build_towers(r->g, &r->towers, &r->t);
  r->towers.model = given;
  return yk_graph_status(r->g);
}

static yk_code values(const side *r, yk_tensor **out) {
  for (size_t i = 0; i < r->n; i++) YK_TRY(yk_variable_fetch(r->s, yk_variable_get(r->g, i), &out[i]));
  return YK_OK;
}

static yk_code start(side *r) {
  yk_value init = yk_global_variables_initializer(r->g);
  YK_TRY(yk_session_open(r->g, &r->job->session, &r->s));
  YK_TRY(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
  YK_TRY(yk_step_prepare(r->s, 0, NULL, 1, &r->t.loss, 1, &r->t.train, &r->step));
  r->n = yk_variable_count(r->g);
  r->first = yk__calloc(r->n + 1, sizeof(yk_tensor *));
  r->last = yk__calloc(r->n + 1, sizeof(yk_tensor *));
  return r->first != NULL && r->last != NULL ? YK_OK : YK_ENOMEM;
}

/* Steps that a loss scale has skipped; 0 without one. */
static yk_code skipped(const side *r, int64_t *out) {
  yk_tensor *t = NULL;
  *out = 0;
  if (r->t.scale.skipped == NULL) return YK_OK;
  YK_TRY(yk_variable_fetch(r->s, r->t.scale.skipped, &t));
  *out = (int64_t)yk_tensor_at(t, 0);
  yk_tensor_free(t);
  return YK_OK;
}

/* One step that changes the variables. One that the loss scale skips is taken again with the same batch and half the scale: how many
 * there are may differ between the sides, since the whole batch's gradient overflows before that of a part. */
static yk_code good_step(side *r, double *loss) {
  const yk_tensor *const *got;
  yk_position at = yk_queue_position(r->queue);
  int64_t before, after;
  YK_TRY(skipped(r, &before));
  for (int i = 0; i < MOST_SKIPPED; i++) {
    YK_TRY(yk_step_run(r->step, NULL, &got));
    *loss = yk_tensor_at(got[0], 0);
    YK_TRY(skipped(r, &after));
    if (after == before) return YK_OK;
    before = after;
    YK_TRY(yk_queue_seek(r->queue, at));
  }
  return YK_FAIL(EINVAL, "gradients overflow f16 in %d steps, down to the smallest loss scale; try --precision bf16", MOST_SKIPPED);
}

static yk_code run(side *r, bool spoil) {
  YK_TRY(build(r));
  YK_TRY(start(r));
  YK_TRY(values(r, r->first));
  for (int64_t i = 0; i < r->steps; i++) {
    if (spoil && r->job->spoil != NULL) YK_TRY(r->job->spoil(r->s, r->g, i, r->job->arg));
    YK_TRY(good_step(r, &r->loss[i]));
  }
  return values(r, r->last);
}

/* What is left are the values; their names are the graph's. */
static void stop(side *r) {
  yk_step_free(r->step);
  yk_session_close(r->s);
  yk_queue_close(r->queue);
  r->step = NULL;
  r->s = NULL;
  r->queue = NULL;
}

static void forget(side *r) {
  stop(r);
  for (size_t i = 0; i < r->n && r->first != NULL; i++) yk_tensor_free(r->first[i]);
  for (size_t i = 0; i < r->n && r->last != NULL; i++) yk_tensor_free(r->last[i]);
  yk__free(r->first);
  yk__free(r->last);
  yk_graph_free(r->g);
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

static size_t find(const side *r, const char *name) {
  size_t i = 0;
  while (i < r->n && strcmp(yk_variable_name(yk_variable_get(r->g, i)), name) != 0) i++;
  return i;
}

/* Millions of elements are usual: those in f32 are read where they are. */
static double element(const yk_tensor *t, int64_t k) {
  return yk_tensor_desc(t)->dtype == YK_F32 ? ((const float *)yk_tensor_data(t))[k] : yk_tensor_at(t, k);
}

/* a: of the reference; a0: where it began, NULL for "at 0". The scale is that of this tensor alone, for now. */
static void differ(yk_difference *d, const yk_tensor *a, const yk_tensor *b, const yk_tensor *a0, const yk_tensor *b0, double by) {
  double moved = 0, apart = 0;
  for (int64_t k = 0; k < yk_tensor_count(a); k++) {
    double x = element(a, k), y = element(b, k), from = element(a0, k);
    if (by != 0) {                                   /* gradients: what the step has taken away */
      x = (from - x) / by;
      y = (element(b0, k) - y) / by;
      from = 0;
    }
    double gap = fabs(x - y);
    if (!isfinite(gap)) gap = INFINITY;
    if (gap > d->absolute) d->absolute = gap;
    if (fabs(x) > d->scale) d->scale = fabs(x);
    moved += (x - from) * (x - from);
    apart += gap * gap;
  }
  d->moved = moved > 0 ? sqrt(apart / moved) : apart > 0 ? INFINITY : 0;
}

static bool same_shape(const yk_tensor *a, const yk_tensor *b) {
  return yk_tensor_count(a) == yk_tensor_count(b) && yk_tensor_desc(a)->dtype == yk_tensor_desc(b)->dtype;
}

static bool same_bits(const yk_tensor *a, const yk_tensor *b) {
  return same_shape(a, b) && memcmp(yk_tensor_data(a), yk_tensor_data(b), yk_tensor_bytes(a)) == 0;
}

/* All variables that both sides have, or of the trainable ones the gradients. */
static yk_code compare_all(const side *a, const side *b, double by, yk_difference **out, size_t *count) {
  yk_difference *d = yk__calloc(a->n + 1, sizeof *d);
  size_t n = 0;
  yk_code rc = d != NULL ? YK_OK : YK_ENOMEM;
  for (size_t i = 0; i < a->n && rc == YK_OK; i++) {
    const yk_variable *v = yk_variable_get(a->g, i);
    size_t k = find(b, yk_variable_name(v));
    bool number = YK_T(yk_tensor_desc(a->last[i])->dtype) & (YK_FLOATS | YK_INTS_);
    if (k == b->n || !number || (by != 0 && !yk_variable_trainable(v))) continue;
    snprintf(d[n].name, sizeof d[n].name, "%s", yk_variable_name(v));
    if (!same_shape(a->last[i], b->last[k])) rc = YK_FAIL(EINTERNAL, "the two sides have %s in different shapes", d[n].name);
    else differ(&d[n++], a->last[i], b->last[k], a->first[i], b->first[k], by);
  }
  if (rc != YK_OK) yk__free(d);
  else *out = d, *count = n;
  return rc;
}

/* Relative to what is large here: a tensor of noise has no digits of its own. */
static bool judge_all(yk_difference *d, size_t n, double tolerance, bool by_norm) {
  double largest = 0;
  bool good = true;
  for (size_t i = 0; i < n; i++)
    if (isfinite(d[i].scale)) largest = fmax(largest, d[i].scale);
  for (size_t i = 0; i < n; i++) {
    d[i].scale = fmax(d[i].scale, LEAST_SCALE * largest);
    d[i].relative = d[i].absolute == 0 ? 0 : d[i].scale > 0 ? d[i].absolute / d[i].scale : INFINITY;
    d[i].good = d[i].relative <= tolerance || (by_norm && d[i].moved <= ADAPTIVE_PART);
    good &= d[i].good;
  }
  return good;
}

static double loss_gap(const yk_comparison *c, int64_t i) {
  double gap = fabs(c->loss[i] - c->reference[i]);
  if (!isfinite(gap)) return INFINITY;
  return gap / fmax(fabs(c->reference[i]), DBL_MIN);
}

/* ---- one comparison ------------------------------------------------------------------------------------------------ */

static side prepared(const yk_verify_job *j, const yk_tower_options *towers, bool gradients, bool fixed) {
  side r = { .job = j, .towers = *towers, .fixed = fixed, .steps = gradients ? 1 : j->steps };
  const yk_model *m = towers->model;
  r.optimizer = m->momentum > 0 ? YK_MOMENTUM(j->rate, m->momentum) : YK_SGD(j->rate);
  if (towers->optimizer != NULL) r.optimizer = *towers->optimizer;
  r.optimizer.rate = j->rate;
  if (!gradients) return r;
  r.optimizer = YK_SGD(GRADIENT_RATE);
  r.towers.clip_norm = 0;
  return r;
}

/* The same on both sides; keeps the losses, and hands out the differences. The reference is a message in c->why if it cannot run. */
static yk_code both(const yk_verify_job *j, const yk_tower_options *reference, bool gradients, bool fixed, yk_comparison *c,
                    yk_difference **d, size_t *n) {
  side a = prepared(j, reference, gradients, fixed), b = prepared(j, &j->towers, gradients, fixed);
  yk_code rc = run(&a, false);
  stop(&a);
  c->made = rc == YK_OK;
  if (rc == YK_ENOMEM) {                             /* one device has to hold what several would */
    snprintf(c->why, sizeof c->why, "%.580s", yk_error_message());
    yk_error_clear();
    forget(&a);
    return YK_OK;
  }
  if (rc == YK_OK) rc = run(&b, true);
  stop(&b);
  for (size_t i = 0; i < a.n && rc == YK_OK; i++) {
    size_t k = find(&b, yk_variable_name(yk_variable_get(a.g, i)));
    if (k < b.n && !same_bits(a.first[i], b.first[k]))
      rc = YK_FAIL(EINTERNAL, "the two sides do not begin with the same values of %s", yk_variable_name(yk_variable_get(a.g, i)));
  }
  if (rc == YK_OK) rc = compare_all(&a, &b, gradients ? GRADIENT_RATE : 0, d, n);
  if (rc == YK_OK) {
    c->steps = a.steps;
    memcpy(c->reference, a.loss, sizeof a.loss);
    memcpy(c->loss, b.loss, sizeof b.loss);
  }
  forget(&a);
  forget(&b);
  return rc;
}

static bool judge_losses(const yk_comparison *c, double tolerance) {
  for (int64_t i = 0; i < c->steps; i++)
    if (!(loss_gap(c, i) <= tolerance)) return false;
  return true;
}

/* `training`: the values after all steps too. */
static yk_code compare(const yk_verify_job *j, const yk_tower_options *reference, bool training, bool fixed, bool adaptive, yk_comparison *c) {
  YK_TRY(both(j, reference, true, fixed, c, &c->gradient, &c->ngradients));
  if (!c->made) return YK_OK;
  c->good = judge_all(c->gradient, c->ngradients, j->tolerance, false) && judge_losses(c, j->tolerance);
  if (!training) return YK_OK;
  YK_TRY(both(j, reference, false, fixed, c, &c->variable, &c->nvariables));
  if (!c->made) return YK_OK;
  bool values = judge_all(c->variable, c->nvariables, j->tolerance, adaptive);
  c->good = c->good && values && judge_losses(c, adaptive ? fmax(j->tolerance, 1e-3) : j->tolerance);
  return YK_OK;
}

/* ---- the verdict --------------------------------------------------------------------------------------------------- */

static bool is_adaptive(const yk_tower_options *t) {
  return t->optimizer != NULL && t->optimizer->kind != YK_OPT_SGD && t->optimizer->kind != YK_OPT_MOMENTUM;
}

/* Does building the network leave updates of statistics behind? */
static yk_code is_normalised(const yk_verify_job *j, bool *out) {
  side r = prepared(j, &j->towers, true, false);
  yk_code rc = build(&r);
  if (rc == YK_OK) *out = yk_get_collection(r.g, YK_UPDATE_OPS, NULL, NULL, 0) > 0;
  forget(&r);
  return rc;
}

static const yk_difference *worst(const yk_comparison *c, bool *gradient) {
  const yk_difference *w = NULL;
  for (int k = 0; k < 2; k++) {
    const yk_difference *d = k == 0 ? c->gradient : c->variable;
    for (size_t i = 0; i < (k == 0 ? c->ngradients : c->nvariables); i++)
      if (!d[i].good && (w == NULL || d[i].relative > w->relative)) {
        w = &d[i];
        *gradient = k == 0;
      }
  }
  return w;
}

static void say(const yk_verify_job *j, yk_verdict *v) {
  const yk_comparison *c = v->replicas.made && !v->replicas.good ? &v->replicas : &v->whole;
  bool gradient = false;
  if (v->good) {
    snprintf(v->text, sizeof v->text, "verified: losses, gradients and values agree to %g%s%s", j->tolerance,
             v->whole.made ? "" : "; one replica with the whole batch does not fit on one device and was not compared",
             v->normalised ? "; batch statistics are those of each replica by design, so they were compared among equal replicas" : "");
    return;
  }
  if (!v->replicas.made) {
    snprintf(v->text, sizeof v->text, "not verified: the first device cannot hold what there is to compare with: %.400s", v->replicas.why);
    return;
  }
  const yk_difference *d = worst(c, &gradient);
  if (d != NULL)
    snprintf(v->text, sizeof v->text, "NOT the same as %s: the %s %s differs by %.3g, %.3g of its scale; %g is allowed", c->what,
             gradient ? "gradient of" : "value of", d->name, d->absolute, d->relative, j->tolerance);
  else
    snprintf(v->text, sizeof v->text, "NOT the same as %s: the losses differ", c->what);
}

/* Replicas of the devices' side. */
static size_t count(const yk_verify_job *j) { return j->towers.replicas != 0 ? j->towers.replicas : j->towers.ndevices; }

static yk_code check(const yk_verify_job *j) {
  if (j->steps < 1 || j->steps > YK__VERIFY_STEPS)
    return YK_FAIL(EINVAL, "%lld steps, expected 1 to %d", (long long)j->steps, YK__VERIFY_STEPS);
  if (!(j->tolerance >= 0)) return YK_FAIL(EINVAL, "a tolerance of %g, expected 0 or more", j->tolerance);
  if (j->towers.ndevices == 0 || j->towers.batch < (int64_t)count(j))
    return YK_FAIL(EINVAL, "a batch of %lld for %zu replicas, expected a replica and at least one example for each", (long long)j->towers.batch,
                   count(j));
  return YK_OK;
}

static yk_code verify(const yk_verify_job *j, yk_verdict *v, const char **same) {
  yk_tower_options replicas = j->towers, whole = j->towers;
  for (size_t i = 0; i < j->towers.ndevices; i++) same[i] = j->towers.devices[0];
  replicas.devices = same;
  replicas.strategy = whole.strategy = YK_STRATEGY_HOME;
  whole.ndevices = whole.replicas = 1;
  YK_TRY(is_normalised(j, &v->normalised));
  v->adaptive = is_adaptive(&j->towers);
  v->replicas.what = "equal replicas on one device";
  v->whole.what = v->normalised ? "one replica with the whole batch, statistics fixed" : "one replica with the whole batch";
  YK_TRY(compare(j, &replicas, true, false, v->adaptive, &v->replicas));
  YK_TRY(compare(j, &whole, false, v->normalised, v->adaptive, &v->whole));
  v->good = v->replicas.made && v->replicas.good && (!v->whole.made || v->whole.good);
  say(j, v);
  return YK_OK;
}

yk_code yk__verify(const yk_verify_job *job, yk_verdict *out) {
  yk_verdict v = { 0 };
  YK_TRY(check(job));
  const char **same = yk__calloc(job->towers.ndevices, sizeof(char *));
  yk_code rc = same != NULL ? verify(job, &v, same) : YK_ENOMEM;
  yk__free(same);
  if (rc == YK_OK) *out = v;
  else yk__verdict_free(&v);
  return rc;
}

void yk__verdict_free(yk_verdict *v) {
  yk_comparison *c[2] = { &v->replicas, &v->whole };
  for (int i = 0; i < 2; i++) {
    yk__free(c[i]->gradient);
    yk__free(c[i]->variable);
  }
  *v = (yk_verdict){ 0 };
}
