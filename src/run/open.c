/*
 * open.c - the devices of a session: options, settings, CUDA_VISIBLE_DEVICES, and the mapping block.
 *
 * An option left at zero is filled in from the settings (environment or a call),
 * then from its default; what is in force can be read back. Virtual GPUs obey
 * CUDA_VISIBLE_DEVICES as real ones do.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/visible.h"
#include "run/run.h"

enum { MAX_DEVICES = 4096 };

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. */
static yk_code take_options(yk_session_options *o, const yk_session_options *given) {
  *o = (yk_session_options)YK_SESSION_OPTIONS_INIT;
  if (given == NULL) return YK_OK;
  if (given->size < sizeof given->size || given->size > 4096)
    return YK_FAIL(EINVAL, "yk_session_options.size is %u; start from YK_SESSION_OPTIONS_INIT", given->size);
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  o->size = sizeof *o;
  if (o->cpu_devices < 0 || o->cpu_devices > MAX_DEVICES)
    return YK_FAIL(EINVAL, "cpu_devices is %d; expected 0 (= 1) to %d", o->cpu_devices, MAX_DEVICES);
  if (o->virtual_gpus < 0 || o->virtual_gpus > MAX_DEVICES)
    return YK_FAIL(EINVAL, "virtual_gpus is %d; expected 0 to %d", o->virtual_gpus, MAX_DEVICES);
  if (o->cores < 0) return YK_FAIL(EINVAL, "cores is %d; expected 0 (= all) or more", o->cores);
  if (o->timeout_ms < -1) return YK_FAIL(EINVAL, "timeout_ms is %d; expected -1 (= none), 0 (= default) or more", o->timeout_ms);
  return YK_OK;
}

/* "2" or "2:512MiB". */
static yk_code virtual_gpus(yk_session_options *o) {
  const char *text = yk__param("virtual_gpus");
  char count[32];
  int64_t n = 0;
  uint64_t bytes = 0;
  if (text[0] == '\0' || o->virtual_gpus != 0) return YK_OK;
  size_t len = strcspn(text, ":");
  if (len < sizeof count) { memcpy(count, text, len); count[len] = '\0'; }
  if (len >= sizeof count || !yk__parse_i64(count, 0, MAX_DEVICES, &n) ||
      (text[len] == ':' && !yk__parse_bytes(text + len + 1, &bytes)))
    return YK_FAIL(EINVAL, "setting virtual_gpus (YOKE_VIRTUAL_GPUS) is \"%s\"; expected N or N:LIMIT, such as 2:512MiB", text);
  o->virtual_gpus = (int32_t)n;
  if (o->virtual_gpu_bytes == 0) o->virtual_gpu_bytes = bytes;
  return YK_OK;
}

/* Does the environment or a call say something about this setting? */
static bool said(const char *name) {
  return yk__param_origin_of(name) != YK_FROM_DEFAULT;
}

static int32_t bounded(int64_t x) {
  return x < 0 ? -1 : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

static yk_code fill_options(yk_session_options *o) {
  YK_TRY(virtual_gpus(o));
  if (o->cpu_devices == 0) o->cpu_devices = 1;
  if (o->cores == 0 && yk__param_int("cores") > 0) o->cores = bounded(yk__param_int("cores"));
  if (o->cores == 0) o->cores = yk__ncores();
  if (o->max_plans == 0) o->max_plans = 64;
  if (o->timeout_ms == 0 && said("timeout_ms")) o->timeout_ms = bounded(yk__param_int("timeout_ms"));
  if (o->timeout_ms == 0) o->timeout_ms = 600000;
  o->strict |= yk__param_bool("strict") != 0;
  o->allow_soft_placement |= yk__param_bool("soft_placement") != 0;
  o->deterministic |= yk__param_bool("deterministic") != 0;
  return YK_OK;
}

/* The driver for all host devices: the first of options.drivers, or "cpu". Each that is listed must exist. */
static yk_code choose_driver(const char *list, char *name, size_t n) {
  snprintf(name, n, "cpu");
  bool first = true;
  for (const char *p = list; p && *p; p += *p == ',') {
    size_t len = strcspn(p, ",");
    char one[32];
    snprintf(one, sizeof one, "%.*s", (int)(len < sizeof one ? len : sizeof one - 1), p);
    if (yk__driver_find(one) == NULL) return yk__fail_prefix(YK_ENOTFOUND, "yk_session_options.drivers \"%s\"", list);
    if (first) snprintf(name, n, "%s", one);
    first = false;
    p += len;
  }
  return YK_OK;
}

static yk_code host_bytes(const char *driver, uint64_t *out) {
  yk_dev_info info = { .size = sizeof info };
  YK_TRY(yk__driver_find(driver)->info(0, &info));
  *out = info.bytes_total;
  return YK_OK;
}

/* What is known of n virtual GPUs before any is opened; the texts are in `text`, two each. */
static void describe(uint16_t n, char (*text)[YK__UUID_BYTES], yk_gpu_id *gpu) {
  for (uint16_t k = 0; k < n; k++) {
    snprintf(text[2 * k], YK__UUID_BYTES, "virtual:%05u", (unsigned)k);          /* equal lengths, so that they sort as numbers */
    gpu[k] = (yk_gpu_id){ .uuid = yk__virtual_uuid(k, text[2 * k + 1]), .bus = text[2 * k], .speed = 1 };
  }
}

/* Once in a process, since the variable does not change: what it hides although it may not have been meant to. */
static void remark(uint16_t n, const yk_gpu_id *gpu, uint16_t *room) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  char text[160];
  yk__visible_remark(yk__env("CUDA_VISIBLE_DEVICES"), n, gpu, room, text, sizeof text);
  if (text[0] && !atomic_flag_test_and_set(&told)) YK_LOG(NOTICE, "%s", text);
}

/* Order, CUDA_VISIBLE_DEVICES, the session's list: physical[k] and platform[k] are the numbers of what becomes gpu:k.
 * sorted: [n], room: [2n] */
static yk_code choose_visible(const yk_session_options *o, uint16_t n, const yk_gpu_id *gpu, yk_gpu_id *sorted, uint16_t *room,
                              uint16_t *physical, uint16_t *platform, uint16_t *visible) {
  uint16_t *order = room, *seen = room + n, nseen;
  yk__gpu_order(yk__env("CUDA_DEVICE_ORDER"), n, gpu, order);
  for (uint16_t k = 0; k < n; k++) sorted[k] = gpu[order[k]];
  remark(n, sorted, seen);
  nseen = yk__visible_devices(yk__env("CUDA_VISIBLE_DEVICES"), n, sorted, seen);
  yk_code rc = yk__visible_list(o->visible_devices, nseen, platform, visible);
  if (rc == YK_EINVAL && nseen == 0 && o->allow_soft_placement) {
    YK_LOG(NOTICE, "%s; it goes on without, as soft placement allows", yk_error_message());
    yk_error_clear();
    return YK_OK;
  }
  for (uint16_t k = 0; k < *visible && rc == YK_OK; k++) physical[k] = order[seen[platform[k]]];
  return rc;
}

/* Which virtual GPUs the session sees; s->physical and s->platform number them, behind the CPU devices. */
static yk_code count_visible(yk_session *s, uint16_t *visible) {
  uint16_t ncpu = (uint16_t)s->options.cpu_devices, n = (uint16_t)s->options.virtual_gpus;
  s->physical = yk__calloc((size_t)ncpu + n + 1u, sizeof *s->physical);
  s->platform = yk__calloc((size_t)ncpu + n + 1u, sizeof *s->platform);
  char (*text)[YK__UUID_BYTES] = yk__calloc(2u * n + 1u, sizeof *text);
  yk_gpu_id *gpu = yk__calloc(2u * n + 1u, sizeof *gpu);
  uint16_t *room = yk__calloc(2u * n + 1u, sizeof *room);
  yk_code rc = s->physical && s->platform && text && gpu && room ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) {
    describe(n, text, gpu);
    rc = choose_visible(&s->options, n, gpu, gpu + n, room, s->physical + ncpu, s->platform + ncpu, visible);
  }
  yk__free(text);
  yk__free(gpu);
  yk__free(room);
  return rc;
}

/* The texts of the options, for as long as the session lives. */
static yk_code keep_texts(yk_session *s, const char *drivers, const char *visible) {
  yk_session_options *o = &s->options;
  if (drivers && (o->drivers = s->drivers = yk__strdup(drivers)) == NULL) return YK_ENOMEM;
  if (!visible || !visible[0]) visible = yk__param("visible_devices");
  if ((o->visible_devices = s->visible = yk__strdup(visible)) == NULL) return YK_ENOMEM;
  return YK_OK;
}

yk_code yk_select_gpu(int32_t id) {
  char text[16] = "none";
  if (id < -1) return YK_FAIL(EINVAL, "yk_select_gpu: %d is no GPU; expected a number from 0 on, or -1 for none", (int)id);
  if (id >= 0) snprintf(text, sizeof text, "%d", (int)id);
  return yk__param_set("visible_devices", text);
}

yk_code yk__session_open_devices(yk_session *s, const yk_session_options *options) {
  yk_session_options *o = &s->options;
  char driver[32];
  uint64_t bytes = 0;
  uint16_t visible = 0;
  YK_TRY(take_options(o, options));
  const char *list = o->drivers, *shown = o->visible_devices;
  o->drivers = o->visible_devices = NULL;
  YK_TRY(keep_texts(s, list, shown));
  YK_TRY(fill_options(o));
  YK_TRY(choose_driver(o->drivers, driver, sizeof driver));
  YK_TRY(host_bytes(driver, &bytes));
  uint64_t limit = (uint64_t)yk__param_int("memory.limit");
  if (o->virtual_gpu_bytes == 0) o->virtual_gpu_bytes = limit ? limit : bytes / 4;
  if (o->cpu_bytes == 0) o->cpu_bytes = limit ? limit : bytes;
  YK_TRY(count_visible(s, &visible));
  o->virtual_gpus = visible;
  const yk_device_request request[2] = {
    { .type = "CPU", .driver = driver, .count = (uint16_t)o->cpu_devices, .limit = o->cpu_bytes },
    { .type = "GPU", .driver = driver, .count = visible, .is_virtual = 1, .limit = o->virtual_gpu_bytes },
  };
  return yk__devices_open(visible ? 2 : 1, request, o->cores, &s->devices);
}

void yk__session_log_devices(const yk_session *s) {
  bool any = false;
  printf("Device mapping:");
  for (uint16_t i = 0; i < s->devices->n; i++) {
    const yk_device *d = &s->devices->at[i];
    if (!d->is_virtual) continue;                          /* a CPU has no physical description */
    printf("%s%s -> device: %u, name: virtual GPU (%s), pci bus id: virtual:%u, compute capability: none\n", any ? "" : "\n",
           d->name, (unsigned)s->platform[i], d->info.name, (unsigned)s->physical[i]);
    any = true;
  }
  if (!any) printf(" no known devices.\n");
  fflush(stdout);
}

size_t yk_session_device_count(const yk_session *s) {
  return s ? s->devices->n : 0;
}

yk_code yk_session_device(const yk_session *s, size_t i, yk_device_info *out) {
  if (s == NULL || out == NULL || i >= s->devices->n)
    return YK_FAIL(EINVAL, "device %zu of a session with %zu devices", i, yk_session_device_count(s));
  const yk_device *d = &s->devices->at[i];
  yk_device_info info = { .is_virtual = d->is_virtual, .first_core = d->config.first_core, .ncores = d->config.ncores,
                          .bytes_limit = d->limit, .bytes_in_use = atomic_load(&d->in_use), .bytes_peak = atomic_load(&d->peak),
                          .physical = -1, .platform = -1 };
  snprintf(info.name, sizeof info.name, "%.63s", d->name);
  snprintf(info.type, sizeof info.type, "%s", d->spec.type);
  snprintf(info.model, sizeof info.model, "%s", d->info.name);
  snprintf(info.driver, sizeof info.driver, "%s", d->driver->name);
  if (d->is_virtual) snprintf(info.bus, sizeof info.bus, "virtual:%u", s->physical[i]);
  else snprintf(info.bus, sizeof info.bus, "%s", d->info.bus);
  if (d->is_virtual) {
    yk__virtual_uuid(s->physical[i], info.uuid);
    info.physical = s->physical[i];
    info.platform = s->platform[i];
  }
  *out = info;
  return YK_OK;
}
