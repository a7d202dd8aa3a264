/*
 * folder.h - a folder for a test, its files, and what the tests of the disk share: calls that fail or kill.
 *
 * Test programs of this area run one test after the other in one folder that is emptied before each.
 */
#ifndef YK_TEST_STORE_FOLDER_H
#define YK_TEST_STORE_FOLDER_H

#include <stdbool.h>
#include "support/check.h"

extern char folder[64];

/* Group setup and teardown: make the folder; remove it and all in it. */
int  folder_setup(void **state);
int  folder_teardown(void **state);
/* Before each test: nothing is in it, nothing is watched. */
int  folder_empty(void **state);
/* "folder/name", in one of four static buffers that take turns. */
const char *in_folder(const char *name);
/* All bytes of a file of the folder, with a zero behind; NULL if there is none. free(). */
uint8_t *take_file(const char *name, size_t *n);
void     put_file(const char *name, const void *bytes, size_t n);
bool     has_file(const char *name);
/* How many names there are that end in `end`. */
int      count_files(const char *end);

/* Let the n-th call that changes the disk (1 = the next) fail with `why`, or kill the process if why is 0; of one kind if `call` is not
 * NULL ("write"). n = 0: none. Calls are counted from here on; `calls_seen` tells how many there were. */
void watch_call(int n, int why, const char *call);
int  calls_seen(void);

#endif
