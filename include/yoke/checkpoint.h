/*
 * checkpoint.h - the whole state of a training run on disk, and back.
 *
 * A checkpoint is one safetensors file: every variable in plain layout (weights, optimizer slots, averages, statistics, global
 * step), the number of the next run (what random operations draw from), and texts of the caller's, such as the position of the
 * input. A saver writes them into a folder of its own so that whatever happens at whatever moment, the newest or the one before
 * it is whole. What is read back does not depend on devices or their number.
 */
#ifndef YK_CHECKPOINT_H
#define YK_CHECKPOINT_H

#include <stdbool.h>
#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text that goes with a checkpoint. Keys that begin with "yoke." are the library's. Readers find them in "__metadata__". */
typedef struct yk_note { const char *key, *value; } yk_note;

/* ---- saving ---------------------------------------------------------------------------------------------------------- */

/*
 * Writes checkpoints of one run into one folder: ckpt-STEP.safetensors each, and checkpoint.json, which lists them with sizes and
 * checksums. Files get their name once they are on the disk, the list is replaced in one step, and an old file is removed only
 * after the list no longer has it. One thread at a time.
 */
typedef struct yk_saver yk_saver;

typedef struct yk_saver_options {
  uint32_t size;                   /* YK_SAVER_OPTIONS_INIT sets it */
  int32_t  keep;                   /* the newest ones, so many; 0 = 5; -1 = all */
  double   keep_every_hours;       /* of those that would go, one in so many hours stays for good; 0 = none */
} yk_saver_options;
#define YK_SAVER_OPTIONS_INIT { .size = sizeof(yk_saver_options) }

/* Open `folder`, making it (not its parents) if need be. What a killed writer left unfinished is removed; a checkpoint that the list
 * does not have, since the writer was killed just before, is added if it is whole. A list that is damaged gives a warning in the
 * log and is made anew from the files. options NULL = defaults. Errors: EINVAL (options), EBUSY (another process saves in there), EIO.
 * *out: yk_saver_close(). */
yk_code yk_saver_open(const char *folder, const yk_saver_options *options, yk_saver **out) YK_CHECKED;
/* Wait for what is being written, give back everything; NULL is fine. The code is that of a save whose outcome nobody asked for. */
yk_code yk_saver_close(yk_saver *s);

/* Is there room for `saves` more checkpoints of the session's variables (0: for as many as are kept, and one more), those that
 * will give way taken off? EIO with the bytes that are needed and those that are free. Every save asks again, for itself. */
yk_code yk_saver_check(yk_saver *s, const yk_session *session, int64_t saves) YK_CHECKED;

/*
 * Save every variable of the session, and n texts. All must have values; steps of other threads wait until the values are copied.
 * `save` returns when the checkpoint is on the disk; `begin` when the values are copied, and a thread writes them: yk_saver_wait()
 * or yk_saver_poll() tells how that ended. `begin` first waits for the save before, and returns its failure, with nothing begun, if nobody has
 * asked for that yet. After a failure the folder is what it was, and the next save may be tried.
 * Errors: EINVAL (step below 0, a key that is empty, twice or the library's, a variable without a value), ENOMEM, EIO naming file
 * and reason (a full disk with bytes needed and free).
 */
yk_code yk_saver_save(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) YK_CHECKED;
yk_code yk_saver_begin(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) YK_CHECKED;

/* How a save ended. `path` is borrowed until the next call with this saver. */
typedef struct yk_saver_report {
  int64_t step;                    /* -1: there is no save whose end was not told before */
  uint64_t bytes;
  double seconds, copy_seconds;    /* from the call to the end; of these, how long the caller was kept */
  const char *path;
} yk_saver_report;
/* The outcome of the last save, once: its code, and what it was. While it is being written `poll` gives EBUSY, and costs next to
 * nothing; `wait` waits. *out is filled in after a failure of the save too; out may be NULL. */
yk_code yk_saver_poll(yk_saver *s, yk_saver_report *out) YK_CHECKED;
yk_code yk_saver_wait(yk_saver *s, yk_saver_report *out) YK_CHECKED;
/* Path of the newest checkpoint in the list, or NULL. Waits for what is being written. Borrowed until the next call. */
const char *yk_saver_latest(yk_saver *s);

/* ---- reading --------------------------------------------------------------------------------------------------------- */

/* A checkpoint, or any other safetensors file, read and checked. Reading it changes nothing; any thread. */
typedef struct yk_checkpoint yk_checkpoint;

/* One file. Errors naming it: ENOTFOUND, EIO, ECORRUPT (cut off, altered: what was found and what was expected), EUNSUPPORTED (a
 * dtype). *out: yk_checkpoint_close(). */
yk_code yk_checkpoint_open(const char *path, yk_checkpoint **out) YK_CHECKED;
/* The newest whole checkpoint in the folder of a saver. Each newer one that is not whole gives a warning in the log. ENOTFOUND: there
 * is none; ECORRUPT: there are some, but none is whole; EIO. */
yk_code yk_checkpoint_latest(const char *folder, yk_checkpoint **out) YK_CHECKED;
void    yk_checkpoint_close(yk_checkpoint *c);

/* Its path; its step, -1 if it is not a saver's; a text, NULL if there is none of that key. Borrowed, valid until it is closed. */
const char *yk_checkpoint_path(const yk_checkpoint *c);
int64_t     yk_checkpoint_step(const yk_checkpoint *c);
const char *yk_checkpoint_note(const yk_checkpoint *c, const char *key);
/* Its tensors: how many; name of the i-th, NULL past the end; what one looks like, NULL if there is none; a copy (*out is the
 * caller's; ENOTFOUND, ENOMEM). */
size_t         yk_checkpoint_count(const yk_checkpoint *c);
const char    *yk_checkpoint_name(const yk_checkpoint *c, size_t i);
const yk_desc *yk_checkpoint_desc(const yk_checkpoint *c, const char *name);
yk_code        yk_checkpoint_get(const yk_checkpoint *c, const char *name, yk_tensor **out) YK_CHECKED;

/* The variable `variable` takes its value from the tensor `tensor`. If both end in '/' (or are ""), so does every variable whose
 * name begins that way, with the start of its name replaced. */
typedef struct yk_rename { const char *variable, *tensor; } yk_rename;

typedef struct yk_restore_options {
  uint32_t size;                   /* YK_RESTORE_OPTIONS_INIT sets it */
  bool     allow_missing;          /* variables that the file lacks keep what they have */
  bool     allow_unexpected;       /* the file may have tensors that no variable takes */
  bool     keep_counter;           /* random operations go on where they are, not where the checkpoint was */
  size_t   nrenames; const yk_rename *renames;       /* the first that fits counts */
  size_t   nonly; const char *const *only;           /* these variables alone: names, or starts that end in '/'; NULL = all. Tensors
                                                        of others are then not unexpected */
} yk_restore_options;
#define YK_RESTORE_OPTIONS_INIT { .size = sizeof(yk_restore_options) }

/* What restoring would find wrong, a line each: "missing NAME: ...", "unexpected NAME: ...", "mismatch NAME: ...", with shapes and
 * dtypes; "" if all fits. What the options allow is listed too. *out: yk_free(). */
yk_code yk_checkpoint_compare(const yk_checkpoint *c, const yk_graph *g, const yk_restore_options *options, char **out) YK_CHECKED;
/* Give the session's variables the values of the file; no initializer needs to run before. All is compared first: if anything is
 * wrong that the options do not allow, nothing changes, and the message counts it and names the first ones (ENOTFOUND missing or
 * unexpected, EINVAL mismatch, or an entry of `only` or `renames` that fits no variable). options NULL = everything must fit. */
yk_code yk_checkpoint_restore(const yk_checkpoint *c, yk_session *session, const yk_restore_options *options) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
