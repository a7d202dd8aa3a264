/*
 * loop_choose.c - which instruction set the loops use, and small helpers of all plain-loop kernels.
 *
 * The choice is made from what the processor reports, so one binary serves every machine. It costs a few loads and is
 * made while preparing kernels only; a prepared kernel keeps the function it was given.
 */
#include "loop_nn.h"

static int most = 2;                     /* highest level taken: 0 baseline, 1 avx2, 2 avx512 */

void yk__loop_limit_isa(int level) { most = level < 0 ? 2 : level; }

static int machine_level(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
  return 0;
}

static int isa_level(void) {
  int level = machine_level();
  return level < most ? level : most;
}

#if defined(__x86_64__)
#define PICK(type, table)                                                                              \
  extern const type table##_baseline, table##_avx2, table##_avx512;                                    \
  int level = isa_level();                                                                             \
  return level == 2 ? &table##_avx512 : level == 1 ? &table##_avx2 : &table##_baseline
#else
#define PICK(type, table)                                                                              \
  extern const type table##_baseline;                                                                  \
  (void)isa_level();                                                                                   \
  return &table##_baseline
#endif

const yk_elem_table *yk__loop_elem(void) { PICK(yk_elem_table, yk__elem_table); }
const yk_reduce_table *yk__loop_reduce(void) { PICK(yk_reduce_table, yk__reduce_table); }
const yk_update_table *yk__loop_update(void) { PICK(yk_update_table, yk__update_table); }
const yk_sum_table *yk__loop_sum(void) { PICK(yk_sum_table, yk__sum_table); }
const yk_wino_table *yk__loop_winograd(void) { PICK(yk_wino_table, yk__wino_table); }

static const yk_body_table *softmax_bodies(void) { PICK(yk_body_table, yk__softmax_table); }
static const yk_body_table *norm_bodies(void) { PICK(yk_body_table, yk__norm_table); }
static const yk_body_table *pool_bodies(void) { PICK(yk_body_table, yk__pool_table); }
static const yk_body_table *conv_bodies(void) { PICK(yk_body_table, yk__conv_table); }
static const yk_body_table *rnn_bodies(void) { PICK(yk_body_table, yk__rnn_table); }
static const yk_body_table *picture_bodies(void) { PICK(yk_body_table, yk__picture_table); }
static const yk_body_table *matmul_bodies(void) { PICK(yk_body_table, yk__matmul_table); }

const yk_body_table *yk__loop_bodies(yk_loop_subject subject) {
  switch (subject) {
    case LOOP_SOFTMAX: return softmax_bodies();
    case LOOP_NORM: return norm_bodies();
    case LOOP_POOL: return pool_bodies();
    case LOOP_CONV: return conv_bodies();
    case LOOP_RNN: return rnn_bodies();
    case LOOP_PICTURE: return picture_bodies();
    default: return matmul_bodies();
  }
}

yk_loop_type yk__loop_type(uint8_t dtype) {
  switch (dtype) {
    case YK_F64: return L_F64;
    case YK_I32: return L_I32;
    case YK_I64: return L_I64;
    case YK_U8: case YK_BOOL: return L_U8;
    default: return L_F32;
  }
}

int64_t yk__loop_span(const yk_desc *d, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t i = from; i < to; i++) n *= d->dim[i];
  return n;
}
