/*
 * jread.h - a strict JSON reader: the caller says what comes next, and hears where it is wrong.
 *
 * It walks over text in memory and builds nothing, so that a file from anywhere costs no more than what the caller keeps.
 * Every failure is ECORRUPT with the place and what was expected there. Nesting that is passed over is bounded.
 */
#ifndef YK_BASE_JREAD_H
#define YK_BASE_JREAD_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

typedef struct yk_jread {
  const char *what;            /* in front of messages: a file's name */
  const char *s;               /* [n] the text, need not end with NUL */
  size_t n, at;
  int lines;                   /* messages tell line and column; 0: the offset */
  int fresh;                   /* nothing of the innermost object or array was read yet */
} yk_jread;

/* Fail: "what, offset 12: expected ..." or "what:2:5: expected ...". */
yk_code yk__jread_expected(const yk_jread *r, const char *expected) YK_CHECKED;
/* Name a place of the text in the same way, "what:2:5". Returns buf. */
char *yk__jread_place(const yk_jread *r, size_t at, char *buf, size_t n);

/* Where the next thing begins, behind blanks. */
size_t yk__jread_at(yk_jread *r);
/* Step over `c`, after blanks, if it is there; 1 if it was. For files whose nesting is fixed. */
int yk__jread_accept(yk_jread *r, char c);

/* Step into an object or array: kind '{' or '['. Then until it ends: */
yk_code yk__jread_enter(yk_jread *r, char kind) YK_CHECKED;
/* The next key of an object, the caller's to free, its ':' passed; *out = NULL: the object has ended. */
yk_code yk__jread_key(yk_jread *r, char **out) YK_CHECKED;
/* Is there another element? *more = 0: the array has ended. */
yk_code yk__jread_more(yk_jread *r, int *more) YK_CHECKED;

/* One value. Texts are the caller's to free; they are UTF-8 without a NUL inside. */
yk_code yk__jread_text(yk_jread *r, char **out) YK_CHECKED;
yk_code yk__jread_whole(yk_jread *r, uint64_t lo, uint64_t hi, uint64_t *out) YK_CHECKED;   /* hi <= INT64_MAX */
yk_code yk__jread_real(yk_jread *r, double lo, double hi, double *out) YK_CHECKED;
yk_code yk__jread_bool(yk_jread *r, int *out) YK_CHECKED;
yk_code yk__jread_skip(yk_jread *r) YK_CHECKED;            /* anything, at most 64 levels deep */
/* Nothing but blanks is left. */
yk_code yk__jread_end(yk_jread *r) YK_CHECKED;

#endif
