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
#include "device/board.h"
#include "device/machine.h"
#include "device/virtual.h"
#include "device/visible.h"
#include "run/run.h"

enum { MAX_DEVICES = YK__MAX_GPUS };

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

/* Does the environment or a call say something about this setting? */
static bool said(const char *name) {
  return yk__param_origin_of(name) != YK_FROM_DEFAULT;
}

static int32_t bounded(int64_t x) {
  return x < 0 ? -1 : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

static yk_code read_fraction(double *out) {
  const char *text = yk__param("memory.fraction");
  double f = 0;
  if (text[0] && (!yk__parse_f64(text, &f) || !(f > 0 && f <= 1)))
    return YK_FAIL(EINVAL, "setting memory.fraction (YOKE_MEMORY_FRACTION) is \"%.60s\"; expected a number over 0 and at most 1, "
                   "such as 0.4", text);
  *out = f;
  return YK_OK;
}

/* A limit in bytes or a fraction: one that the caller gives beats both settings; together they contradict each other. */
static yk_code memory_options(yk_session_options *o) {
  double f = o->per_process_gpu_memory_fraction;
  const char *of = "per_process_gpu_memory_fraction and memory_limit of the session";
  if (!(f >= 0 && f <= 1))
    return YK_FAIL(EINVAL, "per_process_gpu_memory_fraction is %g; expected a number over 0 and at most 1 (0 = no such limit)", f);
  if (f <= 0 && o->memory_limit == 0) {
    of = "the settings memory.fraction and memory.limit";
    YK_TRY(read_fraction(&f));
    o->memory_limit = (uint64_t)yk__param_int("memory.limit");
    o->per_process_gpu_memory_fraction = f;
  }
  if (f > 0 && o->memory_limit > 0)
    return YK_FAIL(EINVAL, "%s are both given: %g, and %llu bytes; expected one of them", of, f,
                   (unsigned long long)o->memory_limit);
  o->allow_growth |= yk__param_bool("memory.growth") != 0;
  return YK_OK;
}

static yk_code fill_options(yk_session_options *o) {
  YK_TRY(memory_options(o));
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
  if (rc == YK_ENOTFOUND && nseen == 0 && o->allow_soft_placement) {
    YK_LOG(NOTICE, "%s; it goes on without, as soft placement allows", yk_error_message());
    yk_error_clear();
    return YK_OK;
  }
  for (uint16_t k = 0; k < *visible && rc == YK_OK; k++) physical[k] = order[seen[platform[k]]];
  return rc;
}

/* ---- virtual GPUs ------------------------------------------------------------------------------------------------ */

typedef struct gpus {
  uint16_t n, nsplit;                /* virtual GPUs of the machine; those split */
  yk_gpu_size *size;                 /* [n] */
  yk_gpu_split *split;               /* [nsplit] numbers count the visible ones */
  uint16_t visible, *physical, *platform;   /* [n] the numbers of what becomes gpu:k before it is split */
} gpus;

static void gpus_free(gpus *g) {
  yk__free(g->size);
  yk__free(g->split);
  yk__free(g->physical);
}

/* How many there are and of what size: the session's groups or number, else the setting. What a program says of their memory holds
 * against the setting. */
static yk_code size_gpus(yk_session_options *o, gpus *g) {
  bool groups = o->virtual_gpu_groups && o->virtual_gpu_groups[0], setting = !groups && o->virtual_gpus == 0;
  const char *text = groups ? o->virtual_gpu_groups : yk__param("virtual_gpus");
  const char *what = groups ? "yk_session_options.virtual_gpu_groups" : "setting virtual_gpus (YOKE_VIRTUAL_GPUS)";
  if (groups || (setting && text[0] && strcmp(text, "0") != 0)) {
    YK_TRY(yk__virtual_parse(what, text, MAX_DEVICES, &g->size, &g->n));
    bool alike = true;
    for (uint16_t k = 0; k < g->n; k++) {
      if (setting && o->virtual_gpu_bytes) g->size[k].bytes = o->virtual_gpu_bytes;
      alike = alike && g->size[k].bytes == g->size[0].bytes;
    }
    if (alike && o->virtual_gpu_bytes == 0) o->virtual_gpu_bytes = g->size[0].bytes;
    return YK_OK;
  }
  g->n = (uint16_t)o->virtual_gpus;
  g->size = yk__calloc(g->n + 1u, sizeof *g->size);
  return g->size ? YK_OK : YK_ENOMEM;
}

/* One GPU cannot have more cores than the session. */
static yk_code limit_cores(const yk_session_options *o, gpus *g) {
  uint32_t most = (uint32_t)o->cores, clipped = 0, first = 0;
  for (uint16_t k = 0; k < g->n; k++) {
    if (g->size[k].cores <= most) continue;
    if (!o->allow_soft_placement)
      return YK_FAIL(EINVAL, "virtual GPU %u is to have %u cores, the session has %u; expected at most that, or soft placement, "
                     "which gives it what there is", (unsigned)k, (unsigned)g->size[k].cores, (unsigned)most);
    if (clipped++ == 0) first = k;
    g->size[k].cores = most;
  }
  if (clipped)
    YK_LOG(NOTICE, "virtual GPU %u%s asked for more cores than the session's %u; it has those, as soft placement allows",
           (unsigned)first, clipped > 1 ? " and others" : "", (unsigned)most);
  return YK_OK;
}

/* Which of them the session sees. */
static yk_code count_visible(const yk_session *s, gpus *g) {
  uint16_t n = g->n;
  g->physical = yk__calloc(2u * n + 1u, sizeof *g->physical);
  g->platform = g->physical ? g->physical + n : NULL;
  char (*text)[YK__UUID_BYTES] = yk__calloc(2u * n + 1u, sizeof *text);
  yk_gpu_id *gpu = yk__calloc(2u * n + 1u, sizeof *gpu);
  uint16_t *room = yk__calloc(2u * n + 1u, sizeof *room);
  yk_code rc = g->physical && text && gpu && room ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) {
    describe(n, text, gpu);
    rc = choose_visible(&s->options, n, gpu, gpu + n, room, g->physical, g->platform, &g->visible);
  }
  yk__free(text);
  yk__free(gpu);
  yk__free(room);
  return rc;
}

static yk_code take_splits(const yk_session_options *o, gpus *g) {
  bool given = o->split_gpus && o->split_gpus[0];
  const char *text = given ? o->split_gpus : yk__param("split_gpus");
  const char *what = given ? "yk_session_options.split_gpus" : "setting split_gpus (YOKE_SPLIT_GPUS)";
  if (!text[0]) return YK_OK;
  YK_TRY(yk__split_parse(what, text, &g->split, &g->nsplit));
  if (o->per_process_gpu_memory_fraction > 0)
    return YK_FAIL(EINVAL, "%s and a memory fraction of %g are both given; expected one of them, since parts have their limits", what,
                   o->per_process_gpu_memory_fraction);
  for (uint16_t k = 0; k < g->nsplit; k++)
    if (g->split[k].gpu >= g->visible)
      return YK_FAIL(EINVAL, "%s: gpu:%u is to be split, and there %s %u GPU%s", what, (unsigned)g->split[k].gpu,
                     g->visible == 1 ? "is" : "are", (unsigned)g->visible, g->visible == 1 ? "" : "s");
  return YK_OK;
}

static const yk_gpu_split *split_of(const gpus *g, uint16_t gpu) {
  for (uint16_t k = 0; k < g->nsplit; k++)
    if (g->split[k].gpu == gpu) return &g->split[k];
  return NULL;
}

/* s->physical and s->platform number the devices as they came out, parts and all. */
static yk_code number_devices(yk_session *s, const gpus *g) {
  uint16_t at = (uint16_t)s->options.cpu_devices;
  s->physical = yk__calloc(s->devices->n + 1u, sizeof *s->physical);
  s->platform = yk__calloc(s->devices->n + 1u, sizeof *s->platform);
  if (!s->physical || !s->platform) return YK_ENOMEM;
  for (uint16_t k = 0; k < g->visible; k++)
    do {
      s->physical[at] = g->physical[k];
      s->platform[at] = g->platform[k];
      at++;
    } while (at < s->devices->n && s->devices->at[at].part_of);
  s->options.virtual_gpus = s->devices->n - s->options.cpu_devices;
  return YK_OK;
}

/* One request a GPU, since each has its size, behind that of the CPU devices. */
static yk_code open_requests(yk_session *s, const char *driver, const gpus *g) {
  const yk_session_options *o = &s->options;
  yk_device_request *request = yk__calloc(g->visible + 1u, sizeof *request);
  if (!request) return YK_ENOMEM;
  request[0] = (yk_device_request){ .type = "CPU", .driver = driver, .count = (uint16_t)o->cpu_devices, .limit = o->cpu_bytes };
  for (uint16_t k = 0; k < g->visible; k++) {
    const yk_gpu_size *size = &g->size[g->physical[k]];
    const yk_gpu_split *split = split_of(g, k);
    request[k + 1] = (yk_device_request){ .type = "GPU", .driver = driver, .count = 1, .is_virtual = 1, .cores = size->cores,
                                          .total = size->bytes ? size->bytes : o->virtual_gpu_bytes, .numbers = &g->physical[k],
                                          .limit = o->memory_limit, .fraction = o->per_process_gpu_memory_fraction,
                                          .growth = o->allow_growth,
                                          .nparts = split ? split->nparts : 0, .part = split ? split->part : NULL };
  }
  yk_code rc = yk__devices_open((uint16_t)(g->visible + 1u), request, o->cores, &s->devices);
  yk__free(request);
  return rc == YK_OK ? number_devices(s, g) : rc;
}

static yk_code open_all(yk_session *s, const char *driver, uint64_t dflt, gpus *g) {
  YK_TRY(size_gpus(&s->options, g));
  YK_TRY(limit_cores(&s->options, g));
  if (s->options.virtual_gpu_bytes == 0) s->options.virtual_gpu_bytes = dflt;
  YK_TRY(count_visible(s, g));
  YK_TRY(take_splits(&s->options, g));
  return open_requests(s, driver, g);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static yk_code keep(const char *text, char **own, const char **option) {
  if (!text || !text[0]) return YK_OK;
  *option = *own = yk__strdup(text);
  return *own ? YK_OK : YK_ENOMEM;
}

/* The texts of the options, for as long as the session lives. */
static yk_code keep_texts(yk_session *s) {
  yk_session_options *o = &s->options;
  const yk_session_options given = *o;
  o->drivers = o->visible_devices = o->virtual_gpu_groups = o->split_gpus = o->rehearse = NULL;
  if (given.drivers && (o->drivers = s->drivers = yk__strdup(given.drivers)) == NULL) return YK_ENOMEM;
  YK_TRY(keep(given.virtual_gpu_groups, &s->groups, &o->virtual_gpu_groups));
  YK_TRY(keep(given.split_gpus, &s->split, &o->split_gpus));
  YK_TRY(keep(given.rehearse, &s->rehearse, &o->rehearse));
  const char *visible = given.visible_devices;
  if (!visible || !visible[0]) visible = o->rehearse ? "" : yk__param("visible_devices");
  if ((o->visible_devices = s->visible = yk__strdup(visible)) == NULL) return YK_ENOMEM;
  return YK_OK;
}

yk_code yk_select_gpu(int32_t id) {
  char text[16] = "none";
  if (id < -1) return YK_FAIL(EINVAL, "yk_select_gpu: %d is no GPU; expected a number from 0 on, or -1 for none", (int)id);
  if (id >= 0) snprintf(text, sizeof text, "%d", (int)id);
  return yk__param_set("visible_devices", text);
}

/* Let other processes see the devices' counters. */
static yk_code publish(yk_session *s) {
  uint16_t n = s->devices->n;
  yk_code rc = YK_OK;
  yk_board_about *about = yk__calloc(n, sizeof *about);
  if (about == NULL) return YK_ENOMEM;
  for (uint16_t i = 0; i < n && rc == YK_OK; i++) {
    yk_device_info d;
    rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) break;
    bool gpu = strcmp(d.type, "GPU") == 0;
    about[i].fraction = gpu ? s->options.per_process_gpu_memory_fraction : 0;
    about[i].growth = gpu && s->options.allow_growth;
    snprintf(about[i].bus, sizeof about[i].bus, "%s", d.bus);
    snprintf(about[i].uuid, sizeof about[i].uuid, "%s", d.uuid);
  }
  if (rc == YK_OK) yk__board_publish(s->devices, about);
  yk__free(about);
  return rc;
}

yk_code yk__session_open_devices(yk_session *s, const yk_session_options *options) {
  yk_session_options *o = &s->options;
  char driver[32];
  uint64_t bytes = 0;
  gpus g = { 0 };
  YK_TRY(take_options(o, options));
  YK_TRY(keep_texts(s));
  YK_TRY(choose_driver(o->drivers, driver, sizeof driver));
  if (o->rehearse) YK_TRY(yk__session_open_rehearsed(s, driver));
  YK_TRY(fill_options(o));
  if (o->rehearse) return YK_OK;
  YK_TRY(host_bytes(driver, &bytes));
  if (o->cpu_bytes == 0) o->cpu_bytes = o->memory_limit;
  if (o->cpu_bytes == 0 || o->cpu_bytes > bytes) o->cpu_bytes = bytes;
  yk_code rc = open_all(s, driver, o->memory_limit > bytes / 4 ? o->memory_limit : bytes / 4, &g);
  gpus_free(&g);
  return rc == YK_OK ? publish(s) : rc;
}

void yk__session_log_devices(const yk_session *s) {
  bool any = false;
  printf("Device mapping:");
  for (uint16_t i = 0; i < s->devices->n; i++) {
    yk_device_info d;
    if (yk_session_device(s, i, &d) != YK_OK || strcmp(d.type, "GPU") != 0) continue;      /* a CPU has no physical description */
    printf("%s%s -> device: %d, name: %s%s%s, pci bus id: %s, compute capability: %s", any ? "" : "\n", d.name, (int)d.platform,
           d.is_virtual ? "virtual GPU (" : "", d.model, d.is_virtual ? ")" : "", d.bus, d.capability[0] ? d.capability : "none");
    if (d.parts) printf(", part %u of %u", (unsigned)d.part + 1, (unsigned)d.parts);
    printf("\n");
    any = true;
  }
  if (!any) printf(" no known devices.\n");
  fflush(stdout);
}

size_t yk_session_device_count(const yk_session *s) {
  return s ? s->devices->n : 0;
}

static void say_fast(uint32_t types, char *out, size_t bytes) {
  bool bf16 = types >> YK_BF16 & 1u, f16 = types >> YK_F16 & 1u;
  if ((types & 1u) != 0) snprintf(out, bytes, "%s%s%s", bf16 ? "bf16" : "", bf16 && f16 ? "," : "", f16 ? "f16" : bf16 ? "" : "none");
}

yk_code yk_session_device(const yk_session *s, size_t i, yk_device_info *out) {
  if (s == NULL || out == NULL || i >= s->devices->n)
    return YK_FAIL(EINVAL, "device %zu of a session with %zu devices", i, yk_session_device_count(s));
  const yk_device *d = &s->devices->at[i];
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__device_memory(d, &m);
  yk_device_info info = { .is_virtual = d->is_virtual, .first_core = d->config.first_core, .ncores = d->config.ncores,
                          .bytes_limit = d->limit, .bytes_in_use = m.bytes_in_use, .bytes_peak = m.peak_in_use,
                          .physical = -1, .platform = -1, .bytes_total = d->total, .part = d->part, .parts = d->parts };
  snprintf(info.name, sizeof info.name, "%.63s", d->name);
  snprintf(info.type, sizeof info.type, "%s", d->spec.type);
  snprintf(info.model, sizeof info.model, "%s", d->info.name);
  snprintf(info.driver, sizeof info.driver, "%s", d->driver->name);
  snprintf(info.bus, sizeof info.bus, "%s", d->info.bus);
  say_fast(d->info.fast_types, info.fast_types, sizeof info.fast_types);
  if (s->machine) {
    yk__session_describe_rehearsed(s, i, &info);
  } else if (d->is_virtual) {
    snprintf(info.bus, sizeof info.bus, "virtual:%u", s->physical[i]);
    yk__virtual_uuid(s->physical[i], info.uuid);
    info.physical = s->physical[i];
    info.platform = s->platform[i];
  }
  *out = info;
  return YK_OK;
}

yk_code yk_session_device_memory(const yk_session *s, size_t i, yk_device_memory *out) {
  if (s == NULL || out == NULL || i >= s->devices->n)
    return YK_FAIL(EINVAL, "memory of device %zu of a session with %zu devices", i, yk_session_device_count(s));
  if (out->size < sizeof out->size || out->size > 4096)
    return YK_FAIL(EINVAL, "yk_device_memory.size is %u; start from YK_DEVICE_MEMORY_INIT", out->size);
  yk__device_memory(&s->devices->at[i], out);
  return YK_OK;
}
