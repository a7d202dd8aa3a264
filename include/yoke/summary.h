/*
 * summary.h - event files that TensorBoard reads: curves, distributions, pictures, texts and the graph of a run.
 *
 * A writer adds records to one file of its own in a folder, and TensorBoard, given that folder or one above it, shows every folder
 * with such files as a run. Whatever happens to the process, the records that have left it are whole.
 */
#ifndef YK_SUMMARY_H
#define YK_SUMMARY_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the events of one run. Any thread, several at a time; records stand in the file in the order of the calls. */
typedef struct yk_summary_writer yk_summary_writer;

typedef struct yk_summary_options {
  uint32_t size;                   /* YK_SUMMARY_OPTIONS_INIT sets it */
  double   flush_seconds;          /* an event this long after the last flush brings another one; 0 = 120 */
  bool     restart;                /* a run that goes on: readers forget what earlier files tell of steps from `step` on */
  int64_t  step;
  const char *suffix;              /* ends the file's name; NULL = none */
  double   wall_time;              /* of all events and in the file's name, for files that are equal byte for byte; 0 = the clock */
} yk_summary_options;
#define YK_SUMMARY_OPTIONS_INIT { .size = sizeof(yk_summary_options) }

/* Make the folder, its parents too, and in it a file events.out.tfevents.SECONDS.HOST (with .1, .2, ... where that is taken).
 * options NULL = defaults. Errors: EINVAL (options), ENOMEM, EIO naming file and reason. *out: yk_summary_close(). */
yk_code yk_summary_writer_open(const char *folder, const yk_summary_options *options, yk_summary_writer **out) YK_CHECKED;
/* The file. Borrowed until the writer is closed. */
const char *yk_summary_path(const yk_summary_writer *w);

/*
 * Add an event. `tag` names the curve or whatever it is, groups separated by '/'; `step` is where it stands. Events gather in
 * memory and go to the file when they are many, after flush_seconds, or with yk_summary_flush().
 * Errors: EINVAL (tag empty or not UTF-8, what is said below), ENOMEM: the event is left out, the writer goes on; EIO naming file and
 * reason: the writer takes no more, and each later call says so.
 */
/* Any number, also one that is not finite; stored as f32. */
yk_code yk_summary_scalar(yk_summary_writer *w, const char *tag, int64_t step, double value) YK_CHECKED;
/* The distribution of a tensor's elements, of any dtype and shape: least, greatest, sums, and counts between 1549 limits that grow by a
 * tenth each. EINVAL if an element is not finite, naming tag and element. */
yk_code yk_summary_histogram(yk_summary_writer *w, const char *tag, int64_t step, const yk_tensor *values) YK_CHECKED;
/* The first pictures, at most `max` (0 = 3), of a tensor [N, height, width, channels] with 1 (grey), 3 (RGB) or 4 (RGBA) channels, u8,
 * or f32 scaled to fit: [0, greatest] to 0..255, or with negative values [-extreme, extreme] to 1..255; pixels that are not finite are
 * red. Tags are "tag/image/0" and so on, and "tag/image" if max is 1. */
yk_code yk_summary_image(yk_summary_writer *w, const char *tag, int64_t step, const yk_tensor *pictures, int64_t max) YK_CHECKED;
/* A text, UTF-8, shown as Markdown. */
yk_code yk_summary_text(yk_summary_writer *w, const char *tag, int64_t step, const char *text) YK_CHECKED;
/* The graph: nodes with operation, inputs, attributes, shapes of outputs and device. The device is where session `s` of this graph
 * placed the node, or what was asked for where s is NULL. EINVAL: a session of another graph. */
yk_code yk_summary_graph(yk_summary_writer *w, const yk_graph *g, yk_session *s) YK_CHECKED;

/* Give all events so far to the system. EIO as above. */
yk_code yk_summary_flush(yk_summary_writer *w) YK_CHECKED;
/* Flush, sync, close and free; NULL is fine. EIO if anything of it, or of an earlier call, failed to be written. */
yk_code yk_summary_close(yk_summary_writer *w) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
