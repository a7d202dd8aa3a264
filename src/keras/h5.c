/*
 * h5.c - see h5.h.
 *
 * What the library would print goes into our messages instead: the innermost line of its error stack.
 */
#include "keras/h5.h"
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "base/thread.h"
#include "keras/h5_image.h"
#include "tensor/desc.h"

struct yk_h5 { hid_t id; const char *path; yk_h5_image *image; };      /* path: the image's name */

enum { MAX_TEXT = 1 << 28, MAX_TEXTS = 1 << 20 };

_Atomic uint32_t yk__h5_lock;

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *arg) {
  (void)n;
  if (e->desc != NULL && e->desc[0] != '\0') snprintf(arg, YK__H5_WHY, ": %.199s", e->desc);
  return 0;
}

char *yk__h5_why(char buf[YK__H5_WHY]) {
  buf[0] = '\0';
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, buf);
  H5Eclear2(H5E_DEFAULT);
  return buf;
}

/* The library's reason, in front of which the caller says what failed. */
static yk_code fail(const yk_h5 *f, yk_code code, const char *path, const char *what) {
  char why[YK__H5_WHY];
  return yk__fail(code, __FILE__, __LINE__, "%s: %s: %s%s", f->path, path, what, yk__h5_why(why));
}

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

/* image is taken over. */
static yk_code open_image(yk_h5_image *image, yk_h5 **out) {
  yk_h5 *f = yk__calloc(1, sizeof *f);
  if (f == NULL) return yk__h5_image_drop(image), YK_ENOMEM;
  f->image = image;
  f->path = image->name;
  yk__lock(&yk__h5_lock);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  f->id = yk__h5_image_open(image);
  yk_code rc = f->id >= 0 ? YK_OK : fail(f, YK_ECORRUPT, "/", "the file cannot be read");
  yk__unlock(&yk__h5_lock);
  if (rc == YK_OK) return *out = f, YK_OK;
  yk__h5_image_drop(image);
  yk__free(f);
  return rc;
}

yk_code yk__h5_open(const char *path, yk_h5 **out) {
  yk_h5_image *image;
  YK_TRY(yk__h5_image_read(path, &image));
  return open_image(image, out);
}

yk_code yk__h5_open_bytes(const char *name, void *bytes, size_t n, yk_h5 **out) {
  yk_h5_image *image;
  YK_TRY(yk__h5_image_of(name, bytes, n, &image));
  return open_image(image, out);
}

const char *yk__h5_name(const yk_h5 *f) { return f->path; }

void yk__h5_close(yk_h5 *f) {
  if (f == NULL) return;
  yk__lock(&yk__h5_lock);
  H5Fclose(f->id);
  yk__unlock(&yk__h5_lock);
  yk__h5_image_drop(f->image);
  yk__free(f);
}

/* Each part of the path is asked for, since the library fails where one in the middle lacks. Links that lead elsewhere are not followed: a model
 * must not make its reader open other files. */
static bool has_locked(const yk_h5 *f, const char *path) {
  char part[1024];
  H5L_info_t link;
  for (size_t n = 0; path[n] != '\0';) {
    n += strcspn(path + n, "/");
    if (n >= sizeof part) return false;
    memcpy(part, path, n);
    part[n] = '\0';
    if (n > 0 && (H5Lget_info(f->id, part, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)) return false;
    n += path[n] == '/';
  }
  return true;
}

bool yk__h5_has(const yk_h5 *f, const char *path) {
  yk__lock(&yk__h5_lock);
  bool yes = has_locked(f, path);
  H5Eclear2(H5E_DEFAULT);
  yk__unlock(&yk__h5_lock);
  return yes;
}

static herr_t begins(hid_t group, const char *name, const H5L_info_t *link, void *prefix) {
  (void)group;
  (void)link;
  return strncmp(name, prefix, strlen(prefix)) == 0;       /* not 0: ends there, and is the answer */
}

bool yk__h5_any(const yk_h5 *f, const char *prefix) {
  yk__lock(&yk__h5_lock);
  bool yes = H5Literate(f->id, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, begins, (void *)(uintptr_t)prefix) > 0;
  H5Eclear2(H5E_DEFAULT);
  yk__unlock(&yk__h5_lock);
  return yes;
}

/* ---- attributes ---------------------------------------------------------------------------------------------------------------- */

void yk__texts_free(yk_texts *t) {
  for (uint32_t i = 0; i < t->n; i++) yk__free(t->at[i]);
  yk__free(t->at);
  *t = (yk_texts){ 0 };
}

static yk_code push(yk_texts *t, const char *s, size_t n) {
  char **grown = yk__realloc(t->at, t->n + 1u, sizeof *t->at), *copy = yk__strndup(s, n);
  if (grown != NULL) t->at = grown;
  if (grown == NULL || copy == NULL) return yk__free(copy), YK_ENOMEM;
  t->at[t->n++] = copy;
  return YK_OK;
}

/* The elements of an open attribute: pointers to each, or as many characters each. */
static yk_code read_texts(const yk_h5 *f, const char *path, hid_t a, hid_t type, hssize_t n, yk_texts *out) {
  bool vary = H5Tis_variable_str(type) > 0;
  size_t width = vary ? sizeof(char *) : H5Tget_size(type);
  if (n > MAX_TEXTS || width == 0 || (size_t)n > MAX_TEXT / width)
    return fail(f, YK_ECORRUPT, path, "an attribute of unreasonable size");
  char *buffer = yk__calloc((size_t)n + 1, width);
  if (buffer == NULL) return YK_ENOMEM;
  hid_t memory = H5Tcopy(type);                            /* the character set as it is: no conversion */
  yk_code rc = H5Aread(a, memory, buffer) >= 0 ? YK_OK : fail(f, YK_ECORRUPT, path, "an attribute cannot be read");
  for (hssize_t i = 0; i < n && rc == YK_OK; i++) {
    const char *s = buffer + (size_t)i * width, *v;
    memcpy(&v, s, sizeof v * (vary ? 1 : 0));
    rc = vary ? push(out, v != NULL ? v : "", v != NULL ? strlen(v) : 0) : push(out, s, strnlen(s, width));
  }
  if (vary) {
    hid_t space = H5Aget_space(a);
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, buffer);
    H5Sclose(space);
  }
  H5Tclose(memory);
  yk__free(buffer);
  return rc;
}

/* Attribute of a group; *there: is it? A list of no elements may be of any type. */
static yk_code attribute(const yk_h5 *f, const char *path, const char *name, yk_texts *out, bool *there) {
  *there = has_locked(f, path) && H5Aexists_by_name(f->id, path, name, H5P_DEFAULT) > 0;
  H5Eclear2(H5E_DEFAULT);
  if (!*there) return YK_OK;
  hid_t a = H5Aopen_by_name(f->id, path, name, H5P_DEFAULT, H5P_DEFAULT);
  if (a < 0) return fail(f, YK_ECORRUPT, path, "an attribute cannot be opened");
  hid_t type = H5Aget_type(a), space = H5Aget_space(a);
  hssize_t n = H5Sget_simple_extent_npoints(space);
  yk_code rc = YK_OK;
  if (n < 0 || type < 0) rc = fail(f, YK_ECORRUPT, path, "an attribute has no size");
  else if (n > 0 && H5Tget_class(type) != H5T_STRING)
    rc = YK_FAIL(ECORRUPT, "%s: attribute '%s' of %s is no text", f->path, name, path);
  else if (n > 0) rc = read_texts(f, path, a, type, n, out);
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(a);
  return rc;
}

yk_code yk__h5_text(const yk_h5 *f, const char *path, const char *name, char **out) {
  yk_texts t = { 0 };
  bool there;
  yk__lock(&yk__h5_lock);
  yk_code rc = attribute(f, path, name, &t, &there);
  yk__unlock(&yk__h5_lock);
  if (rc == YK_OK && t.n > 1)
    rc = YK_FAIL(ECORRUPT, "%s: attribute '%s' of %s has %u texts; expected one", f->path, name, path, (unsigned)t.n);
  if (rc == YK_OK) {
    *out = t.n == 1 ? t.at[0] : NULL;
    if (t.n == 1) t.at[0] = NULL;
  }
  yk__texts_free(&t);
  return rc;
}

static yk_code texts_locked(const yk_h5 *f, const char *path, const char *name, yk_texts *out) {
  bool there;
  char part[80];
  YK_TRY(attribute(f, path, name, out, &there));
  for (unsigned i = 0; !there || i > 0; i++) {             /* split: name0, name1, ... until one lacks */
    snprintf(part, sizeof part, "%.60s%u", name, i);
    YK_TRY(attribute(f, path, part, out, &there));
    if (!there) break;
  }
  return YK_OK;
}

yk_code yk__h5_texts(const yk_h5 *f, const char *path, const char *name, yk_texts *out) {
  yk_texts t = { 0 };
  yk__lock(&yk__h5_lock);
  yk_code rc = texts_locked(f, path, name, &t);
  yk__unlock(&yk__h5_lock);
  if (rc == YK_OK) *out = t;
  else yk__texts_free(&t);
  return rc;
}

/* ---- data sets ------------------------------------------------------------------------------------------------------------------- */

/* Are the numbers in this file, and readable without code that is loaded for them? */
static bool is_plain(hid_t d) {
  hid_t made = H5Dget_create_plist(d);
  bool plain = made >= 0 && H5Pget_layout(made) != H5D_VIRTUAL && H5Pget_external_count(made) == 0;
  for (int i = 0, n = plain ? H5Pget_nfilters(made) : 0; i < n && plain; i++) {
    unsigned flags;
    size_t nothing = 0;
    H5Z_filter_t filter = H5Pget_filter2(made, (unsigned)i, &flags, &nothing, NULL, 0, NULL, NULL);
    plain = filter >= 0 && filter < H5Z_FILTER_RESERVED;
  }
  if (made >= 0) H5Pclose(made);
  return plain;
}

/* What a data set becomes here. */
static yk_code describe(const yk_h5 *f, const char *path, hid_t d, yk_desc *out) {
  hsize_t dim[H5S_MAX_RANK];
  hid_t space = H5Dget_space(d), type = H5Dget_type(d);
  int rank = H5Sget_simple_extent_ndims(space);
  H5T_class_t class = H5Tget_class(type);
  size_t bytes = H5Tget_size(type);
  yk_shape s = { .rank = rank < 0 ? 0 : (uint32_t)rank };
  bool good = rank >= 0 && rank <= YK_MAX_RANK && (class == H5T_FLOAT || class == H5T_INTEGER);
  if (good) H5Sget_simple_extent_dims(space, dim, NULL);
  for (int i = 0; good && i < rank; i++) s.dim[i] = (int64_t)dim[i];
  H5Sclose(space);
  H5Tclose(type);
  if (!good) return fail(f, YK_ECORRUPT, path, "no numbers of at most 8 dimensions");
  if (!is_plain(d))
    return YK_FAIL(ECORRUPT, "%s: %s is kept outside the file or packed in a way of its own; a model has its weights in itself",
                   f->path, path);
  yk_dtype dtype = class == H5T_FLOAT ? YK_F32 : bytes > 4 ? YK_I64 : YK_I32;
  if (yk__shape_check(dtype, &s, 0) != YK_OK) return YK_FAIL(ECORRUPT, "%s: %s has impossible dimensions", f->path, path);
  *out = yk__desc(dtype, s);
  return YK_OK;
}

static void give_back(void *data, void *image) {
  (void)data;
  yk__h5_image_drop(image);
}

/* Numbers that lie in the file as they do in memory are lent from there; *out NULL: these do not. */
static yk_code borrow(const yk_h5 *f, hid_t d, hid_t memory, const yk_desc *desc, yk_tensor **out) {
  hid_t type = H5Dget_type(d);
  bool same = H5Tequal(type, memory) > 0;
  size_t each = yk_dtype_bytes((yk_dtype)desc->dtype), bytes = (size_t)yk__desc_count(desc) * each;
  haddr_t at = H5Dget_offset(d);                           /* unknown if it is in pieces, filtered, or not there */
  H5Tclose(type);
  *out = NULL;
  if (!same || bytes == 0 || at == HADDR_UNDEF || at % each != 0 || at > f->image->n || bytes > f->image->n - at) return YK_OK;
  yk_code rc = yk_tensor_wrap((yk_dtype)desc->dtype, yk__desc_shape(desc), f->image->bytes + at, give_back, f->image, out);
  if (rc == YK_OK) yk__h5_image_ref(f->image);
  return rc;
}

static yk_code tensor_locked(const yk_h5 *f, const char *path, hid_t d, yk_tensor **out) {
  yk_desc desc;
  YK_TRY(describe(f, path, d, &desc));
  yk_tensor *t = NULL;
  hid_t memory = desc.dtype == YK_F32 ? H5T_NATIVE_FLOAT : desc.dtype == YK_I64 ? H5T_NATIVE_INT64 : H5T_NATIVE_INT32;
  YK_TRY(borrow(f, d, memory, &desc, &t));
  if (t != NULL) return *out = t, YK_OK;
  YK_TRY(yk__tensor_unset((yk_dtype)desc.dtype, yk__desc_shape(&desc), &t));
  if (yk_tensor_count(t) > 0 && H5Dread(d, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, yk_tensor_data(t)) < 0) {
    yk_tensor_free(t);
    return fail(f, YK_ECORRUPT, path, "a data set cannot be read");
  }
  *out = t;
  return YK_OK;
}

static hid_t find_set(const yk_h5 *f, const char *path) { return has_locked(f, path) ? H5Dopen2(f->id, path, H5P_DEFAULT) : -1; }

yk_code yk__h5_desc(const yk_h5 *f, const char *path, yk_desc *out) {
  yk__lock(&yk__h5_lock);
  hid_t d = find_set(f, path);
  yk_code rc = d < 0 ? fail(f, YK_ECORRUPT, path, "there is no such data set") : describe(f, path, d, out);
  if (d >= 0) H5Dclose(d);
  yk__unlock(&yk__h5_lock);
  return rc;
}

yk_code yk__h5_tensor(const yk_h5 *f, const char *path, yk_tensor **out) {
  yk__lock(&yk__h5_lock);
  hid_t d = find_set(f, path);
  yk_code rc = d < 0 ? fail(f, YK_ECORRUPT, path, "there is no such data set") : tensor_locked(f, path, d, out);
  if (d >= 0) H5Dclose(d);
  yk__unlock(&yk__h5_lock);
  return rc;
}
