/*
 * dnnl_block_isa.c - vector code of the normalisations and poolings of blocked pictures.
 *
 * Compiled once for each instruction set. The template is included for f32 and bf16 and for blocks of 8 and 16 channels,
 * the two sizes that oneDNN uses on processors with vectors of 8 and of 16 floats.
 */
#include "dnnl_block.h"
#include <math.h>
#include <stddef.h>

#define PASTE2(a, b) a##_##b
#define PASTE(a, b) PASTE2(a, b)

typedef float v8_f32 __attribute__((vector_size(32)));
typedef int32_t i8_f32 __attribute__((vector_size(32)));
typedef uint32_t w8 __attribute__((vector_size(32)));
typedef uint16_t h8 __attribute__((vector_size(16)));
typedef float v16_f32 __attribute__((vector_size(64)));
typedef int32_t i16_f32 __attribute__((vector_size(64)));
typedef uint32_t w16 __attribute__((vector_size(64)));
typedef uint16_t h16 __attribute__((vector_size(32)));
/* The same in memory of any alignment and type. */
typedef float U_f32_8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float U_f32_16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef U_f32_8 U_bf16_8;
typedef U_f32_16 U_bf16_16;
/* Indexes of one block. */
typedef uint8_t b8 __attribute__((vector_size(8)));
typedef uint8_t b16 __attribute__((vector_size(16)));
typedef uint8_t ub8 __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t ub16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t uh8 __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint16_t uh16 __attribute__((vector_size(32), aligned(2), may_alias));

/* Round to nearest even; NaN stays NaN. */
#define TO_BF16(W, H, v)                                                                            \
  __builtin_convertvector((((((W)(v)) + 0x7fffu + ((((W)(v)) >> 16) & 1u)) >> 16) & (W)((v) == (v))) | \
                          (0x7fc0u & (W)((v) != (v))), H)

#define T float
#define B 8
#define V v8_f32
#define I i8_f32
#define BYTES b8
#define HALFS h8
#define UBYTES ub8
#define F(f) f##_f32_8
#define LOAD(p) (*(const U_f32_8 *)(p))
#define STORE(p, v) (*(U_f32_8 *)(p) = (v))
#include "dnnl_block_tmpl.h"
#include "dnnl_block_pool_tmpl.h"
#undef B
#undef V
#undef I
#undef BYTES
#undef HALFS
#undef UBYTES
#undef F
#undef LOAD
#undef STORE
#define B 16
#define V v16_f32
#define I i16_f32
#define BYTES b16
#define HALFS h16
#define UBYTES ub16
#define F(f) f##_f32_16
#define LOAD(p) (*(const U_f32_16 *)(p))
#define STORE(p, v) (*(U_f32_16 *)(p) = (v))
#include "dnnl_block_tmpl.h"
#include "dnnl_block_pool_tmpl.h"
#undef T
#undef B
#undef V
#undef I
#undef BYTES
#undef HALFS
#undef UBYTES
#undef F
#undef LOAD
#undef STORE

#define T uint16_t
#define B 8
#define V v8_f32
#define I i8_f32
#define BYTES b8
#define HALFS h8
#define UBYTES ub8
#define F(f) f##_bf16_8
#define LOAD(p) ((V)(__builtin_convertvector(*(const uh8 *)(p), w8) << 16))
#define STORE(p, v)                                  \
  do {                                               \
    const V v_ = (v);                                \
    *(uh8 *)(p) = TO_BF16(w8, h8, v_);            \
  } while (0)
#include "dnnl_block_tmpl.h"
#include "dnnl_block_pool_tmpl.h"
#undef B
#undef V
#undef I
#undef BYTES
#undef HALFS
#undef UBYTES
#undef F
#undef LOAD
#undef STORE
#define B 16
#define V v16_f32
#define I i16_f32
#define BYTES b16
#define HALFS h16
#define UBYTES ub16
#define F(f) f##_bf16_16
#define LOAD(p) ((V)(__builtin_convertvector(*(const uh16 *)(p), w16) << 16))
#define STORE(p, v)                                  \
  do {                                               \
    const V v_ = (v);                                \
    *(uh16 *)(p) = TO_BF16(w16, h16, v_);         \
  } while (0)
#include "dnnl_block_tmpl.h"
#include "dnnl_block_pool_tmpl.h"

#define FNS(s) { stat_sum_##s, norm_##s, grad_sum_##s, norm_grad_##s, lrn_##s, lrn_grad_##s, max_pool_##s, max_pool_grad_##s }
extern const yk_block_table PASTE(yk__block_table, YK_ISA);
const yk_block_table PASTE(yk__block_table, YK_ISA) = { .fn = { { FNS(f32_8), FNS(f32_16) }, { FNS(bf16_8), FNS(bf16_16) } } };
