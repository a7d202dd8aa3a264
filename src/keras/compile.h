/*
 * compile.h - what a network is trained with: terms, which are the losses and metrics, an optimizer, and the steps built from them.
 */
#ifndef YK_KERAS_COMPILE_H
#define YK_KERAS_COMPILE_H

#include <yoke/fit.h>
#include "keras/measures.h"

/* A loss or a metric of an output. */
typedef struct yk_term {
  const char *name, *label;        /* in logs; of a metric: as it was asked for, without the output's name */
  uint32_t output;
  const yk_measure *measure;       /* NULL: fn */
  yk_measure_fn fn; void *arg;
  double weight;                   /* of a loss in the total */
  double label_smoothing, delta, threshold;
  int32_t k;
  bool from_logits, weighted;
} yk_term;

typedef struct yk_target {         /* of an output */
  bool wanted, sparse;
  yk_desc desc;                    /* i32 [N, ...] of a sparse one, else f32 [N, ..., C] */
} yk_target;

/* A step over the network: one vector of sums, [2 * terms + 1]: of each term sum and count, then the penalties. */
typedef struct yk_fit_step {
  uint32_t nfeeds;
  yk_value feed[3 * YK__MAX_PORTS];    /* inputs, wanted targets, then their weights if the step is weighted */
  yk_value sums;
  yk_step *step;
} yk_fit_step;

typedef struct yk_compiled {
  yk_bump mem;
  const char *scope;               /* of the optimizer's variables */
  yk_optimizer optimizer;
  double decay, clip_norm, clip_value, global_clip_norm;
  yk_dtype precision;
  yk_term *term; uint32_t nterms, nlosses;   /* losses first */
  yk_target target[YK__MAX_PORTS];
  struct yk_kept_state *kept; uint32_t nkept, kept_cap;      /* state.h: of the optimizer, until its variables are there */
  int64_t kept_iterations;
  const char **name; uint32_t nnames;        /* of what is logged: the total, the losses if there are several outputs, metrics */
  double rate;                     /* while there is no variable of it */
  yk_variable *rate_variable, *iterations;   /* NULL: not built yet */
  yk_fit_step *step[2][2];         /* [training][weighted]; NULL: not built yet */
} yk_compiled;

void yk__compiled_free(yk_compiled *c);
/* step.c: built when it is first wanted. EINVAL: the network is not compiled. */
yk_code yk__fit_step(yk_network *n, bool training, bool weighted, yk_fit_step **out) YK_CHECKED;
/* Was any built yet? */
bool yk__has_steps(const yk_compiled *c);
/* Steps of what was built are gone with the session. */
void yk__steps_free(yk_compiled *c);
/* From a step's sums to the total loss, and the numbers by name; what an epoch adds up is kept in tally.c. */
typedef struct yk_tally { double *sum, *of; double loss, rows; uint32_t nterms; } yk_tally;   /* sum, of: [terms] */
/* Add a batch of so many rows; *total: its loss. */
void yk__tally_add(const yk_compiled *c, yk_tally *t, const float *sums, int64_t rows, double *total);
/* The means so far, [names]. */
void yk__tally_means(const yk_compiled *c, const yk_tally *t, double *out);

#endif
