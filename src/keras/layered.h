/*
 * layered.h - where the boxes of a drawing go: from top to bottom in ranks, and the ways of the arrows between them.
 *
 * Boxes are numbered in an order in which arrows go forwards but for a few. Those few are drawn upwards. An arrow over several
 * ranks has a place of its own in each rank that it passes, so it never meets a box.
 */
#ifndef YK_KERAS_LAYERED_H
#define YK_KERAS_LAYERED_H

#include <stdbool.h>
#include <stdint.h>
#include <yoke/status.h>

typedef struct yk_place {          /* of a box, or of arrows that pass by */
  double w, h;                     /* of a box: set by the caller */
  double x, y;                     /* its middle; its top */
  uint32_t rank, at;               /* at: number in its rank */
} yk_place;

typedef struct yk_arrow {
  uint32_t from, to;               /* boxes; not the same */
  uint32_t first, nvia;            /* places between them, from above to below: via[first], ... */
  double above, below;             /* x where it meets the lower edge of the box above, and the upper edge of the one below */
} yk_arrow;

typedef struct yk_layered {
  yk_place *place; uint32_t nplace, place_cap;       /* the boxes, then what passes by */
  yk_arrow *arrow; uint32_t narrow, arrow_cap;       /* by the box that is higher */
  uint32_t *via;   uint32_t nvia, via_cap;
  uint32_t nbox, nrank;
  double *top, *bottom;            /* [nrank] */
  double w, h;                     /* of all of it; x begins at 0, y too */
} yk_layered;

/* The box of that size is number nbox. */
yk_code yk__layered_box(yk_layered *d, double w, double h) YK_CHECKED;
/* After all boxes; a second arrow between the same two is none. */
yk_code yk__layered_arrow(yk_layered *d, uint32_t from, uint32_t to) YK_CHECKED;
/* Find all places. */
yk_code yk__layered_arrange(yk_layered *d) YK_CHECKED;
void    yk__layered_free(yk_layered *d);

#endif
