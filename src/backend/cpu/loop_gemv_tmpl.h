/*
 * loop_gemv_tmpl.h - acc += a row of factors times a matrix: the inner loop of matmul and convolution in plain loops.
 *
 * The includer defines T and F(f). Four rows of the matrix are taken at a time, so that the accumulator is loaded and stored once
 * for four multiplications.
 */
static void F(gemv)(int64_t rows, const T *factor, int64_t factor_step, const T *matrix, int64_t row_step, int64_t n, T *acc) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, factor += 4 * factor_step, matrix += 4 * row_step) {
    const T f0 = factor[0], f1 = factor[factor_step], f2 = factor[2 * factor_step], f3 = factor[3 * factor_step];
    const T *m0 = matrix, *m1 = m0 + row_step, *m2 = m1 + row_step, *m3 = m2 + row_step;
    SIMD for (int64_t j = 0; j < n; j++) acc[j] += (f0 * m0[j] + f1 * m1[j]) + (f2 * m2[j] + f3 * m3[j]);
  }
  for (; r < rows; r++, factor += factor_step, matrix += row_step) {
    const T f = *factor;
    SIMD for (int64_t j = 0; j < n; j++) acc[j] += f * matrix[j];
  }
}
