/*
 * formats.h - one opener a format, and how the files of a folder are shared out to training and test.
 *
 * A file name tells its part by a word between its other characters: "train-images-idx3-ubyte", "x_test.npy", "val/". Where nothing
 * is named so, all is training data, of which a holdout may be kept for tests.
 */
#ifndef YK_DATA_FORMATS_H
#define YK_DATA_FORMATS_H

#include "data/dataset.h"
#include "data/file.h"

/* What an opener is asked for; options are complete (never NULL). */
typedef struct yk_ask { const char *path; yk_dataset_options o; yk_split split; } yk_ask;

yk_code yk__open_cifar10(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_idx(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_csv(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_npy(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_npz(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_tfrecord(const yk_ask *a, yk_dataset **out) YK_CHECKED;
yk_code yk__open_folder(const yk_ask *a, yk_dataset **out) YK_CHECKED;

/* Does a file (or an entry of a folder) of this name belong to the format? */
bool yk__name_is_idx(const char *name);
bool yk__name_is_csv(const char *name);
bool yk__name_is_npy(const char *name);
bool yk__name_is_npz(const char *name);
bool yk__name_is_tfrecord(const char *name);

/* What a name says by its words: -1 train, 2 test, 1 something like a test (val, dev), 0 nothing. */
int yk__test_rank(const char *name);
/* Does a name of that rank belong to the part, where `best` is the highest rank there is? A test beside which there is only val is val. */
bool yk__is_part(int rank, int best, yk_split split);

/*
 * The paths of the entries of folder a->path that `belongs` accepts and that are of the asked-for part, sorted; of a->path alone where
 * that is a file. Where there is no test part, those of the training part, for a->o.holdout to divide; a part that is named clears the
 * holdout. ENOTFOUND tells `what` was looked for.
 */
yk_code yk__pick_files(yk_ask *a, bool (*belongs)(const char *name), const char *what, yk_name_list *out) YK_CHECKED;

#endif
