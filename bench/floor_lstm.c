/*
 * floor_lstm.c - see floor_lstm.h.
 *
 * The product of all steps' input comes ahead as one, the gradients of the weights behind as one; between them a small product and a pass over
 * the gates each step. Each thread has some of the rows and never waits for another inside a sequence.
 */
#include "floor_lstm.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "common.h"
#include "floor_plain.h"

enum { STEPS = 140, FEATURES = 256, UNITS = 64, GATES = 4 * UNITS, INPUTS = 2, ALIGN = 64, WEIGHTS = 3 };

/* Rows of one thread. Everything is [steps, rows, ...], states and cells with one step more in front. */
typedef struct part { int64_t rows; float *x, *gates, *dgates, *states, *cells, *shown, *dh, *dc, *grad[WEIGHTS]; } part;

struct floor_lstm {
  int nparts;
  part *part;
  float loss;
  float momentum, rate;
  floor_param param[WEIGHTS];
}; /* kernel, recurrent, bias */

static const size_t weight_size[WEIGHTS] = { FEATURES * GATES, UNITS * GATES, GATES };

static float *room(size_t n, int *failed) {
  size_t bytes = (n * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
  float *p = aligned_alloc(ALIGN, bytes);
  if (p == NULL) *failed = 1;
  else memset(p, 0, bytes);
  return p;
}

static void open_part(part *p, int64_t rows, int *failed) {
  const size_t n = (size_t)rows;
  *p = (part){ .rows = rows };
  p->x = room(STEPS * n * FEATURES, failed);
  p->gates = room(STEPS * n * GATES, failed);
  p->dgates = room(STEPS * n * GATES, failed);
  p->states = room((STEPS + 1) * n * UNITS, failed);
  p->cells = room((STEPS + 1) * n * UNITS, failed);
  p->shown = room(STEPS * n * UNITS, failed);
  p->dh = room(n * UNITS, failed);
  p->dc = room(n * UNITS, failed);
  for (int i = 0; i < WEIGHTS; i++) p->grad[i] = room(weight_size[i], failed);
  if (!*failed) bench_fill(p->x, STEPS * n * FEATURES);
}

floor_lstm *floor_lstm_new(int64_t batch, float rate, float momentum) {
  floor_lstm *l = calloc(1, sizeof *l);
  int failed = l == NULL;
  if (failed) return NULL;
  l->nparts = omp_get_max_threads();
  l->rate = rate;
  l->momentum = momentum;
  l->part = calloc((size_t)l->nparts, sizeof *l->part);
  failed = l->part == NULL;
  for (int i = 0; i < l->nparts && !failed; i++)
    open_part(&l->part[i], INPUTS * batch * (i + 1) / l->nparts - INPUTS * batch * i / l->nparts, &failed);
  for (int i = 0; i < WEIGHTS; i++) {
    floor_param *w = &l->param[i];
    *w = (floor_param){ room(weight_size[i], &failed), room(weight_size[i], &failed), room(weight_size[i], &failed), weight_size[i] };
    if (failed) continue;
    bench_fill(w->w, w->n);
    for (size_t k = 0; k < w->n; k++) w->w[k] *= i < 2 ? 0.2f : 0;
    /* Keras's unit_forget_bias. With 0, half of a gradient is left at each step: denormals before the first one, which are
     * slow on some processors: six times the floor on the one it was seen on. */
    for (size_t k = UNITS; i == 2 && k < 2 * UNITS; k++) w->w[k] = 1;
  }
  if (!failed) return l;
  floor_lstm_free(l);
  return NULL;
}

void floor_lstm_free(floor_lstm *l) {
  for (int i = 0; i < l->nparts && l->part != NULL; i++) {
    part *p = &l->part[i];
    float *const all[] = { p->x,  p->gates, p->dgates,  p->states,  p->cells,  p->shown,
                           p->dh, p->dc,    p->grad[0], p->grad[1], p->grad[2] };
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) free(all[k]);
  }
  for (int i = 0; i < WEIGHTS; i++) free(l->param[i].w), free(l->param[i].g), free(l->param[i].a);
  free(l->part);
  free(l);
}

/* c[m, n] = beta*c + a[m, k] b[k, n]; a or b turned where `turn` says 'T'. */
static void product(const char turn[2], int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, const float *b,
                    int64_t b_row, float beta, float *c) {
  dnnl_sgemm(turn[0], turn[1], m, n, k, 1, a, a_row, b, b_row, beta, c, n);
}

/* exp(x) to 2e-7, as 2^whole * 2^part, by the Taylor polynomial of 2^part: the compiler makes vectors of it. */
static inline float exponential(float x) {
  union { int32_t i; float f; } scale;
  float y = x * 1.44269504f;
  y = y < -126 ? -126 : y;
  y = y > 126 ? 126 : y;
  float whole = rintf(y), f = (y - whole) * 0.693147181f;
  scale.i = ((int32_t)whole + 127) << 23;
  return scale.f *
         (1 + f * (1 + f * (0.5f + f * (0.166666667f + f * (0.0416666667f + f * (0.00833333333f + f * 0.00138888889f))))));
}
static inline float sigmoid(float x) { return 1 / (1 + exponential(-x)); }
static inline float hyperbolic(float x) { return 2 / (1 + exponential(-2 * x)) - 1; }

static void cell(int64_t rows, const float *bias, float *gates, const float *before, float *cells, float *states, float *shown) {
  for (int64_t r = 0; r < rows; r++, gates += GATES, before += UNITS, cells += UNITS, states += UNITS, shown += UNITS) {
#pragma omp simd
    for (int j = 0; j < UNITS; j++) {
      float i = sigmoid(gates[j] + bias[j]), f = sigmoid(gates[UNITS + j] + bias[UNITS + j]);
      float g = hyperbolic(gates[2 * UNITS + j] + bias[2 * UNITS + j]), o = sigmoid(gates[3 * UNITS + j] + bias[3 * UNITS + j]);
      float c = f * before[j] + i * g, t = hyperbolic(c);
      gates[j] = i, gates[UNITS + j] = f, gates[2 * UNITS + j] = g, gates[3 * UNITS + j] = o;
      cells[j] = c, shown[j] = t, states[j] = o * t;
    }
  }
}

static void cell_gradient(int64_t rows, const float *gates, const float *before, const float *shown, const float *dh, float *dc,
                          float *d) {
  for (int64_t r = 0; r < rows; r++, gates += GATES, d += GATES, before += UNITS, shown += UNITS, dh += UNITS, dc += UNITS) {
#pragma omp simd
    for (int j = 0; j < UNITS; j++) {
      float i = gates[j], f = gates[UNITS + j], g = gates[2 * UNITS + j], o = gates[3 * UNITS + j], t = shown[j];
      float e = dc[j] + dh[j] * o * (1 - t * t);
      d[j] = e * g * i * (1 - i), d[UNITS + j] = e * before[j] * f * (1 - f);
      d[2 * UNITS + j] = e * i * (1 - g * g), d[3 * UNITS + j] = dh[j] * t * o * (1 - o);
      dc[j] = e * f;
    }
  }
}

static void forward(const floor_lstm *l, part *p) {
  const int64_t n = p->rows;
  product("NN", STEPS * n, GATES, FEATURES, p->x, FEATURES, l->param[0].w, GATES, 0, p->gates);
  for (int64_t t = 0; t < STEPS; t++) {
    product("NN", n, GATES, UNITS, p->states + t * n * UNITS, UNITS, l->param[1].w, GATES, 1, p->gates + t * n * GATES);
    cell(n, l->param[2].w, p->gates + t * n * GATES, p->cells + t * n * UNITS, p->cells + (t + 1) * n * UNITS,
         p->states + (t + 1) * n * UNITS, p->shown + t * n * UNITS);
  }
}

static void backward(const floor_lstm *l, part *p, float share) {
  const int64_t n = p->rows;
  memset(p->dc, 0, sizeof(float) * (size_t)(n * UNITS));
  for (int64_t i = 0; i < n * UNITS; i++) p->dh[i] = share * p->states[STEPS * n * UNITS + i];
  for (int64_t t = STEPS - 1; t >= 0; t--) {
    cell_gradient(n, p->gates + t * n * GATES, p->cells + t * n * UNITS, p->shown + t * n * UNITS, p->dh, p->dc,
                  p->dgates + t * n * GATES);
    if (t > 0) product("NT", n, UNITS, GATES, p->dgates + t * n * GATES, GATES, l->param[1].w, GATES, 0, p->dh);
  }
  product("TN", FEATURES, GATES, STEPS * n, p->x, FEATURES, p->dgates, GATES, 0, p->grad[0]);
  product("TN", UNITS, GATES, STEPS * n, p->states, UNITS, p->dgates, GATES, 0, p->grad[1]);
  memset(p->grad[2], 0, sizeof(float) * GATES);
  for (int64_t r = 0; r < STEPS * n; r++)
    for (int j = 0; j < GATES; j++) p->grad[2][j] += p->dgates[r * GATES + j];
}

void floor_lstm_run(floor_lstm *l) {
  double loss = 0, all = 0;
  for (int i = 0; i < l->nparts; i++) all += (double)l->part[i].rows * UNITS;
#pragma omp parallel num_threads(l->nparts)
  {
    part *p = &l->part[omp_get_thread_num()];
    forward(l, p);
    backward(l, p, (float)(1 / all));
  }
  for (int w = 0; w < WEIGHTS; w++) {
    memcpy(l->param[w].g, l->part[0].grad[w], sizeof(float) * weight_size[w]);
    for (int i = 1; i < l->nparts; i++)
      for (size_t k = 0; k < weight_size[w]; k++) l->param[w].g[k] += l->part[i].grad[w][k];
  }
  for (int w = 0; w < WEIGHTS; w++) floor_update(1, &l->param[w], l->rate, l->momentum, 0);
  for (int i = 0; i < l->nparts; i++) {
    const float *last = l->part[i].states + STEPS * l->part[i].rows * UNITS;
    for (int64_t k = 0; k < l->part[i].rows * UNITS; k++) loss += 0.5 * (double)last[k] * (double)last[k] / all;
  }
  l->loss = (float)loss;
}

float floor_lstm_loss(const floor_lstm *l) { return l->loss; }
