/*
 * folder.c - the folder of a run: made before training, so that a run never ends in "cannot write".
 *
 * Files in it appear whole or not at all, except metrics.jsonl, which grows by whole lines.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/error.h"
#include "cli/metrics.h"
#include "store/disk.h"

/* A name that is new: two runs may start in the same second. */
static void default_name(const yk_cli *c, char folder[YK__PATH]) {
  char when[32] = "";
  time_t now = time(NULL);
  struct tm t;
  if (localtime_r(&now, &t) != NULL) strftime(when, sizeof when, "%Y%m%d-%H%M%S", &t);
  snprintf(folder, YK__PATH, "runs/%s-%s", c->model, when);
  for (int k = 2; k < 100 && access(folder, F_OK) == 0; k++) snprintf(folder, YK__PATH, "runs/%s-%s-%d", c->model, when, k);
}

int yk__folder_make(const yk_cli *c, char folder[YK__PATH]) {
  if (c->out != NULL) snprintf(folder, YK__PATH, "%s", c->out);
  else default_name(c, folder);
  return yk__disk_folders(folder) == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--out: %s", yk_error_message());
}

yk_code yk__folder_path(const char *folder, const char *name, char out[YK__PATH]) {
  if (snprintf(out, YK__PATH, "%s/%s", folder, name) < YK__PATH) return YK_OK;
  return YK_FAIL(EINVAL, "the path of '%s' is longer than %d bytes", name, YK__PATH);
}

yk_code yk__folder_write(const char *folder, const char *name, const char *text, size_t n) {
  char path[YK__PATH];
  YK_TRY(yk__folder_path(folder, name, path));
  return yk__disk_write(path, 1, &(yk_piece){ text, n });
}
