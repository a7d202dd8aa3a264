/*
 * h5_image.c - see h5_image.h.
 *
 * The library would copy an image; its hooks for images let it have this very memory instead. Bytes are looked through while they are
 * in the cache from being read.
 */
#include "keras/h5_image.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "data/file.h"

enum { CHUNK = 1 << 18, BLOCK = 1 << 10, ALIGN = 64, HEAP_HEAD = 16 };

static const uint8_t MARK[8] = { 'G', 'C', 'O', 'L', 1, 0, 0, 0 };         /* a heap begins so */

typedef struct heap_list { size_t *at; uint32_t n, cap; } heap_list;

/* ---- heaps of texts ------------------------------------------------------------------------------------------------------------- */

static uint64_t number_at(const uint8_t *p, int bytes) {
  uint64_t x = 0;
  for (int i = 0; i < bytes; i++) x |= (uint64_t)p[i] << 8 * i;
  return x;
}

/* The library goes round for ever in a heap of texts whose free space is said to be 0 bytes: does one get to the end of this one? */
static bool heap_ends(const uint8_t *heap, uint64_t left) {
  uint64_t size = number_at(heap + 8, 8), at = HEAP_HEAD;
  if (size > left) return false;
  while (at + HEAP_HEAD <= size) {
    uint64_t object = number_at(heap + at, 2), bytes = number_at(heap + at + 8, 8);
    if (bytes > size) return false;
    uint64_t step = object != 0 ? HEAP_HEAD + (bytes + 7) / 8 * 8 : bytes;
    if (step < HEAP_HEAD) return false;
    at += step;
  }
  return true;
}

/* May there be a mark among these bytes? Its first two letters are looked for, which compilers turn into a few instructions for many bytes. */
static bool may_have_mark(const uint8_t *p, size_t n) {
  uint8_t any = 0;
  for (size_t i = 0; i < n; i++) any |= (uint8_t)((p[i] == MARK[0]) & (p[i + 1] == MARK[1]));
  return any != 0;
}

/* Positions in [from, to) where a heap begins, at the end of the list. One byte behind `to` is there, too. */
static yk_code find_heaps(const yk_h5_image *i, size_t from, size_t to, heap_list *out) {
  for (size_t b = from; b < to; b += BLOCK) {
    const uint8_t *p = i->bytes + b, *end = to - b < BLOCK ? i->bytes + to : p + BLOCK;
    if (!may_have_mark(p, (size_t)(end - p))) continue;
    while (p < end && (p = memchr(p, MARK[0], (size_t)(end - p))) != NULL) {
      size_t at = (size_t)(p++ - i->bytes);
      if (i->bytes[at + 1] == MARK[1] && !YK_PUSH(out->at, out->n, out->cap, at)) return YK_ENOMEM;
    }
  }
  return YK_OK;
}

/* What only begins like one is passed over. */
static bool heaps_end(const yk_h5_image *i, const heap_list *l) {
  for (uint32_t k = 0; k < l->n; k++) {
    size_t at = l->at[k], left = i->n - at;
    if (left >= HEAP_HEAD && memcmp(i->bytes + at, MARK, sizeof MARK) == 0 && !heap_ends(i->bytes + at, left)) return false;
  }
  return true;
}

/* ---- bytes --------------------------------------------------------------------------------------------------------------------- */

/* What a file looks like that is none of HDF5. */
static yk_code foreign(const char *name, const uint8_t *b, size_t n) {
  const char *like = n > 0 && b[0] == '<' ? ", but begins like a web page: was it downloaded through a browser?"
                     : n >= 4 && memcmp(b, "PK\3\4", 4) == 0  ? ", but a zip archive"
                     : n >= 4 && memcmp(b, "\x89HDF", 4) == 0 ? "; it begins like one and is cut short or damaged"
                                                              : "";
  if (n == 0) return YK_FAIL(ECORRUPT, "'%s' is empty; expected a file of HDF5", name);
  return YK_FAIL(ECORRUPT, "'%s' is no file of HDF5%s", name, like);
}

/* Its mark is at 0, or at 512, 1024, 2048, ... behind what somebody put in front of it. */
static bool is_hdf5(const uint8_t *b, size_t n) {
  static const uint8_t mark[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
  for (size_t at = 0; n >= sizeof mark && at <= n - sizeof mark; at = at == 0 ? 512 : at * 2)
    if (memcmp(b + at, mark, sizeof mark) == 0) return true;
  return false;
}

/* Fills the image by `f`, or finds it filled. */
static yk_code look_through(yk_h5_image *i, const yk_file *f) {
  heap_list l = { 0 };
  yk_code rc = YK_OK;
  for (size_t at = 0; at < i->n && rc == YK_OK; at += CHUNK) {
    size_t n = i->n - at < CHUNK ? i->n - at : CHUNK;
    if (f != NULL) rc = yk__file_read(f, (int64_t)at, i->bytes + at, (int64_t)n);
    if (rc == YK_OK) rc = find_heaps(i, at > 0 ? at - 1 : 0, at + n - 1, &l);
  }
  if (rc == YK_OK && !heaps_end(i, &l)) rc = YK_FAIL(ECORRUPT, "'%s' is damaged: a heap of texts has no end", i->name);
  yk__free(l.at);
  return rc;
}

/* Everything is taken over. */
static yk_code finish(yk_h5_image image, const yk_file *f, yk_h5_image **out) {
  yk_h5_image *i = yk__alloc(sizeof *i);
  if (i == NULL || image.bytes == NULL || image.name == NULL) {
    yk__free(i);
    yk__free(image.bytes);
    yk__free(image.name);
    return YK_ENOMEM;
  }
  *i = image;
  atomic_init(&i->refs, 1);
  yk_code rc = look_through(i, f);
  if (rc == YK_OK && !is_hdf5(i->bytes, i->n)) rc = foreign(i->name, i->bytes, i->n);
  if (rc == YK_OK) *out = i;
  else yk__h5_image_drop(i);
  return rc;
}

yk_code yk__h5_image_read(const char *path, yk_h5_image **out) {
  yk_file f;
  YK_TRY(yk__file_open(path, &f));
  yk_code rc = finish(
      (yk_h5_image){ .bytes = yk__alloc_aligned((size_t)f.bytes + 1, ALIGN), .n = (size_t)f.bytes, .name = yk__strdup(path) }, &f,
      out);
  yk__file_close(&f);
  return rc;
}

yk_code yk__h5_image_of(const char *name, void *bytes, size_t n, yk_h5_image **out) {
  return finish((yk_h5_image){ .bytes = bytes, .n = n, .name = yk__strdup(name) }, NULL, out);
}

yk_h5_image *yk__h5_image_ref(yk_h5_image *i) {
  atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
  return i;
}

void yk__h5_image_drop(yk_h5_image *i) {
  if (atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel) != 1) return;
  yk__free(i->bytes);
  yk__free(i->name);
  yk__free(i);
}

/* ---- the library's side: what it would allocate and copy is there ------------------------------------------------------------------- */

static void *lend(size_t n, H5FD_file_image_op_t op, void *image) {
  (void)op;
  return n == ((yk_h5_image *)image)->n ? ((yk_h5_image *)image)->bytes : NULL;
}

static void *keep(void *to, const void *from, size_t n, H5FD_file_image_op_t op, void *image) {
  (void)n, (void)op, (void)image;
  return to == from ? to : NULL;
}

static void *refuse(void *p, size_t n, H5FD_file_image_op_t op, void *image) {
  (void)p, (void)n, (void)op, (void)image;
  return NULL;
}

static herr_t leave(void *p, H5FD_file_image_op_t op, void *image) {
  (void)p, (void)op, (void)image;
  return 0;
}

static void *same(void *image) { return image; }

static herr_t forget(void *image) {
  (void)image;
  return 0;
}

/* It wants a name that no file has, and takes files of one name for one file. */
hid_t yk__h5_image_open(yk_h5_image *i) {
  H5FD_file_image_callbacks_t hooks = { .image_malloc = lend, .image_memcpy = keep, .image_realloc = refuse, .image_free = leave,
                                        .udata_copy = same, .udata_free = forget, .udata = i };
  char name[64];
  hid_t how = H5Pcreate(H5P_FILE_ACCESS), file = -1;
  snprintf(name, sizeof name, "file in memory for %p", (void *)i);
  if (how >= 0 && H5Pset_fapl_core(how, 1 << 16, 0) >= 0 && H5Pset_file_image_callbacks(how, &hooks) >= 0 &&
      H5Pset_file_image(how, i->bytes, i->n) >= 0)
    file = H5Fopen(name, H5F_ACC_RDONLY, how);
  if (how >= 0) H5Pclose(how);
  return file;
}
