/*
 * disk.h - files that are whole or absent, whatever happens while they are written.
 *
 * A file grows under a temporary name, is synced, takes its name in one step, and then the folder is synced, so that after a
 * crash or a loss of power the name stands for the old bytes or for the new ones. A full disk, a quota and a file size limit
 * are ordinary failures: the signal of the last one (SIGXFSZ) is kept from the process.
 */
#ifndef YK_STORE_DISK_H
#define YK_STORE_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

typedef struct yk_piece { const void *data; size_t bytes; } yk_piece;

/* The pieces, one after the other, as file `path`; an older one is replaced. On failure it is what it was, and nothing else is
 * left. EIO naming file and reason. */
yk_code yk__disk_write(const char *path, size_t n, const yk_piece *pieces) YK_CHECKED;
/* The folder `path`, if it is not there; its parents must be. EIO naming it and the reason. */
yk_code yk__disk_folder(const char *path) YK_CHECKED;
/* The same with its parents, as far as they are not there; these are not synced. */
yk_code yk__disk_folders(const char *path) YK_CHECKED;
/* All of a regular file; one byte more is allocated, and is zero. *out: yk__free(). Errors naming the file: ENOTFOUND, EIO. */
yk_code yk__disk_read(const char *path, uint8_t **out, size_t *bytes) YK_CHECKED;
/* That it is absent already is fine. EIO naming file and reason. */
yk_code yk__disk_remove(const char *path) YK_CHECKED;
/* Can `folder` take `bytes` more, in files of at most `largest`? EIO with what is needed and what there is; `what` is needed. */
yk_code yk__disk_room(const char *folder, uint64_t bytes, uint64_t largest, const char *what) YK_CHECKED;

/*
 * A file that grows, for data whose beginnings are worth reading: create it, which EBUSY refuses where the name is taken, append
 * to it, end it. An append that fails leaves the file as it was before, so what stands in it are whole appends, unless the system
 * itself stops in the middle of one. `finish` syncs, closes in any case, and tells whether all is on the disk. EIO naming file and
 * reason.
 */
yk_code yk__disk_create(const char *path, int *fd) YK_CHECKED;
yk_code yk__disk_append(int fd, const char *path, const void *data, size_t n) YK_CHECKED;
yk_code yk__disk_finish(int fd, const char *path) YK_CHECKED;

/*
 * For tests: called before every call of the system that changes the disk or asks for its room, with its name ("open", "write",
 * "fsync", "close", "rename", "sync folder", "unlink", "statvfs") and the path. An errno that it returns is what the call fails
 * with; a "write" that is to fail with ENOSPC, EDQUOT or EFBIG first writes half. 0: go on. Process-wide; NULL: none.
 */
void yk__disk_watch(int (*hook)(const char *call, const char *path));

#endif
