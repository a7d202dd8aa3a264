/*
 * dnnl_block_tmpl.h - the loops over blocked pictures for one dtype and one block size; included by dnnl_block_isa.c.
 *
 * The includer defines B, T, V (a vector of B floats), I (of B int32), F(f), LOAD(p) and STORE(p, v). A vector is one block
 * of channels of one pixel, which the compiler splits into as many registers as the instruction set needs.
 */

/* Fold a float vector into B doubles. */
static void F(drain)(const V *v, double *out) {
  for (int j = 0; j < B; j++) out[j] += (double)(*v)[j];
}

enum { F(RUN) = 1024 };                  /* pixels summed in float before they go into the double sums */

static void F(stat_sum)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  for (int64_t i = begin; i < end; i++) {
    const int64_t chunk = i / s->blocks, block = i % s->blocks;
    const V zero = LOAD((const T *)c->x + block * s->pixels * B);
    double *total = c->partial + 2 * chunk * s->padded + block * B, *squares = total + s->padded;
    for (int j = 0; j < B; j++) total[j] = squares[j] = 0;
    for (int64_t n = chunk * s->pictures / s->chunks; n < (chunk + 1) * s->pictures / s->chunks; n++) {
      const T *x = (const T *)c->x + (n * s->blocks + block) * s->pixels * B;
      for (int64_t at = 0; at < s->pixels; at += F(RUN)) {
        const int64_t last = s->pixels < at + F(RUN) ? s->pixels : at + F(RUN);
        V s0 = { 0 }, s1 = { 0 }, q0 = { 0 }, q1 = { 0 };
        int64_t p = at;
        for (; p + 1 < last; p += 2) {
          const V d0 = LOAD(x + p * B) - zero, d1 = LOAD(x + p * B + B) - zero;
          s0 += d0;
          s1 += d1;
          q0 += d0 * d0;
          q1 += d1 * d1;
        }
        if (p < last) {
          const V d = LOAD(x + p * B) - zero;
          s0 += d;
          q0 += d * d;
        }
        s0 += s1;
        q0 += q1;
        F(drain)(&s0, total);
        F(drain)(&q0, squares);
      }
    }
  }
}

static void F(norm)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = i % s->blocks * B;
    const V mean = *(const V *)(c->mean + at), scale = *(const V *)(c->scale + at), shift = *(const V *)(c->shift + at);
    const T *x = (const T *)c->x + i * s->pixels * B;
    T *y = (T *)c->out + i * s->pixels * B;
    if (s->relu) {
      for (int64_t p = 0; p < s->pixels; p++) {
        const V v = (LOAD(x + p * B) - mean) * scale + shift;
        STORE(y + p * B, (V)((I)v & ~(v < 0)));
      }
    } else {
      for (int64_t p = 0; p < s->pixels; p++) STORE(y + p * B, (LOAD(x + p * B) - mean) * scale + shift);
    }
  }
}

/* dy where the forward output is positive. */
#define MASKED(y, dy) ((V)((I)(dy) & ((y) > 0)))

static void F(grad_sum)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  for (int64_t i = begin; i < end; i++) {
    const int64_t chunk = i / s->blocks, block = i % s->blocks;
    const V mean = *(const V *)(c->mean + block * B);
    double *total = c->partial + 2 * chunk * s->padded + block * B, *products = total + s->padded;
    for (int j = 0; j < B; j++) total[j] = products[j] = 0;
    for (int64_t n = chunk * s->pictures / s->chunks; n < (chunk + 1) * s->pictures / s->chunks; n++) {
      const int64_t plane = (n * s->blocks + block) * s->pixels * B;
      const T *x = (const T *)c->x + plane, *dy = (const T *)c->dy + plane, *y = c->y ? (const T *)c->y + plane : NULL;
      for (int64_t at = 0; at < s->pixels; at += F(RUN)) {
        const int64_t last = s->pixels < at + F(RUN) ? s->pixels : at + F(RUN);
        V sum = { 0 }, product = { 0 };
        if (y) {
          for (int64_t p = at; p < last; p++) {
            const V f = LOAD(y + p * B), g = MASKED(f, LOAD(dy + p * B));
            sum += g;
            product += g * (LOAD(x + p * B) - mean);
          }
        } else {
          for (int64_t p = at; p < last; p++) {
            const V g = LOAD(dy + p * B);
            sum += g;
            product += g * (LOAD(x + p * B) - mean);
          }
        }
        F(drain)(&sum, total);
        F(drain)(&product, products);
      }
    }
  }
}

static void F(norm_grad)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = i % s->blocks * B, plane = i * s->pixels * B;
    const V mean = *(const V *)(c->mean + at), scale = *(const V *)(c->scale + at), shift = *(const V *)(c->shift + at),
            slope = *(const V *)(c->slope + at);
    const T *x = (const T *)c->x + plane, *dy = (const T *)c->dy + plane, *y = c->y ? (const T *)c->y + plane : NULL;
    T *dx = (T *)c->out + plane;
    if (y) {
      for (int64_t p = 0; p < s->pixels; p++) {
        const V f = LOAD(y + p * B), g = MASKED(f, LOAD(dy + p * B));
        STORE(dx + p * B, scale * g - shift - slope * (LOAD(x + p * B) - mean));
      }
    } else {
      for (int64_t p = 0; p < s->pixels; p++)
        STORE(dx + p * B, scale * LOAD(dy + p * B) - shift - slope * (LOAD(x + p * B) - mean));
    }
  }
}

/* ---- local response normalisation: the channels of one pixel side by side, zeros before and after ------------------- */

/* power = size^-beta, for the exponents that roots can make. */
static void F(power)(const yk_block_state *s, const V *size, V *power) {
  V r;
  if (s->beta == 1.0) {
    *power = 1 / *size;
    return;
  }
  for (int j = 0; j < B; j++) r[j] = sqrtf((*size)[j]);
  if (s->beta == 0.75) {
    V q;
    for (int j = 0; j < B; j++) q[j] = sqrtf(r[j]);
    r = r * q;
  }
  *power = 1 / r;
}

/* Sum of the window around the block at v, which has `radius` more values on both sides. */
static void F(window)(const float *v, int32_t radius, V *out) {
  V sum = { 0 };
  for (int32_t d = -radius; d <= radius; d++) sum += *(const F(U) *)(v + d);
  *out = sum;
}

static void F(lrn)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  const float bias = (float)s->bias, alpha = (float)s->alpha;
  float buffer[BLOCK_MAX_CHANNELS + 2 * BLOCK_MAX_RADIUS] = { 0 }, *square = buffer + BLOCK_MAX_RADIUS;
  const int64_t step = s->pixels * B;
  for (int64_t i = begin; i < end; i++) {
    const int64_t picture = i / s->tiles, tile = i % s->tiles;
    for (int64_t p = tile * s->pixels / s->tiles; p < (tile + 1) * s->pixels / s->tiles; p++) {
      const int64_t at = (picture * s->blocks * s->pixels + p) * B;
      const T *x = (const T *)c->x + at;
      T *y = (T *)c->out + at;
      for (int64_t b = 0; b < s->blocks; b++) {
        const V v = LOAD(x + b * step);
        *(F(U) *)(square + b * B) = v * v;
      }
      for (int64_t b = 0; b < s->blocks; b++) {
        V size, power;
        F(window)(square + b * B, s->radius, &size);
        size = bias + alpha * size;
        F(power)(s, &size, &power);
        STORE(y + b * step, LOAD(x + b * step) * power);
      }
    }
  }
}

/* dx = g N^-beta - 2 alpha beta x * windowed sum of g x N^(-beta-1) */
static void F(lrn_grad)(int64_t begin, int64_t end, void *arg) {
  const yk_block_call *c = arg;
  const yk_block_state *s = c->s;
  const float bias = (float)s->bias, alpha = (float)s->alpha, factor = (float)(2 * s->alpha * s->beta);
  float first[BLOCK_MAX_CHANNELS + 2 * BLOCK_MAX_RADIUS] = { 0 }, *square = first + BLOCK_MAX_RADIUS;
  float second[BLOCK_MAX_CHANNELS + 2 * BLOCK_MAX_RADIUS] = { 0 }, *ratio = second + BLOCK_MAX_RADIUS;
  float powers[BLOCK_MAX_CHANNELS];
  const int64_t step = s->pixels * B;
  for (int64_t i = begin; i < end; i++) {
    const int64_t picture = i / s->tiles, tile = i % s->tiles;
    for (int64_t p = tile * s->pixels / s->tiles; p < (tile + 1) * s->pixels / s->tiles; p++) {
      const int64_t at = (picture * s->blocks * s->pixels + p) * B;
      const T *x = (const T *)c->x + at, *dy = (const T *)c->dy + at;
      T *dx = (T *)c->out + at;
      for (int64_t b = 0; b < s->blocks; b++) {
        const V v = LOAD(x + b * step);
        *(F(U) *)(square + b * B) = v * v;
      }
      for (int64_t b = 0; b < s->blocks; b++) {
        V size, power;
        F(window)(square + b * B, s->radius, &size);
        size = bias + alpha * size;
        F(power)(s, &size, &power);
        power = LOAD(dy + b * step) * power;
        *(F(U) *)(powers + b * B) = power;
        *(F(U) *)(ratio + b * B) = power * LOAD(x + b * step) / size;
      }
      for (int64_t b = 0; b < s->blocks; b++) {
        V sum;
        F(window)(ratio + b * B, s->radius, &sum);
        STORE(dx + b * step, *(const F(U) *)(powers + b * B) - factor * LOAD(x + b * step) * sum);
      }
    }
  }
}

#undef MASKED
