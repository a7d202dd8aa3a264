/*
 * log.h - one line to stderr, or to whoever asked for it.
 *
 * Levels: 0 error, 1 warning, 2 notice, 3 info, 4 debug. Shown up to YOKE_VERBOSE (default 2).
 */
#ifndef YK_BASE_LOG_H
#define YK_BASE_LOG_H

#include <yoke/status.h>

enum { YK_LOG_ERROR, YK_LOG_WARNING, YK_LOG_NOTICE, YK_LOG_INFO, YK_LOG_DEBUG };
void yk__log(int level, const char *file, int line, const char *fmt, ...) YK_PRINTF(4, 5);
#define YK_LOG(level, ...) yk__log(YK_LOG_##level, __FILE__, __LINE__, __VA_ARGS__)

/* Redirect lines (without newline) to `sink`; NULL goes back to stderr. Process-wide.
 * The sink is called by any thread, one at a time, and must not log. */
void yk__log_sink(void (*sink)(int level, const char *line, void *arg), void *arg);

#endif
