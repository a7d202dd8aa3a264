/*
 * rehearse.c - devices that are not here, to plan for.
 *
 * Each is opened as a stand-in: a driver that works on the host takes no memory until it is asked for some, and nobody
 * asks, so hardware of any size can be looked at on any machine. What a plan depends on - names, types, limits, which memories are
 * one - is as the file says; kernels, and the scratch memory they ask for, are those of the stand-in.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/machine.h"

/* The device's own driver, if it is built in and works on the host. */
static const yk_driver *own_driver(const char *name) {
  yk_dev_info info = { .size = sizeof info };
  const yk_driver *d = name[0] ? yk__driver_find(name) : NULL;
  if (d && d->info(0, &info) == YK_OK && info.bus[0] == '\0') return d;
  yk_error_clear();
  return NULL;
}

static yk_code open_one(yk_device *d, const yk_machine_device *m, const yk_driver *stand_in) {
  char text[YK__DEVICE_TEXT];
  d->spec = m->spec;
  snprintf(d->name, sizeof d->name, "%s", yk__device_text(&d->spec, text));
  int cpu = strcmp(m->spec.type, "CPU") == 0;
  d->driver = own_driver(m->driver);
  d->stand_in = d->driver == NULL && !(cpu && m->driver[0] == '\0');       /* a CPU that names none has the one that is here */
  if (d->driver == NULL) d->driver = stand_in;
  d->info.size = sizeof d->info;
  YK_TRY(d->driver->info(0, &d->info));
  snprintf(d->info.name, sizeof d->info.name, "%s", m->model);
  d->info.bytes_total = d->info.bytes_free = m->bytes_total;
  d->is_virtual = m->is_virtual != 0;
  d->own_memory = !cpu;
  d->total = m->bytes_total;
  d->limit = m->bytes_limit;
  d->parts = (uint16_t)m->parts;
  d->part = (uint16_t)m->part;
  d->config = (yk_dev_config){ .size = sizeof d->config, .first_core = (uint32_t)m->first_core, .ncores = (uint32_t)m->ncores };
  yk_dev_config here = { .size = sizeof here, .ncores = m->ncores ? (uint32_t)m->ncores : (uint32_t)yk__ncores() };
  return d->driver->open(0, &here, &d->dev);
}

yk_code yk__devices_rehearse(const yk_machine *m, const char *stand_in, yk_devices **out) {
  const yk_driver *driver = yk__driver_find(stand_in);
  if (!driver) return YK_ENOTFOUND;
  yk_devices *all = yk__calloc(1, sizeof *all);
  if (!all) return YK_ENOMEM;
  all->at = yk__calloc(m->n, sizeof *all->at);
  yk_code rc = all->at ? YK_OK : YK_ENOMEM;
  for (uint16_t i = 0; rc == YK_OK && i < m->n; i++) {
    all->at[i].index = i;
    rc = open_one(&all->at[i], &m->device[i], driver);
    if (rc != YK_OK) rc = yk__fail_prefix(rc, "%s", all->at[i].name);
    else all->n++;
  }
  if (rc != YK_OK) {
    yk__devices_close(all);
    return rc;
  }
  *out = all;
  return YK_OK;
}
