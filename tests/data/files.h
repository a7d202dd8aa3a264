/*
 * files.h - files of a test: a folder of its own, and the golden ones of tests/golden/data.
 *
 * Everything that a test leaves in its folder is removed at the end, whatever it is.
 */
#ifndef YK_TESTS_DATA_FILES_H
#define YK_TESTS_DATA_FILES_H

#include "support/check.h"
#include "base/alloc.h"
#include <yoke/data.h>

/* Group set-up and tear-down: the folder. */
int files_set_up(void **state);
int files_tear_down(void **state);
/* Path of a file in it, and of a golden one; of four buffers that take turns. */
const char *in_folder(const char *name);
const char *golden(const char *name);
/* Write it, with the folders that lead to it. */
void put(const char *name, const void *bytes, size_t n);
void put_text(const char *name, const char *text);
/* All of a file; the caller's to free. */
uint8_t *get_all(const char *path, size_t *n);

/* yk_dataset_open with a check that a failure left nothing behind. */
yk_code open_set(const char *path, const yk_dataset_options *o, yk_split split, yk_dataset **out);
/* It must work. */
yk_dataset *opened(const char *path, const yk_dataset_options *o, yk_split split);
/* It fails with `code` and a message that contains all of the texts, which end with NULL. */
void refused(const char *path, const yk_dataset_options *o, yk_split split, yk_code code, const char *const *texts);
#define REFUSED(path, options, split, code, ...) refused(path, options, split, code, (const char *const[]){ __VA_ARGS__, NULL })

/* Component k is called so and looks so. */
void check_component(const yk_dataset *d, uint32_t k, const char *name, yk_dtype dtype, yk_shape shape);

#endif
