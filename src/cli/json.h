/*
 * json.h - a small JSON writer over the growing string.
 *
 * Commas and escapes are its business, nesting is the caller's: every open has its
 * close. Numbers that are not finite become null, since JSON has no others.
 */
#ifndef YK_CLI_JSON_H
#define YK_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yoke/session.h>
#include "base/str.h"

typedef struct yk_json { yk_str text; bool comma, flat; } yk_json;   /* {0} = empty; flat: all in one line */

/* key NULL: an element of an array, or the outermost value. kind: '{' or '['; to close: '}' or ']'. */
void yk__json_open(yk_json *j, const char *key, char kind);
void yk__json_close(yk_json *j, char kind);
void yk__json_text(yk_json *j, const char *key, const char *value);     /* value NULL: null */
void yk__json_int(yk_json *j, const char *key, int64_t value);
void yk__json_real(yk_json *j, const char *key, double value);
void yk__json_bool(yk_json *j, const char *key, bool value);
/* The fields of a device's memory, into the object that is open. */
void yk__json_memory(yk_json *j, const yk_device_memory *m);
/* What every command tells of its job: model, devices, batch, precision. */
struct yk_job;
void yk__json_job(yk_json *o, const struct yk_job *j);
/* Put a line break before the next element; only looks. */
void yk__json_break(yk_json *j);
/* Write all as one line to each file that is not NULL, and start anew. False after a failure (memory, write). */
bool yk__json_flush(yk_json *j, FILE *a, FILE *b);

#endif
