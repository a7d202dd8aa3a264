/*
 * gradcheck.h - are the gradients that a graph builds the derivatives of what it computes?
 *
 * L = sum of dy * y over all float outputs, dy random. Analytic: yk_gradients(), evaluated by the references. Numeric:
 * central differences of L, by the references too, in double. Compared signed, element by element, absolute and
 * relative; NaN never passes; a gradient that is zero everywhere proves nothing and is called mistrusted.
 */
#ifndef YK_TEST_GRADCHECK_H
#define YK_TEST_GRADCHECK_H

#include <yoke/graph.h>

enum { GRADCHECK_INPUTS = 32, GRADCHECK_TEXT = 1024 };

typedef enum gradcheck_verdict {
  GRADCHECK_PASS,
  GRADCHECK_FAIL,           /* a difference, a NaN, or a failure on the way: see text */
  GRADCHECK_MISTRUSTED,     /* agrees, but some input's gradient was built and is zero in every element */
  GRADCHECK_EMPTY,          /* no elements: the graph was built and evaluated, nothing could be compared */
  GRADCHECK_UNSUPPORTED     /* the op says that it has no such gradient; text holds its words */
} gradcheck_verdict;

typedef struct gradcheck {
  gradcheck_verdict verdict;
  int64_t compared;                         /* elements */
  double  worst;                            /* largest difference, relative to what was allowed (1 = the limit) */
  uint16_t nx;
  uint8_t built[GRADCHECK_INPUTS];          /* 1: a gradient node exists for this input; 0: "no gradient" (checked to be zero) */
  uint8_t nonzero[GRADCHECK_INPUTS];        /* 1: some element is not zero */
  char    text[GRADCHECK_TEXT];             /* what failed, both values, and where */
} gradcheck;

/* A point at which to check: x[i] are float placeholders of g with known shapes and values `at`; ys are made from them. */
typedef struct gradcheck_point {
  yk_graph *g;
  uint16_t nx;             yk_value x[GRADCHECK_INPUTS];       const double *at[GRADCHECK_INPUTS];
  uint16_t nfixed;         yk_value fixed[GRADCHECK_INPUTS];   const double *fixed_at[GRADCHECK_INPUTS];   /* fed, not varied */
  uint16_t ny;             yk_value y[GRADCHECK_INPUTS];
  uint64_t seed;
  int64_t  most;                            /* elements varied an input at most, spread over it; 0 = 24 */
} gradcheck_point;

/* First derivatives (order 1), or the derivatives of the gradient nodes themselves in x and dy (order 2). */
void gradcheck_run(const gradcheck_point *p, int order, gradcheck *out);

/* The same for one case of an op: its float inputs as placeholders (f64 where it says T), others fed. */
void gradcheck_case(const yk_op *op, const yk_case *c, int order, gradcheck *out);

/* Nonzero if the op has something to check: a gradient, cases, and no variables to write. */
int gradcheck_applies(const yk_op *op);

const char *gradcheck_name(gradcheck_verdict v);

#endif
