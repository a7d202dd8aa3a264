/*
 * figures.h - the ten kinds of figures that pictures are drawn of, and the draws by which it is decided how.
 *
 * All arithmetic is in integers, so that whoever draws with these has the same pictures on every machine.
 */
#ifndef YK_DATA_FIGURES_H
#define YK_DATA_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds, as shapes10 numbers its classes. */
enum { YK__DISC, YK__RING, YK__SQUARE, YK__TRIANGLE, YK__CROSS, YK__STAR, YK__CRESCENT, YK__ARROW, YK__HOURGLASS, YK__BARS, YK__FIGURES };
/* Of a figure's own coordinates: no figure goes further from its middle along u or v, and none of its corners much further than
 * that. */
enum { YK__FIGURE_RADIUS = 1024 };

/* Does the figure contain (u, v)? |u|, |v| <= YK__FIGURE_RADIUS. */
bool yk__figure_contains(int kind, int32_t u, int32_t v);

/* Draws one after the other; those of another (seed, stream, step) are others. Begin with the rest at zero. */
typedef struct yk_draws { uint64_t seed, stream, step, block; uint32_t word[4]; int left; } yk_draws;
/* Uniform from lo to hi, both included. */
int32_t yk__draw(yk_draws *d, int32_t lo, int32_t hi);

#endif
