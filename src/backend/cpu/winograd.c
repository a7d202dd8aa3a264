/*
 * winograd.c - preparing and running the Winograd convolutions.
 *
 * Taken where they beat the sliding window: f32, stride 1, one group, 3x3 or 5x5 filters, channels that fill vectors. Pictures
 * keep the layout they are offered, plain or blocked by channels, since a tile is read by address anyway; filters are plain.
 * Work is cut by shape alone, so that a result does not depend on the team.
 */
#include "winograd.h"
#include "layout.h"
#include "loop_conv.h"

#include <math.h>
#include <string.h>

enum {
  MIN_CHANNELS = 16,             /* below, transforms cost more than the products save */
  SLOT_BYTES = 400 << 10,        /* both kinds of matrices of a slot: most of a core's second cache */
  SHARED_BYTES = 2400 << 10,     /* the same of the filter's gradient, which all cores share, and its largest number of tiles */
  MAX_SLOT_TILES = 96, MAX_SHARED_TILES = 512,
  LINE = 16                      /* floats of a cache line */
};

typedef struct state {
  yk_wino s;
  yk_wino_fns fn;
  yk_wino_fn sum;
  const yk_conv_kind *kind;
} state;

static yk_wino_call call_of(const yk_kernel *k, void *const *arg, void *workspace) {
  const state *st = k->state;
  const yk_conv_kind *kind = st->kind;
  yk_wino_call c = { .s = &st->s, .src = arg[kind->a], .out = arg[kind->out], .u = workspace };
  c.scratch = c.u + WINO_POINTS * st->s.c * st->s.o;
  if (kind->kind == CONV_GRAD_FILTER) c.dst = arg[kind->b];
  else c.filter = arg[kind->b];
  return c;
}

static yk_code run_picture(const yk_kernel *k, void *const *arg, void *workspace) {
  const state *st = k->state;
  yk_wino_call c = call_of(k, arg, workspace);
  if (st->kind->bias) c.bias = arg[st->kind->bias];
  yk__cpu_host->parallel_for(st->s.c, 4, st->fn.filter, &c);
  yk__cpu_host->parallel_for(st->s.slots, 1, st->fn.forward, &c);
  return YK_OK;
}

static yk_code run_filter(const yk_kernel *k, void *const *arg, void *workspace) {
  const state *st = k->state;
  const yk_wino *s = &st->s;
  const int64_t strips = s->block / WINO_STRIP;
  yk_wino_call c = call_of(k, arg, workspace);
  if (st->kind->bias) {
    c.bias_sum = (double *)(void *)(c.scratch + s->scratch);
    memset(c.bias_sum, 0, (size_t)(strips * s->o) * sizeof *c.bias_sum);
  }
  for (; c.first < s->tiles; c.first += s->block) {
    c.tiles = s->tiles - c.first < s->block ? s->tiles - c.first : s->block;
    yk__cpu_host->parallel_for((c.tiles + WINO_STRIP - 1) / WINO_STRIP, 1, st->fn.gradient_tiles, &c);
    yk__cpu_host->parallel_for(WINO_POINTS * yk__wino_groups(s->c), 1, st->sum, &c);
  }
  yk__cpu_host->parallel_for(s->c, 4, st->fn.finish, &c);
  for (int64_t j = 0; c.bias_sum && j < s->o; j++) {
    double sum = 0;
    for (int64_t i = 0; i < strips; i++) sum += c.bias_sum[i * s->o + j];
    ((float *)arg[st->kind->bias])[j] = (float)sum;
  }
  return YK_OK;
}

/* ---- preparing ---------------------------------------------------------------------------------------------------- */

/* Does d lie so that vectors of `width` channels are together? The block, C for the plain layout; 0 = no. */
static int64_t block_of(const yk_desc *d, int64_t width) {
  if (d->layout == YK_LAYOUT_PLAIN) return d->dim[3];
  int64_t block = yk__layout_channel_block(d);
  return block > 0 && block % width == 0 && d->dim[3] % block == 0 ? block : 0;
}

/* Keep the layout a picture is offered, or make it plain. */
static yk_code settle_picture(const yk_cpu_prepare *p, yk_desc *d, int64_t width) {
  if (block_of(d, width)) return YK_OK;
  if (p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("picture in a layout that does not keep channels together");
  d->layout = YK_LAYOUT_PLAIN;
  return YK_OK;
}

static yk_code settle_layouts(yk_cpu_prepare *p, const yk_conv_kind *kind, int64_t width) {
  yk_kernel *k = p->k;
  for (uint32_t i = 0; i < k->nin; i++) {
    const int picture = i == kind->a || (i == kind->b && kind->kind == CONV_GRAD_FILTER);
    const int read = picture || i == kind->b || (kind->kind == CONV_FORWARD && kind->bias && i == kind->bias);
    if (picture) {
      YK_TRY(settle_picture(p, &k->in[i], width));
    } else if (read && k->in[i].layout != YK_LAYOUT_PLAIN) {
      if (p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("filter or bias in a private layout");
      k->in[i].layout = YK_LAYOUT_PLAIN;
    }
  }
  for (uint32_t i = 0; i < k->nout; i++) k->out[i].layout = YK_LAYOUT_PLAIN;
  if (kind->kind == CONV_GRAD_FILTER) return YK_OK;
  /* The output as the input, if its channels fit such blocks. */
  yk_desc out = *yk__conv_arg(k, kind->out);
  out.layout = k->in[kind->a].layout;
  if (block_of(&out, width)) yk__conv_arg(k, kind->out)->layout = out.layout;
  return YK_OK;
}

static void set_side(yk_wino_side *side, const yk_desc *d, int64_t width, int64_t *at) {
  const int64_t block = block_of(d, width), pixels = d->dim[1] * d->dim[2];
  side->rows = d->dim[1];
  side->cols = d->dim[2];
  side->vectors = d->dim[3] / width;
  side->picture = pixels * d->dim[3];
  side->pixel = block;
  side->at = at;
  for (int64_t v = 0; v < side->vectors; v++) at[v] = v * width / block * pixels * block + v * width % block;
}

/* The filter as the picture that is read sees it: towards the input, turned by half and with its channels swapped. */
static yk_wino_filter filter_of(const yk_conv_kind *kind, const yk_desc *w) {
  const int64_t size = w->dim[0], i = w->dim[2], o = w->dim[3];
  if (kind->kind == CONV_FORWARD) return (yk_wino_filter){ .row = size * i * o, .col = i * o, .src = o, .dst = 1 };
  return (yk_wino_filter){ .first = (size * size - 1) * i * o, .row = -size * i * o, .col = -i * o, .src = 1, .dst = o };
}

/* Vector operations of one picture: the transforms of a tile and its products, against the sliding window's products. */
static int pays(const yk_window *g, int64_t c, int64_t o, int64_t tiles, int64_t width) {
  const double w = (double)width, made = (double)tiles * (36.0 * (double)(c * o) / w + 180.0 * (double)(c + o) / w);
  const double window = (double)(g->oh * g->ow * g->kh * g->kw) * (double)(c * o) / w;
  return made < 0.8 * window;
}

static yk_code accepts(const yk_cpu_prepare *p, const yk_conv_kind *kind, const yk_window *g, int64_t groups, int64_t width) {
  yk_kernel *k = p->k;
  const int64_t o = yk__conv_arg(k, kind->other)->dim[3];
  for (uint32_t i = 0; i < k->nin; i++)
    if (yk__cpu_count(&k->in[i]) == 0) return YK_CPU_REFUSE("input %u is empty", (unsigned)i);
  if (k->in[0].dtype != YK_F32) return YK_CPU_REFUSE("only f32");
  if (groups != 1 || g->sh != 1 || g->sw != 1 || g->dh != 1 || g->dw != 1) return YK_CPU_REFUSE("only one group, stride 1, no dilation");
  if (g->kh != g->kw || (g->kh != 3 && g->kh != 5)) return YK_CPU_REFUSE("only filters of 3x3 and 5x5");
  if (g->top < 0 || g->left < 0 || g->top >= g->kh || g->left >= g->kw) return YK_CPU_REFUSE("padded by more than the filter");
  if (g->c < MIN_CHANNELS || o < MIN_CHANNELS || g->c % width || o % width) return YK_CPU_REFUSE("too few channels, or no whole vectors");
  return YK_OK;
}

static void set_geometry(const yk_conv_kind *kind, const yk_window *g, int64_t c, int64_t o, yk_wino *s) {
  const int64_t pixels = WINO_TILE + 1 - g->kh;
  const int back = kind->kind == CONV_GRAD_INPUT;
  const int64_t rows = back ? g->h : g->oh, cols = back ? g->w : g->ow;
  s->c = back ? o : c;
  s->o = back ? c : o;
  s->top = back ? g->kh - 1 - g->top : g->top;
  s->left = back ? g->kw - 1 - g->left : g->left;
  s->tile_rows = (rows + pixels - 1) / pixels;
  s->tile_cols = (cols + pixels - 1) / pixels;
  s->tiles = g->n * s->tile_rows * s->tile_cols;
}

/* Elements of a row of n, an odd number of cache lines: rows an even number apart meet in a few places of a cache. */
static int64_t row_of(int64_t n) { return ((n + LINE - 1) / LINE | 1) * LINE; }

/* How many tiles are worked on at a time, and how their matrices lie. */
static void set_blocks(const yk_cpu_prepare *p, const yk_conv_kind *kind, yk_wino *s) {
  const int shared = kind->kind == CONV_GRAD_FILTER;
  const int64_t step = shared ? WINO_STRIP : WINO_ROWS, most = shared ? MAX_SHARED_TILES : MAX_SLOT_TILES;
  s->v_row = row_of(s->c);
  s->m_row = row_of(s->o);
  int64_t block = (shared ? SHARED_BYTES : SLOT_BYTES) / (int64_t)sizeof(float) / (WINO_POINTS * (s->v_row + s->m_row)) / step * step;
  s->block = block < step ? step : block > most ? most : block;
  s->blocks = (s->tiles + s->block - 1) / s->block;
  s->v_point = s->block * s->v_row + LINE;
  s->m_point = s->block * s->m_row + LINE;
  s->scratch = WINO_POINTS * (s->v_point + s->m_point);
  s->slots = shared || p->k->dev->ncores == 0 ? 1 : p->k->dev->ncores;
}

static yk_code clamp_of(const yk_kernel *k, const yk_conv_kind *kind, yk_wino *s) {
  const yk_conv2d_attrs *a = k->attrs;
  s->low = -INFINITY;
  s->high = INFINITY;
  if (kind->kind != CONV_FORWARD || !kind->bias || !a || a->act == YK_ACT_NONE) return YK_OK;
  if (a->act != YK_ACT_RELU && a->act != YK_ACT_RELU6) return YK_CPU_REFUSE("only relu and relu6 are fused here");
  s->low = 0.0f;
  if (a->act == YK_ACT_RELU6) s->high = 6.0f;
  return YK_OK;
}

/* In order: the filter's points, the slots' matrices, sums of the bias. */
static uint64_t workspace_of(const state *st) {
  const yk_wino *s = &st->s;
  uint64_t bytes = (uint64_t)(WINO_POINTS * s->c * s->o + s->slots * s->scratch) * sizeof(float);
  if (st->kind->kind == CONV_GRAD_FILTER && st->kind->bias) bytes += (uint64_t)(s->block / WINO_STRIP * s->o) * sizeof(double);
  return bytes;
}

yk_code yk__cpu_winograd(yk_cpu_prepare *p) {
  static const char *const impl[] = { "winograd:conv2d", "winograd:conv2d_grad_input", "winograd:conv2d_grad_filter" };
  yk_kernel *k = p->k;
  const yk_conv_kind *kind = yk__conv_kind(p->spec->op);
  const yk_wino_table *table = yk__loop_winograd();
  const int64_t width = table->width;
  if (!kind) return YK_CPU_REFUSE("not a convolution");
  yk_window g;
  int64_t groups;
  yk__conv_window(k, kind, &g, &groups);
  YK_TRY(accepts(p, kind, &g, groups, width));
  const int64_t o = yk__conv_arg(k, kind->other)->dim[3];
  yk_wino s = { .c = 0 };
  set_geometry(kind, &g, g.c, o, &s);
  if (!pays(&g, g.c, o, s.tile_rows * s.tile_cols, width)) return YK_CPU_REFUSE("the sliding window is as fast");
  YK_TRY(clamp_of(k, kind, &s));
  YK_TRY(settle_layouts(p, kind, width));
  set_blocks(p, kind, &s);
  const int64_t vectors = (s.c + s.o) / width;
  state *st = yk__cpu_state(p, sizeof *st + (size_t)vectors * sizeof(int64_t));
  if (!st) return YK_ENOMEM;
  int64_t *at = (int64_t *)(void *)(st + 1);
  set_side(&s.src, &k->in[kind->a], width, at);
  set_side(&s.dst, yk__conv_arg(k, kind->kind == CONV_GRAD_FILTER ? kind->b : kind->out), width, at + s.c / width);
  if (kind->kind != CONV_GRAD_FILTER) s.filter = filter_of(kind, &k->in[kind->b]);
  st->s = s;
  st->kind = kind;
  st->fn = g.kh == 3 ? table->size3 : table->size5;
  st->sum = table->gradient_sum;
  p->workspace = workspace_of(st);
  k->run = kind->kind == CONV_GRAD_FILTER ? run_filter : run_picture;
  k->impl = impl[kind->kind];
  return YK_OK;
}
