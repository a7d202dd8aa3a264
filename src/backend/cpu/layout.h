/*
 * layout.h - the private layouts of the CPU driver: what a layout number means.
 *
 * A number stands for a way of blocking (oneDNN's "nChw8c", say) together with the role of the value: activations, filters
 * and so on list their dimensions in another order here than in oneDNN. It does not hold a shape, so two values of one shape
 * and one number have their elements in the same places, and an element-wise kernel may treat them as flat arrays of
 * yk__cpu_layout_count() elements. Numbers are per process and never change; only the plain layout (0) is ever stored.
 */
#ifndef YK_BACKEND_CPU_LAYOUT_H
#define YK_BACKEND_CPU_LAYOUT_H

#include "cpu.h"
#include "dnnl_compat.h"

typedef enum yk_role {
  YK_ROLE_SAME,        /* dimensions as they are: matrices, vectors, anything else */
  YK_ROLE_PICTURE,     /* [N,H,W,C], oneDNN {N,C,H,W} */
  YK_ROLE_FILTER,      /* [h,w,I,O], oneDNN {O,I,h,w}, or {G,O/G,I,h,w} with groups */
  YK_ROLE_DENSE        /* [K,N] of a dense layer, oneDNN {N,K} */
} yk_role;

/* ---- for every kernel ---- */

/* Elements in the buffer of a value, padding included; for the plain layout the number of elements. -1: unknown layout. */
int64_t yk__cpu_layout_count(const yk_desc *d);
/* Does the buffer hold padding? It must stay zero: an element-wise kernel whose f(0) is not 0 must ask for plain then. */
int yk__cpu_layout_padded(const yk_desc *d);

/* B if d is a picture in the layout [N, C/B, H, W, B], else 0. Channels beyond the last one are padding. */
int yk__layout_channel_block(const yk_desc *d);

/* ---- for kernels through oneDNN ---- */

/* oneDNN's name of a dtype; dnnl_data_type_undef if it has none. */
dnnl_data_type_t yk__layout_dtype(uint8_t dtype);
/* Descriptor of d in d->layout (plain, private, or YK_LAYOUT_ANY), read as `role`; groups matters for filters (1 = none).
 * *out is the caller's. Refuses a private layout of another role, and dtypes oneDNN lacks. */
yk_code yk__layout_md(const yk_desc *d, yk_role role, uint32_t groups, yk_md *out) YK_CHECKED;
/* The number of a descriptor that a primitive chose; plain where it is. Refuses what is not plainly blocked. Any thread. */
yk_code yk__layout_of(const yk_md *md, yk_role role, uint32_t groups, uint16_t *out) YK_CHECKED;
/* Role and groups of a private layout; 0 if unknown. */
int yk__layout_role(uint16_t layout, yk_role *role, uint32_t *groups);

#endif
