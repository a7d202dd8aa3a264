/*
 * load.h - how busy the host's cores are, and how warm: what the system tells about devices that are made of host cores.
 *
 * Two readings and the time between them give a share; one reading alone gives none. What a machine does not tell is "unknown",
 * a negative number, never 0.
 */
#ifndef YK_MEASURE_LOAD_H
#define YK_MEASURE_LOAD_H

#include <stdint.h>

enum { YK__LOAD_CORES = 1024 };
#define YK__UNKNOWN (-1e9)

typedef struct yk_load {             /* clock ticks since boot, by number of the core; total 0: not told */
  uint64_t busy[YK__LOAD_CORES], total[YK__LOAD_CORES];
} yk_load;

/* Of a file such as /proc/stat; all zero if it cannot be read. */
void   yk__load_read(const char *file, yk_load *out);
/* Busy share, 0 to 1, of cores `first` to `first + n - 1` of those that this process may use. YK__UNKNOWN. */
double yk__load_between(const yk_load *before, const yk_load *after, uint32_t first, uint32_t n);
/* Bytes of the last cache that a core reaches, below a folder such as /sys; 0: not told. The C library may count all of a package, most of
 * which a virtual machine does not have. */
uint64_t yk__last_cache(const char *sys);
/* The warmest sensor of the processor in degrees Celsius, below a folder such as /sys. YK__UNKNOWN. */
double yk__temperature(const char *sys);

#endif
