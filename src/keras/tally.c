/*
 * tally.c - from the sums of steps to what logs say.
 *
 * A loss is the mean over batches, each counting as much as it has rows; a metric is the sum of its numbers over what they count for.
 */
#include <math.h>
#include "keras/compile.h"

static double over(double sum, double of) { return of != 0 ? sum / of : 0; }

void yk__tally_add(const yk_compiled *c, yk_tally *t, const float *sums, int64_t rows, double *total) {
  double loss = sums[2 * c->nterms];
  for (uint32_t i = 0; i < c->nlosses; i++) loss += c->term[i].weight * over(sums[2 * i], sums[2 * i + 1]);
  t->loss += loss * (double)rows;
  t->rows += (double)rows;
  for (uint32_t i = 0; i < c->nterms; i++) {
    t->sum[i] += i < c->nlosses ? over(sums[2 * i], sums[2 * i + 1]) * (double)rows : sums[2 * i];
    t->of[i] += i < c->nlosses ? (double)rows : sums[2 * i + 1];
  }
  *total = loss;
}

void yk__tally_means(const yk_compiled *c, const yk_tally *t, double *out) {
  uint32_t n = 0;
  out[n++] = over(t->loss, t->rows);
  for (uint32_t i = c->nnames == 1 + c->nterms ? 0 : c->nlosses; i < c->nterms; i++) {
    double mean = over(t->sum[i], t->of[i]);
    out[n++] = i >= c->nlosses && c->term[i].measure != NULL && c->term[i].measure->root ? sqrt(mean) : mean;
  }
}
