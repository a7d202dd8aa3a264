/*
 * kernels.c - asks a driver for the kernel of every case of an operation, in every dtype.
 *
 * The cases are those that the operation's tests use, so the answer is as wide as
 * what is tested. Operations without a kernel (sources, views) work everywhere.
 */
#include "op/kernels.h"
#include <stdlib.h>
#include <string.h>
#include "op/registry.h"

enum { MAX_PORTS = 64 };

typedef struct yk_shapes {
  yk_desc in[MAX_PORTS];
  uint16_t n;
  uint32_t typed;                    /* bit i: input i is of type T */
} yk_shapes;

/* "f32[4,7,5]" or "T[4]" at *text. */
static bool parse_one(const char **text, yk_dtype t, yk_desc *out, bool *is_t) {
  char type[8] = "";
  const char *s = *text;
  size_t k = strcspn(s, "[");
  yk_desc d = { 0 };
  if (k == 0 || k >= sizeof type || s[k] != '[') return false;
  memcpy(type, s, k);
  *is_t = strcmp(type, "T") == 0;
  d.dtype = (uint8_t)(*is_t ? t : yk_dtype_parse(type));
  for (s += k + 1; *s != ']';) {
    char *end;
    if (d.rank == YK_MAX_RANK) return false;
    d.dim[d.rank] = strtoll(s, &end, 10);
    if (end == s || d.dim[d.rank++] < 0 || (*end != ',' && *end != ']')) return false;
    s = *end == ',' ? end + 1 : end;
  }
  *text = s + 1;
  *out = d;
  return true;
}

static bool parse(const char *text, yk_dtype t, yk_shapes *out) {
  *out = (yk_shapes){ 0 };
  while (*text != '\0') {
    bool is_t = false;
    if (out->n == MAX_PORTS || !parse_one(&text, t, &out->in[out->n], &is_t)) return false;
    if (is_t && out->n < 32) out->typed |= 1u << out->n;
    out->n++;
    if (*text == ';') text++;
    while (*text == ' ') text++;
  }
  return true;
}

/* The dtypes T may stand for in this case; 0 = it has no T. */
static uint32_t dtypes_of(const yk_op *op, const yk_case *c) {
  yk_shapes s;
  uint32_t set = YK_ANYTYPE;
  if (!parse(c->shapes, YK_F32, &s) || s.typed == 0) return 0;
  for (uint16_t i = 0; i < s.n && i < 32; i++) {
    const yk_port *p = yk__op_in_port(op, c->attrs, s.n, i);
    if ((s.typed >> i & 1u) != 0 && p != NULL) set &= p->dtypes;
  }
  return set;
}

static bool prepares(const yk_driver *driver, yk_dev *dev, const yk_op *op, const yk_case *c, yk_shapes *s, yk_desc *out) {
  uint16_t nout = yk__op_nout(op, c->attrs);
  yk_kernel *kernel = NULL;
  yk_kernel_info info = { .size = sizeof info };
  if (nout > MAX_PORTS) return false;
  memset(out, 0, MAX_PORTS * sizeof *out);
  if (yk__op_infer(op, c->attrs, s->in, s->n, out, nout) != YK_OK) return false;
  yk_kernel_spec spec = { .size = sizeof spec, .op = op->name, .op_version = op->version, .nin = s->n, .nout = nout,
                          .attrs = yk__attrs_or_zero(op, c->attrs), .in = s->in, .out = out };
  for (uint16_t i = 0; i < nout; i++) out[i].layout = YK_LAYOUT_ANY;
  if (driver->kernel_prepare(dev, &spec, &kernel, &info) != YK_OK) return false;
  driver->kernel_free(kernel);
  return true;
}

static void try_case(const yk_driver *driver, yk_dev *dev, const yk_op *op, const yk_case *c, uint32_t *yes, uint32_t *no) {
  uint32_t set = dtypes_of(op, c), tries = set != 0 ? set : YK_T(YK_F32);
  for (uint32_t t = 1; t < YK_NDTYPES; t++) {
    yk_shapes s;
    yk_desc out[MAX_PORTS];
    uint32_t bit = YK_T(t);
    if ((tries & bit) == 0 || !parse(c->shapes, (yk_dtype)t, &s)) continue;
    bool good = prepares(driver, dev, op, c, &s, out);
    if (set == 0) bit = YK_T(s.n > 0 ? s.in[0].dtype : out[0].dtype);
    *(good ? yes : no) |= bit;
    yk_error_clear();
  }
}

uint32_t yk__op_dtypes(const yk_op *op) {
  uint32_t set = op->in != NULL && op->in[0].name != NULL ? op->in[0].dtypes : op->out != NULL && op->out[0].name != NULL
      ? op->out[0].dtypes : 0;
  return set & YK_ANYTYPE;
}

yk_support yk__kernel_support(const yk_driver *driver, yk_dev *dev, const yk_op *op) {
  uint32_t yes = 0, no = 0;
  if ((op->traits & (YK_SOURCE | YK_VIEW)) != 0) return (yk_support){ .all = yk__op_dtypes(op) };
  for (const yk_case *c = op->cases; c != NULL && c->shapes != NULL; c++) try_case(driver, dev, op, c, &yes, &no);
  return (yk_support){ .all = yes & ~no & YK_ANYTYPE, .some = yes & no & YK_ANYTYPE };
}
