/*
 * check.c - every invariant of a finished plan, by brute force.
 *
 * Buffers that live at the same time never overlap, instructions refer only to
 * what exists, every wait comes after its record, and replaying the plan with
 * vector clocks finds each read ordered after the write it depends on.
 */
#include <string.h>
#include "base/error.h"
#include "plan/plan.h"

static int in_reach(const yk_plan *p, const yk_instr *x, uint32_t buf) {
  const yk_device *owner = &p->devices->at[p->arena[p->buf[buf].arena].dev], *user = &p->devices->at[p->stream_dev[x->stream]];
  const yk_op *op = x->code == YK_I_LAUNCH ? p->kernel[x->a].op : NULL;
  return yk__device_same_memory(owner, user) || (op && (op->traits & YK_FAR) && yk__device_reaches(user, owner));
}

static yk_code check_instr(const yk_plan *p, uint32_t i) {
  const yk_instr *x = &p->instr[i];
  uint32_t limit[] = { [YK_I_LAUNCH] = p->nkernel, [YK_I_COPY] = 1, [YK_I_COPY_PEER] = 1, [YK_I_FEED] = p->nfeed, [YK_I_FETCH] = p->nfetch,
                       [YK_I_FILL] = 256, [YK_I_RECORD] = p->nevent, [YK_I_WAIT] = p->nevent };
  if (x->code > YK_I_WAIT) return YK_FAIL(EINTERNAL, "instruction %u has the unknown code %u", i, x->code);
  if (x->stream >= p->nstream) return YK_FAIL(EINTERNAL, "instruction %u is on stream %u of %u", i, x->stream, p->nstream);
  if (x->a >= limit[x->code]) return YK_FAIL(EINTERNAL, "instruction %u refers to number %u of %u", i, x->a, limit[x->code]);
  if (x->origin == 0 || x->origin >= p->norigin) return YK_FAIL(EINTERNAL, "instruction %u has no origin", i);
  if (x->args + x->nargs > p->narg) return YK_FAIL(EINTERNAL, "the arguments of instruction %u lie outside the list", i);
  for (uint16_t k = 0; k < x->nargs; k++) {
    uint32_t b = p->arg[x->args + k];
    if (b == YK_NO_BUF ? x->code != YK_I_LAUNCH : b >= p->nbuf) return YK_FAIL(EINTERNAL, "argument %u of instruction %u is not a buffer", k, i);
    if (b != YK_NO_BUF && !(x->code == YK_I_COPY_PEER && k == 1) && !in_reach(p, x, b))
      return YK_FAIL(EINTERNAL, "argument %u of instruction %u is on another device", k, i);
  }
  return YK_OK;
}

static yk_code check_overlap(const yk_plan *p) {
  for (uint32_t i = 0; i < p->nbuf; i++) {
    const yk_buf *a = &p->buf[i];
    if (a->arena >= p->narena) return YK_FAIL(EINTERNAL, "buffer %u is in no arena", i);
    if (a->kind == YK_BUF_VARIABLE || a->bytes == 0) continue;
    if (a->offset + a->bytes > p->arena[a->arena].bytes) return YK_FAIL(EINTERNAL, "buffer %u ends outside its arena", i);
    for (uint32_t j = i + 1; j < p->nbuf; j++) {
      const yk_buf *b = &p->buf[j];
      if (b->kind == YK_BUF_VARIABLE || b->bytes == 0 || a->arena != b->arena) continue;
      if (a->first <= b->last && b->first <= a->last && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
        return YK_FAIL(EINTERNAL, "buffers %u and %u overlap while both are alive", i, j);
    }
  }
  return YK_OK;
}

/* Vector clocks: known[s][t] = instructions of t that are finished when s gets here. */
typedef struct yk_replay {
  const yk_plan *p;
  uint32_t *known;             /* [nstream][nstream] */
  uint32_t *at_event;          /* [nevent][nstream], zero = not recorded yet */
  uint32_t *done;              /* [nstream] instructions so far */
  uint32_t *written;           /* [nbuf] 1 + position of the last write on its stream */
  uint16_t *writer;            /* [nbuf] that stream */
  uint32_t *read;              /* [nbuf][nstream] 1 + position of the last read on each stream */
} yk_replay;

static yk_code replay_access(yk_replay *r, uint32_t i, uint32_t buf, int write) {
  uint16_t s = r->p->instr[i].stream;
  uint32_t n = r->p->nstream;
  if (buf == YK_NO_BUF) return YK_OK;
  if (r->written[buf] != 0 && r->writer[buf] != s && r->known[s * n + r->writer[buf]] < r->written[buf])
    return YK_FAIL(EINTERNAL, "instruction %u uses buffer %u before stream %u has surely written it", i, buf, r->writer[buf]);
  for (uint16_t t = 0; t < n && write; t++)
    if (t != s && r->known[s * n + t] < r->read[buf * n + t])
      return YK_FAIL(EINTERNAL, "instruction %u overwrites buffer %u while stream %u may still read it", i, buf, t);
  if (!write) r->read[buf * n + s] = r->done[s] + 1;
  if (write) {
    r->written[buf] = r->done[s] + 1;
    r->writer[buf] = s;
  }
  return YK_OK;
}

static yk_code replay_sync(yk_replay *r, uint32_t i) {
  const yk_instr *x = &r->p->instr[i];
  uint32_t n = r->p->nstream;
  uint32_t *mine = &r->known[x->stream * n], *event = &r->at_event[x->a * n];
  if (x->code == YK_I_RECORD) {
    mine[x->stream] = r->done[x->stream];
    memcpy(event, mine, n * sizeof *mine);
    return YK_OK;
  }
  if (event[r->p->event_stream[x->a]] == 0) return YK_FAIL(EINTERNAL, "instruction %u waits for event %u before it is recorded", i, x->a);
  for (uint32_t t = 0; t < n; t++)
    if (event[t] > mine[t]) mine[t] = event[t];
  return YK_OK;
}

static yk_code replay(yk_replay *r) {
  const yk_plan *p = r->p;
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *x = &p->instr[i];
    if (x->code == YK_I_RECORD || x->code == YK_I_WAIT) {
      YK_TRY(replay_sync(r, i));
      continue;
    }
    for (uint16_t k = 0; k < x->nargs; k++) {
      int write = x->code != YK_I_FETCH && k == 0;
      if (x->code == YK_I_LAUNCH) write = k < p->kernel[x->a].nwritten || k >= p->kernel[x->a].nin;
      YK_TRY(replay_access(r, i, p->arg[x->args + k], write));
    }
    r->done[x->stream]++;
  }
  return YK_OK;
}

static yk_code check_order(const yk_plan *p) {
  yk_replay r = { .p = p };
  yk_code rc = YK_ENOMEM;
  size_t n = p->nstream;
  r.known = yk__calloc(n * n + 1, sizeof *r.known);
  r.at_event = yk__calloc((size_t)p->nevent * n + 1, sizeof *r.at_event);
  r.done = yk__calloc(n + 1, sizeof *r.done);
  r.written = yk__calloc(p->nbuf + 1u, sizeof *r.written);
  r.writer = yk__calloc(p->nbuf + 1u, sizeof *r.writer);
  r.read = yk__calloc((size_t)p->nbuf * n + 1, sizeof *r.read);
  if (r.read != NULL && r.known != NULL && r.at_event != NULL && r.done != NULL && r.written != NULL && r.writer != NULL) rc = replay(&r);
  yk__free(r.known);
  yk__free(r.at_event);
  yk__free(r.done);
  yk__free(r.written);
  yk__free(r.writer);
  yk__free(r.read);
  return rc;
}

yk_code yk__plan_check(const yk_plan *p) {
  for (uint32_t i = 0; i < p->ninstr; i++) YK_TRY(check_instr(p, i));
  YK_TRY(check_overlap(p));
  return check_order(p);
}
