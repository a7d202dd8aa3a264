/*
 * summary.h - the inside of a writer of event files, for the kinds of events. Public half: <yoke/summary.h>.
 *
 * An event is built under the writer's lock, in its buffer, as a message of protocol buffers, and becomes a record when it is whole.
 */
#ifndef YK_STORE_SUMMARY_H
#define YK_STORE_SUMMARY_H

#include <yoke/summary.h>
#include "base/proto.h"

/* Field numbers of Event, Summary and Summary.Value. */
enum { YK__EVENT_GRAPH = 4, YK__EVENT_SUMMARY = 5, YK__SUMMARY_VALUE = 1, YK__VALUE_TAG = 1 };

/* Is `tag` one, and `w` a writer? EINVAL naming the function. */
yk_code yk__summary_check(const yk_summary_writer *w, const char *function, const char *tag) YK_CHECKED;
/* Lock the writer and begin an event; *event is where its fields go. After a failure nothing is locked. */
yk_code yk__summary_begin(yk_summary_writer *w, int64_t step, yk_str **event) YK_CHECKED;
/* Make it a record, write if it is time, unlock. */
yk_code yk__summary_end(yk_summary_writer *w) YK_CHECKED;

/* One picture as PNG, u8 [height, width, channels], each at least 1, at most 4 channels but not 2; appended to `out`. */
void yk__png_put(yk_str *out, const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels);

#endif
