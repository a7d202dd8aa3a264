/*
 * dataset.c - what all data sets share: components, the part held out for tests, and corrupt records that are passed over.
 *
 * The place of a corrupt record is taken by the next good one. So a set keeps its length and a stream stays a function of seed and
 * position, whichever thread meets the record first, and a queue can be moved anywhere in it.
 */
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

enum { HOLDOUT_SEED = 20 };         /* a set is parted in the same way in every run */

yk_code yk__dataset_new(const char *name, const yk_reader *reader, yk_dataset **out) {
  yk_dataset *d = yk__calloc(1, sizeof *d);
  if (d == NULL) return YK_ENOMEM;
  *d = (yk_dataset){ .name = name, .reader = reader, .picture = -1, .label = -1 };
  yk__mutex_init(&d->skips.lock);
  *out = d;
  return YK_OK;
}

yk_code yk__dataset_add(yk_dataset *d, const char *name, const yk_desc *desc) {
  if (d->ncomponents == YK_MAX_COMPONENTS)
    return YK_FAIL(EINVAL, "an example has at most %d components; '%s' is one too many", YK_MAX_COMPONENTS, name);
  if (desc->rank >= YK_MAX_RANK)
    return YK_FAIL(EINVAL, "component '%s' has rank %u, too high for a batch of them", name, desc->rank);
  for (uint32_t k = 0; k < d->ncomponents; k++)
    if (strcmp(d->component_name[k], name) == 0) return YK_FAIL(EINVAL, "two components are called '%s'", name);
  char *copy = yk__strdup(name);
  if (copy == NULL) return YK_ENOMEM;
  d->component_name[d->ncomponents] = copy;
  d->component[d->ncomponents++] = *desc;
  return YK_OK;
}

static void find_roles(yk_dataset *d) {
  for (uint32_t k = 0; k < d->ncomponents; k++) {
    const yk_desc *c = &d->component[k];
    if (d->picture < 0 && c->dtype == YK_U8 && c->rank == 3) d->picture = (int)k;
    if (c->dtype == YK_I32 && c->rank == 0 && strcmp(d->component_name[k], "label") == 0) d->label = (int)k;
  }
}

/* The last examples of a permutation of all are for tests. */
static yk_code part(yk_dataset *d, double holdout, yk_split split) {
  int64_t tests = (int64_t)((double)d->n * holdout + 0.5);
  d->total = d->n;
  if (holdout <= 0) return YK_OK;
  if (tests < 1) tests = 1;
  if (tests >= d->n)
    return YK_FAIL(EINVAL, "a holdout of %g of %" PRId64 " examples leaves none to learn from", holdout, d->n);
  d->first = split == YK_TEST ? d->n - tests : 0;
  d->n = split == YK_TEST ? tests : d->n - tests;
  return YK_OK;
}

yk_code yk__dataset_seal(yk_dataset *d, const yk_dataset_options *o, yk_split split) {
  find_roles(d);
  YK_TRY(part(d, o != NULL ? o->holdout : 0, split));
  if (d->skips.limit == 0) return YK_OK;
  d->skips.bad = yk__calloc((size_t)d->total, sizeof *d->skips.bad);
  return d->skips.bad != NULL ? YK_OK : YK_ENOMEM;
}

void yk_dataset_free(yk_dataset *d) {
  if (d == NULL) return;
  d->reader->close(d);
  for (uint32_t k = 0; k < d->ncomponents; k++) yk__free(d->component_name[k]);
  for (int64_t i = 0; d->own_class_name != NULL && i < d->nclasses; i++) yk__free(d->own_class_name[i]);
  yk__free(d->own_class_name);
  yk__free((void *)d->skips.bad);
  yk__mutex_free(&d->skips.lock);
  yk__free(d);
}

yk_code yk__split_check(yk_split split) {
  if (split == YK_TRAIN || split == YK_TEST) return YK_OK;
  return YK_FAIL(EINVAL, "a data set has the splits train (%d) and test (%d), not %d", YK_TRAIN, YK_TEST, (int)split);
}

/* ---- what it is ---- */

int64_t yk_dataset_size(const yk_dataset *d) {
  return d->n;
}

int64_t yk_dataset_classes(const yk_dataset *d) {
  return d->nclasses;
}

const char *yk_dataset_name(const yk_dataset *d) {
  return d->name;
}

const char *yk_dataset_class_name(const yk_dataset *d, int64_t label) {
  if (label < 0 || label >= d->nclasses) return NULL;
  return d->own_class_name != NULL ? d->own_class_name[label] : d->class_name != NULL ? d->class_name[label] : NULL;
}

uint32_t yk_dataset_components(const yk_dataset *d) {
  return d->ncomponents;
}

const char *yk_dataset_component_name(const yk_dataset *d, uint32_t k) {
  return k < d->ncomponents ? d->component_name[k] : NULL;
}

const yk_desc *yk_dataset_component(const yk_dataset *d, uint32_t k) {
  return k < d->ncomponents ? &d->component[k] : NULL;
}

yk_shape yk_dataset_shape(const yk_dataset *d) {
  if (d->picture < 0) return YK_SCALAR;
  const int64_t *dim = d->component[d->picture].dim;
  return YK_SHAPE(dim[0], dim[1], dim[2]);
}

int64_t yk__example_bytes(const yk_desc *d) {
  int64_t n = (int64_t)yk_dtype_bytes((yk_dtype)d->dtype);
  for (int k = 0; k < d->rank; k++) n *= d->dim[k];
  return n;
}

/* ---- example i ---- */

/* Its number in the files. */
static int64_t place(const yk_dataset *d, int64_t i) {
  return d->n == d->total ? i : yk__permute(HOLDOUT_SEED, 0, d->total, d->first + i);
}

const uint8_t *yk_dataset_image(const yk_dataset *d, int64_t i) {
  return i >= 0 && i < d->n && d->reader->image != NULL ? d->reader->image(d, place(d, i)) : NULL;
}

int32_t yk_dataset_label(const yk_dataset *d, int64_t i) {
  return i >= 0 && i < d->n && d->reader->label != NULL ? d->reader->label(d, place(d, i)) : -1;
}

/* The state of skipping is not part of what const promises. */
static yk_skips *skips_of(const yk_dataset *d) {
  return &((yk_dataset *)(uintptr_t)d)->skips;
}

yk_code yk__dataset_skip(const yk_dataset *d) {
  yk_skips *s = skips_of(d);
  yk__mutex_lock(&s->lock);
  int64_t count = s->count < s->limit ? ++s->count : s->limit + 1;
  if (count == 1) snprintf(s->first, sizeof s->first, "%s", yk_error_message());
  yk__mutex_unlock(&s->lock);
  if (count > s->limit)
    return s->limit == 0 ? YK_ECORRUPT : yk__fail_prefix(YK_ECORRUPT, "more than %" PRId64 " corrupt records", s->limit);
  yk_error_clear();
  return YK_OK;
}

yk_code yk__dataset_get(const yk_dataset *d, int64_t i, void *const *out) {
  _Atomic uint8_t *bad = d->skips.bad;
  for (int64_t tried = 0; tried < d->n; tried++, i = (i + 1) % d->n) {
    int64_t at = place(d, i);
    if (bad != NULL && bad[at] != 0) continue;
    yk_code rc = d->reader->read(d, at, out);
    if (rc != YK_ECORRUPT || bad == NULL) return rc;
    if (atomic_exchange(&bad[at], 1) == 0) YK_TRY(yk__dataset_skip(d));
  }
  return YK_FAIL(ECORRUPT, "all %" PRId64 " records are corrupt; the first: %s", d->n, d->skips.first);
}

yk_code yk_dataset_read(const yk_dataset *d, int64_t i, void *const *out) {
  if (d == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_dataset_read needs a data set and places for the components");
  if (i < 0 || i >= d->n) return YK_FAIL(EINVAL, "there is no example %" PRId64 "; the data set has %" PRId64, i, d->n);
  return yk__dataset_get(d, i, out);
}

int64_t yk_dataset_skipped(const yk_dataset *d, const char **first) {
  yk_skips *s = skips_of(d);
  yk__mutex_lock(&s->lock);
  int64_t n = s->count;
  yk__mutex_unlock(&s->lock);
  if (first != NULL) *first = n > 0 ? s->first : "";
  return n;
}
