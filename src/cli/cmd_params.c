/*
 * cmd_params.c - `yoke params`: every setting, its value, and who set it.
 *
 * Printed from the registry itself, so the list cannot be out of date.
 */
#include <stdio.h>
#include "base/param.h"
#include "cli/cli.h"
#include "cli/json.h"

const char *yk__origin_text(const char *name) {
  yk_param_origin o = yk__param_origin_of(name);
  return o == YK_FROM_ENV ? "environment" : o == YK_FROM_CALL ? "call" : "default";
}

void yk__params_json(void) {
  size_t n;
  const yk_param_info *p = yk__param_all(&n);
  yk_json o = { 0 };
  yk__json_open(&o, NULL, '[');
  for (size_t i = 0; i < n; i++) {
    yk__json_break(&o);
    yk__json_open(&o, NULL, '{');
    yk__json_text(&o, "name", p[i].name);
    yk__json_text(&o, "env", p[i].env);
    yk__json_text(&o, "kind", p[i].kind);
    yk__json_text(&o, "value", yk__param(p[i].name));
    yk__json_text(&o, "default", p[i].dflt);
    yk__json_text(&o, "origin", yk__origin_text(p[i].name));
    yk__json_text(&o, "doc", p[i].doc);
    yk__json_close(&o, '}');
  }
  yk__json_close(&o, ']');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

int yk__cmd_params(const yk_cli *c) {
  size_t n;
  const yk_param_info *p = yk__param_all(&n);
  if (c->json) {
    yk__params_json();
    return 0;
  }
  for (size_t i = 0; i < n; i++) {
    const char *value = yk__param(p[i].name);
    printf("%-18s  %-20s  %s%s(%s, %s)\n    %s\n", p[i].name, p[i].env, value, value[0] != '\0' ? "  " : "",
           yk__origin_text(p[i].name), p[i].kind, p[i].doc);
  }
  return 0;
}
