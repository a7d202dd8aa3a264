/*
 * dnnl_block_pool.c - preparing and running max pooling in vectors of channels.
 *
 * Takes pictures blocked by 8 or 16 channels, and plain ones whose channels are a multiple of that; the rest is left to
 * oneDNN and the plain loops. The index is u8, so windows have at most 256 cells.
 */
#include "dnnl_block.h"
#include "dnnl_kernel.h"

enum { GRAIN_BYTES = 65536 };

/* Block size for a picture in its layout; 0 if it is not for these kernels. Wider blocks than vectors are slow. */
static int block_of(const yk_desc *d) {
  if (d->layout != YK_LAYOUT_PLAIN) return yk__layout_channel_block(d);
  return d->dim[3] % 8 == 0 ? 8 : 0;
}

/* Outputs [first, last) whose window holds position i of x, for each i. */
static void set_over(const yk_block_pool *s, int d, int64_t inputs, int64_t outputs, int32_t *over) {
  for (int64_t i = 0; i < inputs; i++) {
    const int64_t at = i + s->pad[d], last = at / s->stride[d] + 1;
    over[2 * i] = (int32_t)(at < s->window[d] ? 0 : (at - s->window[d]) / s->stride[d] + 1);
    over[2 * i + 1] = (int32_t)(last < outputs ? last : outputs);
  }
}

/* x and y have the layout of `lead`; p->k->state is made. */
static yk_code start(yk_cpu_prepare *p, const yk_desc *lead, const yk_desc *x, const yk_desc *y, const yk_desc *index,
                     int backward) {
  yk_prim q = { 0 };
  YK_TRY(yk__dnnl_accepts(p));
  int block = block_of(lead), plain = lead->layout == YK_LAYOUT_PLAIN;
  if (block != 8 && block != 16) return YK_CPU_REFUSE("not a picture blocked by 8 or 16 channels");
  if (x->dtype != YK_F32 && x->dtype != YK_BF16) return YK_CPU_REFUSE("only f32 and bf16");
  if (index->dtype != YK_U8) return YK_CPU_REFUSE("only windows of at most 256 cells");
  yk_block_pool *s = yk__cpu_state(p, sizeof *s + (size_t)(x->dim[1] + x->dim[2]) * 2 * sizeof(int32_t));
  if (!s) return YK_ENOMEM;
  int32_t *over = (int32_t *)(void *)(s + 1);
  yk__dnnl_pool_geometry(p->k->attrs, x, y, &q);
  for (int i = 0; i < 2; i++) {
    s->window[i] = q.window[i];
    s->stride[i] = q.stride[i];
    s->pad[i] = q.pad_lo[i];
  }
  s->pictures = x->dim[0];
  s->height = x->dim[1];
  s->width = x->dim[2];
  s->rows = y->dim[1];
  s->columns = y->dim[2];
  s->blocks = (x->dim[3] + block - 1) / block;
  s->pixel = plain ? x->dim[3] : block;
  s->x_block = plain ? block : s->height * s->width * block;
  s->y_block = plain ? block : s->rows * s->columns * block;
  s->x_picture = s->height * s->width * s->blocks * block;
  s->y_picture = s->rows * s->columns * s->blocks * block;
  set_over(s, 0, s->height, s->rows, over);
  set_over(s, 1, s->width, s->columns, over + 2 * s->height);
  s->over[0] = over;
  s->over[1] = over + 2 * s->height;
  const yk_block_fns *fns = &yk__block_table()->fn[x->dtype == YK_BF16][block == 16];
  s->fn = backward ? fns->max_pool_grad : fns->max_pool;
  return YK_OK;
}

static void each_block(const yk_block_pool *s, yk_block_pool_call *c) {
  int64_t bytes = s->x_picture / s->blocks * 4 + 1;
  yk__cpu_host->parallel_for(s->pictures * s->blocks, bytes >= GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes, s->fn, c);
}

static yk_code run_max(const yk_kernel *k, void *const *arg, void *workspace) {
  yk_block_pool_call c = { .s = k->state, .in = arg[0], .out = arg[1], .index = arg[2] };
  (void)workspace;
  each_block(c.s, &c);
  return YK_OK;
}

static yk_code run_max_grad(const yk_kernel *k, void *const *arg, void *workspace) {
  yk_block_pool_call c = { .s = k->state, .in = arg[0], .out = arg[3], .index = arg[1] };
  (void)workspace;
  each_block(c.s, &c);
  return YK_OK;
}

yk_code yk__cpu_block_max_pool(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  YK_TRY(start(p, &k->in[0], &k->in[0], &k->out[0], &k->out[1], 0));
  k->out[0].layout = k->out[1].layout = k->in[0].layout;
  k->run = run_max;
  k->impl = "block:max_pool";
  return YK_OK;
}

yk_code yk__cpu_block_max_pool_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  YK_TRY(start(p, &k->in[1], &k->out[0], &k->in[0], &k->in[1], 1));
  if ((p->spec->flags & YK_SPEC_FIXED) && k->in[0].layout != k->in[1].layout)
    return YK_CPU_REFUSE("dy and index differ in layout");
  k->in[0].layout = k->out[0].layout = k->in[1].layout;
  k->run = run_max_grad;
  k->impl = "block:max_pool_grad";
  return YK_OK;
}
