/*
 * floor_plain.c - the floor's plain loops, over the team that oneDNN uses too.
 *
 * Response normalisation handles one cell of a picture at a time: its 64 channels are gathered from their blocks into
 * a line with a margin of zeros, so that the window needs no case at the ends.
 */
#include "floor_plain.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { C = FLOOR_LRN_CHANNELS, RADIUS = FLOOR_LRN_WINDOW / 2, LINE = C + 2 * RADIUS };

/* The first channel of block b of cell i (counted over all pictures). */
static int64_t place(const floor_pictures *s, int64_t i, int64_t b) {
  int64_t n = i / s->cells, p = i % s->cells;
  return ((n * (C / s->block) + b) * s->cells + p) * s->block;
}

static void gather(const floor_pictures *s, int64_t i, const float *from, float *line) {
  for (int64_t b = 0; b < C / s->block; b++) memcpy(line + b * s->block, from + place(s, i, b), sizeof(float) * (size_t)s->block);
}

static void scatter(const floor_pictures *s, int64_t i, const float *line, float *to) {
  for (int64_t b = 0; b < C / s->block; b++) memcpy(to + place(s, i, b), line + b * s->block, sizeof(float) * (size_t)s->block);
}

/* out[c] = sum of line[c .. c + window) */
static void window_sum(const float *line, float *out) {
  for (int c = 0; c < C; c++) out[c] = line[c];
  for (int d = 1; d < FLOOR_LRN_WINDOW; d++)
    for (int c = 0; c < C; c++) out[c] += line[c + d];
}

/* scale[c] = k + alpha/window * windowed sum of squares; power[c] = scale^-0.75 */
static void scales(const floor_lrn *a, const float *v, float *scale, float *power) {
  float square[LINE] = { 0 }, share = a->alpha / (float)a->window;
  for (int c = 0; c < C; c++) square[c + RADIUS] = v[c] * v[c];
  window_sum(square, scale);
  for (int c = 0; c < C; c++) {
    float s = a->k + share * scale[c], root = sqrtf(s);
    scale[c] = s;
    power[c] = 1.0f / (root * sqrtf(root));
  }
}

void floor_lrn_forward(const floor_pictures *s, const floor_lrn *a, const float *x, float *y) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < s->n * s->cells; i++) {
    float v[C], scale[C], power[C];
    gather(s, i, x, v);
    scales(a, v, scale, power);
    for (int c = 0; c < C; c++) v[c] *= power[c];
    scatter(s, i, v, y);
  }
}

void floor_lrn_backward(const floor_pictures *s, const floor_lrn *a, const float *x, const float *dy, float *dx) {
  float factor = -2.0f * a->alpha / (float)a->window * a->beta;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < s->n * s->cells; i++) {
    float v[C], d[C], scale[C], power[C], sum[C], ratio[LINE] = { 0 };
    gather(s, i, x, v);
    gather(s, i, dy, d);
    scales(a, v, scale, power);
    for (int c = 0; c < C; c++) {
      d[c] *= power[c];
      ratio[c + RADIUS] = d[c] * v[c] / scale[c];
    }
    window_sum(ratio, sum);
    for (int c = 0; c < C; c++) d[c] += factor * v[c] * sum[c];
    scatter(s, i, d, dx);
  }
}

float floor_loss(int64_t rows, int64_t classes, const float *logits, float *d) {
  float loss = 0, share = 1.0f / (float)rows;
  for (int64_t i = 0; i < rows; i++) {
    const float *x = logits + i * classes;
    float *g = d + i * classes, most = x[0], sum = 0;
    int64_t label = i % classes;
    for (int64_t c = 1; c < classes; c++) most = x[c] > most ? x[c] : most;
    for (int64_t c = 0; c < classes; c++) sum += g[c] = expf(x[c] - most);
    for (int64_t c = 0; c < classes; c++) g[c] *= share / sum;
    g[label] -= share;
    loss += (logf(sum) + most - x[label]) * share;
  }
  return loss;
}

static void update_piece(const floor_param *p, size_t from, size_t to, float rate, float momentum, float decay) {
  float *restrict w = p->w, *restrict a = p->a;
  const float *restrict g = p->g;
  if (momentum == 0) {
    for (size_t i = from; i < to; i++) w[i] -= rate * (g[i] + decay * w[i]);
    return;
  }
  for (size_t i = from; i < to; i++) {
    a[i] = momentum * a[i] + g[i] + decay * w[i];
    w[i] -= rate * a[i];
  }
}

void floor_update(size_t n, const floor_param *p, float rate, float momentum, float decay) {
#pragma omp parallel
  {
    size_t me = (size_t)omp_get_thread_num(), all = (size_t)omp_get_num_threads();
    for (size_t i = 0; i < n; i++) update_piece(&p[i], p[i].n * me / all, p[i].n * (me + 1) / all, rate, momentum, decay);
  }
}
