/*
 * png.c - PNG pictures through libpng.
 *
 * The library leaves by longjmp on an error, so everything that must be given back then is in one struct, outside the function that
 * it jumps to. Its memory comes from our allocator.
 */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/picture.h"

typedef struct yk_png {
  png_structp png;
  png_infop info;
  const uint8_t *p;
  size_t left;
  yk_code code;
  char why[128];
  yk_bitmap b;
  png_bytep *row;                    /* [b.h] */
} yk_png;

static void leave(png_structp png, png_const_charp why) {
  yk_png *s = png_get_error_ptr(png);
  if (s->code == YK_OK) s->code = YK_ECORRUPT;
  snprintf(s->why, sizeof s->why, "%s", why);
  png_longjmp(png, 1);
}

static void warn(png_structp png, png_const_charp why) {
  (void)png;
  (void)why;
}

static void *get_memory(png_structp png, png_alloc_size_t bytes) {
  yk_png *s = png_get_mem_ptr(png);
  void *p = yk__alloc(bytes);
  if (p == NULL) s->code = YK_ENOMEM;
  return p;
}

static void give_memory(png_structp png, void *p) {
  (void)png;
  yk__free(p);
}

static void feed(png_structp png, png_bytep out, size_t n) {
  yk_png *s = png_get_io_ptr(png);
  if (n > s->left) png_error(png, "it is cut off");
  memcpy(out, s->p, n);
  s->p += n;
  s->left -= n;
}

/* Whatever it is, let it be 8 bits of grey or RGB. */
static void convert(yk_png *s, const yk_target *t) {
  int colour = png_get_color_type(s->png, s->info);
  png_set_strip_16(s->png);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(s->png);
  if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(s->png);
  png_set_strip_alpha(s->png);
  if (t->channels == 3 && !(colour & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(s->png);
  if (t->channels == 1 && (colour & PNG_COLOR_MASK_COLOR)) png_set_rgb_to_gray(s->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  png_set_interlace_handling(s->png);
  png_read_update_info(s->png, s->info);
}

static void get_room(yk_png *s, const yk_target *t) {
  s->b.c = t->channels;
  if (png_get_rowbytes(s->png, s->info) != (size_t)(s->b.w * s->b.c)) png_error(s->png, "its colours cannot be converted");
  s->b.pixel = yk__alloc((size_t)(s->b.h * s->b.w * s->b.c));
  s->row = yk__alloc((size_t)s->b.h * sizeof *s->row);
  if (s->b.pixel == NULL || s->row == NULL) {
    s->code = YK_ENOMEM;
    png_error(s->png, "no memory for its pixels");
  }
  for (int64_t y = 0; y < s->b.h; y++) s->row[y] = s->b.pixel + y * s->b.w * s->b.c;
}

static void decode(yk_png *s, const yk_target *t, bool only_size) {
  if (setjmp(png_jmpbuf(s->png)) != 0) return;
  s->info = png_create_info_struct(s->png);
  if (s->info == NULL) png_error(s->png, "no memory");
  png_set_user_limits(s->png, YK__MOST_PIXELS, YK__MOST_PIXELS);
  png_set_read_fn(s->png, s, feed);
  png_read_info(s->png, s->info);
  s->b.h = png_get_image_height(s->png, s->info);
  s->b.w = png_get_image_width(s->png, s->info);
  s->code = yk__picture_check(s->b.h, s->b.w);
  if (s->code != YK_OK || only_size) return;
  convert(s, t);
  get_room(s, t);
  png_read_image(s->png, s->row);
  png_read_end(s->png, NULL);
}

yk_code yk__png_read(const uint8_t *p, size_t n, const yk_target *t, bool only_size, yk_bitmap *out) {
  yk_png s = { .p = p, .left = n, .code = YK_OK };
  s.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &s, leave, warn, &s, get_memory, give_memory);
  if (s.png == NULL) return YK_ENOMEM;
  decode(&s, t, only_size);
  png_destroy_read_struct(&s.png, &s.info, NULL);
  yk__free(s.row);
  if (s.code == YK_OK) *out = s.b;
  else yk__free(s.b.pixel);
  return s.why[0] == '\0' ? s.code : yk__fail(s.code, __FILE__, __LINE__, "the PNG cannot be decoded: %s", s.why);
}
