/*
 * dnnl_compat.h - one small interface over oneDNN 2.6 and 3.x.
 *
 * The two differ in how memory descriptors are held (a struct, an opaque pointer) and in how primitives are described
 * (operation descriptors, direct calls). Everything above this file says what it wants in a yk_prim and never looks at
 * the version. Functions return 0 on success, else oneDNN's status; nothing here reports an error by itself, because a
 * refusal is a normal answer while kernels are chosen.
 */
#ifndef YK_BACKEND_CPU_DNNL_COMPAT_H
#define YK_BACKEND_CPU_DNNL_COMPAT_H

#include <stddef.h>
#include <dnnl.h>

/* A memory descriptor; {0} = absent. Owned: give it back with yk__md_free (harmless on an absent one). */
typedef struct yk_md { dnnl_memory_desc_t d; } yk_md;

enum { YK__MD_MAX = 12 };
typedef struct yk_md_info {              /* a dense blocked descriptor, taken apart */
  int ndims, nblocks;
  dnnl_dim_t dim[YK__MD_MAX], padded[YK__MD_MAX], stride[YK__MD_MAX], block[YK__MD_MAX];
  int index[YK__MD_MAX];                 /* block[i] splits dimension index[i]; outermost block first */
} yk_md_info;

int    yk__md_tag(int nd, const dnnl_dim_t *dim, dnnl_data_type_t t, int tag, yk_md *out);
int    yk__md_strides(int nd, const dnnl_dim_t *dim, const dnnl_dim_t *stride, dnnl_data_type_t t, yk_md *out);
int    yk__md_copy(const yk_md *md, yk_md *out);
void   yk__md_free(yk_md *md);
int    yk__md_is_set(const yk_md *md);
size_t yk__md_bytes(const yk_md *md);
int    yk__md_dtype(const yk_md *md);                      /* dnnl_data_type_t */
int    yk__md_info(const yk_md *md, yk_md_info *out);      /* 0 if dense and blocked, with nothing hidden */
/* Do two descriptors place every element alike? Strides of dimensions of one step do not count, nor does the dtype. */
int    yk__md_same(const yk_md *a, const yk_md *b);

typedef enum yk_prim_kind { YK_PRIM_CONV, YK_PRIM_DENSE, YK_PRIM_MATMUL, YK_PRIM_POOL, YK_PRIM_REORDER } yk_prim_kind;
typedef enum yk_prim_dir { YK_PRIM_INFER, YK_PRIM_FWD, YK_PRIM_BWD, YK_PRIM_BWD_DATA, YK_PRIM_BWD_WEIGHTS } yk_prim_dir;

/* One primitive. Pointers are borrowed for the call; what a kind does not use stays zero. In backward directions src, wei,
 * bias and dst describe the differences. */
typedef struct yk_prim {
  yk_prim_kind kind;
  yk_prim_dir  dir;
  dnnl_alg_kind_t alg;
  const yk_md *src, *wei, *bias, *dst;
  dnnl_dims_t stride, dilate, window, pad_lo, pad_hi;   /* dilate counts the gaps: 0 = dense */
  /* post-operation of a forward primitive, 0 = none: act_scale * act(x; act_alpha, act_beta) */
  dnnl_alg_kind_t act;
  float act_alpha, act_beta, act_scale;
} yk_prim;

/* Describe the primitive, scratch memory lent by the caller. *out is the caller's: dnnl_primitive_desc_destroy. */
int yk__prim_desc(dnnl_engine_t engine, const yk_prim *p, dnnl_primitive_desc_t *out);

/* Descriptor of execution argument `arg` (DNNL_ARG_SRC, ...); absent if the primitive has none. *out is the caller's. */
int         yk__desc_md(const_dnnl_primitive_desc_t pd, int arg, yk_md *out);
size_t      yk__desc_scratch(const_dnnl_primitive_desc_t pd);
const char *yk__desc_impl(const_dnnl_primitive_desc_t pd);  /* "jit:avx2"; lives as long as pd */

int yk__memory(const yk_md *md, dnnl_engine_t engine, dnnl_memory_t *out);        /* without data */
int yk__memory_point(dnnl_memory_t m, void *data, dnnl_stream_t stream);

/* Of bf16 and f16, as bits 1 << YK_...: which do products have instructions for, as far as this oneDNN uses them (ONEDNN_MAX_CPU_ISA)? */
unsigned yk__dnnl_fast_types(void);

/* log(1 + e^x), and the parameter that makes it so: the one activation whose meaning differs between the versions. */
dnnl_alg_kind_t yk__alg_softplus(float *alpha);

#endif
