/*
 * cmd_doctor.c - `yoke doctor`: prints what src/doctor found out, and turns it into an exit status.
 *
 * Good verdicts take a line, the others tell everything. A GPU that does not work is no failure as long as the CPU does,
 * unless --require gpu says so.
 */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/json.h"
#include "device/device.h"
#include "doctor/doctor.h"

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void put_verdict(const yk_verdict *v) {
  printf("%-4s  %-13s  %s\n", yk__doctor_state_text(v->state), v->check, v->says);
  if (v->state == YK__GOOD) {
    printf("%21sfound %s; needed: %s\n", "", v->found, v->needed);
    return;
  }
  printf("%21slooked for  %s\n%21sin          %s\n%21sfound       %s\n", "", v->looked_for, "", v->where, "", v->found);
  printf("%21sneeded      %s\n%21snext        %s\n", "", v->needed, "", v->next);
}

static void put_text(const yk_doctor_report *r) {
  for (uint32_t i = 0; i < r->n; i++) put_verdict(&r->at[i]);
  printf("\n%s\n", r->summary);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static void put_checks(yk_json *o, const yk_doctor_report *r) {
  yk__json_open(o, "checks", '[');
  for (uint32_t i = 0; i < r->n; i++) {
    const yk_verdict *v = &r->at[i];
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "check", v->check);
    yk__json_text(o, "state", yk__doctor_state_text(v->state));
    yk__json_text(o, "says", v->says);
    yk__json_text(o, "looked_for", v->looked_for);
    yk__json_text(o, "where", v->where);
    yk__json_text(o, "found", v->found);
    yk__json_text(o, "needed", v->needed);
    yk__json_text(o, "next", v->next);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void put_devices(yk_json *o, const yk_doctor_report *r) {
  yk__json_open(o, "devices", '[');
  for (uint32_t i = 0; i < r->ndevices; i++) {
    const yk_doctor_device *d = &r->devices[i];
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "name", d->name);
    yk__json_text(o, "model", d->model);
    yk__json_bool(o, "virtual", d->is_virtual);
    yk__json_bool(o, "ok", d->ok);
    yk__json_open(o, "matmul", '[');
    for (int k = 0; k < 4; k++) yk__json_real(o, NULL, (double)d->result[k]);
    yk__json_close(o, ']');
    yk__json_text(o, "error", d->ok ? NULL : d->error);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void put_cards(yk_json *o, const yk_doctor_report *r) {
  char capability[32];
  yk__json_open(o, "cards", '[');
  for (uint32_t i = 0; i < r->ncards; i++) {
    const yk_doctor_card *c = &r->cards[i];
    snprintf(capability, sizeof capability, "%d.%d", c->major, c->minor);
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "name", c->name);
    yk__json_text(o, "bus", c->bus);
    yk__json_text(o, "compute_capability", capability);
    yk__json_int(o, "bytes", (int64_t)c->bytes);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void put_json(const yk_doctor_report *r) {
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "summary", r->summary);
  yk__json_bool(&o, "cpu_works", r->cpu_works);
  yk__json_bool(&o, "gpu_works", r->gpu_works);
  yk__json_bool(&o, "gpu_stack_fits", r->stack_fits);
  put_checks(&o, r);
  put_cards(&o, r);
  put_devices(&o, r);
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

/* ---- the command -------------------------------------------------------------------------------------------------- */

static int status_of(const yk_cli *c, const yk_doctor_report *r) {
  if (!r->cpu_works) return yk__die(YK__EXIT_RUN, "training does not work on the CPU; the verdict \"matmul\" tells why");
  if (c->require != NULL && !r->gpu_works) return yk__die(YK__EXIT_NO_GPU, "--require gpu: %s", r->summary);
  return YK__EXIT_OK;
}

int yk__cmd_doctor(const yk_cli *c) {
  yk_session_options session;
  yk_doctor_env env;
  yk_doctor_report r;
  yk_bump text = { 0 };
  if (c->require != NULL && strcmp(c->require, "gpu") != 0)
    return yk__die(YK__EXIT_USAGE, "--require '%s': expected gpu", yk__shown(c->require));
  int status = yk__session_settings(c, &session);
  if (status != 0) return status;
  yk_code rc = yk__doctor_env(&text, &env);
  if (rc == YK_OK) {
    const yk_driver *own = yk__driver_find("cuda");
    if (own == NULL) yk_error_clear();
    env.gpu_driver = own != NULL ? own->version : NULL;
    env.session = &session;
    rc = yk__doctor_run(&env, &r);
  }
  if (rc != YK_OK) {
    yk__bump_free(&text);
    return yk__die_code(rc);
  }
  if (c->json) put_json(&r);
  else put_text(&r);
  status = status_of(c, &r);
  yk__doctor_free(&r);
  yk__bump_free(&text);
  return status;
}
