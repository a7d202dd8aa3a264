/*
 * npy.c - NumPy's .npy files, versions 1 to 3; and folders with x_train.npy, y_train.npy, x_test.npy, y_test.npy.
 *
 * The numbers stay in the file and are read example by example, except in Fortran order, where an example is spread over the whole
 * file.
 */
#include "data/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/formats.h"

enum { PREFIX = 12, MOST_HEADER = 1 << 20, MOST_WORD = 63 };

bool yk__name_is_npy(const char *name) {
  return yk__ends_with(name, ".npy");
}

/* ---- the header: a dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ---- */

typedef struct yk_literal { const yk_npy *s; const char *begin, *p, *end; int64_t at; } yk_literal;   /* at: offset of `begin` */

static yk_code unexpected(const yk_literal *l, const char *want) {
  return YK_FAIL(ECORRUPT, "'%s': the header of the array at offset %" PRId64 " is not NumPy's: expected %s", l->s->who,
                 l->at + (l->p - l->begin),
                 want);
}

static void blanks(yk_literal *l) {
  while (l->p < l->end && isspace((unsigned char)*l->p)) l->p++;
}

/* Steps over a character if it comes next. */
static bool next_is(yk_literal *l, char c) {
  blanks(l);
  if (l->p == l->end || *l->p != c) return false;
  l->p++;
  return true;
}

static yk_code text(yk_literal *l, char out[MOST_WORD + 1]) {
  blanks(l);
  char quote = l->p < l->end ? *l->p : '\0';
  if (quote == '[')
    return YK_FAIL(EUNSUPPORTED, "'%s' holds records of several fields; arrays of one kind of number can be read", l->s->who);
  if (quote != '\'' && quote != '"') return unexpected(l, "a text in quotes");
  const char *from = ++l->p;
  while (l->p < l->end && *l->p != quote) l->p++;
  size_t n = (size_t)(l->p - from);
  if (l->p == l->end || n > MOST_WORD) return unexpected(l, "a short text in quotes");
  memcpy(out, from, n);
  out[n] = '\0';
  l->p++;
  return YK_OK;
}

static yk_code descr(yk_literal *l, yk_array *a) {
  static const struct { const char *name; yk_stored stored; } known[] = {
    { "b1", YK_S_BOOL }, { "u1", YK_S_U8 }, { "i1", YK_S_I8 }, { "i2", YK_S_I16 }, { "u2", YK_S_U16 }, { "i4", YK_S_I32 },
    { "u4", YK_S_U32 }, { "i8", YK_S_I64 }, { "f2", YK_S_F16 }, { "f4", YK_S_F32 }, { "f8", YK_S_F64 },
  };
  char word[MOST_WORD + 1];
  YK_TRY(text(l, word));
  const char *kind = strchr("<>|=", word[0]) != NULL && word[0] != '\0' ? word + 1 : word;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(known[i].name, kind) != 0) continue;
    a->stored = known[i].stored;
    a->swapped = word[0] == '>' && yk__stored_bytes(a->stored) > 1;
    return YK_OK;
  }
  for (char *p = word; *p != '\0'; p++) if (!isprint((unsigned char)*p)) *p = '?';
  if (kind[0] == 'O')
    return YK_FAIL(EUNSUPPORTED, "'%s' holds pickled Python objects, which are refused: reading them would run code", l->s->who);
  return YK_FAIL(EUNSUPPORTED, "'%s' holds numbers of kind '%s'; known are b1 u1 u2 u4 i1 i2 i4 i8 f2 f4 f8", l->s->who, word);
}

static yk_code order(yk_literal *l, yk_array *a) {
  blanks(l);
  size_t left = (size_t)(l->end - l->p);
  if (left >= 4 && memcmp(l->p, "True", 4) == 0) a->columns = true, l->p += 4;
  else if (left >= 5 && memcmp(l->p, "False", 5) == 0) l->p += 5;
  else return unexpected(l, "True or False");
  return YK_OK;
}

static yk_code dimension(yk_literal *l, int64_t *out) {
  int64_t v = 0;
  blanks(l);
  if (l->p == l->end || !isdigit((unsigned char)*l->p)) return unexpected(l, "a dimension");
  for (; l->p < l->end && isdigit((unsigned char)*l->p); l->p++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *l->p - '0', &v))
      return unexpected(l, "a dimension below 2^63");
  if (l->p < l->end && *l->p == 'L') l->p++;                   /* as Python 2 wrote it */
  *out = v;
  return YK_OK;
}

static yk_code shape(yk_literal *l, yk_array *a) {
  if (!next_is(l, '(')) return unexpected(l, "a tuple of dimensions");
  while (!next_is(l, ')')) {
    if (a->rank == YK_MAX_RANK) return YK_FAIL(EUNSUPPORTED, "'%s' has more than %d dimensions", l->s->who, YK_MAX_RANK);
    YK_TRY(dimension(l, &a->dim[a->rank++]));
    blanks(l);
    if (!next_is(l, ',') && (l->p == l->end || *l->p != ')')) return unexpected(l, "',' or ')'");
  }
  return YK_OK;
}

static yk_code parse(yk_literal *l, yk_array *a) {
  static const char *const key[] = { "descr", "fortran_order", "shape" };
  static yk_code (*const value[])(yk_literal *, yk_array *) = { descr, order, shape };
  unsigned seen = 0;
  char word[MOST_WORD + 1];
  if (!next_is(l, '{')) return unexpected(l, "'{'");
  while (!next_is(l, '}')) {
    unsigned k = 0;
    YK_TRY(text(l, word));
    while (k < 3 && strcmp(key[k], word) != 0) k++;
    if (k == 3 || (seen >> k & 1u) != 0 || !next_is(l, ':'))
      return unexpected(l, "'descr', 'fortran_order' and 'shape', each once with its value");
    seen |= 1u << k;
    YK_TRY(value[k](l, a));
    blanks(l);
    if (!next_is(l, ',') && (l->p == l->end || *l->p != '}')) return unexpected(l, "',' or '}'");
  }
  blanks(l);
  if (l->p != l->end) return unexpected(l, "nothing after '}'");
  return seen == 7 ? YK_OK : unexpected(l, "'descr', 'fortran_order' and 'shape'");
}

/* ---- the file ---- */

static yk_code fetch(const yk_npy *s, const yk_array *a, int64_t at, void *out, int64_t n) {
  if (s->bytes < at + n)
    return YK_FAIL(ECORRUPT, "'%s' is cut off: %" PRId64 " bytes, and the header of an array goes on to %" PRId64, s->who,
                   s->bytes, at + n);
  if (a->block == NULL) return yk__file_read(&a->file, s->at + at, out, n);
  memcpy(out, (const uint8_t *)a->block + s->at + at, (size_t)n);
  return YK_OK;
}

static yk_code read_header(const yk_npy *s, yk_array *a) {
  uint8_t head[PREFIX] = { 0 };
  YK_TRY(fetch(s, a, 0, head, 10));
  if (memcmp(head, "\x93NUMPY", 6) != 0)
    return YK_FAIL(ECORRUPT, "'%s' does not begin with \\x93NUMPY at offset %" PRId64, s->who, s->at);
  if (head[6] < 1 || head[6] > 3)
    return YK_FAIL(EUNSUPPORTED, "'%s' is a .npy file of version %u.%u; known are 1 to 3", s->who, head[6], head[7]);
  int64_t begin = head[6] == 1 ? 10 : 12, n = yk__le16(head + 8);
  if (head[6] > 1) {
    YK_TRY(fetch(s, a, 8, head + 8, 4));
    n = yk__le32(head + 8);
  }
  if (n > MOST_HEADER)
    return YK_FAIL(ECORRUPT, "'%s' declares a header of %" PRId64 " bytes at offset 8; at most %d are read", s->who, n,
                   MOST_HEADER);
  char *header = yk__alloc((size_t)n + 1);
  if (header == NULL) return YK_ENOMEM;
  yk_literal l = { .s = s, .begin = header, .p = header, .end = header + n, .at = s->at + begin };
  yk_code rc = fetch(s, a, begin, header, n);
  if (rc == YK_OK) rc = parse(&l, a);
  yk__free(header);
  a->at = s->at + begin + n;
  return rc;
}

yk_code yk__npy_read(const yk_npy *s, yk_array *a) {
  YK_TRY(read_header(s, a));
  int64_t bytes = yk__array_bytes(a);
  if (a->rank == 0)
    return YK_FAIL(ECORRUPT, "'%s' is one number; expected an array whose first dimension counts the examples", s->who);
  if (bytes < 0) return YK_FAIL(ECORRUPT, "'%s' has impossibly large dimensions", s->who);
  if (a->at - s->at + bytes != s->bytes)
    return YK_FAIL(ECORRUPT, "'%s' has %" PRId64 " bytes where its header declares %" PRId64 "%s", s->who, s->bytes,
                   a->at - s->at + bytes,
                   a->at - s->at + bytes > s->bytes ? "; it is cut off" : "");
  if (a->block != NULL) a->data = (const uint8_t *)a->block + a->at;
  if (a->rank == 1) a->columns = false;
  return a->columns ? yk__array_load(a) : YK_OK;
}

/* What is left of a name without its ending and the word for the part. */
void yk__columns_name(const char *path, yk_column *c) {
  char *name = c->name;
  static const char *const parts[] = { "train", "training", "test", "val", "valid", "validation" };
  const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
  size_t n = strlen(base);
  if (yk__ends_with(base, ".npy")) n -= 4;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    size_t m = strlen(parts[i]);
    if (n > m + 1 && strncmp(base + n - m, parts[i], m) == 0 && (base[n - m - 1] == '_' || base[n - m - 1] == '-')) n -= m + 1;
    else if (n > m + 1 && strncmp(base, parts[i], m) == 0 && (base[m] == '_' || base[m] == '-')) base += m + 1, n -= m + 1;
  }
  if (n > 63) n = 63;
  memcpy(name, base, n);
  name[n] = '\0';
  if (strcmp(name, "X") == 0 || strcmp(name, "images") == 0 || strcmp(name, "data") == 0) memcpy(name, "x", sizeof "x");
  if (strcmp(name, "Y") == 0 || strcmp(name, "labels") == 0) memcpy(name, "y", sizeof "y");
}

static int rank_of(const yk_column *c) {
  return strcmp(c->name, "x") == 0 || strcmp(c->name, "image") == 0 ? 0 : strcmp(c->name, "y") == 0 ||
      strcmp(c->name, "label") == 0 ? 1 : 2;
}

void yk__columns_sort(uint32_t n, yk_column *column) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k > 0 && rank_of(&column[k]) < rank_of(&column[k - 1]); k--) {
      yk_column t = column[k];
      column[k] = column[k - 1];
      column[k - 1] = t;
    }
}

static yk_code read_file(const char *path, yk_column *c) {
  *c = (yk_column){ .name = "" };
  yk_code rc = yk__file_open(path, &c->array.file);
  if (rc == YK_OK) rc = yk__npy_read(&(yk_npy){ .who = path, .bytes = c->array.file.bytes }, &c->array);
  if (rc != YK_OK) yk__array_close(&c->array);
  else yk__columns_name(path, c);
  return rc;
}

yk_code yk__open_npy(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask;
  yk_column column[YK_MAX_COMPONENTS];
  yk_name_list files = { 0 };
  uint32_t n = 0;
  YK_TRY(yk__pick_files(&a, yk__name_is_npy, ".npy file", &files));
  yk_code rc = files.n <= YK_MAX_COMPONENTS ? YK_OK
      : YK_FAIL(EINVAL, "'%s' has %u .npy files of one part; an example has at most %d components", a.path, files.n,
                YK_MAX_COMPONENTS);
  for (uint32_t i = 0; rc == YK_OK && i < files.n; i++)
    if ((rc = read_file(files.name[i], &column[i])) == YK_OK) n++;
  yk__name_list_free(&files);
  if (rc == YK_OK) {
    if (n == 1 && yk__path_kind(a.path) == 'f' && rank_of(&column[0]) == 2) memcpy(column[0].name, "x", sizeof "x");
    yk__columns_sort(n, column);
    return yk__arrays_take("npy", n, column, &a.o, a.split, out);
  }
  while (n > 0) yk__array_close(&column[--n].array);
  return rc;
}
