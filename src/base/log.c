/*
 * log.c - where lines of the library go.
 *
 * A line is put together on the stack and written at once, so that lines of two
 * threads do not mix. The sink is called under the lock of this file: it sees
 * one line at a time, and must not log itself.
 */
#include "base/log.h"
#include "base/param.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*the_sink)(int level, const char *line, void *arg);
static void *the_arg;

void yk__log_sink(void (*sink)(int level, const char *line, void *arg), void *arg) {
  pthread_mutex_lock(&lock);
  the_sink = sink;
  the_arg = arg;
  pthread_mutex_unlock(&lock);
}

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void yk__log(int level, const char *file, int line, const char *fmt, ...) {
  static const char *const prefix[] = { "error: ", "warning: ", "", "", "" };
  char text[4608];
  va_list ap;
  int n;
  if (level < YK_LOG_ERROR) level = YK_LOG_ERROR;
  if (level > YK_LOG_DEBUG) level = YK_LOG_DEBUG;
  if (level > yk__param_int("verbose")) return;
  n = snprintf(text, sizeof text, "yoke: %s", prefix[level]);
  if (level == YK_LOG_DEBUG) n = snprintf(text, sizeof text, "yoke: %.100s:%d: ", file_name(file), line);
  va_start(ap, fmt);
  vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, ap);
  va_end(ap);
  pthread_mutex_lock(&lock);
  if (the_sink) {
    the_sink(level, text, the_arg);
  } else {
    size_t len = strlen(text);
    text[len] = '\n';
    fwrite(text, 1, len + 1, stderr);
  }
  pthread_mutex_unlock(&lock);
}
