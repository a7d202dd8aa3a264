/*
 * forecast.c - see forecast.h. It keeps its own variables' slots and plays the part of plan_cache.c and variables.c.
 *
 * A handle of this memory is a number, never an address that anybody reads. Idle plans give their memory to one that lacks it, as
 * they do in a session; what a driver refuses of its own accord cannot be foreseen.
 */
#include "run/forecast.h"
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "device/pool.h"

typedef struct lent { uint16_t dev; yk_mem mem; } lent;
typedef struct active {              /* one plan's arenas */
  lent *arena; uint32_t n, cap;
  uint32_t *uses;                    /* [nuses] variables of the plan */
  uint32_t nuses, uses_cap;
} active;

struct yk_forecast {
  yk_session *s;
  yk_var_slot *var;                  /* [s->nvar] */
  yk_pool **pool;                    /* [devices] */
  active *plan; uint32_t nplan, plan_cap;
  uintptr_t handles;
  uint16_t lacking;                  /* device that refused first; YK__NO_DEVICE: none did */
  char why[YK__REFUSAL_TEXT];
  yk_look *look;                     /* of the step under way */
  void *arg;
};

static yk_code take(void *arg, size_t bytes, yk_mem *out) {
  yk_forecast *f = arg;
  f->handles += 4096;
  *out = (yk_mem){ .base = (void *)f->handles, .bytes = bytes };       /* never followed */
  return YK_OK;
}

static void give(void *arg, yk_mem mem) {
  (void)arg;
  (void)mem;
}

/* As memory.c opens the device's own. */
static yk_code open_pool(yk_forecast *f, uint16_t i) {
  const yk_device *d = &f->s->devices->at[i];
  yk_pool_policy policy = strcmp(d->spec.type, "GPU") != 0 ? YK__POOL_EXACT : d->growth ? YK__POOL_GROWTH : YK__POOL_WHOLE;
  yk_pool_source source = { take, give, f };
  return yk__pool_open(policy, d->total, d->limit, d->info.alignment, &source, &f->pool[i]);
}

yk_code yk__forecast_open(yk_session *s, yk_forecast **out) {
  yk_forecast *f = yk__calloc(1, sizeof *f);
  if (f == NULL) return YK_ENOMEM;
  f->s = s;
  f->lacking = YK__NO_DEVICE;
  f->var = yk__calloc(s->nvar + 1u, sizeof *f->var);
  f->pool = yk__calloc(s->devices->n + 1u, sizeof(yk_pool *));
  yk_code rc = f->var && f->pool ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) yk__vars_copy(s, f->var);
  for (uint32_t v = 0; v < s->nvar && rc == YK_OK; v++)
    if (f->var[v].mem.base) rc = YK_FAIL(EINVAL, "a forecast begins with a session that has run nothing");
  for (uint16_t i = 0; i < s->devices->n && rc == YK_OK; i++) rc = open_pool(f, i);
  if (rc == YK_OK) *out = f;
  else yk__forecast_close(f);
  return rc;
}

void yk__forecast_close(yk_forecast *f) {
  if (f == NULL) return;
  for (uint32_t i = 0; i < f->nplan; i++) {
    yk__free(f->plan[i].arena);
    yk__free(f->plan[i].uses);
  }
  for (uint16_t i = 0; f->pool && i < f->s->devices->n; i++) yk__pool_close(f->pool[i]);
  yk__free(f->plan);
  yk__free(f->pool);
  yk__free(f->var);
  yk__free(f);
}

/* ---- memory that is short --------------------------------------------------------------------------------------- */

static void drop_arenas(yk_forecast *f, active *a) {
  while (a->n > 0) {
    a->n--;
    yk__pool_free(f->pool[a->arena[a->n].dev], a->arena[a->n].mem);
  }
}

/* The plan that ran first gives up what it has, if it has something of that device. */
static bool reclaim(yk_forecast *f, uint16_t dev) {
  for (uint32_t i = 0; i < f->nplan; i++)
    for (uint32_t k = 0; k < f->plan[i].n; k++)
      if (f->plan[i].arena[k].dev == dev) { drop_arenas(f, &f->plan[i]); return true; }
  return false;
}

static yk_code allocate(yk_forecast *f, uint16_t dev, uint64_t bytes, yk_mem *out) {
  yk_code rc = yk__pool_alloc(f->pool[dev], (size_t)bytes, out);
  while (rc == YK_ENOMEM && reclaim(f, dev)) {
    yk_error_clear();
    rc = yk__pool_alloc(f->pool[dev], (size_t)bytes, out);
  }
  if (rc == YK_ENOMEM && f->lacking == YK__NO_DEVICE) {
    f->lacking = dev;
    snprintf(f->why, sizeof f->why, "%s", yk_error_message());
  }
  return rc;
}

/* A device's refusal is a result, the first one is kept; want of the host's memory is a failure. */
static yk_code accept_refusal(const yk_forecast *f, yk_code rc) {
  if (rc != YK_ENOMEM || f->lacking == YK__NO_DEVICE) return rc;
  yk_error_clear();
  return YK_OK;
}

/* ---- variables -------------------------------------------------------------------------------------------------- */

static yk_code allocate_variable(yk_forecast *f, const yk_desc *desc, uint16_t dev, uint64_t *bytes, yk_mem *mem) {
  const yk_device *d = &f->s->devices->at[dev];
  uint64_t n = 0;
  YK_TRY(d->driver->desc_bytes(d->dev, desc, &n));
  YK_TRY(allocate(f, dev, n ? n : 1, mem));
  *bytes = n;
  return YK_OK;
}

/* What reordering a value takes for a moment: that too is memory at the peak. */
static yk_code reorder(yk_forecast *f, uint16_t dev, const yk_desc *from, const yk_desc *to) {
  const yk_device *d = &f->s->devices->at[dev];
  yk_desc in = *from, out = *to;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "reorder", .op_version = 1, .nin = 1, .nout = 1, .flags = YK_SPEC_FIXED,
                          .in = &in, .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k;
  yk_mem work = { 0 };
  YK_TRY(d->driver->kernel_prepare(d->dev, &spec, &k, &info));
  d->driver->kernel_free(k);
  yk_code rc = info.workspace ? allocate(f, dev, info.workspace, &work) : YK_OK;
  yk__pool_free(f->pool[dev], work);
  return rc;
}

/* Plans compiled before for another layout of the variable go, as yk__cache_retire() lets them. */
static void retire(yk_forecast *f, uint32_t v) {
  for (uint32_t i = 0; i < f->nplan; i++)
    for (uint32_t k = 0; k < f->plan[i].nuses; k++)
      if (f->plan[i].uses[k] == v) drop_arenas(f, &f->plan[i]);
}

static yk_code relay(yk_forecast *f, yk_var_slot *slot, const yk_desc *desc) {
  uint64_t bytes = 0;
  yk_mem mem = { 0 };
  YK_TRY(allocate_variable(f, desc, slot->dev, &bytes, &mem));
  if (slot->initialized) YK_TRY(reorder(f, slot->dev, &slot->desc, desc));
  yk__pool_free(f->pool[slot->dev], slot->mem);
  slot->mem = mem;
  slot->bytes = bytes;
  slot->desc = *desc;
  return YK_OK;
}

static yk_code settle(yk_forecast *f, const yk_var_slot *now) {
  for (uint32_t v = 0; v < f->s->nvar; v++) {
    yk_var_slot *slot = &f->var[v];
    if (slot->mem.base == NULL) {
      slot->dev = now[v].dev;
      slot->desc = now[v].desc;
    } else if (slot->desc.layout != now[v].desc.layout) {
      retire(f, v);
      YK_TRY(relay(f, slot, &now[v].desc));
    }
    slot->layout_settled = now[v].layout_settled;
  }
  return YK_OK;
}

/* ---- a step ----------------------------------------------------------------------------------------------------- */

static yk_code activate(yk_forecast *f, const yk_plan *p, active *a) {
  for (uint32_t b = 0; b < p->nbuf; b++) {
    if (p->buf[b].kind != YK_BUF_VARIABLE) continue;
    uint32_t v = p->buf[b].index;
    yk_var_slot *slot = &f->var[v];
    if (!YK_PUSH(a->uses, a->nuses, a->uses_cap, v)) return YK_ENOMEM;
    if (slot->mem.base == NULL) YK_TRY(allocate_variable(f, &slot->desc, slot->dev, &slot->bytes, &slot->mem));
  }
  for (uint32_t i = 0; i < p->narena; i++) {
    lent x = { .dev = p->arena[i].dev };
    YK_TRY(allocate(f, x.dev, p->arena[i].bytes ? p->arena[i].bytes : 1, &x.mem));
    if (!YK_PUSH(a->arena, a->n, a->cap, x)) return YK_ENOMEM;
  }
  for (uint32_t i = 0; i < p->nwrites; i++) f->var[p->writes[i]].initialized = 1;
  return YK_OK;
}

static yk_code play(yk_session *s, const yk_plan *p, const yk_var_slot *now, void *arg) {
  yk_forecast *f = arg;
  active a = { 0 };
  yk_code rc = settle(f, now);
  if (rc == YK_OK) rc = activate(f, p, &a);
  rc = accept_refusal(f, rc);
  if (rc == YK_OK && !YK_PUSH(f->plan, f->nplan, f->plan_cap, a)) rc = YK_ENOMEM;
  if (rc == YK_OK) return f->look ? f->look(s, p, now, f->arg) : YK_OK;
  yk__free(a.arena);
  yk__free(a.uses);
  return rc;
}

/* A value leaves in plain layout: one that is kept in another is reordered beside it first. */
static yk_code read_back(yk_forecast *f, const yk_var_slot *slot) {
  yk_desc plain = slot->desc;
  uint64_t bytes = 0;
  yk_mem mem = { 0 };
  plain.layout = YK_LAYOUT_PLAIN;
  YK_TRY(allocate_variable(f, &plain, slot->dev, &bytes, &mem));
  yk_code rc = reorder(f, slot->dev, &slot->desc, &plain);
  yk__pool_free(f->pool[slot->dev], mem);
  return rc;
}

yk_code yk__forecast_read_back(yk_forecast *f) {
  for (uint32_t v = 0; v < f->s->nvar; v++) {
    const yk_variable *x = f->s->g->variable[v];
    bool reads = f->var[v].initialized && f->var[v].desc.layout != YK_LAYOUT_PLAIN && x->master == NULL;
    if (reads && f->lacking == YK__NO_DEVICE) YK_TRY(accept_refusal(f, read_back(f, &f->var[v])));
  }
  return YK_OK;
}

const char *yk__forecast_refusal(const yk_forecast *f, uint16_t *dev) {
  if (f->lacking == YK__NO_DEVICE) return NULL;
  *dev = f->lacking;
  return f->why;
}

yk_code yk__forecast_step(yk_forecast *f, size_t nfetch, const yk_value *fetches, size_t ntarget, const yk_value *targets,
                          yk_look *look, void *arg) {
  f->look = look;
  f->arg = arg;
  return yk__step_look(f->s, 0, NULL, nfetch, fetches, ntarget, targets, f->var, play, f);
}

void yk__forecast_memory(const yk_forecast *f, size_t i, yk_device_memory *out) {
  yk_device d = { .pool = f->pool[i] };
  yk__device_memory(&d, out);
}
