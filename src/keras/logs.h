/*
 * logs.h - numbers by name, and lists of them over epochs. The public half is in <yoke/callbacks.h> and <yoke/fit.h>.
 */
#ifndef YK_KERAS_LOGS_H
#define YK_KERAS_LOGS_H

#include <yoke/callbacks.h>
#include "base/alloc.h"

enum { YK__LOG_NAME = 128 };
struct yk_logs { struct { char name[YK__LOG_NAME]; double value; } *at; uint32_t n, cap; };
void yk__logs_clear(yk_logs *l);
void yk__logs_free(yk_logs *l);

struct yk_history { struct { char name[YK__LOG_NAME]; double *value; } *list; uint32_t n, cap; size_t epochs, room; };
/* One more epoch. */
yk_code yk__history_add(yk_history *h, const yk_logs *l) YK_CHECKED;

#endif
