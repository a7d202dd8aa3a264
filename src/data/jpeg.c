/*
 * jpeg.c - JPEG pictures through libjpeg-turbo.
 *
 * The library leaves by longjmp on an error, so everything that must be given back then is in one struct, outside the function that
 * it jumps to. It only warns of data that ends early or makes no sense, and goes on with grey; here both are errors.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/picture.h"

enum { MOST_SCANS = 200 };           /* of a progressive picture: each costs as much as the whole */

typedef struct yk_jpeg {
  struct jpeg_decompress_struct c;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf back;
  yk_code code;
  char why[JMSG_LENGTH_MAX];
  yk_bitmap b;
  JSAMPROW row;
} yk_jpeg;

static void leave(j_common_ptr c) {
  yk_jpeg *j = c->client_data;
  c->err->format_message(c, j->why);
  j->code = c->err->msg_code == JERR_OUT_OF_MEMORY ? YK_ENOMEM : YK_ECORRUPT;
  longjmp(j->back, 1);
}

static void warn(j_common_ptr c, int level) {
  if (level >= 0) return;
  switch (c->err->msg_code) {
    case JWRN_HIT_MARKER: case JWRN_JPEG_EOF: case JWRN_HUFF_BAD_CODE: case JWRN_MUST_RESYNC: case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION: case JWRN_NOT_SEQUENTIAL: leave(c); return;
    default: return;                 /* a few bytes too many, say */
  }
}

static void count_scans(j_common_ptr c) {
  yk_jpeg *j = c->client_data;
  if (!c->is_decompressor || j->c.input_scan_number <= MOST_SCANS) return;
  snprintf(j->why, sizeof j->why, "it has more than %d scans", MOST_SCANS);
  j->code = YK_ECORRUPT;
  longjmp(j->back, 1);
}

static void refuse(yk_jpeg *j, yk_code code, const char *why) {
  snprintf(j->why, sizeof j->why, "%s", why);
  j->code = code;
  longjmp(j->back, 1);
}

/* The largest of 8, 4, 2 that leaves twice what is wanted. */
static unsigned reduction(const yk_jpeg *j, const yk_target *t) {
  for (unsigned d = 8; d > 1; d /= 2)
    if (j->c.image_width / d >= 2 * t->width && j->c.image_height / d >= 2 * t->height) return d;
  return 1;
}

static void decode(yk_jpeg *j, const uint8_t *p, size_t n, const yk_target *t, bool only_size) {
  if (setjmp(j->back) != 0) return;
  jpeg_create_decompress(&j->c);
  j->c.client_data = j;
  j->c.progress = &j->progress;
  jpeg_mem_src(&j->c, p, (unsigned long)n);
  jpeg_read_header(&j->c, TRUE);
  j->b.h = j->c.image_height;
  j->b.w = j->c.image_width;
  j->code = yk__picture_check(j->b.h, j->b.w);
  if (j->code != YK_OK || only_size) return;
  if (j->c.jpeg_color_space == JCS_CMYK || j->c.jpeg_color_space == JCS_YCCK)
    refuse(j, YK_EUNSUPPORTED, "it is in CMYK colours; convert it to RGB");
  j->c.out_color_space = t->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  j->c.scale_num = 1;
  j->c.scale_denom = reduction(j, t);
  jpeg_start_decompress(&j->c);
  j->b.h = j->c.output_height;
  j->b.w = j->c.output_width;
  j->b.c = t->channels;
  if (j->c.output_components != t->channels) refuse(j, YK_EUNSUPPORTED, "its colours cannot be converted");
  j->b.pixel = yk__alloc((size_t)(j->b.h * j->b.w * j->b.c));
  if (j->b.pixel == NULL) refuse(j, YK_ENOMEM, "no memory for its pixels");
  while (j->c.output_scanline < j->c.output_height) {
    j->row = j->b.pixel + j->c.output_scanline * j->b.w * j->b.c;
    jpeg_read_scanlines(&j->c, &j->row, 1);
  }
  jpeg_finish_decompress(&j->c);
}

yk_code yk__jpeg_read(const uint8_t *p, size_t n, const yk_target *t, bool only_size, yk_bitmap *out) {
  yk_jpeg j = { .code = YK_OK };
  j.c.err = jpeg_std_error(&j.errors);
  j.c.client_data = &j;
  j.errors.error_exit = leave;
  j.errors.emit_message = warn;
  j.progress.progress_monitor = count_scans;
  decode(&j, p, n, t, only_size);
  jpeg_destroy_decompress(&j.c);
  if (j.code == YK_OK) *out = j.b;
  else yk__free(j.b.pixel);
  return j.why[0] == '\0' ? j.code : yk__fail(j.code, __FILE__, __LINE__, "the JPEG cannot be decoded: %s", j.why);
}
