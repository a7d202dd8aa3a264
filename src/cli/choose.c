/*
 * choose.c - which devices a command uses: --devices, --virtual-gpus, --split, --rehearse, their settings, and what there is.
 *
 * A GPU that was named and is absent is an error with a status of its own, never a
 * silent run on the CPU. Only "auto" chooses, and the start-up line tells what it took.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/log.h"
#include "base/param.h"
#include "base/str.h"
#include "cli/cli.h"
#include "device/device.h"
#include "device/libraries.h"
#include "device/virtual.h"

/* The texts are read again when the session opens; here a mistake in one is wrong usage. */
static int check_gpus(const yk_cli *c) {
  yk_gpu_size *size = NULL;
  yk_gpu_split *split = NULL;
  uint16_t n;
  yk_code rc = c->virtual_gpus != NULL ? yk__virtual_parse("--virtual-gpus", c->virtual_gpus, YK__MAX_CHOSEN, &size, &n) : YK_OK;
  if (rc == YK_OK && c->split != NULL) rc = yk__split_parse("--split", c->split, &split, &n);
  yk__free(size);
  yk__free(split);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_USAGE, "%s", yk_error_message());
}

int yk__session_settings(const yk_cli *c, yk_session_options *out) {
  *out = (yk_session_options)YK_SESSION_OPTIONS_INIT;
  out->allow_soft_placement = c->soft_placement;
  out->log_device_placement = c->log_device_placement;
  out->deterministic = c->deterministic;
  out->allow_growth = c->memory_growth;
  out->per_process_gpu_memory_fraction = c->memory_fraction;
  if (c->memory_limit != NULL && (!yk__parse_bytes(c->memory_limit, &out->memory_limit) || out->memory_limit == 0))
    return yk__die(YK__EXIT_USAGE, "--memory-limit '%s': expected bytes, such as 512MiB", yk__shown(c->memory_limit));
  out->virtual_gpu_groups = c->virtual_gpus;
  out->split_gpus = c->split;
  out->rehearse = c->rehearse;
  if (c->rehearse != NULL && (c->virtual_gpus != NULL || c->split != NULL))
    return yk__die(YK__EXIT_USAGE, "--rehearse and %s exclude each other: the file brings all devices",
                   c->split ? "--split" : "--virtual-gpus");
  return check_gpus(c);
}

int yk__probe(const yk_session_options *options, yk_graph **graph, yk_session **session) {
  yk_graph *g = NULL;
  yk_session_options quiet = *options;
  yk_code rc;
  quiet.log_device_placement = false;
  rc = yk_graph_new(&g);
  if (rc == YK_OK) rc = yk_session_open(g, &quiet, session);
  if (rc != YK_OK) {
    yk_graph_free(g);
    return rc == YK_ENOTFOUND && options->rehearse == NULL ? yk__die(YK__EXIT_NO_GPU, "%s", yk_error_message()) : yk__die_code(rc);
  }
  *graph = g;
  return 0;
}

static bool is_gpu(const yk_device_spec *s) {
  return strcmp(s->type, "GPU") == 0;
}

static void add(yk_chosen *out, const yk_device_spec *s) {
  char *name = out->name[out->n], type[YK__TYPE_BYTES];
  size_t i = 0;
  for (; s->type[i] != '\0' && i + 1 < sizeof type; i++)
    type[i] = (char)(s->type[i] >= 'A' && s->type[i] <= 'Z' ? s->type[i] - 'A' + 'a' : s->type[i]);
  type[i] = '\0';
  snprintf(name, sizeof out->name[0], "/%.11s:%d", type, s->id);
  out->at[out->n++] = name;
}

/* One item of the list: a device string with or without its leading '/'. */
static int parse_one(const char *from, size_t len, const char *text, yk_chosen *out) {
  yk_device_spec s = YK__ANY_DEVICE, local = { .job = "localhost", .replica = 0, .task = 0 };
  char item[512];
  if (len == 0)
    return yk__die(YK__EXIT_USAGE, "--devices '%s': an empty name in the list; expected gpu:0,gpu:1", yk__shown(text));
  if (len >= sizeof item - 1)
    return yk__die(YK__EXIT_USAGE, "--devices '%s': a name of %zu characters; expected one such as gpu:0", yk__shown(text), len);
  snprintf(item, sizeof item, "%s%.*s", from[0] == '/' ? "" : "/", (int)len, from);
  if (yk__device_parse(item, &s) != YK_OK) return yk__die(YK__EXIT_USAGE, "--devices: %s", yk_error_message());
  if (s.type[0] == '\0' || s.id < 0)
    return yk__die(YK__EXIT_USAGE, "--devices '%s': expected a device with its number, such as gpu:0", yk__shown(item));
  snprintf(local.type, sizeof local.type, "%s", s.type);
  local.id = s.id;
  if (!yk__device_matches(&s, &local))
    return yk__die(YK__EXIT_USAGE, "--devices '%s': only devices of this machine (/job:localhost/replica:0/task:0) can be used",
                   yk__shown(item));
  if (!is_gpu(&s) && strcmp(s.type, "CPU") != 0)
    return yk__die(YK__EXIT_USAGE, "--devices '%s': no devices of type %s; expected cpu or gpu", yk__shown(item),
                   yk__shown(s.type));
  if (out->n == YK__MAX_CHOSEN || s.id >= YK__MAX_CHOSEN)
    return yk__die(YK__EXIT_USAGE, "--devices '%s': at most %d devices, numbered from 0", yk__shown(item), YK__MAX_CHOSEN);
  add(out, &s);
  for (size_t i = 0; i + 1 < out->n; i++)
    if (strcmp(out->at[i], out->at[out->n - 1]) == 0) return yk__die(YK__EXIT_USAGE, "--devices names %s twice", out->at[i]);
  if (!is_gpu(&s) && s.id >= out->session.cpu_devices && !out->session.rehearse) out->session.cpu_devices = s.id + 1;
  return 0;
}

static int parse_list(const char *text, yk_chosen *out) {
  for (const char *p = text;; p++) {
    size_t len = strcspn(p, ",");
    int status = parse_one(p, len, text, out);
    if (status != 0) return status;
    p += len;
    if (*p == '\0') return 0;
  }
}

/* Every GPU there is, if `gpus`; else, or if there is none, the first CPU. */
static void take(yk_chosen *out, size_t n, const yk_device_info *info, bool gpus) {
  bool more = false;
  for (size_t i = 0; i < n && gpus; i++) {
    yk_device_spec s = YK__ANY_DEVICE;
    if (yk__device_parse(info[i].name, &s) != YK_OK || !is_gpu(&s)) continue;
    if (out->n < YK__MAX_CHOSEN) add(out, &s);
    else more = true;
  }
  if (more) YK_LOG(NOTICE, "there are more than %d GPUs; the first %d are used", YK__MAX_CHOSEN, YK__MAX_CHOSEN);
  if (out->n == 0) {
    yk_device_spec cpu = { .type = "CPU", .id = 0 };
    add(out, &cpu);
  }
}

/* What the machine has, for a message: "cpu:0, gpu:0". */
static const char *present(size_t n, const yk_device_info *info, char *buffer, size_t bytes) {
  size_t at = 0;
  buffer[0] = '\0';
  for (size_t i = 0; i < n && at < bytes; i++) {
    const char *number = strrchr(info[i].name, ':');
    int wrote = snprintf(buffer + at, bytes - at, "%s%s%s", i > 0 ? ", " : "", strcmp(info[i].type, "GPU") == 0 ? "gpu" : "cpu",
                         number != NULL ? number : "");
    if (wrote < 0) break;
    at += (size_t)wrote;
  }
  return buffer;
}

/* Why there is no GPU, or not that one. */
static const char *why_none(char *buffer, size_t bytes) {
  const char *hidden = yk__env("CUDA_VISIBLE_DEVICES"), *list = yk__param("visible_devices");
  yk__gpu_libraries(buffer, bytes);
  size_t at = strlen(buffer);
  if (hidden != NULL && at < bytes)
    at += (size_t)snprintf(buffer + at, bytes - at, "; CUDA_VISIBLE_DEVICES is \"%.40s\"", hidden);
  if (list[0] != '\0' && at < bytes) snprintf(buffer + at, bytes - at, "; visible_devices is \"%.40s\"", list);
  return buffer;
}

/* What soft placement takes for an absent GPU: the first GPU there is, else the CPU. */
static void replace(yk_chosen *out, size_t k, size_t n, const yk_device_info *info) {
  snprintf(out->instead[k], sizeof out->instead[k], "/cpu:0");
  if (n > 0) memcpy(out->fast[k], info[0].fast_types, sizeof out->fast[k]);      /* the first is the CPU */
  for (size_t i = n; i-- > 0;)
    if (strcmp(info[i].type, "GPU") == 0) {
      const char *number = strrchr(info[i].name, ':');
      snprintf(out->instead[k], sizeof out->instead[k], "/gpu:%.10s", number != NULL ? number + 1 : "0");
      out->is_virtual[k] = info[i].is_virtual;
      memcpy(out->fast[k], info[i].fast_types, sizeof out->fast[k]);
    }
  out->at[k] = out->instead[k];
}

/* One notice for all that are absent. */
static void tell_replaced(const yk_chosen *out, const char *have) {
  char names[256] = "", why[400];
  const char *instead = "";
  size_t at = 0;
  for (size_t k = 0; k < out->n; k++) {
    if (!out->absent[k] || at >= sizeof names) continue;
    at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at > 0 ? ", " : "", out->name[k]);
    instead = out->at[k];
  }
  if (at > 0)
    YK_LOG(NOTICE, "no usable GPU for %.200s; there is %s (%s). It runs on %s instead, as soft placement allows", names, have,
           why_none(why, sizeof why), instead);
}

static int check(const yk_cli *c, yk_chosen *out, size_t n, const yk_device_info *info) {
  bool soft = c->soft_placement || yk__param_bool("soft_placement");
  char have[200], why[400];
  present(n, info, have, sizeof have);
  for (size_t k = 0; k < out->n; k++) {
    yk_device_spec want = YK__ANY_DEVICE, real = YK__ANY_DEVICE;
    bool found = false;
    if (yk__device_parse(out->at[k], &want) != YK_OK) return yk__die_code(YK_EINVAL);
    for (size_t i = 0; i < n && !found; i++) {
      found = yk__device_parse(info[i].name, &real) == YK_OK && yk__device_matches(&want, &real);
      if (!found) continue;
      out->is_virtual[k] = info[i].is_virtual;
      memcpy(out->fast[k], info[i].fast_types, sizeof out->fast[k]);
    }
    out->absent[k] = !found;
    if (!found && c->rehearse != NULL)
      return yk__die(YK__EXIT_NO_GPU, "the machine of '%s' has no %s; it has %s", yk__shown(c->rehearse), out->at[k] + 1, have);
    if (!found && !soft)
      return yk__die(YK__EXIT_NO_GPU, "no usable GPU for %s; there is %s (%s). 'yoke doctor' tells more, "
                     "--virtual-gpus N emulates N GPUs, --soft-placement runs elsewhere", out->at[k], have,
                     why_none(why, sizeof why));
    if (!found) replace(out, k, n, info);
  }
  if (!c->quiet) tell_replaced(out, have);
  return 0;
}

int yk__choose(const yk_cli *c, yk_chosen *out) {
  enum { MAX_INFO = 2 * YK__MAX_CHOSEN + 2 };
  const char *list = c->devices != NULL ? c->devices : yk__param("devices");
  yk_device_info info[MAX_INFO];
  yk_graph *g = NULL;
  yk_session *s = NULL;
  size_t n;
  *out = (yk_chosen){ 0 };
  int status = yk__session_settings(c, &out->session);
  out->automatic = strcmp(list, "auto") == 0;
  if (status == 0 && !out->automatic && (c->devices != NULL || list[0] != '\0')) status = parse_list(list, out);
  if (status == 0) status = yk__probe(&out->session, &g, &s);
  if (status != 0) return status;
  n = yk_session_device_count(s);
  if (n > MAX_INFO) n = MAX_INFO;
  for (size_t i = 0; i < n; i++)
    if (yk_session_device(s, i, &info[i]) != YK_OK) info[i] = (yk_device_info){ 0 };
  yk_session_close(s);
  yk_graph_free(g);
  bool gpus = out->automatic || c->virtual_gpus != NULL || c->rehearse != NULL || yk__param("virtual_gpus")[0] != '\0';
  if (out->n == 0) take(out, n, info, gpus);
  if (out->automatic && c->rehearse == NULL && strncmp(out->at[0], "/cpu", 4) == 0) why_none(out->why, sizeof out->why);
  return check(c, out, n, info);
}
