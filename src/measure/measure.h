/*
 * measure.h - what the devices of this machine do, in numbers that were measured here and now.
 *
 * Copies between every pair of devices take the very path that a plan takes; products, element-wise work and a training step go
 * through a graph and a session. Every number is a median behind a warm-up. What cannot be measured is told with its reason:
 * there is no 0 that means "unknown".
 */
#ifndef YK_MEASURE_MEASURE_H
#define YK_MEASURE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <yoke/yoke.h>
#include "base/str.h"

enum { YK__WHY_BYTES = 400, YK__SHORT_BYTES = 24 };

/* The median of x [n], n > 0, which it sorts. */
double yk__median(double *x, size_t n);
/* Run `once` until `seconds` are over, but at least `least` and at most `most` times (most <= YK__SAMPLES); less than the least only if
 * that took a second longer. `median` is in seconds, `runs` how often. The caller warms up. The first failure of `once` ends it. */
enum { YK__SAMPLES = 256 };
yk_code yk__repeat(yk_code (*once)(void *arg), void *arg, uint32_t least, uint32_t most, double seconds, double *median,
                   uint32_t *runs) YK_CHECKED;
/* "/gpu:1" of a full device name. Returns buf. */
const char *yk__short_name(const char *name, char buf[YK__SHORT_BYTES]);

/* ---- topology.c: copies between devices -------------------------------------------------------------------------- */

typedef enum yk_link_kind {
  YK__LINK_SELF,                   /* the device's own memory */
  YK__LINK_MEMORY,                 /* both compute in one memory: a plan copies nothing */
  YK__LINK_PEER,                   /* the driver copies from one to the other */
  YK__LINK_HOST                    /* through memory of the host, in two copies */
} yk_link_kind;
const char *yk__link_text(yk_link_kind kind);        /* "self" "memory" "peer" "host" */

typedef struct yk_link {
  yk_link_kind kind;
  bool measured;
  double bytes_per_second, latency;  /* seconds for 4 bytes, from asking to knowing that they have arrived */
  uint64_t bytes;                  /* of one copy */
  uint32_t copies;                 /* that the median is of */
  char why[YK__WHY_BYTES];         /* why it was not measured */
} yk_link;

typedef struct yk_topology {
  size_t n;
  yk_device_info *device;          /* [n] */
  yk_link *between;                /* [n*n] from device i to device k: [i*n + k] */
  yk_link *in, *out;               /* [n] from host memory to the device; back */
} yk_topology;

/* All devices of a session, one copy at a time, in about `seconds` (each pair is measured, however many there are). No step of the
 * session may run meanwhile. ENOMEM; what a device refuses is told in its links. */
yk_code yk__topology_measure(yk_session *s, double seconds, yk_topology *out) YK_CHECKED;
void    yk__topology_free(yk_topology *t);

/* ---- together.c: which of them can train together ---------------------------------------------------------------- */

enum { YK__EXCHANGE_BYTES = 100000000 };             /* gradients that a sentence reckons with */

typedef enum yk_match { YK__EQUAL, YK__UNEQUAL, YK__APART } yk_match;
const char *yk__match_text(yk_match m);              /* "equal" "unequal" "no" */
/* Devices of one type can; equal ones (model, memory, cores) without waiting for each other. `why`: [YK__WHY_BYTES] what makes them
 * unequal, or keeps them apart; "" if nothing. */
yk_match yk__match(const yk_device_info *a, const yk_device_info *b, char *why);
/* Seconds to bring YK__EXCHANGE_BYTES over the slower way of a pair; < 0: not measured. */
double  yk__exchange_seconds(const yk_topology *t, size_t i, size_t k);
/* A sentence a line on which devices can train together and what that costs. Failures of memory are kept in `out`. */
void    yk__together(const yk_topology *t, yk_str *out);

/* ---- bench.c: what one device does --------------------------------------------------------------------------------- */

typedef struct yk_number {
  bool measured;
  double value;
  uint32_t runs;                   /* that the median is of */
  int64_t size;                    /* side of the matrices; bytes of the tensor; pictures of the batch */
  char why[YK__WHY_BYTES];         /* why it was not measured, or not at the usual size */
} yk_number;

typedef enum yk_bench_what { YK__BENCH_F32, YK__BENCH_BF16, YK__BENCH_MEMORY, YK__BENCH_TRAINING, YK__NBENCH } yk_bench_what;

typedef struct yk_bench {
  yk_device_info device;
  yk_number of[YK__NBENCH];        /* FLOP/s in f32 and bf16; bytes/s read and written; pictures/s of a training step */
} yk_bench;

enum { YK__REFERENCE_BATCH = 128 };
/* The network of the training step. */
#define YK__REFERENCE_MODEL "cifar10"

/* Measure one thing on one device (its full name), in a session of its own that is opened with `options`. What the device refuses is
 * in out->why. */
void yk__bench(const yk_session_options *options, const char *device, yk_bench_what what, yk_number *out);
/* order: [n] the fastest first: by pictures/s, then by FLOP/s in f32; those without either come last. */
void yk__bench_rank(size_t n, const yk_bench *b, size_t *order);
/* value / that of the fastest by the same measure; < 0 where one of the two is missing. */
double yk__bench_share(size_t n, const yk_bench *b, size_t i);

#endif
