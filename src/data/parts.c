/*
 * parts.c - which files of a folder are for training and which for tests.
 *
 * Decided by words of their names alone, so that the same folder is parted in the same way by every format.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/formats.h"

/* Is one of the words in the name, between characters that are no letters or digits? */
static bool has_word(const char *name, const char *const *word) {
  for (const char *p = name; *p != '\0';) {
    size_t n = 0;
    while (isalnum((unsigned char)p[n])) n++;
    for (const char *const *w = word; *w != NULL; w++)
      if (strlen(*w) == n && strncasecmp(p, *w, n) == 0) return true;
    p += n > 0 ? n : 1;
  }
  return false;
}

int yk__test_rank(const char *name) {
  static const char *const train[] = { "train", "training", NULL };
  static const char *const test[] = { "test", "t10k", NULL };
  static const char *const like_test[] = { "val", "valid", "validation", "eval", "dev", NULL };
  return has_word(name, train) ? -1 : has_word(name, test) ? 2 : has_word(name, like_test) ? 1 : 0;
}

bool yk__is_part(int rank, int best, yk_split split) {
  return split == YK_TEST ? rank > 0 && rank == best : rank <= 0;
}

/* The paths of those of `all` that are of the part. */
static yk_code take_part(const yk_ask *a, const yk_name_list *all, bool (*belongs)(const char *), int best, yk_name_list *out) {
  char path[YK__PATH_BYTES];
  for (uint32_t i = 0; i < all->n; i++) {
    if (!belongs(all->name[i]) || !yk__is_part(yk__test_rank(all->name[i]), best, best > 0 ? a->split : YK_TRAIN)) continue;
    YK_TRY(yk__path_join(a->path, all->name[i], path));
    char *copy = yk__strdup(path);
    if (copy == NULL) return YK_ENOMEM;
    if (YK_PUSH(out->name, out->n, out->cap, copy)) continue;
    yk__free(copy);
    return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code no_test(const yk_ask *a, const char *what) {
  return YK_FAIL(ENOTFOUND, "'%s' has no test part: no %s with test, t10k or val in its name; a holdout keeps a part of the examples for tests",
                 a->path, what);
}

static yk_code pick(yk_ask *a, const yk_name_list *all, bool (*belongs)(const char *), const char *what, yk_name_list *out) {
  uint32_t belonging = 0, tests = 0;
  int best = 0;
  for (uint32_t i = 0; i < all->n; i++) {
    int rank = yk__test_rank(all->name[i]);
    if (!belongs(all->name[i])) continue;
    belonging++;
    tests += rank > 0;
    if (rank > best) best = rank;
  }
  if (belonging == 0) return YK_FAIL(ENOTFOUND, "no %s in the folder '%s'", what, a->path);
  if (tests == 0 && a->split == YK_TEST && a->o.holdout <= 0) return no_test(a, what);
  if (tests > 0) a->o.holdout = 0;
  if (tests == belonging && a->split == YK_TRAIN)
    return YK_FAIL(ENOTFOUND, "'%s' has no training part: only %s for tests", a->path, what);
  return take_part(a, all, belongs, best, out);
}

/* A file is what its name says, as it was asked for by name; it is parted only if the name says nothing. */
static yk_code pick_file(yk_ask *a, const char *what, yk_name_list *out) {
  if (a->split == YK_TEST && a->o.holdout <= 0) return no_test(a, what);
  char *copy = yk__strdup(a->path);
  if (copy == NULL) return YK_ENOMEM;
  if (YK_PUSH(out->name, out->n, out->cap, copy)) return YK_OK;
  yk__free(copy);
  return YK_ENOMEM;
}

yk_code yk__pick_files(yk_ask *a, bool (*belongs)(const char *), const char *what, yk_name_list *out) {
  yk_name_list all = { 0 }, chosen = { 0 };
  yk_code rc;
  if (yk__path_kind(a->path) != 'd') {
    rc = pick_file(a, what, &chosen);
  } else {
    YK_TRY(yk__folder_names(a->path, &all));
    rc = pick(a, &all, belongs, what, &chosen);
    yk__name_list_free(&all);
  }
  if (rc == YK_OK) *out = chosen;
  else yk__name_list_free(&chosen);
  return rc;
}
