/*
 * devices_table.c - `yoke devices`: the table for people, one line a device.
 *
 * Where it shows no GPU, the line under it tells why.
 */
#include <stdio.h>
#include <string.h>
#include "base/param.h"
#include "cli/cli.h"
#include "cli/devices.h"
#include "device/libraries.h"

void yk__devices_heading(void) {
  printf("%-8s  %-7s  %5s  %13s  %s\n", "device", "driver", "cores", "memory", "model");
}

void yk__devices_line(const yk_device_info *d) {
  const char *name = strrchr(d->name, ':');
  char shown[24], cores[32] = "-";
  while (name != NULL && name > d->name && name[-1] != ':' && name[-1] != '/') name--;
  snprintf(shown, sizeof shown, "/%.21s", name != NULL ? name : d->name);
  for (char *p = shown; *p != '\0'; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
  if (d->ncores > 0) snprintf(cores, sizeof cores, "%u", d->ncores);
  printf("%-8s  %-7s  %5s  %9.2f GiB  %s", shown, d->driver, cores, (double)d->bytes_limit / 1073741824.0, d->model);
  if (d->is_virtual) printf(" (virtual GPU %d, %.12s)", (int)d->physical, d->uuid);
  else if (d->bus[0] != '\0') printf(", %s", d->bus);
  if (d->fast_types[0] != '\0' && strcmp(d->fast_types, "none") != 0) printf(", fast in %s", d->fast_types);
  if (d->parts > 0) printf(", part %u of %u", (unsigned)d->part + 1, (unsigned)d->parts);
  if (d->stand_in[0] != '\0') printf(", not here: %s stands in", d->stand_in);
  putchar('\n');
}

void yk__devices_reason(void) {
  const char *hidden = yk__env("CUDA_VISIBLE_DEVICES"), *list = yk__param("visible_devices");
  char text[400];
  printf("no GPU: %s", yk__gpu_libraries(text, sizeof text));
  if (hidden != NULL) printf("; CUDA_VISIBLE_DEVICES is \"%s\"", yk__shown(hidden));
  if (list[0] != '\0') printf("; visible_devices is \"%s\"", yk__shown(list));
  putchar('\n');
}
