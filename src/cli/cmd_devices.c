/*
 * cmd_devices.c - `yoke devices`: what a session on this machine would have, what that can do, and what runs on it.
 *
 * It asks a session over an empty graph, so the list is what training sees, with
 * all settings applied.
 */
#include <stdio.h>
#include <string.h>
#include "base/param.h"
#include "cli/cli.h"
#include "cli/devices.h"

static bool watches(const yk_cli *c) {
  return c->watch >= 0;
}

/* Of the views at most one; a machine that is not here is only listed. */
static int check_options(const yk_cli *c) {
  if (c->topology + c->bench + watches(c) > 1) return yk__die(YK__EXIT_USAGE, "--topology, --bench and --watch exclude each other");
  if (c->rehearse != NULL && (c->topology || c->bench || watches(c)))
    return yk__die(YK__EXIT_USAGE, "--rehearse and %s exclude each other: nothing can be measured there",
                   c->topology ? "--topology" : c->bench ? "--bench" : "--watch");
  if (c->save != NULL && c->rehearse != NULL) return yk__die(YK__EXIT_USAGE, "--save and --rehearse exclude each other");
  if (c->count != 0 && !watches(c)) return yk__die(YK__EXIT_USAGE, "--count needs --watch");
  return 0;
}

/* The table, what runs under it, and where there is no GPU, whether that is so: the reason is for when the session is closed. */
static int list(yk_session *s, const yk_glance *now, bool *reason) {
  bool any = false;
  yk__devices_heading();
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) return yk__die_code(rc);
    yk__devices_line(&d);
    any |= strcmp(d.type, "GPU") == 0;
  }
  yk__devices_jobs(now);
  *reason = !any;
  return 0;
}

/* Of a machine that is only described nothing is seen. */
static int look(const yk_cli *c, yk_glance *now) {
  if (c->rehearse == NULL) return yk__glance(NULL, now);
  *now = (yk_glance){ .temperature = YK__UNKNOWN };
  return 0;
}

static int text(const yk_cli *c, const yk_session_options *options, yk_session *s, bool *reason) {
  yk_glance now;
  if (c->topology) return yk__devices_topology(s, NULL, c->save);
  if (c->bench) return yk__devices_bench(s, options, NULL, c->save);
  int status = look(c, &now);
  if (status == 0) status = list(s, &now, reason);
  yk__glance_free(&now);
  return status;
}

static int json(const yk_cli *c, const yk_session_options *options, yk_session *s) {
  yk_glance now;
  yk_json o = { 0 };
  int status = look(c, &now);
  if (status == 0) status = yk__devices_object(&o, s, &now);
  if (status == 0 && c->topology) status = yk__devices_topology(s, &o, c->save);
  if (status == 0 && c->bench) status = yk__devices_bench(s, options, &o, c->save);
  yk__json_close(&o, '}');
  if (status == 0 && !yk__json_flush(&o, stdout, NULL)) status = yk__die(YK__EXIT_RUN, "writing to the standard output failed");
  yk__str_free(&o.text);
  yk__glance_free(&now);
  return status;
}

int yk__cmd_devices(const yk_cli *c) {
  yk_session_options options;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  bool reason = false;
  int status = check_options(c);
  if (status == 0 && !c->bench && yk__param_set("board", "0") != YK_OK) status = yk__die_code(YK_ENOMEM);   /* looking is no job */
  if (status == 0) status = yk__session_settings(c, &options);
  if (status == 0) status = yk__probe(&options, &g, &s);
  if (status == 0 && c->save != NULL && !c->topology && !c->bench) status = yk__devices_save(s, c->save, NULL, NULL);
  if (status == 0 && watches(c)) status = yk__devices_watch(c, s);
  else if (status == 0) status = c->json ? json(c, &options, s) : text(c, &options, s, &reason);
  yk_session_close(s);
  yk_graph_free(g);
  if (status == 0 && reason && c->rehearse == NULL) yk__devices_reason();
  return status;
}
