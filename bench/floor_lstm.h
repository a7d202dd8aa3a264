/*
 * floor_lstm.h - the floor under a recurrent step: a hand-planned cell on the library's matrix products.
 *
 * oneDNN's own LSTM in f32 is its reference code on most machines, and computes a gradient of the input that nobody asked for.
 */
#ifndef YK_BENCH_FLOOR_LSTM_H
#define YK_BENCH_FLOOR_LSTM_H

#include <stdint.h>

typedef struct floor_lstm floor_lstm;

/* 64 units over two inputs [batch, 140, 256] with the same weights; the loss is half the mean square of the last states. NULL: no memory. */
floor_lstm *floor_lstm_new(int64_t batch, float rate, float momentum);
void floor_lstm_run(floor_lstm *l);
float floor_lstm_loss(const floor_lstm *l);
void floor_lstm_free(floor_lstm *l);

#endif
