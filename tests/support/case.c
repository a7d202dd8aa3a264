/*
 * case.c - see case.h. Strict: a case that does not parse is a fault of the operation's file, not something to skip.
 */
#include "support/case.h"

#include <stdlib.h>
#include <string.h>
#include "op/registry.h"

static int parse_one(const char **text, yk_dtype t, yk_desc *out, int *is_t) {
  char type[8] = { 0 };
  const char *s = *text;
  size_t k = strcspn(s, "[");
  yk_desc d = { 0 };
  if (k == 0 || k >= sizeof type || s[k] != '[') return 0;
  memcpy(type, s, k);
  *is_t = strcmp(type, "T") == 0;
  d.dtype = (uint8_t)(*is_t ? t : yk_dtype_parse(type));
  if (d.dtype == YK_NONE && !*is_t) return 0;
  for (s += k + 1; *s != ']';) {
    char *end;
    if (d.rank == YK_MAX_RANK) return 0;
    d.dim[d.rank] = strtoll(s, &end, 10);
    if (end == s || d.dim[d.rank++] < 0 || (*end != ',' && *end != ']')) return 0;
    s = *end == ',' ? end + 1 : end;
  }
  *text = s + 1;
  *out = d;
  return 1;
}

static int parse(const char *text, yk_dtype t, yk_desc *in, uint16_t *n, uint32_t *t_inputs) {
  *n = 0;
  *t_inputs = 0;
  while (*text) {
    int is_t = 0;
    if (*n == CASE_MAX_INPUTS || !parse_one(&text, t, &in[*n], &is_t)) return 0;
    if (is_t) *t_inputs |= 1u << *n;
    (*n)++;
    if (*text == ';') text++;
    while (*text == ' ') text++;
  }
  return 1;
}

int case_parse(const char *text, yk_dtype t, yk_desc in[CASE_MAX_INPUTS], uint16_t *n) {
  uint32_t t_inputs;
  return parse(text, t, in, n, &t_inputs);
}

uint32_t case_dtypes(const yk_op *op, const yk_case *c) {
  yk_desc in[CASE_MAX_INPUTS];
  uint16_t n;
  uint32_t t_inputs, set = YK_ANYTYPE;
  if (!parse(c->shapes, YK_F32, in, &n, &t_inputs) || !t_inputs) return 0;
  for (uint16_t i = 0; i < n; i++) {
    const yk_port *p = yk__op_in_port(op, c->attrs, n, i);
    if ((t_inputs >> i & 1u) && p) set &= p->dtypes;
  }
  return set;
}
