/*
 * loop_picture.c - preparing the kernels that read pictures between cells.
 *
 * Where a row or column of a resized picture lies depends on shapes alone, so it is worked out here, once.
 */
#include "loop_picture.h"

#include <math.h>
#include <string.h>

enum { STRIPE = 16 };

static yk_between between(int64_t i, int64_t by, int64_t size, int bilinear) {
  const double place = ((double)i + 0.5) / (double)by - 0.5, low = floor(place);
  if (!bilinear) return (yk_between){ { i / by, i / by }, 0 };
  const int64_t first = low < 0 ? 0 : (int64_t)low, second = (int64_t)low + 1 < size ? (int64_t)low + 1 : size - 1;
  return (yk_between){ { first, second }, first == second ? 0 : place - low };
}

yk_code yk__cpu_loop_resize(yk_cpu_prepare *p) {
  const yk_resize_attrs *a = p->k->attrs;
  const int bilinear = strncmp(p->spec->op, "resize_bilinear", 15) == 0, backward = strstr(p->spec->op, "_grad") != NULL;
  const yk_desc *small = backward ? &p->k->out[0] : &p->k->in[0];
  const int64_t down = a && a->scale[0] ? a->scale[0] : 1, across = a && a->scale[1] ? a->scale[1] : 1;
  const int64_t rows = small->dim[1] * down, columns = small->dim[2] * across;
  yk_resize_state *s;
  YK_TRY(yk__loop_body(p, sizeof *s + (size_t)(rows + columns) * sizeof(yk_between),
                       yk__loop_bodies(LOOP_PICTURE)->body[backward ? PICTURE_RESIZE_GRAD : PICTURE_RESIZE][yk__loop_is_f64(p->k)],
                       backward ? "plain:resize_grad" : "plain:resize", &s));
  s->n = small->dim[0];
  s->h = small->dim[1];
  s->w = small->dim[2];
  s->c = small->dim[3];
  s->scale[0] = down;
  s->scale[1] = across;
  s->row = s->table;
  s->column = s->table + rows;
  for (int64_t i = 0; i < rows; i++) s->table[i] = between(i, down, s->h, bilinear);
  for (int64_t i = 0; i < columns; i++) s->table[rows + i] = between(i, across, s->w, bilinear);
  yk__loop_workspace(p, 0);
  return YK_OK;
}

yk_code yk__cpu_loop_roi(yk_cpu_prepare *p) {
  const yk_roi_attrs *a = p->k->attrs;
  const int backward = strcmp(p->spec->op, "roi_align_grad") == 0;
  const yk_desc *x = backward ? &p->k->in[3] : &p->k->in[0], *y = backward ? &p->k->in[0] : &p->k->out[0];
  yk_roi_state *s;
  YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_PICTURE)->body[backward ? PICTURE_ROI_GRAD : PICTURE_ROI][yk__loop_is_f64(p->k)],
                       backward ? "plain:roi_align_grad" : "plain:roi_align", &s));
  s->n = x->dim[0];
  s->h = x->dim[1];
  s->w = x->dim[2];
  s->c = x->dim[3];
  s->boxes = y->dim[0];
  s->size[0] = y->dim[1];
  s->size[1] = y->dim[2];
  s->samples = a && a->samples ? a->samples : 2;
  s->scale = a && a->scale != 0 ? a->scale : 1;
  s->aligned = a && a->aligned;
  s->offset = s->aligned ? 0.5 : 0;
  s->stripe = STRIPE;
  yk__loop_workspace(p, 0);
  return YK_OK;
}
