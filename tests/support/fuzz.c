/*
 * fuzz.c - see fuzz.h. The generator is splitmix64, whose whole state is a counter.
 */
#include "support/fuzz.h"

static uint64_t next(fuzz *f) {
  uint64_t x = f->state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint32_t fuzz_below(fuzz *f, uint32_t n) {
  return (uint32_t)((next(f) >> 32) * n >> 32);
}

fuzz_words fuzz_count(const char *const *words) {
  fuzz_words w = { words, 0 };
  while (words[w.n]) w.n++;
  return w;
}

/* Make a gap of `gap` bytes at `at`; fewer where the room ends. */
static size_t open_gap(uint8_t *bytes, size_t n, size_t room, size_t at, size_t gap) {
  if (gap > room - at) gap = room - at;
  size_t kept = n - at;
  if (kept > room - at - gap) kept = room - at - gap;
  memmove(bytes + at + gap, bytes + at, kept);
  return at + gap + kept;
}

static size_t change(fuzz *f, uint8_t *bytes, size_t n, size_t room, fuzz_words words) {
  static const uint8_t special[] = { 0, 1, ' ', '"', '\'', '/', ':', ',', '-', '+', '.', '0', '9', '{', '}', '[', ']', '\\', '\n',
                                     '*', 0x7F, 0x80, 0xC0, 0xFF };
  size_t at = n ? fuzz_below(f, (uint32_t)n + 1) : 0, len = n > at ? 1 + fuzz_below(f, (uint32_t)(n - at)) : 0;
  switch (fuzz_below(f, 8)) {
    case 0:                                                            /* a bit */
      if (at < n) bytes[at] ^= (uint8_t)(1u << fuzz_below(f, 8));
      return n;
    case 1:                                                            /* a byte that means something */
      if (at < n) bytes[at] = special[fuzz_below(f, sizeof special)];
      return n;
    case 2: return at;                                                 /* cut off */
    case 3:                                                            /* a run taken out */
      memmove(bytes + at, bytes + at + len, n - at - len);
      return n - len;
    case 4: {                                                          /* a run doubled */
      size_t grown = open_gap(bytes, n, room, at, len);
      size_t copy = len < grown - at ? len : grown - at;
      if (at + len + copy <= grown) memcpy(bytes + at, bytes + at + len, copy);
      return grown;
    }
    case 5: {                                                          /* one byte, many times */
      size_t many = 1 + fuzz_below(f, 40), grown = open_gap(bytes, n, room, at, many);
      memset(bytes + at, special[fuzz_below(f, sizeof special)], many < grown - at ? many : grown - at);
      return grown;
    }
    default: {                                                         /* a word */
      if (words.n == 0) return n;
      const char *word = words.word[fuzz_below(f, words.n)];
      size_t size = strlen(word), grown = open_gap(bytes, n, room, at, size);
      memcpy(bytes + at, word, size < grown - at ? size : grown - at);
      return grown;
    }
  }
}

size_t fuzz_mutate(fuzz *f, uint8_t *bytes, size_t n, size_t room, fuzz_words words) {
  for (uint32_t times = 1 + fuzz_below(f, 4); times > 0; times--) n = change(f, bytes, n, room, words);
  return n;
}

void fuzz_text(fuzz *f, char *text, size_t room, fuzz_words starts, fuzz_words words) {
  const char *start = starts.word[fuzz_below(f, starts.n)];
  size_t n = strlen(start);
  if (n > room - 1) n = room - 1;
  memcpy(text, start, n);
  n = fuzz_mutate(f, (uint8_t *)text, n, room - 1, words);
  for (size_t i = 0; i < n; i++)
    if (!text[i]) text[i] = '0';
  text[n] = '\0';
}

uint64_t fuzz_rounds(uint64_t often) {
  const char *times = getenv("YOKE_FUZZ_TIMES");
  return times ? often * strtoull(times, NULL, 10) : often;
}

void fuzz_check_message(uint64_t round, const char *what) {
  const char *m = yk_error_message();
  if (!m[0]) fail_msg("round %llu: %s failed without a message", (unsigned long long)round, what);
  if (strlen(m) > 1000) fail_msg("round %llu: %s: a message of %zu characters", (unsigned long long)round, what, strlen(m));
  yk_error_clear();
}
