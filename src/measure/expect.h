/*
 * expect.h - how long a step will take, worked out from its plan without running it.
 *
 * Each kernel of the plan has a time, each copy a speed; the plan's own order, waits and streams then say when the step ends. On
 * devices that are here the times are measured, one kernel after the other, on memory of its own; of devices that a file tells of, they
 * follow from the speeds in the file. Where the devices are the host's own cores and there is none to spare, the thread that prepares
 * the next batch takes its time from one of them.
 */
#ifndef YK_MEASURE_EXPECT_H
#define YK_MEASURE_EXPECT_H

#include "measure/measure.h"
#include "run/run.h"

typedef struct yk_expectation {
  bool known, measured;              /* measured: kernels were timed here; else reckoned from speeds */
  double seconds;                    /* of a step */
  double input;                      /* of that, seconds lost to preparing the next batch */
  double *busy, *copying;            /* [devices] seconds with kernels, with copies to it */
  uint32_t kinds, reckoned;          /* different kernels; those of them that could not be timed */
  char why[YK__WHY_BYTES];           /* why it is not known */
} yk_expectation;

/*
 * Inside a yk_look, of a yk_session whose steps have not run. links: between its devices, measured; NULL if it rehearses. The timing
 * ends after about `seconds` for the whole plan, though each kernel runs three times at least. input: seconds that one core needs to
 * prepare a batch. Memory for it is taken from the devices and given back. ENOMEM of the host; what a device refuses is told in `why`.
 * yk__expectation_free().
 */
yk_code yk__expect(yk_session *s, const yk_plan *p, const yk_topology *links, double input, double seconds,
                   yk_expectation *out) YK_CHECKED;
void    yk__expectation_free(yk_expectation *x);

#endif
