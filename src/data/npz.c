/*
 * npz.c - NumPy's .npz archives: zip files of .npy members, stored or deflated.
 *
 * A stored member is read in place, a deflated one is inflated into memory; the checksums of both are verified first.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/formats.h"
#include "data/npy.h"
#include "data/zip.h"

bool yk__name_is_npz(const char *name) {
  return yk__ends_with(name, ".npz");
}

/* A member as an array of its own, which opens the file once more where it stays there. */
static yk_code read_member(const yk_file *f, yk_zip_member *m, yk_column *c) {
  yk_array *a = &c->array;
  YK_TRY(yk__zip_find(f, m));
  yk_code rc = yk__file_open(f->path, &a->file);
  if (rc == YK_OK && !m->stored) {
    rc = yk__zip_extract(f, m, &a->block);
    yk__file_rest(&a->file);
  } else if (rc == YK_OK) {
    rc = yk__zip_check(f, m);
  }
  if (rc == YK_OK) {
    rc = yk__npy_read(&(yk_npy){ .who = f->path, .at = a->block != NULL ? 0 : m->at, .bytes = m->bytes }, a);
    if (rc != YK_OK) yk__fail_prefix(rc, "member '%s'", m->name);
  }
  if (rc != YK_OK) yk__array_close(a);
  else yk__columns_name(m->name, c);
  return rc;
}

/* Which part to take, as yk__pick_files does it with files; *best: the highest rank of a test there is. */
static yk_code choose_part(yk_ask *a, const yk_zip *l, int *best) {
  uint32_t arrays = 0, tests = 0;
  for (uint32_t i = 0; i < l->n; i++) {
    int rank = yk__test_rank(l->m[i].name);
    if (!yk__name_is_npy(l->m[i].name)) continue;
    arrays++;
    tests += rank > 0;
    if (rank > *best) *best = rank;
  }
  if (arrays == 0) return YK_FAIL(ECORRUPT, "'%s' holds no arrays", a->path);
  if (tests == 0 && a->split == YK_TEST && a->o.holdout <= 0)
    return YK_FAIL(ENOTFOUND, "'%s' has no test part: no array such as x_test; a holdout keeps a part of the examples for tests",
                   a->path);
  if (tests == arrays && a->split == YK_TRAIN)
    return YK_FAIL(ENOTFOUND, "'%s' has no training part: only arrays for tests", a->path);
  if (tests > 0) a->o.holdout = 0;
  return YK_OK;
}

static yk_code read_members(const yk_file *f, const yk_zip *l, int best, yk_split split, yk_column *column, uint32_t *n) {
  for (uint32_t i = 0; i < l->n; i++) {
    if (!yk__name_is_npy(l->m[i].name) || !yk__is_part(yk__test_rank(l->m[i].name), best, best > 0 ? split : YK_TRAIN)) continue;
    if (*n == YK_MAX_COMPONENTS) return YK_FAIL(EINVAL, "'%s' has more than %d arrays of one part", f->path, YK_MAX_COMPONENTS);
    column[*n] = (yk_column){ .name = "" };
    YK_TRY(read_member(f, &l->m[i], &column[*n]));
    (*n)++;
  }
  return YK_OK;
}

static yk_code open_archive(yk_ask *a, const char *path, yk_dataset **out) {
  yk_column column[YK_MAX_COMPONENTS];
  yk_zip l = { 0 };
  yk_file f;
  uint32_t n = 0;
  int best = 0;
  YK_TRY(yk__file_open(path, &f));
  yk_code rc = yk__zip_list(&f, &l);
  if (rc == YK_OK) rc = choose_part(a, &l, &best);
  if (rc == YK_OK) rc = read_members(&f, &l, best, a->split, column, &n);
  yk__free(l.m);
  yk__file_close(&f);
  if (rc == YK_OK) {
    yk__columns_sort(n, column);
    return yk__arrays_take("npz", n, column, &a->o, a->split, out);
  }
  while (n > 0) yk__array_close(&column[--n].array);
  return rc;
}

/* One archive holds both parts, as a rule; else each has its own. */
yk_code yk__open_npz(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask;
  char path[YK__PATH_BYTES];
  yk_name_list files = { 0 };
  uint32_t archives = 0, last = 0;
  if (yk__path_kind(a.path) != 'd') return open_archive(&a, a.path, out);
  YK_TRY(yk__folder_names(a.path, &files));
  for (uint32_t i = 0; i < files.n; i++)
    if (yk__name_is_npz(files.name[i])) archives++, last = i;
  yk_code rc = archives == 1 ? yk__path_join(a.path, files.name[last], path) : YK_OK;
  yk__name_list_free(&files);
  if (rc != YK_OK) return rc;
  if (archives == 1) return open_archive(&a, path, out);
  YK_TRY(yk__pick_files(&a, yk__name_is_npz, ".npz file", &files));
  a.split = YK_TRAIN;
  rc = files.n == 1 ? open_archive(&a, files.name[0], out)
      : YK_FAIL(EINVAL, "'%s' has several .npz files, '%s' and '%s'; name one", a.path, files.name[0], files.name[1]);
  yk__name_list_free(&files);
  return rc;
}
