/*
 * rehearse.c - a job on hardware that is not here: a session with the devices of a file, and what a step would take of them.
 *
 * Placement, plan and memory of a step depend on names, types and limits of devices alone, so they are the same for devices that
 * only a file tells of. The answer is put together from the plan, as the executor would carry it out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "device/machine.h"
#include "run/survey.h"
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
  snprintf(info->fast_types, sizeof info->fast_types, "%s", m->fast_types);
  if (strcmp(m->spec.type, "GPU") == 0) info->physical = info->platform = m->physical >= 0 ? m->physical : m->spec.id;
}

yk_code yk__session_real(const yk_session *s, const char *what) {
  if (s->machine == NULL) return YK_OK;
  return YK_FAIL(EUNSUPPORTED, "%s: the session rehearses the machine of \"%.200s\", whose devices are not here; it can place, "
                 "compile and explain (yk_session_rehearse, yk_session_explain)", what, s->machine->source);
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

const char *yk__survey_device(const yk_survey *v, uint16_t dev, char buf[YK__ROUTE_TEXT]) {
  if (dev == YK__NO_DEVICE) return "caller";
  const yk_device_spec *s = &v->s->devices->at[dev].spec;
  snprintf(buf, YK__ROUTE_TEXT, "/%s:%d", strcmp(s->type, "GPU") == 0 ? "gpu" : "cpu", (int)s->id);
  return buf;
}

const char *yk__holding_text(const yk_holding *h, char buf[YK__HOLDING_TEXT]) {
  char text[YK__DESC_TEXT];
  snprintf(buf, YK__HOLDING_TEXT, "%.120s %.70s", h->name, yk__desc_text(h->desc, text, sizeof text));
  return buf;
}

/* Whose kernels were planned with, where a device's own driver is not here. */
void yk__survey_put_source(const yk_survey *v, yk_str *out) {
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

static void put_devices(const yk_survey *v, yk_str *out) {
  char name[32], a[YK__BYTES_TEXT], b[YK__BYTES_TEXT], c[YK__BYTES_TEXT], d[YK__BYTES_TEXT];
  yk__str_add(out, "%-8s %10s %9s %12s %12s %12s %12s\n", "device", "operations", "variables", "their size", "arena", "together",
              "limit");
  for (uint16_t i = 0; i < v->s->devices->n; i++) {
    const yk_device_use *u = &v->use[i];
    yk__str_add(out, "%-8s %10" PRIu64 " %9" PRIu64 " %12s %12s %12s %12s  %s\n", yk__survey_device(v, i, name), u->operations,
                u->variables, yk__bytes_text(u->variable_bytes, a), yk__bytes_text(u->arena_bytes, b),
                yk__bytes_text(u->variable_bytes + u->arena_bytes, c),
                yk__bytes_text(u->bytes_limit, d), u->fits ? "fits" : "DOES NOT FIT");
  }
}

void yk__survey_put_copies(const yk_survey *v, yk_str *out) {
  char from[32], to[32], size[YK__BYTES_TEXT], link[80];
  if (v->nroute == 0) yk__str_add(out, "no copies between devices\n");
  else yk__str_add(out, "%-20s %10s %12s\n", "copies of one step", "number", "bytes");
  for (uint32_t k = 0; k < v->nroute; k++) {
    const yk_route *r = &v->route[k];
    double speed = yk__machine_speed(v->s->machine, r->from, r->to);
    snprintf(link, sizeof link, "%s -> %s", yk__survey_device(v, r->from, from), yk__survey_device(v, r->to, to));
    yk__str_add(out, "%-20s %10u %12s", link, (unsigned)r->copies, yk__bytes_text(r->bytes, size));
    if (speed > 0) yk__str_add(out, "  %.3f ms at %.2f GB/s", (double)r->bytes / speed * 1e3, speed * 1e-9);
    yk__str_add(out, "\n");
  }
}

static void put_largest(const yk_survey *v, uint16_t dev, yk_str *out) {
  char text[YK__HOLDING_TEXT];
  int shown = 0;
  for (uint32_t k = 0; k < v->nheld && shown < 5; k++) {
    const yk_holding *h = &v->held[k];
    if (h->dev != dev) continue;
    yk__str_add(out, "%s%s (%" PRIu64 " bytes)", shown++ ? ", " : "", yk__holding_text(h, text), h->bytes);
  }
}

/* The last line. Of the devices that it does not fit on, four are named, and the tensors of the one that lacks most. */
void yk__survey_put_verdict(const yk_survey *v, yk_str *out) {
  uint16_t worst = 0, shown = 0, n = 0;
  uint64_t lacks = 0;
  char name[32];
  if (v->fits) {
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
      yk__str_add(out, "%s%s needs %" PRIu64 " bytes of %" PRIu64, shown > 1 ? ", " : "", yk__survey_device(v, i, name), need,
                  u->bytes_limit);
  }
  yk__str_add(out, "%s; the largest on %s: ", shown > 4 ? ", ..." : "", yk__survey_device(v, worst, name));
  put_largest(v, worst, out);
  yk__str_add(out, ". A smaller batch, or more devices, needs less\n");
}

/* ---- entry ------------------------------------------------------------------------------------------------------- */

typedef struct answer { bool fits; yk_device_use *use; char *text; } answer;

static yk_code look(yk_session *s, const yk_plan *p, const yk_var_slot *var, void *arg) {
  answer *a = arg;
  yk_survey v;
  yk_str text = { 0 };
  YK_TRY(yk__survey(s, p, var, &v));
  yk__survey_put_source(&v, &text);
  put_devices(&v, &text);
  yk__survey_put_copies(&v, &text);
  yk__survey_put_verdict(&v, &text);
  yk_code rc = yk__str_take(&text, &a->text);
  a->fits = v.fits;
  if (rc == YK_OK && a->use) memcpy(a->use, v.use, s->devices->n * sizeof *a->use);
  yk__survey_free(&v);
  return rc;
}

yk_code yk_session_rehearse(yk_session *s, size_t nfeed, const yk_feed *feeds, size_t nfetch, const yk_value *fetches,
                            size_t ntarget, const yk_value *targets, bool *fits, yk_device_use *use, char **out) {
  answer a = { .use = use };
  if (fits == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_session_rehearse: NULL output");
  YK_TRY(yk__step_look(s, nfeed, feeds, nfetch, fetches, ntarget, targets, NULL, look, &a));
  *fits = a.fits;
  *out = a.text;
  return YK_OK;
}
