/*
 * floor_dnnl.c - describes the floor's further primitives to either oneDNN.
 *
 * One function a primitive and direction, twice: 2.x fills in an operation descriptor first, 3.x takes everything at
 * once. What both have in common is below.
 */
#include "floor_dnnl.h"

#define EPSILON 1e-5f

typedef struct request {
  dnnl_engine_t e;
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t hint;          /* the forward primitive of a backward one */
  const yk_md *x;
  const floor_lrn *lrn;
  unsigned flags;
} request;

#if DNNL_VERSION_MAJOR >= 3

static int norm_forward(const request *r, dnnl_primitive_desc_t *out) {
  return (int)dnnl_batch_normalization_forward_primitive_desc_create(out, r->e, dnnl_forward_training, r->x->d, r->x->d, EPSILON, r->flags,
                                                                     r->attr);
}

static int norm_backward(const request *r, dnnl_primitive_desc_t *out) {
  return (int)dnnl_batch_normalization_backward_primitive_desc_create(out, r->e, dnnl_backward, r->x->d, r->x->d, r->x->d, EPSILON,
                                                                      r->flags, r->hint, r->attr);
}

static int lrn_forward(const request *r, dnnl_primitive_desc_t *out) {
  const floor_lrn *l = r->lrn;
  return (int)dnnl_lrn_forward_primitive_desc_create(out, r->e, dnnl_forward_training, dnnl_lrn_across_channels, r->x->d, r->x->d,
                                                     l->window, l->alpha, l->beta, l->k, r->attr);
}

static int lrn_backward(const request *r, dnnl_primitive_desc_t *out) {
  const floor_lrn *l = r->lrn;
  return (int)dnnl_lrn_backward_primitive_desc_create(out, r->e, dnnl_lrn_across_channels, r->x->d, r->x->d, r->x->d, l->window, l->alpha,
                                                      l->beta, l->k, r->hint, r->attr);
}

static int relu_forward(const request *r, dnnl_primitive_desc_t *out) {
  return (int)dnnl_eltwise_forward_primitive_desc_create(out, r->e, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, r->x->d,
                                                         r->x->d, 0, 0, r->attr);
}

static int relu_backward(const request *r, dnnl_primitive_desc_t *out) {
  return (int)dnnl_eltwise_backward_primitive_desc_create(out, r->e, dnnl_eltwise_relu_use_dst_for_bwd, r->x->d, r->x->d, r->x->d, 0, 0,
                                                          r->hint, r->attr);
}

static int add(const request *r, dnnl_primitive_desc_t *out) {
  return (int)dnnl_binary_primitive_desc_create(out, r->e, dnnl_binary_add, r->x->d, r->x->d, r->x->d, r->attr);
}

static int append_relu(dnnl_post_ops_t ops) { return (int)dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0); }

#else

/* `init` has filled in `desc`, or failed. */
static int finish(const request *r, dnnl_status_t init, const_dnnl_op_desc_t desc, dnnl_primitive_desc_t *out) {
  return init != dnnl_success ? (int)init : (int)dnnl_primitive_desc_create(out, desc, r->attr, r->e, r->hint);
}

static int norm_forward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_batch_normalization_desc_t d;
  return finish(r, dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_training, &r->x->d, EPSILON, r->flags), &d, out);
}

static int norm_backward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_batch_normalization_desc_t d;
  return finish(r, dnnl_batch_normalization_backward_desc_init(&d, dnnl_backward, &r->x->d, &r->x->d, EPSILON, r->flags), &d, out);
}

static int lrn_forward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_lrn_desc_t d;
  const floor_lrn *l = r->lrn;
  return finish(r, dnnl_lrn_forward_desc_init(&d, dnnl_forward_training, dnnl_lrn_across_channels, &r->x->d, l->window, l->alpha, l->beta,
                                              l->k), &d, out);
}

static int lrn_backward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_lrn_desc_t d;
  const floor_lrn *l = r->lrn;
  return finish(r, dnnl_lrn_backward_desc_init(&d, dnnl_lrn_across_channels, &r->x->d, &r->x->d, l->window, l->alpha, l->beta, l->k), &d,
                out);
}

static int relu_forward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_eltwise_desc_t d;
  return finish(r, dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training, dnnl_eltwise_relu_use_dst_for_bwd, &r->x->d, 0, 0), &d, out);
}

static int relu_backward(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_eltwise_desc_t d;
  return finish(r, dnnl_eltwise_backward_desc_init(&d, dnnl_eltwise_relu_use_dst_for_bwd, &r->x->d, &r->x->d, 0, 0), &d, out);
}

static int add(const request *r, dnnl_primitive_desc_t *out) {
  dnnl_binary_desc_t d;
  return finish(r, dnnl_binary_desc_init(&d, dnnl_binary_add, &r->x->d, &r->x->d, &r->x->d), &d, out);
}

static int append_relu(dnnl_post_ops_t ops) { return (int)dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0); }

#endif

typedef int (*describe_fn)(const request *r, dnnl_primitive_desc_t *out);

static int make_attr(bool relu, dnnl_primitive_attr_t *out) {
  dnnl_post_ops_t ops = NULL;
  int rc = (int)dnnl_primitive_attr_create(out);
  if (rc == 0) rc = (int)dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
  if (rc == 0 && relu) {
    rc = (int)dnnl_post_ops_create(&ops);
    if (rc == 0) rc = append_relu(ops);
    if (rc == 0) rc = (int)dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops != NULL) (void)dnnl_post_ops_destroy(ops);
  }
  return rc;
}

/* `forward` gives the hint for `backward`; without `backward` it is the primitive itself. */
static int describe(request *r, bool post_relu, describe_fn forward, describe_fn backward, dnnl_primitive_desc_t *out) {
  int rc = make_attr(post_relu, &r->attr);
  if (rc == 0 && backward == NULL) rc = forward(r, out);
  if (rc == 0 && backward != NULL) {
    dnnl_primitive_desc_t hint = NULL;
    rc = forward(r, &hint);
    r->hint = hint;
    if (rc == 0) rc = backward(r, out);
    if (hint != NULL) (void)dnnl_primitive_desc_destroy(hint);
  }
  if (r->attr != NULL) (void)dnnl_primitive_attr_destroy(r->attr);
  return rc;
}

int floor_describe_norm(dnnl_engine_t e, bool backward, bool relu, const yk_md *x, dnnl_primitive_desc_t *out) {
  request r = { .e = e, .x = x, .flags = (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift };
  if (relu) r.flags |= (unsigned)dnnl_fuse_norm_relu;
  return describe(&r, false, norm_forward, backward ? norm_backward : NULL, out);
}

int floor_describe_lrn(dnnl_engine_t e, bool backward, const floor_lrn *a, const yk_md *x, dnnl_primitive_desc_t *out) {
  request r = { .e = e, .x = x, .lrn = a };
  return describe(&r, false, lrn_forward, backward ? lrn_backward : NULL, out);
}

int floor_describe_relu_grad(dnnl_engine_t e, const yk_md *x, dnnl_primitive_desc_t *out) {
  request r = { .e = e, .x = x };
  return describe(&r, false, relu_forward, relu_backward, out);
}

int floor_describe_add(dnnl_engine_t e, bool relu, const yk_md *x, dnnl_primitive_desc_t *out) {
  request r = { .e = e, .x = x };
  return describe(&r, relu, add, NULL, out);
}
