/*
 * folder.c - pictures in folders: one sub-folder a class, JPEG and PNG files in it; or "train" and "test" with such sub-folders.
 *
 * Only names are kept; a picture is read, decoded and brought to size when it is wanted, in the threads of the queue. Classes are the
 * sub-folders' names in sorted order, over both parts, so that a class that only one of them has does not shift the others.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/formats.h"
#include "data/picture.h"

enum { MOST_FILE = 1 << 28 };

typedef struct yk_shelf {
  char **folder;                     /* [nclasses] path of a class; NULL: this part has none */
  int64_t nclasses;
  yk_name_list files;                    /* [n] names without their folder */
  int32_t *label;                    /* [n] */
  uint32_t nlabel, label_cap;
  yk_target target;
} yk_shelf;

/* ---- reading ---- */

static yk_code read_file(const char *path, void **out, int64_t *n) {
  yk_file f;
  YK_TRY(yk__file_open(path, &f));
  yk_code rc = f.bytes <= MOST_FILE ? YK_OK : YK_FAIL(ECORRUPT, "it has %" PRId64 " bytes; a picture has at most %d", f.bytes,
                                                      MOST_FILE);
  uint8_t *all = rc == YK_OK ? yk__alloc((size_t)f.bytes + 1) : NULL;
  if (rc == YK_OK && all == NULL) rc = YK_ENOMEM;
  if (rc == YK_OK) rc = yk__file_read(&f, 0, all, f.bytes);
  if (rc == YK_OK) {
    *n = f.bytes;
    *out = all;
  } else {
    yk__free(all);
  }
  yk__file_close(&f);
  return rc;
}

static yk_code path_of(const yk_shelf *s, int64_t i, char path[YK__PATH_BYTES]) {
  return yk__path_join(s->folder[s->label[i]], s->files.name[i], path);
}

/* An error of decoding says nothing of the file yet. */
static yk_code at_file(yk_code rc, const char *path, int64_t i) {
  return rc == YK_ECORRUPT || rc == YK_EUNSUPPORTED ? yk__fail_prefix(rc, "'%s' (record %" PRId64 ", offset 0)", path, i) : rc;
}

static yk_code read_one(const yk_dataset *d, int64_t i, void *const *out) {
  const yk_shelf *s = d->self;
  char path[YK__PATH_BYTES];
  void *all = NULL;
  int64_t n = 0;
  YK_TRY(path_of(s, i, path));
  yk_code rc = read_file(path, &all, &n);
  if (rc == YK_OK) rc = yk__picture_read(all, (size_t)n, &s->target, out[0]);
  yk__free(all);
  memcpy(out[1], &s->label[i], sizeof s->label[i]);
  return at_file(rc, path, i);
}

static int32_t label_of(const yk_dataset *d, int64_t i) {
  return ((const yk_shelf *)d->self)->label[i];
}

static void close_all(yk_dataset *d) {
  yk_shelf *s = d->self;
  if (s == NULL) return;
  for (int64_t k = 0; s->folder != NULL && k < s->nclasses; k++) yk__free(s->folder[k]);
  yk__free(s->folder);
  yk__name_list_free(&s->files);
  yk__free(s->label);
  yk__free(s);
}

static const yk_reader reader = { .read = read_one, .label = label_of, .close = close_all };

/* ---- what there is ---- */

static bool is_picture(const char *name) {
  return yk__ends_with(name, ".jpg") || yk__ends_with(name, ".jpeg") || yk__ends_with(name, ".png");
}

/* Pictures that are left out without a word would be missed by nobody. */
static bool is_other_picture(const char *name) {
  static const char *const end[] = { ".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif" };
  for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
    if (yk__ends_with(name, end[i])) return true;
  return false;
}

/* Keep only the sub-folders of `path`. */
static yk_code sub_folders(const char *path, yk_name_list *out) {
  char sub[YK__PATH_BYTES];
  yk_name_list all = { 0 };
  yk_code rc = YK_OK;
  uint32_t kept = 0;
  YK_TRY(yk__folder_names(path, &all));
  for (uint32_t i = 0; i < all.n; i++) {
    if (rc == YK_OK) rc = yk__path_join(path, all.name[i], sub);
    if (rc == YK_OK && yk__path_kind(sub) == 'd') all.name[kept++] = all.name[i];
    else yk__free(all.name[i]);
  }
  all.n = kept;
  if (rc == YK_OK) *out = all;
  else yk__name_list_free(&all);
  return rc;
}

/* The pictures of one class. */
static yk_code take_class(yk_shelf *s, int32_t k) {
  char path[YK__PATH_BYTES];
  yk_name_list all = { 0 };
  uint32_t before = s->files.n;
  YK_TRY(yk__folder_names(s->folder[k], &all));
  yk_code rc = YK_OK;
  for (uint32_t i = 0; rc == YK_OK && i < all.n; i++) {
    if ((rc = yk__path_join(s->folder[k], all.name[i], path)) != YK_OK) break;
    if (is_other_picture(all.name[i])) rc = YK_FAIL(EUNSUPPORTED, "'%s' is neither a JPEG nor a PNG; convert it", path);
    else if (is_picture(all.name[i]) && yk__path_kind(path) != 'f') rc = YK_FAIL(EIO, "'%s' is not a regular file", path);
    else if (!is_picture(all.name[i]) && yk__path_kind(path) == 'd')
      rc = YK_FAIL(EINVAL, "'%s' is a folder in the folder of a class; expected pictures", path);
    if (rc != YK_OK || !is_picture(all.name[i])) continue;
    if (!YK_PUSH(s->label, s->nlabel, s->label_cap, k) || !YK_PUSH(s->files.name, s->files.n, s->files.cap, all.name[i]))
      rc = YK_ENOMEM;
    else all.name[i] = NULL;
  }
  yk__name_list_free(&all);
  if (rc == YK_OK && s->files.n == before)
    rc = YK_FAIL(ENOTFOUND, "no .jpg, .jpeg or .png file in the folder '%s'", s->folder[k]);
  return rc;
}

/* The folders with the classes of training and test, either "" where there is none. */
typedef struct yk_roots { char part[2][YK__PATH_BYTES]; } yk_roots;

/* Sub-folders are parts if all of them are called so; else they are classes. */
static yk_code find_roots(yk_ask *a, yk_roots *r) {
  yk_name_list sub = { 0 };
  uint32_t named = 0;
  int best = 0;
  YK_TRY(sub_folders(a->path, &sub));
  yk_code rc = sub.n > 0 ? YK_OK : YK_FAIL(ENOTFOUND, "no sub-folders in '%s'; expected one for each class, or train and test",
                                           a->path);
  for (uint32_t i = 0; i < sub.n; i++) {
    int rank = yk__test_rank(sub.name[i]);
    named += rank != 0;
    if (rank > best) best = rank;
  }
  if (rc == YK_OK && named < sub.n) rc = yk__path_join(a->path, "", r->part[YK_TRAIN]);
  for (uint32_t i = 0; rc == YK_OK && named == sub.n && i < sub.n; i++) {
    int rank = yk__test_rank(sub.name[i]);
    char *to = rank < 0 ? r->part[YK_TRAIN] : rank == best ? r->part[YK_TEST] : NULL;
    if (to != NULL && to[0] == '\0') rc = yk__path_join(a->path, sub.name[i], to);
  }
  yk__name_list_free(&sub);
  if (rc != YK_OK) return rc;
  if (r->part[YK_TEST][0] != '\0') a->o.holdout = 0;
  if (a->split == YK_TRAIN && r->part[YK_TRAIN][0] == '\0')
    return YK_FAIL(ENOTFOUND, "'%s' has no training part: no sub-folder train", a->path);
  if (a->split == YK_TEST && r->part[YK_TEST][0] == '\0' && a->o.holdout <= 0)
    return YK_FAIL(ENOTFOUND, "'%s' has no test part: no sub-folder test or val; a holdout keeps a part of the examples for tests", a->path);
  return YK_OK;
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All classes of both parts, sorted, each once. */
static yk_code find_classes(const yk_roots *r, yk_name_list *out) {
  for (int p = 0; p < 2; p++) {
    yk_name_list sub = { 0 };
    if (r->part[p][0] == '\0') continue;
    YK_TRY(sub_folders(r->part[p], &sub));
    for (uint32_t i = 0; i < sub.n; i++) {
      bool known = false;
      for (uint32_t k = 0; k < out->n && !known; k++) known = strcmp(out->name[k], sub.name[i]) == 0;
      if (known) continue;
      if (!YK_PUSH(out->name, out->n, out->cap, sub.name[i])) {
        yk__name_list_free(&sub);
        return YK_ENOMEM;
      }
      sub.name[i] = NULL;
    }
    yk__name_list_free(&sub);
  }
  if (out->n > 1) qsort(out->name, out->n, sizeof *out->name, by_bytes);
  return YK_OK;
}

static yk_code take_classes(yk_dataset *d, const char *root) {
  yk_shelf *s = d->self;
  char path[YK__PATH_BYTES];
  s->folder = yk__calloc((size_t)d->nclasses + 1, sizeof *s->folder);
  if (s->folder == NULL) return YK_ENOMEM;
  s->nclasses = d->nclasses;
  for (int32_t k = 0; k < s->nclasses; k++) {
    YK_TRY(yk__path_join(root, d->own_class_name[k], path));
    if (yk__path_kind(path) != 'd') continue;
    if ((s->folder[k] = yk__strdup(path)) == NULL) return YK_ENOMEM;
    YK_TRY(take_class(s, k));
  }
  d->n = s->files.n;
  return d->n > 0 ? YK_OK : YK_FAIL(ENOTFOUND, "no sub-folders with pictures in '%s'", root);
}

/* What was not asked for is as in the first picture. */
static yk_code find_target(yk_shelf *s, const yk_dataset_options *o) {
  yk_target *t = &s->target;
  char path[YK__PATH_BYTES];
  void *all = NULL;
  int64_t n = 0;
  *t = (yk_target){ .height = o->height, .width = o->width, .channels = o->channels, .fit = o->fit };
  if (t->height > 0 && t->width > 0) return YK_OK;
  YK_TRY(path_of(s, 0, path));
  yk_code rc = read_file(path, &all, &n);
  if (rc == YK_OK) rc = yk__picture_size(all, (size_t)n, &t->height, &t->width);
  yk__free(all);
  return at_file(rc, path, 0);
}

static yk_code open_shelf(const yk_ask *a, const yk_roots *r, yk_dataset *d) {
  yk_name_list classes = { 0 };
  yk_shelf *s = d->self = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  yk_code rc = find_classes(r, &classes);
  d->own_class_name = classes.name;
  d->nclasses = classes.n;
  if (rc != YK_OK) return rc;
  if (a->o.classes > 0 && a->o.classes != d->nclasses)
    return YK_FAIL(EINVAL, "'%s' has %" PRId64 " classes (sub-folders); %" PRId64 " were asked for", a->path, d->nclasses,
                   a->o.classes);
  YK_TRY(take_classes(d, a->split == YK_TEST && r->part[YK_TEST][0] != '\0' ? r->part[YK_TEST] : r->part[YK_TRAIN]));
  YK_TRY(find_target(s, &a->o));
  YK_TRY(yk__dataset_add(d, "image", &(yk_desc){ .dtype = YK_U8, .rank = 3,
                                                .dim = { s->target.height, s->target.width, s->target.channels } }));
  YK_TRY(yk__dataset_add(d, "label", &(yk_desc){ .dtype = YK_I32 }));
  d->skips.limit = a->o.skip;
  return yk__dataset_seal(d, &a->o, a->split);
}

yk_code yk__open_folder(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask;
  yk_roots r = { { "", "" } };
  yk_dataset *d;
  YK_TRY(find_roots(&a, &r));
  YK_TRY(yk__dataset_new("folder", &reader, &d));
  yk_code rc = open_shelf(&a, &r, d);
  if (rc == YK_OK) *out = d;
  else yk_dataset_free(d);
  return rc;
}
