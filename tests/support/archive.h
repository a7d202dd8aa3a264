/*
 * archive.h - a zip archive taken apart, to be put together again with something changed: its checksums are right whatever is in it.
 */
#ifndef TEST_ARCHIVE_H
#define TEST_ARCHIVE_H

#include "store/zip_write.h"

enum { ARCHIVE_MOST = 8 };
typedef struct archive { yk_zip_part part[ARCHIVE_MOST]; uint32_t n; } archive;

void archive_take(archive *a, const char *path);
/* The member of that name, which must be there. */
yk_zip_part *archive_part(archive *a, const char *name);
/* A copy of the bytes instead of the member's; bytes NULL: no such member. */
void archive_change(archive *a, const char *name, const void *bytes, size_t n);
/* The first `from` in a member becomes `to`. */
void archive_edit(archive *a, const char *name, const char *from, const char *to);
void archive_put(const archive *a, const char *path);
void archive_free(archive *a);

#endif
