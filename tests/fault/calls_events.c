/*
 * calls_events.c - writers of event files while memory runs out.
 *
 * An event that found no memory is left out as a whole; the one written afterwards is there, and the file has nothing else.
 */
#include "fault.h"

#include <unistd.h>

static char folder[64];
static yk_summary_writer *w;
static yk_tensor *numbers, *picture;
static yk_graph *g;
static yk_session *s;

static char tag[512];                               /* longer than what the buffers of a writer that has just begun have room for */

static void make(void) {
  w = NULL;
  memset(tag, 'a', sizeof tag - 1);
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
}

static void open_writer(void) {
  make();
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3), (const float[]){ -1, 0, 5 }, &numbers));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2, 20, 20, 3), &picture));
  CHECK_OK(yk_graph_new(&g));
  (void)yk_get_variable(g, "v", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL);
  CHECK_OK(yk_session_open(g, NULL, &s));
  CHECK_OK(yk_summary_writer_open(folder, NULL, &w));
}

static void close_folder(void) {
  char path[256];
  snprintf(path, sizeof path, "%s", yk_summary_path(w));
  CHECK_OK(yk_summary_close(w));
  CHECK_INT(unlink(path), 0);
  CHECK_INT(rmdir(folder), 0);                       /* nothing of a writer that was not opened is left */
}

static void close_all(void) {
  close_folder();
  yk_session_close(s);
  yk_graph_free(g);
  yk_tensor_free(numbers);
  yk_tensor_free(picture);
}

static yk_code writer_open(void) { return yk_summary_writer_open(folder, NULL, &w); }
static void no_writer(void) { assert_null(w); }
static yk_code scalar(void) { return yk_summary_scalar(w, tag, 1, 2); }
static yk_code histogram(void) { return yk_summary_histogram(w, tag, 1, numbers); }
static yk_code image(void) { return yk_summary_image(w, tag, 1, picture, 0); }
static yk_code text(void) { return yk_summary_text(w, tag, 1, "a text"); }
static yk_code graph(void) { return yk_summary_graph(w, g, s); }

/* One event more than the greeting, and whole: what the file has is what the call that worked has added. */
static void one_event(void) {
  char path[256];
  CHECK_OK(yk_summary_flush(w));
  snprintf(path, sizeof path, "%s", yk_summary_path(w));
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  int count = 0;
  for (uint8_t head[12]; fread(head, 1, sizeof head, f) == sizeof head; count++) {
    long n = (long)head[0] | (long)head[1] << 8 | (long)head[2] << 16;
    CHECK_INT(fseek(f, n + 4, SEEK_CUR), 0);
  }
  fclose(f);
  CHECK_INT(count, 2);
}

const fault_case fault_events[] = {
  { .names = "yk_summary_writer_open", .open = make, .call = writer_open, .intact = no_writer, .close = close_folder, .least = 5 },
  { .names = "yk_summary_scalar", .open = open_writer, .call = scalar, .good = one_event, .close = close_all, .least = 1 },
  { .names = "yk_summary_histogram", .open = open_writer, .call = histogram, .good = one_event, .close = close_all, .least = 2 },
  { .names = "yk_summary_image", .open = open_writer, .call = image, .good = one_event, .close = close_all, .least = 3 },
  { .names = "yk_summary_text", .open = open_writer, .call = text, .good = one_event, .close = close_all, .least = 1 },
  { .names = "yk_summary_graph", .open = open_writer, .call = graph, .good = one_event, .close = close_all, .least = 3 },
  { 0 },
};
