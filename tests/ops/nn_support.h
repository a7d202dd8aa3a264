/*
 * nn_support.h - run one operation's shape function and reference by hand.
 *
 * No graph and no device: descriptions from text, arrays of doubles in, arrays of doubles out.
 */
#ifndef YK_TEST_NN_SUPPORT_H
#define YK_TEST_NN_SUPPORT_H

#include <yoke/op_attrs.h>
#include "op/registry.h"

enum { NN_PORTS = 12 };

/* "f32[2,?,3]; i64[4]" -> descriptions; returns how many. Fails the test on anything else. */
uint16_t nn_parse(const char *text, yk_desc *out, uint16_t max);
/* The same text again; buf is 512 bytes. */
char *nn_text(const yk_desc *d, uint16_t n, char *buf);

typedef struct nn_run {
  const yk_op *op;
  const void *attrs;
  uint16_t nin, nout;
  yk_desc din[NN_PORTS], dout[NN_PORTS];
  double *in[NN_PORTS], *out[NN_PORTS];     /* in NULL: shape-only. out: made by nn_run_ref */
} nn_run;

/* Infer, allocate the outputs (filled with NaN) and call the reference. The test fails if either does. */
void nn_run_ref(nn_run *r);
/* Frees in and out. */
void nn_run_free(nn_run *r);

#endif
