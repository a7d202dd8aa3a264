/*
 * tensor_queue.c - elements in slots, their order, and calls that wait in line.
 *
 * Elements lie in slots that keep their memory when they become free, so a queue in use allocates nothing. Their order is a
 * ring of slot numbers: a put-back of what a call had gathered before it failed is a matter of numbers and cannot fail. Callers
 * that wait stand in two lines, one a direction; only the first of a line acts, which is what makes it fair.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "tensor/desc.h"
#include "train/options.h"
#include "train/tensor_queue.h"
#include "train/waits.h"

enum { STREAM = 201, NO_SLOT = 0 };

typedef struct cell { void *data; size_t room; int64_t dim[YK_MAX_RANK]; uint8_t rank; } cell;   /* one component of one element */

typedef struct line { yk_caller *first, *last; } line;

struct yk_tensor_queue {
  yk_tensor_queue_options o;
  char *name;
  const char *kind;
  yk_source source;
  bool batches, fixed;              /* shapes are known up to padding; wholly */
  yk_mutex lock;
  yk_cond changed;
  cell *cell;                       /* [(nslots + 1) * ncomponents]; slot 0 is nobody's */
  uint32_t *order, *next;           /* [nslots] ring of slots; [nslots + 1] links of free and of gathered ones */
  uint32_t nslots, head, n, spare;  /* spare: first free slot */
  uint64_t draws;
  line adding, taking;
  int32_t inside;                   /* calls under way */
  bool closing, cancelled;
};

static const char *const kinds[] = { "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue" };

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static bool grow(yk_tensor_queue *q) {
  uint32_t more = q->nslots == 0 ? 16 : 2 * q->nslots, nc = q->o.ncomponents;
  uint32_t *order = yk__alloc(more * sizeof *order), *next = order ? yk__realloc(q->next, more + 1u, sizeof *next) : NULL;
  if (next) q->next = next;
  cell *c = next ? yk__realloc(q->cell, (more + 1u) * (size_t)nc, sizeof *c) : NULL;
  if (c == NULL) {
    yk__free(order);
    return false;
  }
  q->cell = c;
  memset(c + (q->nslots + 1u) * nc, 0, (more - q->nslots) * (size_t)nc * sizeof *c);
  if (q->nslots == 0) memset(c, 0, nc * sizeof *c);
  for (uint32_t i = 0; i < q->n; i++) order[i] = q->order[(q->head + i) % q->nslots];
  yk__free(q->order);
  q->order = order;
  q->head = 0;
  for (uint32_t s = more; s > q->nslots; s--) {
    q->next[s] = q->spare;
    q->spare = s;
  }
  q->nslots = more;
  return true;
}

static cell *cells(const yk_tensor_queue *q, uint32_t slot) { return q->cell + (size_t)slot * q->o.ncomponents; }
static uint32_t *place(const yk_tensor_queue *q, uint32_t i) { return &q->order[(q->head + i) % q->nslots]; }

static void push_front(yk_tensor_queue *q, uint32_t slot) {
  q->head = (q->head + q->nslots - 1) % q->nslots;
  q->n++;
  *place(q, 0) = slot;
}

/* Take the next element out of the order; its slot stays taken. */
static uint32_t pop(yk_tensor_queue *q) {
  uint32_t slot, i = 0;
  if (q->o.kind == YK_QUEUE_RANDOM_SHUFFLE) {
    i = (uint32_t)yk__rng_below(q->o.seed, STREAM, 0, q->draws++, q->n);
    slot = *place(q, i);
    *place(q, i) = *place(q, q->n - 1);
  } else {
    slot = *place(q, 0);
    q->head = (q->head + 1) % q->nslots;
  }
  q->n--;
  return slot;
}

static void release(yk_tensor_queue *q, uint32_t slot) {
  q->next[slot] = q->spare;
  q->spare = slot;
}

/* Row `row` of the tensors (of one element: row 0 of one) becomes the last element. */
static yk_code put(yk_tensor_queue *q, const yk_tensor *const *in, bool many, int64_t row) {
  if (q->spare == NO_SLOT && !grow(q)) return YK_ENOMEM;
  uint32_t slot = q->spare;
  cell *c = cells(q, slot);
  for (uint32_t k = 0; k < q->o.ncomponents; k++) {
    const yk_desc *d = yk_tensor_desc(in[k]);
    size_t bytes = many ? yk_tensor_bytes(in[k]) / (size_t)d->dim[0] : yk_tensor_bytes(in[k]);
    if (c[k].room < bytes) {
      void *fresh = yk__alloc(bytes);
      if (fresh == NULL) return YK_ENOMEM;
      yk__free(c[k].data);
      c[k].data = fresh;
      c[k].room = bytes;
    }
    if (bytes > 0) memcpy(c[k].data, (const char *)yk_tensor_data(in[k]) + (size_t)row * bytes, bytes);
    c[k].rank = (uint8_t)(d->rank - many);
    memcpy(c[k].dim, d->dim + many, c[k].rank * sizeof c[k].dim[0]);
  }
  q->spare = q->next[slot];
  *place(q, q->n++) = slot;
  return YK_OK;
}

/* ---- waiting in line --------------------------------------------------------------------------------------------- */

static void stand(line *l, yk_caller *me) {
  *me = (yk_caller){ NULL };
  if (l->last) l->last->next = me;
  else l->first = me;
  l->last = me;
}

static void leave(line *l, yk_caller *me) {
  yk_caller *before = NULL;
  for (yk_caller *p = l->first; p != me; p = p->next) before = p;
  if (before) before->next = me->next;
  else l->first = me->next;
  if (l->last == me) l->last = before;
}

/* Opens a call: with the lock held afterwards. Until when it may wait. */
static uint64_t enter(yk_tensor_queue *q) {
  yk__mutex_lock(&q->lock);
  q->inside++;
  return yk__until(q->o.timeout_ms);
}

static void depart(yk_tensor_queue *q) {
  q->inside--;
  yk__cond_broadcast(&q->changed);
  yk__mutex_unlock(&q->lock);
}

/* No element comes any more: it was closed, and who waited to enqueue has done so. */
static bool ended(const yk_tensor_queue *q) { return q->closing && q->adding.first == NULL; }

/* ---- enqueue ----------------------------------------------------------------------------------------------------- */

/* One component of an element, or of a batch of them. */
static yk_code check_component(const yk_tensor_queue *q, uint32_t k, const yk_tensor *t, bool many) {
  yk_desc want = q->o.component[k];
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  if (t == NULL) return YK_FAIL(EINVAL, "%s '%s': component %u is NULL", q->kind, q->name, k);
  const yk_desc *d = yk_tensor_desc(t);
  bool fits = d->dtype == want.dtype;
  if (!q->o.any_shape) {
    fits = fits && d->rank == want.rank + many;
    for (int i = 0; fits && i < want.rank; i++) fits = want.dim[i] < 0 || want.dim[i] == d->dim[i + many];
  } else {
    want.rank = 0;
  }
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "%s '%s': component %u is %s, expected %s%s%s", q->kind, q->name, k, yk__desc_text(d, a, sizeof a),
                 many ? "a batch of " : "", yk__desc_text(&want, b, sizeof b), q->o.any_shape ? " of any shape" : "");
}

static yk_code check(const yk_tensor_queue *q, const yk_tensor *const *in, bool many, int64_t *rows) {
  if (many && !q->batches)
    return YK_FAIL(EINVAL, "%s '%s': enqueue_many needs elements of known shapes", q->kind, q->name);
  for (uint32_t k = 0; k < q->o.ncomponents; k++) {
    YK_TRY(check_component(q, k, in[k], many));
    int64_t n = many ? yk_tensor_desc(in[k])->dim[0] : 1;
    if (k > 0 && n != *rows)
      return YK_FAIL(EINVAL, "%s '%s': component %u has %" PRId64 " rows, component 0 has %" PRId64, q->kind, q->name, k, n, *rows);
    *rows = n;
  }
  return YK_OK;
}

static bool full(const yk_tensor_queue *q) { return q->o.capacity > 0 && q->n >= q->o.capacity; }

/* With the lock held and in line: rows one by one, as room comes. */
static yk_code add_rows(yk_tensor_queue *q, const yk_caller *me, const yk_tensor *const *in, bool many, int64_t rows, uint64_t until) {
  for (int64_t i = 0; i < rows;) {
    if (q->cancelled)
      return YK_FAIL(ECANCELLED, "%s '%s' was closed: %s was cancelled with %" PRId64 " of %" PRId64 " elements enqueued", q->kind, q->name,
                     many ? "enqueue_many" : "enqueue", i, rows);
    if (q->adding.first == me && !full(q)) {
      YK_TRY(put(q, in, many, i++));
      yk__cond_broadcast(&q->changed);
    } else if (!yk__wait_until(&q->changed, &q->lock, until)) {
      return YK_FAIL(EBUSY, "%s '%s': %s waited %" PRId64 " ms for room: %" PRId64 " of %" PRId64 " elements enqueued, %u are there, "
                     "capacity %" PRId64 "%s", q->kind, q->name, many ? "enqueue_many" : "enqueue", q->o.timeout_ms, i, rows, q->n,
                     q->o.capacity, q->adding.first == me ? "" : "; an earlier enqueue waits too");
    }
  }
  return YK_OK;
}

static yk_code enqueue(yk_tensor_queue *q, const yk_tensor *const *in, bool many) {
  yk_caller me;
  int64_t rows = 0;
  if (q == NULL || in == NULL) return YK_FAIL(EINVAL, "an enqueue needs a queue and an element");
  YK_TRY(check(q, in, many, &rows));
  if (rows == 0) return YK_OK;
  uint64_t until = enter(q);
  yk_code rc = YK_OK;
  if (q->closing) {
    rc = YK_FAIL(ECANCELLED, "%s '%s' is closed", q->kind, q->name);
  } else {
    stand(&q->adding, &me);
    rc = add_rows(q, &me, in, many, rows, until);
    leave(&q->adding, &me);
  }
  depart(q);
  return rc;
}

yk_code yk_tensor_queue_enqueue(yk_tensor_queue *q, const yk_tensor *const *in) { return enqueue(q, in, false); }
yk_code yk_tensor_queue_enqueue_many(yk_tensor_queue *q, const yk_tensor *const *in) { return enqueue(q, in, true); }

/* ---- dequeue ----------------------------------------------------------------------------------------------------- */

typedef struct take {
  const char *what;                 /* the operation */
  int64_t want;
  bool many, up_to;
  void *const *raw;                 /* memory to copy to; or */
  yk_tensor **out;                  /* tensors to make */
  uint32_t gathered;                /* slots, the last one first */
  int64_t ngathered;
} take;

/* Elements that may be taken now. */
static int64_t available(const yk_tensor_queue *q) {
  int64_t stay = q->o.kind == YK_QUEUE_RANDOM_SHUFFLE && !ended(q) ? q->o.min_after_dequeue : 0;
  return q->n - stay;
}

static void put_back(yk_tensor_queue *q, take *t) {
  while (t->gathered != NO_SLOT) {
    uint32_t slot = t->gathered;
    t->gathered = q->next[slot];
    push_front(q, slot);
  }
  t->ngathered = 0;
}

static yk_code too_few(const yk_tensor_queue *q, const take *t) {
  return YK_FAIL(ERANGE, "%s '%s' is closed and has insufficient elements: %s requested %" PRId64 ", available %u", q->kind, q->name, t->what,
                 t->want, q->n);
}

static yk_code too_late(const yk_tensor_queue *q, const take *t, const yk_caller *me) {
  return YK_FAIL(EBUSY, "%s '%s': %s waited %" PRId64 " ms for %" PRId64 " element%s; %u are there%s%s", q->kind, q->name, t->what,
                 q->o.timeout_ms, t->want, t->want == 1 ? "" : "s", q->n,
                 q->o.kind == YK_QUEUE_RANDOM_SHUFFLE && q->o.min_after_dequeue > 0 ? ", of which min_after_dequeue must stay" : "",
                 q->taking.first == me ? "" : ", and an earlier dequeue waits for them");
}

/* With the lock held and in line: gather as many as are wanted. */
static yk_code gather(yk_tensor_queue *q, const yk_caller *me, take *t, uint64_t until) {
  bool rested = false;
  while (t->ngathered < t->want) {
    if (q->taking.first == me) {
      bool end = ended(q);
      int64_t left = available(q);
      for (; left > 0 && t->ngathered < t->want; left--, t->ngathered++) {
        uint32_t slot = pop(q);
        q->next[slot] = t->gathered;
        t->gathered = slot;
        yk__cond_broadcast(&q->changed);
      }
      if (t->ngathered == t->want || (end && t->up_to && t->ngathered > 0)) return YK_OK;
      if (end) {
        put_back(q, t);
        return too_few(q, t);
      }
    }
    if (!rested) yk__team_rest();
    rested = true;
    if (!yk__wait_until(&q->changed, &q->lock, until)) {
      put_back(q, t);
      return too_late(q, t, me);
    }
  }
  return YK_OK;
}

/* A dense block into the corner of a larger one, whose rest is zero. */
static void copy_corner(char *to, const int64_t *to_dim, const char *from, const int64_t *dim, int rank, size_t bytes) {
  size_t to_row = bytes, row = bytes;
  if (rank == 0) {
    memcpy(to, from, bytes);
    return;
  }
  for (int i = 1; i < rank; i++) {
    to_row *= (size_t)to_dim[i];
    row *= (size_t)dim[i];
  }
  if (row == to_row) {
    memcpy(to, from, row * (size_t)dim[0]);
    return;
  }
  for (int64_t i = 0; i < dim[0]; i++)
    copy_corner(to + (size_t)i * to_row, to_dim + 1, from + (size_t)i * row, dim + 1, rank - 1, bytes);
}

/* The shape that holds component k of all gathered elements. */
static yk_shape hull(const yk_tensor_queue *q, const take *t, uint32_t k) {
  yk_shape s = { 0 };
  for (uint32_t slot = t->gathered; slot != NO_SLOT; slot = q->next[slot]) {
    const cell *c = &cells(q, slot)[k];
    s.rank = c->rank;
    for (int i = 0; i < c->rank; i++)
      if (c->dim[i] > s.dim[i]) s.dim[i] = c->dim[i];
  }
  if (t->gathered != NO_SLOT) return s;
  s = yk__desc_shape(&q->o.component[k]);
  for (uint32_t i = 0; i < s.rank; i++)
    if (s.dim[i] < 0) s.dim[i] = 0;
  return s;
}

/* Component k of what was gathered to `to`, the last element last. */
static void copy_out(const yk_tensor_queue *q, const take *t, uint32_t k, const yk_shape *one, char *to) {
  size_t bytes = yk_dtype_bytes((yk_dtype)q->o.component[k].dtype), row = bytes;
  int64_t i = t->ngathered;
  for (uint32_t d = 0; d < one->rank; d++) row *= (size_t)one->dim[d];
  for (uint32_t slot = t->gathered; slot != NO_SLOT && row > 0; slot = q->next[slot]) {
    const cell *c = &cells(q, slot)[k];
    bool empty = false;
    i--;
    for (int d = 0; d < c->rank; d++) empty = empty || c->dim[d] == 0;
    if (!empty) copy_corner(to + (size_t)i * row, one->dim, c->data, c->dim, c->rank, bytes);
  }
}

static yk_code make_tensors(yk_tensor_queue *q, const take *t) {
  yk_tensor *made[YK_MAX_COMPONENTS] = { NULL };
  yk_code rc = YK_OK;
  for (uint32_t k = 0; k < q->o.ncomponents && rc == YK_OK; k++) {
    yk_shape one = hull(q, t, k), s = one;
    if (t->many) {
      s.rank = one.rank + 1;
      s.dim[0] = t->ngathered;
      memcpy(s.dim + 1, one.dim, one.rank * sizeof one.dim[0]);
    }
    rc = yk_tensor_new((yk_dtype)q->o.component[k].dtype, s, &made[k]);
    if (rc == YK_OK) copy_out(q, t, k, &one, yk_tensor_data(made[k]));
  }
  for (uint32_t k = 0; k < q->o.ncomponents; k++) {
    if (rc == YK_OK) t->out[k] = made[k];
    else yk_tensor_free(made[k]);
  }
  return rc;
}

static yk_code deliver(yk_tensor_queue *q, take *t) {
  if (t->out != NULL) YK_TRY(make_tensors(q, t));
  for (uint32_t k = 0; t->raw != NULL && k < q->o.ncomponents; k++) {
    yk_shape one = yk__desc_shape(&q->o.component[k]);
    copy_out(q, t, k, &one, t->raw[k]);
  }
  while (t->gathered != NO_SLOT) {
    uint32_t slot = t->gathered;
    t->gathered = q->next[slot];
    release(q, slot);
  }
  return YK_OK;
}

/* With the lock held, in line before and not afterwards. */
static yk_code serve(yk_tensor_queue *q, yk_caller *me, take *t, uint64_t until) {
  yk_code rc = gather(q, me, t, until);
  if (rc == YK_OK) rc = deliver(q, t);
  if (rc != YK_OK) put_back(q, t);
  leave(&q->taking, me);
  return rc;
}

static yk_code dequeue(yk_tensor_queue *q, take *t) {
  yk_caller me;
  if (q == NULL || (t->out == NULL && t->raw == NULL))
    return YK_FAIL(EINVAL, "a dequeue needs a queue and somewhere to write to");
  if (t->want < 0) return YK_FAIL(EINVAL, "%s '%s': %s requested %" PRId64 " elements", q->kind, q->name, t->what, t->want);
  if (t->many && !q->batches) return YK_FAIL(EINVAL, "%s '%s': %s needs elements of known shapes", q->kind, q->name, t->what);
  uint64_t until = enter(q);
  stand(&q->taking, &me);
  yk_code rc = serve(q, &me, t, until);
  depart(q);
  return rc;
}

yk_code yk_tensor_queue_dequeue(yk_tensor_queue *q, yk_tensor **out) {
  return dequeue(q, &(take){ .what = "dequeue", .want = 1, .out = out });
}

yk_code yk_tensor_queue_dequeue_many(yk_tensor_queue *q, int64_t n, yk_tensor **out) {
  return dequeue(q, &(take){ .what = "dequeue_many", .want = n, .many = true, .out = out });
}

yk_code yk_tensor_queue_dequeue_up_to(yk_tensor_queue *q, int64_t n, yk_tensor **out) {
  return dequeue(q, &(take){ .what = "dequeue_up_to", .want = n, .many = true, .up_to = true, .out = out });
}

static yk_code next_rows(void *self, int64_t rows, void *const *out) {
  return dequeue(self, &(take){ .what = "dequeue_many", .want = rows, .many = true, .raw = out });
}

void yk__tensor_queue_stand(yk_tensor_queue *q, yk_caller *me) {
  yk__mutex_lock(&q->lock);
  stand(&q->taking, me);
  yk__mutex_unlock(&q->lock);
}

yk_code yk__tensor_queue_take(yk_tensor_queue *q, yk_caller *me, void *const *out) {
  uint64_t until = enter(q);
  yk_code rc = serve(q, me, &(take){ .what = "dequeue", .want = 1, .many = true, .raw = out }, until);
  depart(q);
  return rc;
}

void yk__tensor_queue_leave(yk_tensor_queue *q, yk_caller *me) {
  yk__mutex_lock(&q->lock);
  leave(&q->taking, me);
  yk__cond_broadcast(&q->changed);
  yk__mutex_unlock(&q->lock);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static yk_code check_shapes(const yk_tensor_queue_options *o) {
  if (o->ncomponents < 1 || o->ncomponents > YK_MAX_COMPONENTS)
    return YK_FAIL(EINVAL, "a queue has 1 to %d components, not %u", YK_MAX_COMPONENTS, o->ncomponents);
  for (uint32_t k = 0; k < o->ncomponents; k++) {
    yk_shape s = yk__desc_shape(&o->component[k]);
    yk_code rc = yk__shape_check((yk_dtype)o->component[k].dtype, &s, o->kind == YK_QUEUE_PADDING_FIFO);
    if (rc != YK_OK) return yk__fail_prefix(rc, "component %u of a queue", k);
    if (!o->any_shape && s.rank >= YK_MAX_RANK)
      return YK_FAIL(EINVAL, "component %u of a queue has rank %u, too high for a batch of them", k, s.rank);
  }
  return YK_OK;
}

static yk_code check_options(const yk_tensor_queue_options *o) {
  if ((unsigned)o->kind > YK_QUEUE_PADDING_FIFO) return YK_FAIL(EINVAL, "no such kind of queue: %d", (int)o->kind);
  if (o->capacity < 0 || o->capacity > UINT32_MAX / 4)
    return YK_FAIL(EINVAL, "a queue cannot have a capacity of %" PRId64, o->capacity);
  if (o->timeout_ms < 0) return YK_FAIL(EINVAL, "a queue cannot wait %" PRId64 " ms", o->timeout_ms);
  if (o->min_after_dequeue != 0 && o->kind != YK_QUEUE_RANDOM_SHUFFLE)
    return YK_FAIL(EINVAL, "min_after_dequeue is of random shuffle queues only");
  if (o->min_after_dequeue < 0 || (o->capacity > 0 && o->min_after_dequeue >= o->capacity))
    return YK_FAIL(EINVAL, "min_after_dequeue is %" PRId64 ", expected 0 or more and less than the capacity %" PRId64, o->min_after_dequeue,
                   o->capacity);
  if (o->any_shape && o->kind == YK_QUEUE_PADDING_FIFO)
    return YK_FAIL(EINVAL, "a padding queue needs the ranks of its components");
  return check_shapes(o);
}

yk_code yk_tensor_queue_open(const yk_tensor_queue_options *options, yk_tensor_queue **out) {
  yk_tensor_queue_options o = { 0 };
  YK_TRY(yk__options_take(&o, sizeof o, options, "yk_tensor_queue_options"));
  YK_TRY(check_options(&o));
  if (out == NULL) return YK_FAIL(EINVAL, "yk_tensor_queue_open: NULL output");
  yk_tensor_queue *q = yk__calloc(1, sizeof *q);
  if (q == NULL) return YK_ENOMEM;
  q->o = o;
  q->name = yk__strdup(o.name ? o.name : "queue");
  if (q->name == NULL) {
    yk__free(q);
    return YK_ENOMEM;
  }
  q->kind = kinds[o.kind];
  q->batches = q->fixed = !o.any_shape;
  q->o.timeout_ms = yk__limit_ms(q->o.timeout_ms);
  q->source = (yk_source){ .self = q, .next = next_rows, .ncomponents = o.ncomponents };
  for (uint32_t k = 0; k < o.ncomponents; k++) {
    q->source.component[k] = o.component[k];
    q->fixed = q->fixed && yk__desc_known(&o.component[k]);
  }
  yk__mutex_init(&q->lock);
  yk__cond_init(&q->changed);
  *out = q;
  return YK_OK;
}

void yk_tensor_queue_free(yk_tensor_queue *q) {
  if (q == NULL) return;
  yk__mutex_lock(&q->lock);
  q->closing = q->cancelled = true;
  yk__cond_broadcast(&q->changed);
  while (q->inside > 0) yk__cond_wait(&q->changed, &q->lock);
  yk__mutex_unlock(&q->lock);
  for (size_t i = 0; q->cell && i < (q->nslots + 1u) * (size_t)q->o.ncomponents; i++) yk__free(q->cell[i].data);
  yk__free(q->cell);
  yk__free(q->order);
  yk__free(q->next);
  yk__mutex_free(&q->lock);
  yk__cond_free(&q->changed);
  yk__free(q->name);
  yk__free(q);
}

yk_code yk_tensor_queue_close(yk_tensor_queue *q, bool cancel_pending) {
  if (q == NULL) return YK_FAIL(EINVAL, "yk_tensor_queue_close needs a queue");
  yk__mutex_lock(&q->lock);
  bool before = q->closing;
  q->closing = true;
  q->cancelled = q->cancelled || cancel_pending;
  yk__cond_broadcast(&q->changed);
  yk__mutex_unlock(&q->lock);
  return before && !cancel_pending ? YK_FAIL(ECANCELLED, "%s '%s' is already closed", q->kind, q->name) : YK_OK;
}

/* The lock is not part of what const promises. */
static yk_tensor_queue *opened(const yk_tensor_queue *q) {
  yk_tensor_queue *m = (yk_tensor_queue *)(uintptr_t)q;
  yk__mutex_lock(&m->lock);
  return m;
}

int64_t yk_tensor_queue_size(const yk_tensor_queue *q) {
  yk_tensor_queue *m = opened(q);
  int64_t n = m->n;
  yk__mutex_unlock(&m->lock);
  return n;
}

bool yk_tensor_queue_closed(const yk_tensor_queue *q) {
  yk_tensor_queue *m = opened(q);
  bool closed = m->closing;
  yk__mutex_unlock(&m->lock);
  return closed;
}

yk_code yk_tensor_queue_set_timeout(yk_tensor_queue *q, int64_t timeout_ms) {
  if (q == NULL || timeout_ms < 1) return YK_FAIL(EINVAL, "a queue cannot wait %" PRId64 " ms", timeout_ms);
  yk__mutex_lock(&q->lock);
  q->o.timeout_ms = yk__limit_ms(timeout_ms);
  yk__mutex_unlock(&q->lock);
  return YK_OK;
}

const yk_source *yk_tensor_queue_source(const yk_tensor_queue *q) {
  return q != NULL && q->fixed ? &q->source : NULL;
}
