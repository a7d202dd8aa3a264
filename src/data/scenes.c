/*
 * scenes.c - pictures of several figures whose boxes are known: what an object detector can be tried on without files.
 *
 * A scene is a background of one colour that changes a little across it, figures of three kinds in colours of their own, and
 * noise. Figures may hide a corner of earlier ones, not more. Everything is a function of (seed, number), in integers, but for
 * the last division: the same scenes on every machine.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yoke/data.h>
#include "base/error.h"
#include "base/rng.h"
#include "data/figures.h"
#include "tensor/desc.h"

enum {
  STREAM = 302, NOISE_STREAM = 303,
  LEAST_SIDE = 32, MOST_SIDE = 1024, MOST_FIGURES = 64,
  UNIT = 64, GRID = 4, SAMPLES = GRID * GRID, STEP = UNIT / GRID,      /* lengths, and samples in a pixel, as in shapes10.c */
  TRIES = 40,                      /* to find a place for a figure */
  SLOPE = 30, CONTRAST = 60, NOISE = 12                                  /* levels of a byte */
};
static const int kinds_of_figures[YK_SCENE_CLASSES] = { YK__DISC, YK__SQUARE, YK__TRIANGLE };

/* Middle and radii, in units; box: what its samples cover, in samples from the first one. */
typedef struct figure { int32_t kind, x, y, rx, ry, colour[3], top, left, bottom, right; } figure;
typedef struct scene { yk_draws draws; int32_t side, back[3], slope[3], n; figure figure[MOST_FIGURES]; } scene;

static bool contains(const figure *f, int32_t sx, int32_t sy) {
  int32_t u = (sx * STEP + STEP / 2 - f->x) * YK__FIGURE_RADIUS / f->rx, v = (sy * STEP + STEP / 2 - f->y) * YK__FIGURE_RADIUS / f->ry;
  return abs(u) <= YK__FIGURE_RADIUS && abs(v) <= YK__FIGURE_RADIUS && yk__figure_contains(kinds_of_figures[f->kind], u, v);
}

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

static void bound(figure *f, int32_t samples) {
  f->top = f->left = samples;
  f->bottom = f->right = 0;
  for (int32_t y = larger((f->y - f->ry) / STEP, 0); y < smaller((f->y + f->ry) / STEP + 1, samples); y++)
    for (int32_t x = larger((f->x - f->rx) / STEP, 0); x < smaller((f->x + f->rx) / STEP + 1, samples); x++) {
      if (!contains(f, x, y)) continue;
      f->top = smaller(f->top, y);
      f->left = smaller(f->left, x);
      f->bottom = larger(f->bottom, y + 1);
      f->right = larger(f->right, x + 1);
    }
}

static int64_t area(int32_t height, int32_t width) { return height > 0 && width > 0 ? (int64_t)height * width : 0; }

/* At most an eighth of either is common to both. */
static bool apart(const figure *a, const figure *b) {
  int64_t common = area(smaller(a->bottom, b->bottom) - larger(a->top, b->top), smaller(a->right, b->right) - larger(a->left, b->left));
  return 8 * common <= area(a->bottom - a->top, a->right - a->left) && 8 * common <= area(b->bottom - b->top, b->right - b->left);
}

static bool place(scene *s, figure *f) {
  yk_draws *d = &s->draws;
  int32_t radius = yk__draw(d, s->side * UNIT / 8, s->side * UNIT / 4);
  f->rx = radius * yk__draw(d, 75, 100) / 100;
  f->ry = radius * yk__draw(d, 75, 100) / 100;
  f->x = yk__draw(d, f->rx, s->side * UNIT - f->rx);
  f->y = yk__draw(d, f->ry, s->side * UNIT - f->ry);
  bound(f, s->side * GRID);
  for (int32_t i = 0; i < s->n; i++)
    if (!apart(f, &s->figure[i])) return false;
  return true;
}

static void dress(scene *s, figure *f) {
  int32_t difference = 0;
  while (difference < CONTRAST)
    for (int k = 0; k < 3; k++) {
      f->colour[k] = yk__draw(&s->draws, 20, 235);
      difference = larger(k ? difference : 0, abs(f->colour[k] - s->back[k]));
    }
}

static void compose(scene *s, int32_t most) {
  int32_t wanted = yk__draw(&s->draws, 1, most);
  for (int k = 0; k < 3; k++) {
    s->back[k] = yk__draw(&s->draws, 40, 215);
    s->slope[k] = yk__draw(&s->draws, -SLOPE, SLOPE);
  }
  for (int32_t i = 0; i < wanted; i++) {
    figure f = { .kind = yk__draw(&s->draws, 0, YK_SCENE_CLASSES - 1) };
    int32_t tries = 0;
    while (tries < TRIES && !place(s, &f)) tries++;
    if (tries == TRIES) continue;
    dress(s, &f);
    s->figure[s->n++] = f;
  }
}

static int32_t cover(const figure *f, int32_t px, int32_t py) {
  int32_t n = 0;
  for (int32_t i = 0; i < SAMPLES; i++) n += contains(f, px * GRID + i % GRID, py * GRID + i / GRID);
  return n;
}

/* Levels of a pixel times SAMPLES, without noise. */
static void paint(const scene *s, int32_t px, int32_t py, int32_t level[3]) {
  for (int k = 0; k < 3; k++) level[k] = SAMPLES * (s->back[k] + s->slope[k] * (px + py - s->side) / s->side);
  for (int32_t i = 0; i < s->n; i++) {
    const figure *f = &s->figure[i];
    if (px < f->left / GRID || px > f->right / GRID || py < f->top / GRID || py > f->bottom / GRID) continue;
    int32_t n = cover(f, px, py);
    for (int k = 0; k < 3; k++) level[k] = (level[k] * (SAMPLES - n) + SAMPLES * f->colour[k] * n) / SAMPLES;
  }
}

static void finish(const scene *s, float *picture) {
  for (int32_t i = 0; i < s->side * s->side; i++) {
    int32_t level[3];
    uint32_t w[4];
    paint(s, i % s->side, i / s->side, level);
    yk__rng_block(s->draws.seed, NOISE_STREAM, s->draws.step, (uint64_t)i, 0, w);
    for (int k = 0; k < 3; k++) {
      int32_t noise = (int32_t)(w[k] % (2 * NOISE * SAMPLES + 1)) - NOISE * SAMPLES;
      picture[3 * i + k] = (float)larger(smaller(level[k] + noise, 255 * SAMPLES), 0) / (255.0f * SAMPLES);
    }
  }
}

static void draw_scene(scene *s, int64_t most, float *picture, float *boxes, int32_t *classes) {
  compose(s, (int32_t)most);
  memset(boxes, 0, (size_t)most * 4 * sizeof *boxes);
  memset(classes, 0, (size_t)most * sizeof *classes);
  for (int32_t i = 0; i < s->n; i++) {
    const int32_t corner[4] = { s->figure[i].top, s->figure[i].left, s->figure[i].bottom, s->figure[i].right };
    for (int k = 0; k < 4; k++) boxes[4 * i + k] = (float)corner[k] / GRID;
    classes[i] = s->figure[i].kind;
  }
  finish(s, picture);
}

static yk_code check(int64_t n, int64_t side, int64_t most) {
  if (n >= 1 && side >= LEAST_SIDE && side <= MOST_SIDE && most >= 1 && most <= MOST_FIGURES) return YK_OK;
  return YK_FAIL(EINVAL, "%" PRId64 " scenes of %" PRId64 " pixels a side with up to %" PRId64 " figures; expected 1 or more, %d to %d, 1 to %d", n,
                 side, most, LEAST_SIDE, MOST_SIDE, MOST_FIGURES);
}

yk_code yk_scenes_new(int64_t n, int64_t side, int64_t most, yk_tensor *out[3]) {
  yk_tensor *made[3] = { NULL, NULL, NULL };
  if (out == NULL) return YK_FAIL(EINVAL, "yk_scenes_new needs a place for the result");
  YK_TRY(check(n, side, most));
  yk_code rc = yk_tensor_new(YK_F32, YK_SHAPE(n, side, side, 3), &made[0]);
  if (rc == YK_OK) rc = yk_tensor_new(YK_F32, YK_SHAPE(n, most, 4), &made[1]);
  if (rc == YK_OK) rc = yk_tensor_new(YK_I32, YK_SHAPE(n, most), &made[2]);
  for (int i = 0; i < 3; i++) {
    if (rc == YK_OK) out[i] = made[i];
    else yk_tensor_free(made[i]);
  }
  return rc;
}

yk_code yk_scenes_draw(uint64_t seed, uint64_t first, yk_tensor *const out[3]) {
  if (out == NULL || out[0] == NULL || out[2] == NULL) return YK_FAIL(EINVAL, "yk_scenes_draw: NULL argument");
  const int64_t n = yk_tensor_desc(out[0])->dim[0], side = yk_tensor_desc(out[0])->dim[1], most = yk_tensor_desc(out[2])->dim[1];
  YK_TRY(yk__tensor_want("pictures", out[0], YK_F32, YK_SHAPE(n, side, side, 3)));
  YK_TRY(yk__tensor_want("boxes", out[1], YK_F32, YK_SHAPE(n, most, 4)));
  YK_TRY(yk__tensor_want("classes", out[2], YK_I32, YK_SHAPE(n, most)));
  YK_TRY(check(n, side, most));
  float *picture = yk_tensor_data(out[0]), *box = yk_tensor_data(out[1]);
  int32_t *class = yk_tensor_data(out[2]);
  for (int64_t i = 0; i < n; i++, picture += side * side * 3, box += 4 * most, class += most) {
    scene s = { .draws = { .seed = seed, .stream = STREAM, .step = first + (uint64_t)i }, .side = (int32_t)side };
    draw_scene(&s, most, picture, box, class);
  }
  return YK_OK;
}
