/*
 * expect.c - see expect.h. Kernels that differ in nothing but their arguments are one kind and are timed once.
 *
 * A kind that several devices have is timed on all of them at once, since towers run side by side and share the memory's speed.
 * The order of a plan is a valid order of its streams, so one pass over the instructions, with a clock for each stream, gives the end.
 * The thread that prepares the next batch runs as soon as one was taken. If devices own all cores it runs on one of theirs, and
 * what that one computes ends so much later; which one is hit, the more likely the busier it is, is the scheduler's whim.
 */
#include "measure/expect.h"
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/machine.h"
#include "measure/kinds.h"
#include "run/survey.h"

#define LAUNCH_SECONDS 2e-6                          /* to start a kernel, where only speeds are known */
#define COPY_SECONDS 4e-6                            /* to start a copy behind another device's work */

/* ---- speeds ------------------------------------------------------------------------------------------------------ */

typedef struct speeds { double flops, bytes; } speeds;       /* a second; 0 = not known */

static speeds speeds_of(const yk_session *s, const yk_topology *links, uint16_t dev) {
  if (s->machine) return (speeds){ s->machine->device[dev].gflops * 1e9, s->machine->device[dev].gbytes_per_s * 1e9 };
  const yk_link *own = &links->between[dev * links->n + dev];
  return (speeds){ 0, own->measured ? 2 * own->bytes_per_second : 0 };        /* each byte of a copy is read and written */
}

/* Bytes a second of one copy; 0: not known. */
static double copy_speed(const yk_session *s, const yk_topology *links, uint16_t from, uint16_t to) {
  if (s->machine) return yk__machine_speed(s->machine, from, to);
  const yk_link *l = &links->between[from * links->n + to];
  return l->measured ? l->bytes_per_second : 0;
}

static double reckon(const speeds *v, double flops, double bytes) {
  double a = v->flops > 0 ? flops / v->flops : 0, b = v->bytes > 0 ? bytes / v->bytes : 0;
  return LAUNCH_SECONDS + (a > b ? a : b);
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

typedef struct clock { const yk_session *s; const yk_plan *p; const yk_topology *links; const yk_kinds *kinds; double *at, *event; } clock;

static double launch_time(const clock *c, uint32_t i) {
  const yk_instr *x = &c->p->instr[i];
  uint16_t dev = c->p->stream_dev[x->stream];
  speeds v = speeds_of(c->s, c->links, dev);
  double known = c->kinds ? yk__kind_seconds(c->kinds, i) : -1;
  if (known >= 0) return known;
  return reckon(&v, yk__instr_flops(c->p, x), (double)yk__instr_bytes(c->p, x));
}

static double copy_time(const clock *c, const yk_instr *x) {
  const yk_buf *to = &c->p->buf[c->p->arg[x->args]];
  uint16_t dev = c->p->stream_dev[x->stream];
  double speed = speeds_of(c->s, c->links, dev).bytes / 2;
  if (x->code == YK_I_COPY_PEER) speed = copy_speed(c->s, c->links, c->p->arena[c->p->buf[c->p->arg[x->args + 1]].arena].dev, dev);
  if (x->code == YK_I_FILL) speed *= 2;              /* written only */
  return COPY_SECONDS + (speed > 0 ? (double)to->bytes / speed : 0);
}

/* Devices may have one stream in common: then they take turns. */
static uint32_t lane(const clock *c, uint32_t stream) {
  yk_devices *d = c->s->devices;
  yk_stream *mine, *other;
  if (c->s->machine || yk__device_stream(&d->at[c->p->stream_dev[stream]], &mine) != YK_OK) return stream;
  for (uint32_t k = 0; k < stream; k++)
    if (yk__device_stream(&d->at[c->p->stream_dev[k]], &other) == YK_OK && other == mine) return k;
  return stream;
}

/* When does the step end, if the stream `hit` starts `late`? out: unless NULL, what is done in that time. */
static double play(const clock *c, uint32_t hit, double late, yk_expectation *out) {
  double end = 0;
  for (uint32_t k = 0; k < c->p->nstream; k++) c->at[k] = 0;
  if (late > 0) c->at[lane(c, hit)] = late;
  for (uint32_t i = 0; i < c->p->ninstr; i++) {
    const yk_instr *x = &c->p->instr[i];
    uint16_t dev = c->p->stream_dev[x->stream];
    double *now = &c->at[lane(c, x->stream)], took = 0, none, *sum = &none;
    if (x->code == YK_I_WAIT) {
      if (c->event[x->a] > *now) *now = c->event[x->a];
    } else if (x->code == YK_I_RECORD) {
      c->event[x->a] = *now;
    } else {
      took = x->code == YK_I_LAUNCH ? launch_time(c, i) : copy_time(c, x);
      if (out) sum = x->code == YK_I_LAUNCH ? &out->busy[dev] : &out->copying[dev];
      *sum = out ? *sum + took : 0;
    }
    *now += took;
    if (*now > end) end = *now;
  }
  return end;
}

/* Does the device compute on cores of this host? */
static bool on_host(const yk_device *d) { return !d->stand_in && (d->is_virtual || strcmp(d->spec.type, "CPU") == 0); }

/* Are there host cores that no device of the plan computes on? */
static bool cores_to_spare(const clock *c) {
  uint32_t end = 0;
  for (uint32_t k = 0; k < c->p->nstream; k++) {
    const yk_device *d = &c->s->devices->at[c->p->stream_dev[k]];
    if (on_host(d) && d->config.first_core + d->config.ncores > end) end = d->config.first_core + d->config.ncores;
  }
  return end < (uint32_t)yk__ncores();
}

/* By how much a step ends later that prepares the next batch meanwhile: the mean over the devices, each as likely as it is busy. */
static double input_time(const clock *c, double input, double end, const yk_expectation *x) {
  double likely = 0, sum = 0;
  if (c->s->machine || input <= 0 || cores_to_spare(c)) return 0;
  for (uint32_t k = 0; k < c->p->nstream; k++) {
    uint16_t dev = c->p->stream_dev[k];
    if (!on_host(&c->s->devices->at[dev]) || x->busy[dev] <= 0) continue;
    sum += x->busy[dev] * (play(c, k, input, NULL) - end);
    likely += x->busy[dev];
  }
  return likely > 0 ? sum / likely : 0;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Does the file tell how fast each device is that the plan uses? */
static bool told(const yk_session *s, const yk_plan *p, yk_expectation *out) {
  for (uint32_t k = 0; k < p->nstream; k++) {
    const yk_machine_device *d = &s->machine->device[p->stream_dev[k]];
    if (d->gflops > 0 && d->gbytes_per_s > 0) continue;
    char name[YK__SHORT_BYTES];
    snprintf(out->why, sizeof out->why, "%.200s has no speed of %s; 'yoke devices --bench --save FILE' on that machine writes them",
             s->machine->source, yk__short_name(s->devices->at[p->stream_dev[k]].name, name));
    return false;
  }
  return true;
}

static yk_code expect(yk_session *s, const yk_plan *p, const yk_topology *links, double input, double seconds, yk_expectation *out) {
  yk_kinds *kinds = NULL;
  clock c = { .s = s, .p = p, .links = links, .at = yk__calloc(p->nstream + 1u, sizeof *c.at),
              .event = yk__calloc(p->nevent + 1u, sizeof *c.event) };
  yk_code rc = c.at && c.event ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK && s->machine == NULL) rc = yk__kinds_measure(s, p, seconds, &kinds);
  if (rc == YK_OK) {
    c.kinds = kinds;
    double end = play(&c, 0, 0, out);
    out->input = input_time(&c, input, end, out);
    out->seconds = end + out->input;
    out->known = true;
    out->measured = kinds != NULL;
    out->kinds = kinds ? yk__kinds_count(kinds, &out->reckoned) : 0;
  }
  yk__kinds_free(kinds);
  yk__free(c.at);
  yk__free(c.event);
  return rc;
}

yk_code yk__expect(yk_session *s, const yk_plan *p, const yk_topology *links, double input, double seconds, yk_expectation *out) {
  *out = (yk_expectation){ .busy = yk__calloc(s->devices->n + 1u, sizeof *out->busy),
                           .copying = yk__calloc(s->devices->n + 1u, sizeof *out->copying) };
  yk_code rc = out->busy && out->copying ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK && (s->machine == NULL || told(s, p, out))) rc = expect(s, p, links, input, seconds, out);
  if (rc == YK_OK) return YK_OK;
  if (rc != YK_ENOMEM || out->busy == NULL || out->copying == NULL) {
    yk__expectation_free(out);
    return rc;
  }
  snprintf(out->why, sizeof out->why, "%.390s", yk_error_message());
  yk_error_clear();
  return YK_OK;
}

void yk__expectation_free(yk_expectation *x) {
  yk__free(x->busy);
  yk__free(x->copying);
  *x = (yk_expectation){ 0 };
}
