/*
 * cmd_devices.c - `yoke devices`: what a session on this machine would have.
 *
 * It asks a session over an empty graph, so the list is what training sees, with
 * all settings applied.
 */
#include <stdio.h>
#include <string.h>
#include "base/param.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "device/libraries.h"

static void put_json(yk_json *o, const yk_device_info *d) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "name", d->name);
  yk__json_text(o, "type", d->type);
  yk__json_text(o, "model", d->model);
  yk__json_text(o, "driver", d->driver);
  yk__json_text(o, "bus", d->bus);
  yk__json_text(o, "uuid", d->uuid);
  if (d->physical >= 0) yk__json_int(o, "physical", d->physical);
  yk__json_bool(o, "virtual", d->is_virtual);
  yk__json_int(o, "first_core", d->first_core);
  yk__json_int(o, "cores", d->ncores);
  yk__json_int(o, "bytes_limit", (int64_t)d->bytes_limit);
  yk__json_close(o, '}');
}

static void put_line(const yk_device_info *d) {
  const char *name = strrchr(d->name, ':');
  char shown[24], cores[32] = "-";
  while (name != NULL && name > d->name && name[-1] != ':' && name[-1] != '/') name--;
  snprintf(shown, sizeof shown, "/%.21s", name != NULL ? name : d->name);
  for (char *p = shown; *p != '\0'; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
  if (d->ncores > 0) snprintf(cores, sizeof cores, "%u", d->ncores);
  printf("%-8s  %-7s  %5s  %9.2f GiB  %s", shown, d->driver, cores, (double)d->bytes_limit / 1073741824.0, d->model);
  if (d->is_virtual) printf(" (virtual GPU %d, %.12s)", (int)d->physical, d->uuid);
  else if (d->bus[0] != '\0') printf(", %s", d->bus);
  putchar('\n');
}

/* Under the table, where it shows no GPU: why. */
static void put_reason(void) {
  const char *hidden = yk__env("CUDA_VISIBLE_DEVICES"), *list = yk__param("visible_devices");
  char text[400];
  printf("no GPU: %s", yk__gpu_libraries(text, sizeof text));
  if (hidden != NULL) printf("; CUDA_VISIBLE_DEVICES is \"%s\"", yk__shown(hidden));
  if (list[0] != '\0') printf("; visible_devices is \"%s\"", yk__shown(list));
  putchar('\n');
}

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
  else printf("%-8s  %-7s  %5s  %13s  %s\n", "device", "driver", "cores", "memory", "model");
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) status = yk__die_code(rc);
    else if (c->json) put_json(&o, &d);
    else put_line(&d);
    any |= rc == YK_OK && strcmp(d.type, "GPU") == 0;
  }
  if (c->json) {
    yk__json_close(&o, ']');
    yk__json_flush(&o, stdout, NULL);
  }
  yk__str_free(&o.text);
  yk_session_close(s);
  yk_graph_free(g);
  if (status == 0 && !c->json && !any) put_reason();
  return status;
}
