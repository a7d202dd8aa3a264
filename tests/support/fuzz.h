/*
 * fuzz.h - inputs made from good ones by small changes, the same ones on every machine.
 *
 * A stream of numbers is a function of its seed. Changes are those that break parsers: bytes flipped, runs cut out, doubled or
 * moved, pieces of other inputs and words of the format put in. A failure prints seed and round, which reproduce it.
 */
#ifndef YK_TEST_FUZZ_H
#define YK_TEST_FUZZ_H

#include "support/check.h"

typedef struct fuzz { uint64_t state; } fuzz;
uint32_t fuzz_below(fuzz *f, uint32_t n);                    /* 0 .. n-1 */

/* What may be mixed in; the list ends with NULL. */
typedef struct fuzz_words { const char *const *word; uint32_t n; } fuzz_words;
fuzz_words fuzz_count(const char *const *words);

/* Change `bytes` [n of room] in 1 to 4 places; returns the new length, at most room. */
size_t fuzz_mutate(fuzz *f, uint8_t *bytes, size_t n, size_t room, fuzz_words words);
/* A text made like that: of one of the words, without NUL, at most room - 1 characters. */
void fuzz_text(fuzz *f, char *text, size_t room, fuzz_words starts, fuzz_words words);

/* Rounds of a test: `often`, or as many times as YOKE_FUZZ_TIMES says more. */
uint64_t fuzz_rounds(uint64_t often);
/* The message of a failure: there is one, it is one line of printable text, not too long. */
void fuzz_check_message(uint64_t round, const char *what);

#endif
