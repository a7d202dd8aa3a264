/*
 * trainer.h - a small network with everything that has a state, trained on one device or four, for tests that stop it and go on.
 *
 * Convolution, batch normalisation, dropout, a dense layer; augmented pictures from a shuffled queue; moving averages; any optimizer. What
 * a run computes depends on the steps before it and on nothing else, so two runs may be compared bit for bit.
 */
#ifndef YK_TEST_STORE_TRAINER_H
#define YK_TEST_STORE_TRAINER_H

#include <stdbool.h>
#include <yoke/yoke.h>
#include "support/check.h"

enum { BATCH = 8, PICTURES = 22 };

typedef struct kind { const char *name; yk_optimizer opt; } kind;
extern kind kinds[16];
extern int nkinds;

typedef struct run {
  const kind *k;
  int devices;
  yk_queue *queue;
  yk_graph *g;
  yk_session *s;
  yk_step *step;
  yk_value loss, train, init;
} run;

/* Fill in `kinds` and make the pictures; the reverse. */
void trainer_setup(void);
void trainer_teardown(void);
/* A run before its first step; `initialise`: run the initializer. */
void start(run *r, const kind *k, int devices, bool initialise);
void stop(run *r);
/* n steps and their losses. */
void train(run *r, int n, float *loss);
/* Save all there is into `folder` as of step `step`, and wait or not; open the newest one there and go on from it: its step. */
void save_as(run *r, yk_saver *s, int64_t step, bool background);
int64_t restore_newest(run *r);
/* Fails the test unless all variables have the same bits. */
void same_variables(run *a, run *b);

#endif
