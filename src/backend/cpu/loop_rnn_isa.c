/*
 * loop_rnn_isa.c - vector code of the recurrent operations.
 *
 * Compiled once for each instruction set. A step is a small product with the packed recurrent kernel, its sums in registers, and
 * one pass over the gates of each row; the templates are included once for f32 and once for f64.
 */
#include "loop_rnn.h"

#include <string.h>
#include "loop_math.h"

#if defined(__AVX512F__)
enum { VECTOR = 64, TILE = 8 };          /* bytes; rows whose sums fit into the registers, two vectors each */
#elif defined(__AVX2__)
enum { VECTOR = 32, TILE = 4 };
#else
enum { VECTOR = 16, TILE = 4 };
#endif

#define SIMD _Pragma("omp simd")
#define INLINE static inline __attribute__((always_inline))

#define T float
#define F(f) f##_f32
#include "loop_rnn_tmpl.h"
#include "loop_rnn_cells_tmpl.h"
#undef T
#undef F
#define T double
#define F(f) f##_f64
#include "loop_rnn_tmpl.h"
#include "loop_rnn_cells_tmpl.h"
#undef T
#undef F

#define BOTH(name) { name##_f32, name##_f64 }
extern const yk_body_table YK_ISA_NAME(yk__rnn_table);
const yk_body_table YK_ISA_NAME(yk__rnn_table) = { .body = {
  [RNN_LSTM] = BOTH(lstm), [RNN_LSTM_GRAD] = BOTH(lstm_grad), [RNN_GRU] = BOTH(gru), [RNN_GRU_GRAD] = BOTH(gru_grad),
  [RNN_SIMPLE] = BOTH(simple), [RNN_SIMPLE_GRAD] = BOTH(simple_grad) } };
