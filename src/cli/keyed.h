/*
 * keyed.h - what is written NAME[:key=value,...] on the command line: optimizers, schedules, networks.
 *
 * Names, keys and their meaning are two tables; the parser, the error messages and the help read the same lines.
 */
#ifndef YK_CLI_KEYED_H
#define YK_CLI_KEYED_H

#include "cli/cli.h"

enum { YK__KEY_TEXT_BYTES = 512 };
typedef enum yk_key_kind {
  YK__KEY_REAL,                      /* double */
  YK__KEY_WHOLE,                     /* int64_t of 0 or more */
  YK__KEY_FLAG,                      /* bool: 0 or 1 */
  YK__KEY_WHOLES, YK__KEY_REALS,     /* yk_recipe_list: numbers between slashes */
  YK__KEY_TEXT                       /* char[YK__KEY_TEXT_BYTES] */
} yk_key_kind;
typedef struct yk_keyed_name { const char *name, *doc; } yk_keyed_name;
typedef struct yk_key {
  const char *name, *doc;
  yk_key_kind kind;
  size_t offset;
  uint32_t of;                       /* bit i: name number i has it */
} yk_key;
typedef struct yk_keyed {
  const char *option, *what;         /* "--optimizer", "optimizer" */
  const yk_keyed_name *names; size_t n;
  const yk_key *keys;                /* ends with {0} */
} yk_keyed;

/* Number of the name that `text` begins with. 0, or an exit status with the error printed. */
int yk__keyed_find(const yk_keyed *l, const char *text, int *out);
/* What is behind the name, if anything is, into the fields of target. 0, or an exit status with the error printed. */
int yk__keyed_set(const yk_keyed *l, int which, const char *text, void *target);
/* A line for each name with its keys, for --help. */
void yk__keyed_help(const yk_keyed *l);

#endif
