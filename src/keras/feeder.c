/*
 * feeder.c - see feeder.h.
 *
 * A column is one component of the examples on its way to one feed. Rows of tensors that follow each other are read where they are; in
 * an order of their own they are copied into the batch. Those of a data set come through a queue, which reads ahead and makes of
 * pictures what networks take.
 */
#include "keras/feeder.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "keras/engine.h"
#include "tensor/desc.h"

typedef struct column {
  const char *name;                /* of the input or output */
  yk_dtype have, want;             /* have NONE: nothing comes, all are 1 */
  yk_shape shape;                  /* of the feed */
  int64_t own, elements;           /* numbers a row: of the component, of the feed */
  uint32_t component;              /* of a data set */
  const char *base;                /* of a tensor: its first row */
  void *raw, *cast;                /* [batch] rows: as they come, where they are copied or come from a queue; and as they are fed, if otherwise */
  const void *now;                 /* the rows of this batch: raw, or where they are */
} column;

struct yk_feeder {
  yk_network *n;
  const yk_examples *e;
  yk_feeder_options o;
  const yk_dataset *d;             /* NULL: tensors */
  yk_queue *queue;
  int64_t rows, epoch, at;         /* of tensors: examples of this epoch so far */
  int64_t *order;                  /* [rows] of this epoch; NULL: as they are */
  column *column; uint32_t ncolumns;   /* inputs, targets, weights */
  uint32_t nweights;
  int target_of_class;             /* the column whose classes are weighted; -1: none */
  double *wide; int64_t nwide;     /* for casts */
  void **out;                      /* [components] */
  const yk_tensor **feed; int64_t feed_rows;
};

/* ---- what fits -------------------------------------------------------------------------------------------------------------- */

static yk_code unfit(const yk_feeder *f, const char *what, const char *name, const yk_desc *want, const yk_desc *have) {
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  return YK_FAIL(EINVAL, "network '%s': %s%s '%s' needs %s, it got %s", f->n->self.name, f->o.what, what, name,
                 yk__desc_text(want, a, sizeof a), have != NULL ? yk__desc_text(have, b, sizeof b) : "none");
}

/* Does data of `have` (with its rows) fit the feed `want`? A last dimension of 1 may be more or less. Sets the column's shape. */
static bool fits(const yk_desc *want, const yk_desc *have, bool loose, column *c) {
  yk_shape s = yk__desc_shape(want);
  bool less = have->rank + 1 == want->rank && want->dim[want->rank - 1] == 1;
  bool more = have->rank == want->rank + 1 && have->dim[have->rank - 1] == 1;
  if (have->rank != want->rank && !(loose && (less || more))) return false;
  uint32_t common = have->rank < want->rank ? have->rank : want->rank;
  for (uint32_t i = 1; i < common; i++) {
    if (want->dim[i] >= 0 && want->dim[i] != have->dim[i]) return false;
    s.dim[i] = have->dim[i];
  }
  s.dim[0] = 1;
  c->elements = 1;
  for (uint32_t i = 1; i < s.rank; i++) c->elements *= s.dim[i];
  c->own = c->elements;
  c->shape = s;
  return true;
}

static column *add_column(yk_feeder *f, const char *name, yk_dtype have, yk_dtype want) {
  column *c = &f->column[f->ncolumns++];
  *c = (column){ .name = name, .have = have, .want = want };
  return c;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------------------- */

static yk_code same_rows(yk_feeder *f, const char *what, const char *name, const yk_desc *d) {
  int64_t rows = d->rank > 0 ? d->dim[0] : -1;
  if (rows < 0) return YK_FAIL(EINVAL, "%s%s '%s' is a scalar; expected a row for each example", f->o.what, what, name);
  if (f->rows < 0) f->rows = rows;
  if (rows == f->rows) return YK_OK;
  return YK_FAIL(EINVAL, "network '%s': %s%s '%s' has %lld rows, input '%s' has %lld", f->n->self.name, f->o.what, what, name,
                 (long long)rows, f->column[0].name, (long long)f->rows);
}

static yk_code tensor_column(yk_feeder *f, const char *what, const char *name, const yk_desc *want, const yk_tensor *t, bool loose) {
  const yk_desc *d = t != NULL ? yk_tensor_desc(t) : NULL;
  if (d == NULL) return unfit(f, what, name, want, NULL);
  column *c = add_column(f, name, (yk_dtype)d->dtype, (yk_dtype)want->dtype);
  return fits(want, d, loose, c) ? same_rows(f, what, name, d) : unfit(f, what, name, want, d);
}

/* Weights [rows] or of the shape of the target's numbers; none: all 1. */
static yk_code weight_column(yk_feeder *f, uint32_t k, const column *target) {
  const yk_tensor *t = f->e->sample_weight != NULL ? f->e->sample_weight[k] : NULL;
  const yk_desc *d = t != NULL ? yk_tensor_desc(t) : NULL;
  column *c = add_column(f, f->n->out[k].layer->name, d != NULL ? (yk_dtype)d->dtype : YK_NONE, YK_F32);
  c->shape = target->shape;
  if (!f->n->compiled->target[k].sparse) c->shape.rank--;
  c->elements = 1;
  for (uint32_t i = 1; i < c->shape.rank; i++) c->elements *= c->shape.dim[i];
  c->own = 1;
  f->nweights++;
  if (d == NULL) return YK_OK;
  YK_TRY(same_rows(f, "weights of", c->name, d));
  c->own = yk_tensor_count(t) / (f->rows > 0 ? f->rows : 1);
  if (f->rows == 0 || c->own == 1 || c->own == c->elements) return YK_OK;
  return YK_FAIL(EINVAL, "weights of output '%s': %lld for each example; expected 1 or %lld", c->name, (long long)c->own, (long long)c->elements);
}

static yk_code tensor_columns(yk_feeder *f) {
  const yk_network *n = f->n;
  const yk_compiled *c = n->compiled;
  if (f->e->x == NULL) return YK_FAIL(EINVAL, "network '%s': %sno inputs given", n->self.name, f->o.what);
  for (uint32_t i = 0; i < n->nin; i++)
    YK_TRY(tensor_column(f, "input", n->in[i].layer->name, yk_sym_desc(n->in[i]), f->e->x[i], false));
  uint32_t first = f->ncolumns;
  for (uint32_t i = 0; i < n->nout; i++)
    if (c->target[i].wanted)
      YK_TRY(tensor_column(f, "target of output", n->out[i].layer->name, &c->target[i].desc, f->e->y != NULL ? f->e->y[i] : NULL, true));
  bool weighted = f->o.nclass_weights > 0;
  for (uint32_t i = 0; f->e->sample_weight != NULL && i < n->nout; i++) weighted = weighted || f->e->sample_weight[i] != NULL;
  for (uint32_t i = 0, at = first; weighted && i < n->nout; i++)
    if (c->target[i].wanted) YK_TRY(weight_column(f, i, &f->column[at++]));
  return YK_OK;
}

/* ---- their rows --------------------------------------------------------------------------------------------------------------- */

static void find_base(column *c, const yk_tensor *t, int64_t from) {
  c->base = (const char *)yk_tensor_data(t) + (size_t)(from * c->own) * yk_dtype_bytes(c->have);
}

/* Where each column's rows begin. */
static void find_bases(yk_feeder *f) {
  const yk_compiled *c = f->n->compiled;
  uint32_t at = 0;
  for (uint32_t i = 0; i < f->n->nin; i++) find_base(&f->column[at++], f->e->x[i], f->o.from);
  for (uint32_t i = 0; i < f->n->nout; i++)
    if (c->target[i].wanted) find_base(&f->column[at++], f->e->y[i], f->o.from);
  for (uint32_t i = 0; at < f->ncolumns && i < f->n->nout; i++) {
    if (!c->target[i].wanted) continue;
    if (f->column[at].have != YK_NONE) find_base(&f->column[at], f->e->sample_weight[i], f->o.from);
    at++;
  }
}

/* An order of its own for each epoch, the same one whenever that epoch is asked for (Fisher, Yates, 1938). */
static void begin_epoch(yk_feeder *f, int64_t epoch) {
  uint64_t state = yk__hash(&epoch, sizeof epoch, f->n->self.k->seed);
  f->epoch = epoch;
  f->at = 0;
  for (int64_t i = 0; f->order != NULL && i < f->rows; i++) f->order[i] = i;
  for (int64_t i = f->rows - 1; f->order != NULL && i > 0; i--) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t j = (int64_t)((state >> 20) % (uint64_t)(i + 1)), other = f->order[i];
    f->order[i] = f->order[j];
    f->order[j] = other;
  }
}

static size_t row_bytes(const column *c) { return (size_t)c->own * yk_dtype_bytes(c->have); }

/* `n` rows into the batch at row `to`. */
static void copy_rows(const yk_feeder *f, int64_t to, int64_t n) {
  for (uint32_t k = 0; k < f->ncolumns; k++) {
    column *c = &f->column[k];
    size_t bytes = row_bytes(c);
    char *out = (char *)c->raw + (size_t)to * bytes;
    if (c->have == YK_NONE) continue;
    c->now = c->raw;
    if (f->order == NULL) memcpy(out, c->base + (size_t)f->at * bytes, (size_t)n * bytes);
    for (int64_t r = 0; f->order != NULL && r < n; r++) memcpy(out + (size_t)r * bytes, c->base + (size_t)f->order[f->at + r] * bytes, bytes);
  }
}

static void point_at_rows(const yk_feeder *f) {
  for (uint32_t k = 0; k < f->ncolumns; k++)
    if (f->column[k].have != YK_NONE) f->column[k].now = f->column[k].base + (size_t)f->at * row_bytes(&f->column[k]);
}

static int64_t take_rows(yk_feeder *f, bool across) {
  int64_t taken = 0;
  do {
    if (f->at == f->rows) begin_epoch(f, f->epoch + 1);
    int64_t left = f->rows - f->at, n = f->o.batch - taken < left ? f->o.batch - taken : left;
    if (f->order == NULL && taken == 0 && (n == f->o.batch || !across)) point_at_rows(f);
    else copy_rows(f, taken, n);
    f->at += n;
    taken += n;
  } while (across && taken < f->o.batch);
  return taken;
}

/* ---- components of a given data set ------------------------------------------------------------------------------------------------- */

/* The component of that name, or the one at `place`. */
static yk_code find_component(const yk_feeder *f, const char *name, uint32_t place, uint32_t *out) {
  uint32_t n = yk_dataset_components(f->e->dataset);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(yk_dataset_component_name(f->e->dataset, i), name) == 0) return *out = i, YK_OK;
  if (place >= n)
    return YK_FAIL(EINVAL, "network '%s': %sthe data set has %u components, and none is called '%s'", f->n->self.name, f->o.what, (unsigned)n, name);
  *out = place;
  return YK_OK;
}

/* What the queue hands out of a component, with rows: a picture becomes f32 of the network's size. */
static yk_desc handed_out(const yk_feeder *f, uint32_t component, const yk_desc *want) {
  const yk_desc *d = yk_dataset_component(f->e->dataset, component);
  yk_desc out = { .dtype = d->dtype, .rank = (uint8_t)(d->rank + 1), .dim = { -1 } };
  yk_shape picture = yk_dataset_shape(f->e->dataset);
  for (uint32_t i = 0; i < d->rank; i++) out.dim[i + 1] = d->dim[i];
  if (d->dtype != YK_U8 || d->rank != 3 || picture.rank != 3) return out;
  out.dtype = YK_F32;
  out.dim[1] = out.dim[2] = want->rank == 4 && want->dim[1] > 0 ? want->dim[1] : d->dim[0] < d->dim[1] ? d->dim[0] : d->dim[1];
  return out;
}

static yk_code component_column(yk_feeder *f, const char *what, const char *name, const yk_desc *want, uint32_t place, bool loose) {
  uint32_t component = 0;
  YK_TRY(find_component(f, name, place, &component));
  yk_desc have = handed_out(f, component, want);
  column *c = add_column(f, name, (yk_dtype)have.dtype, (yk_dtype)want->dtype);
  c->component = component;
  return fits(want, &have, loose, c) ? YK_OK : unfit(f, what, name, want, &have);
}

static yk_code component_columns(yk_feeder *f) {
  const yk_network *n = f->n;
  const yk_compiled *c = n->compiled;
  uint32_t place = n->nin;
  for (uint32_t i = 0; i < n->nin; i++)
    YK_TRY(component_column(f, "input", n->in[i].layer->name, yk_sym_desc(n->in[i]), i, false));
  for (uint32_t i = 0; i < n->nout; i++)
    if (c->target[i].wanted)
      YK_TRY(component_column(f, "target of output", n->out[i].layer->name, &c->target[i].desc, place++, true));
  for (uint32_t i = 0, at = n->nin; f->o.nclass_weights > 0 && i < n->nout; i++)
    if (c->target[i].wanted) YK_TRY(weight_column(f, i, &f->column[at++]));
  f->d = f->e->dataset;
  f->rows = yk_dataset_size(f->d);
  return YK_OK;
}

/* ---- open ------------------------------------------------------------------------------------------------------------------------------ */

static yk_code find_classes(yk_feeder *f) {
  f->target_of_class = -1;
  if (f->o.nclass_weights == 0) return YK_OK;
  if (f->nweights != 1) return YK_FAIL(EINVAL, "class weights are for networks with one trained output");
  f->target_of_class = (int)f->n->nin;
  return YK_OK;
}

/* Room for what a queue hands out: all components, also those that nobody asked for. */
static yk_code make_room(yk_feeder *f) {
  size_t n = f->d != NULL ? yk_dataset_components(f->d) : 0;
  f->out = yk__calloc(n + 1, sizeof *f->out);
  if (f->out == NULL) return YK_ENOMEM;
  for (size_t k = 0; k < n; k++) {
    yk_desc want = { 0 };
    for (uint32_t i = 0; i < f->n->nin; i++)
      if (f->column[i].component == k) want = *yk_sym_desc(f->n->in[i]);
    yk_desc d = handed_out(f, (uint32_t)k, &want);
    d.dim[0] = f->o.batch;
    f->out[k] = yk__alloc((size_t)yk__desc_count(&d) * yk_dtype_bytes((yk_dtype)d.dtype) + 1);
    if (f->out[k] == NULL) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code make_buffers(yk_feeder *f) {
  size_t rows = (size_t)f->o.batch;
  f->feed = yk__calloc(f->ncolumns + 1u, sizeof *f->feed);
  if (f->feed == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < f->ncolumns; i++) {
    column *c = &f->column[i];
    bool weight = i >= f->ncolumns - f->nweights;
    if (f->d != NULL && c->have != YK_NONE) c->now = c->raw = f->out[c->component];
    else if (c->have != YK_NONE && (c->raw = yk__alloc(rows * (size_t)c->own * yk_dtype_bytes(c->have) + 1)) == NULL) return YK_ENOMEM;
    if (!weight && c->have == c->want) continue;
    c->cast = yk__alloc(rows * (size_t)c->elements * yk_dtype_bytes(c->want) + 1);
    if (c->cast == NULL) return YK_ENOMEM;
    if (c->own > f->nwide) f->nwide = c->own;
  }
  f->nwide *= f->o.batch;
  if (f->nwide > 0 && (f->wide = yk__alloc((size_t)f->nwide * sizeof *f->wide)) == NULL) return YK_ENOMEM;
  return YK_OK;
}

static yk_code open_queue(yk_feeder *f) {
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  const yk_desc *first = yk_sym_desc(f->n->in[0]);
  o.shuffle = f->o.shuffle;
  o.seed = f->n->self.k->seed;
  o.augment = f->e->augment;
  o.capacity = 2 * f->o.batch;
  if (first->rank == 4 && first->dim[1] > 0 && yk_dataset_shape(f->d).rank == 3) o.image_size = first->dim[1];
  return yk_queue_open(f->d, &o, &f->queue);
}

static yk_code bind(yk_feeder *f) {
  size_t most = (size_t)f->n->nin + 2u * f->n->nout;
  f->column = yk__calloc(most, sizeof *f->column);
  if (f->column == NULL) return YK_ENOMEM;
  f->rows = -1;
  return f->e->dataset != NULL ? component_columns(f) : tensor_columns(f);
}

/* Tensors: the part of them that is asked for. */
static yk_code open_rows(yk_feeder *f) {
  if (f->o.to == 0) f->o.to = f->rows;
  f->rows = f->o.to - f->o.from;
  find_bases(f);
  if (!f->o.shuffle) return YK_OK;
  f->order = yk__alloc((size_t)f->rows * sizeof *f->order + 1);
  return f->order != NULL ? YK_OK : YK_ENOMEM;
}

static yk_code open(yk_feeder *f) {
  YK_TRY(bind(f));
  YK_TRY(find_classes(f));
  if (f->d == NULL) YK_TRY(open_rows(f));
  if (f->rows == 0) return YK_FAIL(EINVAL, "network '%s': %sno examples", f->n->self.name, f->o.what);
  if (f->o.batch > f->rows) f->o.batch = f->rows;
  YK_TRY(make_room(f));
  YK_TRY(make_buffers(f));
  if (f->d != NULL) return open_queue(f);
  begin_epoch(f, 0);
  return YK_OK;
}

yk_code yk__examples_rows(const yk_network *n, const yk_examples *e, int64_t *rows) {
  yk_feeder f = { .n = (yk_network *)(uintptr_t)n, .e = e, .o = { .what = "" } };
  yk_code rc = bind(&f);
  if (rc == YK_OK) *rows = f.rows;
  yk__free(f.column);
  return rc;
}

yk_code yk__feeder_open(yk_network *n, const yk_examples *e, const yk_feeder_options *o, yk_feeder **out) {
  yk_feeder *f = yk__calloc(1, sizeof *f);
  if (f == NULL) return YK_ENOMEM;
  f->n = n;
  f->e = e;
  f->o = *o;
  yk_code rc = open(f);
  if (rc == YK_OK) *out = f;
  else yk__feeder_close(f);
  return rc;
}

static void drop_feeds(yk_feeder *f) {
  for (uint32_t i = 0; f->feed != NULL && i < f->ncolumns; i++) {
    yk_tensor_free((yk_tensor *)(uintptr_t)f->feed[i]);
    f->feed[i] = NULL;
  }
  f->feed_rows = 0;
}

void yk__feeder_close(yk_feeder *f) {
  if (f == NULL) return;
  yk_queue_close(f->queue);
  drop_feeds(f);
  for (uint32_t i = 0; f->out != NULL && f->d != NULL && i < yk_dataset_components(f->d); i++) yk__free(f->out[i]);
  for (uint32_t i = 0; i < f->ncolumns; i++) {
    yk__free(f->column[i].cast);
    if (f->d == NULL) yk__free(f->column[i].raw);
  }
  yk__free(f->order);
  yk__free(f->column);
  yk__free(f->out);
  yk__free(f->feed);
  yk__free(f->wide);
  yk__free(f);
}

int64_t yk__feeder_rows(const yk_feeder *f) { return f->rows; }
bool yk__feeder_weighted(const yk_feeder *f) { return f->nweights > 0; }
yk_code yk__feeder_seek(yk_feeder *f, int64_t epoch) {
  if (f->d != NULL) return yk_queue_seek(f->queue, (yk_position){ .epoch = epoch });
  begin_epoch(f, epoch);
  return YK_OK;
}

/* ---- batches ------------------------------------------------------------------------------------------------------------------------------ */

static const void *fed(const column *c) { return c->cast != NULL ? c->cast : c->now; }

/* The class of row r of a target: its number, or where its largest element is. */
static int64_t class_of(const column *t, int64_t r) {
  int64_t best = 0;
  if (t->want == YK_I32) return ((const int32_t *)fed(t))[r * t->elements];
  const float *x = (const float *)fed(t) + r * t->elements;
  if (t->elements == 1) return (int64_t)(x[0] + 0.5f);
  for (int64_t i = 1; i < t->elements; i++)
    if (x[i] > x[best]) best = i;
  return best;
}

static yk_code fill_weights(yk_feeder *f, column *c, int64_t rows) {
  float *w = c->cast;
  if (c->have != YK_NONE) yk__to_double(c->have, c->now, f->wide, rows * c->own);
  for (int64_t r = 0; r < rows; r++) {
    double of_class = 1;
    if (f->target_of_class >= 0) {
      int64_t class = class_of(&f->column[f->target_of_class], r);
      if (class < 0 || class >= (int64_t)f->o.nclass_weights)
        return YK_FAIL(EINVAL, "an example is of class %lld; there are weights for %zu classes", (long long)class, f->o.nclass_weights);
      of_class = f->o.class_weight[class];
    }
    for (int64_t i = 0; i < c->elements; i++)
      w[r * c->elements + i] = (float)(of_class * (c->have == YK_NONE ? 1 : f->wide[r * c->own + (c->own > 1 ? i : 0)]));
  }
  return YK_OK;
}

static yk_code wrap(yk_feeder *f, int64_t rows) {
  for (uint32_t i = 0; rows == f->feed_rows && i < f->ncolumns; i++)
    yk__tensor_look_at((yk_tensor *)(uintptr_t)f->feed[i], fed(&f->column[i]));
  if (rows == f->feed_rows) return YK_OK;
  drop_feeds(f);
  for (uint32_t i = 0; i < f->ncolumns; i++) {
    column *c = &f->column[i];
    yk_tensor *t = NULL;
    yk_shape s = c->shape;
    s.dim[0] = rows;
    YK_TRY(yk_tensor_wrap(c->want, s, (void *)(uintptr_t)fed(c), NULL, NULL, &t));
    f->feed[i] = t;
  }
  f->feed_rows = rows;
  return YK_OK;
}

yk_code yk__feeder_next(yk_feeder *f, bool across, const yk_tensor *const **feeds, int64_t *rows) {
  int64_t taken = 0;
  if (f->d == NULL) taken = take_rows(f, across);
  else YK_TRY(yk_queue_take(f->queue, across ? YK_TAKE_ALL : YK_TAKE_IN_EPOCH, f->o.batch, f->out, &taken));
  for (uint32_t i = 0; i < f->ncolumns; i++) {
    column *c = &f->column[i];
    if (i >= f->ncolumns - f->nweights) YK_TRY(fill_weights(f, c, taken));
    else if (c->cast != NULL) {
      yk__to_double(c->have, c->now, f->wide, taken * c->own);
      yk__from_double(c->want, f->wide, c->cast, taken * c->own);
    }
  }
  YK_TRY(wrap(f, taken));
  *feeds = f->feed;
  *rows = taken;
  return YK_OK;
}
