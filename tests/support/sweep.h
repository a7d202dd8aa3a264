/*
 * sweep.h - run one operation on one device and compare it with the reference in double.
 *
 * A function of (device, op, case, dtype), so that tests can give it operations and kernels with planted faults. Besides values
 * it checks that nothing is written outside the buffers or into inputs, that a second run gives the same bits, that other
 * inputs give other results, and every way of working in place that the kernel offers.
 */
#ifndef YK_TEST_SWEEP_H
#define YK_TEST_SWEEP_H

#include <yoke/op.h>

typedef struct sweep_device {
  const char *name;
  const yk_driver *driver;
  yk_dev *dev;
  yk_stream *stream;
  int team, team_again;          /* cores of the calling thread's team in the first run and in later ones; 0 = as it is */
  uint16_t offer;                /* layout in which inputs of rank 4 that a kernel computes with are offered; 0 = plain */
  int only;                      /* cpu: number of the candidate to use; -1 = the driver chooses */
} sweep_device;

typedef enum sweep_verdict { SWEEP_OK, SWEEP_FAIL, SWEEP_REFUSED } sweep_verdict;

typedef struct sweep_total {
  uint64_t ops, dtypes, cases, devices;    /* distinct ops; op x dtype; op x dtype x case; devices */
  uint64_t values;                         /* elements compared */
  uint64_t skipped, failed, refused;
} sweep_total;

/* Open the driver's first device and a stream on it (inline if it can). Fails the test if it cannot. */
void sweep_open(const yk_driver *driver, int inline_stream, sweep_device *out);
void sweep_close(sweep_device *d);

/* One case. `why`: what was wrong, or why the kernel refused. *values: elements compared, added to. */
sweep_verdict sweep_case(const sweep_device *d, const yk_op *op, const yk_case *c, yk_dtype t, char *why, size_t why_bytes,
                         uint64_t *values);

/* Every case of an op in every dtype; failures are printed. */
void sweep_op(const sweep_device *d, const yk_op *op, const yk_case *cases, sweep_total *total);

#endif
