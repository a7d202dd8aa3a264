/*
 * safetensors.c - writes and reads files of named tensors.
 *
 * A file is complete or absent (disk.h). A reader holds the whole file, has checked all of it, and hands out copies.
 */
#include "store/safetensors.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "store/disk.h"
#include "store/header.h"

enum { MAX_HEADER = 100 << 20 };

void yk__st_put_length(size_t n, uint8_t out[YK__ST_LENGTH]) {
  for (int i = 0; i < YK__ST_LENGTH; i++) out[i] = (uint8_t)((uint64_t)n >> 8 * i);
}

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

static yk_code describe(size_t n, const yk_saved *t, const char **name, const yk_desc **desc, char **header) {
  for (size_t i = 0; i < n; i++) {
    name[i] = t[i].name;
    desc[i] = yk_tensor_desc(t[i].tensor);
  }
  return yk__st_make(n, name, desc, 0, NULL, header);
}

static yk_code put_file(const char *path, const char *header, size_t n, const yk_saved *t, yk_piece *piece) {
  uint8_t length[YK__ST_LENGTH];
  yk__st_put_length(strlen(header), length);
  piece[0] = (yk_piece){ length, sizeof length };
  piece[1] = (yk_piece){ header, strlen(header) };
  for (size_t i = 0; i < n; i++) piece[2 + i] = (yk_piece){ yk_tensor_data(t[i].tensor), yk_tensor_bytes(t[i].tensor) };
  return yk__disk_write(path, n + 2, piece);
}

yk_code yk__safetensors_write(const char *path, size_t n, const yk_saved *tensors) {
  char *header = NULL;
  YK_TRY(check(n, tensors));
  const char **name = yk__calloc(n + 1, sizeof *name);
  const yk_desc **desc = yk__calloc(n + 1, sizeof *desc);
  yk_piece *piece = yk__calloc(n + 2, sizeof *piece);
  yk_code rc = name != NULL && desc != NULL && piece != NULL ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) rc = describe(n, tensors, name, desc, &header);
  if (rc == YK_OK) rc = put_file(path, header, n, tensors, piece);
  yk__free(name);
  yk__free(desc);
  yk__free(piece);
  yk__free(header);
  return rc;
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

struct yk_safetensors {
  uint8_t *file;                     /* the whole of it */
  size_t bytes, data;                /* its size; where the tensors begin */
  yk_st_header header;
};

/* The value of a checksum that stands in the header's text, eight digits, or NULL. A name or a value cannot hold its key, since
 * the quotes would have been escaped. */
static const char *find_sum(const char *header, size_t n, const char *key) {
  size_t k = strlen(key);
  const char *at = n > k + 10 ? memmem(header, n - 10, key, k) : NULL;
  return at != NULL && at[k] == ':' && at[k + 1] == '"' && at[k + 10] == '"' ? at + k + 2 : NULL;
}

static yk_code judge(uint32_t found, const char *said, const char *what) {
  char text[9];
  snprintf(text, sizeof text, "%08x", (unsigned)found);
  if (memcmp(text, said, 8) == 0) return YK_OK;
  return YK_FAIL(ECORRUPT, "the checksum of its %s is %s, but it should be %.8s: the file was altered or is not complete", what, text,
                 said);
}

uint32_t yk__st_header_sum(const uint8_t length[YK__ST_LENGTH], const char *header, size_t n, const char *digits) {
  size_t before = (size_t)(digits - header);
  uint32_t sum = yk__crc32c(0, length, YK__ST_LENGTH);
  sum = yk__crc32c(sum, header, before);
  sum = yk__crc32c(sum, "00000000", 8);
  return yk__crc32c(sum, header + before + 8, n - before - 8);
}

/* Checksums, where the file has some: of the header before it is understood, of the data if they are all there. */
static yk_code check_sums(const yk_safetensors *s) {
  const char *header = (const char *)s->file + YK__ST_LENGTH;
  size_t n = s->data - YK__ST_LENGTH;
  const char *head = find_sum(header, n, "\"" YK__ST_HEADER_SUM "\""), *data = find_sum(header, n, "\"" YK__ST_DATA_SUM "\"");
  if (head != NULL) YK_TRY(judge(yk__st_header_sum(s->file, header, n, head), head, "header"));
  if (data != NULL) YK_TRY(judge(yk__crc32c(0, s->file + s->data, s->bytes - s->data), data, "data"));
  return YK_OK;
}

/* A note of ours without the checksums: one of their keys was altered. */
static yk_code check_notes(const yk_safetensors *s) {
  bool ours = false;
  for (uint32_t i = 0; i < s->header.nnotes; i++) ours |= strncmp(s->header.note[i].key, "yoke.", 5) == 0;
  if (!ours || (yk__st_note(&s->header, YK__ST_HEADER_SUM) != NULL && yk__st_note(&s->header, YK__ST_DATA_SUM) != NULL)) return YK_OK;
  return YK_FAIL(ECORRUPT, "its header lacks a checksum: the file was altered");
}

static yk_code read_header(yk_safetensors *s) {
  uint64_t length = 0;
  if (s->bytes < YK__ST_LENGTH) return YK_FAIL(ECORRUPT, "%zu bytes are too few for a safetensors file", s->bytes);
  for (int i = 0; i < YK__ST_LENGTH; i++) length |= (uint64_t)s->file[i] << 8 * i;
  if (length > MAX_HEADER || length > s->bytes - YK__ST_LENGTH)
    return YK_FAIL(ECORRUPT, "the header says it has %llu bytes, the file has %zu; it is cut off or no safetensors file",
                   (unsigned long long)length,
                   s->bytes - YK__ST_LENGTH);
  s->data = YK__ST_LENGTH + (size_t)length;
  YK_TRY(check_sums(s));
  YK_TRY(yk__st_parse((const char *)s->file + YK__ST_LENGTH, (size_t)length, &s->header));
  return check_notes(s);
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
  yk_code rc = yk__disk_read(path, &s->file, &s->bytes);
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

const char *yk__safetensors_note(const yk_safetensors *f, const char *key) {
  return yk__st_note(&f->header, key);
}

size_t yk__safetensors_bytes(const yk_safetensors *f) {
  return f->bytes;
}

const void *yk__safetensors_data(const yk_safetensors *f, const char *name) {
  uint32_t i;
  return yk__map_get(&f->header.index, name, &i) ? f->file + f->data + f->header.entry[i].begin : NULL;
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
