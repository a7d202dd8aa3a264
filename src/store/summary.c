/*
 * summary.c - the writer of event files: names, buffers, locks, and the simple kinds of events.
 *
 * Every record is appended to a buffer first, and the buffer to the file in one call, so a file ends between two records unless the
 * system fails within that call. Running out of memory loses the event that was being built and nothing else.
 */
#include "store/summary.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/frame.h"
#include "base/thread.h"
#include "store/disk.h"
#include "store/histogram.h"

enum { FULL = 1 << 18, DEFAULT_FLUSH = 120, MOST_NAMES = 1000 };
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { VALUE_SIMPLE = 2, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8, VALUE_METADATA = 9 };

struct yk_summary_writer {
  yk_mutex lock;
  yk_summary_options o;
  char *path;
  int fd;
  bool broken;                     /* a write failed: no more of them */
  yk_str event, pending;           /* what is being built; records that are not in the file yet */
  uint64_t flushed_ns;
};

static double wall_time(const yk_summary_writer *w) {
  struct timespec t;
  if (w->o.wall_time != 0) return w->o.wall_time;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)(t.tv_nsec / 1000) * 1e-6;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Readers refuse a whole event over one byte that is not. */
static yk_code check_utf8(const char *function, const char *what, const char *s) {
  for (size_t n = strlen(s), i = 0, k; i < n; i += k)
    if ((k = yk__utf8(s + i)) == 0) return YK_FAIL(EINVAL, "%s: byte %zu of the %s is not UTF-8", function, i, what);
  return YK_OK;
}

yk_code yk__summary_check(const yk_summary_writer *w, const char *function, const char *tag) {
  if (w == NULL || tag == NULL) return YK_FAIL(EINVAL, "%s: NULL %s", function, w == NULL ? "writer" : "tag");
  if (tag[0] == '\0') return YK_FAIL(EINVAL, "%s: the tag is empty", function);
  return check_utf8(function, "tag", tag);
}

static yk_code flush(yk_summary_writer *w) {
  w->flushed_ns = yk__now_ns();
  if (w->broken) return YK_FAIL(EIO, "'%s' is closed: an earlier write failed", w->path);
  if (w->pending.n == 0) return YK_OK;
  yk_code rc = yk__disk_append(w->fd, w->path, w->pending.s, w->pending.n);
  w->broken = rc != YK_OK;
  w->pending.n = 0;
  return rc;
}

yk_code yk__summary_begin(yk_summary_writer *w, int64_t step, yk_str **event) {
  yk__mutex_lock(&w->lock);
  if (w->broken) {
    yk__mutex_unlock(&w->lock);
    return YK_FAIL(EIO, "'%s' is closed: an earlier write failed", w->path);
  }
  w->event.n = 0;
  yk__proto_double(&w->event, EVENT_TIME, wall_time(w));
  if (step != 0) yk__proto_int(&w->event, EVENT_STEP, step);
  *event = &w->event;
  return YK_OK;
}

static yk_code add_record(yk_summary_writer *w) {
  size_t before = w->pending.n;
  if (!w->event.failed) yk__frame_put(&w->pending, w->event.s, w->event.n);
  if (w->event.failed || w->pending.failed) {
    yk__str_free(&w->event);
    w->pending.failed = 0;
    w->pending.n = before;
    return YK_FAIL(ENOMEM, "'%s': no memory for an event", w->path);
  }
  if (w->pending.n < FULL && (double)(yk__now_ns() - w->flushed_ns) * 1e-9 < w->o.flush_seconds) return YK_OK;
  return flush(w);
}

yk_code yk__summary_end(yk_summary_writer *w) {
  yk_code rc = add_record(w);
  yk__mutex_unlock(&w->lock);
  return rc;
}

yk_code yk_summary_scalar(yk_summary_writer *w, const char *tag, int64_t step, double value) {
  yk_str *e;
  YK_TRY(yk__summary_check(w, "yk_summary_scalar", tag));
  YK_TRY(yk__summary_begin(w, step, &e));
  size_t summary = yk__proto_begin(e, YK__EVENT_SUMMARY), v = yk__proto_begin(e, YK__SUMMARY_VALUE);
  yk__proto_text(e, YK__VALUE_TAG, tag);
  yk__proto_float(e, VALUE_SIMPLE, (float)value);
  yk__proto_end(e, v);
  yk__proto_end(e, summary);
  return yk__summary_end(w);
}

yk_code yk_summary_histogram(yk_summary_writer *w, const char *tag, int64_t step, const yk_tensor *values) {
  yk_histogram h;
  yk_str *e;
  YK_TRY(yk__summary_check(w, "yk_summary_histogram", tag));
  if (values == NULL) return YK_FAIL(EINVAL, "yk_summary_histogram: '%s': NULL tensor", tag);
  int64_t odd = yk__histogram_fill(&h, values);
  if (odd >= 0)
    return YK_FAIL(EINVAL, "yk_summary_histogram: '%s': element %" PRId64 " is %g; a histogram takes finite numbers", tag, odd,
                   yk_tensor_at(values, odd));
  YK_TRY(yk__summary_begin(w, step, &e));
  size_t summary = yk__proto_begin(e, YK__EVENT_SUMMARY), v = yk__proto_begin(e, YK__SUMMARY_VALUE);
  yk__proto_text(e, YK__VALUE_TAG, tag);
  size_t histogram = yk__proto_begin(e, VALUE_HISTOGRAM);
  yk__histogram_put(&h, e);
  yk__proto_end(e, histogram);
  yk__proto_end(e, v);
  yk__proto_end(e, summary);
  return yk__summary_end(w);
}

/* A tensor of one string, and the name of the plugin that shows it. */
yk_code yk_summary_text(yk_summary_writer *w, const char *tag, int64_t step, const char *text) {
  enum { DTYPE = 1, SHAPE = 2, STRINGS = 8, DTYPE_STRING = 7, PLUGIN = 1, PLUGIN_NAME = 1 };
  yk_str *e;
  YK_TRY(yk__summary_check(w, "yk_summary_text", tag));
  if (text == NULL) return YK_FAIL(EINVAL, "yk_summary_text: '%s': NULL text", tag);
  YK_TRY(check_utf8("yk_summary_text", "text", text));
  YK_TRY(yk__summary_begin(w, step, &e));
  size_t summary = yk__proto_begin(e, YK__EVENT_SUMMARY), v = yk__proto_begin(e, YK__SUMMARY_VALUE);
  yk__proto_text(e, YK__VALUE_TAG, tag);
  size_t tensor = yk__proto_begin(e, VALUE_TENSOR);
  yk__proto_int(e, DTYPE, DTYPE_STRING);
  yk__proto_end(e, yk__proto_begin(e, SHAPE));
  yk__proto_text(e, STRINGS, text);
  yk__proto_end(e, tensor);
  size_t metadata = yk__proto_begin(e, VALUE_METADATA), plugin = yk__proto_begin(e, PLUGIN);
  yk__proto_text(e, PLUGIN_NAME, "text");
  yk__proto_end(e, plugin);
  yk__proto_end(e, metadata);
  yk__proto_end(e, v);
  yk__proto_end(e, summary);
  return yk__summary_end(w);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static yk_code check_options(const yk_summary_options *given, yk_summary_options *out) {
  *out = (yk_summary_options)YK_SUMMARY_OPTIONS_INIT;
  if (given == NULL || given->size == 0 || given->size > sizeof *out) {
    if (given != NULL) return YK_FAIL(EINVAL, "yk_summary_writer_open: options of %u bytes; begin with YK_SUMMARY_OPTIONS_INIT", given->size);
  } else {
    memcpy(out, given, given->size);
  }
  if (!(out->flush_seconds >= 0)) return YK_FAIL(EINVAL, "yk_summary_writer_open: flush_seconds is %g, expected 0 or more", out->flush_seconds);
  if (!(out->wall_time >= 0 && out->wall_time < 1e11))
    return YK_FAIL(EINVAL, "yk_summary_writer_open: wall_time is %g, expected seconds since 1970", out->wall_time);
  if (out->suffix != NULL && strchr(out->suffix, '/') != NULL)
    return YK_FAIL(EINVAL, "yk_summary_writer_open: the suffix '%s' has a '/'", out->suffix);
  if (out->flush_seconds == 0) out->flush_seconds = DEFAULT_FLUSH;
  return YK_OK;
}

/* A name that nobody has: two runs may begin in the same second. */
static yk_code create(yk_summary_writer *w, const char *folder) {
  char host[256] = "localhost";
  yk_code rc = YK_EBUSY;
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') snprintf(host, sizeof host, "localhost");
  for (int k = 0; k < MOST_NAMES && rc == YK_EBUSY; k++) {
    yk_str name = { 0 };
    yk__free(w->path);
    w->path = NULL;
    yk__str_add(&name, "%s/events.out.tfevents.%010lld.%s", folder, (long long)wall_time(w), host);
    if (k > 0) yk__str_add(&name, ".%d", k);
    if (w->o.suffix != NULL) yk__str_add(&name, "%s", w->o.suffix);
    YK_TRY(yk__str_take(&name, &w->path));
    rc = yk__disk_create(w->path, &w->fd);
  }
  if (rc == YK_OK) yk_error_clear();                 /* of a name that was taken */
  return rc;
}

/* What every file begins with. A restart has a step of its own, from which on readers forget. */
static yk_code greet(yk_summary_writer *w) {
  yk_str *e;
  YK_TRY(yk__summary_begin(w, w->o.restart ? w->o.step : 0, &e));
  yk__proto_text(e, EVENT_VERSION, "brain.Event:2");
  YK_TRY(yk__summary_end(w));
  if (w->o.restart) {
    YK_TRY(yk__summary_begin(w, w->o.step, &e));
    size_t log = yk__proto_begin(e, EVENT_SESSION);
    yk__proto_int(e, SESSION_STATUS, SESSION_START);
    yk__proto_end(e, log);
    YK_TRY(yk__summary_end(w));
  }
  return yk_summary_flush(w);
}

static void release(yk_summary_writer *w) {
  yk__mutex_free(&w->lock);
  yk__str_free(&w->event);
  yk__str_free(&w->pending);
  yk__free(w->path);
  yk__free(w);
}

/* Nothing is left of a writer that could not be opened. */
static void abandon(yk_summary_writer *w) {
  if (w->fd >= 0) {
    close(w->fd);
    unlink(w->path);
  }
  release(w);
}

yk_code yk_summary_writer_open(const char *folder, const yk_summary_options *options, yk_summary_writer **out) {
  yk_summary_options o;
  if (folder == NULL || folder[0] == '\0' || out == NULL)
    return YK_FAIL(EINVAL, "yk_summary_writer_open: no folder, or nowhere to put the writer");
  YK_TRY(check_options(options, &o));
  YK_TRY(yk__disk_folders(folder));
  yk_summary_writer *w = yk__calloc(1, sizeof *w);
  if (w == NULL) return YK_ENOMEM;
  w->o = o;
  w->fd = -1;
  w->flushed_ns = yk__now_ns();
  yk__mutex_init(&w->lock);
  yk_code rc = create(w, folder);
  w->o.suffix = NULL;                                /* the caller's */
  if (rc == YK_OK) rc = greet(w);
  if (rc == YK_OK) *out = w;
  else abandon(w);
  return rc;
}

const char *yk_summary_path(const yk_summary_writer *w) {
  return w != NULL ? w->path : NULL;
}

yk_code yk_summary_flush(yk_summary_writer *w) {
  if (w == NULL) return YK_FAIL(EINVAL, "yk_summary_flush: NULL writer");
  yk__mutex_lock(&w->lock);
  yk_code rc = flush(w);
  yk__mutex_unlock(&w->lock);
  return rc;
}

yk_code yk_summary_close(yk_summary_writer *w) {
  if (w == NULL) return YK_OK;
  yk_code rc = flush(w);
  if (rc == YK_OK) rc = yk__disk_finish(w->fd, w->path);
  else close(w->fd);
  release(w);
  return rc;
}
