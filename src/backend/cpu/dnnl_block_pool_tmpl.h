/*
 * dnnl_block_pool_tmpl.h - max pooling in vectors of one block of channels; included by dnnl_block_isa.c.
 *
 * The includer defines what dnnl_block_tmpl.h needs, and BYTES, UBYTES for one block of indexes, which are converted by way
 * of HALFS, since compilers do not take two steps at once. The gradient gathers: an input
 * pixel adds up the few windows that it lies in and that chose it, so it is written once and sums are made in float.
 */

/* Cells [*first, *last) of the window at output position `at` that lie in the picture. */
static void F(clip)(const yk_block_pool *s, int d, int64_t at, int64_t size, int64_t *first, int64_t *last) {
  const int64_t start = at * s->stride[d] - s->pad[d];
  *first = start < 0 ? -start : 0;
  *last = size - start < s->window[d] ? size - start : s->window[d];
}

/* One window: cells [r0, r1) x [c0, c1) at x, a row of the picture being `step` elements. */
static void F(max_window)(const T *x, int64_t step, int64_t pixel, const int64_t r[2], const int64_t c[2], int64_t across, T *y,
                          uint8_t *out) {
  V best = LOAD(x + r[0] * step + c[0] * pixel);
  I index = (I){ 0 } + (int32_t)(r[0] * across + c[0]);
  for (int64_t i = r[0]; i < r[1]; i++)
    for (int64_t j = c[0]; j < c[1]; j++) {
      const V v = LOAD(x + i * step + j * pixel);
      const I more = v > best;
      best = (V)(((I)v & more) | ((I)best & ~more));
      index = ((int32_t)(i * across + j) & more) | (index & ~more);
    }
  STORE(y, best);
  *(UBYTES *)out = __builtin_convertvector(__builtin_convertvector(index, HALFS), BYTES);
}

static void F(max_pool)(int64_t begin, int64_t end, void *arg) {
  const yk_block_pool_call *c = arg;
  const yk_block_pool *s = c->s;
  const int64_t step = s->width * s->pixel;
  for (int64_t i = begin; i < end; i++) {
    const T *x = (const T *)c->in + i / s->blocks * s->x_picture + i % s->blocks * s->x_block;
    int64_t at = i / s->blocks * s->y_picture + i % s->blocks * s->y_block, r[2], q[2];
    for (int64_t row = 0; row < s->rows; row++) {
      F(clip)(s, 0, row, s->height, &r[0], &r[1]);
      for (int64_t column = 0; column < s->columns; column++, at += s->pixel) {
        F(clip)(s, 1, column, s->width, &q[0], &q[1]);
        const T *corner = x + (row * s->stride[0] - s->pad[0]) * step + (column * s->stride[1] - s->pad[1]) * s->pixel;
        F(max_window)(corner, step, s->pixel, r, q, s->window[1], (T *)c->out + at, c->index + at);
      }
    }
  }
}

static void F(max_pool_grad)(int64_t begin, int64_t end, void *arg) {
  const yk_block_pool_call *c = arg;
  const yk_block_pool *s = c->s;
  for (int64_t i = begin; i < end; i++) {
    const int64_t y_at = i / s->blocks * s->y_picture + i % s->blocks * s->y_block;
    const T *dy = (const T *)c->in + y_at;
    const uint8_t *index = c->index + y_at;
    T *dx = (T *)c->out + i / s->blocks * s->x_picture + i % s->blocks * s->x_block;
    for (int64_t row = 0; row < s->height; row++) {
      const int32_t *r = s->over[0] + 2 * row;
      for (int64_t column = 0; column < s->width; column++, dx += s->pixel) {
        const int32_t *q = s->over[1] + 2 * column;
        V sum = { 0 };
        for (int64_t a = r[0]; a < r[1]; a++) {
          int64_t o = (a * s->columns + q[0]) * s->pixel;
          int64_t down = row + s->pad[0] - a * s->stride[0], right = column + s->pad[1] - q[0] * s->stride[1];
          int32_t cell = (int32_t)(down * s->window[1] + right);
          for (int64_t b = q[0]; b < q[1]; b++, o += s->pixel, cell -= (int32_t)s->stride[1]) {
            const I chosen = __builtin_convertvector(__builtin_convertvector(*(const UBYTES *)(index + o), HALFS), I) == cell;
            sum += (V)((I)LOAD(dy + o) & chosen);
          }
        }
        STORE(dx, sum);
      }
    }
  }
}
