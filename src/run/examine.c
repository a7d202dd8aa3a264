/*
 * examine.c - a step once more, to find out where a NaN or an infinity came from.
 *
 * The compiled plan itself is walked, so what is found is what happened: instruction by instruction, each waited for, and
 * what it wrote is copied to the host and looked at. Launches that overwrite variables are left out. Nothing here is on the
 * way of a usual run, so it may allocate.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yoke/half.h>
#include "base/alloc.h"
#include "base/error.h"
#include "op/registry.h"
#include "run/run.h"
#include "tensor/desc.h"

typedef struct seen {            /* what is known of a buffer's present contents */
  int64_t rows;                  /* > 0: its first dimension is this batch */
  bool looked, infinite;
} seen;

typedef struct yk_examiner {
  yk_entry *e;
  yk_run *r;
  const yk_plan *p;
  seen *of;                      /* [nbuf] */
  void *host;                    /* room for the largest buffer */
  yk_finding *out;
  bool done;                     /* a NaN was found */
} yk_examiner;

typedef struct look { int64_t n, nan, infinite, first; } look;

/* ---- one buffer --------------------------------------------------------------------------------------------------- */

static double element(const void *p, uint8_t dtype, int64_t i) {
  switch (dtype) {
    case YK_F64: return ((const double *)p)[i];
    case YK_F32: return (double)((const float *)p)[i];
    case YK_F16: return (double)yk_f16_to_f32(((const uint16_t *)p)[i]);
    default: return (double)yk_bf16_to_f32(((const uint16_t *)p)[i]);
  }
}

static bool is_float(const yk_desc *d) { return d->dtype < YK_NDTYPES && (YK_T(d->dtype) & YK_FLOATS) != 0; }

/* Elements of the buffer, padding of a private layout included: it is zero. */
static int64_t count_of(const yk_buf *b) {
  int64_t bytes = (int64_t)yk_dtype_bytes((yk_dtype)b->desc.dtype);
  return b->desc.layout == YK_LAYOUT_PLAIN ? yk__desc_count(&b->desc) : (int64_t)b->bytes / bytes;
}

static const yk_lane *lane_of(const yk_examiner *x, uint32_t b) {
  for (uint32_t k = 0; k < x->p->nstream; k++)
    if (x->p->stream_dev[k] == x->p->arena[x->p->buf[b].arena].dev) return &x->r->lane[k];
  return NULL;
}

/* Bring argument `arg` to x->host and count what is not finite. */
static yk_code look_at(yk_examiner *x, uint32_t arg, look *out) {
  uint32_t b = x->p->arg[arg];
  const yk_buf *buf = &x->p->buf[b];
  const yk_lane *l = lane_of(x, b);
  uint64_t failed = 0;
  look seen_now = { .n = count_of(buf), .first = -1 };
  *out = seen_now;
  if (l == NULL || seen_now.n == 0) return YK_OK;
  yk_mem mem = x->r->arg[arg];
  mem.bytes = (size_t)seen_now.n * yk_dtype_bytes((yk_dtype)buf->desc.dtype);
  YK_TRY(l->driver->copy_out(l->stream, x->host, mem));
  YK_TRY(l->driver->stream_sync(l->stream, &failed));
  for (int64_t i = 0; i < seen_now.n; i++) {
    double v = element(x->host, buf->desc.dtype, i);
    if (isfinite(v)) continue;
    if (isnan(v) ? seen_now.nan++ == 0 : seen_now.infinite++ == 0 && seen_now.nan == 0) seen_now.first = i;
  }
  *out = seen_now;
  return YK_OK;
}

/* ---- telling ------------------------------------------------------------------------------------------------------ */

/* Rows of the batch that hold what was found, if the value has one row for each of the batch and not all of them do. */
static void find_rows(const yk_examiner *x, uint32_t b, const look *l, yk_finding *f) {
  int64_t rows = x->of[b].rows, bad = 0, first = -1;
  uint8_t dtype = x->p->buf[b].desc.dtype;
  if (rows <= 0 || l->n % rows != 0) return;
  for (int64_t i = 0, inner = l->n / rows; i < rows; i++) {
    bool has = false;
    for (int64_t k = 0; k < inner && !has; k++) {
      double v = element(x->host, dtype, i * inner + k);
      has = l->nan > 0 ? isnan(v) : isinf(v);
    }
    if (!has) continue;
    if (bad++ == 0) first = i;
  }
  f->rows = rows;
  f->bad_rows = bad;
  if (bad < rows || rows == 1) f->row = first;
}

/* "/cpu:0" of "/job:localhost/replica:0/task:0/device:CPU:0". */
static void short_name(const char *full, char *out, size_t bytes) {
  const char *number = strrchr(full, ':');
  snprintf(out, bytes, "/%s%.10s", strstr(full, "GPU") != NULL ? "gpu" : "cpu", number ? number : "");
}

static void tell(yk_examiner *x, uint32_t i, uint32_t b, const look *l, yk_found_kind kind) {
  const yk_plan *p = x->p;
  const yk_origin *o = &p->origin[p->instr[i].origin];
  const yk_buf *buf = &p->buf[b];
  yk_finding f = YK_FINDING_INIT;
  const char *name = o->name, *where = o->where, *op = o->label;
  if (buf->kind == YK_BUF_VARIABLE) {
    name = yk_variable_name(yk_variable_get(p->graph, buf->index));
    where = yk_variable_where(yk_variable_get(p->graph, buf->index));
    op = "";
  }
  f.kind = kind;
  f.is_nan = l->nan > 0;
  f.bad = l->nan > 0 ? l->nan : l->infinite;
  f.elements = l->n;
  snprintf(f.name, sizeof f.name, "%s", name ? name : "?");
  snprintf(f.op, sizeof f.op, "%s", op ? op : "?");
  snprintf(f.where, sizeof f.where, "%s", where ? where : "?");
  if (f.is_nan && x->out->kind == YK_FOUND_COMPUTED) snprintf(f.infinity, sizeof f.infinity, "%s", x->out->name);
  short_name(x->r->lane[p->instr[i].stream].device->name, f.device, sizeof f.device);
  if (buf->kind != YK_BUF_VARIABLE && buf->kind != YK_BUF_CONSTANT) find_rows(x, b, l, &f);
  *x->out = f;
  x->done = f.is_nan;
}

/* Look at argument `arg`, written or first met by instruction i. `fresh`: an infinity in it did not come from another one. */
static yk_code judge(yk_examiner *x, uint32_t i, uint32_t arg, yk_found_kind kind, bool fresh) {
  uint32_t b = x->p->arg[arg];
  look l;
  if (b == YK_NO_BUF || !is_float(&x->p->buf[b].desc)) return YK_OK;
  YK_TRY(look_at(x, arg, &l));
  x->of[b].looked = true;
  x->of[b].infinite = l.infinite > 0;
  if (l.nan > 0 || (l.infinite > 0 && fresh && x->out->kind == YK_FOUND_NOTHING)) tell(x, i, b, &l, kind);
  return YK_OK;
}

/* ---- one instruction ---------------------------------------------------------------------------------------------- */

static yk_code go(yk_examiner *x, uint32_t i, const yk_io *io) {
  const yk_lane *l = &x->r->lane[x->p->instr[i].stream];
  uint64_t failed = 0;
  YK_TRY(yk__run_instr(x->r, i, io));
  return yk__instr_works(&x->p->instr[i]) ? l->driver->stream_sync(l->stream, &failed) : YK_OK;
}

/* Does the operation bring examples into the graph? */
static bool brings_examples(const yk_examiner *x, uint32_t i) {
  yk_value v = yk_find(x->p->graph, x->p->origin[x->p->instr[i].origin].name);
  const yk_node *n = yk__value_node(x->p->graph, v);
  return n != NULL && n->op->out != NULL && n->op->out->name != NULL && (n->op->out->flags & YK_PORT_HOST) != 0;
}

/* Variables and constants are looked at when they are first used. */
static yk_code launch_inputs(yk_examiner *x, uint32_t i, bool *infinite, int64_t *rows) {
  const yk_instr *in = &x->p->instr[i];
  for (uint32_t k = 0; k < x->p->kernel[in->a].nin && !x->done; k++) {
    uint32_t b = x->p->arg[in->args + k];
    if (b == YK_NO_BUF) continue;
    uint8_t kind = x->p->buf[b].kind;
    if (kind == YK_BUF_VARIABLE && !x->of[b].looked) YK_TRY(judge(x, i, in->args + k, YK_FOUND_VARIABLE, true));
    if (kind == YK_BUF_CONSTANT && !x->of[b].looked) YK_TRY(judge(x, i, in->args + k, YK_FOUND_CONSTANT, false));
    *infinite |= x->of[b].infinite;
    if (x->of[b].rows > 0) *rows = x->of[b].rows;
  }
  return YK_OK;
}

static yk_code launch(yk_examiner *x, uint32_t i, const yk_io *io) {
  const yk_instr *in = &x->p->instr[i];
  const yk_plan_kernel *k = &x->p->kernel[in->a];
  bool infinite = false, source = k->nin == 0 && brings_examples(x, i);
  int64_t rows = 0;
  YK_TRY(launch_inputs(x, i, &infinite, &rows));
  if (x->done || k->nwritten > 0) return YK_OK;
  YK_TRY(go(x, i, io));
  for (uint32_t a = k->nin; a < in->nargs && !x->done; a++) {
    uint32_t b = x->p->arg[in->args + a];
    if (b == YK_NO_BUF) continue;
    const yk_desc *d = &x->p->buf[b].desc;
    int64_t first = d->rank > 0 ? d->dim[0] : 0;
    x->of[b].rows = source || first == rows ? first : 0;
    YK_TRY(judge(x, i, in->args + a, source ? YK_FOUND_DEQUEUED : YK_FOUND_COMPUTED, !infinite));
  }
  return YK_OK;
}

static yk_code instruction(yk_examiner *x, uint32_t i, const yk_io *io) {
  const yk_instr *in = &x->p->instr[i];
  uint32_t b = in->nargs > 0 ? x->p->arg[in->args] : YK_NO_BUF;
  if (in->code == YK_I_LAUNCH) return launch(x, i, io);
  if (in->code == YK_I_COPY && b != YK_NO_BUF && x->p->buf[b].kind == YK_BUF_VARIABLE) return YK_OK;
  YK_TRY(go(x, i, io));
  if (in->code == YK_I_COPY || in->code == YK_I_COPY_PEER) x->of[b] = x->of[x->p->arg[in->args + 1]];
  if (in->code != YK_I_FEED) return YK_OK;
  const yk_desc *d = &x->p->buf[b].desc;
  x->of[b].rows = d->rank > 0 ? d->dim[0] : 0;
  return judge(x, i, in->args, YK_FOUND_FED, true);
}

static yk_code open_examiner(yk_examiner *x) {
  uint64_t most = 1;
  for (uint32_t b = 0; b < x->p->nbuf; b++)
    if (x->p->buf[b].bytes > most) most = x->p->buf[b].bytes;
  x->of = yk__calloc(x->p->nbuf + 1u, sizeof *x->of);
  x->host = yk__alloc((size_t)most);
  return x->of != NULL && x->host != NULL ? YK_OK : YK_ENOMEM;
}

yk_code yk__run_examined(yk_entry *e, const yk_io *io) {
  yk_examiner x = { .e = e, .r = e->run, .p = e->plan, .out = io->finding };
  uint32_t i = 0;
  yk_code rc = open_examiner(&x);
  if (rc == YK_OK) {
    if (!x.r->is_inline) yk__team_rest();
    rc = yk__run_begin(x.r, io->counter);
    for (; rc == YK_OK && i < x.p->ninstr && !x.done; i++) {
      rc = instruction(&x, i, io);
      if (rc != YK_OK) break;
    }
    rc = yk__run_finish(x.r, io, rc, i);
  }
  yk__free(x.of);
  yk__free(x.host);
  return rc;
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void add_rows(yk_str *s, const yk_finding *f) {
  if (f->row >= 0 && f->bad_rows == 1) yk__str_add(s, ", in row %lld of %lld", (long long)f->row, (long long)f->rows);
  else if (f->row >= 0)
    yk__str_add(s, ", in %lld of %lld rows, the first being row %lld", (long long)f->bad_rows, (long long)f->rows, (long long)f->row);
  else yk__str_add(s, ", in %lld of %lld elements", (long long)f->bad, (long long)f->elements);
}

yk_code yk_finding_text(const yk_finding *f, char **out) {
  static const char *const what[] = { [YK_FOUND_COMPUTED] = "first made by", [YK_FOUND_DEQUEUED] = "in the input, brought by",
                                      [YK_FOUND_FED] = "in what was fed to", [YK_FOUND_VARIABLE] = "in variable",
                                      [YK_FOUND_CONSTANT] = "in a constant of" };
  yk_str s = { 0 };
  if (f == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_finding_text: NULL finding or output");
  if (f->kind == YK_FOUND_NOTHING) {
    yk__str_add(&s, "no operation made a NaN or an infinity when the step was run again");
    return yk__str_take(&s, out);
  }
  yk__str_add(&s, "%s, %s '%s'", f->is_nan ? "NaN" : "infinity", what[f->kind], f->name);
  if (f->op[0] != '\0') yk__str_add(&s, " (%s)", f->op);
  yk__str_add(&s, " on %s at %s", f->device, f->where);
  add_rows(&s, f);
  if (f->infinity[0] != '\0') yk__str_add(&s, ", after an infinity of '%s'", f->infinity);
  if (f->kind == YK_FOUND_VARIABLE) yk__str_add(&s, ", before this step");
  return yk__str_take(&s, out);
}
