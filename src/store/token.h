/*
 * token.h - just enough JSON for the files of this folder, whose nesting is fixed.
 *
 * A reader asks for what must come next; what comes instead is ECORRUPT, with the offset and what was expected (base/jread.h).
 * Strings of the result never hold a NUL.
 */
#ifndef YK_STORE_TOKEN_H
#define YK_STORE_TOKEN_H

#include "base/jread.h"
#include "base/str.h"

typedef yk_jread yk_tokens;          /* what: "header", for messages */

#define YK__EXPECTED(r, it) yk__jread_expected(r, it)

/* Step over blanks; over `c` behind them, if it is there, 1 if it was; a string, the caller's to free. */
static inline void yk__tok_blanks(yk_tokens *r) { (void)yk__jread_at(r); }
static inline int yk__tok_accept(yk_tokens *r, char c) { return yk__jread_accept(r, c); }
static inline yk_code yk__tok_text(yk_tokens *r, char **out) { return yk__jread_text(r, out); }
/* A whole number from 0 to 2^63 - 1; a list of at most `max` of them. */
yk_code yk__tok_number(yk_tokens *r, uint64_t *out) YK_CHECKED;
yk_code yk__tok_numbers(yk_tokens *r, uint64_t *out, uint32_t max, uint32_t *n) YK_CHECKED;
/* Append `s` as a JSON string; bytes that are no UTF-8 become the characters of their numbers. */
void yk__tok_quote(yk_str *out, const char *s);

#endif
