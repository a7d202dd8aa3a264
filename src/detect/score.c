/*
 * score.c - recall and average precision of what was found in many pictures.
 *
 * What is kept of a found box is its class, its score and whether it was right; what is kept of a true one is that it was
 * there. Average precision is an area under precision over recall, of which only the best precision at a recall or beyond
 * counts (Everingham and others, 2010; Lin and others, 2014: 101 recalls).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/error.h"
#include "detect/boxes.h"
#include "tensor/desc.h"

enum { MOST_CLASSES = 1 << 20, RECALLS = 101 };

typedef struct found { double score; uint64_t number; int32_t kind; bool right; } found;

struct yk_detection_score {
  int32_t classes;
  double iou;
  uint64_t *there, *right;         /* [classes] things, and those that were found */
  found *found; uint32_t n, cap;
  bool sorted;
};

yk_code yk_detection_score_new(int32_t classes, double iou, yk_detection_score **out) {
  if (out == NULL || classes < 1 || classes > MOST_CLASSES || !(iou >= 0 && iou <= 1))
    return YK_FAIL(EINVAL, "a score of %ld classes at an overlap of %g; expected 1 to %d classes, 0 to 1", (long)classes, iou, MOST_CLASSES);
  yk_detection_score *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  s->classes = classes;
  s->iou = iou > 0 ? iou : 0.5;
  s->there = yk__calloc(2 * (size_t)classes, sizeof *s->there);
  if (s->there == NULL) return yk__free(s), YK_ENOMEM;
  s->right = s->there + classes;
  *out = s;
  return YK_OK;
}

void yk_detection_score_free(yk_detection_score *s) {
  if (s == NULL) return;
  yk__free(s->there);
  yk__free(s->found);
  yk__free(s);
}

/* ---- adding pictures ------------------------------------------------------------------------------------------------------ */

/* What a picture shows: rows `from` to `to` of truth; taken[t]: found already. */
typedef struct picture { const yk_tensor *truth, *kinds; int64_t from, to; bool *taken; } picture;

static bool finds(const picture *p, const float *box, int32_t kind, double least) {
  int64_t best = -1;
  for (int64_t t = p->from; t < p->to; t++) {
    if (p->taken[t] || yk__class_at(p->kinds, t) != kind) continue;
    double o = yk__box_overlap(box, yk__box_at(p->truth, t));
    if (o >= least && (best < 0 || o > least)) least = o, best = t;
  }
  if (best >= 0) p->taken[best] = true;
  return best >= 0;
}

static int by_score(const found *x, const found *y) {
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}
static int better(const void *x, const void *y) { return by_score(x, y); }

static yk_code check(const yk_detection_score *s, const yk_tensor *boxes, const yk_tensor *scores, const yk_tensor *kinds,
                     const yk_tensor *truth, const yk_tensor *truth_kinds) {
  if (s == NULL || boxes == NULL || scores == NULL || truth == NULL) return YK_FAIL(EINVAL, "yk_detection_score_add: NULL argument");
  const yk_desc *b = yk_tensor_desc(boxes), *t = yk_tensor_desc(truth);
  YK_TRY(yk__tensor_want("boxes", boxes, YK_F32, YK_SHAPE(-1, -1, 4)));
  YK_TRY(yk__tensor_want("scores", scores, YK_F32, YK_SHAPE(b->dim[0], b->dim[1])));
  if (kinds != NULL) YK_TRY(yk__tensor_want("classes", kinds, YK_I32, YK_SHAPE(b->dim[0], b->dim[1])));
  YK_TRY(yk__tensor_want("truth", truth, YK_F32, YK_SHAPE(b->dim[0], -1, 4)));
  if (truth_kinds != NULL) YK_TRY(yk__tensor_want("classes of the truth", truth_kinds, YK_I32, YK_SHAPE(b->dim[0], t->dim[1])));
  YK_TRY(yk__boxes_check("boxes", boxes));
  YK_TRY(yk__boxes_check("truth", truth));
  YK_TRY(yk__classes_check("classes", kinds, s->classes));
  YK_TRY(yk__classes_check("classes of the truth", truth_kinds, s->classes));
  for (int64_t i = 0; i < yk_tensor_count(scores); i++)
    if (isnan(((const float *)yk_tensor_data(scores))[i]))
      return YK_FAIL(EINVAL, "scores [%" PRId64 ", %" PRId64 "] is NaN", i / b->dim[1], i % b->dim[1]);
  if (b->dim[0] * b->dim[1] > (int64_t)(UINT32_MAX - s->n))
    return YK_FAIL(EINVAL, "%" PRId64 " boxes beside %lu others: too many", b->dim[0] * b->dim[1], (unsigned long)s->n);
  return YK_OK;
}

/* Rows `from` to `to` of what was found in a picture, from the best score down; what it shows. There is room. */
static void add_picture(yk_detection_score *s, const yk_tensor *boxes, const yk_tensor *scores, const yk_tensor *kinds, int64_t from,
                        int64_t to, const picture *p) {
  found *mine = s->found + s->n;
  uint32_t n = 0;
  for (int64_t i = from; i < to; i++)
    if (yk__box_area(yk__box_at(boxes, i)) > 0) mine[n++] = (found){ .score = ((const float *)yk_tensor_data(scores))[i], .number = (uint64_t)i };
  if (n > 0) qsort(mine, n, sizeof *mine, better);
  for (uint32_t i = 0; i < n; i++) {
    int64_t row = (int64_t)mine[i].number;
    mine[i].kind = yk__class_at(kinds, row);
    mine[i].number = s->n + i;
    mine[i].right = finds(p, yk__box_at(boxes, row), mine[i].kind, s->iou);
    s->right[mine[i].kind] += mine[i].right;
  }
  for (int64_t t = p->from; t < p->to; t++)
    if (yk__box_area(yk__box_at(p->truth, t)) > 0) s->there[yk__class_at(p->kinds, t)]++;
  s->n += n;
  s->sorted = false;
}

yk_code yk_detection_score_add(yk_detection_score *s, const yk_tensor *boxes, const yk_tensor *scores, const yk_tensor *classes,
                               const yk_tensor *truth, const yk_tensor *truth_classes) {
  YK_TRY(check(s, boxes, scores, classes, truth, truth_classes));
  const int64_t n = yk_tensor_desc(boxes)->dim[0], k = yk_tensor_desc(boxes)->dim[1], m = yk_tensor_desc(truth)->dim[1];
  bool *taken = yk__calloc((size_t)(n * m) + 1, sizeof *taken);
  if (taken == NULL) return YK_ENOMEM;
  if (!yk__grow((void **)&s->found, &s->cap, s->n + (uint32_t)(n * k), sizeof *s->found)) return yk__free(taken), YK_ENOMEM;
  for (int64_t i = 0; i < n; i++) {
    picture p = { .truth = truth, .kinds = truth_classes, .from = i * m, .to = (i + 1) * m, .taken = taken };
    add_picture(s, boxes, scores, classes, i * k, (i + 1) * k, &p);
  }
  yk__free(taken);
  return YK_OK;
}

/* ---- what comes of it ------------------------------------------------------------------------------------------------------ */

static int by_kind(const void *x, const void *y) {
  const found *a = x, *b = y;
  return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : by_score(a, b);
}

static double recall_of(const yk_detection_score *s, int32_t kind) { return (double)s->right[kind] / (double)s->there[kind]; }

/* From the worst score up: the best precision so far holds for every recall that is first reached here. */
static double precision_of(const yk_detection_score *s, int32_t kind) {
  size_t from = 0, to;
  while (from < s->n && s->found[from].kind < kind) from++;
  for (to = from; to < s->n && s->found[to].kind == kind; to++) continue;
  uint64_t right = s->right[kind];
  double best = 0, sum = 0;
  int next = RECALLS - 1;
  while (next * 0.01 > recall_of(s, kind)) next--;          /* never reached */
  for (size_t i = to; i-- > from;) {
    best = fmax(best, (double)right / (double)(i - from + 1));
    if (!s->found[i].right) continue;
    right--;
    for (; next > 0 && next * 0.01 > (double)right / (double)s->there[kind]; next--) sum += best;
  }
  sum += best;                                              /* recall 0 */
  return sum / RECALLS;
}

static double mean(const yk_detection_score *s, int32_t kind, double (*of)(const yk_detection_score *, int32_t)) {
  double sum = 0;
  int32_t n = 0;
  if (s == NULL || kind < -1 || kind >= s->classes) return NAN;
  for (int32_t k = 0; k < s->classes; k++)
    if ((kind == -1 || kind == k) && s->there[k] > 0) sum += of(s, k), n++;
  return n > 0 ? sum / n : NAN;
}

double yk_detection_recall(const yk_detection_score *s, int32_t kind) { return mean(s, kind, recall_of); }

double yk_average_precision(yk_detection_score *s, int32_t kind) {
  if (s != NULL && !s->sorted && s->n > 0) qsort(s->found, s->n, sizeof *s->found, by_kind), s->sorted = true;
  return mean(s, kind, precision_of);
}
