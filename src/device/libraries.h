/*
 * libraries.h - why there is no GPU: which libraries were looked for, and what they said.
 *
 * Nothing of a GPU's vendor is linked; the libraries are opened by name when somebody asks, and closed again. This is a
 * sentence for messages; `yoke doctor` looks closer.
 */
#ifndef YK_DEVICE_LIBRARIES_H
#define YK_DEVICE_LIBRARIES_H

#include <stddef.h>

/* "tried libcuda.so.1: not found; libnvidia-ml.so.1: not found". Returns buf, always terminated. The process
 * should have no other threads that work meanwhile (see base/child.h); it takes at most five seconds. */
char *yk__gpu_libraries(char *buf, size_t n);

#endif
