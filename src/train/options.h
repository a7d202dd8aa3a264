/*
 * options.h - structs of options as the caller's version of the header knows them.
 *
 * The first field tells how much of the struct the caller has; what it does not have is zero, the default.
 */
#ifndef YK_TRAIN_OPTIONS_H
#define YK_TRAIN_OPTIONS_H

#include <string.h>
#include "base/error.h"

/* Copy `given` to the struct `o` of `bytes` bytes, which is all zero. EINVAL, naming the struct: NULL, or a size that cannot
 * be. */
static inline yk_code yk__options_take(void *o, size_t bytes, const void *given, const char *name) {
  uint32_t size = 0;
  if (given != NULL) memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > bytes + 4096)
    return YK_FAIL(EINVAL, "%s are %s or have a size of %u; start from their _INIT", name, given ? "damaged" : "NULL", size);
  memcpy(o, given, size < bytes ? size : bytes);
  return YK_OK;
}

#endif
