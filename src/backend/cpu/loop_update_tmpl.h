/*
 * loop_update_tmpl.h - the formulae of optimizers and moving averages, as loops over one piece of one variable.
 *
 * Included by loop_update_isa.c with T, NAME(f), ROOT(x), POWER(x, y) for f32 and for f64. The formulae are those of
 * op_attrs.h; each macro names the tensors and the numbers that it takes, in order. f(0) = 0 where a private layout has
 * padding, so that padding stays zero.
 */

/* One loop: LOOP(name, setup, body), where setup declares tensors W(0, w), R(1, g) and numbers P(0, lr). */
#define W(i, x) T *restrict x = t[i]
#define R(i, x) const T *restrict x = t[i]
#define P(i, x) const T x = (T)p[i]
#define LOOP(name, setup, body)                                                                        \
  static void NAME(name)(int64_t n, void *const *t, const double *p) {                                 \
    setup                                                                                              \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) { body }                                       \
  }

LOOP(sgd, W(0, w); R(1, g); P(0, lr);, w[i] -= lr * g[i];)
LOOP(momentum, W(0, w); W(1, a); R(2, g); P(0, lr); P(1, m);,
  a[i] = m * a[i] + g[i];
  w[i] -= lr * a[i];)
LOOP(nesterov, W(0, w); W(1, a); R(2, g); P(0, lr); P(1, m);,
  a[i] = m * a[i] + g[i];
  w[i] -= lr * g[i] + lr * m * a[i];)
LOOP(keras_momentum, W(0, w); W(1, a); R(2, g); P(0, lr); P(1, m);,
  a[i] = m * a[i] - lr * g[i];
  w[i] += a[i];)
LOOP(keras_nesterov, W(0, w); W(1, a); R(2, g); P(0, lr); P(1, m);,
  a[i] = m * a[i] - lr * g[i];
  w[i] += m * a[i] - lr * g[i];)
LOOP(ema, W(0, s); R(1, v); P(0, k);, s[i] -= k * (s[i] - v[i]);)

/* alpha = lr sqrt(1-p2)/(1-p1), c1 = 1-beta1, c2 = 1-beta2, lr times decay. */
#define ADAM W(0, w); W(1, m); W(2, v); R(3, g); P(0, alpha); P(1, c1); P(2, c2); P(3, epsilon); P(4, decay);
#define MOMENTS                                                                                        \
  m[i] += c1 * (g[i] - m[i]);                                                                          \
  v[i] += c2 * (g[i] * g[i] - v[i]);
LOOP(adam, ADAM, MOMENTS w[i] -= decay * w[i] + alpha * m[i] / (ROOT(v[i]) + epsilon);)
LOOP(adam_nesterov, ADAM,
  MOMENTS w[i] -= decay * w[i] + alpha * (((T)1 - c1) * m[i] + c1 * g[i]) / (ROOT(v[i]) + epsilon);)

/* c = 1-rho, momentum, lr, epsilon. */
#define RMSPROP P(0, c); P(1, momentum); P(2, lr); P(3, epsilon);
LOOP(rmsprop, W(0, w); W(1, ms); W(2, mom); R(3, g); RMSPROP,
  ms[i] += c * (g[i] * g[i] - ms[i]);
  mom[i] = momentum * mom[i] + lr * g[i] / ROOT(ms[i] + epsilon);
  w[i] -= mom[i];)
LOOP(keras_rmsprop, W(0, w); W(1, ms); W(2, mom); R(3, g); RMSPROP,
  ms[i] += c * (g[i] * g[i] - ms[i]);
  mom[i] = momentum * mom[i] + lr * g[i] / (ROOT(ms[i]) + epsilon);
  w[i] -= mom[i];)
LOOP(centered, W(0, w); W(1, ms); W(2, mg); W(3, mom); R(4, g); RMSPROP,
  ms[i] += c * (g[i] * g[i] - ms[i]);
  mg[i] += c * (g[i] - mg[i]);
  mom[i] = momentum * mom[i] + lr * g[i] / ROOT(ms[i] - mg[i] * mg[i] + epsilon);
  w[i] -= mom[i];)

/* lr, epsilon (0 in the first one). */
LOOP(adagrad, W(0, w); W(1, acc); R(2, g); P(0, lr);,
  acc[i] += g[i] * g[i];
  w[i] -= g[i] == 0 ? 0 : lr * g[i] / ROOT(acc[i]);)
LOOP(keras_adagrad, W(0, w); W(1, acc); R(2, g); P(0, lr); P(1, epsilon);,
  acc[i] += g[i] * g[i];
  w[i] -= g[i] == 0 ? 0 : lr * g[i] / (ROOT(acc[i]) + epsilon);)

/* lr, rho, epsilon. */
LOOP(adadelta, W(0, w); W(1, a); W(2, d); R(3, g); P(0, lr); P(1, rho); P(2, epsilon); const T rest = (T)1 - rho; T step;,
  a[i] = rho * a[i] + rest * (g[i] * g[i]);
  step = g[i] * ROOT(d[i] + epsilon) / ROOT(a[i] + epsilon);
  w[i] -= lr * step;
  d[i] = rho * d[i] + rest * (step * step);)

/* lr, l1, 2*l2, 2*shrinkage, -lr_power. x and y are the old and the new power of the sum. */
#define FTRL(name, power)                                                                              \
  LOOP(name, W(0, w); W(1, acc); W(2, z); R(3, g); P(0, lr); P(1, l1); P(2, l2); P(3, shrinkage); P(4, q); T x; T y; (void)q;, \
    x = power(acc[i]);                                                                                 \
    acc[i] += g[i] * g[i];                                                                             \
    y = power(acc[i]);                                                                                 \
    z[i] += g[i] + shrinkage * w[i] - (y - x) / lr * w[i];                                             \
    w[i] = (z[i] < 0 ? -z[i] : z[i]) > l1 ? ((z[i] > 0 ? l1 : -l1) - z[i]) / (y / lr + l2) : 0;)
#define ANY_POWER(x) POWER(x, q)
FTRL(ftrl, ROOT)
FTRL(ftrl_power, ANY_POWER)

/* c1, c2, epsilon, decay, 1/(1-p1), 1/(1-p2), lr times the quotient of the norms. Sums are of one block in T, then in double;
 * a block is short enough for f32. */
#define LAMB P(2, epsilon); P(3, decay); P(4, k1); P(5, k2);
#define DIRECTION (m[i] * k1 / (ROOT(v[i] * k2) + epsilon) + decay * w[i])
LOOP(lamb, W(0, w); R(1, m); R(2, v); LAMB P(6, rate);, w[i] -= rate * DIRECTION;)

static void NAME(lamb_norms)(int64_t count, void *const *t, const double *p, double *sums) {
  R(0, w); W(1, m); W(2, v); R(3, g); P(0, c1); P(1, c2); LAMB
  for (int64_t from = 0; from < count; from += L_BLOCK) {
    int64_t to = count - from < L_BLOCK ? count : from + L_BLOCK;
    T w2 = 0, r2 = 0;
    _Pragma("omp simd reduction(+ : w2, r2)") for (int64_t i = from; i < to; i++) {
      T r;
      MOMENTS
      r = DIRECTION;
      w2 += w[i] * w[i];
      r2 += r * r;
    }
    sums[0] += (double)w2;
    sums[1] += (double)r2;
  }
}

#undef W
#undef R
#undef P
#undef LOOP
#undef ADAM
#undef MOMENTS
#undef RMSPROP
#undef FTRL
#undef ANY_POWER
#undef LAMB
#undef DIRECTION
