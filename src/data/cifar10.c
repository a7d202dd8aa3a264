/*
 * cifar10.c - reads CIFAR-10 in its original binary form.
 *
 * A record is a label byte and three planes of 32x32; pictures are kept as [H, W, C]. Every file's kind and size is checked
 * before memory is taken for it, and every label before anything is handed over; a record with a bad one may be left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/error.h"
#include "data/formats.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, CLASSES = 10, FILES = 5, PATH_BYTES = 4096, MAX_RECORDS = 1000000 };

static const char *const class_names[CLASSES] = { "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck" };

typedef struct yk_cifar_file { FILE *f; char path[PATH_BYTES]; int64_t records; } yk_cifar_file;

static yk_code count_records(yk_cifar_file *c) {
  struct stat st;
  int64_t bytes;
  if (fstat(fileno(c->f), &st) != 0) return YK_FAIL(EIO, "cannot tell the size of '%s': %s", c->path, strerror(errno));
  if (!S_ISREG(st.st_mode)) return YK_FAIL(EIO, "'%s' is not a regular file", c->path);
  bytes = st.st_size;
  if (bytes == 0) return YK_FAIL(ECORRUPT, "'%s' is empty; a CIFAR-10 file holds records of %d bytes", c->path, RECORD);
  if (bytes % RECORD != 0)
    return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " bytes, not a multiple of %d: %" PRId64 " whole records and %" PRId64 " bytes more; "
                   "the file is cut off or is not CIFAR-10", c->path, bytes, RECORD, bytes / RECORD, bytes % RECORD);
  if (bytes / RECORD > MAX_RECORDS)
    return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " records; a CIFAR-10 file has 10000, and more than %d are refused", c->path,
                   bytes / RECORD, MAX_RECORDS);
  c->records = bytes / RECORD;
  return YK_OK;
}

/* Good records of a file, behind the `*at` that there are already. */
static yk_code read_records(const yk_cifar_file *c, const yk_dataset *d, int64_t *at) {
  const yk_pictures *p = d->self;
  uint8_t record[RECORD];
  for (int64_t i = 0; i < c->records; i++) {
    if (fread(record, 1, RECORD, c->f) != RECORD)
      return YK_FAIL(EIO, "reading record %" PRId64 " of '%s' failed: %s", i, c->path,
                     ferror(c->f) ? strerror(errno) : "the file became shorter");
    if (record[0] >= CLASSES) {
      (void)YK_FAIL(ECORRUPT, "'%s': label %u of record %" PRId64 " (offset %" PRId64 ") is not 0 to 9", c->path, record[0], i,
                    i * RECORD);
      YK_TRY(yk__dataset_skip(d));
      continue;
    }
    uint8_t *image = p->image + *at * 3 * PLANE;
    for (int k = 0; k < PLANE; k++)
      for (int channel = 0; channel < 3; channel++) image[3 * k + channel] = record[1 + channel * PLANE + k];
    p->label[(*at)++] = record[0];
  }
  return YK_OK;
}

/* NULL with errno set. Without blocking: a pipe of that name would wait for a writer. */
static FILE *open_file(const char *path) {
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
  if (f == NULL && fd >= 0) close(fd);
  return f;
}

/* Open the files of a split that exist; those opened are counted even when one fails. */
static yk_code open_files(const char *folder, yk_split split, yk_cifar_file *file, int *nfiles) {
  int wanted = split == YK_TRAIN ? FILES : 1;
  for (int i = 0; i < wanted; i++) {
    yk_cifar_file *c = &file[*nfiles];
    int len;
    if (split == YK_TRAIN) len = snprintf(c->path, PATH_BYTES, "%s/data_batch_%d.bin", folder, i + 1);
    else len = snprintf(c->path, PATH_BYTES, "%s/test_batch.bin", folder);
    if (len >= PATH_BYTES) return YK_FAIL(EINVAL, "the path of the data folder is longer than %d bytes", PATH_BYTES - 32);
    c->f = open_file(c->path);
    if (c->f == NULL && errno != ENOENT && errno != ENOTDIR) return YK_FAIL(EIO, "cannot open '%s': %s", c->path, strerror(errno));
    if (c->f != NULL) (*nfiles)++;
  }
  if (*nfiles > 0) return YK_OK;
  return YK_FAIL(ENOTFOUND, "no %s in '%s'; expected a folder in CIFAR-10's binary form",
                 split == YK_TRAIN ? "data_batch_1.bin to data_batch_5.bin" : "test_batch.bin", folder);
}

static yk_code read_files(yk_cifar_file *file, int nfiles, int64_t skip, yk_dataset **out) {
  int64_t total = 0, at = 0;
  yk_dataset *d;
  yk_pictures *p;
  yk_code rc = YK_OK;
  for (int i = 0; i < nfiles; i++) {
    YK_TRY(count_records(&file[i]));
    total += file[i].records;
  }
  YK_TRY(yk__pictures_new("cifar10", total, SIDE, SIDE, 3, CLASSES, &d, &p));
  d->class_name = class_names;
  d->skips.limit = skip;
  for (int i = 0; i < nfiles && rc == YK_OK; i++) rc = read_records(&file[i], d, &at);
  if (rc == YK_OK && at == 0) rc = YK_FAIL(ECORRUPT, "'%s' holds no good records", file[0].path);
  d->n = d->total = at;
  if (rc == YK_OK) *out = d;
  else yk_dataset_free(d);
  return rc;
}

static yk_code open_folder(const char *path, yk_split split, int64_t skip, yk_dataset **out) {
  yk_cifar_file file[FILES];
  int nfiles = 0;
  yk_code rc = open_files(path, split, file, &nfiles);
  if (rc == YK_OK) rc = read_files(file, nfiles, skip, out);
  for (int i = 0; i < nfiles; i++) fclose(file[i].f);
  return rc;
}

yk_code yk_dataset_cifar10(const char *path, yk_split split, yk_dataset **out) {
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_dataset_cifar10 needs a folder and a place for the result");
  YK_TRY(yk__split_check(split));
  return open_folder(path, split, 0, out);
}

yk_code yk__open_cifar10(const yk_ask *a, yk_dataset **out) {
  return open_folder(a->path, a->split, a->o.skip, out);
}
