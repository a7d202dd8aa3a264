/*
 * cmd_devices.c - `yoke devices`: what a session on this machine would have.
 *
 * It asks a session over an empty graph, so the list is what training sees, with
 * all settings applied.
 */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/devices.h"

int yk__cmd_devices(const yk_cli *c) {
  yk_session_options options;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_json o = { 0 };
  bool any = false;
  int status = yk__session_settings(c, &options);
  if (status == 0) status = yk__probe(&options, &g, &s);
  if (status != 0) return status;
  if (c->json) yk__json_open(&o, NULL, '[');
  else yk__devices_heading();
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) status = yk__die_code(rc);
    else if (c->json) yk__devices_json(&o, &d);
    else yk__devices_line(&d);
    any |= rc == YK_OK && strcmp(d.type, "GPU") == 0;
  }
  if (c->json) {
    yk__json_close(&o, ']');
    yk__json_flush(&o, stdout, NULL);
  }
  yk__str_free(&o.text);
  yk_session_close(s);
  yk_graph_free(g);
  if (status == 0 && !c->json && !any) yk__devices_reason();
  return status;
}
