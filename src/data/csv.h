/*
 * csv.h - rows of a CSV file, one after the other.
 *
 * Fields may be in double quotes, a quote in them is doubled, and line ends in them belong to them; lines end with LF or CR LF; a byte
 * order mark is stepped over; lines with nothing in them are no rows. Every field knows the line and column that it begins at.
 */
#ifndef YK_DATA_CSV_H
#define YK_DATA_CSV_H

#include <stddef.h>
#include "data/file.h"

typedef struct yk_field { const char *text; size_t len; int64_t line, column; } yk_field;   /* NUL-terminated; line and column from 1 */

typedef struct yk_csv {
  yk_file f;
  char delimiter;
  char *chunk;
  int64_t at, have, pos;           /* offset of the chunk, bytes in it, the next one */
  int64_t line, line_at;           /* of the next byte: its line, and where that begins */
  int64_t record, record_at;       /* of the row read last: its number from 0, and where it begins */
  int64_t record_line;
  char *text;                      /* of its fields */
  size_t used, room;
  yk_field *field;                 /* [nfields]; valid until the next row */
  uint32_t nfields, cap;
  size_t *start;                   /* where each field's text begins, while the row is read */
  uint32_t nstart, start_cap;
} yk_csv;

yk_code yk__csv_open(const char *path, char delimiter, yk_csv *out) YK_CHECKED;
/* nfields = 0 at the end of the file. ECORRUPT: the row is malformed; yk__csv_pass() steps over its first line. */
yk_code yk__csv_row(yk_csv *c) YK_CHECKED;
yk_code yk__csv_pass(yk_csv *c) YK_CHECKED;
/* Back to the beginning. */
void yk__csv_restart(yk_csv *c);
void yk__csv_close(yk_csv *c);

/* A whole field as a number. */
int yk__csv_number(const yk_field *f, double *out);

#endif
