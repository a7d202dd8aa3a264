/*
 * open.c - one way in: what lies at a path, recognised by name and first bytes, opened by the reader of its format.
 *
 * The first format of the list that fits is taken; whoever knows better names it. What is refused tells what was looked for.
 */
#include <inttypes.h>
#include <string.h>
#include "base/error.h"
#include "data/formats.h"
#include "data/record.h"

enum { MOST_SIDE = 1 << 14 };

typedef struct yk_format {
  const char *name;
  bool (*is)(const char *name);              /* of a file, or an entry of a folder; NULL: only folders of folders */
  yk_code (*open)(const yk_ask *a, yk_dataset **out);
} yk_format;

static bool is_cifar10(const char *name) {
  return (strncmp(name, "data_batch_", 11) == 0 || strcmp(name, "test_batch.bin") == 0) && yk__ends_with(name, ".bin");
}

static const yk_format formats[] = {
  { "cifar10", is_cifar10, yk__open_cifar10 },
  { "idx", yk__name_is_idx, yk__open_idx },
  { "tfrecord", yk__name_is_tfrecord, yk__open_tfrecord },
  { "npz", yk__name_is_npz, yk__open_npz },
  { "npy", yk__name_is_npy, yk__open_npy },
  { "csv", yk__name_is_csv, yk__open_csv },
  { "folder", NULL, yk__open_folder },
};
enum { FORMATS = sizeof formats / sizeof formats[0], TFRECORD = 2 };

static yk_code of_folder(const char *path, const yk_format **out) {
  yk_name_list l = { 0 };
  YK_TRY(yk__folder_names(path, &l));
  const yk_format *found = NULL;
  for (int k = 0; k < FORMATS && found == NULL; k++)
    for (uint32_t i = 0; formats[k].is != NULL && i < l.n && found == NULL; i++)
      if (formats[k].is(l.name[i])) found = &formats[k];
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < l.n && found == NULL && rc == YK_OK; i++) {
    char sub[YK__PATH_BYTES];
    rc = yk__path_join(path, l.name[i], sub);
    if (rc == YK_OK && yk__path_kind(sub) == 'd') found = &formats[FORMATS - 1];
  }
  yk__name_list_free(&l);
  *out = found;
  return rc;
}

/* By its name, or by what it begins with. */
static yk_code of_file(const char *path, const yk_format **out) {
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  yk_file f;
  for (int k = 1; k < FORMATS && *out == NULL; k++)
    if (formats[k].is != NULL && formats[k].is(name)) *out = &formats[k];
  if (*out != NULL) return YK_OK;
  YK_TRY(yk__file_open(path, &f));
  if (yk__record_begins(&f)) *out = &formats[TFRECORD];
  yk__file_close(&f);
  return YK_OK;
}

static yk_code recognise(const char *path, const yk_format **out) {
  int kind = yk__path_kind(path);
  *out = NULL;
  if (kind == 0) {                             /* not there, or not to be read: opening it tells */
    yk_file f;
    YK_TRY(yk__file_open(path, &f));
    yk__file_close(&f);
  }
  YK_TRY(kind == 'd' ? of_folder(path, out) : of_file(path, out));
  if (*out != NULL) return YK_OK;
  return YK_FAIL(ENOTFOUND, "'%s' is no data set that is known; looked for, %s: data_batch_1.bin (cifar10), *-idx3-ubyte (idx), "
                 "*.tfrecord, *.npz, *.npy, *.csv%s", path, kind == 'd' ? "in the folder" : "by its name",
                 kind == 'd' ? ", sub-folders with pictures" : "");
}

static yk_code by_name(const char *name, const yk_format **out) {
  for (int k = 0; k < FORMATS; k++)
    if (strcmp(formats[k].name, name) == 0) {
      *out = &formats[k];
      return YK_OK;
    }
  return YK_FAIL(EINVAL, "there is no data format '%.60s'; known are cifar10, idx, csv, npy, npz, tfrecord and folder", name);
}

static yk_code check(yk_dataset_options *o) {
  if (o->channels == 0) o->channels = 3;
  if (o->height == 0) o->height = o->width;
  if (o->width == 0) o->width = o->height;
  if (o->channels != 1 && o->channels != 3)
    return YK_FAIL(EINVAL, "pictures are decoded with 1 or 3 channels, not %" PRId64, o->channels);
  if (o->height < 0 || o->width < 0 || o->height > MOST_SIDE || o->width > MOST_SIDE)
    return YK_FAIL(EINVAL, "pictures are decoded to 1 to %d pixels a side, not %" PRId64 "x%" PRId64, MOST_SIDE, o->height,
                   o->width);
  if ((unsigned)o->fit > YK_FIT_STRETCH) return YK_FAIL(EINVAL, "there is no fit %d", (int)o->fit);
  if (!(o->holdout >= 0 && o->holdout < 1))
    return YK_FAIL(EINVAL, "a holdout of %g; expected a part of the examples, at least 0 and below 1", o->holdout);
  if (o->skip < 0 || o->classes < 0 || o->classes > INT32_MAX || o->max_bytes < 0)
    return YK_FAIL(EINVAL, "skip %" PRId64 ", classes %" PRId64 ", max_bytes %" PRId64 "; expected 0 or more", o->skip,
                   o->classes, o->max_bytes);
  if (o->nfeatures > YK_MAX_COMPONENTS || (o->nfeatures > 0 && o->features == NULL))
    return YK_FAIL(EINVAL, "%zu features; expected at most %d, and where they are", o->nfeatures, YK_MAX_COMPONENTS);
  if (o->delimiter == '"' || o->delimiter == '\n' || o->delimiter == '\r')
    return YK_FAIL(EINVAL, "a delimiter of that kind cannot be read");
  return YK_OK;
}

yk_code yk_dataset_open(const char *path, const yk_dataset_options *given, yk_split split, yk_dataset **out) {
  yk_ask a = { .path = path, .o = YK_DATASET_OPTIONS_INIT, .split = split };
  const yk_format *f = NULL;
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_dataset_open needs a path and a place for the result");
  if (strlen(path) >= YK__PATH_BYTES)
    return YK_FAIL(EINVAL, "a path of %zu characters; at most %d are taken", strlen(path), YK__PATH_BYTES - 1);
  YK_TRY(yk__split_check(split));
  if (given != NULL) {                          /* a caller compiled against an older header passes a shorter struct */
    if (given->size < sizeof given->size || given->size > 4096)
      return YK_FAIL(EINVAL, "yk_dataset_options.size is %u; start from YK_DATASET_OPTIONS_INIT", given->size);
    memcpy(&a.o, given, given->size < sizeof a.o ? given->size : sizeof a.o);
  }
  YK_TRY(check(&a.o));
  YK_TRY(a.o.format != NULL ? by_name(a.o.format, &f) : recognise(path, &f));
  return f->open(&a, out);
}
