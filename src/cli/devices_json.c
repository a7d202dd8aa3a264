/*
 * devices_json.c - `yoke devices --json`: one object, and in it one for each device.
 *
 * Names that are absent are empty texts; only a GPU has a number, "physical".
 */
#include <math.h>
#include <time.h>
#include "cli/devices.h"

void yk__devices_json(yk_json *o, const yk_device_info *d, const yk_device_memory *m, const yk_glance *now) {
  double busy = yk__busy_cores(now, d), warm = d->ncores > 0 ? now->temperature : YK__UNKNOWN;
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "name", d->name);
  yk__json_text(o, "type", d->type);
  yk__json_text(o, "model", d->model);
  yk__json_text(o, "driver", d->driver);
  yk__json_text(o, "bus", d->bus);
  yk__json_text(o, "uuid", d->uuid);
  if (d->physical >= 0) yk__json_int(o, "physical", d->physical);
  if (d->fast_types[0] != '\0') yk__json_text(o, "fast_types", d->fast_types);
  yk__json_bool(o, "virtual", d->is_virtual);
  yk__json_int(o, "first_core", d->first_core);
  yk__json_int(o, "cores", d->ncores);
  yk__json_memory(o, m);
  if (d->parts > 0) yk__json_int(o, "part", d->part);
  if (d->parts > 0) yk__json_int(o, "parts", d->parts);
  if (d->stand_in[0] != '\0') yk__json_text(o, "stand_in", d->stand_in);
  yk__json_real(o, "utilisation", busy > YK__UNKNOWN ? busy : (double)NAN);
  yk__json_real(o, "temperature", warm > YK__UNKNOWN ? warm : (double)NAN);
  yk__devices_processes_json(o, d, now);
  yk__json_close(o, '}');
}

int yk__devices_object(yk_json *o, yk_session *s, const yk_glance *now) {
  yk__json_open(o, NULL, '{');
  yk__json_int(o, "version", YK__DEVICES_VERSION);
  yk__json_int(o, "time", (int64_t)time(NULL));
  yk__json_real(o, "interval", now->before != NULL ? (double)(now->ns - now->before->ns) * 1e-9 : (double)NAN);
  yk__json_open(o, "devices", '[');
  for (size_t i = 0; i < yk_session_device_count(s); i++) {
    yk_device_info d;
    yk_device_memory m = YK_DEVICE_MEMORY_INIT;
    yk_code rc = yk_session_device(s, i, &d);
    if (rc == YK_OK) rc = yk_session_device_memory(s, i, &m);
    if (rc != YK_OK) return yk__die_code(rc);
    yk__devices_json(o, &d, &m, now);
  }
  yk__json_close(o, ']');
  yk__devices_jobs_json(o, now);
  return 0;
}
