/*
 * archive.c - see archive.h.
 *
 * Everything is a copy of its own, with a zero behind it.
 */
#include "support/archive.h"
#include <string.h>
#include "base/alloc.h"
#include "data/zip.h"
#include "support/check.h"

static void *copy_of(const void *bytes, size_t n) {
  char *copy = malloc(n + 1);
  assert_non_null(copy);
  memcpy(copy, bytes, n);
  copy[n] = '\0';                                          /* so that texts can be searched */
  return copy;
}

static void drop(const yk_zip_part *p) {
  free((void *)(uintptr_t)p->name);
  free((void *)(uintptr_t)p->data);
}

void archive_take(archive *a, const char *path) {
  yk_file f;
  yk_zip zip = { 0 };
  *a = (archive){ 0 };
  CHECK_OK(yk__file_open(path, &f));
  CHECK_OK(yk__zip_list(&f, &zip));
  assert_true(zip.n <= ARCHIVE_MOST);
  for (; a->n < zip.n; a->n++) {
    yk_zip_member *m = &zip.m[a->n];
    void *bytes;
    CHECK_OK(yk__zip_find(&f, m));
    CHECK_OK(yk__zip_extract(&f, m, &bytes));
    a->part[a->n] = (yk_zip_part){ copy_of(m->name, strlen(m->name)), copy_of(bytes, (size_t)m->bytes), (size_t)m->bytes };
    yk__free(bytes);
  }
  yk__free(zip.m);
  yk__file_close(&f);
}

yk_zip_part *archive_part(archive *a, const char *name) {
  for (uint32_t i = 0; i < a->n; i++)
    if (strcmp(a->part[i].name, name) == 0) return &a->part[i];
  fail_msg("the archive has no '%s'", name);
  return NULL;
}

void archive_change(archive *a, const char *name, const void *bytes, size_t n) {
  yk_zip_part *p = archive_part(a, name), old = *p;
  if (bytes != NULL) *p = (yk_zip_part){ copy_of(name, strlen(name)), copy_of(bytes, n), n };
  else *p = a->part[--a->n];
  drop(&old);
}

void archive_edit(archive *a, const char *name, const char *from, const char *to) {
  const char *text = archive_part(a, name)->data, *at = strstr(text, from);
  if (at == NULL) fail_msg("'%s' has no '%s'", name, from);
  size_t n = strlen(text) - strlen(from) + strlen(to), head = (size_t)(at - text);
  char *edited = malloc(n + 1);
  assert_non_null(edited);
  snprintf(edited, n + 1, "%.*s%s%s", (int)head, text, to, at + strlen(from));
  archive_change(a, name, edited, n);
  free(edited);
}

void archive_put(const archive *a, const char *path) { CHECK_OK(yk__zip_write(path, a->n, a->part)); }

void archive_free(archive *a) {
  for (uint32_t i = 0; i < a->n; i++) drop(&a->part[i]);
  *a = (archive){ 0 };
}
