/*
 * manifest.h - the list of a folder's checkpoints, oldest first: checkpoint.json.
 *
 * The list says in which order they were written, how large they are and which of them stay for good; whether a file is whole
 * is seen from the file itself, which carries its checksums. So a lost list costs the order of equals, and no checkpoint.
 */
#ifndef YK_STORE_MANIFEST_H
#define YK_STORE_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <yoke/status.h>
#include "store/safetensors.h"

enum { YK__CKPT_NAME = 64 };

typedef struct yk_ckpt_entry {
  char file[YK__CKPT_NAME];          /* "ckpt-100.safetensors", in the folder */
  char sum[9];                       /* of its header, which holds the sum of its data */
  int64_t step, saved;               /* saved: seconds since 1970 */
  uint64_t bytes;
  bool kept;                         /* for good */
} yk_ckpt_entry;

typedef struct yk_manifest { yk_ckpt_entry *entry; uint32_t n, cap; int64_t last_kept; } yk_manifest;   /* {0} = empty */

/* What the folder has: the list, and whole files that it lacks, put in by their step. A damaged list is told in the log and
 * done without. A folder that does not exist has nothing. EIO. `out` must be freed in any case. */
yk_code yk__manifest_load(const char *folder, yk_manifest *out) YK_CHECKED;
yk_code yk__manifest_write(const char *folder, const yk_manifest *m) YK_CHECKED;
void    yk__manifest_free(yk_manifest *m);
yk_code yk__manifest_copy(const yk_manifest *m, yk_manifest *out) YK_CHECKED;
yk_code yk__manifest_append(yk_manifest *m, const yk_ckpt_entry *e) YK_CHECKED;
/* Take the oldest out until `keep` are left that do not stay for good (-1: none goes); every `hours` one is made to stay (0: none
 * is). They go behind the end of the list: m->entry[m->n ...], so many. */
uint32_t yk__manifest_retire(yk_manifest *m, int32_t keep, double hours);

/* A saver's file: as yk__safetensors_open(), and ECORRUPT where it is none. `*e` as it would stand in the list, but for `saved`. */
yk_code yk__ckpt_read(const char *path, yk_safetensors **out, yk_ckpt_entry *e) YK_CHECKED;
/* "folder/name". *out: yk__free(). */
yk_code yk__ckpt_path(const char *folder, const char *name, char **out) YK_CHECKED;
/* What dead writers left half-written in the folder goes; only for who holds its lock. */
void    yk__ckpt_sweep(const char *folder);

#endif
