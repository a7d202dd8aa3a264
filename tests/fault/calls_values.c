/*
 * calls_values.c - tensors, graphs, data sets and queues while memory runs out.
 *
 * One set of globals serves all cases: they run one after the other.
 */
#include "fault.h"

#include <sys/stat.h>
#include <unistd.h>

enum { RECORD = 3073 };

static yk_tensor *tensor;
static yk_graph *graph;
static yk_dataset *data, *pictures;
static yk_queue *queue;
static char *text;
static int released;
static char folder[64];
static float numbers[6] = { 1, 2, 3, 4, 5, 6 };

/* ---- tensors ---- */

static yk_code tensor_new(void) { return yk_tensor_new(YK_F32, YK_SHAPE(2, 3), &tensor); }
static yk_code tensor_from(void) { return yk_tensor_from(YK_F32, YK_SHAPE(2, 3), numbers, &tensor); }
static void release(void *p, void *arg) { *(int *)arg += p == numbers; }
static void tensor_open(void) { tensor = NULL; released = 0; }
static yk_code tensor_wrap(void) { return yk_tensor_wrap(YK_F32, YK_SHAPE(2, 3), numbers, release, &released, &tensor); }
static void no_tensor(void) { assert_null(tensor); CHECK_INT(released, 0); }
static void tensor_close(void) { yk_tensor_free(tensor); tensor = NULL; }
static void wrap_close(void) { tensor_close(); CHECK_INT(released, 1); }

/* ---- graphs ---- */

static yk_code graph_new(void) { return yk_graph_new(&graph); }
static void graph_none(void) { graph = NULL; text = NULL; }
static void no_graph(void) { assert_null(graph); }
static void graph_close(void) { yk_free(text); text = NULL; yk_graph_free(graph); graph = NULL; }

static void graph_open(void) {
  graph_none();
  CHECK_OK(yk_graph_new(&graph));
  YK_DEVICE(graph, "/gpu:1") { yk_relu(yk_named(graph, "r"), yk_placeholder(graph, "x", YK_F32, YK_SHAPE(-1, 3))); }
  yk_get_variable(graph, "v", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL);
  CHECK_OK(yk_graph_status(graph));
}
static yk_code graph_verify(void) { return yk_graph_verify(graph); }
static yk_code graph_dump(void) { return yk_graph_dump(graph, &text); }
static void no_text(void) { assert_null(text); CHECK_OK(yk_graph_status(graph)); }
static void good_text(void) { assert_non_null(strstr(text, "/device:GPU:1")); }

/* yk_find has no code of its own: {0} and the message. "r:0" needs the name cut at the colon. */
static yk_code graph_find(void) {
  yk_error_clear();
  if (yk_find(graph, "r:0").id) return YK_OK;
  return strstr(yk_error_message(), "memory") ? YK_ENOMEM : YK_ENOTFOUND;
}

static yk_code graph_named(void) {
  yk_graph *g = NULL;
  YK_TRY(yk_graph_new(&g));
  yk_value v = yk_no_op(yk_named(g, "mine"));
  const char *name = yk_value_name(g, v);
  if (name) assert_string_equal(name, "mine");     /* never another name for want of memory */
  yk_code rc = yk_graph_status(g);
  yk_graph_free(g);
  return rc;
}

/* ---- data ---- */

static void write_records(const char *name, int n) {
  static uint8_t record[RECORD];
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  for (int i = 0; i < n; i++) {
    record[0] = (uint8_t)(i % 10);
    CHECK_INT(fwrite(record, 1, RECORD, f), RECORD);
  }
  CHECK_INT(fclose(f), 0);
}

static void cifar_open(void) {
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
  write_records("data_batch_1.bin", 3);
  write_records("data_batch_4.bin", 2);
  data = NULL;
}
static yk_code cifar(void) { return yk_dataset_cifar10(folder, YK_TRAIN, &data); }
static void no_data(void) { assert_null(data); }
static void five(void) { CHECK_INT(yk_dataset_size(data), 5); }
static void data_close(void) { yk_dataset_free(data); data = NULL; }

static void cifar_close(void) {
  char path[128];
  data_close();
  for (int i = 1; i < 5; i += 3) {
    snprintf(path, sizeof path, "%s/data_batch_%d.bin", folder, i);
    CHECK_INT(unlink(path), 0);
  }
  CHECK_INT(rmdir(folder), 0);                     /* nothing else was left behind */
}

static yk_code shapes10(void) { return yk_dataset_shapes10(1, YK_TRAIN, 5, &data); }
static yk_code images(void) {
  static const uint8_t image[5 * 4], label[5];
  return yk_dataset_images(5, 2, 2, 1, image, label, 3, &data);
}

static void queue_open_case(void) {
  CHECK_OK(yk_dataset_shapes10(1, YK_TRAIN, 5, &pictures));
  queue = NULL;
}
static yk_code queue_open(void) {
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  o.threads = 3;
  o.capacity = 4;
  return yk_queue_open(pictures, &o, &queue);
}
static void no_queue(void) { assert_null(queue); }
static void queue_good(void) {                     /* its threads are there and work */
  static float image[7 * 32 * 32 * 3];
  int32_t label[7];
  const yk_source *s = yk_queue_source(queue);
  CHECK_OK(s->next(s->self, 7, (void *const[]){ image, label }));
}
static void queue_close(void) {
  yk_queue_close(queue);
  yk_dataset_free(pictures);
}

const fault_case fault_values[] = {
  { .names = "yk_tensor_new", .open = tensor_open, .call = tensor_new, .intact = no_tensor, .close = tensor_close, .least = 1 },
  { .names = "yk_tensor_from", .open = tensor_open, .call = tensor_from, .intact = no_tensor, .close = tensor_close, .least = 1 },
  { .names = "yk_tensor_wrap", .open = tensor_open, .call = tensor_wrap, .intact = no_tensor, .close = wrap_close, .least = 1 },
  { .names = "yk_graph_new", .open = graph_none, .call = graph_new, .intact = no_graph, .close = graph_close, .least = 4 },
  { .names = "yk_graph_verify", .open = graph_open, .call = graph_verify, .close = graph_close, .least = 1 },
  { .names = "yk_graph_dump", .open = graph_open, .call = graph_dump, .intact = no_text, .good = good_text, .close = graph_close,
    .least = 1 },
  { .names = "yk_find", .open = graph_open, .call = graph_find, .intact = no_text, .close = graph_close, .least = 1 },
  { .names = "yk_named", .call = graph_named, .least = 6 },
  { .names = "yk_dataset_cifar10", .open = cifar_open, .call = cifar, .intact = no_data, .good = five, .close = cifar_close,
    .least = 3 },
  { .names = "yk_dataset_shapes10", .call = shapes10, .intact = no_data, .good = five, .close = data_close, .least = 3 },
  { .names = "yk_dataset_images", .call = images, .intact = no_data, .good = five, .close = data_close, .least = 3 },
  { .names = "yk_queue_open", .open = queue_open_case, .call = queue_open, .intact = no_queue, .good = queue_good,
    .close = queue_close, .least = 5 },
  { 0 },
};
