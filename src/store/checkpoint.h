/*
 * checkpoint.h - the inside of a checkpoint that was read. Public half: <yoke/checkpoint.h>.
 *
 * It is a checked safetensors file in memory, with its path; its step is a note.
 */
#ifndef YK_STORE_CHECKPOINT_H
#define YK_STORE_CHECKPOINT_H

#include <yoke/checkpoint.h>
#include "store/safetensors.h"

struct yk_checkpoint {
  yk_safetensors *file;
  char *path;
  int64_t step;
};

/* Notes of a saver, beside the checksums. */
#define YK__NOTE_FORMAT  "yoke.format"         /* "1" */
#define YK__NOTE_STEP    "yoke.step"
#define YK__NOTE_COUNTER "yoke.run_counter"

#endif
