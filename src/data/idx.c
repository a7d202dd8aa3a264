/*
 * idx.c - the IDX files of MNIST: a magic number with type and rank, dimensions, numbers; all big end first. Gzip is accepted.
 *
 * Labels have a file of their own whose name differs in "labels" for "images" and "idx1" for "idx3". The size of a file must be
 * exactly what its header declares, and a compressed one is inflated only when its size is possible.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/arrays.h"
#include "data/formats.h"

enum { HEAD = 4, DIM = 4 };

bool yk__name_is_idx(const char *name) {
  return strstr(name, "-idx") != NULL || strstr(name, ".idx") != NULL;
}

static bool is_pictures(const char *name) {
  return yk__name_is_idx(name) && strstr(name, "images") != NULL;
}

/* `n` bytes from the front, of a file that may be compressed. */
static yk_code read_front(const yk_file *f, bool gzip, void *out, int64_t n) {
  if (gzip) return yk__inflate_head(&(yk_packed){ .f = f, .packed = f->bytes }, out, n);
  if (f->bytes < n) return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " bytes, too few for an IDX header", f->path, f->bytes);
  return yk__file_read(f, 0, out, n);
}

static yk_code read_header(yk_array *a, bool gzip) {
  static const int kind[] = { [8] = YK_S_U8, [9] = YK_S_I8, [11] = YK_S_I16, [12] = YK_S_I32, [13] = YK_S_F32, [14] = YK_S_F64 };
  uint8_t head[HEAD + DIM * YK_MAX_RANK];
  YK_TRY(read_front(&a->file, gzip, head, HEAD));
  if (head[0] != 0 || head[1] != 0 || head[2] < 8 || head[2] > 14 || head[2] == 10)
    return YK_FAIL(ECORRUPT, "'%s' begins with %02x %02x %02x %02x at offset 0; an IDX file begins with 00 00, a type (08 09 0b 0c 0d 0e) and a rank",
                   a->file.path, head[0], head[1], head[2], head[3]);
  if (head[3] < 1 || head[3] > YK_MAX_RANK)
    return YK_FAIL(ECORRUPT, "'%s' has rank %u at offset 3; expected 1 to %d", a->file.path, head[3], YK_MAX_RANK);
  a->stored = (yk_stored)kind[head[2]];
  a->rank = head[3];
  a->at = HEAD + DIM * a->rank;
  a->swapped = yk__stored_bytes(a->stored) > 1;
  YK_TRY(read_front(&a->file, gzip, head, a->at));
  for (int k = 0; k < a->rank; k++) a->dim[k] = yk__be32(head + HEAD + DIM * k);
  return YK_OK;
}

static yk_code check_size(const yk_array *a, bool gzip) {
  int64_t bytes = yk__array_bytes(a);
  if (bytes < 0) return YK_FAIL(ECORRUPT, "'%s': the dimensions at offset %d are impossibly large", a->file.path, HEAD);
  if (gzip || a->at + bytes == a->file.bytes) return YK_OK;
  return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " bytes where its header declares %" PRId64 "%s", a->file.path, a->file.bytes,
                 a->at + bytes,
                 a->at + bytes > a->file.bytes ? "; it is cut off" : "");
}

static yk_code read_array(const char *path, yk_array *out) {
  yk_array a = { 0 };
  YK_TRY(yk__file_open(path, &a.file));
  bool gzip = yk__is_gzip(&a.file);
  yk_code rc = read_header(&a, gzip);
  if (rc == YK_OK) rc = check_size(&a, gzip);
  if (rc == YK_OK && gzip) {
    rc = yk__inflate(&(yk_packed){ .f = &a.file, .packed = a.file.bytes }, &a.block, a.at + yk__array_bytes(&a));
    if (rc == YK_OK) a.data = (const uint8_t *)a.block + a.at;
    yk__file_rest(&a.file);
  }
  if (rc == YK_OK) *out = a;
  else yk__array_close(&a);
  return rc;
}

/* Every `from` in `text` becomes `to`, which is as long. */
static void replace(char *text, const char *from, const char *to) {
  for (char *p = text; (p = strstr(p, from)) != NULL; p += strlen(to)) memcpy(p, to, strlen(to));
}

/* The path of the labels that belong to pictures, with or without ".gz"; false: there are none. */
static bool find_labels(const char *pictures, char path[YK__PATH_BYTES]) {
  const char *slash = strrchr(pictures, '/');
  size_t folder = slash != NULL ? (size_t)(slash - pictures) + 1 : 0, n;
  if (snprintf(path, YK__PATH_BYTES - 4, "%s", pictures) >= YK__PATH_BYTES - 4) return false;
  replace(path + folder, "images", "labels");
  replace(path + folder, "idx3", "idx1");
  replace(path + folder, "idx4", "idx1");
  if (strcmp(path, pictures) == 0) return false;
  if (yk__path_kind(path) != 0) return true;
  n = strlen(path);
  if (yk__ends_with(path, ".gz")) path[n - 3] = '\0';
  else memcpy(path + n, ".gz", sizeof ".gz");
  return yk__path_kind(path) != 0;
}

static yk_code open_pair(const yk_ask *a, const char *pictures, yk_dataset **out) {
  yk_column column[2] = { { .name = "x" }, { .name = "label" } };
  char labels[YK__PATH_BYTES];
  uint32_t n = 1;
  if (strstr(pictures, "labels") != NULL) memcpy(column[0].name, "label", sizeof "label");
  YK_TRY(read_array(pictures, &column[0].array));
  if (find_labels(pictures, labels)) {
    yk_code rc = read_array(labels, &column[n++].array);
    if (rc != YK_OK) {
      yk__array_close(&column[0].array);
      return rc;
    }
  }
  return yk__arrays_take("idx", n, column, &a->o, a->split, out);
}

yk_code yk__open_idx(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask;
  yk_name_list files = { 0 };
  YK_TRY(yk__pick_files(&a, is_pictures, "IDX file (such as train-images-idx3-ubyte)", &files));
  yk_code rc = files.n == 1 || (files.n == 2 && yk__ends_with(files.name[1], ".gz"))
      ? open_pair(&a, files.name[0], out)
      : YK_FAIL(EINVAL, "'%s' has several IDX files of pictures, '%s' and '%s'; name one", a.path, files.name[0], files.name[1]);
  yk__name_list_free(&files);
  return rc;
}
