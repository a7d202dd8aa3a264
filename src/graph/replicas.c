/*
 * replicas.c - the device setter that spreads variables over parameter devices.
 *
 * Each new variable is given the next device in turn, or the one that holds the
 * fewest bytes; all other nodes are the worker's. It only fills in what the
 * scopes opened inside left open, and counts every variable that is its business.
 */
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "tensor/desc.h"

enum { MOST = 65536 };

struct yk_replica_setter {
  uint32_t n, next;
  yk_device_spec *device;              /* [n] */
  uint64_t *bytes;                     /* [n] given so far */
  yk_device_spec worker;
  bool by_size, no_merge;
};

static yk_code parse(const char *text, const char *what, yk_device_spec *out) {
  yk_code rc = yk__device_parse(text, out);
  return rc == YK_OK ? rc : yk__fail_prefix(rc, "yk_replica_options.%s", what);
}

/* The devices listed, or task i of the parameter job. */
static yk_code list(const yk_replica_options *o, yk_replica_setter *s) {
  yk_device_spec ps;
  YK_TRY(parse(o->ps_device ? o->ps_device : "/job:ps", "ps_device", &ps));
  YK_TRY(parse(o->worker_device ? o->worker_device : "/job:worker", "worker_device", &s->worker));
  for (uint32_t i = 0; i < s->n; i++) {
    s->device[i] = ps;
    s->device[i].task = (int32_t)i;
    if (o->ndevices) YK_TRY(parse(o->devices[i], "devices", &s->device[i]));
  }
  return YK_OK;
}

static yk_code make(yk_graph *g, const yk_replica_options *o, yk_replica_setter **out) {
  size_t n = o->ndevices ? o->ndevices : o->ps_tasks;
  if (o->ndevices && o->ps_tasks) return YK_FAIL(EINVAL, "yk_replica_options: ps_tasks and devices exclude each other");
  if (o->ndevices && !o->devices) return YK_FAIL(EINVAL, "yk_replica_options.devices is NULL, ndevices is %zu", o->ndevices);
  if (n > MOST) return YK_FAIL(EINVAL, "yk_replica_options: %zu devices, at most %d are possible", n, MOST);
  yk_replica_setter *s = yk__bump(&g->arena, sizeof *s);
  if (!s) return YK_ENOMEM;
  *s = (yk_replica_setter){ .n = (uint32_t)n, .by_size = o->by_size, .no_merge = o->no_merge };
  s->device = yk__bump(&g->arena, (n + 1) * sizeof *s->device);
  s->bytes = yk__bump(&g->arena, (n + 1) * sizeof *s->bytes);
  if (!s->device || !s->bytes) return YK_ENOMEM;
  YK_TRY(list(o, s));
  *out = s;
  return YK_OK;
}

yk_replica_setter *yk_replica_setter_new_at(const char *where, yk_graph *g, const yk_replica_options *options) {
  static const yk_replica_options none;
  yk_replica_setter *s = NULL;
  if (!yk__graph_ok(g)) return NULL;
  yk_code rc = make(g, options ? options : &none, &s);
  if (rc != YK_OK) yk__graph_fail(where, g, rc);
  return s;
}

void yk_replica_push_at(const char *where, yk_graph *g, yk_replica_setter *setter) {
  if (!yk__scope_open(where, g, YK__SCOPE_DEVICE)) return;
  if (!setter) yk_graph_fail_at(where, g, YK_EINVAL, "yk_replica_push: the setter is NULL");
  else yk__scope_push_device(where, g, (yk_device_frame){ .spec = YK__ANY_DEVICE, .setter = setter });
}

uint64_t yk_replica_bytes(const yk_replica_setter *s, size_t i) {
  return s && i < s->n ? s->bytes[i] : 0;
}

/* Is the device that inner scopes gave in the job of this one, as far as both say? */
static bool same_job(const yk_device_spec *inner, const yk_device_spec *mine) {
  return !inner->job[0] || !mine->job[0] || strcmp(inner->job, mine->job) == 0;
}

static uint32_t choose(yk_replica_setter *s, const yk_desc *d) {
  uint32_t k = s->next;
  if (s->by_size) {
    k = 0;
    for (uint32_t i = 1; i < s->n; i++)
      if (s->bytes[i] < s->bytes[k]) k = i;
  }
  s->next = (s->next + 1) % s->n;
  s->bytes[k] += (uint64_t)yk__desc_count(d) * yk_dtype_bytes((yk_dtype)d->dtype);
  return k;
}

void yk__replica_device(yk_replica_setter *s, const yk_desc *stored, yk_device_spec *device) {
  if (s->n == 0 || (s->no_merge && !yk__device_empty(device))) return;
  if (!stored) {
    *device = yk__device_merge(device, &s->worker);
    return;
  }
  if (!same_job(device, &s->device[0])) return;
  *device = yk__device_merge(device, &s->device[choose(s, stored)]);
}
