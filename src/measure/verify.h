/*
 * verify.h - does a training step compute the same on several devices as on one?
 *
 * Both sides get the same initial values, the same batches and the same replicas, so that only rounding may differ: also with batch
 * normalisation, whose statistics are per replica by design. A second comparison has one replica with the whole batch on the other
 * side; there, statistics of normalisation are fixed, since they could not agree.
 */
#ifndef YK_MEASURE_VERIFY_H
#define YK_MEASURE_VERIFY_H

#include <yoke/yoke.h>

enum { YK__VERIFY_STEPS = 32, YK__VERIFY_NAME = 128, YK__VERIFY_TEXT = 600 };

typedef struct yk_verify_job {
  yk_tower_options towers;           /* the devices' side: model, devices, batch, optimizer, ...; source and learning_rate are filled in */
  const yk_dataset *data;
  yk_queue_options queue;
  yk_session_options session;
  uint64_t seed;
  double rate;                       /* constant learning rate */
  int64_t steps;                     /* of training, 1 to YK__VERIFY_STEPS */
  double tolerance;                  /* of a difference, relative to the tensor's largest value */
  /* For tests of this very thing: called on the devices' side before each step, which it may spoil. NULL: nothing is spoilt. */
  yk_code (*spoil)(yk_session *s, yk_graph *g, int64_t step, void *arg);
  void *arg;
} yk_verify_job;

typedef struct yk_difference {       /* of one tensor */
  char name[YK__VERIFY_NAME];
  double absolute, relative;         /* largest |a - b|; that by the scale below, infinite if one of the two is not a number */
  double scale;                      /* the largest |a| of the tensor, but at least a thousandth of that of all tensors */
  double moved;                      /* |a - b| / |a - initial|, by norms: how much of its training differs. < 0: not a trained value */
  bool good;
} yk_difference;

typedef struct yk_comparison {
  const char *what;                  /* "2 replicas on one device"; static */
  bool made;                         /* else `why` tells what kept it from being made */
  char why[YK__VERIFY_TEXT];
  int64_t steps;                     /* that have a loss here */
  double loss[YK__VERIFY_STEPS], reference[YK__VERIFY_STEPS];
  size_t ngradients, nvariables;
  yk_difference *gradient, *variable;
  bool good;
} yk_comparison;

typedef struct yk_verdict {
  bool good, adaptive, normalised;   /* adaptive: values are judged by their norms; normalised: the network has batch statistics */
  yk_comparison replicas, whole;     /* against as many replicas on the first device; against one replica with the whole batch there */
  char text[YK__VERIFY_TEXT];        /* in words, one line */
} yk_verdict;

/* Runs the jobs. EINVAL: options; what keeps the devices' side from running. yk__verdict_free(). */
yk_code yk__verify(const yk_verify_job *job, yk_verdict *out) YK_CHECKED;
void    yk__verdict_free(yk_verdict *v);

#endif
