/*
 * doctor.h - examines whether this machine can train: driver, runtime, libraries, device files, and a matmul on every device.
 *
 * First facts are gathered (where the loader looks, what each library says of itself, in a child process with a time limit),
 * then judged: each verdict tells what was looked for, where, what was found, what is needed, and the next command.
 */
#ifndef YK_DOCTOR_DOCTOR_H
#define YK_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <yoke/session.h>
#include "base/alloc.h"

/* Where to look. Folders in lists stand between colons; "" is an empty list. Strings are borrowed until the report is freed. */
typedef struct yk_doctor_env {
  const char *ld_library_path;     /* NULL: not set */
  const char *ld_cache;            /* the loader's cache */
  const char *default_dirs;        /* where the loader looks last */
  const char *other_dirs;          /* where it does not look, but libraries often lie */
  const char *toolkit_dirs;        /* where bin/nvcc may be below */
  const char *header_dirs;         /* where mpi.h may be */
  const char *dev, *proc, *sys, *shm, *etc;
  const char *visible;             /* CUDA_VISIBLE_DEVICES; NULL: not set */
  const char *gpu_driver;          /* Yoke's own driver for real GPUs, as text; NULL: this build has none */
  const yk_session_options *session;   /* of the matmuls; NULL: no matmuls */
  bool container;                  /* in one, shared memory is sized from outside */
  uint64_t shm_need;               /* bytes */
  int timeout_ms;                  /* for each library, and for all matmuls */
} yk_doctor_env;

/* Good; worth knowing; works but will bite; a GPU cannot be used because of it. */
typedef enum yk_doctor_state { YK__GOOD, YK__NOTE, YK__WARN, YK__BAD } yk_doctor_state;

typedef struct yk_verdict {
  yk_doctor_state state;
  const char *check;               /* "driver", "runtime", ... */
  const char *says;                /* the verdict in one line */
  const char *looked_for, *where, *found, *needed, *next;   /* next: a command, or what to do if there is none */
} yk_verdict;

typedef struct yk_doctor_card { const char *name, *bus; int major, minor; uint64_t bytes; } yk_doctor_card;
typedef struct yk_doctor_device {
  const char *name, *model, *error;    /* error "": the matmul was right */
  bool is_virtual, is_gpu, ok;
  float result[4];                 /* [[1 2 3] [4 5 6]] times [[1 2] [3 4] [5 6]]: 22 28 49 64 */
} yk_doctor_device;

typedef struct yk_doctor_report {
  uint32_t n, cap, ncards, ndevices;
  yk_verdict *at;
  yk_doctor_card *cards;           /* as the driver sees them */
  yk_doctor_device *devices;
  bool cpu_works, gpu_works;       /* a matmul was right there; virtual GPUs do not count */
  bool stack_fits;                 /* driver, libraries and card would do for a GPU */
  const char *summary;
  yk_bump text;                    /* private: what all of it lies in */
  bool failed;                     /* private: no memory for a text */
} yk_doctor_report;

/* This machine, with its environment variables. Strings are put into `text`. */
yk_code yk__doctor_env(yk_bump *text, yk_doctor_env *out) YK_CHECKED;
/* Examine. Fails for want of memory only: everything else is a verdict. Best called before the process has threads. */
yk_code yk__doctor_run(const yk_doctor_env *env, yk_doctor_report *out) YK_CHECKED;
void    yk__doctor_free(yk_doctor_report *r);
const char *yk__doctor_state_text(yk_doctor_state s);   /* "ok" "note" "warn" "fail" */

#endif
