/*
 * loop.h - what the plain-loop kernels share: element functions, conversions, choice of instruction set.
 *
 * Loops that must be vector code live in *_isa.c files, which the build compiles once for each instruction set with
 * YK_ISA set to its name; each such file exports one constant table, and loop_choose.c hands out the table for this machine.
 * Kernels compute in f32 for f32, f16 and bf16, in f64 for f64, and natively for integers.
 */
#ifndef YK_CPU_LOOP_H
#define YK_CPU_LOOP_H

#include "cpu.h"

/* Types computed in. f16 and bf16 are converted to L_F32 a block at a time; bool is L_U8. */
typedef enum yk_loop_type { L_F32, L_F64, L_I32, L_I64, L_U8, L_NTYPES } yk_loop_type;

typedef enum yk_elem_id {
#define FUN1(name, f) E_##name,
#define FUN2(name, f) E_##name,
#define FUN3(name, f) E_##name,
#define NUM1(name, f, i) E_##name,
#define NUM2(name, f, i) E_##name,
#define CMP2(name, f) E_##name,
#include "loop_elem.def"
#undef FUN1
#undef FUN2
#undef FUN3
#undef NUM1
#undef NUM2
#undef CMP2
  E_COUNT
} yk_elem_id;

enum { L_VV, L_VS, L_SV, L_NMODES };     /* which of two inputs advance: both, the first, the second */
enum { L_BLOCK = 512 };                  /* elements converted at a time */
enum { L_GRAIN = 16384 };                /* elements below which a second core does not pay */

/* n elements; p[0..1] are attributes. The output may be the very same memory as an input. */
typedef void (*yk_elem_fn)(int64_t n, const void *x, const void *y, const void *z, void *out, const double *p);

typedef struct yk_elem_table {
  yk_elem_fn fn[E_COUNT][L_NTYPES][L_NMODES];          /* NULL where the function does not exist for the type */
  yk_elem_fn where[4][8];                              /* by log2 of the element's bytes, by bits of (cond, a, b) that advance */
  yk_elem_fn cast[L_NTYPES][L_NTYPES + 1];             /* from, to; to L_NTYPES = bool */
  yk_elem_fn logic[3][L_NMODES];                       /* and, or, not of bool */
  yk_elem_fn to_f32[2], from_f32[2];                   /* f16, bf16 */
} yk_elem_table;

const yk_elem_table *yk__loop_elem(void);              /* of this machine */

/* For tests: kernels prepared from now on use at most this instruction set (0 baseline, 1 avx2, 2 avx512; -1 = the machine's). */
void yk__loop_limit_isa(int level);

static inline int yk__loop_half(uint8_t dtype) { return dtype == YK_F16 || dtype == YK_BF16; }
yk_loop_type yk__loop_type(uint8_t dtype);

/* `value` as the bits of one element, in the first bytes of the result. */
uint64_t yk__loop_encode(uint8_t dtype, double value);

/* Product of dims [from, to). */
int64_t yk__loop_span(const yk_desc *d, uint32_t from, uint32_t to);
/* Axis counted from the front. */
static inline uint32_t yk__loop_axis(const yk_desc *d, int32_t axis) {
  return (uint32_t)(axis < 0 ? axis + (int32_t)d->rank : axis);
}

#ifdef YK_ISA
#define YK_ISA_PASTE2(f, isa) f##_##isa
#define YK_ISA_PASTE(f, isa) YK_ISA_PASTE2(f, isa)
#define YK_ISA_NAME(f) YK_ISA_PASTE(f, YK_ISA)
#endif

#endif
