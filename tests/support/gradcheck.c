/*
 * gradcheck.c - central differences against the gradients that ops build. See gradcheck.h.
 *
 * Everything is computed by the references in double, so the two sides may differ only by the error of the difference
 * quotient: about 1e-9 here, against a tolerance of 1e-6 + 1e-5 of the value.
 */
#include "support/gradcheck.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "graph/graph.h"
#include "op/registry.h"
#include "support/opcase.h"
#include "support/ref_eval.h"
#include "tensor/desc.h"

static const double STEP = 1e-5, ABSOLUTE = 1e-6, RELATIVE = 1e-5, ZERO = 1e-9;
enum { USUAL_MOST = 24 };

typedef struct work {
  const gradcheck_point *p;
  gradcheck *out;
  ref_eval *e;
  uint16_t ny;                               /* float outputs */
  yk_value y[GRADCHECK_INPUTS], dy[GRADCHECK_INPUTS], dx[GRADCHECK_INPUTS];
  double *weight[GRADCHECK_INPUTS];          /* values of dy */
  double *plus[GRADCHECK_INPUTS];            /* y at x + h */
} work;

const char *gradcheck_name(gradcheck_verdict v) {
  static const char *const names[] = { "pass", "FAIL", "MISTRUSTED", "empty", "unsupported" };
  return names[v];
}

static YK_PRINTF(2, 3) void failed(gradcheck *out, const char *fmt, ...) {
  va_list ap;
  if (out->verdict == GRADCHECK_FAIL) return;                  /* the first failure tells most */
  va_start(ap, fmt);
  vsnprintf(out->text, sizeof out->text, fmt, ap);
  va_end(ap);
  out->verdict = GRADCHECK_FAIL;
}

static int is_float(const yk_graph *g, yk_value v) { return (YK_FLOATS & YK_T(yk_value_desc(g, v)->dtype)) != 0; }

static int64_t count_of(const work *w, yk_value v) { return yk__desc_count(yk_value_desc(w->p->g, v)); }

static yk_value placeholder(yk_graph *g, const yk_desc *d) {
  yk_placeholder_attrs a = { .dtype = d->dtype, .rank = d->rank };
  memcpy(a.dim, d->dim, sizeof a.dim);
  return yk_add_node(g, &yk__op_placeholder, &a, NULL, 0, 1);
}

/* Away from zero, both signs: no cotangent may hide an error. */
static double cotangent(uint64_t seed, uint64_t i) {
  double u = opcase_uniform(seed, i);
  return u < 0.5 ? -0.5 - 2 * u : 2 * u - 0.5;
}

/* Gradient nodes for every x, with a placeholder for each dy. */
static int build(work *w) {
  const gradcheck_point *p = w->p;
  for (uint16_t k = 0; k < p->ny; k++) {
    if (!is_float(p->g, p->y[k])) continue;
    w->y[w->ny] = p->y[k];
    w->dy[w->ny] = placeholder(p->g, yk_value_desc(p->g, p->y[k]));
    w->ny++;
  }
  yk_gradients(p->g, w->ny, w->y, w->dy, p->nx, p->x, NULL, w->dx);
  yk_code code = yk_graph_status(p->g);
  if (code == YK_OK) return 1;
  failed(w->out, "%s", yk_error_message());
  if (code == YK_EUNSUPPORTED) w->out->verdict = GRADCHECK_UNSUPPORTED;
  yk_error_clear();
  return 0;
}

static int feed_all(work *w) {
  const gradcheck_point *p = w->p;
  yk_code code = YK_OK;
  w->e = ref_eval_new(p->g);
  for (uint16_t i = 0; i < p->nx && code == YK_OK; i++) code = ref_eval_feed(w->e, p->x[i], NULL, p->at[i]);
  for (uint16_t i = 0; i < p->nfixed && code == YK_OK; i++) code = ref_eval_feed(w->e, p->fixed[i], NULL, p->fixed_at[i]);
  for (uint16_t k = 0; k < w->ny && code == YK_OK; k++) {
    int64_t n = count_of(w, w->y[k]);
    w->weight[k] = calloc((size_t)n + 1, sizeof(double));
    w->plus[k] = calloc((size_t)n + 1, sizeof(double));
    for (int64_t i = 0; i < n; i++) w->weight[k][i] = cotangent(p->seed + 1000u + k, (uint64_t)i);
    code = ref_eval_feed(w->e, w->dy[k], NULL, w->weight[k]);
  }
  if (code != YK_OK) failed(w->out, "feeding: %s", yk_error_message());
  return code == YK_OK;
}

/* Gradients at the point, copied out: the evaluator is used again for the differences. */
static int analytic(work *w, double **grad) {
  yk_value fetch[GRADCHECK_INPUTS];
  size_t n = 0;
  for (uint16_t i = 0; i < w->p->nx; i++)
    if (w->dx[i].id) fetch[n++] = w->dx[i];
  if (ref_eval_run(w->e, n, fetch) != YK_OK) return failed(w->out, "gradient: %s", yk_error_message()), 0;
  for (uint16_t i = 0; i < w->p->nx; i++) {
    int64_t count = count_of(w, w->p->x[i]);
    grad[i] = calloc((size_t)count + 1, sizeof(double));
    w->out->built[i] = w->dx[i].id != 0;
    if (!w->dx[i].id) continue;
    if (!yk__desc_same_shape(ref_eval_desc(w->e, w->dx[i]), yk_value_desc(w->p->g, w->p->x[i]))) {
      char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
      failed(w->out, "gradient of input %u is %s, the input is %s", i, yk__desc_text(ref_eval_desc(w->e, w->dx[i]), a, sizeof a),
             yk__desc_text(yk_value_desc(w->p->g, w->p->x[i]), b, sizeof b));
      return 0;
    }
    memcpy(grad[i], ref_eval_data(w->e, w->dx[i]), (size_t)count * sizeof(double));
  }
  return 1;
}

/* Outputs at x with one element moved. */
static int outputs_at(work *w, uint16_t input, int64_t element, double value, double *x, double **keep) {
  double before = x[element];
  x[element] = value;
  yk_code code = ref_eval_feed(w->e, w->p->x[input], NULL, x);
  x[element] = before;
  if (code == YK_OK) code = ref_eval_run(w->e, w->ny, w->y);
  if (code != YK_OK) return failed(w->out, "input %u[%lld] = %g: %s", input, (long long)element, value, yk_error_message()), 0;
  for (uint16_t k = 0; keep && k < w->ny; k++)
    memcpy(keep[k], ref_eval_data(w->e, w->y[k]), (size_t)count_of(w, w->y[k]) * sizeof(double));
  return 1;
}

/* dL/dx[element]: differences are weighted one by one, so large unaffected outputs do not drown a small change. */
static int numeric(work *w, uint16_t input, int64_t element, double *x, double *out) {
  double h = STEP * fmax(1, fabs(x[element])), up = x[element] + h, down = x[element] - h, sum = 0;
  if (!outputs_at(w, input, element, up, x, w->plus)) return 0;
  if (!outputs_at(w, input, element, down, x, NULL)) return 0;
  for (uint16_t k = 0; k < w->ny; k++) {
    const double *minus = ref_eval_data(w->e, w->y[k]);
    int64_t n = count_of(w, w->y[k]);
    for (int64_t i = 0; i < n; i++) sum += w->weight[k][i] * (w->plus[k][i] - minus[i]);
  }
  *out = sum / (up - down);
  return 1;
}

static int compare(work *w, uint16_t input, const double *grad, double *x) {
  int64_t n = count_of(w, w->p->x[input]), most = w->p->most ? w->p->most : USUAL_MOST, step = n > most ? n / most : 1;
  for (int64_t i = 0; i < n; i += step) {
    double num = 0, limit, off;
    if (!numeric(w, input, i, x, &num)) return 0;
    limit = ABSOLUTE + RELATIVE * fmax(fabs(num), fabs(grad[i]));
    off = fabs(grad[i] - num) / limit;
    if (!(off <= 1))
      return failed(w->out, "input %u[%lld] at %.17g: gradient %.12g, difference quotient %.12g, ratio %.6g", input, (long long)i,
                    x[i], grad[i], num, grad[i] / num), 0;
    w->out->worst = fmax(w->out->worst, off);
    w->out->compared++;
    if (fabs(grad[i]) > ZERO && fabs(num) > ZERO) w->out->nonzero[input] = 1;
  }
  return ref_eval_feed(w->e, w->p->x[input], NULL, x) == YK_OK;
}

static void judge(gradcheck *out) {
  if (out->verdict != GRADCHECK_PASS) return;
  if (out->compared == 0) out->verdict = GRADCHECK_EMPTY;
  for (uint16_t i = 0; i < out->nx && out->compared; i++) {
    if (!out->built[i] || out->nonzero[i]) continue;
    out->verdict = GRADCHECK_MISTRUSTED;
    snprintf(out->text, sizeof out->text, "every gradient of input %u is zero: nothing was tested", i);
  }
}

static void first_order(const gradcheck_point *p, gradcheck *out) {
  work w = { .p = p, .out = out };
  double *grad[GRADCHECK_INPUTS] = { NULL };
  *out = (gradcheck){ .verdict = GRADCHECK_PASS, .nx = p->nx };
  if (build(&w) && feed_all(&w) && analytic(&w, grad))
    for (uint16_t i = 0; i < p->nx; i++) {
      int64_t n = count_of(&w, p->x[i]);
      double *x = calloc((size_t)n + 1, sizeof *x);
      memcpy(x, p->at[i], (size_t)n * sizeof *x);
      int go_on = compare(&w, i, grad[i], x);
      free(x);
      if (!go_on) break;
    }
  judge(out);
  for (uint16_t i = 0; i < GRADCHECK_INPUTS; i++) {
    free(grad[i]);
    free(w.weight[i]);
    free(w.plus[i]);
  }
  ref_eval_free(w.e);
}

/* The gradient nodes become the outputs, the dys further inputs. */
static void second_order(const gradcheck_point *p, gradcheck *out) {
  gradcheck_point q = *p;
  work w = { .p = p, .out = out };
  double *dy[GRADCHECK_INPUTS] = { NULL };
  *out = (gradcheck){ .verdict = GRADCHECK_PASS, .nx = p->nx };
  if (!build(&w)) return;
  q.ny = 0;
  q.seed += 77;
  for (uint16_t i = 0; i < p->nx; i++)
    if (w.dx[i].id) q.y[q.ny++] = w.dx[i];
  for (uint16_t k = 0; k < w.ny && q.nx < GRADCHECK_INPUTS; k++) {
    int64_t n = count_of(&w, w.y[k]);
    dy[k] = calloc((size_t)n + 1, sizeof(double));
    for (int64_t i = 0; i < n; i++) dy[k][i] = cotangent(p->seed + 500u + k, (uint64_t)i);
    q.x[q.nx] = w.dy[k];
    q.at[q.nx++] = dy[k];
  }
  if (q.ny == 0) out->verdict = GRADCHECK_EMPTY;
  else first_order(&q, out);
  for (uint16_t k = 0; k < GRADCHECK_INPUTS; k++) free(dy[k]);
}

void gradcheck_run(const gradcheck_point *p, int order, gradcheck *out) {
  if (order == 2) second_order(p, out);
  else first_order(p, out);
}

/* ---- cases of ops ---- */

int gradcheck_applies(const yk_op *op) {
  if (!op->grad || !op->cases || (op->traits & (YK_NO_GRAD | YK_STATEFUL | YK_SOURCE))) return 0;
  for (const yk_port *p = op->in; p->name; p++)
    if (p->flags & YK_PORT_WRITE) return 0;
  return 1;
}

static int varies(const yk_op *op, const void *attrs, const opcase *c, uint16_t i) {
  const yk_port *port = yk__op_in_port(op, attrs, c->n, i);
  return port && (YK_FLOATS & YK_T(c->in[i].dtype)) && !(port->flags & (YK_PORT_NODIFF | YK_PORT_SHAPE));
}

static int by_product(const yk_op *op, uint16_t k) {
  uint16_t n = 0;
  while (op->out[n].name) n++;
  return k < n && (op->out[k].flags & YK_PORT_NODIFF);
}

/* Placeholders, the node, and values for all inputs; values[] are the caller's to free. */
static yk_code point_of(const yk_op *op, const yk_case *c, const opcase *shapes, gradcheck_point *p, double **values) {
  yk_value in[OPCASE_MOST], y;
  uint16_t nout = yk__op_nout(op, c->attrs);
  for (uint16_t i = 0; i < shapes->n; i++) {
    int64_t n = yk__desc_count(&shapes->in[i]);
    values[i] = calloc((size_t)n + 1, sizeof(double));
    opcase_fill(c, (yk_dtype)shapes->in[i].dtype, 11, i, values[i], n);
    in[i] = placeholder(p->g, &shapes->in[i]);
    if (varies(op, c->attrs, shapes, i)) {
      p->x[p->nx] = in[i];
      p->at[p->nx++] = values[i];
    } else {
      p->fixed[p->nfixed] = in[i];
      p->fixed_at[p->nfixed++] = values[i];
    }
  }
  y = yk_add_node(p->g, op, c->attrs, in, shapes->n, nout);
  for (uint16_t k = 0; k < nout && y.id; k++)
    if (!by_product(op, k)) p->y[p->ny++] = yk_output(p->g, y, k);
  return yk_graph_status(p->g);
}

static void free_point(gradcheck_point *p, double **values) {
  for (uint16_t i = 0; i < OPCASE_MOST; i++) free(values[i]);
  yk_graph_free(p->g);
}

static void check_case(const yk_op *op, const yk_case *c, int order, int only_first, gradcheck *out) {
  opcase shapes;
  double *values[OPCASE_MOST] = { NULL };
  gradcheck_point p = { .seed = 3 };
  char text[GRADCHECK_TEXT];
  *out = (gradcheck){ .verdict = GRADCHECK_PASS };
  if (opcase_parse(c->shapes, YK_F64, &shapes) != YK_OK || yk_graph_new(&p.g) != YK_OK) {
    failed(out, "%s", yk_error_message());
  } else if (point_of(op, c, &shapes, &p, values) != YK_OK) {
    failed(out, "%s", yk_error_message());
  } else if (p.nx == 0) {
    out->verdict = GRADCHECK_EMPTY;
  } else {
    if (only_first) p.ny = 1;
    gradcheck_run(&p, order, out);
  }
  /* Some ops differentiate only their first output; the others are by-products (statistics). */
  if (out->verdict == GRADCHECK_UNSUPPORTED && p.ny > 1 && !only_first) {
    free_point(&p, values);
    check_case(op, c, order, 1, out);
    return;
  }
  if (out->text[0]) {
    snprintf(text, sizeof text, "%s(%s), order %d: %.900s", op->name, c->shapes, order, out->text);
    memcpy(out->text, text, sizeof text);
  }
  free_point(&p, values);
}

void gradcheck_case(const yk_op *op, const yk_case *c, int order, gradcheck *out) { check_case(op, c, order, 0, out); }
