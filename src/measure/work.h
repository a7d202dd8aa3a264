/*
 * work.h - the programs that the benchmark times: graphs with a session and a prepared step.
 *
 * They are ordinary programs of the public interface: nothing here knows of drivers.
 */
#ifndef YK_MEASURE_WORK_H
#define YK_MEASURE_WORK_H

#include "measure/measure.h"

typedef struct yk_pictures yk_pictures;              /* the same few pictures, again and again */

typedef struct yk_work {
  yk_graph *graph;
  yk_session *session;
  yk_step *step;                   /* no feeds, no fetches: nothing but the work */
  yk_pictures *pictures;
} yk_work;

/* [side, side] x [side, side] in `dtype`, both variables of the device. */
yk_code yk__work_product(const yk_session_options *o, const char *device, yk_dtype dtype, int64_t side, yk_work *out) YK_CHECKED;
/* -x of a variable of n floats: reads 4*n bytes and writes as many. */
yk_code yk__work_stream(const yk_session_options *o, const char *device, int64_t n, yk_work *out) YK_CHECKED;
/* One training step of YK__REFERENCE_MODEL with its update, variables on /cpu:0 as `yoke train` has them. */
yk_code yk__work_training(const yk_session_options *o, const char *device, int64_t batch, yk_work *out) YK_CHECKED;
/* After any of them, good or failed. */
void    yk__work_close(yk_work *w);

#endif
