/*
 * infer.c - ports of an operation: how many, which dtypes, and its shape function.
 *
 * Variadic ports share what is left after the single ones: equal parts, or as
 * many each as the attribute `n` of a YK_MERGE op says. The checks here run
 * before op->infer, which may therefore assume counts and dtypes.
 */
#include <string.h>
#include "base/error.h"
#include "op/registry.h"
#include "tensor/desc.h"

typedef struct ports { uint16_t total, variadic, optional; } ports;

static ports count_ports(const yk_port *p) {
  ports c = { 0, 0, 0 };
  for (; p && p->name; p++) {
    c.total++;
    if (p->flags & YK_PORT_VARIADIC) c.variadic++;
    else if (p->flags & YK_PORT_OPTIONAL) c.optional++;
  }
  return c;
}

/* How many inputs each variadic port takes when there are n in all; may be wrong by count, never out of range. */
static unsigned each(const yk_op *op, const void *attrs, ports c, unsigned n) {
  if (!c.variadic) return 1;
  if (op->traits & YK_MERGE) {
    uint32_t groups;
    memcpy(&groups, yk__attrs_or_zero(op, attrs), sizeof groups);
    return groups ? groups : 1;
  }
  unsigned single = (unsigned)(c.total - c.variadic);
  return n > single ? (n - single) / c.variadic : 0;
}

/* Port number and first input of that port, for input i of n. -1: there is no such port. */
static int port_at(const yk_op *op, const void *attrs, unsigned n, unsigned i, unsigned *first) {
  ports c = count_ports(op->in);
  unsigned many = each(op, attrs, c, n), at = 0;
  for (int k = 0; k < c.total; k++) {
    unsigned width = op->in[k].flags & YK_PORT_VARIADIC ? many : 1;
    if (i < at + width) {
      if (first) *first = at;
      return k;
    }
    at += width;
  }
  return -1;
}

/* First input of port number `port`. */
static unsigned first_of(const yk_op *op, const void *attrs, unsigned n, unsigned port) {
  unsigned many = each(op, attrs, count_ports(op->in), n), at = 0;
  for (unsigned k = 0; k < port; k++) at += op->in[k].flags & YK_PORT_VARIADIC ? many : 1;
  return at;
}

const yk_port *yk__op_in_port(const yk_op *op, const void *attrs, uint16_t n, uint16_t i) {
  int k = port_at(op, attrs, n, i, NULL);
  return k < 0 ? NULL : &op->in[k];
}

uint16_t yk__op_nout(const yk_op *op, const void *attrs) {
  ports c = count_ports(op->out);
  if (!c.variadic) return c.total ? c.total : 1;
  attrs = yk__attrs_or_zero(op, attrs);
  for (const yk_attr *a = op->attrs; a && a->name; a++) {
    const char *p = (const char *)attrs + a->offset;
    if (a->kind == YK_INT && !strcmp(a->name, "n")) {
      int32_t n;
      memcpy(&n, p, sizeof n);
      return (uint16_t)(n > 0 && n < UINT16_MAX ? n : 1);
    }
    if (a->kind == YK_POINTER && !strcmp(a->name, "source")) {
      const yk_source *s;
      memcpy(&s, p, sizeof s);
      return (uint16_t)(s ? s->ncomponents : 1);
    }
  }
  return 1;
}

static char *dtype_list(uint32_t set, char *buf, size_t n) {
  size_t at = 0;
  buf[0] = 0;
  for (unsigned t = 1; t < YK_NDTYPES; t++) {
    if (!(set & YK_T(t))) continue;
    const char *name = yk_dtype_name((yk_dtype)t);
    size_t k = strlen(name);
    if (at + k + 2 > n) break;
    if (at) buf[at++] = ' ';
    memcpy(buf + at, name, k + 1);
    at += k;
  }
  return buf;
}

static yk_code check_count(const yk_op *op, const void *attrs, uint16_t nin) {
  ports c = count_ports(op->in);
  unsigned single = (unsigned)(c.total - c.variadic);
  if (!c.variadic) {
    if (nin <= c.total && nin + c.optional >= c.total) return YK_OK;
    if (c.optional)
      return YK_FAIL(EINVAL, "%s takes %u to %u inputs, got %u", op->label, c.total - c.optional, c.total, nin);
    return YK_FAIL(EINVAL, "%s takes %u input%s, got %u", op->label, c.total, c.total == 1 ? "" : "s", nin);
  }
  unsigned want = each(op, attrs, c, nin) * c.variadic + single;
  if (nin > want || nin + c.optional < want || nin + c.optional <= single)
    return YK_FAIL(EINVAL, "%s takes %u inputs and %u equal group%s of others (%u here), got %u", op->label, single,
                   c.variadic, c.variadic == 1 ? "" : "s", want > single ? want - single : 1, nin);
  return YK_OK;
}

static yk_code check_input(const yk_op *op, const void *attrs, const yk_desc *in, uint16_t nin, uint16_t i) {
  unsigned first = 0;
  int k = port_at(op, attrs, nin, i, &first);
  if (k < 0) return YK_FAIL(EINTERNAL, "%s: no port for input %u", op->label, i);
  const yk_port *p = &op->in[k];
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  if (in[i].dtype == YK_NONE) {
    if ((p->flags & YK_PORT_OPTIONAL) || (p->dtypes & YK_T(YK_NONE))) return YK_OK;
    return YK_FAIL(EINVAL, "%s: input %u (%s) is an operation without a value", op->label, i, p->name);
  }
  if (!(p->dtypes & YK_T(in[i].dtype)))
    return YK_FAIL(EINVAL, "%s: input %u (%s) is %s, expected dtype %s", op->label, i, p->name,
                   yk__desc_text(&in[i], a, sizeof a), dtype_list(p->dtypes, b, sizeof b));
  if (!p->same_as) return YK_OK;
  unsigned other = first_of(op, attrs, nin, p->same_as - 1u);
  if (other >= nin || in[other].dtype == YK_NONE || in[other].dtype == in[i].dtype) return YK_OK;
  return YK_FAIL(EINVAL, "%s: input %u (%s) is %s, expected the dtype of input %u (%s), which is %s", op->label, i, p->name,
                 yk__desc_text(&in[i], a, sizeof a), other, op->in[p->same_as - 1].name,
                 yk__desc_text(&in[other], b, sizeof b));
}

/* What infer gave must fit the output ports: an op that breaks this is a bug. */
static yk_code check_outputs(const yk_op *op, const yk_desc *out, uint16_t nout) {
  ports c = count_ports(op->out);
  for (uint16_t i = 0; i < nout && c.total; i++) {
    const yk_port *p = &op->out[i < c.total ? i : c.total - 1];
    if (i >= c.total && !(p->flags & YK_PORT_VARIADIC)) return YK_FAIL(EINTERNAL, "%s: no port for output %u", op->label, i);
    if (out[i].dtype >= YK_NDTYPES || (p->dtypes && !(p->dtypes & YK_T(out[i].dtype))))
      return YK_FAIL(EINTERNAL, "%s: output %u (%s) came out as %s", op->label, i, p->name,
                     yk_dtype_name((yk_dtype)out[i].dtype));
  }
  return YK_OK;
}

yk_code yk__op_infer(const yk_op *op, const void *attrs, const yk_desc *in, uint16_t nin, yk_desc *out, uint16_t nout) {
  attrs = yk__attrs_or_zero(op, attrs);
  YK_TRY(check_count(op, attrs, nin));
  for (uint16_t i = 0; i < nin; i++) YK_TRY(check_input(op, attrs, in, nin, i));
  memset(out, 0, nout * sizeof *out);
  if (!op->infer) return YK_OK;
  yk_infer c = { in, nin, out, nout, attrs };
  yk_code code = op->infer(&c);
  if (code != YK_OK) {
    const char *text = yk_error_message();
    int named = !strncmp(text, op->label, strlen(op->label)) || !strncmp(text, op->name, strlen(op->name));
    return named ? code : yk__fail_prefix(code, "%s", op->label);
  }
  return check_outputs(op, out, nout);
}
