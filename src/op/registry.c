/*
 * registry.c - the table of operations, built from ops.def.
 *
 * The table is constant data: nothing registers itself, so nothing can be
 * forgotten by a linker and no lock is needed. It is alone in this file so that a
 * program which never asks for it by name links only the operations it uses.
 */
#include <string.h>
#include "op/registry.h"

static const yk_op *const table[] = {
#define OP(name) &yk__op_##name,
#include "../ops/ops.def"
#undef OP
};

const yk_op *yk_op_find(const char *name) {
  if (!name) return NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i]->name, name)) return table[i];
  return NULL;
}

const yk_op *const *yk_op_all(size_t *count) {
  if (count) *count = sizeof table / sizeof *table;
  return table;
}
