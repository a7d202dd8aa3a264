/*
 * lstm_net.h - the recurrent network that yoke_lstm.c and yoke_branches.c time.
 *
 * One layer of 64 units reads its inputs of 140 steps and 256 features, with the same weights; the last states go through a dense
 * layer to a sigmoid and its cross entropy; momentum updates. The inputs are in memory and the same ones each step.
 */
#ifndef YK_BENCH_LSTM_NET_H
#define YK_BENCH_LSTM_NET_H

#include <yoke/yoke.h>

typedef struct lstm_net {
  const char *kind;               /* lstm, gru, simple, or lstm_bf16: the big products in bf16 */
  int64_t batch;
  int32_t inputs, cores, devices; /* input i is read on /cpu:(i % devices); cores: of all of them, 0 = every one */
  yk_graph *g;                    /* from here on made by lstm_net_open() */
  yk_session *s;
  yk_step *step;
} lstm_net;

yk_code lstm_net_open(lstm_net *net) YK_CHECKED;
/* The loss before the update. */
yk_code lstm_net_step(lstm_net *net, double *loss) YK_CHECKED;
void lstm_net_close(lstm_net *net);

#endif
