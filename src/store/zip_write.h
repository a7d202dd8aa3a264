/*
 * zip_write.h - small zip archives, everything in them stored as it is.
 *
 * An archive appears when it is whole, and replaces an older file only then.
 */
#ifndef YK_STORE_ZIP_WRITE_H
#define YK_STORE_ZIP_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

/* A new archive of n parts, whole or not at all. EIO; EUNSUPPORTED: 4 GiB or more. */
typedef struct yk_zip_part { const char *name; const void *data; size_t bytes; } yk_zip_part;
yk_code yk__zip_write(const char *path, uint32_t n, const yk_zip_part *part) YK_CHECKED;

#endif
