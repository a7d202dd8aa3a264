/*
 * cmd_verify.c - `yoke verify MODEL --devices LIST`: is it the same computation on several devices as on one?
 *
 * The user's own network, data, batch, seed and optimizer, for a few steps. What is compared and how it is judged is in
 * measure/verify.h; the exit status says the verdict.
 */
#include <math.h>
#include <stdio.h>
#include "cli/cli.h"
#include "cli/json.h"
#include "measure/verify.h"

enum { STEPS = 3, NAME = 52 };

/* bf16 has 8 bits and f16 has 11: see docs/plan.md for what of their rounding is left. */
static double tolerance_of(yk_dtype precision) { return precision == YK_BF16 ? 0x1p-6 : precision == YK_F16 ? 0x1p-9 : 1e-5; }

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void put_table(const char *title, size_t n, const yk_difference *d) {
  if (n == 0) return;
  printf("  %-*s %12s %12s\n", NAME, title, "largest", "relative");
  for (size_t i = 0; i < n; i++)
    printf("  %-*.*s %12.3g %12.3g%s\n", NAME, NAME, d[i].name, d[i].absolute, d[i].relative, d[i].good ? "" : "  DIFFERS");
}

static void put_comparison(const yk_comparison *c) {
  if (!c->made) {
    printf("against %s: not compared, %s\n", c->what, c->why);
    return;
  }
  printf("against %s: %s\n", c->what, c->good ? "the same" : "NOT THE SAME");
  for (int64_t i = 0; i < c->steps; i++)
    printf("  loss of step %lld: %.9g, reference %.9g\n", (long long)i + 1, c->loss[i], c->reference[i]);
  put_table("gradients of the first step", c->ngradients, c->gradient);
  put_table("values after the last step", c->nvariables, c->variable);
}

static void put_text(const yk_job *j, const yk_verify_job *v, const yk_verdict *r) {
  size_t n = j->replicas;
  char names[YK__MAX_CHOSEN * 12];
  yk__job_devices(j, names, sizeof names);
  printf("%s on %s: global batch %lld", j->model->name, names, (long long)j->batch);
  for (size_t i = 0; i < n && n > 1; i++) printf(" %s %lld", i == 0 ? "=" : "+", (long long)yk_replica_share(j->batch, n, i));
  if (j->precision != YK_F32) printf("; in %s", yk_dtype_name(j->precision));
  printf("; %lld steps, tolerance %g of each tensor's largest value\n", (long long)v->steps, v->tolerance);
  put_comparison(&r->replicas);
  put_comparison(&r->whole);
  if (r->adaptive)
    printf("values under an adaptive optimizer are judged by norms: rounding of a gradient near 0 can turn a whole step of one element\n");
  printf("%s\n", r->text);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void json_differences(yk_json *o, const char *key, size_t n, const yk_difference *d) {
  yk__json_open(o, key, '[');
  for (size_t i = 0; i < n; i++) {
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "name", d[i].name);
    yk__json_real(o, "absolute", d[i].absolute);
    yk__json_real(o, "relative", d[i].relative);
    yk__json_real(o, "scale", d[i].scale);
    yk__json_bool(o, "good", d[i].good);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void json_comparison(yk_json *o, const yk_comparison *c) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "against", c->what);
  yk__json_bool(o, "made", c->made);
  yk__json_text(o, "why_not", c->made ? NULL : c->why);
  yk__json_bool(o, "good", c->good);
  yk__json_open(o, "loss", '[');
  for (int64_t i = 0; i < c->steps; i++) yk__json_real(o, NULL, c->loss[i]);
  yk__json_close(o, ']');
  yk__json_open(o, "reference", '[');
  for (int64_t i = 0; i < c->steps; i++) yk__json_real(o, NULL, c->reference[i]);
  yk__json_close(o, ']');
  json_differences(o, "gradients", c->ngradients, c->gradient);
  json_differences(o, "values", c->nvariables, c->variable);
  yk__json_close(o, '}');
}

static void put_json(const yk_job *j, const yk_verify_job *v, const yk_verdict *r) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_job(&o, j);
  yk__json_int(&o, "steps", v->steps);
  yk__json_real(&o, "tolerance", v->tolerance);
  yk__json_bool(&o, "verified", r->good);
  yk__json_text(&o, "verdict", r->text);
  yk__json_open(&o, "comparisons", '[');
  json_comparison(&o, &r->replicas);
  json_comparison(&o, &r->whole);
  yk__json_close(&o, ']');
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

/* ---- the command -------------------------------------------------------------------------------------------------- */

static int run(const yk_cli *c, yk_job *j) {
  yk_verdict r;
  int status = yk__job_model(c, j);
  if (status == 0 && c->steps > YK__VERIFY_STEPS)
    status = yk__die(YK__EXIT_USAGE, "--steps '%lld': expected at most %d to verify", (long long)c->steps, YK__VERIFY_STEPS);
  if (status == 0 && (size_t)j->batch < j->replicas)
    status = yk__die(YK__EXIT_USAGE, "--batch %lld is less than one example for each of %zu replicas", (long long)j->batch, j->replicas);
  if (status == 0) status = yk__job_data(c, j, true, false);
  if (status != 0) return status;
  yk_verify_job v = { .towers = yk__job_towers(c, j), .data = j->train, .queue = yk__job_queue(c, j), .session = j->devices.session,
                      .seed = (uint64_t)yk__job_seed(c), .rate = j->base_rate, .steps = c->steps > 0 ? c->steps : STEPS,
                      .tolerance = c->tolerance >= 0 ? c->tolerance : tolerance_of(j->precision) };
  yk_code rc = yk__verify(&v, &r);
  if (rc != YK_OK) return yk__die_code(rc);
  if (c->json) put_json(j, &v, &r);
  else put_text(j, &v, &r);
  status = r.good ? 0 : yk__die(YK__EXIT_RUN, "%s", r.text);
  yk__verdict_free(&r);
  return status;
}

int yk__cmd_verify(const yk_cli *c) {
  yk_job j = { 0 };
  int status = run(c, &j);
  yk__job_free(&j);
  return status;
}
