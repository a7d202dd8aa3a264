/*
 * dnnl_block.c - preparing and running the normalisations of blocked pictures.
 *
 * These kernels take a picture that already is in a blocked layout; plain ones are left to the plain loops. Sums over
 * pixels are cut into chunks by shape alone and added in order, so the team's size does not show in a result.
 */
#include "dnnl_block.h"
#include "dnnl_kernel.h"
#include <math.h>
#include <string.h>

enum { MAX_CHUNKS = 32, TILE_PIXELS = 64, GRAIN_BYTES = 65536 };

const yk_block_table *yk__block_table(void) {
#if defined(__x86_64__)
  extern const yk_block_table yk__block_table_baseline, yk__block_table_avx2, yk__block_table_avx512;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return &yk__block_table_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &yk__block_table_avx2;
#else
  extern const yk_block_table yk__block_table_baseline;
#endif
  return &yk__block_table_baseline;
}

/* The state of a kernel over x, if x is a picture blocked by channels, and the functions for it. */
static yk_code start(yk_cpu_prepare *p, const yk_desc *x, yk_block_state **out, const yk_block_fns **fns) {
  int block = yk__layout_channel_block(x);
  if (block != 8 && block != 16) return YK_CPU_REFUSE("not a picture blocked by 8 or 16 channels");
  if (x->dtype != YK_F32 && x->dtype != YK_BF16) return YK_CPU_REFUSE("only f32 and bf16");
  if (yk__cpu_count(x) == 0) return YK_CPU_REFUSE("the picture is empty");
  yk_block_state *s = yk__cpu_state(p, sizeof *s);
  if (!s) return YK_ENOMEM;
  s->pictures = x->dim[0];
  s->pixels = x->dim[1] * x->dim[2];
  s->channels = x->dim[3];
  s->blocks = (s->channels + block - 1) / block;
  s->padded = s->blocks * block;
  s->chunks = s->pictures < MAX_CHUNKS ? s->pictures : MAX_CHUNKS;
  s->tiles = (s->pixels + TILE_PIXELS - 1) / TILE_PIXELS;
  *fns = &yk__block_table()->fn[x->dtype == YK_BF16][block == 16];
  *out = s;
  return YK_OK;
}

/* Make input i follow `layout`; refuses where layouts are final and differ. */
static yk_code follow(yk_cpu_prepare *p, uint32_t i, uint16_t layout) {
  if (p->k->in[i].layout == layout) return YK_OK;
  if (p->spec->flags & YK_SPEC_FIXED) return YK_CPU_REFUSE("inputs in different layouts");
  p->k->in[i].layout = layout;
  return YK_OK;
}

/* Work items that are worth a core of their own. */
static int64_t grain(int64_t bytes_per_item) {
  return bytes_per_item >= GRAIN_BYTES ? 1 : GRAIN_BYTES / (bytes_per_item > 0 ? bytes_per_item : 1);
}

static void each_plane(const yk_block_state *s, yk_block_call *c, yk_block_fn fn) {
  yk__cpu_host->parallel_for(s->pictures * s->blocks, grain(s->pixels * s->padded / s->blocks * 8), fn, c);
}

static void each_chunk(const yk_block_state *s, yk_block_call *c, yk_block_fn fn) {
  int64_t planes = (s->pictures + s->chunks - 1) / s->chunks;
  yk__cpu_host->parallel_for(s->chunks * s->blocks, grain(planes * s->pixels * s->padded / s->blocks * 8), fn, c);
}

/* Sum of channel j over all chunks; `which` 0 = first sums, 1 = second. */
static double total(const yk_block_call *c, int64_t j, int which) {
  double sum = 0;
  for (int64_t i = 0; i < c->s->chunks; i++) sum += c->partial[(2 * i + which) * c->s->padded + j];
  return sum;
}

/* Element of the first pixel in channel j: what the sums of the statistics are relative to. */
static double origin(const yk_kernel *k, const yk_block_state *s, const void *x, int64_t j) {
  int64_t block = s->padded / s->blocks, at = j / block * s->pixels * block + j % block;
  if (k->in[0].dtype == YK_F32) return (double)((const float *)x)[at];
  uint32_t u = (uint32_t)((const uint16_t *)x)[at] << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return (double)f;
}

/* ---- batch norm: workspace = partial sums, then arrays over channels --------------------------------------------------- */

static uint64_t partial_bytes(const yk_block_state *s) { return (uint64_t)s->chunks * 2 * (uint64_t)s->padded * sizeof(double); }

static yk_code run_train(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_block_state *s = k->state;
  float *mean = (float *)(void *)((char *)workspace + partial_bytes(s)), *scale = mean + s->padded, *shift = scale + s->padded;
  const float *gamma = arg[1], *beta = arg[2];
  yk_block_call c = { .s = s, .x = arg[0], .out = arg[3], .partial = workspace, .mean = mean, .scale = scale, .shift = shift };
  each_chunk(s, &c, s->sum);
  memset(mean, 0, 3 * (size_t)s->padded * sizeof(float));
  const double count = (double)s->pictures * (double)s->pixels;
  for (int64_t j = 0; j < s->channels; j++) {
    double first = total(&c, j, 0), var = (total(&c, j, 1) - first * first / count) / count;
    if (var < 0) var = 0;
    mean[j] = (float)(origin(k, s, arg[0], j) + first / count);
    scale[j] = (float)((double)gamma[j] / sqrt(var + s->epsilon));
    shift[j] = beta[j];
    ((float *)arg[4])[j] = mean[j];
    ((float *)arg[5])[j] = (float)var;
  }
  each_plane(s, &c, s->apply);
  return YK_OK;
}

static yk_code run_infer(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_block_state *s = k->state;
  float *mean = workspace, *scale = mean + s->padded, *shift = scale + s->padded;
  const float *gamma = arg[1], *beta = arg[2], *given = arg[3], *var = arg[4];
  yk_block_call c = { .s = s, .x = arg[0], .out = arg[5], .mean = mean, .scale = scale, .shift = shift };
  memset(mean, 0, 3 * (size_t)s->padded * sizeof(float));
  for (int64_t j = 0; j < s->channels; j++) {
    mean[j] = given[j];
    scale[j] = (float)((double)gamma[j] / sqrt((double)var[j] + s->epsilon));
    shift[j] = beta[j];
  }
  each_plane(s, &c, s->apply);
  return YK_OK;
}

static yk_code run_grad(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_block_state *s = k->state;
  float *mean = (float *)(void *)((char *)workspace + partial_bytes(s));
  float *scale = mean + s->padded, *shift = scale + s->padded, *slope = shift + s->padded;
  const float *gamma = arg[2], *given = arg[3], *var = arg[4];
  yk_block_call c = { .s = s, .dy = arg[0], .x = arg[1], .y = s->relu ? arg[5] : NULL, .out = arg[6], .partial = workspace,
                      .mean = mean, .scale = scale, .shift = shift, .slope = slope };
  memset(mean, 0, 4 * (size_t)s->padded * sizeof(float));
  memcpy(mean, given, (size_t)s->channels * sizeof(float));
  each_chunk(s, &c, s->sum);
  const double count = (double)s->pictures * (double)s->pixels;
  for (int64_t j = 0; j < s->channels; j++) {
    double sum = total(&c, j, 0), product = total(&c, j, 1), rstd = 1 / sqrt((double)var[j] + s->epsilon);
    double factor = (double)gamma[j] * rstd;
    ((float *)arg[7])[j] = (float)(product * rstd);
    ((float *)arg[8])[j] = (float)sum;
    scale[j] = (float)factor;
    shift[j] = (float)(factor * sum / count);
    slope[j] = (float)(factor * rstd * rstd * product / count);
  }
  each_plane(s, &c, s->apply);
  return YK_OK;
}

static yk_code norm_attrs(const yk_cpu_prepare *p, yk_block_state *s) {
  const yk_norm_attrs *a = p->k->attrs;
  if (a && a->act != YK_ACT_NONE && a->act != YK_ACT_RELU) return YK_CPU_REFUSE("only relu may be fused into batch norm");
  s->epsilon = a && a->epsilon != 0 ? a->epsilon : 1e-3;
  s->relu = a && a->act == YK_ACT_RELU;
  return YK_OK;
}

/* Everything but pictures is plain. */
static yk_code rest_plain(yk_cpu_prepare *p, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) YK_TRY(follow(p, i, YK_LAYOUT_PLAIN));
  for (uint32_t i = 1; i < p->k->nout; i++) p->k->out[i].layout = YK_LAYOUT_PLAIN;
  return YK_OK;
}

static yk_code forward(yk_cpu_prepare *p, int train) {
  yk_kernel *k = p->k;
  yk_block_state *s = NULL;
  const yk_block_fns *fns = NULL;
  YK_TRY(start(p, &k->in[0], &s, &fns));
  YK_TRY(norm_attrs(p, s));
  if (!train) s->relu = 0;                          /* that op has no activation */
  YK_TRY(rest_plain(p, 1, k->nin));
  k->out[0].layout = k->in[0].layout;
  s->sum = fns->stat_sum;
  s->apply = fns->norm;
  k->run = train ? run_train : run_infer;
  k->impl = train ? "block:batch_norm_train" : "block:batch_norm_infer";
  p->inplace = 1;
  p->workspace = (train ? partial_bytes(s) : 0) + 3 * (uint64_t)s->padded * sizeof(float);
  return YK_OK;
}

yk_code yk__cpu_block_norm_train(yk_cpu_prepare *p) { return forward(p, 1); }
yk_code yk__cpu_block_norm_infer(yk_cpu_prepare *p) { return forward(p, 0); }

yk_code yk__cpu_block_norm_grad(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_block_state *s = NULL;
  const yk_block_fns *fns = NULL;
  YK_TRY(start(p, &k->in[1], &s, &fns));
  YK_TRY(norm_attrs(p, s));
  YK_TRY(rest_plain(p, 2, 5));
  YK_TRY(follow(p, 0, k->in[1].layout));
  if (s->relu) YK_TRY(follow(p, 5, k->in[1].layout));
  k->out[0].layout = k->in[1].layout;
  s->sum = fns->grad_sum;
  s->apply = fns->norm_grad;
  k->run = run_grad;
  k->impl = "block:batch_norm_grad";
  p->inplace = 3;
  p->workspace = partial_bytes(s) + 4 * (uint64_t)s->padded * sizeof(float);
  return YK_OK;
}

/* ---- local response normalisation ---------------------------------------------------------------------------------------- */

static yk_code run_lrn(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_block_state *s = k->state;
  yk_block_call c = { .s = s, .x = arg[0], .out = arg[1] };
  (void)workspace;
  yk__cpu_host->parallel_for(s->pictures * s->tiles, grain(TILE_PIXELS * s->padded * 16), s->apply, &c);
  return YK_OK;
}

static yk_code run_lrn_grad(const yk_kernel *k, void *const *arg, void *workspace) {
  const yk_block_state *s = k->state;
  yk_block_call c = { .s = s, .dy = arg[0], .x = arg[1], .out = arg[2] };
  (void)workspace;
  yk__cpu_host->parallel_for(s->pictures * s->tiles, grain(TILE_PIXELS * s->padded * 32), s->apply, &c);
  return YK_OK;
}

static yk_code lrn(yk_cpu_prepare *p, uint32_t x) {
  yk_kernel *k = p->k;
  const yk_lrn_attrs *a = k->attrs;
  yk_block_state *s = NULL;
  const yk_block_fns *fns = NULL;
  YK_TRY(start(p, &k->in[x], &s, &fns));
  s->radius = a && a->radius ? a->radius : 5;
  s->bias = a && a->bias != 0 ? a->bias : 1;
  s->alpha = a && a->alpha != 0 ? a->alpha : 1;
  s->beta = a && a->beta != 0 ? a->beta : 0.5;
  if (s->radius > BLOCK_MAX_RADIUS || s->padded > BLOCK_MAX_CHANNELS)
    return YK_CPU_REFUSE("a radius above %d or more than %d channels", BLOCK_MAX_RADIUS, BLOCK_MAX_CHANNELS);
  if (s->beta != 0.5 && s->beta != 0.75 && s->beta != 1.0) return YK_CPU_REFUSE("beta is none of 0.5, 0.75, 1");
  if (x == 1) YK_TRY(follow(p, 0, k->in[1].layout));
  k->out[0].layout = k->in[x].layout;
  s->apply = x == 1 ? fns->lrn_grad : fns->lrn;
  k->run = x == 1 ? run_lrn_grad : run_lrn;
  k->impl = x == 1 ? "block:lrn_grad" : "block:lrn";
  p->inplace = x == 1 ? 3 : 1;
  return YK_OK;
}

yk_code yk__cpu_block_lrn(yk_cpu_prepare *p) { return lrn(p, 0); }
yk_code yk__cpu_block_lrn_grad(yk_cpu_prepare *p) { return lrn(p, 1); }
