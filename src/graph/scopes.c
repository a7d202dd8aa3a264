/*
 * scopes.c - device, colocation and control scopes, and the stack of frames under all scopes.
 *
 * What a scope means for a node is worked out when the node is made, innermost
 * scope first: an inner device wins field by field, a barrier hides what is outside,
 * a function sees what the scopes inside of it gave. A colocation hides outer devices too.
 */
#include <string.h>
#include "base/error.h"
#include "graph/scopes.h"
#include "op/registry.h"
#include "tensor/desc.h"

void yk__scopes_free(yk_graph *g) {
  struct yk_graph_scopes *s = g->scopes;
  if (!s) return;
  for (uint32_t i = 0; i < s->nframe; i++) yk__free(s->frame[i].counts);
  yk__free(s->frame);
  yk__free(s->device);
  yk__free(s->colocate);
  yk__free(s->control);
  yk__free(s);
  g->scopes = NULL;
}

static const char *kind_name(yk_scope_kind kind) {
  static const char *const name[] = { "name scope", "device scope", "colocation scope", "control scope",
                                      "variable scope", "guard", "precision scope" };
  return name[kind];
}

yk_frame *yk__scope_open(const char *where, yk_graph *g, yk_scope_kind kind) {
  if (!yk__graph_ok(g)) return NULL;
  struct yk_graph_scopes *s = g->scopes;
  yk_frame f = { .kind = kind, .where = where, .name = yk__names_current(g), .ndevice = s->ndevice,
                 .ncolocate = s->ncolocate, .ncontrol = s->ncontrol, .guard = s->guard, .low = s->low };
  if (YK_PUSH(s->frame, s->nframe, s->frame_cap, f)) return &s->frame[s->nframe - 1];
  yk__graph_fail(where, g, YK_ENOMEM);
  return NULL;
}

bool yk__scope_close(const char *where, yk_graph *g, yk_scope_kind kind, yk_frame *was) {
  if (!yk__graph_ok(g)) return false;
  struct yk_graph_scopes *s = g->scopes;
  if (s->nframe == 0) {
    yk_graph_fail_at(where, g, YK_EINVAL, "pop of a %s, but none is open", kind_name(kind));
    return false;
  }
  yk_frame f = s->frame[s->nframe - 1];
  if (f.kind != kind) {
    yk_graph_fail_at(where, g, YK_EINVAL, "pop of a %s, but the innermost open scope is the %s opened at %s", kind_name(kind),
                     kind_name(f.kind), f.where);
    return false;
  }
  s->nframe--;
  s->ndevice = f.ndevice;
  s->ncolocate = f.ncolocate;
  s->ncontrol = f.ncontrol;
  s->guard = f.guard;
  s->low = f.low;
  yk__names_set(g, f.name);
  *was = f;
  return true;
}

static void close_plain(const char *where, yk_graph *g, yk_scope_kind kind) {
  yk_frame was;
  (void)yk__scope_close(where, g, kind, &was);
}

/* ---- devices ---- */

void yk__scope_push_device(const char *where, yk_graph *g, yk_device_frame f) {
  struct yk_graph_scopes *s = g->scopes;
  if (!YK_PUSH(s->device, s->ndevice, s->device_cap, f)) yk__graph_fail(where, g, YK_ENOMEM);
}

void yk_device_push_at(const char *where, yk_graph *g, const char *spec) {
  if (!yk__scope_open(where, g, YK__SCOPE_DEVICE)) return;
  yk_device_frame f = { .barrier = spec == NULL, .spec = YK__ANY_DEVICE };
  yk_code code = spec ? yk__device_parse(spec, &f.spec) : YK_OK;
  if (code != YK_OK) yk__graph_fail(where, g, code); else yk__scope_push_device(where, g, f);
}

void yk_device_push_fn_at(const char *where, yk_graph *g, yk_device_fn fn, void *arg) {
  if (!yk__scope_open(where, g, YK__SCOPE_DEVICE)) return;
  if (!fn) yk_graph_fail_at(where, g, YK_EINVAL, "yk_device_push_fn: the function is NULL");
  else yk__scope_push_device(where, g, (yk_device_frame){ .spec = YK__ANY_DEVICE, .fn = fn, .arg = arg });
}

void yk_device_pop_at(const char *where, yk_graph *g) { close_plain(where, g, YK__SCOPE_DEVICE); }

static yk_code ask_function(const yk_device_frame *f, const yk_op *op, const char *name, yk_device_spec *device) {
  char so_far[YK__DEVICE_TEXT];
  const char *answer = f->fn(op, name, yk__device_text(device, so_far), f->arg);
  if (!answer) return YK_OK;
  yk_code code = yk__device_parse(answer, device);
  return code == YK_OK ? code : yk__fail_prefix(code, "device function");
}

yk_code yk__scope_device(yk_graph *g, const yk_op *op, const char *name, const yk_desc *stored, yk_device_spec *out) {
  struct yk_graph_scopes *s = g->scopes;
  yk_device_spec device = YK__ANY_DEVICE;
  for (uint32_t i = s->ndevice; i > 0 && !s->device[i - 1].barrier; i--) {
    yk_device_frame f = s->device[i - 1];      /* a copy: a function may open scopes */
    if (f.setter) yk__replica_device(f.setter, op == &yk__op_variable ? stored : NULL, &device);
    else if (f.fn) YK_TRY(ask_function(&f, op, name, &device));
    else device = yk__device_merge(&device, &f.spec);
  }
  for (uint32_t i = 0; yk__scope_colocate(g, i); i++) {
    const yk_node *with = g->node[yk__scope_colocate(g, i)];
    if (yk__device_empty(&with->device)) continue;
    device = with->device;
    break;
  }
  *out = device;
  return YK_OK;
}

/* ---- colocation ---- */

void yk_colocate_push_at(const char *where, yk_graph *g, yk_value with) {
  if (!yk__scope_open(where, g, YK__SCOPE_COLOCATE)) return;
  struct yk_graph_scopes *s = g->scopes;
  const yk_node *n = yk__value_node(g, with);
  if (with.id && !n) {
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_colocate_push: not a value of this graph");
  } else if (!YK_PUSH(s->colocate, s->ncolocate, s->colocate_cap, n ? n->id : 0)) {
    yk__graph_fail(where, g, YK_ENOMEM);
  } else {
    yk__scope_push_device(where, g, (yk_device_frame){ .barrier = true, .spec = YK__ANY_DEVICE });
  }
}

void yk_colocate_pop_at(const char *where, yk_graph *g) { close_plain(where, g, YK__SCOPE_COLOCATE); }

uint32_t yk__scope_colocate(const yk_graph *g, uint32_t i) {
  const struct yk_graph_scopes *s = g->scopes;
  for (uint32_t k = 0; k <= i; k++)
    if (k >= s->ncolocate || s->colocate[s->ncolocate - 1 - k] == 0) return 0;
  return s->colocate[s->ncolocate - 1 - i];
}

/* ---- control dependencies ---- */

void yk_control_push_at(const char *where, yk_graph *g, size_t n, const yk_value *ops) {
  if (!yk__scope_open(where, g, YK__SCOPE_CONTROL)) return;
  struct yk_graph_scopes *s = g->scopes;
  uint32_t *node = n ? yk__bump(&g->arena, n * sizeof *node) : NULL;
  if (n && !node) {
    yk__graph_fail(where, g, YK_ENOMEM);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const yk_node *x = yk__value_node(g, ops[i]);
    if (!x) {
      yk_graph_fail_at(where, g, YK_EINVAL, "yk_control_push: entry %zu of %zu is %s", i, n,
                       ops[i].id ? "not a value of this graph" : "empty ({0})");
      return;
    }
    node[i] = x->id;
  }
  yk_control_frame f = { node, (uint32_t)n };
  if (!YK_PUSH(s->control, s->ncontrol, s->control_cap, f)) yk__graph_fail(where, g, YK_ENOMEM);
}

void yk_control_pop_at(const char *where, yk_graph *g) { close_plain(where, g, YK__SCOPE_CONTROL); }

static bool has(const uint32_t *set, uint32_t n, uint32_t x) {
  for (uint32_t i = 0; i < n; i++)
    if (set[i] == x) return true;
  return false;
}

yk_code yk__scope_control(const yk_graph *g, uint32_t **ctrl, uint32_t *n, uint32_t *cap) {
  const struct yk_graph_scopes *s = g->scopes;
  uint32_t from = s->ncontrol;
  while (from > 0 && s->control[from - 1].n) from--;       /* a frame without nodes is a barrier */
  for (uint32_t i = from; i < s->ncontrol; i++) {
    const yk_control_frame *f = &s->control[i];
    for (uint32_t k = 0; k < f->n; k++)
      if (!has(*ctrl, *n, f->node[k]))
        if (!YK_PUSH(*ctrl, *n, *cap, f->node[k])) return YK_ENOMEM;
  }
  return YK_OK;
}

/* ---- guards ---- */

void yk_guard_push_at(const char *where, yk_graph *g, yk_value ok) {
  if (!yk__scope_open(where, g, YK__SCOPE_GUARD)) return;
  const yk_desc *d = ok.id ? yk_value_desc(g, ok) : NULL;
  char text[YK__DESC_TEXT];
  g->scopes->guard = ok;
  if (ok.id && !d) yk_graph_fail_at(where, g, YK_EINVAL, "yk_guard_push: not a value of this graph");
  else if (d && (d->dtype != YK_BOOL || d->rank != 0))
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_guard_push: the guard is %s, expected a bool scalar", yk__desc_text(d, text, sizeof text));
}

void yk_guard_pop_at(const char *where, yk_graph *g) { close_plain(where, g, YK__SCOPE_GUARD); }

yk_value yk_guard(const yk_graph *g) { return g ? g->scopes->guard : (yk_value){ 0 }; }

yk_value yk__scope_guard(const yk_graph *g, const yk_op *op, const void *attrs, uint16_t nin) {
  const yk_port *last = op->in;
  if (!g->scopes->guard.id || !last->name) return (yk_value){ 0 };
  while (last[1].name) last++;
  if (!(last->flags & YK_PORT_GUARD) || yk__op_in_port(op, attrs, (uint16_t)(nin + 1), nin) != last) return (yk_value){ 0 };
  return g->scopes->guard;
}

/* ---- mixed precision ---- */

void yk_precision_push_at(const char *where, yk_graph *g, yk_dtype low) {
  if (!yk__scope_open(where, g, YK__SCOPE_PRECISION)) return;
  g->scopes->low = low;
  if (low != YK_NONE && low != YK_F16 && low != YK_BF16)
    yk_graph_fail_at(where, g, YK_EINVAL, "yk_precision_push: %s, expected f16, bf16 or none", yk_dtype_name(low));
}

void yk_precision_pop_at(const char *where, yk_graph *g) { close_plain(where, g, YK__SCOPE_PRECISION); }
