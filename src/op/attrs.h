/*
 * attrs.h - single attributes of an operation, for those who tell them in another form than as text.
 *
 * Whole attribute structs are the business of registry.h.
 */
#ifndef YK_OP_ATTRS_INSIDE_H
#define YK_OP_ATTRS_INSIDE_H

#include <stdint.h>
#include <yoke/op.h>

/* Item i of an integer kind (INT, FLAG, INTS, ENUM, DIMS). */
int64_t yk__attr_integer(const yk_attr *a, const void *attrs, unsigned i);
/* The name behind a number of an ENUM, or NULL. Static string. */
const char *yk__attr_enum(const yk_attr *a, int64_t v);

#endif
