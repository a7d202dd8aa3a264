/*
 * csv_logger.c - CSVLogger: a line for each epoch in a text file.
 *
 * Columns are those of the first epoch, so that the file is a table whatever comes later.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "keras/logs.h"

typedef struct csv {
  yk_callback self;
  char *path;
  char separator;
  bool append;
  FILE *file;
  char (*column)[YK__LOG_NAME]; uint32_t ncolumns;
} csv;

static yk_code failed(const csv *c) { return YK_FAIL(EIO, "%s: %s", c->path, strerror(errno)); }

static void forget(csv *c) {
  if (c->file != NULL) fclose(c->file);
  yk__free(c->column);
  c->file = NULL;
  c->column = NULL;
  c->ncolumns = 0;
}

static yk_code begin(yk_callback *self, yk_training *t) {
  csv *c = (csv *)self;
  (void)t;
  forget(c);
  c->file = fopen(c->path, c->append ? "a" : "w");
  return c->file != NULL ? YK_OK : failed(c);
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* The columns of the first epoch, and their names as the first line of a new file. */
static yk_code head(csv *c, const yk_logs *logs) {
  size_t n = yk_logs_count(logs);
  c->column = yk__calloc(n + 1, sizeof *c->column);
  if (c->column == NULL) return YK_ENOMEM;
  for (size_t i = 0; i < n; i++) snprintf(c->column[i], YK__LOG_NAME, "%s", yk_logs_name(logs, i));
  qsort(c->column, n, sizeof *c->column, by_name);
  c->ncolumns = (uint32_t)n;
  if (fseek(c->file, 0, SEEK_END) == 0 && ftell(c->file) > 0) return YK_OK;
  fputs("epoch", c->file);
  for (uint32_t i = 0; i < c->ncolumns; i++) fprintf(c->file, "%c%s", c->separator, c->column[i]);
  fputc('\n', c->file);
  return YK_OK;
}

static yk_code epoch_end(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  csv *c = (csv *)self;
  (void)t;
  if (c->column == NULL) YK_TRY(head(c, logs));
  fprintf(c->file, "%lld", (long long)epoch);
  for (uint32_t i = 0; i < c->ncolumns; i++) {
    double x;
    if (yk_logs_get(logs, c->column[i], &x)) fprintf(c->file, "%c%.10g", c->separator, x);
    else fprintf(c->file, "%cNA", c->separator);
  }
  fputc('\n', c->file);
  return fflush(c->file) == 0 && !ferror(c->file) ? YK_OK : failed(c);
}

static yk_code end(yk_callback *self, yk_training *t) {
  csv *c = (csv *)self;
  FILE *f = c->file;
  (void)t;
  c->file = NULL;
  return f == NULL || fclose(f) == 0 ? YK_OK : failed(c);
}

static void drop(yk_callback *self) {
  csv *c = (csv *)self;
  forget(c);
  yk__free(c->path);
  yk__free(c);
}

yk_code yk_callback_csv_logger(const char *path, char separator, bool append, yk_callback **out) {
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_callback_csv_logger: NULL argument");
  csv *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  c->self = (yk_callback){ .on_train_begin = begin, .on_epoch_end = epoch_end, .on_train_end = end, .free = drop };
  c->separator = separator != '\0' ? separator : ',';
  c->append = append;
  c->path = yk__strdup(path);
  if (c->path == NULL) {
    drop(&c->self);
    return YK_ENOMEM;
  }
  *out = &c->self;
  return YK_OK;
}
