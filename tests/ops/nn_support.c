/*
 * nn_support.c - see nn_support.h. Plain malloc on purpose: what the library allocates is
 * none of these tests' business.
 */
#include "nn_support.h"

#include "device/device.h"
#include "support/check.h"
#include "tensor/desc.h"

uint16_t nn_parse(const char *text, yk_desc *out, uint16_t max) {
  uint16_t n = 0;
  while (*text) {
    char type[8] = { 0 };
    size_t k = strcspn(text, "[");
    yk_desc d = { 0 };
    if (n == max || k == 0 || k >= sizeof type || text[k] != '[') fail_msg("bad description \"%s\"", text);
    memcpy(type, text, k);
    d.dtype = (uint8_t)yk_dtype_parse(type);
    if (d.dtype == YK_NONE) fail_msg("bad dtype in \"%s\"", text);
    text += k + 1;
    while (*text != ']') {
      char *end = (char *)text;
      d.dim[d.rank] = *text == '?' ? -1 : strtoll(text, &end, 10);
      text = *text == '?' ? text + 1 : end;
      if (*text != ',' && *text != ']') fail_msg("bad dims at \"%s\"", text);
      d.rank++;
      if (*text == ',') text++;
    }
    text++;
    out[n++] = d;
    if (*text == ';') text += 2;
  }
  return n;
}

char *nn_text(const yk_desc *d, uint16_t n, char *buf) {
  size_t at = 0;
  buf[0] = 0;
  for (uint16_t i = 0; i < n; i++) {
    char one[YK__DESC_TEXT];
    at += (size_t)snprintf(buf + at, 512 - at, "%s%s", i ? "; " : "", yk__desc_text(&d[i], one, sizeof one));
  }
  return buf;
}

void nn_run_ref(nn_run *r) {
  yk_ref c = { .in = (const double *const *)r->in, .out = r->out, .din = r->din, .dout = r->dout, .nin = r->nin, .attrs = r->attrs,
               .host = &yk__host };
  r->attrs = c.attrs = yk__attrs_or_zero(r->op, r->attrs);
  r->nout = c.nout = yk__op_nout(r->op, r->attrs);
  CHECK_OK(yk__op_infer(r->op, r->attrs, r->din, r->nin, r->dout, r->nout));
  for (uint16_t i = 0; i < r->nout; i++) {
    int64_t n = yk__desc_count(&r->dout[i]);
    r->out[i] = malloc(((size_t)n + 1) * sizeof(double));
    for (int64_t k = 0; k <= n; k++) r->out[i][k] = NAN;
  }
  CHECK_OK(r->op->ref(&c));
  for (uint16_t i = 0; i < r->nout; i++)
    if (!isnan(r->out[i][yk__desc_count(&r->dout[i])])) fail_msg("%s writes past its output %u", r->op->name, i);
}

void nn_run_free(nn_run *r) {
  for (int i = 0; i < NN_PORTS; i++) {
    free(r->in[i]);
    free(r->out[i]);
    r->in[i] = r->out[i] = NULL;
  }
}
