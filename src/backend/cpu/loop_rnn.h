/*
 * loop_rnn.h - what preparing and running share in the recurrent operations.
 *
 * Sequences are taken a block of rows at a time, each block over all its steps: its state stays in the first cache, and
 * no thread waits for another inside a sequence. Which rows make a block depends on shapes alone, and no sum goes over rows, so
 * bits do not depend on the team.
 */
#ifndef YK_CPU_LOOP_RNN_H
#define YK_CPU_LOOP_RNN_H

#include "loop_nn.h"

enum { RNN_LSTM, RNN_LSTM_GRAD, RNN_GRU, RNN_GRU_GRAD, RNN_SIMPLE, RNN_SIMPLE_GRAD, RNN_KINDS };
enum { RNN_TILE = 8, RNN_MAX_WIDTH = 32 };     /* rows of a block are a multiple of the first; the most columns of a panel */

/* One packed factor [depth, columns], its columns in panels; made at the start of a run from `recurrent`. */
typedef struct yk_rnn_pack { int64_t depth, columns, first; int turned; } yk_rnn_pack;   /* first: column of recurrent where it begins */

typedef struct yk_rnn_state {
  yk_loop_body body;
  int64_t n, t, u, columns;              /* columns of `recurrent` */
  int64_t rows, blocks, slots;           /* rows of a block; runs of blocks that share scratch */
  int64_t pitch[2], scratch;             /* elements: of a row of either product, of a slot */
  uint32_t npack;
  yk_rnn_pack pack[2];
  int64_t pack_at[2], packed;            /* elements */
  int32_t kind, fast, activation, hard, backwards, zero_output, reset_before;
  double slope;
} yk_rnn_state;

/* Columns rounded up to whole panels, whatever their width on this machine. */
static inline int64_t yk__rnn_padded(int64_t columns) { return (columns + RNN_MAX_WIDTH - 1) / RNN_MAX_WIDTH * RNN_MAX_WIDTH; }

#endif
