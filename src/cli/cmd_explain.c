/*
 * cmd_explain.c - `yoke explain MODEL`: the compiled training step as text.
 *
 * The plan depends on shapes and devices only, so no data is read: blank pictures
 * stand for it.
 */
#include <stdio.h>
#include "cli/cli.h"

static int explain(const yk_cli *c, yk_job *j) {
  char *text = NULL;
  int status = yk__job_model(c, j);
  if (status == 0) status = yk__job_blank(j);
  if (status == 0) status = yk__job_build(c, j);
  if (status != 0) return status;
  yk_value fetch[2] = { j->towers.loss, j->towers.accuracy };
  yk_code rc = yk_session_open(j->graph, &j->devices.session, &j->session);
  if (rc == YK_OK) rc = yk_session_explain(j->session, 0, NULL, 2, fetch, 1, &j->towers.train, &text);
  if (rc == YK_OK && c->log_device_placement) {
    char *placement = NULL;
    rc = yk_session_placement(j->session, &placement);
    if (rc == YK_OK) fputs(placement, stdout);
    yk_free(placement);
  }
  if (rc == YK_OK) fputs(text, stdout);
  yk_free(text);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

int yk__cmd_explain(const yk_cli *c) {
  yk_job j = { 0 };
  int status = explain(c, &j);
  yk__job_free(&j);
  return status;
}
