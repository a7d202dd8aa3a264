/*
 * cmd_explain.c - `yoke explain MODEL`: the compiled training step as text.
 *
 * The plan depends on shapes and devices only, so no data is read: blank pictures
 * stand for it, and with --rehearse the devices of a file stand for those of this machine.
 */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"

/* What the step would take of each device. It fails if the step does not fit, with the verdict, which is the last line. */
static int rehearse(yk_job *j, size_t nfetch, const yk_value *fetch) {
  char *text = NULL;
  bool fits = false;
  yk_code rc = yk_session_rehearse(j->session, 0, NULL, nfetch, fetch, 1, &j->towers.train, &fits, NULL, &text);
  if (rc != YK_OK) return yk__die_code(rc);
  fputs(text, stdout);
  size_t n = strlen(text);
  char *last = text + n;
  if (n > 0 && last[-1] == '\n') *--last = '\0';
  while (last > text && last[-1] != '\n') last--;
  int status = fits ? 0 : yk__die(YK__EXIT_RUN, "%s", last);
  yk_free(text);
  return status;
}

static int explain(const yk_cli *c, yk_job *j) {
  char *text = NULL;
  int status = yk__job_model(c, j);
  if (status == 0) status = yk__job_blank(j);
  if (status == 0) status = yk__job_build(c, j);
  if (status != 0) return status;
  yk_value fetch[YK__MOST_FETCHES];
  size_t n = yk__job_fetches(j, fetch);
  yk_code rc = yk_session_open(j->graph, &j->devices.session, &j->session);
  if (rc == YK_OK) rc = yk_session_explain(j->session, 0, NULL, n, fetch, 1, &j->towers.train, &text);
  if (rc == YK_OK && c->log_device_placement) {
    char *placement = NULL;
    rc = yk_session_placement(j->session, &placement);
    if (rc == YK_OK) fputs(placement, stdout);
    yk_free(placement);
  }
  if (rc == YK_OK) fputs(text, stdout);
  yk_free(text);
  if (rc != YK_OK) return yk__die_code(rc);
  return c->rehearse != NULL ? rehearse(j, n, fetch) : 0;
}

int yk__cmd_explain(const yk_cli *c) {
  yk_job j = { 0 };
  int status = explain(c, &j);
  yk__job_free(&j);
  return status;
}
