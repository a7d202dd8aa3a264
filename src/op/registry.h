/*
 * registry.h - the table of operations. Public half: <yoke/op.h>.
 *
 * Built from ops/ops.def by registry.c: constant data, no constructors, no locks.
 */
#ifndef YK_OP_REGISTRY_H
#define YK_OP_REGISTRY_H

#include <yoke/op.h>
#include <yoke/op_attrs.h>

#define OP(name) extern const yk_op yk__op_##name;
#include "../ops/ops.def"
#undef OP

/* Check an attribute struct against the ranges of op->attrs. EINVAL names op, attribute, value and range. */
yk_code yk__attrs_check(const yk_op *op, const void *attrs) YK_CHECKED;
/* "stride=2,2 padding=SAME"; only what differs from the default. Appends to buf, always terminated; returns buf. */
char *yk__attrs_text(const yk_op *op, const void *attrs, char *buf, size_t n);
/* Equality and hash of two attribute structs of one op, field by field. */
int yk__attrs_equal(const yk_op *op, const void *a, const void *b);
uint64_t yk__attrs_hash(const yk_op *op, const void *a, uint64_t seed);
/* Check port count and dtypes, then call op->infer; messages name the op and port. nout is given by the caller. */
yk_code yk__op_infer(const yk_op *op, const void *attrs, const yk_desc *in, uint16_t nin, yk_desc *out, uint16_t nout) YK_CHECKED;
/* Number of outputs with the given attributes (variadic outputs: split, dequeue), from the ports or the attribute struct. */
uint16_t yk__op_nout(const yk_op *op, const void *attrs);
/* Port of input i when variadic ports are present. n = number of inputs. */
const yk_port *yk__op_in_port(const yk_op *op, const void *attrs, uint16_t n, uint16_t i);

#endif
