/*
 * proto.h - messages in the wire format of protocol buffers, appended to a growing string.
 *
 * A field is its number with a wire type, then the value. A message inside another needs its length first: it is written in place
 * and its length is slipped in when it ends, so messages nest without buffers of their own. What is zero may be left out: that is
 * the caller's choice, since members of a oneof are written even when they are zero. Out of memory is remembered in the string.
 */
#ifndef YK_BASE_PROTO_H
#define YK_BASE_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

/* A bare number, seven bits a byte, as in packed lists. */
void yk__proto_varint(yk_str *s, uint64_t v);

/* One field: int32, int64, bool and enumerations (below zero: ten bytes); doubles and floats; bytes, texts and packed lists. */
void yk__proto_int(yk_str *s, uint32_t field, int64_t v);
void yk__proto_double(yk_str *s, uint32_t field, double v);
void yk__proto_float(yk_str *s, uint32_t field, float v);
void yk__proto_bytes(yk_str *s, uint32_t field, const void *p, size_t n);
void yk__proto_text(yk_str *s, uint32_t field, const char *text);
/* A packed list of n doubles; nothing if there are none. */
void yk__proto_doubles(yk_str *s, uint32_t field, const double *v, size_t n);

/* A message as field: what is written between the two is in it. `end` takes what `begin` gave. */
size_t yk__proto_begin(yk_str *s, uint32_t field);
void   yk__proto_end(yk_str *s, size_t begin);

#endif
