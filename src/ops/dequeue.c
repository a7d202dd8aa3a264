/*
 * dequeue.c - the next examples of an input pipeline, one output a component. The source is a host object shared by
 * several dequeue ops, which is why it runs on /cpu and is never merged or repeated.
 */
#include <yoke/math.h>
#include "common.h"

static yk_code infer(const yk_infer *c) {
  yk_dequeue_attrs a = YK__ATTRS(yk_dequeue_attrs, c);
  if (!a.source || !a.source->next) return YK_FAIL(EINVAL, "no source given");
  if (a.rows < 0) return YK_FAIL(EINVAL, "%lld rows, expected at least 0", (long long)a.rows);
  if (c->nout != a.source->ncomponents)
    return YK_FAIL(EINVAL, "%u outputs, but the source has %u components", c->nout, a.source->ncomponents);
  for (uint16_t k = 0; k < c->nout; k++) {
    yk_desc one = a.source->component[k], r = { .dtype = one.dtype };
    if (one.rank >= YK_MAX_RANK) return YK_FAIL(EINVAL, "component %u has rank %u, too high for a batch of them", k, one.rank);
    r.dim[r.rank++] = a.rows;
    for (int i = 0; i < one.rank; i++) r.dim[r.rank++] = one.dim[i];
    c->out[k] = r;
  }
  return YK_OK;
}

static yk_code ref(const yk_ref *c) {
  enum { COMPONENTS = sizeof ((yk_source *)0)->component / sizeof(yk_desc) };
  yk_dequeue_attrs a = YK__ATTRS(yk_dequeue_attrs, c);
  void *raw[COMPONENTS] = { NULL };
  yk_code code = YK_OK;
  for (uint16_t k = 0; k < c->nout && code == YK_OK; k++) {
    raw[k] = yk__calloc((size_t)yk__desc_count(&c->dout[k]) + 1, yk_dtype_bytes((yk_dtype)c->dout[k].dtype));
    if (!raw[k]) code = YK_ENOMEM;
  }
  if (code == YK_OK) code = a.source->next(a.source->self, a.rows, raw);
  for (uint16_t k = 0; k < c->nout; k++) {
    if (code == YK_OK) yk__to_double((yk_dtype)c->dout[k].dtype, raw[k], c->out[k], yk__desc_count(&c->dout[k]));
    yk__free(raw[k]);
  }
  return code;
}

/* A source for the case below: the same examples again and again. */
static yk_code same_rows(void *self, int64_t rows, void *const *out) {
  (void)self;
  for (int64_t i = 0; i < rows * 3; i++) ((float *)out[0])[i] = (float)i;
  for (int64_t i = 0; i < rows; i++) ((int32_t *)out[1])[i] = (int32_t)i;
  return YK_OK;
}

static const yk_source numbers = {
  .next = same_rows, .ncomponents = 2, .component = { { .dtype = YK_F32, .rank = 1, .dim = { 3 } }, { .dtype = YK_I32 } }
};
static const yk_dequeue_attrs seven = { &numbers, 7 };
static const yk_case cases[] = { { "", &seven, 0, 0, 0 }, { 0 } };

static const yk_port none[] = { { 0 } };
static const yk_port out[] = { { "component", YK_ANYTYPE, YK_PORT_VARIADIC | YK_PORT_HOST, 0 }, { 0 } };
static const yk_attr attrs[] = { YK__POINTER(yk_dequeue_attrs, source), YK__DIMS(yk_dequeue_attrs, rows, 1, 0), { 0 } };

const yk_op yk__op_dequeue = {
  .name = "dequeue", .label = "QueueDequeueMany", .doc = "the next examples of a source",
  .version = 1, .attr_bytes = sizeof(yk_dequeue_attrs), .traits = YK_STATEFUL | YK_NO_GRAD, .attrs = attrs,
  .in = none, .out = out, .infer = infer, .ref = ref, .cases = cases,
};

yk_value yk_dequeue_at(const char *where, yk_graph *g, const yk_source *source, int64_t rows, yk_value components[]) {
  yk_dequeue_attrs a = { source, rows };
  if (!source) return yk_graph_fail_at(where, g, YK_EINVAL, "dequeue: no source given");
  yk_value first = yk__build_n(where, g, &yk__op_dequeue, &a, 0, NULL, source->ncomponents);
  for (uint32_t k = 0; k < source->ncomponents; k++) components[k] = yk_output(g, first, (uint16_t)k);
  return yk__outputs(g, source->ncomponents, components);
}
