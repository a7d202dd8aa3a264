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
#include "device/board.h"

static int is_host(const yk_device *d) { return d->info.bus[0] == '\0'; }
static int is_type(const yk_device *d, const char *type) { return strcmp(d->spec.type, type) == 0; }

/* Name and number; ids count up within a type, over all groups in order. */
static void name_device(yk_device *d, const char *type, int32_t id) {
  char text[YK__DEVICE_TEXT];
  d->spec = (yk_device_spec){ .replica = 0, .task = 0, .id = id };
  snprintf(d->spec.job, sizeof d->spec.job, "localhost");
  snprintf(d->spec.type, sizeof d->spec.type, "%s", type);
  snprintf(d->name, sizeof d->name, "%s", yk__device_text(&d->spec, text));
}

/* What may be taken of d->total. A card that nobody limits is not taken to the last byte: other programs draw on it. */
static void set_limit(yk_device *d, const yk_device_request *r) {
  uint64_t whole = r->is_virtual || is_host(d) || r->nparts > 0 ? d->total : yk__memory_whole(&d->info);
  if (r->limit) d->limit = r->limit < d->total ? r->limit : d->total;
  else d->limit = r->fraction > 0 ? (uint64_t)(r->fraction * (double)d->total) : whole;
}

/* What is known of the k-th device of a group before it is opened: driver, limit, and the driver's own description. */
static yk_code describe(yk_device *d, const yk_device_request *r, uint16_t k) {
  const char *driver = r->table ? r->table->name : r->driver ? r->driver : "cpu";
  d->driver = r->table ? r->table : yk__driver_find(driver);
  if (!d->driver) return yk__fail_prefix(YK_ENOTFOUND, "device type %s", r->type);
  uint32_t ordinals = 0;
  d->info.size = sizeof d->info;
  YK_TRY(d->driver->count(&ordinals));
  if (ordinals == 0) return YK_FAIL(ENOTFOUND, "%s: driver '%s' finds no device on this machine", d->name, driver);
  YK_TRY(d->driver->info(0, &d->info));
  if (!is_host(d)) {
    d->ordinal = r->ordinal + k;
    if (d->ordinal >= ordinals)
      return YK_FAIL(ENOTFOUND, "%s: %u devices asked of driver '%s', it has %u", d->name, (unsigned)r->ordinal + r->count,
                     driver, (unsigned)ordinals);
    YK_TRY(d->driver->info(d->ordinal, &d->info));
  }
  d->is_virtual = r->is_virtual;
  d->own_memory = r->is_virtual || r->nparts > 0;
  d->growth = r->growth;
  d->number = r->numbers ? r->numbers[k] : (uint16_t)d->spec.id;
  d->total = r->total ? r->total : r->is_virtual ? d->info.bytes_total / 4 : d->info.bytes_total;
  set_limit(d, r);
  d->config = (yk_dev_config){ .size = sizeof d->config, .ncores = r->cores };
  return YK_OK;
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

/* Cores of the i-th of n devices that work at the same time: parts of `total` cores from `first` on, as even as can be; one core
 * each, round and round, if there are more devices than cores. */
static void share_cores(yk_dev_config *c, uint32_t i, uint32_t n, uint32_t first, uint32_t total) {
  uint32_t real = (uint32_t)yk__ncores();
  if (n > total) {
    c->first_core = first + i % total;
    c->ncores = 1;
    c->pin = 0;
    return;
  }
  uint32_t each = total / n, more = total % n;
  c->first_core = first + i * each + (i < more ? i : more);
  c->ncores = each + (i < more);
  c->pin = c->ncores < real && first + total <= real;  /* binding to everything, or to what is not there, helps nobody */
}

/* Those that name a number get it first; returns how many cores that leaves untouched at the end. */
static uint32_t give_asked(yk_devices *all, uint32_t total) {
  uint32_t real = (uint32_t)yk__ncores(), next = 0;
  uint64_t asked = 0;
  for (uint16_t i = 0; i < all->n; i++)
    if (!all->at[i].part_of) asked += all->at[i].config.ncores;
  for (uint16_t i = 0; i < all->n; i++) {
    yk_dev_config *c = &all->at[i].config;
    if (all->at[i].part_of || c->ncores == 0) continue;
    if (next + c->ncores > total) next = 0;
    c->first_core = next;
    c->pin = asked <= total && c->ncores < real && total <= real;
    next += c->ncores;
  }
  return asked < total ? total - (uint32_t)asked : 0;
}

static void assign_cores(yk_devices *all, uint32_t total) {
  uint32_t ngpu = 0, neven = 0, ncpu = 0, gpu = 0, cpu = 0;
  for (uint16_t i = 0; i < all->n; i++) {
    const yk_device *d = &all->at[i];
    if (!is_host(d) || d->part_of) continue;
    if (is_type(d, "GPU")) ngpu++, neven += d->config.ncores == 0;
    else ncpu++;
  }
  uint32_t left = give_asked(all, total), first = total - left;
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i];
    if (d->part_of) d->config = d->part_of->config;
    if (!is_host(d) || d->part_of) continue;
    if (is_type(d, "GPU") && d->config.ncores > 0) continue;
    if (is_type(d, "GPU") && left > 0) share_cores(&d->config, gpu++, neven, first, left);
    else if (is_type(d, "GPU")) share_cores(&d->config, gpu++, UINT32_MAX, 0, total);
    else if (ngpu == 0) share_cores(&d->config, cpu++, ncpu, 0, total);
    else share_cores(&d->config, 0, 1, 0, total);
    if (!is_type(d, "GPU") && ngpu > 1) d->config.stream_cores = 1;     /* the others work at that time */
  }
}

/* Where the only virtual GPU has the same cores as the CPU device, one thread serves both, and so it is for the parts of one. */
static void share_streams(yk_devices *all) {
  yk_device *gpu = NULL;
  uint32_t ngpu = 0;
  for (uint16_t k = 0; k < all->n; k++) {
    yk_device *d = &all->at[k];
    if (d->part_of && is_host(d)) d->stream_of = d->part_of;
    if (d->part_of || !is_type(d, "GPU")) continue;
    gpu = d;
    ngpu++;
  }
  for (uint16_t i = 0; i < all->n && ngpu == 1; i++) {
    yk_device *d = &all->at[i];
    if (d == gpu || d->part_of || !is_host(d) || !is_host(gpu) || d->driver != gpu->driver) continue;
    if (d->config.first_core == gpu->config.first_core && d->config.ncores == gpu->config.ncores) d->stream_of = gpu;
  }
}

static yk_code check_requests(uint16_t nrequests, const yk_device_request *requests, uint32_t cores, uint32_t *total) {
  uint64_t n = 0;
  for (uint16_t i = 0; i < nrequests; i++) {
    const yk_device_request *r = &requests[i];
    if (!r->type || !r->type[0] || strlen(r->type) >= YK__TYPE_BYTES)
      return YK_FAIL(EINVAL, "device request %u: its type must have 1 to %d letters", (unsigned)i, YK__TYPE_BYTES - 1);
    if (r->cores > cores)
      return YK_FAIL(EINVAL, "device type %s: %u cores each are asked for, there are %u", r->type, (unsigned)r->cores,
                     (unsigned)cores);
    if (!(r->fraction >= 0 && r->fraction <= 1) || (r->fraction > 0 && r->limit > 0))
      return YK_FAIL(EINVAL, "device request %u: fraction %g and limit %llu; expected one of them, a fraction of at most 1",
                     (unsigned)i, r->fraction, (unsigned long long)r->limit);
    n += (uint64_t)r->count * (r->nparts ? r->nparts : 1u);
  }
  if (n == 0) return YK_FAIL(EINVAL, "a session needs at least one device");
  if (n > UINT16_MAX)
    return YK_FAIL(EINVAL, "%llu devices asked for, at most %d are possible", (unsigned long long)n, UINT16_MAX);
  *total = (uint32_t)n;
  return YK_OK;
}

static int32_t next_id(const yk_devices *all, const char *type) {
  int32_t id = 0;
  for (uint16_t i = 0; i < all->n; i++) id += is_type(&all->at[i], type);
  return id;
}

/* The whole device `d` becomes the first of its parts, the others come behind it. */
static yk_code split(yk_devices *all, yk_device *d, const yk_device_request *r) {
  uint64_t sum = 0;
  int over = 0;
  for (uint16_t p = 0; p < r->nparts; p++) over |= __builtin_add_overflow(sum, r->part[p], &sum);
  if (over || sum > d->total)
    return YK_FAIL(EINVAL, "%s is to be split into %u parts of together %llu bytes, but has %llu", d->name, (unsigned)r->nparts,
                   (unsigned long long)(over ? UINT64_MAX : sum), (unsigned long long)d->total);
  for (uint16_t p = 0; p < r->nparts; p++) {
    yk_device *part = p ? &all->at[all->n++] : d;
    if (p) {
      part->index = (uint16_t)(part - all->at);
      name_device(part, r->type, d->spec.id + p);
      part->driver = d->driver;
      part->ordinal = d->ordinal;
      part->info = d->info;
      part->is_virtual = d->is_virtual;
      part->own_memory = 1;
      part->growth = d->growth;
      part->number = d->number;
      part->part_of = d;
    }
    part->part = p;
    part->parts = r->nparts;
    part->total = r->part[p];
    set_limit(part, r);
  }
  return YK_OK;
}

static yk_code open_all(yk_devices *all, uint16_t nrequests, const yk_device_request *requests, uint32_t cores) {
  for (uint16_t i = 0; i < nrequests; i++) {
    int32_t id = requests[i].count ? next_id(all, requests[i].type) : 0;
    for (uint16_t k = 0; k < requests[i].count; k++) {
      yk_device *d = &all->at[all->n];
      d->index = all->n;
      name_device(d, requests[i].type, id);
      YK_TRY(describe(d, &requests[i], k));
      all->n++;
      YK_TRY(split(all, d, &requests[i]));
      id += requests[i].nparts ? requests[i].nparts : 1;
    }
  }
  assign_cores(all, cores);
  share_streams(all);
  for (uint16_t i = 0; i < all->n; i++) {
    yk_device *d = &all->at[i];
    yk_code rc = YK_OK;
    if (d->part_of) d->dev = d->part_of->dev;
    else rc = d->driver->open(d->ordinal, &d->config, &d->dev);
    if (rc != YK_OK) return yk__fail_prefix(rc, "%s", d->name);
    d->work = &all->work[i];
    YK_TRY(yk__device_pool_open(d));
  }
  return YK_OK;
}

yk_code yk__devices_open(uint16_t nrequests, const yk_device_request *requests, int cores, yk_devices **out) {
  if (cores < 0) return YK_FAIL(EINVAL, "%d host cores; 0 means all", cores);
  uint32_t total = 0, ncores = (uint32_t)(cores ? cores : yk__ncores());
  YK_TRY(check_requests(nrequests, requests, ncores, &total));
  yk_devices *all = yk__calloc(1, sizeof *all);
  if (!all) return YK_ENOMEM;
  all->at = yk__calloc(total, sizeof *all->at);
  all->work = yk__calloc(total, sizeof *all->work);
  yk_code rc = all->at && all->work ? open_all(all, nrequests, requests, ncores) : YK_ENOMEM;
  if (rc != YK_OK) {
    yk__devices_close(all);
    return rc;
  }
  *out = all;
  return YK_OK;
}

void yk__devices_close(yk_devices *all) {
  if (!all) return;
  for (uint16_t i = all->n; i-- > 0;) {                /* backwards: a device that was split is closed behind its parts */
    yk_device *d = &all->at[i];
    if (!d->dev) continue;
    yk__device_pool_close(d);
    d->driver->stream_close(atomic_load(&d->stream));
    if (!d->part_of) d->driver->close(d->dev);
  }
  yk__board_withdraw(all);
  yk__free(all->kernels);
  yk__free(all->work);
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
  return a == b || (a->driver == b->driver && is_host(a) && is_host(b) && !a->own_memory && !b->own_memory);
}

int yk__device_reaches(const yk_device *a, const yk_device *b) {
  return yk__device_same_memory(a, b) || (a->driver == b->driver && is_host(a) && is_host(b) && !a->stand_in && !b->stand_in);
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
