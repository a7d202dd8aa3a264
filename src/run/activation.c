/*
 * activation.c - what a plan needs to run: arenas, streams, events, resolved arguments.
 *
 * Made for a compiled plan and used for all of its runs. All memory of a step is
 * taken here, before anything runs, so a step that does not fit is refused as a whole.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "run/run.h"
#include "tensor/desc.h"

yk_mem yk__run_mem(const yk_run *r, const yk_var_slot *var, uint32_t b) {
  const yk_buf *buf = &r->plan->buf[b];
  yk_mem mem = buf->kind == YK_BUF_VARIABLE ? var[buf->index].mem : r->arena[buf->arena];
  mem.offset += (size_t)buf->offset;
  mem.bytes = (size_t)buf->bytes;
  return mem;
}

static yk_code take_arenas(yk_run *r) {
  const yk_plan *p = r->plan;
  for (uint32_t i = 0; i < p->narena; i++) {
    uint64_t bytes = p->arena[i].bytes ? p->arena[i].bytes : 1;          /* a base that is not NULL, even for nothing */
    YK_TRY(yk__device_alloc(&r->devices->at[p->arena[i].dev], (size_t)bytes, &r->arena[i]));
  }
  return YK_OK;
}

static yk_code open_lanes(yk_run *r) {
  const yk_plan *p = r->plan;
  for (uint32_t k = 0; k < p->nstream; k++) {
    yk_lane *l = &r->lane[k];
    l->device = &r->devices->at[p->stream_dev[k]];
    l->driver = l->device->driver;
    l->counts = true;
    for (uint32_t j = 0; j < k; j++) l->counts &= r->lane[j].device != l->device;
    if (p->nstream == 1) {
      yk_code rc = l->driver->stream_open(l->device->dev, YK_STREAM_INLINE, &l->stream);
      r->is_inline = rc == YK_OK;
      if (rc != YK_OK && rc != YK_EUNSUPPORTED) return rc;
      if (rc == YK_OK) continue;
      yk_error_clear();
    }
    YK_TRY(yk__device_stream(l->device, &l->stream));
    YK_TRY(l->driver->event_open(l->device->dev, &l->done));
  }
  for (uint32_t e = 0; e < p->nevent; e++) {
    yk_lane *l = &r->lane[p->event_stream[e]];
    YK_TRY(l->driver->event_open(l->device->dev, &r->event[e]));
  }
  return YK_OK;
}

static void resolve(yk_run *r, const yk_var_slot *var) {
  const yk_plan *p = r->plan;
  for (uint32_t i = 0; i < p->narg; i++)
    if (p->arg[i] != YK_NO_BUF) r->arg[i] = yk__run_mem(r, var, p->arg[i]);
  for (uint32_t k = 0; k < p->nkernel; k++)
    if (p->kernel[k].workspace != YK_NO_BUF) r->workspace[k] = yk__run_mem(r, var, p->kernel[k].workspace);
  for (uint32_t i = 0; i < p->ninstr; i++) {       /* host tensors are dense: a padded buffer must not read or write past them */
    const yk_instr *in = &p->instr[i];
    const yk_desc *d = in->code == YK_I_FEED ? &p->feed[in->a].desc : in->code == YK_I_FETCH ? &p->fetch[in->a].desc : NULL;
    if (d) r->arg[in->args].bytes = (size_t)yk__desc_count(d) * yk_dtype_bytes((yk_dtype)d->dtype);
  }
}

/* Host memory for copies that no driver can make alone. */
static yk_code take_bounce(yk_run *r) {
  const yk_plan *p = r->plan;
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *in = &p->instr[i];
    if (in->code != YK_I_COPY_PEER) continue;
    const yk_device *to = r->lane[in->stream].device;
    const yk_device *from = &r->devices->at[p->arena[p->buf[p->arg[in->args + 1]].arena].dev];
    if (to->dev == from->dev || (to->driver == from->driver && YK_HAS(to->driver, copy_peer))) continue;
    if (r->bounce == NULL && (r->bounce = yk__bump(&r->mem, (size_t)p->ninstr * sizeof *r->bounce)) == NULL) return YK_ENOMEM;
    r->bounce[i] = yk__bump(&r->mem, r->arg[in->args].bytes);
    if (r->bounce[i] == NULL) return YK_ENOMEM;
  }
  return YK_OK;
}

/* Constants go up once; where the run counter goes is noted. */
static yk_code upload(yk_run *r) {
  const yk_plan *p = r->plan;
  for (uint32_t b = 0; b < p->nbuf; b++) {
    if (p->buf[b].kind == YK_BUF_COUNTER) r->counter[r->ncounter++] = b;
    if (p->buf[b].kind != YK_BUF_CONSTANT) continue;
    const yk_tensor *t = p->constant[p->buf[b].index];
    yk_mem mem = yk__run_mem(r, NULL, b);
    mem.bytes = yk_tensor_bytes(t);
    if (p->buf[b].desc.layout != YK_LAYOUT_PLAIN) return YK_FAIL(EINTERNAL, "constant %u is not plain", p->buf[b].index);
    for (uint32_t k = 0; k < p->nstream; k++) {
      if (p->stream_dev[k] != p->arena[p->buf[b].arena].dev) continue;
      YK_TRY(r->lane[k].driver->copy_in(r->lane[k].stream, mem, yk_tensor_data(t)));
    }
  }
  for (uint32_t k = 0; k < p->nstream; k++) {
    uint64_t failed = 0;
    YK_TRY(r->lane[k].driver->stream_sync(r->lane[k].stream, &failed));
  }
  return YK_OK;
}

static yk_code prepare(yk_run *r, const yk_var_slot *var) {
  const yk_plan *p = r->plan;
  r->arena     = yk__bump(&r->mem, (p->narena + 1u) * sizeof *r->arena);
  r->arg       = yk__bump(&r->mem, (p->narg + 1u) * sizeof *r->arg);
  r->workspace = yk__bump(&r->mem, (p->nkernel + 1u) * sizeof *r->workspace);
  r->lane      = yk__bump(&r->mem, (p->nstream + 1u) * sizeof *r->lane);
  r->event     = yk__bump(&r->mem, (p->nevent + 1u) * sizeof(yk_event *));
  r->counter   = yk__bump(&r->mem, (p->nbuf + 1u) * sizeof *r->counter);
  if (!r->arena || !r->arg || !r->workspace || !r->lane || !r->event || !r->counter) return YK_ENOMEM;
  YK_TRY(take_arenas(r));
  YK_TRY(open_lanes(r));
  resolve(r, var);
  YK_TRY(take_bounce(r));
  return upload(r);
}

yk_code yk__run_new(const yk_plan *p, yk_devices *d, const yk_var_slot *var, yk_run **out) {
  yk_run *r = yk__calloc(1, sizeof *r);
  if (r == NULL) return YK_ENOMEM;
  r->plan = p;
  r->devices = d;
  yk_code rc = prepare(r, var);
  if (rc != YK_OK) { yk__run_free(r); return rc; }
  *out = r;
  return YK_OK;
}

void yk__run_free(yk_run *r) {
  if (r == NULL) return;
  const yk_plan *p = r->plan;
  for (uint32_t e = 0; r->event && e < p->nevent; e++)
    if (r->event[e]) r->lane[p->event_stream[e]].driver->event_close(r->event[e]);
  for (uint32_t i = 0; r->mark && i < 2 * p->ninstr; i++)
    if (r->mark[i]) r->lane[p->instr[i / 2].stream].driver->event_close(r->mark[i]);
  for (uint32_t k = 0; r->lane && k < p->nstream; k++) {
    if (r->lane[k].done) r->lane[k].driver->event_close(r->lane[k].done);
    if (r->is_inline && r->lane[k].stream) r->lane[k].driver->stream_close(r->lane[k].stream);
  }
  for (uint32_t i = 0; r->arena && i < p->narena; i++)
    if (r->arena[i].base) yk__device_free(&r->devices->at[p->arena[i].dev], r->arena[i]);
  yk__bump_free(&r->mem);
  yk__free(r);
}
