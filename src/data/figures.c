/*
 * figures.c - the outlines of figures, and draws from a seed.
 *
 * An outline is the few inequalities that hold inside of it, in coordinates in which the figure is about as large as the unit.
 */
#include <stdlib.h>
#include "base/rng.h"
#include "data/figures.h"

enum { ONE = YK__FIGURE_RADIUS };

int32_t yk__draw(yk_draws *d, int32_t lo, int32_t hi) {
  if (d->left == 0) {
    yk__rng_block(d->seed, d->stream, d->step, d->block++, 0, d->word);
    d->left = 4;
  }
  return lo + (int32_t)((uint64_t)d->word[--d->left] * (uint64_t)(hi - lo + 1) >> 32);
}

static int32_t square(int32_t x) {
  return x * x;
}

/* In at least four of the five half-planes whose borders make a pentagram. */
static int in_star(int32_t u, int32_t v) {
  static const int32_t normal[5][2] = { { 0, 1024 }, { 974, 316 }, { 602, -828 }, { -602, -828 }, { -974, 316 } };
  int inside = 0;
  for (int i = 0; i < 5; i++) inside += normal[i][0] * u + normal[i][1] * v <= 350 * ONE;
  return inside >= 4;
}

bool yk__figure_contains(int kind, int32_t u, int32_t v) {
  int32_t au = abs(u), av = abs(v), rr = square(u) + square(v);
  switch (kind) {
    case YK__DISC: return rr <= square(880);
    case YK__RING: return rr <= square(960) && rr >= square(540);
    case YK__SQUARE: return au <= 760 && av <= 760;
    case YK__TRIANGLE: return v <= 520 && au * 1774 <= (v + ONE) * ONE;                 /* 1774 = sqrt(3)*1024 */
    case YK__CROSS: return (au <= 270 && av <= 960) || (av <= 270 && au <= 960);
    case YK__STAR: return in_star(u, v);
    case YK__CRESCENT: return rr <= square(940) && square(u - 460) + square(v) >= square(760);
    case YK__ARROW: return v < 0 ? 4 * au <= 3 * (v + 980) : au <= 230 && v <= 940;
    case YK__HOURGLASS: return av <= 780 && 8 * au <= 7 * av + 600;
    default: return au <= 800 && av >= 240 && av <= 700;
  }
}
