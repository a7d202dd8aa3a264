/*
 * h5_write.c - Keras's side of HDF5, written: a file is put together in memory and goes to the disk as a whole.
 *
 * Texts are of variable length, so that their size has no limit; lists of texts are of fixed length, as Keras 2 writes them, and split
 * where they would not fit an object's header; an empty list is one of no numbers, as h5py makes it.
 */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/thread.h"
#include "keras/h5.h"
#include "store/disk.h"

enum { MOST_LIST = 64512, GROW = 1 << 20 };

struct yk_h5_out { hid_t id; };

static yk_code fail(const char *where, const char *what) {
  char why[YK__H5_WHY];
  return YK_FAIL(EIO, "a file of HDF5: %s: %s%s", where, what, yk__h5_why(why));
}

yk_code yk__h5_new(yk_h5_out **out) {
  yk_h5_out *f = yk__calloc(1, sizeof *f);
  if (f == NULL) return YK_ENOMEM;
  yk__lock(&yk__h5_lock);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, GROW, false);
  f->id = H5Fcreate("memory.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  yk_code rc = f->id >= 0 ? YK_OK : fail("/", "it cannot be made");
  yk__unlock(&yk__h5_lock);
  if (rc == YK_OK) *out = f;
  else yk__free(f);
  return rc;
}

void yk__h5_drop(yk_h5_out *f) {
  if (f == NULL) return;
  yk__lock(&yk__h5_lock);
  H5Fclose(f->id);
  yk__unlock(&yk__h5_lock);
  yk__free(f);
}

/* Groups in the middle of a path are made where they lack. */
static hid_t with_parents(void) {
  hid_t p = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(p, 1);
  return p;
}

yk_code yk__h5_put_group(yk_h5_out *f, const char *path) {
  yk__lock(&yk__h5_lock);
  hid_t links = with_parents(), g = H5Gcreate2(f->id, path, links, H5P_DEFAULT, H5P_DEFAULT);
  yk_code rc = g >= 0 ? YK_OK : fail(path, "the group cannot be made");
  if (g >= 0) H5Gclose(g);
  H5Pclose(links);
  yk__unlock(&yk__h5_lock);
  return rc;
}

static yk_code put_attribute(yk_h5_out *f, const char *path, const char *name, hid_t type, hid_t space, const void *data) {
  hid_t a = H5Acreate_by_name(f->id, path, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  yk_code rc = a >= 0 && (data == NULL || H5Awrite(a, type, data) >= 0) ? YK_OK : fail(path, name);
  if (a >= 0) H5Aclose(a);
  H5Sclose(space);
  return rc;
}

yk_code yk__h5_put_text(yk_h5_out *f, const char *path, const char *name, const char *text) {
  yk__lock(&yk__h5_lock);
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  yk_code rc = put_attribute(f, path, name, type, H5Screate(H5S_SCALAR), &text);
  H5Tclose(type);
  yk__unlock(&yk__h5_lock);
  return rc;
}

/* Texts [from, to) as an array of fixed width. */
static yk_code put_some(yk_h5_out *f, const char *path, const char *name, const yk_texts *t, uint32_t from, uint32_t to,
                        size_t width) {
  hsize_t n = to - from;
  char *buffer = yk__calloc(n + 1, width);
  if (buffer == NULL) return YK_ENOMEM;
  for (uint32_t i = from; i < to; i++) memcpy(buffer + (size_t)(i - from) * width, t->at[i], strlen(t->at[i]));
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, width);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  yk_code rc = put_attribute(f, path, name, type, H5Screate_simple(1, &n, NULL), buffer);
  H5Tclose(type);
  yk__free(buffer);
  return rc;
}

static yk_code put_texts_locked(yk_h5_out *f, const char *path, const char *name, const yk_texts *t) {
  size_t width = 1;
  char part[80];
  for (uint32_t i = 0; i < t->n; i++)
    if (strlen(t->at[i]) > width) width = strlen(t->at[i]);
  if (width > MOST_LIST) return YK_FAIL(EINVAL, "%s of %s: a name of %zu characters; at most %d", name, path, width, MOST_LIST);
  if (t->n == 0) return put_attribute(f, path, name, H5T_IEEE_F64LE, H5Screate_simple(1, (hsize_t[]){ 0 }, NULL), NULL);
  uint32_t parts = 1;                                      /* the fewest of nearly the same size; the first ones are one longer */
  while (((size_t)t->n + parts - 1) / parts * width > MOST_LIST) parts++;
  if (parts == 1) return put_some(f, path, name, t, 0, t->n, width);
  for (uint32_t i = 0, at = 0; i < parts; i++) {
    uint32_t n = t->n / parts + (i < t->n % parts);
    snprintf(part, sizeof part, "%.60s%u", name, (unsigned)i);
    YK_TRY(put_some(f, path, part, t, at, at + n, width));
    at += n;
  }
  return YK_OK;
}

yk_code yk__h5_put_texts(yk_h5_out *f, const char *path, const char *name, const yk_texts *t) {
  yk__lock(&yk__h5_lock);
  yk_code rc = put_texts_locked(f, path, name, t);
  yk__unlock(&yk__h5_lock);
  return rc;
}

yk_code yk__h5_put_tensor(yk_h5_out *f, const char *path, const yk_tensor *t) {
  const yk_desc *d = yk_tensor_desc(t);
  hsize_t dim[YK_MAX_RANK];
  hid_t type = d->dtype == YK_F32   ? H5T_NATIVE_FLOAT
               : d->dtype == YK_I64 ? H5T_NATIVE_INT64
               : d->dtype == YK_I32 ? H5T_NATIVE_INT32
                                    : -1;
  if (type < 0)
    return YK_FAIL(EUNSUPPORTED, "%s is %s; Keras's files have float32, int32 and int64 here", path,
                   yk_dtype_name((yk_dtype)d->dtype));
  for (uint32_t i = 0; i < d->rank; i++) dim[i] = (hsize_t)d->dim[i];
  yk__lock(&yk__h5_lock);
  hid_t links = with_parents(), space = d->rank > 0 ? H5Screate_simple(d->rank, dim, NULL) : H5Screate(H5S_SCALAR);
  hid_t set = H5Dcreate2(f->id, path, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  bool good = set >= 0 && (yk_tensor_count(t) == 0 || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, yk_tensor_data(t)) >= 0);
  yk_code rc = good ? YK_OK : fail(path, "the data set cannot be written");
  if (set >= 0) H5Dclose(set);
  H5Sclose(space);
  H5Pclose(links);
  yk__unlock(&yk__h5_lock);
  return rc;
}

/* All bytes of the file, the caller's. */
static yk_code image(yk_h5_out *f, char **out, size_t *bytes) {
  ssize_t n = H5Fflush(f->id, H5F_SCOPE_LOCAL) >= 0 ? H5Fget_file_image(f->id, NULL, 0) : -1;
  char *p = n > 0 ? yk__alloc((size_t)n) : NULL;
  if (n > 0 && p == NULL) return YK_ENOMEM;
  if (n <= 0 || H5Fget_file_image(f->id, p, (size_t)n) != n) {
    yk__free(p);
    return fail("/", "it cannot be put together");
  }
  *out = p;
  *bytes = (size_t)n;
  return YK_OK;
}

yk_code yk__h5_bytes(yk_h5_out *f, char **out, size_t *n) {
  yk__lock(&yk__h5_lock);
  yk_code rc = image(f, out, n);
  yk__unlock(&yk__h5_lock);
  return rc;
}

yk_code yk__h5_save(yk_h5_out *f, const char *path) {
  char *all = NULL;
  size_t n = 0;
  yk_code rc = yk__h5_bytes(f, &all, &n);
  if (rc == YK_OK) rc = yk__disk_write(path, 1, &(yk_piece){ all, n });
  yk__free(all);
  return rc;
}
