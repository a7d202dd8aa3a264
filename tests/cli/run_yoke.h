/*
 * run_yoke.h - starts the command as a user would and looks at what it says, leaves and returns.
 *
 * Each test program works in a folder of its own below the temporary one, which is
 * the working folder of the command and is removed at the end.
 */
#ifndef YK_TEST_CLI_RUN_YOKE_H
#define YK_TEST_CLI_RUN_YOKE_H

#include <stdbool.h>
#include <sys/types.h>
#include "support/check.h"

typedef struct yoke_result { int status; char *out, *err; } yoke_result;   /* status 1000 + n: ended by signal n */

/* Before and after all tests of a program: the folder. Group setup and teardown of cmocka. */
int yoke_setup(void **state);
int yoke_teardown(void **state);

/* Run "yoke" with the arguments up to NULL; the caller frees with yoke_free(). */
#define YOKE(r, ...) yoke_run((r), (const char *const[]){ "yoke", __VA_ARGS__, NULL })
void yoke_run(yoke_result *r, const char *const *argv);
void yoke_free(yoke_result *r);
/* Start it without waiting; its output goes to files "out" and "err" of the folder. yoke_wait() gives the status. */
pid_t yoke_start(const char *const *argv);
pid_t yoke_start_on(int out, const char *const *argv);  /* with that descriptor as its standard output */
/* A terminal of so many rows and columns (0: as the system makes them): our end of it, and *theirs, a program's, both to be closed. */
int   open_terminal(unsigned short rows, unsigned short columns, int *theirs);
void  yoke_wait(pid_t pid, yoke_result *r);
/* Any program of PATH, with `input` as its standard input; its status. */
int run_program(const char *const *argv, const char *input, char **out);

/* The command fails with `status`: nothing on stdout, exactly one line on stderr, which contains `text`. */
#define FAILS(status, text, ...) \
  yoke_fails((status), (text), (const char *const[]){ "yoke", __VA_ARGS__, NULL }, __FILE__, __LINE__)
void yoke_fails(int status, const char *text, const char *const *argv, const char *file, int line);
/* It succeeds, with nothing on stderr; what it printed is the caller's to free. */
#define SUCCEEDS(...) yoke_succeeds((const char *const[]){ "yoke", __VA_ARGS__, NULL }, __FILE__, __LINE__)
char *yoke_succeeds(const char *const *argv, const char *file, int line);

/* Files of the folder. */
bool  exists(const char *path);
char *read_file(const char *path);                      /* NULL if there is none; the caller's */
void  same_files(const char *a, const char *b);          /* fails the test unless they hold the same bytes */
void  write_file(const char *path, const void *data, size_t n);
/* NumPy's format: "<f4", "60, 6, 3". */
void  write_npy(const char *path, const char *type, const char *shape, const void *data, size_t bytes);
/* A folder with CIFAR-10 files of that many pictures, which a network can learn. */
void  write_cifar(const char *folder, int train, int test);
/* The text parses as JSON; as one JSON value a line. */
void  check_json(const char *text, bool lines);
/* The last line of a text, inside it. */
const char *last_line(char *text);
/* Number behind "key": in a line of JSON; fails if there is none. */
double json_number(const char *text, const char *key);

#endif
