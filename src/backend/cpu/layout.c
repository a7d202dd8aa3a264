/*
 * layout.c - the table of private layouts.
 *
 * A layout is stored as oneDNN's format tag, which names a blocking without a shape: the tag is found by trying them all on
 * the descriptor a primitive chose, once a layout and process. Entries are only ever added, under a mutex, and published by
 * an atomic count, so reading needs no lock.
 */
#include "layout.h"
#include <pthread.h>
#include <string.h>

typedef struct yk_layout { uint16_t role; uint16_t tag; uint32_t groups; } yk_layout;

enum { MAX_LAYOUTS = 1024 };
static yk_layout table[MAX_LAYOUTS];              /* layout number i+1 */
static _Atomic uint32_t nlayouts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const yk_layout *layout_at(uint16_t number) {
  if (number == YK_LAYOUT_PLAIN || number > atomic_load_explicit(&nlayouts, memory_order_acquire)) return NULL;
  return &table[number - 1];
}

dnnl_data_type_t yk__layout_dtype(uint8_t dtype) {
  switch (dtype) {
    case YK_F32: return dnnl_f32;
    case YK_F16: return dnnl_f16;
    case YK_BF16: return dnnl_bf16;
    case YK_I32: return dnnl_s32;
    case YK_U8: case YK_BOOL: return dnnl_u8;
    default: return dnnl_data_type_undef;
  }
}

/* Dimensions in oneDNN's order, and the strides of the plain layout. Returns how many there are; 0 if the role does not fit. */
static int order_dims(const yk_desc *d, yk_role role, uint32_t groups, dnnl_dim_t *dim, dnnl_dim_t *stride) {
  dnnl_dim_t s[YK_MAX_RANK], run = 1;
  for (int i = (int)d->rank - 1; i >= 0; i--) {
    s[i] = run;
    run *= d->dim[i];
  }
  static const int picture[4] = { 0, 3, 1, 2 }, filter[4] = { 3, 2, 0, 1 }, dense[2] = { 1, 0 };
  static const int same[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  const int *from = role == YK_ROLE_PICTURE ? picture : role == YK_ROLE_FILTER ? filter : role == YK_ROLE_DENSE ? dense : same;
  int n = (int)d->rank, at = 0, want = role == YK_ROLE_DENSE ? 2 : role == YK_ROLE_SAME ? n : 4;
  if (n != want || n == 0) return 0;
  int grouped = role == YK_ROLE_FILTER && groups > 1;
  for (int i = 0; i < n; i++) {
    if (i == 0 && grouped) {
      dnnl_dim_t per = d->dim[from[0]] / (dnnl_dim_t)groups;
      dim[at] = (dnnl_dim_t)groups;
      stride[at++] = per * s[from[0]];
      dim[at] = per;
    } else {
      dim[at] = d->dim[from[i]];
    }
    stride[at++] = s[from[i]];
  }
  return at;
}

yk_code yk__layout_md(const yk_desc *d, yk_role role, uint32_t groups, yk_md *out) {
  dnnl_dim_t dim[YK__MD_MAX], stride[YK__MD_MAX];
  dnnl_data_type_t t = yk__layout_dtype(d->dtype);
  if (t == dnnl_data_type_undef) return YK_CPU_REFUSE("oneDNN has no dtype %u", (unsigned)d->dtype);
  int n = order_dims(d, role, groups, dim, stride), rc;
  if (n == 0) return YK_CPU_REFUSE("rank %u does not fit its role", (unsigned)d->rank);
  yk_md md = { 0 };
  if (d->layout == YK_LAYOUT_ANY) {
    rc = yk__md_tag(n, dim, t, dnnl_format_tag_any, &md);
  } else if (d->layout == YK_LAYOUT_PLAIN) {
    rc = yk__md_strides(n, dim, stride, t, &md);
  } else {
    const yk_layout *l = layout_at(d->layout);
    if (!l || l->role != role || l->groups != groups)
      return YK_CPU_REFUSE("layout %u is none of this kind of value", (unsigned)d->layout);
    rc = yk__md_tag(n, dim, t, l->tag, &md);
  }
  if (rc) return YK_CPU_REFUSE("oneDNN takes no such value (status %d)", rc);
  *out = md;
  return YK_OK;
}

/* Is md dense in the order of the values of this role? */
static int is_plain(const yk_md *md, yk_role role, uint32_t groups) {
  yk_md_info f;
  if (yk__md_info(md, &f) || f.nblocks > 0) return 0;
  static const int picture[4] = { 0, 2, 3, 1 }, filter[4] = { 2, 3, 1, 0 }, grouped[5] = { 3, 4, 2, 0, 1 }, dense[2] = { 1, 0 },
                   same[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  const int *order = role == YK_ROLE_PICTURE ? picture : role == YK_ROLE_DENSE ? dense : role == YK_ROLE_SAME ? same
                   : groups > 1 ? grouped : filter;
  dnnl_dim_t run = 1;
  for (int i = f.ndims - 1; i >= 0; i--) {
    if (f.dim[order[i]] > 1 && f.stride[order[i]] != run) return 0;
    run *= f.dim[order[i]];
  }
  return 1;
}

/* Is `tag` the blocking of md? */
static int tag_fits(const yk_md *md, const yk_md_info *f, int tag) {
  yk_md c = { 0 };
  if (yk__md_tag(f->ndims, f->dim, (dnnl_data_type_t)yk__md_dtype(md), tag, &c)) return 0;
  int same = yk__md_same(md, &c);
  yk__md_free(&c);
  return same;
}

/* Under the lock: an entry that fits, or a new one. 0 if no tag does, or the table is full. */
static uint16_t intern(const yk_md *md, const yk_md_info *f, yk_role role, uint32_t groups) {
  uint32_t n = atomic_load_explicit(&nlayouts, memory_order_relaxed);
  for (uint32_t i = 0; i < n; i++)
    if (table[i].role == role && table[i].groups == groups && tag_fits(md, f, table[i].tag)) return (uint16_t)(i + 1);
  if (n == MAX_LAYOUTS) return 0;
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++) {
    if (!tag_fits(md, f, tag)) continue;
    table[n] = (yk_layout){ .role = (uint16_t)role, .tag = (uint16_t)tag, .groups = groups };
    atomic_store_explicit(&nlayouts, n + 1, memory_order_release);
    return (uint16_t)(n + 1);
  }
  return 0;
}

yk_code yk__layout_of(const yk_md *md, yk_role role, uint32_t groups, uint16_t *out) {
  yk_md_info f;
  if (yk__md_info(md, &f)) return YK_CPU_REFUSE("oneDNN chose a layout that is not a blocking");
  if (is_plain(md, role, groups)) {
    *out = YK_LAYOUT_PLAIN;
    return YK_OK;
  }
  pthread_mutex_lock(&lock);
  uint16_t number = intern(md, &f, role, groups);
  pthread_mutex_unlock(&lock);
  if (!number) return YK_CPU_REFUSE("oneDNN chose a layout without a name");
  *out = number;
  return YK_OK;
}

int yk__layout_role(uint16_t layout, yk_role *role, uint32_t *groups) {
  const yk_layout *l = layout_at(layout);
  if (!l) return 0;
  *role = (yk_role)l->role;
  *groups = l->groups;
  return 1;
}

/* Descriptor of a value in a private layout, whatever its role. */
static yk_code sized_md(const yk_desc *d, yk_md *out) {
  const yk_layout *l = layout_at(d->layout);
  if (!l) return YK_CPU_FAIL(EUNSUPPORTED, "layout %u is none of the cpu driver's", (unsigned)d->layout);
  return yk__layout_md(d, (yk_role)l->role, l->groups, out);
}

yk_code yk__cpu_layout_bytes(const yk_desc *d, uint64_t *out) {
  yk_md md;
  YK_TRY(sized_md(d, &md));
  *out = yk__md_bytes(&md);
  yk__md_free(&md);
  return YK_OK;
}

int yk__layout_channel_block(const yk_desc *d) {
  const yk_layout *l = layout_at(d->layout);
  yk_md md;
  yk_md_info f;
  if (!l || l->role != YK_ROLE_PICTURE || d->rank != 4) return 0;
  if (yk__layout_md(d, YK_ROLE_PICTURE, 1, &md) != YK_OK) return 0;
  int rc = yk__md_info(&md, &f);
  yk__md_free(&md);
  if (rc || f.nblocks != 1 || f.index[0] != 1) return 0;
  const dnnl_dim_t b = f.block[0], pixels = f.dim[2] * f.dim[3];
  if ((f.dim[3] > 1 && f.stride[3] != b) || (f.dim[2] > 1 && f.stride[2] != b * f.dim[3])) return 0;
  if ((f.padded[1] > b && f.stride[1] != b * pixels) || (f.dim[0] > 1 && f.stride[0] != f.padded[1] * pixels)) return 0;
  return (int)b;
}

int64_t yk__cpu_layout_count(const yk_desc *d) {
  uint64_t bytes;
  if (d->layout == YK_LAYOUT_PLAIN) return yk__cpu_count(d);
  if (yk__cpu_layout_bytes(d, &bytes) != YK_OK) return -1;
  return (int64_t)(bytes / yk__cpu_dtype_bytes(d->dtype));
}

int yk__cpu_layout_padded(const yk_desc *d) {
  return d->layout != YK_LAYOUT_PLAIN && yk__cpu_layout_count(d) != yk__cpu_count(d);
}
