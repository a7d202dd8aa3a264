/*
 * crc32c.h - the Castagnoli checksum of bytes: which of them a disk, a cable or a hand has changed.
 *
 * It finds every changed run of up to 32 bits, and misses one other change in four thousand million. It is no protection
 * against somebody who wants to deceive.
 */
#ifndef YK_BASE_CRC32C_H
#define YK_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Checksum of what `crc` is the checksum of (0 = nothing yet) followed by these n bytes. Any thread. */
uint32_t yk__crc32c(uint32_t crc, const void *p, size_t n);
/* The form in which TFRecords keep that of `n` bytes, so that a checksum of data with checksums in it is no constant. */
uint32_t yk__crc32c_masked(const void *p, size_t n);
/* The same as the first without the processor's instruction, for tests. */
uint32_t yk__crc32c_table(uint32_t crc, const void *p, size_t n);

#endif
