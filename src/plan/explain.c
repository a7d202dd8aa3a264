/*
 * explain.c - a plan as text.
 *
 * One line an instruction: stream, what it does, kernel, shapes, places, waits
 * and remarks; then the memory of each device. The text is stable for one plan,
 * so tests compare it.
 */
#include <inttypes.h>
#include <string.h>
#include "base/str.h"
#include "plan/plan.h"
#include "tensor/desc.h"

static void put_buf(yk_str *s, const yk_plan *p, uint32_t id) {
  const yk_buf *b;
  char text[YK__DESC_TEXT];
  if (id == YK_NO_BUF) {
    yk__str_add(s, " -");
    return;
  }
  b = &p->buf[id];
  yk__str_add(s, " %s%s", yk__desc_text(&b->desc, text, sizeof text), b->desc.layout != YK_LAYOUT_PLAIN ? "*" : "");
  if (b->kind == YK_BUF_VARIABLE) yk__str_add(s, "@var:%s", p->graph->variable[b->index]->name);
  else if (b->kind == YK_BUF_CONSTANT) yk__str_add(s, "@const:%u", b->index);
  else if (b->kind == YK_BUF_COUNTER) yk__str_add(s, "@counter");
  else yk__str_add(s, "@%" PRIu64, b->offset);
}

static void put_instr(yk_str *s, const yk_plan *p, const yk_instr *x) {
  static const char *const verb[] = { "launch", "copy", "copy-peer", "feed", "fetch", "fill", "record", "wait" };
  const yk_origin *o = &p->origin[x->origin];
  yk__str_add(s, "%-6s %-9s ", p->devices->at[p->stream_dev[x->stream]].name + strlen("/job:localhost/replica:0/task:0/device:"), verb[x->code]);
  if (x->code == YK_I_RECORD || x->code == YK_I_WAIT) {
    yk__str_add(s, "event %u\n", x->a);
    return;
  }
  yk__str_add(s, "%s (%s)", o->name, o->label);
  if (x->code == YK_I_LAUNCH) yk__str_add(s, " [%s]", p->kernel[x->a].impl);
  for (uint16_t k = 0; k < x->nargs && k < 16; k++) put_buf(s, p, p->arg[x->args + k]);
  if (x->nargs > 16) yk__str_add(s, " and %u more", x->nargs - 16u);
  if (x->code == YK_I_LAUNCH && p->kernel[x->a].workspace != YK_NO_BUF)
    yk__str_add(s, " workspace %" PRIu64, p->buf[p->kernel[x->a].workspace].bytes);
  if (o->note != NULL) yk__str_add(s, "  ! %s", o->note);
  yk__str_add(s, "\n");
}

static void put_memory(yk_str *s, const yk_plan *p, uint32_t a) {
  const yk_device *d = &p->devices->at[p->arena[a].dev];
  uint64_t variables = 0, constants = 0, need = yk__device_rounded(d, p->arena[a].bytes);
  char needed[YK__BYTES_TEXT], limit[YK__BYTES_TEXT];
  for (uint32_t i = 0; i < p->nbuf; i++) {
    if (p->buf[i].arena != a) continue;
    if (p->buf[i].kind == YK_BUF_VARIABLE) variables += p->buf[i].bytes;
    if (p->buf[i].kind == YK_BUF_VARIABLE) need += yk__device_rounded(d, p->buf[i].bytes);
    if (p->buf[i].kind == YK_BUF_CONSTANT) constants += p->buf[i].bytes;
  }
  yk__str_add(s, "%s: arena %" PRIu64 " bytes (%" PRIu64 " without reuse, %" PRIu64 " of constants), variables %" PRIu64 " bytes; "
              "needs %s of at most %s%s\n", d->name, p->arena[a].bytes, p->arena[a].naive_bytes, constants, variables,
              yk__bytes_text(need, needed), yk__bytes_text(d->limit, limit), need > d->limit ? ": does not fit" : "");
}

yk_code yk__plan_explain(const yk_plan *p, char **out) {
  yk_str s = { 0 };
  uint32_t kernels = 0, reorders = 0, copies = 0;
  for (uint32_t i = 0; i < p->ninstr; i++) {
    const yk_instr *x = &p->instr[i];
    put_instr(&s, p, x);
    kernels += x->code == YK_I_LAUNCH;
    copies += x->code == YK_I_COPY_PEER;
    reorders += x->code == YK_I_LAUNCH && p->kernel[x->a].is_reorder;
  }
  yk__str_add(&s, "%u instructions: %u kernels (%u reorders), %u copies between devices, %u events, %u streams\n", p->ninstr, kernels, reorders,
              copies, p->nevent, p->nstream);
  for (uint32_t a = 0; a < p->narena; a++) put_memory(&s, p, a);
  return yk__str_take(&s, out);
}
