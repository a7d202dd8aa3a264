/*
 * cmd_config.c - `yoke config --dump`: the configuration in force, one line a setting.
 *
 * A setting that was changed says by whom: the environment variable stands there by name. With --json it is the array of
 * `yoke params --json`, so that scripts need to know one form only.
 */
#include <stdio.h>
#include <string.h>
#include "base/param.h"
#include "cli/cli.h"

/* "data.dir = \"\"", "cores = 4": text in quotes, so that an empty one is seen. */
static void put_line(const yk_param_info *p) {
  const char *value = yk__param(p->name), *origin = yk__origin_text(p->name), *quote = "";
  char shown[YK__MAX_VALUE + 64];
  if (strcmp(p->kind, "text") == 0 || strcmp(p->kind, "list") == 0) quote = "\"";
  snprintf(shown, sizeof shown, "%s = %s%s%s", p->name, quote, value, quote);
  printf("%-28s  # %s%s%s: %s\n", shown, origin, strcmp(origin, "environment") == 0 ? " " : "",
         strcmp(origin, "environment") == 0 ? p->env : "", p->doc);
}

int yk__cmd_config(const yk_cli *c) {
  size_t n;
  const yk_param_info *p = yk__param_all(&n);
  if (!c->dump) return yk__die(YK__EXIT_USAGE, "what about the configuration? yoke config --dump prints it");
  if (c->json) yk__params_json();
  for (size_t i = 0; i < n && !c->json; i++) put_line(&p[i]);
  return 0;
}
