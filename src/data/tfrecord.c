/*
 * tfrecord.c - a data set from TFRecord files with tf.Example records.
 *
 * When it is opened each file is walked once from length to length, which gives the offset of every record; data are read, and their
 * checksums verified, when an example is wanted. Which features become components is told by the options or by the first record.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/example.h"
#include "data/formats.h"
#include "data/picture.h"
#include "data/record.h"
#include "data/tfrecord.h"

enum { WINDOW = 1 << 16, MOST_OPEN = 64 };

bool yk__name_is_tfrecord(const char *name) {
  return strstr(name, ".tfrecord") != NULL || yk__ends_with(name, ".tfrec");
}

/* ---- reading ---- */

/* File and offset of example i. */
static const yk_shard *find_shard(const yk_shards *s, int64_t i) {
  uint32_t lo = 0, hi = s->nshards;
  while (hi - lo > 1) {
    uint32_t middle = (lo + hi) / 2;
    if (s->shard[middle].first <= i) lo = middle;
    else hi = middle;
  }
  return &s->shard[lo];
}

/* A message that tells what is wrong gets file, record and offset put in front. */
static yk_code at_record(yk_code rc, const yk_shard *h, int64_t k) {
  return yk__fail_prefix(rc, "'%s': record %" PRId64 " (offset %" PRId64 ")", h->r.f.path, k, h->offset[k]);
}

/* The data of example i: *room, to be freed, holds it. */
static yk_code get_record(const yk_shards *s, int64_t i, uint8_t **room, yk_span *data) {
  const yk_shard *h = find_shard(s, i);
  int64_t k = i - h->first, bytes = h->offset[k + 1] - h->offset[k], n = bytes - YK__FRAME_HEAD - YK__FRAME_TAIL;
  uint8_t *p = yk__alloc((size_t)bytes);
  if (p == NULL) return YK_FAIL(ENOMEM, "no memory for a record of %" PRId64 " bytes of '%s'", n, h->r.f.path);
  yk_code rc = yk__record_get(&h->r, k, h->offset[k], n, p);
  if (rc != YK_OK) {
    yk__free(p);
    return rc;
  }
  *room = p;
  *data = (yk_span){ p + YK__FRAME_HEAD, p + YK__FRAME_HEAD + n };
  return YK_OK;
}

static yk_code read_bytes(const yk_slot *f, const yk_entry *e, const yk_shards *s, void *out) {
  yk_span b;
  YK_TRY(yk__list_bytes(e, &b));
  size_t n = (size_t)(b.end - b.p);
  if ((int64_t)n == f->count && !f->encoded) {
    memcpy(out, b.p, n);
    return YK_OK;
  }
  if (f->shape.rank == 3 && (f->encoded || yk__picture_coding(b.p, n) != YK_CODING_NONE)) {
    yk_target t = { .height = f->shape.dim[0], .width = f->shape.dim[1], .channels = f->shape.dim[2], .fit = s->fit };
    return yk__picture_read(b.p, n, &t, out);
  }
  return YK_FAIL(ECORRUPT, "has %zu bytes; expected %" PRId64, n, f->count);
}

static yk_code read_slot(const yk_slot *f, yk_span record, const yk_shards *s, void *out) {
  yk_entry e;
  YK_TRY(yk__example_find(record, f->name, &e));
  if (e.kind == YK_LIST_NONE && f->missing != NULL) {
    memcpy(out, f->missing, (size_t)f->bytes);
    return YK_OK;
  }
  yk_code rc;
  if (e.kind == YK_LIST_NONE) rc = YK_FAIL(ECORRUPT, "is missing");
  else if (f->dtype == YK_U8 && e.kind == YK_LIST_BYTES) rc = read_bytes(f, &e, s, out);
  else rc = yk__list_numbers(&e, f->dtype, f->count, out);
  return rc == YK_OK ? rc : yk__fail_prefix(rc, "feature '%s'", f->name);
}

static yk_code read_slots(const yk_dataset *d, yk_span record, void *const *out) {
  const yk_shards *s = d->self;
  for (uint32_t k = 0; k < d->ncomponents; k++) YK_TRY(read_slot(&s->slot[k], record, s, out[k]));
  if (d->label < 0 || d->nclasses == 0) return YK_OK;
  int32_t label;
  memcpy(&label, out[d->label], sizeof label);
  if (label >= 0 && label < d->nclasses) return YK_OK;
  return YK_FAIL(ECORRUPT, "feature '%s' is %d; expected a class from 0 to %" PRId64, s->slot[d->label].name, label,
                 d->nclasses - 1);
}

static yk_code read_one(const yk_dataset *d, int64_t i, void *const *out) {
  const yk_shards *s = d->self;
  uint8_t *room = NULL;
  yk_span data;
  YK_TRY(get_record(s, i, &room, &data));
  yk_code rc = read_slots(d, data, out);
  yk__free(room);
  if (rc != YK_ECORRUPT && rc != YK_EUNSUPPORTED) return rc;
  const yk_shard *h = find_shard(s, i);
  return at_record(rc, h, i - h->first);
}

static void close_all(yk_dataset *d) {
  yk_shards *s = d->self;
  if (s == NULL) return;
  for (uint32_t k = 0; k < s->nshards; k++) {
    yk__record_close(&s->shard[k].r);
    yk__free(s->shard[k].offset);
  }
  yk__free(s->shard);
  for (uint32_t k = 0; k < YK_MAX_COMPONENTS; k++) {
    yk__free(s->slot[k].name);
    yk__free(s->slot[k].missing);
  }
  yk__free(s);
}

static const yk_reader reader = { .read = read_one, .close = close_all };

/* ---- where the records are ---- */

/* A part of a file, so that small records do not cost a call each. */
typedef struct yk_window { const yk_record_file *r; int64_t at, n; uint8_t *p; } yk_window;

static yk_code look(yk_window *w, int64_t at, uint8_t head[YK__FRAME_HEAD]) {
  if (at < w->at || at + YK__FRAME_HEAD > w->at + w->n) {
    w->at = at;
    w->n = w->r->bytes - at < WINDOW ? w->r->bytes - at : WINDOW;
    YK_TRY(yk__record_bytes(w->r, at, w->p, w->n));
  }
  memcpy(head, w->p + (at - w->at), YK__FRAME_HEAD);
  return YK_OK;
}

/* Behind record k at *at; ECORRUPT: nothing can be found there. */
static yk_code step(yk_window *w, int64_t k, int64_t *at) {
  const yk_record_file *r = w->r;
  uint8_t head[YK__FRAME_HEAD];
  int64_t n;
  if (r->bytes - *at < YK__FRAME_HEAD)
    return YK_FAIL(ECORRUPT, "'%s': record %" PRId64 " (offset %" PRId64 ") is cut off after %" PRId64 " bytes", r->f.path, k,
                   *at, r->bytes - *at);
  YK_TRY(look(w, *at, head));
  YK_TRY(yk__record_length(r, k, *at, head, &n));
  *at += YK__FRAME_HEAD + n + YK__FRAME_TAIL;
  return YK_OK;
}

/* The offsets of all records of a file, and of the end of the last one. What follows a damaged length counts as one corrupt record. */
static yk_code walk(const yk_dataset *d, yk_shard *h) {
  yk_window w = { .r = &h->r };
  int64_t at = 0;
  yk_code rc = YK_OK;
  w.p = yk__alloc(WINDOW);
  if (w.p == NULL) return YK_ENOMEM;
  while (rc == YK_OK) {
    if (!YK_PUSH(h->offset, h->n, h->cap, at)) rc = YK_ENOMEM;
    if (rc != YK_OK || at == h->r.bytes) break;
    if ((rc = step(&w, h->n - 1, &at)) != YK_ECORRUPT) continue;
    rc = yk__dataset_skip(d);
    break;
  }
  yk__free(w.p);
  return rc;
}

static yk_code add_shard(yk_dataset *d, const char *path, int64_t max_bytes, bool rest) {
  yk_shards *s = d->self;
  yk_shard *h = &s->shard[s->nshards];
  YK_TRY(yk__record_open(path, max_bytes, &h->r));
  s->nshards++;
  h->first = d->n;
  if (h->r.bytes == 0) return YK_FAIL(ECORRUPT, "'%s' is empty; a TFRecord file holds at least one record", path);
  YK_TRY(walk(d, h));
  d->n += h->n - 1;
  if (rest) yk__file_rest(&h->r.f);
  return YK_OK;
}

static yk_code add_shards(yk_dataset *d, const yk_name_list *files, int64_t max_bytes) {
  yk_shards *s = d->self;
  s->shard = yk__calloc(files->n, sizeof *s->shard);
  if (s->shard == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < files->n; i++) YK_TRY(add_shard(d, files->name[i], max_bytes, files->n > MOST_OPEN));
  return d->n > 0 ? YK_OK : YK_FAIL(ECORRUPT, "'%s' holds no good records", files->name[0]);
}

/* ---- what they hold ---- */

/* Takes over f->name, also when it fails. */
static yk_code add_slot(yk_dataset *d, const yk_slot *f, const char *component) {
  yk_shards *s = d->self;
  yk_desc one = { .dtype = (uint8_t)f->dtype, .rank = (uint8_t)f->shape.rank };
  memcpy(one.dim, f->shape.dim, sizeof one.dim);
  yk_code rc = yk__dataset_add(d, component, &one);
  if (rc != YK_OK) {
    yk__free(f->name);
    return rc;
  }
  yk_slot *to = &s->slot[d->ncomponents - 1];
  *to = *f;
  to->missing = NULL;
  to->bytes = yk__example_bytes(&one);
  to->count = to->bytes / (int64_t)yk_dtype_bytes(f->dtype);
  if (f->missing == NULL) return YK_OK;
  to->missing = yk__alloc((size_t)to->bytes + 1);
  if (to->missing == NULL) return YK_ENOMEM;
  memcpy(to->missing, f->missing, (size_t)to->bytes);
  return YK_OK;
}

static yk_code check_feature(const yk_feature *f) {
  if (f->name == NULL) return YK_FAIL(EINVAL, "a feature has no name");
  if (yk_dtype_bytes(f->dtype) == 0 || f->dtype == YK_F16 || f->dtype == YK_BF16)
    return YK_FAIL(EINVAL, "feature '%s' is asked for as %s; a tf.Example gives f32, f64, i64, i32, bool and u8", f->name,
                   yk_dtype_name(f->dtype));
  if (f->shape.rank >= YK_MAX_RANK)
    return YK_FAIL(EINVAL, "feature '%s' has rank %u, too high for a batch of them", f->name, f->shape.rank);
  int64_t n = 1;
  for (uint32_t k = 0; k < f->shape.rank; k++)
    if (f->shape.dim[k] < 1 || __builtin_mul_overflow(n, f->shape.dim[k], &n) || n > (int64_t)1 << 40)
      return YK_FAIL(EINVAL, "feature '%s' has dimension %" PRId64 " at %u; expected at least 1, and 2^40 elements at most",
                     f->name, f->shape.dim[k], k);
  return YK_OK;
}

static yk_code given_slots(yk_dataset *d, const yk_dataset_options *o) {
  for (size_t i = 0; i < o->nfeatures; i++) {
    const yk_feature *f = &o->features[i];
    YK_TRY(check_feature(f));
    yk_slot s = { .dtype = f->dtype, .shape = f->shape, .missing = (void *)(uintptr_t)f->missing, .name = yk__strdup(f->name) };
    if (s.name == NULL) return YK_ENOMEM;
    YK_TRY(add_slot(d, &s, f->component != NULL ? f->component : f->name));
  }
  return YK_OK;
}

static yk_code first_record(const yk_dataset *d, uint8_t **room, yk_span *data) {
  const yk_shards *s = d->self;
  for (int64_t i = 0; i < d->n; i++) {
    yk_code rc = get_record(s, i, room, data);
    if (rc != YK_ECORRUPT || d->skips.limit == 0) return rc;
    yk_error_clear();                              /* it is counted when it is read as an example */
  }
  return YK_FAIL(ECORRUPT, "all %" PRId64 " records of '%s' are corrupt", d->n, s->shard[0].r.f.path);
}

static yk_code found_slots(yk_dataset *d, const yk_dataset_options *o) {
  yk_slot found[YK_MAX_COMPONENTS];
  const char *component[YK_MAX_COMPONENTS];
  uint8_t *room = NULL;
  yk_span data;
  uint32_t n = 0, i = 0;
  const yk_shards *s = d->self;
  YK_TRY(first_record(d, &room, &data));
  yk_code rc = yk__tfrecord_guess(data, o, found, component, &n);
  for (; rc == YK_OK && i < n; i++) rc = add_slot(d, &found[i], component[i] != NULL ? component[i] : found[i].name);
  for (; i < n; i++) yk__free(found[i].name);
  yk__free(room);
  return rc == YK_ECORRUPT || rc == YK_EINVAL || rc == YK_EUNSUPPORTED ? at_record(rc, &s->shard[0], 0) : rc;
}

/* One more than the highest label of all records; corrupt ones are passed over as far as that is allowed, and found again later. */
static yk_code count_classes(yk_dataset *d) {
  const yk_shards *s = d->self;
  int32_t highest = -1, label;
  for (int64_t i = 0; i < d->total; i++) {
    uint8_t *room = NULL;
    yk_span data;
    yk_code rc = get_record(s, i, &room, &data);
    if (rc == YK_OK && (rc = read_slot(&s->slot[d->label], data, s, &label)) == YK_OK && label < 0)
      rc = YK_FAIL(ECORRUPT, "feature '%s' is %d, which is no class", s->slot[d->label].name, label);
    else if (rc == YK_OK && label > highest) highest = label;
    if (rc == YK_ECORRUPT && room != NULL) at_record(rc, find_shard(s, i), i - find_shard(s, i)->first);
    yk__free(room);
    if (rc == YK_ECORRUPT && d->skips.limit > 0) {
      yk_error_clear();
      continue;
    }
    if (rc != YK_OK) return rc;
  }
  d->nclasses = (int64_t)highest + 1;
  return YK_OK;
}

static yk_code open_shards(const yk_ask *a, const yk_name_list *files, yk_dataset *d) {
  yk_shards *s = d->self = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  s->fit = a->o.fit;
  d->skips.limit = a->o.skip;
  YK_TRY(add_shards(d, files, a->o.max_bytes));
  YK_TRY(a->o.nfeatures > 0 ? given_slots(d, &a->o) : found_slots(d, &a->o));
  YK_TRY(yk__dataset_seal(d, &a->o, a->split));
  if (d->label < 0) return YK_OK;
  d->nclasses = a->o.classes;
  return d->nclasses == 0 ? count_classes(d) : YK_OK;
}

yk_code yk__open_tfrecord(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask;
  yk_name_list files = { 0 };
  yk_dataset *d = NULL;
  YK_TRY(yk__pick_files(&a, yk__name_is_tfrecord, ".tfrecord file", &files));
  yk_code rc = yk__dataset_new("tfrecord", &reader, &d);
  if (rc == YK_OK) rc = open_shards(&a, &files, d);
  yk__name_list_free(&files);
  if (rc == YK_OK) *out = d;
  else yk_dataset_free(d);
  return rc;
}
