/*
 * token.h - just enough JSON for the files of this folder, whose nesting is fixed.
 *
 * A reader asks for what must come next; what comes instead is ECORRUPT, with the offset and what was expected. Strings of
 * the result never hold a NUL.
 */
#ifndef YK_STORE_TOKEN_H
#define YK_STORE_TOKEN_H

#include "base/str.h"

typedef struct yk_tokens { const char *s; size_t n, at; const char *what; } yk_tokens;   /* what: "header", for messages */

#define YK__EXPECTED(r, it) YK_FAIL(ECORRUPT, "%s, offset %zu: expected %s", (r)->what, (r)->at, it)

void yk__tok_blanks(yk_tokens *r);
/* Step over `c`, after blanks, if it is there; 1 if it was. */
int yk__tok_accept(yk_tokens *r, char c);
/* A string. *out: yk__free(). */
yk_code yk__tok_text(yk_tokens *r, char **out) YK_CHECKED;
/* A whole number from 0 to 2^63 - 1; a list of at most `max` of them. */
yk_code yk__tok_number(yk_tokens *r, uint64_t *out) YK_CHECKED;
yk_code yk__tok_numbers(yk_tokens *r, uint64_t *out, uint32_t max, uint32_t *n) YK_CHECKED;
/* Append `s` as a JSON string; bytes that are no UTF-8 become the characters of their numbers. */
void yk__tok_quote(yk_str *out, const char *s);

#endif
