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

enum { YK__MAX_ATTR_BYTES = 512 };
/* attrs, or a struct of zeros (static) when it is NULL. */
const void *yk__attrs_or_zero(const yk_op *op, const void *attrs);
/* Check an attribute struct against the ranges of op->attrs. EINVAL names op, attribute, value and range. */
yk_code yk__attrs_check(const yk_op *op, const void *attrs) YK_CHECKED;
/* "stride=2,2 padding=SAME"; only what differs from the default. Appends to buf, always terminated; returns buf. */
char *yk__attrs_text(const yk_op *op, const void *attrs, char *buf, size_t n);
/* Equality and hash of two attribute structs of one op, field by field. */
int yk__attrs_equal(const yk_op *op, const void *a, const void *b);
uint64_t yk__attrs_hash(const yk_op *op, const void *a, uint64_t seed);
/* Check port count and dtypes, then call op->infer; messages name the op and port. nout is given by the caller;
 * outputs start as zero. Optional inputs that are left out have dtype YK_NONE, or are missing at the end. */
yk_code yk__op_infer(const yk_op *op, const void *attrs, const yk_desc *in, uint16_t nin, yk_desc *out, uint16_t nout) YK_CHECKED;
/* Number of outputs with the given attributes, at least 1 (the handle of an operation): from the ports; of a variadic output from
 * the INT attribute "n" or the POINTER attribute "source" (a yk_source). */
uint16_t yk__op_nout(const yk_op *op, const void *attrs);
/* Port of input i when variadic ports are present. n = number of inputs. NULL past the last port. */
const yk_port *yk__op_in_port(const yk_op *op, const void *attrs, uint16_t n, uint16_t i);

#endif
