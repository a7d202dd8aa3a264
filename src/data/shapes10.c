/*
 * shapes10.c - ten kinds of figures, drawn from a seed: a picture set that needs no files.
 *
 * A figure is lighter than its background or darker by a coin, in random colours, so neither colour nor brightness tells the
 * class, nor does any sum over pixels; only the outline does, whatever its place, size and angle. Every draw is a function of
 * (seed, split, number of the picture), and all arithmetic is in integers: the same pictures on every machine. That is also
 * why a picture need not be drawn before somebody looks at it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "data/figures.h"

enum {
  SIDE = 32, PIXELS = SIDE * SIDE, CLASSES = 10, TRAIN = 20000, TEST = 4000, MAX_PICTURES = 100000000,
  STREAM = 300, NOISE_STREAM = 301,          /* random streams of ops, augmentation and queues are others */
  UNIT = 64,                                 /* of length: a pixel has 64 */
  GRID = 4, SAMPLES = GRID * GRID,           /* samples along a pixel, and in it */
  STEP = UNIT / GRID,
  ONE = YK__FIGURE_RADIUS,
  LATTICE = 5,                               /* points along a side of the coarse lattice of blotches */
  /* How hard it is. Levels of a byte, unless said otherwise. */
  LEAST_CONTRAST = 30, MOST_CONTRAST = 110,  /* between figure and background */
  TINT = 30,                                 /* by how much channels deviate from that */
  SLOPE = 40, BLOTCH = 32, LEAST_NOISE = 4, MOST_NOISE = 36, STROKES = 6,
  LEAST_RADIUS = 6 * UNIT, MOST_RADIUS = 10 * UNIT, OFF_CENTRE = 2 * UNIT,
  TURN = 274                                 /* ONE * tan(15 degrees): figures turn by up to 30 either way */
};

static const char *const class_names[CLASSES] = {
  "disc", "ring", "square", "triangle", "cross", "star", "crescent", "arrow", "hourglass", "bars"
};

/* The colour in the middle, and its change over 32 pixels along (dx, dy). */
typedef struct yk_paint { int32_t colour[3], slope[3], dx, dy; } yk_paint;
/* Where a figure is: u = (ux*x + uy*y)/ONE and v likewise, x and y from the middle (x, y), which it is within `reach` of. */
typedef struct yk_pose { int32_t x, y, ux, uy, vx, vy, reach; } yk_pose;
/* From (x, y) along (dx, dy), with round ends. */
typedef struct yk_stroke { int32_t x, y, dx, dy, width, colour[3]; } yk_stroke;

/* A direction of length ONE, at most `limit` from the first axis as ONE * tan(half the angle): (1-t^2, 2t)/(1+t^2). */
static void draw_turn(yk_draws *d, int32_t limit, int32_t *x, int32_t *y) {
  int32_t t = yk__draw(d, -limit, limit), s = ONE * ONE + t * t;
  *x = (int32_t)((int64_t)ONE * (ONE * ONE - t * t) / s);
  *y = (int32_t)((int64_t)ONE * 2 * ONE * t / s);
}

/* Any direction of length ONE: an eighth of the circle either way, then quarters. */
static void draw_direction(yk_draws *d, int32_t *x, int32_t *y) {
  int32_t c, s;
  draw_turn(d, 424, &c, &s);                                     /* tan(pi/8) */
  switch (yk__draw(d, 0, 3)) {
    case 0: *x = c, *y = s; return;
    case 1: *x = -s, *y = c; return;
    case 2: *x = -c, *y = -s; return;
    default: *x = s, *y = -c; return;
  }
}

static int32_t least(int32_t a, int32_t b) {
  return a < b ? a : b;
}

static int32_t most(int32_t a, int32_t b) {
  return a > b ? a : b;
}

static yk_pose draw_pose(yk_draws *d) {
  yk_pose p;
  int32_t radius = yk__draw(d, LEAST_RADIUS, MOST_RADIUS), c, s, ru, rv;
  ru = radius * yk__draw(d, 85, 100) / 100;
  rv = radius * yk__draw(d, 85, 100) / 100;
  draw_turn(d, TURN, &c, &s);
  p.x = SIDE / 2 * UNIT + yk__draw(d, -OFF_CENTRE, OFF_CENTRE);
  p.y = SIDE / 2 * UNIT + yk__draw(d, -OFF_CENTRE, OFF_CENTRE);
  p.ux = ONE * c / ru;
  p.uy = ONE * s / ru;
  p.vx = -ONE * s / rv;
  p.vy = ONE * c / rv;
  p.reach = radius * 5 / 4 + UNIT;             /* no figure goes further */
  return p;
}

/* The figure is lighter than what is behind it, or darker, by a coin. */
static void draw_paints(yk_draws *d, yk_paint *back, yk_paint *front) {
  int32_t contrast = yk__draw(d, LEAST_CONTRAST, MOST_CONTRAST), lighter = yk__draw(d, 0, 1);
  for (int k = 0; k < 3; k++) {
    int32_t difference = most(contrast + yk__draw(d, -TINT, TINT), 0), dark = yk__draw(d, 15, 240 - difference);
    back->colour[k] = lighter ? dark : dark + difference;
    front->colour[k] = lighter ? dark + difference : dark;
    back->slope[k] = yk__draw(d, -SLOPE, SLOPE);
    front->slope[k] = yk__draw(d, -SLOPE, SLOPE);
  }
  draw_direction(d, &back->dx, &back->dy);
  draw_direction(d, &front->dx, &front->dy);
}

static yk_stroke draw_stroke(yk_draws *d) {
  yk_stroke s;
  int32_t c, q, length = yk__draw(d, UNIT, 18 * UNIT);
  draw_direction(d, &c, &q);
  s.x = yk__draw(d, 0, SIDE * UNIT);
  s.y = yk__draw(d, 0, SIDE * UNIT);
  s.dx = length * c / ONE;
  s.dy = length * q / ONE;
  s.width = yk__draw(d, UNIT * 4 / 10, UNIT * 9 / 10);
  for (int k = 0; k < 3; k++) s.colour[k] = yk__draw(d, 10, 245);
  return s;
}

static int in_pose(int kind, const yk_pose *p, int32_t x, int32_t y) {
  int32_t u = (p->ux * x + p->uy * y) / ONE, v = (p->vx * x + p->vy * y) / ONE;
  return abs(u) <= ONE && abs(v) <= ONE && yk__figure_contains(kind, u, v);
}

/* How many of a pixel's samples the figure contains. Where its four corners agree, all are taken to. */
static int32_t figure_cover(int kind, const yk_pose *p, int32_t px, int32_t py) {
  int32_t x0 = px * UNIT + STEP / 2 - p->x, y0 = py * UNIT + STEP / 2 - p->y, far = UNIT - STEP, n;
  if (abs(x0) > p->reach || abs(y0) > p->reach) return 0;
  n = in_pose(kind, p, x0, y0) + in_pose(kind, p, x0 + far, y0);
  n += in_pose(kind, p, x0, y0 + far) + in_pose(kind, p, x0 + far, y0 + far);
  if (n % 4 == 0) return n * GRID;
  n = 0;
  for (int32_t y = y0; y <= y0 + far; y += STEP)
    for (int32_t x = x0; x <= x0 + far; x += STEP) n += in_pose(kind, p, x, y);
  return n;
}

/* Within `width` of the segment: the squared distance times the squared length, so that nothing is divided. */
static int in_stroke(const yk_stroke *s, int32_t width, int32_t x, int32_t y) {
  int64_t px = x - s->x, py = y - s->y, length = (int64_t)s->dx * s->dx + (int64_t)s->dy * s->dy, along = px * s->dx + py * s->dy;
  int64_t cross = px * s->dy - py * s->dx, limit = (int64_t)width * width;
  if (along <= 0) return px * px + py * py <= limit;
  if (along >= length) return (px - s->dx) * (px - s->dx) + (py - s->dy) * (py - s->dy) <= limit;
  return cross * cross <= limit * length;
}

/* First and last pixel that [a, b] touches. */
static void span(int32_t a, int32_t b, int32_t *first, int32_t *last) {
  *first = most(least(a, b) / UNIT, 0);
  *last = least(most(a, b) / UNIT, SIDE - 1);
}

static int32_t stroke_cover(const yk_stroke *s, int32_t px, int32_t py) {
  int32_t n = 0;
  if (!in_stroke(s, s->width + UNIT, px * UNIT + UNIT / 2, py * UNIT + UNIT / 2)) return 0;
  for (int32_t y = STEP / 2; y < UNIT; y += STEP)
    for (int32_t x = STEP / 2; x < UNIT; x += STEP) n += in_stroke(s, s->width, px * UNIT + x, py * UNIT + y);
  return n;
}

static void paint_stroke(const yk_stroke *s, int32_t *pixel) {
  int32_t left, right, top, bottom;
  span(least(s->x, s->x + s->dx) - s->width, most(s->x, s->x + s->dx) + s->width, &left, &right);
  span(least(s->y, s->y + s->dy) - s->width, most(s->y, s->y + s->dy) + s->width, &top, &bottom);
  for (int32_t y = top; y <= bottom; y++)
    for (int32_t x = left; x <= right; x++) {
      int32_t *at = pixel + 3 * (y * SIDE + x), n = stroke_cover(s, x, y);
      for (int k = 0; k < 3; k++) at[k] += (s->colour[k] - at[k]) * n / SAMPLES;
    }
}

/* Blotches: random numbers on a coarse lattice, 8 pixels wide, and straight lines between. */
static int32_t blotch(int32_t (*lattice)[LATTICE], int32_t x, int32_t y) {
  int32_t i = x / 8, j = y / 8, fx = x % 8, fy = y % 8;
  int32_t top = lattice[j][i] * (8 - fx) + lattice[j][i + 1] * fx;
  int32_t bottom = lattice[j + 1][i] * (8 - fx) + lattice[j + 1][i + 1] * fx;
  return (top * (8 - fy) + bottom * fy) / 64;
}

static int32_t shade(const yk_paint *p, int k, int32_t x, int32_t y) {
  return p->colour[k] + p->slope[k] * (p->dx * (x - SIDE / 2) + p->dy * (y - SIDE / 2)) / (SIDE * ONE);
}

static void paint_figure(yk_draws *d, int kind, int32_t *pixel) {
  yk_pose pose = draw_pose(d);
  yk_paint back, front;
  int32_t lattice[LATTICE][LATTICE], depth[3], blotches = yk__draw(d, 0, BLOTCH);
  draw_paints(d, &back, &front);
  for (int k = 0; k < 3; k++) depth[k] = yk__draw(d, 4, 8);
  for (int i = 0; i < LATTICE * LATTICE; i++) lattice[i / LATTICE][i % LATTICE] = yk__draw(d, -blotches, blotches);
  for (int32_t y = 0; y < SIDE; y++)
    for (int32_t x = 0; x < SIDE; x++) {
      int32_t n = figure_cover(kind, &pose, x, y), texture = blotch(lattice, x, y);
      for (int k = 0; k < 3; k++) {
        int32_t value = n == SAMPLES ? 0 : shade(&back, k, x, y) * (SAMPLES - n);
        if (n > 0) value += shade(&front, k, x, y) * n;
        pixel[3 * (y * SIDE + x) + k] = value / SAMPLES + texture * depth[k] / 8;
      }
    }
}

/* Add to each value a number between -noise and noise. */
static void finish(yk_draws *d, int32_t *pixel, uint8_t *out) {
  int32_t noise = yk__draw(d, LEAST_NOISE, MOST_NOISE);
  for (int32_t i = 0; i < 3 * PIXELS; i += 16) {
    uint32_t w[4];
    yk__rng_block(d->seed, NOISE_STREAM, d->step, (uint64_t)i / 16, 0, w);
    for (int32_t j = 0; j < 16; j++) {
      int32_t spread = 2 * (int32_t)(w[j / 4] >> 8 * (j % 4) & 255) - 255;
      out[i + j] = (uint8_t)least(most(pixel[i + j] + spread * noise / 256, 0), 255);
    }
  }
}

static void draw_picture(const yk_pictures *set, int64_t i, uint8_t *out) {
  yk_draws d = { .seed = set->seed, .stream = STREAM, .step = (uint64_t)i * 2 + set->split };
  int32_t pixel[3 * PIXELS], strokes;
  paint_figure(&d, set->label[i], pixel);
  strokes = yk__draw(&d, 1, STROKES);
  for (int32_t s = 0; s < strokes; s++) {
    yk_stroke stroke = draw_stroke(&d);
    paint_stroke(&stroke, pixel);
  }
  finish(&d, pixel, out);
}

yk_code yk_dataset_shapes10(uint64_t seed, yk_split split, int64_t n, yk_dataset **out) {
  yk_dataset *d;
  yk_pictures *p;
  if (out == NULL) return YK_FAIL(EINVAL, "yk_dataset_shapes10 needs a place for the result");
  YK_TRY(yk__split_check(split));
  if (n < 0 || n > MAX_PICTURES) return YK_FAIL(EINVAL, "shapes10 has 1 to %d pictures (0 = default), not %" PRId64, MAX_PICTURES, n);
  if (n == 0) n = split == YK_TEST ? TEST : TRAIN;
  YK_TRY(yk__pictures_new("shapes10", n, SIDE, SIDE, 3, CLASSES, &d, &p));
  d->class_name = class_names;
  p->seed = seed;
  p->split = split == YK_TEST;
  p->drawn = yk__calloc((size_t)n, sizeof *p->drawn);
  if (p->drawn == NULL) {
    yk_dataset_free(d);
    return YK_ENOMEM;
  }
  p->draw = draw_picture;
  for (int64_t i = 0; i < n; i++) p->label[i] = (uint8_t)(i % CLASSES);
  *out = d;
  return YK_OK;
}
