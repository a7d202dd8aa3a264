/*
 * csv.c - see csv.h. Bytes come from a buffer that is filled in order, so a file of any size can be read.
 *
 * A malformed row is an error with line and column. Whoever passes over it goes on with the line after the one where the row began: a
 * quote that is never closed then costs one line and not the rest of the file.
 */
#include "data/csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

enum { CHUNK = 1 << 17, MOST_ROW = 1 << 24, MOST_FIELDS = 1 << 20 };

yk_code yk__csv_open(const char *path, char delimiter, yk_csv *out) {
  yk_csv c = { .delimiter = delimiter };
  c.chunk = yk__alloc(CHUNK);
  if (c.chunk == NULL) return YK_ENOMEM;
  yk_code rc = yk__file_open(path, &c.f);
  if (rc != YK_OK) {
    yk__free(c.chunk);
    return rc;
  }
  yk__csv_restart(&c);
  *out = c;
  return YK_OK;
}

static void go_to(yk_csv *c, int64_t offset, int64_t line) {
  c->at = offset;
  c->have = c->pos = 0;
  c->line = line;
  c->line_at = offset;
}

void yk__csv_restart(yk_csv *c) {
  go_to(c, 0, 1);
  c->record = -1;
  c->nfields = 0;
}

void yk__csv_close(yk_csv *c) {
  yk__file_close(&c->f);
  yk__free(c->chunk);
  yk__free(c->text);
  yk__free(c->field);
  yk__free(c->start);
  *c = (yk_csv){ 0 };
}

/* ---- bytes ---- */

/* The next byte without taking it: -1 at the end of the file. */
static yk_code peek(yk_csv *c, int *out) {
  if (c->pos == c->have) {
    c->at += c->have;
    c->pos = c->have = 0;
    int64_t left = c->f.bytes - c->at;
    if (left <= 0) {
      *out = -1;
      return YK_OK;
    }
    YK_TRY(yk__file_read(&c->f, c->at, c->chunk, left < CHUNK ? left : CHUNK));
    c->have = left < CHUNK ? left : CHUNK;
  }
  *out = (unsigned char)c->chunk[c->pos];
  return YK_OK;
}

static void take(yk_csv *c) {
  if (c->chunk[c->pos++] != '\n') return;
  c->line++;
  c->line_at = c->at + c->pos;
}

static yk_code malformed(const yk_csv *c, const char *what) {
  return YK_FAIL(ECORRUPT, "'%s':%" PRId64 ":%" PRId64 ": %s (record %" PRId64 ", offset %" PRId64 ")", c->f.path, c->line,
                 c->at + c->pos - c->line_at + 1, what, c->record, c->record_at);
}

static yk_code add(yk_csv *c, char ch) {
  if (c->used == c->room) {
    size_t room = c->room == 0 ? 256 : 2 * c->room;
    if (c->used >= MOST_ROW) return malformed(c, "a row of more than 16 MiB");
    char *text = yk__realloc(c->text, room, 1);
    if (text == NULL) return YK_ENOMEM;
    c->text = text;
    c->room = room;
  }
  c->text[c->used++] = ch;
  return YK_OK;
}

/* ---- fields ---- */

static yk_code begin_field(yk_csv *c) {
  yk_field f = { .line = c->line, .column = c->at + c->pos - c->line_at + 1 };
  if (c->nfields == MOST_FIELDS) return malformed(c, "a row of more than 1048576 fields");
  if (!YK_PUSH(c->field, c->nfields, c->cap, f)) return YK_ENOMEM;
  return YK_PUSH(c->start, c->nstart, c->start_cap, c->used) ? YK_OK : YK_ENOMEM;
}

/* Behind an opening quote, up to and with the closing one. */
static yk_code quoted(yk_csv *c) {
  int ch;
  for (;;) {
    YK_TRY(peek(c, &ch));
    if (ch < 0) return malformed(c, "the file ends within quotes");
    if (ch == 0) return malformed(c, "a byte of 0; this is no text");
    take(c);
    if (ch == '"') {
      YK_TRY(peek(c, &ch));
      if (ch != '"') return YK_OK;
      take(c);
    }
    YK_TRY(add(c, (char)ch));
  }
}

/* What has to follow a closing quote; and how a field without quotes ends. */
static bool ends(const yk_csv *c, int ch) {
  return ch < 0 || ch == c->delimiter || ch == '\n' || ch == '\r';
}

static yk_code plain(yk_csv *c) {
  int ch;
  for (;;) {
    YK_TRY(peek(c, &ch));
    if (ends(c, ch)) return YK_OK;
    if (ch == '"') return malformed(c, "a quote within a field that does not begin with one");
    if (ch == 0) return malformed(c, "a byte of 0; this is no text");
    take(c);
    YK_TRY(add(c, (char)ch));
  }
}

/* One field and the delimiter behind it; *more: another one follows in the row. */
static yk_code field(yk_csv *c, bool *more) {
  int ch;
  YK_TRY(begin_field(c));
  YK_TRY(peek(c, &ch));
  if (ch == '"') {
    take(c);
    YK_TRY(quoted(c));
  } else {
    YK_TRY(plain(c));
  }
  c->field[c->nfields - 1].len = c->used - c->start[c->nfields - 1];
  YK_TRY(add(c, '\0'));
  YK_TRY(peek(c, &ch));
  if (!ends(c, ch)) return malformed(c, "text behind a closing quote");
  *more = ch == c->delimiter;
  if (ch >= 0) take(c);
  if (ch != '\r') return YK_OK;
  YK_TRY(peek(c, &ch));
  if (ch == '\n') take(c);
  else if (ch >= 0) return malformed(c, "a carriage return that is not followed by a line feed");
  return YK_OK;
}

/* Empty lines, and the mark that some programs put in front of UTF-8. */
static yk_code to_row(yk_csv *c, bool *found) {
  int ch;
  YK_TRY(peek(c, &ch));
  if (c->at == 0 && c->pos == 0 && c->have >= 3 && memcmp(c->chunk, "\xEF\xBB\xBF", 3) == 0) {
    c->pos = 3;
    c->line_at = 3;
    YK_TRY(peek(c, &ch));
  }
  while (ch == '\n' || ch == '\r') {
    take(c);
    YK_TRY(peek(c, &ch));
  }
  *found = ch >= 0;
  return YK_OK;
}

yk_code yk__csv_row(yk_csv *c) {
  bool more;
  c->nfields = c->nstart = 0;
  c->used = 0;
  YK_TRY(to_row(c, &more));
  if (!more) return YK_OK;
  c->record++;
  c->record_at = c->at + c->pos;
  c->record_line = c->line;
  while (more) YK_TRY(field(c, &more));
  for (uint32_t i = 0; i < c->nfields; i++) c->field[i].text = c->text + c->start[i];
  return YK_OK;
}

yk_code yk__csv_pass(yk_csv *c) {
  int ch;
  go_to(c, c->record_at, c->record_line);
  for (;;) {
    YK_TRY(peek(c, &ch));
    if (ch < 0) return YK_OK;
    take(c);
    if (ch == '\n') return YK_OK;
  }
}

/* Up to 15 digits and a power of ten up to 10^22 are exact, and so is one division of them: rounded rightly without strtod. */
static int short_number(const char *s, size_t n, double *out) {
  static const double power[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
  size_t i = n > 0 && (s[0] == '-' || s[0] == '+'), digits = 0, behind = 0;
  bool point = false;
  uint64_t v = 0;
  if (n - i > 15 || n == i) return 0;
  for (; i < n; i++) {
    if (s[i] == '.' && !point) { point = true; continue; }
    if (s[i] < '0' || s[i] > '9') return 0;
    v = 10 * v + (uint64_t)(s[i] - '0');
    digits++;
    behind += point;
  }
  if (digits == 0) return 0;
  *out = (double)v / power[behind];
  if (s[0] == '-') *out = -*out;
  return 1;
}

/* Blanks around it do not matter. */
int yk__csv_number(const yk_field *f, double *out) {
  const char *s = f->text;
  size_t n = f->len;
  char word[64];
  while (n > 0 && (*s == ' ' || *s == '\t')) s++, n--;
  while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
  if (short_number(s, n, out)) return 1;
  if (n >= sizeof word) return 0;
  memcpy(word, s, n);
  word[n] = '\0';
  return strlen(word) == n && yk__parse_f64(word, out);
}
