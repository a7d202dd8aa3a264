/*
 * safetensors.c - writes and reads files of named tensors.
 *
 * A file is complete or absent: it grows under a temporary name and takes its own
 * only once it is on the disk. A reader holds the whole file and hands out copies.
 */
#include "store/safetensors.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "store/header.h"

enum { LENGTH_BYTES = 8, MAX_HEADER = 100 << 20, ALIGN = 8 };

/* ---- write ------------------------------------------------------------------------------------------------------- */

static yk_code check(size_t n, const yk_saved *t) {
  yk_map seen = { 0 };
  yk_code rc = YK_OK;
  uint32_t other;
  for (size_t i = 0; i < n && rc == YK_OK; i++) {
    const yk_desc *d = t[i].tensor != NULL ? yk_tensor_desc(t[i].tensor) : NULL;
    if (t[i].name == NULL || t[i].name[0] == '\0') rc = YK_FAIL(EINVAL, "tensor %zu of %zu has no name", i, n);
    else if (d == NULL || yk__st_dtype((yk_dtype)d->dtype) == NULL)
      rc = YK_FAIL(EINVAL, "tensor '%s' has no data that can be saved", t[i].name);
    else if (strcmp(t[i].name, "__metadata__") == 0 || yk__map_get(&seen, t[i].name, &other))
      rc = YK_FAIL(EINVAL, "two tensors cannot be saved under the name '%s'", t[i].name);
    else if (!yk__map_set(&seen, t[i].name, (uint32_t)i)) rc = YK_ENOMEM;
  }
  yk__map_free(&seen);
  return rc;
}

static yk_code header_text(size_t n, const yk_saved *t, char **out) {
  yk_str s = { 0 };
  uint64_t at = 0;
  yk__str_put(&s, "{", 1);
  for (size_t i = 0; i < n; i++) {
    const yk_desc *d = yk_tensor_desc(t[i].tensor);
    uint64_t end = at + yk_tensor_bytes(t[i].tensor);
    if (i > 0) yk__str_put(&s, ",\n", 2);
    yk__st_quote(&s, t[i].name);
    yk__str_add(&s, ":{\"dtype\":\"%s\",\"shape\":[", yk__st_dtype((yk_dtype)d->dtype));
    for (uint8_t k = 0; k < d->rank; k++) yk__str_add(&s, "%s%lld", k > 0 ? "," : "", (long long)d->dim[k]);
    yk__str_add(&s, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
    at = end;
  }
  yk__str_put(&s, "}", 1);
  while (s.n % ALIGN != 0 && !s.failed) yk__str_put(&s, " ", 1);
  return yk__str_take(&s, out);
}

static int put_all(FILE *f, const char *header, size_t n, const yk_saved *t) {
  uint64_t length = strlen(header);
  uint8_t le[LENGTH_BYTES];
  for (int i = 0; i < LENGTH_BYTES; i++) le[i] = (uint8_t)(length >> 8 * i);
  int good = fwrite(le, 1, LENGTH_BYTES, f) == LENGTH_BYTES && fwrite(header, 1, length, f) == length;
  for (size_t i = 0; i < n && good; i++) {
    size_t bytes = yk_tensor_bytes(t[i].tensor);
    good = bytes == 0 || fwrite(yk_tensor_data(t[i].tensor), 1, bytes, f) == bytes;
  }
  return good && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

static yk_code put_file(const char *path, const char *temporary, const char *header, size_t n, const yk_saved *t) {
  FILE *f = fopen(temporary, "wb");
  if (f == NULL) return YK_FAIL(EIO, "'%s' cannot be created: %s", path, strerror(errno));
  int good = put_all(f, header, n, t), why = errno;
  if (fclose(f) != 0 && good) { good = 0; why = errno; }
  if (good && rename(temporary, path) != 0) { good = 0; why = errno; }
  if (good) return YK_OK;
  remove(temporary);
  return YK_FAIL(EIO, "'%s' cannot be written: %s", path, strerror(why));
}

yk_code yk__safetensors_write(const char *path, size_t n, const yk_saved *tensors) {
  char *header = NULL, *temporary = NULL;
  yk_str name = { 0 };
  YK_TRY(check(n, tensors));
  YK_TRY(header_text(n, tensors, &header));
  yk__str_add(&name, "%s.%ld.tmp", path, (long)getpid());
  yk_code rc = yk__str_take(&name, &temporary);
  if (rc == YK_OK) rc = put_file(path, temporary, header, n, tensors);
  yk__free(temporary);
  yk__free(header);
  return rc;
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

struct yk_safetensors {
  uint8_t *file;                     /* the whole of it */
  size_t bytes, data;                /* its size; where the tensors begin */
  yk_st_header header;
};

static yk_code read_whole(const char *path, yk_safetensors *s) {
  FILE *f = fopen(path, "rb");
  struct stat info = { 0 };
  yk_code rc = YK_OK;
  if (f == NULL && errno == ENOENT) return YK_FAIL(ENOTFOUND, "there is no file '%s'", path);
  if (f == NULL) return YK_FAIL(EIO, "'%s' cannot be opened: %s", path, strerror(errno));
  bool regular = fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode);
  s->bytes = regular ? (size_t)info.st_size : 0;
  if (!regular) rc = YK_FAIL(EIO, "'%s' is no regular file", path);
  else if ((s->file = yk__alloc(s->bytes + 1)) == NULL) rc = YK_ENOMEM;
  else if (fread(s->file, 1, s->bytes, f) != s->bytes)
    rc = YK_FAIL(EIO, "'%s' cannot be read: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
  fclose(f);
  return rc;
}

static yk_code read_header(yk_safetensors *s) {
  uint64_t length = 0;
  if (s->bytes < LENGTH_BYTES) return YK_FAIL(ECORRUPT, "%zu bytes are too few for a safetensors file", s->bytes);
  for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)s->file[i] << 8 * i;
  if (length > MAX_HEADER || length > s->bytes - LENGTH_BYTES)
    return YK_FAIL(ECORRUPT, "the header says it has %llu bytes, the file has %zu; it is cut off or no safetensors file",
                   (unsigned long long)length,
                   s->bytes - LENGTH_BYTES);
  s->data = LENGTH_BYTES + (size_t)length;
  return yk__st_parse((const char *)s->file + LENGTH_BYTES, (size_t)length, &s->header);
}

/* Bytes of a dense tensor; 0 and a failure where they would not fit into 63 bits. */
static yk_code dense_bytes(const yk_st_entry *e, uint64_t *out) {
  uint64_t bytes = yk_dtype_bytes((yk_dtype)e->desc.dtype);
  for (uint8_t i = 0; i < e->desc.rank; i++) {
    uint64_t d = (uint64_t)e->desc.dim[i];
    if (d != 0 && bytes > (uint64_t)INT64_MAX / d) return YK_FAIL(ECORRUPT, "the shape of tensor '%.80s' is too large", e->name);
    bytes *= d;
  }
  return *out = bytes, YK_OK;
}

static int by_begin(const void *a, const void *b) {
  const yk_st_entry *x = *(const yk_st_entry *const *)a, *y = *(const yk_st_entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* In the order of their bytes, each tensor begins where the one before ends, and the last one ends with the file. */
static yk_code check_cover(const yk_safetensors *s, const yk_st_entry **order) {
  uint64_t at = 0, have = s->bytes - s->data;
  for (uint32_t i = 0; i < s->header.n; i++) order[i] = &s->header.entry[i];
  if (s->header.n > 0) qsort(order, s->header.n, sizeof *order, by_begin);
  for (uint32_t i = 0; i < s->header.n; i++) {
    if (order[i]->begin != at)
      return YK_FAIL(ECORRUPT, "tensor '%.80s' %s: it begins at byte %llu, the one before ends at %llu", order[i]->name,
                     order[i]->begin < at ? "overlaps another" : "leaves a hole", (unsigned long long)order[i]->begin,
                     (unsigned long long)at);
    at = order[i]->end;
  }
  if (at == have) return YK_OK;
  return YK_FAIL(ECORRUPT, "the tensors take %llu bytes, the file has %llu for them", (unsigned long long)at, (unsigned long long)have);
}

/* Each tensor inside the data, of the size its shape says. */
static yk_code check_extents(const yk_safetensors *s) {
  uint64_t have = s->bytes - s->data, bytes = 0;
  for (uint32_t i = 0; i < s->header.n; i++) {
    const yk_st_entry *e = &s->header.entry[i];
    YK_TRY(dense_bytes(e, &bytes));
    if (e->end < e->begin || e->end - e->begin != bytes)
      return YK_FAIL(ECORRUPT, "tensor '%.80s' has offsets %llu to %llu; its shape needs %llu bytes", e->name,
                     (unsigned long long)e->begin, (unsigned long long)e->end, (unsigned long long)bytes);
    if (e->end > have)
      return YK_FAIL(ECORRUPT, "tensor '%.80s' ends at byte %llu of %llu; the file is cut off", e->name, (unsigned long long)e->end,
                     (unsigned long long)have);
  }
  const yk_st_entry **order = yk__calloc((size_t)s->header.n + 1, sizeof *order);
  if (order == NULL) return YK_ENOMEM;
  yk_code rc = check_cover(s, order);
  yk__free(order);
  return rc;
}

yk_code yk__safetensors_open(const char *path, yk_safetensors **out) {
  yk_safetensors *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  yk_code rc = read_whole(path, s);
  if (rc == YK_OK) {
    rc = read_header(s);
    if (rc == YK_OK) rc = check_extents(s);
    if (rc != YK_OK) rc = yk__fail_prefix(rc, "'%s'", path);
  }
  if (rc == YK_OK) *out = s;
  else yk__safetensors_close(s);
  return rc;
}

void yk__safetensors_close(yk_safetensors *f) {
  if (f == NULL) return;
  yk__st_free(&f->header);
  yk__free(f->file);
  yk__free(f);
}

size_t yk__safetensors_count(const yk_safetensors *f) {
  return f->header.n;
}

const char *yk__safetensors_name(const yk_safetensors *f, size_t i) {
  return i < f->header.n ? f->header.entry[i].name : NULL;
}

const yk_desc *yk__safetensors_desc(const yk_safetensors *f, const char *name) {
  uint32_t i;
  return yk__map_get(&f->header.index, name, &i) ? &f->header.entry[i].desc : NULL;
}

yk_code yk__safetensors_get(const yk_safetensors *f, const char *name, yk_tensor **out) {
  uint32_t i;
  yk_shape shape = { 0 };
  if (!yk__map_get(&f->header.index, name, &i)) return YK_FAIL(ENOTFOUND, "there is no tensor '%s'", name);
  const yk_st_entry *e = &f->header.entry[i];
  shape.rank = e->desc.rank;
  memcpy(shape.dim, e->desc.dim, sizeof shape.dim);
  return yk_tensor_from((yk_dtype)e->desc.dtype, shape, f->file + f->data + e->begin, out);
}
