/*
 * memory_report.c - what is said when a device has not the memory: what was needed, what there is, what holds it, what to try.
 *
 * A step is judged as a whole before anything of it is made, since its plan knows every byte: variables, and one arena for the
 * values between operations. Of the arena those values are named that are alive together when it is fullest.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/pool.h"
#include "run/run.h"
#include "tensor/desc.h"

enum { MOST = 10 };

typedef struct holder { const char *kind, *name; const yk_desc *desc; uint64_t bytes; } holder;
typedef struct holders { holder at[MOST]; uint32_t n, more; uint64_t more_bytes; } holders;   /* largest first; the rest summed up */

static void hold(holders *h, holder x) {
  if (x.bytes == 0) return;
  if (h->n == MOST) {
    const holder *least = &h->at[MOST - 1];
    h->more++;
    h->more_bytes += x.bytes <= least->bytes ? x.bytes : least->bytes;
    if (x.bytes <= least->bytes) return;
    h->n--;
  }
  uint32_t i = h->n++;
  for (; i > 0 && h->at[i - 1].bytes < x.bytes; i--) h->at[i] = h->at[i - 1];
  h->at[i] = x;
}

/* ---- needs ------------------------------------------------------------------------------------------------------ */

typedef struct need {
  uint64_t own, missing;             /* variables of the step: all, and those that have no memory yet */
  uint64_t others;                   /* the session's variables that the step does not use: they stay */
  uint64_t arena;
} need;

static uint64_t sum(const need *n) { return n->own + n->others + n->arena; }

static bool is_on(const yk_plan *p, const yk_buf *b, uint16_t dev) { return p->arena[b->arena].dev == dev; }

/* Memory that plan p (NULL: none) needs on `dev`. */
static need need_of(const yk_session *s, const yk_plan *p, uint16_t dev) {
  const yk_device *d = &s->devices->at[dev];
  need n = { 0 };
  for (uint32_t v = 0; v < s->nvar; v++)
    if (s->var[v].mem.base && s->var[v].dev == dev) n.others += yk__device_rounded(d, s->var[v].bytes ? s->var[v].bytes : 1);
  for (uint32_t b = 0; p && b < p->nbuf; b++) {
    const yk_buf *buf = &p->buf[b];
    if (buf->kind != YK_BUF_VARIABLE || !is_on(p, buf, dev)) continue;
    const yk_var_slot *slot = &s->var[buf->index];
    bool there = slot->mem.base != NULL;
    uint64_t has = slot->bytes, bytes = yk__device_rounded(d, there ? (has ? has : 1) : buf->bytes ? buf->bytes : 1);
    n.own += bytes;
    if (there) n.others -= bytes;
    else n.missing += bytes;
  }
  for (uint32_t a = 0; p && a < p->narena; a++)
    if (p->arena[a].dev == dev) n.arena += yk__device_rounded(d, p->arena[a].bytes ? p->arena[a].bytes : 1);
  return n;
}

/* ---- holders ---------------------------------------------------------------------------------------------------- */

static void hold_variables(const yk_session *s, const yk_plan *p, uint16_t dev, holders *h) {
  for (uint32_t v = 0; v < s->nvar; v++)
    if (s->var[v].mem.base && s->var[v].dev == dev)
      hold(h, (holder){ "variable", s->g->variable[v]->name, &s->var[v].desc, s->var[v].bytes });
  for (uint32_t b = 0; p && b < p->nbuf; b++)
    if (p->buf[b].kind == YK_BUF_VARIABLE && is_on(p, &p->buf[b], dev) && !s->var[p->buf[b].index].mem.base)
      hold(h, (holder){ "variable", s->g->variable[p->buf[b].index]->name, &p->buf[b].desc, p->buf[b].bytes });
}

/* The position in the plan's order at which most bytes of arenas on `dev` are alive. Without memory to find out: the first. */
static uint32_t fullest(const yk_plan *p, uint16_t dev) {
  uint64_t now = 0, most = 0, *change;                     /* wraps where it falls */
  uint32_t at = 0, n = 0;
  for (uint32_t b = 0; b < p->nbuf; b++) n = p->buf[b].last > n ? p->buf[b].last : n;
  if ((change = yk__calloc(n + 2u, sizeof *change)) == NULL) { yk_error_clear(); return 0; }
  for (uint32_t b = 0; b < p->nbuf; b++) {
    const yk_buf *buf = &p->buf[b];
    if (buf->kind == YK_BUF_VARIABLE || !is_on(p, buf, dev)) continue;
    change[buf->first] += buf->bytes;
    change[buf->last + 1] -= buf->bytes;
  }
  for (uint32_t i = 0; i <= n; i++) {
    now += change[i];
    if (now > most) { most = now; at = i; }
  }
  yk__free(change);
  return at;
}

/* Who makes the value: the first instruction that has to do with its buffer. */
static const char *maker(const yk_plan *p, uint32_t b, bool *workspace) {
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *in = &p->instr[i];
    *workspace = in->code == YK_I_LAUNCH && p->kernel[in->a].workspace == b;
    bool found = *workspace;
    for (uint16_t k = 0; k < in->nargs; k++) found |= p->arg[in->args + k] == b;
    if (found) return p->origin[in->origin].name;
  }
  return "";
}

static void hold_values(const yk_plan *p, uint16_t dev, holders *h) {
  uint32_t at = fullest(p, dev);
  for (uint32_t b = 0; b < p->nbuf; b++) {
    const yk_buf *buf = &p->buf[b];
    if (buf->kind == YK_BUF_VARIABLE || !is_on(p, buf, dev) || buf->first > at || buf->last < at) continue;
    bool constant = buf->kind == YK_BUF_CONSTANT, workspace = false;
    const char *name = constant ? "" : maker(p, b, &workspace);
    hold(h, (holder){ constant ? "constant" : workspace ? "workspace of" : "value", name, &buf->desc, buf->bytes });
  }
}

/* Activations that cannot be taken away now. */
static uint64_t hold_others(yk_session *s, uint16_t dev, holders *h) {
  const struct yk_pool *pool = s->devices->at[dev].pool;
  uint64_t all = 0;
  yk__mutex_lock(&s->cache_lock);
  for (const yk_entry *e = s->cache.all; e; e = e->next) {
    uint64_t bytes = yk__memory_lent(e, pool);
    const yk_plan *p = e->plan;
    hold(h, (holder){ "values of a step that is running, with", p->norigin ? p->origin[p->norigin - 1].name : "", NULL, bytes });
    all += bytes;
  }
  yk__mutex_unlock(&s->cache_lock);
  return all;
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static void put_holders(yk_str *out, const holders *h) {
  char size[YK__BYTES_TEXT], desc[YK__DESC_TEXT];
  for (uint32_t i = 0; i < h->n; i++) {
    const holder *x = &h->at[i];
    yk__str_add(out, "%s%s%s%.100s%s%s %s", i ? ", " : " The largest: ", x->kind, x->name[0] ? " " : "", x->name, x->desc ? " " : "",
                x->desc ? yk__desc_text(x->desc, desc, sizeof desc) : "", yk__bytes_text(x->bytes, size));
  }
  if (h->more) yk__str_add(out, ", %u more %s", h->more, yk__bytes_text(h->more_bytes, size));
  if (h->n) yk__str_put(out, ".", 1);
}

static void put_limit(yk_str *out, const yk_device *d) {
  char limit[YK__BYTES_TEXT], total[YK__BYTES_TEXT];
  yk__str_add(out, "the limit is %s (%llu bytes)", yk__bytes_text(d->limit, limit), (unsigned long long)d->limit);
  if (d->limit < d->total) yk__str_add(out, ", of %s that the device has", yk__bytes_text(d->total, total));
}

static void put_advice(yk_str *out, const yk_device *d, bool step) {
  yk__str_add(out, " What helps: %sanother device for some of it (YK_DEVICE)", step ? "a smaller batch; " : "");
  if (d->limit < d->total) yk__str_add(out, "; a higher limit (settings memory.limit, memory.fraction)");
  if (d->is_virtual) yk__str_add(out, "; larger virtual GPUs (--virtual-gpus N:LIMIT)");
}

/* The pool's own view, for those who asked to hear more. */
static void log_pool(const yk_device *d, uint64_t bytes) {
  yk_str text = { 0 };
  char *all = NULL;
  if (yk__param_int("verbose") < YK_LOG_INFO) return;
  yk__pool_dump(d->pool, d->name, (size_t)bytes, &text);
  if (yk__str_take(&text, &all) != YK_OK) { yk_error_clear(); return; }
  for (char *line = all, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    YK_LOG(INFO, "%s", line);
  }
  yk__free(all);
}

/* The message of `rc`, or as much as there is memory for. */
static yk_code say(yk_str *text, yk_code rc) {
  char *all = NULL;
  if (yk__str_take(text, &all) != YK_OK) return rc;
  rc = yk__fail(rc, __FILE__, __LINE__, "%s", all);
  yk__free(all);
  return rc;
}

/* What the pool was asked for beyond `known`, by other sessions of the process; and what it gave beyond that, if it matters. */
static void put_elsewhere(yk_str *out, const yk_device *d, uint64_t known) {
  char text[YK__BYTES_TEXT];
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__device_memory(d, &m);
  uint64_t waste = m.bytes_in_use - m.bytes_requested;
  if (m.bytes_requested > known) yk__str_add(out, ", and other sessions hold %s", yk__bytes_text(m.bytes_requested - known, text));
  if (waste > m.bytes_limit / 32) yk__str_add(out, ", and %s are lost between pieces", yk__bytes_text(waste, text));
}

static yk_code refuse_step(yk_session *s, const yk_plan *p, uint16_t dev, bool tried) {
  const yk_device *d = &s->devices->at[dev];
  need n = need_of(s, p, dev);
  char a[YK__BYTES_TEXT], b[YK__BYTES_TEXT], c[YK__BYTES_TEXT], t[YK__BYTES_TEXT], o[YK__BYTES_TEXT];
  holders h = { .n = 0 };
  yk_str text = { 0 };
  uint64_t running = tried ? hold_others(s, dev, &h) : 0, step = n.own + n.arena;
  char why[YK__ERROR_BYTES] = "";
  if (tried) memcpy(why, yk_error_message(), strnlen(yk_error_message(), sizeof why - 1) + 1);
  hold_variables(s, p, dev, &h);
  hold_values(p, dev, &h);
  yk__str_add(&text, "%s: the step does not fit. It needs %s (%llu bytes): %s for values between operations, %s for variables", d->name,
              yk__bytes_text(step, a), (unsigned long long)step, yk__bytes_text(n.arena, t), yk__bytes_text(n.own, b));
  if (n.own > n.missing) yk__str_add(&text, " (%s are there already)", yk__bytes_text(n.own - n.missing, c));
  yk__str_add(&text, "; ");
  put_limit(&text, d);
  if (n.others) yk__str_add(&text, ", and variables of other steps take %s", yk__bytes_text(n.others, o));
  if (running) yk__str_add(&text, ", and steps that are running hold %s", yk__bytes_text(running, o));
  if (tried) put_elsewhere(&text, d, n.own - n.missing + n.others + running);
  yk__str_put(&text, ".", 1);
  put_holders(&text, &h);
  put_advice(&text, d, true);
  if (tried) yk__str_add(&text, ". (%.200s)", why);
  log_pool(d, n.arena);
  return say(&text, YK_ENOMEM);
}

/* ---- what others call ------------------------------------------------------------------------------------------- */

yk_code yk__memory_admit(yk_session *s, const yk_plan *p) {
  for (uint32_t a = 0; a < p->narena; a++) {
    need n = need_of(s, p, p->arena[a].dev);
    if (sum(&n) > s->devices->at[p->arena[a].dev].limit) return refuse_step(s, p, p->arena[a].dev, false);
  }
  return YK_OK;
}

yk_code yk__memory_refuse_step(yk_session *s, const yk_plan *p, uint16_t dev) {
  return refuse_step(s, p, dev, true);
}

yk_code yk__memory_refuse(yk_session *s, uint16_t dev, uint64_t bytes, yk_code rc) {
  const yk_device *d = &s->devices->at[dev];
  holders h = { .n = 0 };
  yk_str text = { 0 };
  yk__str_add(&text, "%s.", yk_error_message());
  (void)hold_others(s, dev, &h);
  hold_variables(s, NULL, dev, &h);
  put_holders(&text, &h);
  put_advice(&text, d, false);
  log_pool(d, bytes);
  return say(&text, rc);
}
