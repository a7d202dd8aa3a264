/*
 * record_write.c - TFRecord files, and tf.Example records for them.
 *
 * A file is written under another name and renamed when it is whole and on disk, so that a reader never sees half of one. An example
 * is a map from names to lists, written as messages inside each other.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/frame.h"
#include "base/proto.h"
#include "base/str.h"
#include "data/dataset.h"
#include "data/record.h"

struct yk_record_writer {
  char *path, *temporary;
  FILE *f;
  yk_code failed;                  /* of an earlier write */
  yk_str example;                  /* under construction */
};

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

/* Free it; `whole`: the file has its name already. */
static void release(yk_record_writer *w, bool whole) {
  if (w->f != NULL) fclose(w->f);
  if (w->f != NULL && !whole) remove(w->temporary);
  yk__str_free(&w->example);
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
  uint8_t head[YK__FRAME_HEAD], tail[YK__FRAME_TAIL];
  if (w == NULL || (bytes == NULL && n > 0)) return YK_FAIL(EINVAL, "yk_record_write needs a writer and the bytes of a record");
  if (w->failed != YK_OK) return YK_FAIL(EIO, "'%s': an earlier write failed", w->path);
  yk__frame_head(n, head);
  yk__frame_tail(bytes, n, tail);
  if (fwrite(head, 1, sizeof head, w->f) == sizeof head && (n == 0 || fwrite(bytes, 1, n, w->f) == n) &&
      fwrite(tail, 1, sizeof tail, w->f) == sizeof tail)
    return YK_OK;
  w->failed = YK_FAIL(EIO, "writing '%s' failed: %s", w->path, strerror(errno));
  return w->failed;
}

/* ---- tf.Example: { features = 1: { feature = 1, repeated: { key = 1, value = 2: { bytes_list = 1 | float_list = 2 | int64_list = 3:
 * { value = 1 } } } } }, floats and integers packed ---- */

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

static void put_float(yk_str *s, float v) {
  uint32_t bits;
  char b[4];
  memcpy(&bits, &v, sizeof bits);
  for (int i = 0; i < 4; i++) b[i] = (char)(bits >> 8 * i);
  yk__str_put(s, b, sizeof b);
}

/* The list of a feature's values, in field `value` of a Feature. */
static void put_list(yk_str *s, const yk_feature *f, const void *value) {
  enum { BYTES = 1, FLOATS = 2, INTS = 3 };
  bool real = f->dtype == YK_F32 || f->dtype == YK_F64;
  int64_t n = 1;
  for (uint32_t k = 0; k < f->shape.rank; k++) n *= f->shape.dim[k];
  size_t list = yk__proto_begin(s, f->dtype == YK_U8 ? BYTES : real ? FLOATS : INTS);
  if (f->dtype == YK_U8) {
    yk__proto_bytes(s, 1, value, (size_t)n);
  } else {
    size_t packed = yk__proto_begin(s, 1);
    for (int64_t i = 0; i < n; i++)
      if (real) put_float(s, real_at(f->dtype, value, i));
      else yk__proto_varint(s, (uint64_t)whole_at(f->dtype, value, i));
    yk__proto_end(s, packed);
  }
  yk__proto_end(s, list);
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
  yk_str *s = &w->example;
  s->n = 0;
  size_t features = yk__proto_begin(s, 1);
  for (size_t i = 0; i < n; i++) {
    size_t entry = yk__proto_begin(s, 1);
    yk__proto_text(s, 1, feature[i].name);
    size_t one = yk__proto_begin(s, 2);
    put_list(s, &feature[i], value[i]);
    yk__proto_end(s, one);
    yk__proto_end(s, entry);
  }
  yk__proto_end(s, features);
  if (!s->failed) return yk_record_write(w, s->s, s->n);
  yk__str_free(s);
  return YK_FAIL(ENOMEM, "no memory for a record of '%s'", w->path);
}
