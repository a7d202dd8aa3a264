/*
 * cmd_params.c - `yoke params`: every setting, its value, and who set it.
 *
 * Printed from the registry itself, so the list cannot be out of date.
 */
#include <stdio.h>
#include "base/param.h"
#include "cli/cli.h"
#include "cli/json.h"

static const char *origin_text(yk_param_origin o) {
  return o == YK_FROM_ENV ? "environment" : o == YK_FROM_CALL ? "call" : "default";
}

int yk__cmd_params(const yk_cli *c) {
  size_t n;
  const yk_param_info *p = yk__param_all(&n);
  yk_json o = { 0 };
  if (c->json) yk__json_open(&o, NULL, '[');
  for (size_t i = 0; i < n; i++) {
    const char *value = yk__param(p[i].name), *origin = origin_text(yk__param_origin_of(p[i].name));
    if (!c->json) {
      printf("%-18s  %-20s  %s%s(%s, %s)\n    %s\n", p[i].name, p[i].env, value, value[0] != '\0' ? "  " : "", origin, p[i].kind,
             p[i].doc);
      continue;
    }
    yk__json_break(&o);
    yk__json_open(&o, NULL, '{');
    yk__json_text(&o, "name", p[i].name);
    yk__json_text(&o, "env", p[i].env);
    yk__json_text(&o, "kind", p[i].kind);
    yk__json_text(&o, "value", value);
    yk__json_text(&o, "default", p[i].dflt);
    yk__json_text(&o, "origin", origin);
    yk__json_text(&o, "doc", p[i].doc);
    yk__json_close(&o, '}');
  }
  if (c->json) {
    yk__json_close(&o, ']');
    yk__json_flush(&o, stdout, NULL);
  }
  yk__str_free(&o.text);
  return 0;
}
