/*
 * record_write.c - TFRecord files, and tf.Example records for them.
 *
 * A file is written under another name and renamed when it is whole and on disk, so that a reader never sees half of one. An example
 * is a map from names to lists; a message inside another needs its length first, so each is built from the inside out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/record.h"

struct yk_record_writer {
  char *path, *temporary;
  FILE *f;
  yk_code failed;                  /* of an earlier write */
  yk_str numbers, list, feature, entry, features, example;   /* messages under construction, each inside the next */
};

static void put32(uint8_t *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static yk_code open_file(yk_record_writer *w) {
  int fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666);
  w->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  if (w->f != NULL) return YK_OK;
  int why = errno;
  if (fd >= 0) close(fd);
  return YK_FAIL(EIO, "'%s' cannot be created: %s", w->path, strerror(why));
}

yk_code yk_record_writer_open(const char *path, yk_record_writer **out) {
  yk_str name = { 0 };
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_record_writer_open needs a path and a place for the result");
  yk_record_writer *w = yk__calloc(1, sizeof *w);
  if (w == NULL) return YK_ENOMEM;
  yk__str_add(&name, "%s.tmp-%ld", path, (long)getpid());
  yk_code rc = yk__str_take(&name, &w->temporary);
  if (rc == YK_OK && (w->path = yk__strdup(path)) == NULL) rc = YK_ENOMEM;
  if (rc == YK_OK) rc = open_file(w);
  if (rc == YK_OK) *out = w;
  else yk_record_writer_drop(w);
  return rc;
}

static void drop_messages(yk_record_writer *w) {
  yk__str_free(&w->numbers);
  yk__str_free(&w->list);
  yk__str_free(&w->feature);
  yk__str_free(&w->entry);
  yk__str_free(&w->features);
  yk__str_free(&w->example);
}

/* Free it; `whole`: the file has its name already. */
static void release(yk_record_writer *w, bool whole) {
  if (w->f != NULL) fclose(w->f);
  if (w->f != NULL && !whole) remove(w->temporary);
  drop_messages(w);
  yk__free(w->path);
  yk__free(w->temporary);
  yk__free(w);
}

void yk_record_writer_drop(yk_record_writer *w) {
  if (w != NULL) release(w, false);
}

yk_code yk_record_writer_close(yk_record_writer *w) {
  yk_code rc;
  if (w == NULL) return YK_OK;
  rc = w->failed;
  if (rc != YK_OK) rc = YK_FAIL(EIO, "'%s' is not saved: a write failed", w->path);
  else if (fflush(w->f) != 0 || fsync(fileno(w->f)) != 0 || rename(w->temporary, w->path) != 0)
    rc = YK_FAIL(EIO, "'%s' cannot be saved: %s", w->path, strerror(errno));
  release(w, rc == YK_OK);
  return rc;
}

yk_code yk_record_write(yk_record_writer *w, const void *bytes, size_t n) {
  uint8_t head[YK__RECORD_HEAD], tail[YK__RECORD_TAIL];
  if (w == NULL || (bytes == NULL && n > 0)) return YK_FAIL(EINVAL, "yk_record_write needs a writer and the bytes of a record");
  if (w->failed != YK_OK) return YK_FAIL(EIO, "'%s': an earlier write failed", w->path);
  put32(head, (uint32_t)n);
  put32(head + 4, (uint32_t)((uint64_t)n >> 32));
  put32(head + 8, yk__crc32c_masked(head, 8));
  put32(tail, yk__crc32c_masked(bytes, n));
  if (fwrite(head, 1, sizeof head, w->f) == sizeof head && fwrite(bytes, 1, n, w->f) == n &&
      fwrite(tail, 1, sizeof tail, w->f) == sizeof tail)
    return YK_OK;
  w->failed = YK_FAIL(EIO, "writing '%s' failed: %s", w->path, strerror(errno));
  return w->failed;
}

/* ---- tf.Example: { features = 1: { feature = 1, repeated: { key = 1, value = 2: { bytes_list = 1 | float_list = 2 | int64_list = 3:
 * { value = 1 } } } } }, floats and integers packed ---- */

static void put_varint(yk_str *s, uint64_t v) {
  char b[10];
  size_t n = 0;
  do {
    b[n++] = (char)((v & 127) | (v > 127 ? 128 : 0));
    v >>= 7;
  } while (v > 0);
  yk__str_put(s, b, n);
}

/* A field that holds bytes: a text, packed numbers, or another message. */
static void put_bytes(yk_str *s, unsigned number, const void *p, size_t n) {
  put_varint(s, number << 3 | 2u);
  put_varint(s, n);
  yk__str_put(s, p, n);
}

static void clear(yk_str *s) {
  s->n = 0;
}

static int64_t whole_at(yk_dtype t, const void *p, int64_t i) {
  switch (t) {
    case YK_I32: return ((const int32_t *)p)[i];
    case YK_I64: return ((const int64_t *)p)[i];
    default: return ((const uint8_t *)p)[i] != 0;                 /* bool */
  }
}

static float real_at(yk_dtype t, const void *p, int64_t i) {
  return t == YK_F32 ? ((const float *)p)[i] : (float)((const double *)p)[i];
}

/* The values of a feature as the message of their list, in w->list, wrapped as a Feature in w->feature. */
static void put_values(yk_record_writer *w, const yk_feature *f, const void *value) {
  int64_t n = 1;
  for (uint32_t k = 0; k < f->shape.rank; k++) n *= f->shape.dim[k];
  clear(&w->numbers);
  clear(&w->list);
  clear(&w->feature);
  if (f->dtype == YK_U8) {
    put_bytes(&w->list, 1, value, (size_t)n);
    put_bytes(&w->feature, 1, w->list.s, w->list.n);
    return;
  }
  bool real = f->dtype == YK_F32 || f->dtype == YK_F64;
  for (int64_t i = 0; i < n && !real; i++) put_varint(&w->numbers, (uint64_t)whole_at(f->dtype, value, i));
  for (int64_t i = 0; i < n && real; i++) {
    float v = real_at(f->dtype, value, i);
    uint32_t bits;
    uint8_t b[4];
    memcpy(&bits, &v, sizeof bits);
    put32(b, bits);
    yk__str_put(&w->numbers, (const char *)b, sizeof b);
  }
  put_bytes(&w->list, 1, w->numbers.s, w->numbers.n);
  put_bytes(&w->feature, real ? 2 : 3, w->list.s, w->list.n);
}

static yk_code check_feature(const yk_feature *f, const void *value) {
  if (f->name == NULL || value == NULL) return YK_FAIL(EINVAL, "a feature needs a name and a value");
  if (f->dtype == YK_F16 || f->dtype == YK_BF16 || yk_dtype_bytes(f->dtype) == 0)
    return YK_FAIL(EINVAL, "feature '%s' is %s; a tf.Example holds f32, f64 (as f32), i64, i32, bool and u8 (as bytes)", f->name,
                   yk_dtype_name(f->dtype));
  if (f->shape.rank > YK_MAX_RANK)
    return YK_FAIL(EINVAL, "feature '%s' has rank %u; at most %d", f->name, f->shape.rank, YK_MAX_RANK);
  for (uint32_t k = 0; k < f->shape.rank; k++)
    if (f->shape.dim[k] < 0 || f->shape.dim[k] > INT32_MAX)
      return YK_FAIL(EINVAL, "feature '%s' has a dimension of %" PRId64, f->name, f->shape.dim[k]);
  return YK_OK;
}

yk_code yk_record_write_example(yk_record_writer *w, size_t n, const yk_feature *feature, const void *const *value) {
  if (w == NULL || (n > 0 && (feature == NULL || value == NULL)))
    return YK_FAIL(EINVAL, "yk_record_write_example needs a writer, features and values");
  for (size_t i = 0; i < n; i++) YK_TRY(check_feature(&feature[i], value[i]));
  clear(&w->features);
  clear(&w->example);
  for (size_t i = 0; i < n; i++) {
    put_values(w, &feature[i], value[i]);
    clear(&w->entry);
    put_bytes(&w->entry, 1, feature[i].name, strlen(feature[i].name));
    put_bytes(&w->entry, 2, w->feature.s, w->feature.n);
    put_bytes(&w->features, 1, w->entry.s, w->entry.n);
  }
  put_bytes(&w->example, 1, w->features.s, w->features.n);
  if (!w->numbers.failed && !w->list.failed && !w->feature.failed && !w->entry.failed && !w->features.failed &&
      !w->example.failed)
    return yk_record_write(w, w->example.s, w->example.n);
  drop_messages(w);
  return YK_FAIL(ENOMEM, "no memory for a record of '%s'", w->path);
}
