/*
 * yoke_lstm.c - times a whole training step of the recurrent network of lstm_net.h over two inputs.
 *
 *   yoke_lstm [KIND [BATCH [SECONDS [THREADS]]]]      KIND: lstm, gru, simple, or lstm_bf16 (the big products in bf16)
 */
#include <math.h>
#include <stdio.h>
#include "common.h"
#include "lstm_net.h"

enum { WARM_UP = 5 };

static yk_code timed(lstm_net *net, double seconds, bench_times *times, double *first, double *loss) {
  double end = 0;
  for (int i = 0; i < WARM_UP + 1 || bench_now_ms() < end; i++) {
    double begin = bench_now_ms();
    YK_TRY(lstm_net_step(net, loss));
    double ms = bench_now_ms() - begin;
    if (i == 0) *first = bench_age_ms();
    if (i < WARM_UP) end = bench_now_ms() + seconds * 1e3;
    else if (bench_times_add(times, ms) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

int main(int argc, char **argv) {
  bench_times times = { 0 };
  double first = 0, loss = (double)NAN;
  const double batch = bench_number(argc > 2 ? argv[2] : NULL, 64), seconds = bench_number(argc > 3 ? argv[3] : NULL, 3);
  const double threads = bench_number(argc > 4 ? argv[4] : NULL, 0);
  if (argc > 5 || isnan(batch) || batch > 1e5 || isnan(seconds) || isnan(threads)) {
    fprintf(stderr, "usage: yoke_lstm [lstm|gru|simple|lstm_bf16 [BATCH [SECONDS [THREADS]]]]\n");
    return 2;
  }
  lstm_net net = { .kind = argc > 1 ? argv[1] : "lstm", .batch = (int64_t)batch, .inputs = 2, .cores = (int32_t)threads, .devices = 1 };
  yk_code rc = lstm_net_open(&net);
  if (rc == YK_OK) rc = timed(&net, seconds, &times, &first, &loss);
  const int good = rc == YK_OK && isfinite(loss);
  if (good)
    bench_print(&(bench_result){ .contender = "yoke",
                                 .model = net.kind,
                                 .batch = net.batch,
                                 .threads = yk_session_options_of(net.s)->cores,
                                 .times = &times,
                                 .first_step_ms = first,
                                 .loss = loss,
                                 .more = "" });
  else
    fprintf(stderr, "yoke_lstm: the step failed: %s\n", yk_error_message());
  lstm_net_close(&net);
  bench_times_free(&times);
  return good ? 0 : 1;
}
