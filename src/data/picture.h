/*
 * picture.h - from an encoded JPEG or PNG to u8 [height, width, channels] of one size.
 *
 * Grey becomes RGB and RGB grey (0.299 R + 0.587 G + 0.114 B) as the target asks; alpha is dropped, 16 bits become their upper 8,
 * palettes their colours. Not done: colours by gamma or profile, EXIF's orientation, CMYK (EUNSUPPORTED).
 */
#ifndef YK_DATA_PICTURE_H
#define YK_DATA_PICTURE_H

#include <yoke/data.h>

enum { YK__MOST_PIXELS = 1 << 27 };  /* of an encoded picture: a few bytes can declare any number */

typedef struct yk_target { int64_t height, width, channels; yk_fit fit; } yk_target;   /* channels 1 or 3 */
typedef struct yk_bitmap { uint8_t *pixel; int64_t h, w, c; } yk_bitmap;               /* [h, w, c]; pixel from yk__alloc */

typedef enum yk_coding { YK_CODING_NONE, YK_CODING_JPEG, YK_CODING_PNG } yk_coding;
/* By the first bytes. */
yk_coding yk__picture_coding(const uint8_t *p, size_t n);
/* Without decoding it. Messages of all three tell what is wrong, not where: the caller puts that in front. */
yk_code yk__picture_size(const uint8_t *p, size_t n, int64_t *height, int64_t *width) YK_CHECKED;
yk_code yk__picture_read(const uint8_t *p, size_t n, const yk_target *t, uint8_t *out) YK_CHECKED;

/* jpeg.c, png.c: out->c is t->channels; a JPEG much larger than wanted is decoded at a half, a quarter or an eighth. `only_size`: no
 * pixels, only h and w. */
yk_code yk__jpeg_read(const uint8_t *p, size_t n, const yk_target *t, bool only_size, yk_bitmap *out) YK_CHECKED;
yk_code yk__png_read(const uint8_t *p, size_t n, const yk_target *t, bool only_size, yk_bitmap *out) YK_CHECKED;
/* ECORRUPT: no pixels, or too many. */
yk_code yk__picture_check(int64_t h, int64_t w) YK_CHECKED;

#endif
