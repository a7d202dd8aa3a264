/*
 * csv_set.c - a data set from CSV files: the numbers of a row become "x", one column the label.
 *
 * Kinds of columns are found out from the first rows, or given. A label in whole numbers is the class itself; in text, the classes are
 * the texts in sorted order, over the files of training and test together; a real number is no class but a target, "y".
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "data/arrays.h"
#include "data/csv.h"
#include "data/formats.h"

enum { MOST_COLUMNS = 1 << 20, MOST_CLASSES = 65536 };

typedef enum yk_use { YK_USE_SKIP, YK_USE_NUMBER, YK_USE_INDEX, YK_USE_NAME, YK_USE_TARGET } yk_use;   /* INDEX, NAME and TARGET: of the label */

typedef struct yk_table {
  yk_csv csv;
  const yk_ask *a;
  uint32_t ncolumns, nfeatures;
  uint8_t *use;                     /* [ncolumns] yk_use */
  char **title;                     /* [ncolumns], or NULL without a header */
  int64_t label;                    /* column; -1: none */
  bool header;
  float *x;                         /* [n, nfeatures] */
  float *target;                    /* [n] */
  int32_t *index;                   /* [n]: class, or which of `seen` */
  int64_t n, room;
  yk_map map;                       /* names of classes -> number in the order they were seen */
  yk_name_list seen;
  yk_dataset *skips;                /* counts corrupt rows until the set is made */
} yk_table;

bool yk__name_is_csv(const char *name) {
  return yk__ends_with(name, ".csv") || yk__ends_with(name, ".tsv");
}

/* ---- what the columns are ---- */

/* " ('age')" after a column's number, if it has a title; static buffer of the thread. */
static const char *title_of(const yk_table *t, uint32_t k) {
  static _Thread_local char text[80];
  text[0] = '\0';
  if (t->title != NULL) snprintf(text, sizeof text, " ('%.60s')", t->title[k]);
  return text;
}


static yk_code take_titles(yk_table *t) {
  t->title = yk__calloc(t->ncolumns, sizeof *t->title);
  if (t->title == NULL) return YK_ENOMEM;
  for (uint32_t k = 0; k < t->ncolumns; k++)
    if ((t->title[k] = yk__strdup(t->csv.field[k].text)) == NULL) return YK_ENOMEM;
  return YK_OK;
}

/* A column by its title, -1 if there is none. */
static int64_t titled(const yk_table *t, const char *title, bool any_case) {
  for (uint32_t k = 0; t->title != NULL && k < t->ncolumns; k++)
    if (any_case ? strcasecmp(t->title[k], title) == 0 : strcmp(t->title[k], title) == 0) return k;
  return -1;
}

/* Without an option: a usual title, the only column of text, "y", the last one. A single column is no label. */
static int64_t usual_label(const yk_table *t) {
  static const char *const usual[] = { "label", "class", "target", "species" };
  int64_t found = -1, text = -1;
  uint32_t texts = 0;
  double v;
  for (size_t i = 0; i < sizeof usual / sizeof usual[0] && found < 0; i++) found = titled(t, usual[i], true);
  for (uint32_t k = 0; k < t->ncolumns; k++)
    if (!yk__csv_number(&t->csv.field[k], &v)) text = k, texts++;
  if (found < 0 && texts == 1 && t->a->o.types == NULL) found = text;
  if (found < 0) found = titled(t, "y", true);
  if (found < 0) found = (int64_t)t->ncolumns - 1;
  return t->ncolumns > 1 ? found : -1;
}

/* Sets t->label; the row at hand is the first one of data. */
static yk_code find_label(yk_table *t) {
  const char *want = t->a->o.label;
  int64_t number;
  if (want == NULL) {
    t->label = usual_label(t);
    return YK_OK;
  }
  t->label = titled(t, want, false);
  if (t->label >= 0) return YK_OK;
  if (!yk__parse_i64(want, 1, t->ncolumns, &number))
    return YK_FAIL(EINVAL, "'%s' has no column '%s'%s; there are %u, numbered from 1%s%s", t->csv.f.path, want,
                   t->title == NULL ? " (it has no header)" : "", t->ncolumns, t->title != NULL ? ", the first called " : "",
                   t->title != NULL ? t->title[0] : "");
  t->label = number - 1;
  return YK_OK;
}

static yk_code given_types(yk_table *t) {
  const char *p = t->a->o.types;
  uint32_t k = 0;
  for (;; k++) {
    size_t n = strcspn(p, ",");
    yk_use use = YK_USE_SKIP;
    if (n == 6 && memcmp(p, "number", 6) == 0) use = YK_USE_NUMBER;
    else if (n == 5 && memcmp(p, "class", 5) == 0) use = YK_USE_NAME;
    else if (n != 4 || memcmp(p, "skip", 4) != 0)
      return YK_FAIL(EINVAL, "type %u of '%.100s' is not number, class or skip", k + 1, t->a->o.types);
    if (k < t->ncolumns) t->use[k] = (uint8_t)use;
    if (use == YK_USE_NAME && t->a->o.label == NULL) t->label = k;
    p += n;
    if (*p == '\0') break;
    p++;
  }
  if (k + 1 != t->ncolumns)
    return YK_FAIL(EINVAL, "%u types are given for the %u columns of '%s'", k + 1, t->ncolumns, t->csv.f.path);
  for (k = 0; k < t->ncolumns; k++) {
    if (t->use[k] == YK_USE_NAME && k != t->label)
      return YK_FAIL(EINVAL, "column %u of '%s' is of type class; only the label, column %" PRId64 ", can be", k + 1,
                     t->csv.f.path, t->label + 1);
    if (t->use[k] == YK_USE_NUMBER && k == t->label) t->use[k] = YK_USE_TARGET;
  }
  return YK_OK;
}

/* From the first row of data. */
static yk_code found_types(yk_table *t) {
  double v;
  for (uint32_t k = 0; k < t->ncolumns; k++) {
    bool number = yk__csv_number(&t->csv.field[k], &v);
    if (k == t->label)
      t->use[k] = !number ? YK_USE_NAME : strpbrk(t->csv.field[k].text, ".eE") == NULL ? YK_USE_INDEX : YK_USE_TARGET;
    else t->use[k] = YK_USE_NUMBER;
    if (!number && k != t->label)
      return YK_FAIL(EINVAL, "'%s':%" PRId64 ":%" PRId64 ": column %u%s holds text, '%.40s'; only the label may. Types such as "
                     "number,skip,class say otherwise", t->csv.f.path, t->csv.field[k].line, t->csv.field[k].column, k + 1,
                     title_of(t, k), t->csv.field[k].text);
  }
  return YK_OK;
}

/* The first of two rows has titles if some field is text there and a number below. `numbers` of the first row: which fields are. */
static yk_code find_header(yk_table *t) {
  yk_csv *c = &t->csv;
  double v;
  t->header = t->a->o.header > 0;
  if (t->a->o.header != 0) return YK_OK;
  bool *text = yk__calloc(c->nfields, sizeof *text);
  if (text == NULL) return YK_ENOMEM;
  for (uint32_t k = 0; k < c->nfields; k++) text[k] = !yk__csv_number(&c->field[k], &v);
  yk_code rc = yk__csv_row(c);
  for (uint32_t k = 0; rc == YK_OK && k < c->nfields && k < t->ncolumns; k++)
    if (text[k] && yk__csv_number(&c->field[k], &v)) t->header = true;
  yk__free(text);
  yk__csv_restart(c);
  return rc == YK_OK ? yk__csv_row(c) : rc;
}

static yk_code find_columns(yk_table *t) {
  yk_csv *c = &t->csv;
  YK_TRY(yk__csv_row(c));
  if (c->nfields == 0) return YK_FAIL(ECORRUPT, "'%s' holds no rows", c->f.path);
  t->ncolumns = c->nfields;
  YK_TRY(find_header(t));
  if (t->header) {
    YK_TRY(take_titles(t));
    YK_TRY(yk__csv_row(c));
    if (c->nfields == 0) return YK_FAIL(ECORRUPT, "'%s' holds no rows behind its header", c->f.path);
    if (c->nfields != t->ncolumns)
      return YK_FAIL(ECORRUPT, "'%s':%" PRId64 ":1: %u fields; the header has %u (record 1, offset %" PRId64 ")", c->f.path,
                     c->record_line, c->nfields,
                     t->ncolumns, c->record_at);
  }
  t->use = yk__calloc(t->ncolumns, 1);
  if (t->use == NULL) return YK_ENOMEM;
  YK_TRY(find_label(t));
  YK_TRY(t->a->o.types != NULL ? given_types(t) : found_types(t));
  for (uint32_t k = 0; k < t->ncolumns; k++) t->nfeatures += t->use[k] == YK_USE_NUMBER;
  if (t->nfeatures == 0) return YK_FAIL(EINVAL, "'%s' has no column of numbers besides the label", c->f.path);
  return YK_OK;
}

/* ---- rows ---- */

static yk_code bad_field(const yk_table *t, uint32_t k, const char *want) {
  const yk_csv *c = &t->csv;
  const yk_field *f = &c->field[k];
  return YK_FAIL(ECORRUPT, "'%s':%" PRId64 ":%" PRId64 ": field %u%s is '%.40s'; expected %s (record %" PRId64 ", offset %" PRId64 ")",
                 c->f.path, f->line, f->column, k + 1, title_of(t, k), f->text, want, c->record, c->record_at);
}

/* The number of a class's name in the order of appearance. */
static yk_code class_number(yk_table *t, const char *name, int32_t *out) {
  uint32_t k;
  if (!yk__map_get(&t->map, name, &k)) {
    k = t->seen.n;
    if (k == MOST_CLASSES) return YK_FAIL(EINVAL, "'%s' has more than %d classes", t->csv.f.path, MOST_CLASSES);
    char *copy = yk__strdup(name);
    if (copy == NULL) return YK_ENOMEM;
    if (!YK_PUSH(t->seen.name, t->seen.n, t->seen.cap, copy)) {
      yk__free(copy);
      return YK_ENOMEM;
    }
    if (!yk__map_set(&t->map, name, k)) return YK_ENOMEM;
  }
  *out = (int32_t)k;
  return YK_OK;
}

static yk_code take_label(yk_table *t, uint32_t k) {
  int64_t classes = t->a->o.classes > 0 ? t->a->o.classes : MOST_CLASSES;
  double v = 0;
  if (t->use[k] == YK_USE_NAME) {
    if (t->csv.field[k].len == 0) return bad_field(t, k, "the name of a class");
    return class_number(t, t->csv.field[k].text, &t->index[t->n]);
  }
  if (!yk__csv_number(&t->csv.field[k], &v)) return bad_field(t, k, "a number");
  if (t->use[k] == YK_USE_TARGET) t->target[t->n] = (float)v;
  else if (v != floor(v) || v < 0 || v >= (double)classes)
    return bad_field(t, k, "a class, a whole number from 0 to 65535 or below the classes given");
  else t->index[t->n] = (int32_t)v;
  return YK_OK;
}

static yk_code more_room(yk_table *t) {
  int64_t room = t->room == 0 ? 1024 : 2 * t->room;
  float *x, *target;
  int32_t *index;
  if (t->n < t->room) return YK_OK;
  if ((x = yk__realloc(t->x, (size_t)room * t->nfeatures, sizeof *x)) == NULL) return YK_ENOMEM;
  t->x = x;
  if ((target = yk__realloc(t->target, (size_t)room, sizeof *target)) == NULL) return YK_ENOMEM;
  t->target = target;
  if ((index = yk__realloc(t->index, (size_t)room, sizeof *index)) == NULL) return YK_ENOMEM;
  t->index = index;
  t->room = room;
  return YK_OK;
}

static yk_code take_row(yk_table *t) {
  const yk_csv *c = &t->csv;
  double v;
  if (c->nfields != t->ncolumns)
    return YK_FAIL(ECORRUPT, "'%s':%" PRId64 ":1: %u fields; expected %u (record %" PRId64 ", offset %" PRId64 ")", c->f.path,
                   c->record_line, c->nfields,
                   t->ncolumns, c->record, c->record_at);
  YK_TRY(more_room(t));
  float *x = t->x + t->n * t->nfeatures;
  for (uint32_t k = 0; k < t->ncolumns; k++) {
    if (t->use[k] == YK_USE_NUMBER) {
      if (!yk__csv_number(&c->field[k], &v)) return bad_field(t, k, "a number");
      *x++ = (float)v;
    } else if (t->use[k] != YK_USE_SKIP) {
      YK_TRY(take_label(t, k));
    }
  }
  t->n++;
  return YK_OK;
}

static yk_code read_rows(yk_table *t) {
  yk_csv *c = &t->csv;
  yk__csv_restart(c);
  if (t->header) YK_TRY(yk__csv_row(c));
  c->record = -1;                   /* the header is no record */
  for (;;) {
    yk_code rc = yk__csv_row(c);
    if (rc == YK_OK && c->nfields == 0) break;
    bool malformed = rc == YK_ECORRUPT;
    if (rc == YK_OK) rc = take_row(t);
    if (rc == YK_ECORRUPT) rc = yk__dataset_skip(t->skips);
    if (rc == YK_OK && malformed) rc = yk__csv_pass(c);
    if (rc != YK_OK) return rc;
  }
  return t->n > 0 ? YK_OK : YK_FAIL(ECORRUPT, "'%s' holds no good rows", c->f.path);
}

/* ---- the set ---- */

typedef struct yk_numbered { const char *name; int32_t number; } yk_numbered;

/* Whole numbers by their value, before all texts. */
static int by_name(const void *a, const void *b) {
  const char *s = ((const yk_numbered *)a)->name, *t = ((const yk_numbered *)b)->name;
  int64_t x = 0, y = 0;
  int s_is = yk__parse_i64(s, INT64_MIN, INT64_MAX, &x), t_is = yk__parse_i64(t, INT64_MIN, INT64_MAX, &y);
  if (s_is != t_is) return t_is - s_is;
  if (s_is && x != y) return x < y ? -1 : 1;
  return strcmp(s, t);
}

/* Classes in sorted order instead of that of their appearance. */
static yk_code sort_classes(yk_table *t) {
  uint32_t n = t->seen.n;
  yk_numbered *list = yk__alloc(n * sizeof *list);
  int32_t *place = yk__alloc(n * sizeof *place);
  char **sorted = yk__alloc(n * sizeof *sorted);
  yk_code rc = list != NULL && place != NULL && sorted != NULL ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) {
    for (uint32_t k = 0; k < n; k++) list[k] = (yk_numbered){ t->seen.name[k], (int32_t)k };
    qsort(list, n, sizeof *list, by_name);
    for (uint32_t k = 0; k < n; k++) {
      place[list[k].number] = (int32_t)k;
      sorted[k] = t->seen.name[list[k].number];
    }
    for (int64_t i = 0; i < t->n; i++) t->index[i] = place[t->index[i]];
    memcpy(t->seen.name, sorted, n * sizeof *sorted);
  }
  yk__free(list);
  yk__free(place);
  yk__free(sorted);
  return rc;
}

/* The names of classes that only the other part's file has. Bad rows are that part's business. */
static yk_code see_classes(yk_table *t, const char *path) {
  yk_csv other;
  int32_t number;
  YK_TRY(yk__csv_open(path, t->csv.delimiter, &other));
  yk_code rc = t->header ? yk__csv_row(&other) : YK_OK;
  while (rc == YK_OK) {
    rc = yk__csv_row(&other);
    if (rc == YK_OK && other.nfields == 0) break;
    if (rc == YK_OK && other.nfields == t->ncolumns && other.field[t->label].len > 0)
      rc = class_number(t, other.field[t->label].text, &number);
    if (rc == YK_ECORRUPT) {
      yk_error_clear();
      rc = yk__csv_pass(&other);
    }
  }
  yk__csv_close(&other);
  return rc;
}

static void close_table(yk_table *t) {
  for (uint32_t k = 0; t->title != NULL && k < t->ncolumns; k++) yk__free(t->title[k]);
  yk__free(t->title);
  yk__free(t->use);
  yk__free(t->x);
  yk__free(t->target);
  yk__free(t->index);
  yk__map_free(&t->map);
  yk__name_list_free(&t->seen);
  yk__csv_close(&t->csv);
}

static yk_array number_array(yk_table *t, void *block, yk_stored stored) {
  yk_array a = { .block = block, .data = block, .stored = stored, .rank = 1, .dim = { t->n } };
  return a;
}

/* Hands the blocks over; what the table keeps is freed with it. */
static yk_code make_set(yk_table *t, const yk_ask *a, yk_dataset **out) {
  yk_use use = t->label >= 0 ? t->use[t->label] : YK_USE_SKIP;
  yk_dataset_options o = a->o;
  yk_column column[2] = { { .name = "x" }, { .name = "label" } };
  column[0].array = number_array(t, t->x, YK_S_F32);
  column[0].array.rank = 2;
  column[0].array.dim[1] = t->nfeatures;
  t->x = NULL;
  if (use == YK_USE_TARGET) {
    column[1].array = number_array(t, t->target, YK_S_F32);
    memcpy(column[1].name, "y", sizeof "y");
    t->target = NULL;
  } else if (use != YK_USE_SKIP) {
    column[1].array = number_array(t, t->index, YK_S_I32);
    t->index = NULL;
  }
  if (use == YK_USE_NAME) o.classes = t->seen.n;
  YK_TRY(yk__arrays_take("csv", use == YK_USE_SKIP ? 1 : 2, column, &o, a->split, out));
  if (use == YK_USE_NAME) {
    (*out)->own_class_name = t->seen.name;
    t->seen = (yk_name_list){ 0 };
  }
  return YK_OK;
}

/* The files of the part, one; `other`: of the other part, or NULL. */
static yk_code open_table(yk_table *t, const char *path, const char *other, yk_dataset **out) {
  const yk_ask *a = t->a;
  YK_TRY(yk__csv_open(path, a->o.delimiter != 0 ? a->o.delimiter : yk__ends_with(path, ".tsv") ? '\t' : ',', &t->csv));
  YK_TRY(find_columns(t));
  YK_TRY(read_rows(t));
  if (t->label >= 0 && t->use[t->label] == YK_USE_NAME) {
    if (other != NULL) YK_TRY(see_classes(t, other));
    YK_TRY(sort_classes(t));
    if (a->o.classes > 0 && a->o.classes != t->seen.n)
      return YK_FAIL(ECORRUPT, "'%s' has %u classes; %" PRId64 " were asked for", path, t->seen.n, a->o.classes);
  }
  YK_TRY(make_set(t, a, out));
  (*out)->skips.count = t->skips->skips.count;
  memcpy((*out)->skips.first, t->skips->skips.first, sizeof t->skips->skips.first);
  return YK_OK;
}

static void nothing(yk_dataset *d) {
  (void)d;
}

static const yk_reader no_reader = { .close = nothing };

static yk_code open_files(yk_ask *a, const yk_name_list *files, const yk_name_list *others, yk_dataset **out) {
  yk_table t = { .a = a };
  if (files->n != 1)
    return YK_FAIL(EINVAL, "'%s' has several CSV files, '%s' and '%s'; name one", a->path, files->name[0], files->name[1]);
  YK_TRY(yk__dataset_new("csv", &no_reader, &t.skips));
  t.skips->skips.limit = a->o.skip;
  yk_code rc = open_table(&t, files->name[0], others->n > 0 ? others->name[0] : NULL, out);
  close_table(&t);
  yk_dataset_free(t.skips);
  return rc;
}

yk_code yk__open_csv(const yk_ask *ask, yk_dataset **out) {
  yk_ask a = *ask, b = *ask;
  yk_name_list files = { 0 }, others = { 0 };
  YK_TRY(yk__pick_files(&a, yk__name_is_csv, ".csv file", &files));
  b.split = a.split == YK_TRAIN ? YK_TEST : YK_TRAIN;
  b.o.holdout = 0;
  yk_code rc = YK_OK;
  if (yk__path_kind(a.path) == 'd' && (rc = yk__pick_files(&b, yk__name_is_csv, ".csv file", &others)) == YK_ENOTFOUND) {
    yk_error_clear();
    rc = YK_OK;
  }
  if (others.n > 0 && strcmp(others.name[0], files.name[0]) == 0) yk__name_list_free(&others);
  if (rc == YK_OK) rc = open_files(&a, &files, &others, out);
  yk__name_list_free(&files);
  yk__name_list_free(&others);
  return rc;
}
