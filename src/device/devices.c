/*
 * devices.c - opening the devices of a session and sharing the host's cores among them.
 *
 * Requests name a type and a driver; what comes out are devices with full names, a memory limit and a share of the
 * cores. Devices that compute at the same time get disjoint shares, so that their teams never fight.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"

static int is_host(const yk_device *d) { return d->info.bus[0] == '\0'; }
static int is_type(const yk_device *d, const char *type) { return strcmp(d->spec.type, type) == 0; }

/* What is known of a device before it is opened: name, driver, limit, and the driver's own description. */
static yk_code describe(yk_device *d, const yk_device_request *r, uint16_t i) {
  const char *driver = r->driver ? r->driver : "cpu";
  d->driver = yk__driver_find(driver);
  if (!d->driver) return yk__fail_prefix(YK_ENOTFOUND, "device type %s", r->type);
  d->spec = (yk_device_spec){ .replica = 0, .task = 0, .id = d->spec.id };
  snprintf(d->spec.job, sizeof d->spec.job, "localhost");
  snprintf(d->spec.type, sizeof d->spec.type, "%s", r->type);
  char text[YK__DEVICE_TEXT];
  snprintf(d->name, sizeof d->name, "%s", yk__device_text(&d->spec, text));
  uint32_t ordinals = 0;
  d->info.size = sizeof d->info;
  YK_TRY(d->driver->count(&ordinals));
  if (ordinals == 0) return YK_FAIL(ENOTFOUND, "%s: driver '%s' finds no device on this machine", d->name, driver);
  YK_TRY(d->driver->info(0, &d->info));
  if (!is_host(d)) {
    if (i >= ordinals)
      return YK_FAIL(ENOTFOUND, "%s: %u devices asked of driver '%s', it has %u", d->name, (unsigned)r->count, driver,
                     (unsigned)ordinals);
    YK_TRY(d->driver->info(i, &d->info));
    d->ordinal = i;
  }
  d->is_virtual = r->is_virtual;
  d->limit = r->limit ? r->limit : r->is_virtual ? d->info.bytes_total / 4 : d->info.bytes_total;
  d->config.size = sizeof d->config;
  return YK_OK;
}

/* Cores of the i-th of n devices that work at the same time: parts as even as can be; one core each, round and
 * round, if there are more devices than cores. */
static void share_cores(yk_dev_config *c, uint32_t i, uint32_t n, uint32_t total) {
  uint32_t real = (uint32_t)yk__ncores();
  if (n > total) {
    c->first_core = i % total;
    c->ncores = 1;
    c->pin = 0;
    return;
  }
  uint32_t each = total / n, more = total % n;
  c->first_core = i * each + (i < more ? i : more);
  c->ncores = each + (i < more);
  c->pin = c->ncores < real && total <= real;         /* binding to everything, or to what is not there, helps nobody */
}

static void assign_cores(yk_devices *all, uint32_t total) {
  uint32_t ngpu = 0, ncpu = 0, gpu = 0, cpu = 0;
  for (uint16_t i = 0; i < all->n; i++) {
    if (!is_host(&all->at[i])) continue;
    if (is_type(&all->at[i], "GPU")) ngpu++;
    else ncpu++;
  }
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i];
    if (!is_host(d)) continue;
    if (is_type(d, "GPU")) share_cores(&d->config, gpu++, ngpu, total);
    else if (ngpu == 0) share_cores(&d->config, cpu++, ncpu, total);
    else share_cores(&d->config, 0, 1, total);
    if (!is_type(d, "GPU") && ngpu > 1) d->config.stream_cores = 1;     /* the others work at that time */
  }
}

/* Where the only virtual GPU has the same cores as the CPU device, one thread serves both. */
static void share_streams(yk_devices *all) {
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i], *gpu = NULL;
    uint32_t ngpu = 0;
    for (uint16_t k = 0; k < all->n; k++) {
      if (!is_type(&all->at[k], "GPU")) continue;
      gpu = &all->at[k];
      ngpu++;
    }
    if (ngpu != 1 || d == gpu || !is_host(d) || !is_host(gpu) || d->driver != gpu->driver) continue;
    if (d->config.first_core == gpu->config.first_core && d->config.ncores == gpu->config.ncores) d->stream_of = gpu;
  }
}

static yk_code check_requests(uint16_t nrequests, const yk_device_request *requests, uint32_t *total) {
  *total = 0;
  for (uint16_t i = 0; i < nrequests; i++) {
    const yk_device_request *r = &requests[i];
    if (!r->type || !r->type[0] || strlen(r->type) >= YK__TYPE_BYTES)
      return YK_FAIL(EINVAL, "device request %u: its type must have 1 to %d letters", (unsigned)i, YK__TYPE_BYTES - 1);
    *total += r->count;
  }
  if (*total == 0) return YK_FAIL(EINVAL, "a session needs at least one device");
  if (*total > UINT16_MAX) return YK_FAIL(EINVAL, "%u devices asked for, at most %d are possible", (unsigned)*total, UINT16_MAX);
  return YK_OK;
}

/* Ids count up within a type, over all groups in order. */
static int32_t next_id(const yk_devices *all, const char *type) {
  int32_t id = 0;
  for (uint16_t i = 0; i < all->n; i++) id += is_type(&all->at[i], type);
  return id;
}

static yk_code open_all(yk_devices *all, uint16_t nrequests, const yk_device_request *requests, uint32_t cores) {
  for (uint16_t i = 0; i < nrequests; i++) {
    for (uint16_t k = 0; k < requests[i].count; k++) {
      yk_device *d = &all->at[all->n];
      d->index = all->n;
      d->spec.id = next_id(all, requests[i].type);
      YK_TRY(describe(d, &requests[i], k));
      all->n++;
    }
  }
  assign_cores(all, cores);
  share_streams(all);
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i];
    yk_code rc = d->driver->open(d->ordinal, &d->config, &d->dev);
    if (rc != YK_OK) return yk__fail_prefix(rc, "%s", d->name);
  }
  return YK_OK;
}

yk_code yk__devices_open(uint16_t nrequests, const yk_device_request *requests, int cores, yk_devices **out) {
  if (cores < 0) return YK_FAIL(EINVAL, "%d host cores; 0 means all", cores);
  uint32_t total;
  YK_TRY(check_requests(nrequests, requests, &total));
  yk_devices *all = yk__calloc(1, sizeof *all);
  if (!all) return YK_ENOMEM;
  all->at = yk__calloc(total, sizeof *all->at);
  yk_code rc = all->at ? open_all(all, nrequests, requests, (uint32_t)(cores ? cores : yk__ncores())) : YK_ENOMEM;
  if (rc != YK_OK) {
    yk__devices_close(all);
    return rc;
  }
  *out = all;
  return YK_OK;
}

void yk__devices_close(yk_devices *all) {
  if (!all) return;
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i];
    if (!d->dev) continue;
    d->driver->stream_close(atomic_load(&d->stream));
    d->driver->close(d->dev);
  }
  yk__free(all->kernels);
  yk__free(all->at);
  yk__free(all);
}

yk_code yk__device_stream(yk_device *d, yk_stream **out) {
  if (d->stream_of) d = d->stream_of;
  yk_stream *stream = atomic_load(&d->stream);
  if (!stream) {
    yk_stream *mine, *none = NULL;
    yk_code rc = d->driver->stream_open(d->dev, 0, &mine);
    if (rc != YK_OK) return yk__fail_prefix(rc, "%s", d->name);
    stream = mine;
    if (!atomic_compare_exchange_strong(&d->stream, &none, mine)) {      /* another thread was first */
      d->driver->stream_close(mine);
      stream = none;
    }
  }
  *out = stream;
  return YK_OK;
}

int yk__device_same_memory(const yk_device *a, const yk_device *b) {
  return a == b || (a->driver == b->driver && is_host(a) && is_host(b) && !a->is_virtual && !b->is_virtual);
}

char *yk__devices_text(const yk_devices *all, char *buf, size_t n) {
  size_t used = 0;
  if (n) buf[0] = '\0';
  for (uint16_t i = 0; i < all->n && used < n; i++) {
    int wrote = snprintf(buf + used, n - used, "%s%s", i ? ", " : "", all->at[i].name);
    if (wrote > 0) used += (size_t)wrote;
  }
  return buf;
}
