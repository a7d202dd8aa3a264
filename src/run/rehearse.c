/*
 * rehearse.c - a job on hardware that is not here: a session with the devices of a file, and what a step would take of them.
 *
 * Placement, plan and memory of a step depend on names, types and limits of devices alone, so they are the same for devices that
 * only a file tells of. The answer is put together from the plan, as the executor would carry it out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "device/machine.h"
#include "run/run.h"
#include "tensor/desc.h"

/* ---- the session ------------------------------------------------------------------------------------------------- */

yk_code yk__session_open_rehearsed(yk_session *s, const char *stand_in) {
  yk_session_options *o = &s->options;
  if (o->virtual_gpus || o->virtual_gpu_groups || o->virtual_gpu_bytes || o->split_gpus || o->cpu_devices || o->cpu_bytes ||
      o->memory_limit || o->per_process_gpu_memory_fraction > 0 ||
      (o->visible_devices && o->visible_devices[0]))
    return YK_FAIL(EINVAL, "yk_session_options.rehearse \"%.200s\" brings all devices with it; expected no number, size, split or "
                   "list of devices besides", o->rehearse);
  YK_TRY(yk__machine_read(o->rehearse, &s->machine));
  YK_TRY(yk__devices_rehearse(s->machine, stand_in, &s->devices));
  for (uint16_t i = 0; i < s->machine->n; i++) {
    if (strcmp(s->machine->device[i].spec.type, "CPU") == 0) o->cpu_devices++;
    else if (s->machine->device[i].is_virtual) o->virtual_gpus++;
  }
  return YK_OK;
}

void yk__session_describe_rehearsed(const yk_session *s, size_t i, yk_device_info *info) {
  const yk_machine_device *m = &s->machine->device[i];
  const yk_device *d = &s->devices->at[i];
  if (m->driver[0]) snprintf(info->driver, sizeof info->driver, "%s", m->driver);
  else if (d->stand_in) snprintf(info->driver, sizeof info->driver, "?");
  if (d->stand_in) snprintf(info->stand_in, sizeof info->stand_in, "%s", d->driver->name);
  snprintf(info->bus, sizeof info->bus, "%s", m->bus);
  snprintf(info->uuid, sizeof info->uuid, "%s", m->uuid);
  snprintf(info->capability, sizeof info->capability, "%s", m->capability);
  if (strcmp(m->spec.type, "GPU") == 0) info->physical = info->platform = m->physical >= 0 ? m->physical : m->spec.id;
}

yk_code yk__session_real(const yk_session *s, const char *what) {
  if (s->machine == NULL) return YK_OK;
  return YK_FAIL(EUNSUPPORTED, "%s: the session rehearses the machine of \"%.200s\", whose devices are not here; it can place, "
                 "compile and explain (yk_session_rehearse, yk_session_explain)", what, s->machine->source);
}

/* ---- what a step takes ------------------------------------------------------------------------------------------- */

typedef struct route { uint16_t from, to; uint32_t copies; uint64_t bytes; } route;      /* YK__NO_DEVICE: the caller's memory */
typedef struct holding { const char *name; const yk_desc *desc; uint64_t bytes; uint16_t dev; } holding;

typedef struct survey {
  yk_session *s;
  const yk_plan *p;
  yk_device_use *use;                /* [devices] */
  route *route;      uint32_t nroute, route_cap;
  holding *held;     uint32_t nheld, held_cap;
} survey;

static yk_code hold(survey *v, holding h) {
  return YK_PUSH(v->held, v->nheld, v->held_cap, h) ? YK_OK : YK_ENOMEM;
}

/* Every variable of the graph, whether or not this step uses it: a job has to keep them all. */
static yk_code count_variables(survey *v, const yk_var_slot *var, const uint16_t *dev_of_node) {
  const yk_graph *g = v->s->g;
  for (uint32_t i = 0; i < v->s->nvar; i++) {
    const yk_variable *x = g->variable[i];
    uint16_t dev = var[i].dev != YK__NO_DEVICE ? var[i].dev : dev_of_node[yk__value_node(g, x->ref)->id];
    if (dev >= v->s->devices->n) return YK_FAIL(EINTERNAL, "variable %s was not placed", x->name);
    yk_device *d = &v->s->devices->at[dev];
    uint64_t bytes = 0;
    YK_TRY(d->driver->desc_bytes(d->dev, &var[i].desc, &bytes));
    if (bytes == 0) bytes = 1;                         /* as it is allocated */
    v->use[dev].variables++;
    v->use[dev].variable_bytes += yk__device_rounded(&v->s->devices->at[dev], bytes ? bytes : 1);
    YK_TRY(hold(v, (holding){ x->name, &var[i].desc, bytes, dev }));
  }
  return YK_OK;
}

static yk_code count_arenas(survey *v) {
  const yk_plan *p = v->p;
  for (uint32_t a = 0; a < p->narena; a++) {
    uint16_t dev = p->arena[a].dev;
    v->use[dev].arena_bytes += yk__device_rounded(&v->s->devices->at[dev], p->arena[a].bytes ? p->arena[a].bytes : 1);
  }
  for (uint32_t b = 0; b < p->nbuf; b++) {
    const yk_buf *x = &p->buf[b];
    const char *name = x->kind == YK_BUF_CONSTANT ? "a constant" : "the run counter";
    if (x->kind == YK_BUF_VARIABLE) continue;
    if (x->kind == YK_BUF_ARENA) name = x->first < p->ninstr ? p->origin[p->instr[x->first].origin].name : "a value";
    YK_TRY(hold(v, (holding){ name, &x->desc, x->bytes, p->arena[x->arena].dev }));
  }
  return YK_OK;
}

static yk_code add_copy(survey *v, uint16_t from, uint16_t to, uint64_t bytes) {
  uint32_t k = 0;
  while (k < v->nroute && (v->route[k].from != from || v->route[k].to != to)) k++;
  if (k == v->nroute && !YK_PUSH(v->route, v->nroute, v->route_cap, ((route){ .from = from, .to = to }))) return YK_ENOMEM;
  v->route[k].copies++;
  v->route[k].bytes += bytes;
  return YK_OK;
}

static yk_code count_copies(survey *v) {
  const yk_plan *p = v->p;
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *x = &p->instr[i];
    uint16_t to = p->stream_dev[x->stream];
    if (x->code != YK_I_COPY_PEER && x->code != YK_I_FEED && x->code != YK_I_FETCH) continue;
    uint64_t bytes = p->buf[p->arg[x->args]].bytes;
    if (x->code == YK_I_COPY_PEER) YK_TRY(add_copy(v, p->arena[p->buf[p->arg[x->args + 1]].arena].dev, to, bytes));
    else if (strcmp(v->s->devices->at[to].spec.type, "CPU") == 0) continue;                   /* the host's own memory */
    else if (x->code == YK_I_FEED) YK_TRY(add_copy(v, YK__NO_DEVICE, to, bytes));
    else YK_TRY(add_copy(v, to, YK__NO_DEVICE, bytes));
  }
  return YK_OK;
}

static yk_code count_operations(survey *v, uint16_t *dev_of_node) {
  const yk_graph *g = v->s->g;
  yk_place_request r = yk__session_placing(v->s);
  memset(dev_of_node, 0xFF, (g->nnode + 1u) * sizeof *dev_of_node);
  YK_TRY(yk__place_graph(&r, dev_of_node, NULL));
  for (uint32_t i = 1; i < g->nnode; i++)
    if (yk__node(g, i) && dev_of_node[i] < v->s->devices->n) v->use[dev_of_node[i]].operations++;
  return YK_OK;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

static const char *short_name(const survey *v, uint16_t dev, char buf[32]) {
  if (dev == YK__NO_DEVICE) return "caller";
  const yk_device_spec *s = &v->s->devices->at[dev].spec;
  snprintf(buf, 32, "/%s:%d", strcmp(s->type, "GPU") == 0 ? "gpu" : "cpu", (int)s->id);
  return buf;
}

/* Whose kernels were planned with, where a device's own driver is not here. */
static void put_source(const survey *v, yk_str *out) {
  const yk_machine *m = v->s->machine;
  char size[YK__BYTES_TEXT];
  if (!m) return;
  yk__str_add(out, "rehearsed: the machine of %s, %u devices", m->source, (unsigned)m->n);
  if (m->cores) yk__str_add(out, ", %" PRIu64 " host cores", m->cores);
  if (m->bytes) yk__str_add(out, ", %s", yk__bytes_text(m->bytes, size));
  for (uint16_t i = 0; i < m->n; i++) {
    const yk_device *d = &v->s->devices->at[i];
    if (!d->stand_in) continue;
    yk__str_add(out, "; driver '%s' is not here: '%s' stands in for its kernels and the scratch memory they ask for",
                m->device[i].driver[0] ? m->device[i].driver : "?", d->driver->name);
    break;
  }
  yk__str_add(out, "\n");
}

static void put_devices(const survey *v, yk_str *out) {
  char name[32], a[YK__BYTES_TEXT], b[YK__BYTES_TEXT], c[YK__BYTES_TEXT], d[YK__BYTES_TEXT];
  yk__str_add(out, "%-8s %10s %9s %12s %12s %12s %12s\n", "device", "operations", "variables", "their size", "arena", "together",
              "limit");
  for (uint16_t i = 0; i < v->s->devices->n; i++) {
    const yk_device_use *u = &v->use[i];
    yk__str_add(out, "%-8s %10" PRIu64 " %9" PRIu64 " %12s %12s %12s %12s  %s\n", short_name(v, i, name), u->operations,
                u->variables, yk__bytes_text(u->variable_bytes, a), yk__bytes_text(u->arena_bytes, b),
                yk__bytes_text(u->variable_bytes + u->arena_bytes, c),
                yk__bytes_text(u->bytes_limit, d), u->fits ? "fits" : "DOES NOT FIT");
  }
}

static void put_copies(const survey *v, yk_str *out) {
  char from[32], to[32], size[YK__BYTES_TEXT], link[80];
  if (v->nroute == 0) yk__str_add(out, "no copies between devices\n");
  else yk__str_add(out, "%-20s %10s %12s\n", "copies of one step", "number", "bytes");
  for (uint32_t k = 0; k < v->nroute; k++) {
    const route *r = &v->route[k];
    double speed = yk__machine_speed(v->s->machine, r->from, r->to);
    snprintf(link, sizeof link, "%s -> %s", short_name(v, r->from, from), short_name(v, r->to, to));
    yk__str_add(out, "%-20s %10u %12s", link, (unsigned)r->copies, yk__bytes_text(r->bytes, size));
    if (speed > 0) yk__str_add(out, "  %.3f ms at %.2f GB/s", (double)r->bytes / speed * 1e3, speed * 1e-9);
    yk__str_add(out, "\n");
  }
}

static int by_size(const void *a, const void *b) {
  const holding *x = a, *y = b;
  return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static void put_largest(survey *v, uint16_t dev, yk_str *out) {
  char text[YK__DESC_TEXT];
  int shown = 0;
  qsort(v->held, v->nheld, sizeof *v->held, by_size);
  for (uint32_t k = 0; k < v->nheld && shown < 5; k++) {
    const holding *h = &v->held[k];
    if (h->dev != dev) continue;
    yk__str_add(out, "%s%s %s (%" PRIu64 " bytes)", shown++ ? ", " : "", h->name, yk__desc_text(h->desc, text, sizeof text),
                h->bytes);
  }
}

/* The last line. Of the devices that it does not fit on, four are named, and the tensors of the one that lacks most. */
static void put_verdict(survey *v, bool fits, yk_str *out) {
  uint16_t worst = 0, shown = 0, n = 0;
  uint64_t lacks = 0;
  char name[32];
  if (fits) {
    yk__str_add(out, "the step fits\n");
    return;
  }
  for (uint16_t i = 0; i < v->s->devices->n; i++) n = (uint16_t)(n + !v->use[i].fits);
  yk__str_add(out, "the step does not fit on %u of %u devices: ", (unsigned)n, (unsigned)v->s->devices->n);
  for (uint16_t i = 0; i < v->s->devices->n; i++) {
    const yk_device_use *u = &v->use[i];
    uint64_t need = u->variable_bytes + u->arena_bytes;
    if (u->fits) continue;
    if (need - u->bytes_limit > lacks) {
      lacks = need - u->bytes_limit;
      worst = i;
    }
    if (shown++ < 4)
      yk__str_add(out, "%s%s needs %" PRIu64 " bytes of %" PRIu64, shown > 1 ? ", " : "", short_name(v, i, name), need,
                  u->bytes_limit);
  }
  yk__str_add(out, "%s; the largest on %s: ", shown > 4 ? ", ..." : "", short_name(v, worst, name));
  put_largest(v, worst, out);
  yk__str_add(out, ". A smaller batch, or more devices, needs less\n");
}

/* ---- entry ------------------------------------------------------------------------------------------------------- */

typedef struct answer { bool fits; yk_device_use *use; char *text; } answer;

static yk_code look_into(survey *v, const yk_var_slot *var, uint16_t *dev_of_node, answer *a) {
  yk_str text = { 0 };
  uint16_t n = v->s->devices->n;
  YK_TRY(count_operations(v, dev_of_node));
  YK_TRY(count_variables(v, var, dev_of_node));
  YK_TRY(count_arenas(v));
  YK_TRY(count_copies(v));
  a->fits = true;
  for (uint16_t i = 0; i < n; i++) {
    yk_device_use *u = &v->use[i];
    u->bytes_limit = v->s->devices->at[i].limit;
    u->fits = u->variable_bytes <= u->bytes_limit && u->arena_bytes <= u->bytes_limit - u->variable_bytes;
    a->fits = a->fits && u->fits;
  }
  put_source(v, &text);
  put_devices(v, &text);
  put_copies(v, &text);
  put_verdict(v, a->fits, &text);
  YK_TRY(yk__str_take(&text, &a->text));
  if (a->use) memcpy(a->use, v->use, n * sizeof *a->use);
  return YK_OK;
}

static yk_code look(yk_session *s, const yk_plan *p, const yk_var_slot *var, void *arg) {
  survey v = { .s = s, .p = p };
  uint16_t *dev_of_node = yk__alloc((s->g->nnode + 1u) * sizeof *dev_of_node);
  v.use = yk__calloc(s->devices->n + 1u, sizeof *v.use);
  yk_code rc = dev_of_node && v.use ? look_into(&v, var, dev_of_node, arg) : YK_ENOMEM;
  yk__free(dev_of_node);
  yk__free(v.use);
  yk__free(v.route);
  yk__free(v.held);
  return rc;
}

yk_code yk_session_rehearse(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                            size_t ntarget, const yk_value *targets, bool *fits, yk_device_use *use, char **out) {
  answer a = { .use = use };
  if (fits == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_session_rehearse: NULL output");
  YK_TRY(yk__step_look(s, nfeed, feeds, nfetch, fetches, ntarget, targets, look, &a));
  *fits = a.fits;
  *out = a.text;
  return YK_OK;
}
