/*
 * devices_json.c - `yoke devices --json`: one device as one object.
 *
 * Names that are absent are empty texts; only a GPU has a number, "physical".
 */
#include "cli/devices.h"

void yk__devices_json(yk_json *o, const yk_device_info *d) {
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
  if (d->parts > 0) yk__json_int(o, "part", d->part);
  if (d->parts > 0) yk__json_int(o, "parts", d->parts);
  if (d->stand_in[0] != '\0') yk__json_text(o, "stand_in", d->stand_in);
  yk__json_close(o, '}');
}
