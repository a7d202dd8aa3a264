/*
 * variables.c - the storage of a session's variables.
 *
 * A variable has one home, fixed by placement before its memory is taken, and
 * one layout, plain until a compiled plan settles another: then the stored value
 * is reordered once and plans that were compiled before are retired. Values enter
 * and leave in plain layout.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "run/run.h"
#include "tensor/desc.h"

static const yk_variable *variable(const yk_session *s, uint32_t v) {
  return s->g->variable[v];
}

yk_code yk__vars_grow(yk_session *s) {
  uint32_t n = s->g->nvariable;
  if (n <= s->nvar) return YK_OK;
  yk__mutex_lock(&s->var_lock);
  int ok = yk__grow((void **)&s->var, &s->var_cap, n, sizeof *s->var);
  for (; ok && s->nvar < n; s->nvar++)
    s->var[s->nvar] = (yk_var_slot){ .dev = YK__NO_DEVICE, .desc = variable(s, s->nvar)->desc };
  yk__mutex_unlock(&s->var_lock);
  return ok ? YK_OK : YK_ENOMEM;
}

static bool initialized(yk_session *s, uint32_t v) {
  yk__mutex_lock(&s->var_lock);
  bool yes = s->var[v].initialized;
  yk__mutex_unlock(&s->var_lock);
  return yes;
}

static void mark(yk_session *s, uint32_t v) {
  yk__mutex_lock(&s->var_lock);
  s->var[v].initialized = 1;
  yk__mutex_unlock(&s->var_lock);
}

static yk_code not_initialized(const yk_variable *v) {
  char text[YK__DESC_TEXT];
  yk__desc_text(&v->desc, text, sizeof text);
  return YK_FAIL(EINVAL, "variable %s %s (made at %s) is read before it has a value: run yk_global_variables_initializer() or "
                 "its yk_initializer_op() first, or yk_variable_set()", v->name, text, v->where);
}

yk_code yk__vars_check(yk_session *s, const yk_plan *p) {
  for (uint32_t i = 0; i < p->nreads; i++)
    if (!initialized(s, p->reads[i])) return not_initialized(variable(s, p->reads[i]));
  return YK_OK;
}

void yk__vars_mark(yk_session *s, const yk_plan *p) {
  for (uint32_t i = 0; i < p->nwrites; i++) mark(s, p->writes[i]);
}

/* wait: for memory that running steps hold; only with no lock but compile. */
static yk_code allocate(yk_session *s, uint32_t v, const yk_desc *desc, bool wait, uint64_t *bytes, yk_mem *mem) {
  uint16_t dev = s->var[v].dev;
  yk_device *d = &s->devices->at[dev];
  const yk_variable *var = variable(s, v);
  char text[YK__DESC_TEXT];
  uint64_t n = 0;
  YK_TRY(d->driver->desc_bytes(d->dev, desc, &n));
  yk_code rc = yk__session_alloc(s, dev, n ? (size_t)n : 1, wait, mem);
  if (rc != YK_OK)
    return yk__fail_prefix(rc, "variable %s %s (%llu bytes, made at %s)", var->name, yk__desc_text(desc, text, sizeof text),
                           (unsigned long long)n, var->where);
  *bytes = n;
  return YK_OK;
}

yk_code yk__var_allocate(yk_session *s, uint32_t v) {
  yk_var_slot *slot = &s->var[v];
  if (slot->mem.base != NULL) return YK_OK;
  if (slot->dev >= s->devices->n) return YK_FAIL(EINTERNAL, "variable %s was not placed", variable(s, v)->name);
  return allocate(s, v, &slot->desc, true, &slot->bytes, &slot->mem);
}

void yk__var_release(yk_session *s, uint32_t v) {
  yk_var_slot *slot = &s->var[v];
  yk__device_free(&s->devices->at[slot->dev], slot->mem);
  slot->mem = (yk_mem){ 0 };
  slot->bytes = 0;
}

void yk__vars_copy(yk_session *s, yk_var_slot *out) {
  yk__mutex_lock(&s->var_lock);
  if (s->nvar) memcpy(out, s->var, s->nvar * sizeof *out);
  yk__mutex_unlock(&s->var_lock);
}

void yk__vars_free(yk_session *s) {
  for (uint32_t v = 0; v < s->nvar; v++)
    if (s->var[v].mem.base) yk__device_free(&s->devices->at[s->var[v].dev], s->var[v].mem);
  yk__free(s->var);
}

/* ---- moving values: with the streams acquired ------------------------------------------------------------------- */

typedef struct service { yk_device *d; yk_stream *stream; bool own; } service;

static yk_code service_open(yk_device *d, service *out) {
  yk_stream *stream;
  yk_code rc = d->driver->stream_open(d->dev, YK_STREAM_INLINE, &stream);
  bool own = rc == YK_OK;
  if (rc == YK_EUNSUPPORTED) { yk_error_clear(); rc = yk__device_stream(d, &stream); }
  if (rc != YK_OK) return rc;
  *out = (service){ d, stream, own };
  return YK_OK;
}

static yk_code service_close(service *c, yk_code rc) {
  uint64_t failed = 0;
  yk_code last = c->d->driver->stream_sync(c->stream, &failed);
  if (c->own) c->d->driver->stream_close(c->stream);
  return rc != YK_OK ? rc : last;
}

/* dst = src in another layout; waits. */
static yk_code reorder(yk_session *s, service *c, yk_mem dst, const yk_desc *to, yk_mem src, const yk_desc *from) {
  yk_device *d = c->d;
  yk_desc in = *from, out = *to;
  yk_kernel_spec spec = { .size = sizeof spec, .op = "reorder", .op_version = 1, .nin = 1, .nout = 1, .flags = YK_SPEC_FIXED,
                          .in = &in, .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  yk_kernel *k;
  yk_mem work = { 0 };
  uint64_t failed = 0;
  YK_TRY(d->driver->kernel_prepare(d->dev, &spec, &k, &info));
  yk_code rc = info.workspace ? yk__session_alloc(s, d->index, (size_t)info.workspace, false, &work) : YK_OK;
  if (rc == YK_OK) rc = d->driver->kernel_launch(k, c->stream, (yk_mem[]){ src, dst }, 2, work);
  yk_code last = d->driver->stream_sync(c->stream, &failed);
  if (work.base) yk__device_free(d, work);
  d->driver->kernel_free(k);
  return rc != YK_OK ? rc : last;
}

/* Host bytes `in` into variable v, or its value out to `out`; exactly one of the two is set. */
static yk_code transfer_one(yk_session *s, uint32_t v, const void *in, void *out) {
  yk_var_slot *slot = &s->var[v];
  yk_device *d = &s->devices->at[slot->dev];
  yk_desc plain = slot->desc;
  plain.layout = YK_LAYOUT_PLAIN;
  bool direct = slot->desc.layout == YK_LAYOUT_PLAIN;
  size_t bytes = (size_t)yk__desc_count(&plain) * yk_dtype_bytes((yk_dtype)plain.dtype);
  yk_mem temporary = { 0 }, mem = slot->mem;
  service c;
  uint64_t failed = 0;
  if (!direct) {
    YK_TRY(yk__session_alloc(s, slot->dev, bytes ? bytes : 1, false, &temporary));
    mem = temporary;
  }
  mem.bytes = bytes;
  yk_code rc = service_open(d, &c);
  if (rc == YK_OK) {
    if (in) {
      rc = d->driver->copy_in(c.stream, mem, in);
      if (rc == YK_OK && !direct) rc = d->driver->stream_sync(c.stream, &failed);
      if (rc == YK_OK && !direct) rc = reorder(s, &c, slot->mem, &slot->desc, mem, &plain);
    } else {
      if (!direct) rc = reorder(s, &c, mem, &plain, slot->mem, &slot->desc);
      if (rc == YK_OK) rc = d->driver->copy_out(c.stream, out, mem);
    }
    rc = service_close(&c, rc);
  }
  yk__device_free(d, temporary);
  return rc;
}

/* The variable after `at` that is a copy of v; s->nvar if there is none. Copies are made after their master. */
static uint32_t next_copy(const yk_session *s, uint32_t v, uint32_t at) {
  while (++at < s->nvar && variable(s, at)->master != variable(s, v)) continue;
  return at;
}

/* What is put into a variable goes into its copies too, so that they agree. */
static yk_code transfer(yk_session *s, uint32_t v, const void *in, void *out) {
  YK_TRY(transfer_one(s, v, in, out));
  for (uint32_t c = next_copy(s, v, v); in && c < s->nvar; c = next_copy(s, v, c)) {
    YK_TRY(transfer_one(s, c, in, NULL));
    mark(s, c);
  }
  return YK_OK;
}

/* Memory for v and its copies. */
static yk_code allocate_all(yk_session *s, uint32_t v) {
  for (uint32_t c = v; c < s->nvar; c = next_copy(s, v, c)) YK_TRY(yk__var_allocate(s, c));
  return YK_OK;
}

/* The stored value of v in layout `desc`; nothing else uses v. */
static yk_code relay(yk_session *s, uint32_t v, const yk_desc *desc) {
  yk_var_slot *slot = &s->var[v];
  yk_device *d = &s->devices->at[slot->dev];
  uint64_t bytes = 0;
  yk_mem mem = { 0 };
  service c;
  YK_TRY(allocate(s, v, desc, false, &bytes, &mem));
  yk_code rc = YK_OK;
  if (initialized(s, v)) {
    rc = service_open(d, &c);
    if (rc == YK_OK) rc = service_close(&c, reorder(s, &c, mem, desc, slot->mem, &slot->desc));
  }
  if (rc != YK_OK) { yk__device_free(d, mem); return yk__fail_prefix(rc, "variable %s: new layout", variable(s, v)->name); }
  yk__device_free(d, slot->mem);
  slot->mem = mem;
  slot->bytes = bytes;
  slot->desc = *desc;
  return YK_OK;
}

yk_code yk__vars_settle(yk_session *s, const yk_var_slot *now) {
  for (uint32_t v = 0; v < s->nvar; v++) {
    yk_var_slot *slot = &s->var[v];
    if (slot->mem.base == NULL) {
      slot->dev = now[v].dev;
      slot->desc = now[v].desc;
    } else if (slot->dev != now[v].dev) {
      return YK_FAIL(EINTERNAL, "variable %s was moved by a compilation", variable(s, v)->name);
    } else if (slot->desc.layout != now[v].desc.layout) {
      yk__cache_retire(s, v);
      YK_TRY(yk__streams_acquire(s));
      yk__mutex_lock(&s->write_lock);
      yk_code rc = relay(s, v, &now[v].desc);
      yk__mutex_unlock(&s->write_lock);
      yk__streams_release(s);
      YK_TRY(rc);
    }
    slot->layout_settled = now[v].layout_settled;
  }
  return YK_OK;
}

/* ---- all at once ------------------------------------------------------------------------------------------------ */

static yk_code check_read(yk_session *s, uint32_t n, void *const *out) {
  YK_TRY(yk__vars_grow(s));
  if (n > s->nvar) return YK_FAIL(EINTERNAL, "%u variables are asked for, there are %u", n, s->nvar);
  for (uint32_t v = 0; v < n; v++)
    if (out[v] && !initialized(s, v)) return not_initialized(variable(s, v));
  return YK_OK;
}

yk_code yk__vars_read(yk_session *s, uint32_t n, void *const *out, int64_t *counter) {
  if (atomic_load(&s->closed)) return YK_FAIL(EINVAL, "the session is closed");
  YK_TRY(yk__session_real(s, "variables have no values"));
  yk__mutex_lock(&s->compile_lock);                        /* keeps layouts and homes as they are */
  yk_code rc = check_read(s, n, out);
  if (rc == YK_OK) rc = yk__streams_acquire(s);
  if (rc == YK_OK) {
    yk__mutex_lock(&s->write_lock);
    for (uint32_t v = 0; v < n && rc == YK_OK; v++) {
      if (!out[v]) continue;
      rc = transfer(s, v, NULL, out[v]);
      if (rc != YK_OK) rc = yk__fail_prefix(rc, "fetch of variable %s", variable(s, v)->name);
    }
    *counter = atomic_load(&s->counter);
    yk__mutex_unlock(&s->write_lock);
    yk__streams_release(s);
  }
  yk__mutex_unlock(&s->compile_lock);
  return rc;
}

/* Homes of all variables that have none yet, by placing the graph once. */
static yk_code place_all(yk_session *s) {
  uint32_t homeless = 0;
  for (uint32_t v = 0; v < s->nvar; v++) homeless += s->var[v].dev == YK__NO_DEVICE;
  if (homeless == 0) return YK_OK;
  uint16_t *dev = yk__alloc((s->g->nnode + 1u) * sizeof *dev);
  if (dev == NULL) return YK_ENOMEM;
  memset(dev, 0xFF, (s->g->nnode + 1u) * sizeof *dev);
  yk_place_request r = yk__session_placing(s);
  yk_code rc = yk__place_graph(&r, dev, NULL);
  for (uint32_t v = 0; v < s->nvar && rc == YK_OK; v++) {
    uint16_t home = dev[yk__value_node(s->g, variable(s, v)->ref)->id];
    if (s->var[v].dev == YK__NO_DEVICE && home < s->devices->n) s->var[v].dev = home;
  }
  yk__free(dev);
  return rc;
}

/* Whatever may be refused is refused before the first value moves. */
static yk_code prepare_write(yk_session *s, uint32_t n, const uint32_t *index) {
  YK_TRY(yk__vars_grow(s));
  YK_TRY(place_all(s));
  for (uint32_t i = 0; i < n; i++) YK_TRY(allocate_all(s, index[i]));
  return YK_OK;
}

yk_code yk__vars_write(yk_session *s, uint32_t n, const uint32_t *index, const void *const *in, const int64_t *counter) {
  if (atomic_load(&s->closed)) return YK_FAIL(EINVAL, "the session is closed");
  YK_TRY(yk__session_real(s, "variables have no values"));
  yk__mutex_lock(&s->compile_lock);
  yk_code rc = prepare_write(s, n, index);
  if (rc == YK_OK) rc = yk__streams_acquire(s);
  if (rc == YK_OK) {
    yk__mutex_lock(&s->write_lock);
    for (uint32_t i = 0; i < n && rc == YK_OK; i++) {
      rc = transfer(s, index[i], in[i], NULL);
      if (rc != YK_OK) rc = yk__fail_prefix(rc, "variable %s", variable(s, index[i])->name);
      else mark(s, index[i]);
    }
    if (rc == YK_OK && counter != NULL) atomic_store(&s->counter, *counter);
    yk__mutex_unlock(&s->write_lock);
    yk__streams_release(s);
  }
  yk__mutex_unlock(&s->compile_lock);
  return rc;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

static yk_code belongs(const yk_session *s, const yk_variable *v) {
  if (atomic_load(&s->closed)) return YK_FAIL(EINVAL, "the session is closed");
  YK_TRY(yk__session_real(s, "variables have no values"));
  if (v == NULL || v->g != s->g)
    return YK_FAIL(EINVAL, "the variable%s%s is not of the session's graph", v ? " " : "", v ? v->name : "");
  return YK_OK;
}

static yk_code move(yk_session *s, uint32_t v, const void *in, void *out) {
  YK_TRY(yk__streams_acquire(s));
  yk__mutex_lock(&s->write_lock);
  yk_code rc = transfer(s, v, in, out);
  yk__mutex_unlock(&s->write_lock);
  yk__streams_release(s);
  return rc;
}

yk_code yk_variable_fetch(yk_session *s, const yk_variable *v, yk_tensor **out) {
  YK_TRY(belongs(s, v));
  yk_tensor *t = NULL;
  YK_TRY(yk_tensor_new((yk_dtype)v->desc.dtype, yk__desc_shape(&v->desc), &t));
  yk__mutex_lock(&s->compile_lock);                        /* keeps layout and home as they are */
  yk_code rc = yk__vars_grow(s);
  if (rc == YK_OK && !initialized(s, v->index)) rc = not_initialized(v);
  if (rc == YK_OK) rc = move(s, v->index, NULL, yk_tensor_data(t));
  yk__mutex_unlock(&s->compile_lock);
  if (rc != YK_OK) { yk_tensor_free(t); return yk__fail_prefix(rc, "fetch of variable %s", v->name); }
  *out = t;
  return YK_OK;
}

static yk_code set(yk_session *s, const yk_variable *v, const yk_tensor *value) {
  YK_TRY(yk__vars_grow(s));
  YK_TRY(place_all(s));
  YK_TRY(allocate_all(s, v->index));
  YK_TRY(move(s, v->index, yk_tensor_data(value), NULL));
  mark(s, v->index);
  return YK_OK;
}

yk_code yk_variable_set(yk_session *s, const yk_variable *v, const yk_tensor *value) {
  YK_TRY(belongs(s, v));
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  if (value == NULL || yk_tensor_desc(value)->dtype != v->desc.dtype || !yk__desc_same_shape(yk_tensor_desc(value), &v->desc))
    return YK_FAIL(EINVAL, "variable %s (made at %s) is set to %s; expected %s", v->name, v->where,
                   value ? yk__desc_text(yk_tensor_desc(value), a, sizeof a) : "NULL", yk__desc_text(&v->desc, b, sizeof b));
  yk__mutex_lock(&s->compile_lock);
  yk_code rc = set(s, v, value);
  yk__mutex_unlock(&s->compile_lock);
  return rc;
}
