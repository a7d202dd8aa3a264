/*
 * loop_picture_tmpl.h - resizing and features in boxes for one type; included by loop_picture_isa.c.
 *
 * The includer defines T and F(f). Places and their weights are computed in double, as the references do, so that a point on the edge of
 * a picture falls on the same side of it.
 */
typedef struct F(picture) { const void *s; const T *from, *boxes; const int32_t *image; T *to; } F(picture);

/* ---- resizing ------------------------------------------------------------------------------------------------------ */

static void F(resize_rows)(int64_t begin, int64_t end, void *arg) {
  const F(picture) *p = arg;
  const yk_resize_state *s = p->s;
  const int64_t c = s->c, rows = s->h * s->scale[0], columns = s->w * s->scale[1];
  for (int64_t i = begin; i < end; i++) {
    const yk_between *r = &s->row[i % rows];
    const T *x = p->from + i / rows * s->h * s->w * c, *up = x + r->at[0] * s->w * c, *low = x + r->at[1] * s->w * c;
    const T down = (T)r->weight;
    T *y = p->to + i * columns * c;
    for (int64_t j = 0; j < columns; j++, y += c) {
      const yk_between *q = &s->column[j];
      const T across = (T)q->weight, a = ((T)1 - down) * ((T)1 - across), b = ((T)1 - down) * across, d = down * ((T)1 - across),
              e = down * across;
      const T *ul = up + q->at[0] * c, *ur = up + q->at[1] * c, *ll = low + q->at[0] * c, *lr = low + q->at[1] * c;
      if (down == 0 && across == 0) memcpy(y, ul, (size_t)c * sizeof(T));
      else SIMD for (int64_t k = 0; k < c; k++) y[k] = a * ul[k] + b * ur[k] + d * ll[k] + e * lr[k];
    }
  }
}

static yk_code F(resize)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_resize_state *s = k->state;
  F(picture) p = { .s = s, .from = arg[0], .to = arg[1] };
  (void)workspace;
  if (s->w > 0 && s->c > 0) yk__cpu_host->parallel_for(s->n * s->h * s->scale[0], 1 + L_GRAIN / (s->w * s->scale[1] * s->c), F(resize_rows), &p);
  return YK_OK;
}

/* dx of one row of the small picture from the rows of the large one that lie near it. */
static void F(resize_grad_rows)(int64_t begin, int64_t end, void *arg) {
  const F(picture) *p = arg;
  const yk_resize_state *s = p->s;
  const int64_t c = s->c, rows = s->h * s->scale[0], columns = s->w * s->scale[1];
  for (int64_t i = begin; i < end; i++) {
    const int64_t at = i % s->h, first = at > 0 ? (at - 1) * s->scale[0] : 0, last = at + 2 < s->h ? (at + 2) * s->scale[0] : rows;
    T *dx = p->to + i * s->w * c;
    memset(dx, 0, (size_t)(s->w * c) * sizeof(T));
    for (int64_t r = first; r < last; r++) {
      const yk_between *q = &s->row[r];
      const T down = (T)((q->at[0] == at ? 1 - q->weight : 0) + (q->at[1] == at && q->at[0] != at ? q->weight : 0));
      const T *dy = p->from + (i / s->h * rows + r) * columns * c;
      if (down == 0) continue;
      for (int64_t j = 0; j < columns; j++, dy += c) {
        const T across = (T)s->column[j].weight, near = down * ((T)1 - across), far = down * across;
        T *a = dx + s->column[j].at[0] * c, *b = dx + s->column[j].at[1] * c;
        SIMD for (int64_t k = 0; k < c; k++) a[k] += near * dy[k];
        if (far != 0) SIMD for (int64_t k = 0; k < c; k++) b[k] += far * dy[k];
      }
    }
  }
}

static yk_code F(resize_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_resize_state *s = k->state;
  F(picture) p = { .s = s, .from = arg[0], .to = arg[1] };
  (void)workspace;
  if (s->w > 0 && s->c > 0)
    yk__cpu_host->parallel_for(s->n * s->h, 1 + L_GRAIN / (s->w * s->scale[0] * s->scale[1] * s->c), F(resize_grad_rows), &p);
  return YK_OK;
}

/* ---- features in boxes --------------------------------------------------------------------------------------------- */

/* Sample number i of a side, of all samples of all bins; 0 if it is outside. */
static int F(sample)(const yk_roi_state *s, int side, double lo, double hi, int64_t i, yk_between *out) {
  const int64_t size = side ? s->w : s->h;
  double length = (hi - lo) * s->scale;
  if (!s->aligned && length < 1) length = 1;
  double place = lo * s->scale - s->offset +
                 length / (double)s->size[side] * ((double)(i / s->samples) + ((double)(i % s->samples) + 0.5) / (double)s->samples);
  if (!(place >= -1 && place <= (double)size)) return 0;
  place = place < 0 ? 0 : place > (double)(size - 1) ? (double)(size - 1) : place;
  out->at[0] = (int64_t)place;
  out->at[1] = out->at[0] + 1 < size ? out->at[0] + 1 : out->at[0];
  out->weight = place - (double)out->at[0];
  return 1;
}

/* The four cells around sample (i, j) of box r: where they begin, and their weights in the mean of a bin. 0 if it is outside. */
static int F(corners)(const F(picture) *p, int64_t r, int64_t i, int64_t j, int64_t at[4], T weight[4]) {
  const yk_roi_state *s = p->s;
  const T *box = p->boxes + 4 * r;
  yk_between row, column;
  if (!F(sample)(s, 0, (double)box[0], (double)box[2], i, &row)) return 0;
  if (!F(sample)(s, 1, (double)box[1], (double)box[3], j, &column)) return 0;
  for (int k = 0; k < 4; k++) {
    const double down = k & 2 ? row.weight : 1 - row.weight, across = k & 1 ? column.weight : 1 - column.weight;
    at[k] = (((int64_t)p->image[r] * s->h + row.at[k >> 1]) * s->w + column.at[k & 1]) * s->c;
    weight[k] = (T)(down * across / (double)(s->samples * s->samples));
  }
  return 1;
}

static void F(roi_bins)(int64_t begin, int64_t end, void *arg) {
  const F(picture) *p = arg;
  const yk_roi_state *s = p->s;
  for (int64_t bin = begin; bin < end; bin++) {
    const int64_t r = bin / (s->size[0] * s->size[1]), i = bin / s->size[1] % s->size[0], j = bin % s->size[1], c = s->c;
    T *y = p->to + bin * c;
    memset(y, 0, (size_t)c * sizeof(T));
    for (int64_t k = 0; k < s->samples * s->samples; k++) {
      int64_t at[4];
      T w[4];
      if (!F(corners)(p, r, i * s->samples + k / s->samples, j * s->samples + k % s->samples, at, w)) continue;
      const T *a = p->from + at[0], *b = p->from + at[1], *d = p->from + at[2], *e = p->from + at[3];
      SIMD for (int64_t q = 0; q < c; q++) y[q] += w[0] * a[q] + w[1] * b[q] + w[2] * d[q] + w[3] * e[q];
    }
  }
}

static yk_code F(check_images)(const yk_roi_state *s, const char *op, const int32_t *image) {
  for (int64_t r = 0; r < s->boxes; r++)
    if (image[r] < 0 || image[r] >= s->n)
      return YK_CPU_FAIL(EINVAL, "%s: box %lld is in image %d, outside [0, %lld)", op, (long long)r, (int)image[r], (long long)s->n);
  return YK_OK;
}

static yk_code F(roi)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_roi_state *s = k->state;
  F(picture) p = { .s = s, .from = arg[0], .boxes = arg[1], .image = arg[2], .to = arg[3] };
  (void)workspace;
  YK_TRY(F(check_images)(s, "roi_align", p.image));
  if (s->c)
    yk__cpu_host->parallel_for(s->boxes * s->size[0] * s->size[1], 1 + L_GRAIN / (4 * s->samples * s->samples * s->c), F(roi_bins), &p);
  return YK_OK;
}

/* All boxes add to a stripe of channels in order. */
static void F(roi_grad_stripes)(int64_t begin, int64_t end, void *arg) {
  const F(picture) *p = arg;
  const yk_roi_state *s = p->s;
  const int64_t first = begin * s->stripe, last = end * s->stripe < s->c ? end * s->stripe : s->c, rows = s->size[0] * s->samples;
  for (int64_t i = 0; i < s->n * s->h * s->w; i++) memset(p->to + i * s->c + first, 0, (size_t)(last - first) * sizeof(T));
  for (int64_t r = 0; r < s->boxes; r++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < s->size[1] * s->samples; j++) {
        const T *dy = p->from + ((r * s->size[0] + i / s->samples) * s->size[1] + j / s->samples) * s->c;
        int64_t at[4];
        T w[4];
        if (!F(corners)(p, r, i, j, at, w)) continue;
        for (int k = 0; k < 4; k++) {
          T *dx = p->to + at[k];
          if (w[k] != 0) SIMD for (int64_t q = first; q < last; q++) dx[q] += w[k] * dy[q];
        }
      }
}

static yk_code F(roi_grad)(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_roi_state *s = k->state;
  F(picture) p = { .s = s, .from = arg[0], .boxes = arg[1], .image = arg[2], .to = arg[4] };
  (void)workspace;
  YK_TRY(F(check_images)(s, "roi_align_grad", p.image));
  if (s->n > 0 && s->h > 0 && s->w > 0) yk__cpu_host->parallel_for((s->c + s->stripe - 1) / s->stripe, 1, F(roi_grad_stripes), &p);
  return YK_OK;
}
