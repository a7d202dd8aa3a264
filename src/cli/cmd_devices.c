/*
 * cmd_devices.c - `yoke devices`: what a session on this machine would have, and what that can do.
 *
 * It asks a session over an empty graph, so the list is what training sees, with
 * all settings applied.
 */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/devices.h"

/* Of the views at most one; a machine that is not here is only listed. */
static int check_options(const yk_cli *c) {
  if (c->topology && c->bench) return yk__die(YK__EXIT_USAGE, "--topology and --bench exclude each other");
  if (c->rehearse != NULL && (c->topology || c->bench))
    return yk__die(YK__EXIT_USAGE, "--rehearse and %s exclude each other: nothing can be measured there",
                   c->topology ? "--topology" : "--bench");
  if (c->save != NULL && c->rehearse != NULL) return yk__die(YK__EXIT_USAGE, "--save and --rehearse exclude each other");
  return 0;
}

static int list(yk_session *s, yk_json *o, bool *any) {
  if (o != NULL) yk__json_open(o, "devices", '[');
  else yk__devices_heading();
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) return yk__die_code(rc);
    if (o != NULL) yk__devices_json(o, &d);
    else yk__devices_line(&d);
    *any |= strcmp(d.type, "GPU") == 0;
  }
  if (o != NULL) yk__json_close(o, ']');
  return 0;
}

static bool plain(const yk_cli *c) {
  return !c->topology && !c->bench;
}

/* JSON has the list in any case; for people a view stands alone. */
static int show(const yk_cli *c, const yk_session_options *options, yk_session *s, yk_json *o, bool *any) {
  int status = o != NULL || plain(c) ? list(s, o, any) : 0;
  if (status == 0 && c->topology) status = yk__devices_topology(s, o, c->save);
  if (status == 0 && c->bench) status = yk__devices_bench(s, options, o, c->save);
  return status;
}

int yk__cmd_devices(const yk_cli *c) {
  yk_session_options options;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_json o = { 0 };
  bool any = false;                  /* a GPU */
  int status = check_options(c);
  if (status == 0) status = yk__session_settings(c, &options);
  if (status == 0) status = yk__probe(&options, &g, &s);
  if (status == 0 && c->save != NULL && plain(c)) status = yk__devices_save(s, c->save, NULL, NULL);
  if (status != 0) {
    yk_session_close(s);
    yk_graph_free(g);
    return status;
  }
  if (c->json) {
    yk__json_open(&o, NULL, '{');
    yk__json_int(&o, "version", YK__DEVICES_VERSION);
    status = show(c, &options, s, &o, &any);
    yk__json_close(&o, '}');
    if (status == 0 && !yk__json_flush(&o, stdout, NULL)) status = yk__die(YK__EXIT_RUN, "the JSON cannot be written");
  } else {
    status = show(c, &options, s, NULL, &any);
  }
  yk__str_free(&o.text);
  yk_session_close(s);
  yk_graph_free(g);
  if (status == 0 && plain(c) && !c->json && !any && c->rehearse == NULL) yk__devices_reason();
  return status;
}
