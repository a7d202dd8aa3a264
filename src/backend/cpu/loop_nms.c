/*
 * loop_nms.c - of boxes that overlap, the ones with the best scores.
 *
 * The candidates are sorted once, stably, so equal scores keep their order; then each is compared with those taken before. Overlaps are
 * computed in double whatever the type, so a threshold is met or not regardless of it.
 */
#include "loop_nn.h"

#include <math.h>
#include <string.h>

typedef struct nms { yk_loop_body body; int64_t n, most; double iou, least; int f64; } nms;
typedef struct candidate { double score; int64_t at; } candidate;
typedef struct box { double lo[2], hi[2], area; } box;

static double number(const nms *s, const void *p, int64_t i) { return s->f64 ? ((const double *)p)[i] : (double)((const float *)p)[i]; }

static box box_at(const nms *s, const void *boxes, int64_t i) {
  box b;
  for (int k = 0; k < 2; k++) {
    const double u = number(s, boxes, 4 * i + k), v = number(s, boxes, 4 * i + k + 2);
    b.lo[k] = fmin(u, v);
    b.hi[k] = fmax(u, v);
  }
  b.area = (b.hi[0] - b.lo[0]) * (b.hi[1] - b.lo[1]);
  return b;
}

static int overlaps(const box *a, const box *b, double limit) {
  double common = 1;
  if (!(a->area > 0) || !(b->area > 0)) return 0;
  for (int k = 0; k < 2; k++) common *= fmax(fmin(a->hi[k], b->hi[k]) - fmax(a->lo[k], b->lo[k]), 0);
  return common / (a->area + b->area - common) > limit;
}

/* Best score first; runs of doubling length are merged from one array to the other. Returns the one with the result. */
static candidate *sorted(candidate *from, candidate *to, int64_t n) {
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t at = 0; at < n; at += 2 * width) {
      const int64_t middle = at + width < n ? at + width : n, end = at + 2 * width < n ? at + 2 * width : n;
      int64_t i = at, j = middle;
      for (int64_t k = at; k < end; k++) to[k] = j >= end || (i < middle && from[i].score >= from[j].score) ? from[i++] : from[j++];
    }
    candidate *t = from;
    from = to;
    to = t;
  }
  return from;
}

static yk_code nms_run(const yk_kernel *k, void *const *arg, void *workspace) {
  const nms *s = k->state;
  candidate *a = workspace, *b = a + s->n;
  box *taken = (box *)(void *)(b + s->n);
  int32_t *index = arg[2], *count = arg[3];
  int64_t n = 0, have = 0;
  for (int64_t i = 0; i < s->n; i++) {
    const double score = number(s, arg[1], i);
    if (score > s->least) a[n++] = (candidate){ score, i };
  }
  a = sorted(a, b, n);
  for (int64_t i = 0; i < n && have < s->most; i++) {
    const box next = box_at(s, arg[0], a[i].at);
    int fits = 1;
    for (int64_t j = 0; j < have && fits; j++) fits = !overlaps(&next, &taken[j], s->iou);
    if (!fits) continue;
    taken[have] = next;
    index[have++] = (int32_t)a[i].at;
  }
  *count = (int32_t)have;
  while (have < s->most) index[have++] = -1;
  return YK_OK;
}

yk_code yk__cpu_loop_nms(yk_cpu_prepare *p) {
  const yk_nms_attrs *a = p->k->attrs;
  nms *s;
  if (p->k->in[0].dim[0] > INT32_MAX) return YK_CPU_REFUSE("more boxes than an index counts");
  YK_TRY(yk__loop_body(p, sizeof *s, nms_run, "plain:non_max_suppression", &s));
  s->n = p->k->in[0].dim[0];
  s->most = p->k->out[0].dim[0];
  s->iou = a && a->iou_threshold != 0 ? a->iou_threshold : 0.5;
  s->least = a ? a->score_threshold : 0;
  s->f64 = yk__loop_is_f64(p->k);
  const int64_t most = s->most < s->n ? s->most : s->n;
  yk__loop_workspace(p, 2 * (uint64_t)s->n * sizeof(candidate) + (uint64_t)most * sizeof(box));
  return YK_OK;
}
