/*
 * case.h - the text of a yk_case turned into descriptions.
 *
 * "T[4,7,5]; i32[4]": one description an input, T standing for the dtype the sweep is at.
 */
#ifndef YK_TEST_CASE_H
#define YK_TEST_CASE_H

#include <yoke/op.h>

enum { CASE_MAX_INPUTS = 16 };

/* Descriptions of the inputs; *n of them. 0 if the text is malformed. */
int case_parse(const char *text, yk_dtype t, yk_desc in[CASE_MAX_INPUTS], uint16_t *n);
/* Set of YK_T() that T may stand for in this case: what every port that gets a T accepts. 0 if no input is a T. */
uint32_t case_dtypes(const yk_op *op, const yk_case *c);

#endif
