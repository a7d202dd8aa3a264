/*
 * fuse.c - pass 7 stands here until the table of fusions is read.
 *
 * placeholder
 */
#include "plan/ir.h"
yk_code yk__pass_fuse(yk_ir *ir) { (void)ir; return YK_OK; }
