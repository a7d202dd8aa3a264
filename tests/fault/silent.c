/*
 * silent.c - the functions that cannot fail, called: they take no memory, so no allocation can fail in them.
 *
 * Those that give back are only named: every case ends with them, with and without memory.
 */
#include "fault.h"

#include <unistd.h>
#include <yoke/half.h>

const char *const fault_freeing[] = {
  "yk_dataset_free", "yk_free", "yk_graph_free", "yk_queue_close", "yk_session_close", "yk_step_free", "yk_tensor_free",
  "yk_record_reader_close", "yk_record_writer_close", "yk_record_writer_drop", "yk_checkpoint_close", "yk_saver_close",
  "yk_summary_close", "yk_hook_free", "yk_monitored_close", "yk_monitored_team_free", "yk_tensor_queue_free", "yk_coordinator_free",
      "yk_accumulator_free", "yk_sync_worker_leave",
  "yk_sync_replicas_free", "yk_keras_free", "yk_history_free", "yk_callback_free", "yk_detection_score_free", NULL,
};

const char *const fault_silent[] = {
  /* status.h, tensor.h, half.h */
  "yk_code_name", "yk_code_text", "yk_error_message", "yk_error_clear", "yk_version", "yk_dtype_bytes", "yk_dtype_name",
    "yk_dtype_parse",
  "yk_tensor_ref", "yk_tensor_desc", "yk_tensor_data", "yk_tensor_count", "yk_tensor_bytes", "yk_tensor_at", "yk_bf16_to_f32",
  "yk_f32_to_bf16", "yk_f16_to_f32", "yk_f32_to_f16",
  /* graph.h, op.h */
  "yk_graph_status", "yk_graph_fail_at", "yk_graph_set_seed", "yk_graph_unfreeze", "yk_graph_frozen", "yk_value_desc",
    "yk_value_name", "yk_value_op",
  "yk_value_device", "yk_output", "yk_name_scope", "yk_read", "yk_initializer_op", "yk_initial_value", "yk_variable_name",
  "yk_variable_desc", "yk_variable_device", "yk_variable_where", "yk_variable_trainable", "yk_variable_count", "yk_variable_get",
  "yk_variable_of", "yk_variable_master", "yk_get_variable_scope", "yk_variable_scope_name", "yk_variable_scope_name_scope", "yk_reuse_variables",
  "yk_get_collection", "yk_guard", "yk_replica_bytes", "yk_op_find", "yk_op_all", "yk_moving_average_of",
    "yk_gradient_rows",
  /* data.h, model.h, session.h */
  "yk_dataset_size", "yk_dataset_classes", "yk_dataset_name", "yk_dataset_class_name", "yk_dataset_shape", "yk_dataset_image",
  "yk_dataset_label", "yk_dataset_components", "yk_dataset_component_name", "yk_dataset_component", "yk_dataset_skipped",
  "yk_augment_image", "yk_queue_source", "yk_queue_taken", "yk_queue_take", "yk_queue_position", "yk_queue_seek", "yk_record_write",
  "yk_model_find", "yk_model_at", "yk_strategy_name", "yk_replica_share",
    "yk_session_options_of",
  "yk_session_device_count", "yk_session_device", "yk_session_device_memory",
  /* checkpoint.h */
  "yk_saver_check", "yk_saver_poll", "yk_saver_wait", "yk_checkpoint_path", "yk_checkpoint_step", "yk_checkpoint_note",
  "yk_checkpoint_count", "yk_checkpoint_name", "yk_checkpoint_desc",
  /* summary.h */
  "yk_summary_path", "yk_summary_flush",
  /* monitored.h */
  "yk_monitored_should_stop", "yk_monitored_request_stop", "yk_monitored_session",
  /* queue.h */
  "yk_tensor_queue_close", "yk_tensor_queue_size", "yk_tensor_queue_closed", "yk_tensor_queue_set_timeout", "yk_tensor_queue_source",
  "yk_coordinator_request_stop", "yk_coordinator_should_stop", "yk_coordinator_wait_for_stop", "yk_coordinator_join",
  /* sync.h */
  "yk_accumulator_apply", "yk_accumulator_apply_rows", "yk_accumulator_take", "yk_accumulator_set_global_step",
  "yk_accumulator_global_step", "yk_accumulator_count", "yk_accumulator_dropped", "yk_accumulator_cancel", "yk_sync_replicas_stop",
  "yk_sync_replicas_end", "yk_sync_replicas_report", "yk_sync_replicas_worker",
  /* layers.h, network.h */
  "yk_keras_status", "yk_layer_name", "yk_layer_class_name", "yk_sym_output", "yk_sym_desc", "yk_network_layer", "yk_network_layer_at",
  "yk_network_inputs", "yk_network_outputs", "yk_network_parameters", "yk_network_set_keras", "yk_network_variables",
  /* data.h, detect.h */
  "yk_scenes_draw", "yk_box_targets", "yk_detection_recall", "yk_average_precision",
  /* fit.h, callbacks.h: called by calls_fit.c, where there is a fit under way */
  "yk_network_metric_name", "yk_history_epochs", "yk_history_name", "yk_history_values", "yk_logs_count", "yk_logs_name", "yk_logs_at",
  "yk_logs_get", "yk_training_network", "yk_training_epochs", "yk_training_stop", "yk_training_print",
  NULL,
};

static volatile double seen;                       /* results are used */
static void see(const void *p) { seen += p != NULL; }
static void number(double x) { seen += x; }

static void call_values(yk_tensor *t) {
  see(yk_code_name(YK_EIO));
  see(yk_code_text(YK_EIO));
  see(yk_error_message());
  yk_error_clear();
  see(yk_version());
  number((double)yk_dtype_bytes(YK_F32));
  see(yk_dtype_name(YK_F32));
  number(yk_dtype_parse("bf16"));
  see(yk_tensor_ref(t));
  yk_tensor_free(t);
  see(yk_tensor_desc(t));
  see(yk_tensor_data(t));
  number((double)yk_tensor_count(t));
  number((double)yk_tensor_bytes(t));
  number(yk_tensor_at(t, 0) + yk_bf16_to_f32(yk_f32_to_bf16(1)) + yk_f16_to_f32(yk_f32_to_f16(1)));
}

static void call_keras(yk_keras *k, yk_network *n) {
  yk_layer *l = yk_network_layer_at(n, 0);
  yk_sym s = { l, 0, 0 };
  int64_t all;
  number(yk_keras_status(k));
  see(yk_layer_name(l));
  see(yk_layer_class_name(l));
  see(yk_sym_output(s, 0).layer);
  see(yk_sym_desc(s));
  see(yk_network_layer(n));
  see(yk_network_inputs(n, NULL));
  see(yk_network_outputs(n, NULL));
  yk_network_parameters(n, &all, NULL);
  number((double)all + (int)yk_network_set_keras(n, 2) + (double)yk_network_variables(n, NULL, 0));
}

static void call_detect(yk_tensor *const scene[3], yk_tensor *const targets[2], yk_detection_score *score) {
  number((int)yk_scenes_draw(1, 0, scene) + (int)yk_box_targets(scene[1], scene[1], scene[2], NULL, targets));
  number(isnan(yk_detection_recall(score, 0)) + isnan(yk_average_precision(score, -1)));    /* nothing was there */
}

static void call_graph(yk_graph *g, yk_variable *v) {
  yk_value r = yk_read(v);
  number(yk_graph_status(g));
  yk_graph_set_seed(g, 1);
  yk_graph_unfreeze(g);
  number(yk_graph_frozen(g));
  see(yk_value_desc(g, r));
  see(yk_value_name(g, r));
  see(yk_value_op(g, r));
  see(yk_value_device(g, r));
  number(yk_output(g, r, 0).id);
  see(yk_name_scope(g));
  number(yk_initializer_op(v).id + yk_initial_value(v).id);
  see(yk_variable_name(v));
  see(yk_variable_desc(v));
  see(yk_variable_device(v));
  see(yk_variable_where(v));
  number(yk_variable_trainable(v));
  see(yk_variable_master(v));
  number((double)yk_variable_count(g));
  see(yk_variable_get(g, 0));
  see(yk_variable_of(g, r));
  yk_variable_scope *scope = yk_get_variable_scope(g);
  see(yk_variable_scope_name(scope));
  see(yk_variable_scope_name_scope(scope));
  yk_reuse_variables(scope);
  number((double)yk_get_collection(g, YK_GLOBAL_VARIABLES, NULL, NULL, 0));
  see(yk_moving_average_of(g, v));
  number(yk_gradient_rows(g, r, NULL, NULL));
  number(yk_guard(g).id);
  number((double)yk_replica_bytes(NULL, 0));
  size_t n;
  see(yk_op_find("conv2d"));
  see(yk_op_all(&n));
}

static void call_data(const yk_dataset *d, yk_queue *q, yk_record_writer *w) {
  float picture[32 * 32 * 3];
  int32_t label;
  int64_t taken;
  const char *first;
  number((double)yk_dataset_size(d));
  number((double)yk_dataset_classes(d));
  see(yk_dataset_name(d));
  see(yk_dataset_class_name(d, 0));
  number(yk_dataset_shape(d).rank);
  see(yk_dataset_image(d, 0));
  number(yk_dataset_label(d, 0));
  CHECK_OK(yk_augment_image(YK_AUGMENT_PAD_CROP_FLIP, yk_dataset_image(d, 0), 32, 32, 3, 32, 1, 0, picture));
  number(yk_dataset_components(d));
  see(yk_dataset_component_name(d, 0));
  see(yk_dataset_component(d, 1));
  number((double)yk_dataset_skipped(d, &first));
  CHECK_OK(yk_queue_take(q, YK_TAKE_IN_EPOCH, 1, (void *const[]){ picture, &label }, &taken));
  number((double)yk_queue_position(q).example);
  CHECK_OK(yk_queue_seek(q, (yk_position){ 1, 2 }));
  CHECK_OK(yk_record_write(w, "abc", 3));
  see(yk_queue_source(q));
  number((double)yk_queue_taken(q));
  CHECK_OK(yk_queue_seek(q, yk_queue_position(q)));
  see(yk_model_find("mlp"));
  see(yk_model_at(0));
  see(yk_strategy_name(YK_STRATEGY_HOME));
  number((double)yk_replica_share(5, 2, 0));
}

static void call_session(const yk_session *s) {
  yk_device_info info;
  see(yk_session_options_of(s));
  number((double)yk_session_device_count(s));
  CHECK_OK(yk_session_device(s, 0, &info));
  CHECK_OK(yk_session_device_memory(s, 0, &(yk_device_memory)YK_DEVICE_MEMORY_INIT));
}

static void call_checkpoint(yk_saver *w, const yk_session *s, const yk_checkpoint *c) {
  CHECK_OK(yk_saver_check(w, s, 1));
  CHECK_OK(yk_saver_poll(w, NULL));
  CHECK_OK(yk_saver_wait(w, NULL));
  see(yk_checkpoint_path(c));
  number((double)yk_checkpoint_step(c));
  see(yk_checkpoint_note(c, "key"));
  number((double)yk_checkpoint_count(c));
  see(yk_checkpoint_name(c, 0));
  see(yk_checkpoint_desc(c, "v"));
}

static void call_summary(yk_summary_writer *w) {
  see(yk_summary_path(w));
  CHECK_OK(yk_summary_flush(w));
}

static void call_queue(yk_tensor_queue *q, yk_coordinator *c) {
  CHECK_OK(yk_tensor_queue_set_timeout(q, 1000));
  number((double)yk_tensor_queue_size(q));
  number(yk_tensor_queue_closed(q));
  see(yk_tensor_queue_source(q));
  CHECK_OK(yk_tensor_queue_close(q, true));
  number(yk_coordinator_should_stop(c));
  number(yk_coordinator_wait_for_stop(c, 0));
  yk_coordinator_request_stop(c, YK_OK);
  CHECK_OK(yk_coordinator_join(c, 1000));
}

/* Rows are applied by tests/train; a sparse accumulator would have to be filled here for one call more. */
static void call_sync(yk_accumulator *a, yk_tensor *t, yk_sync_replicas *sync) {
  CHECK_OK(yk_accumulator_apply(a, t, 0, NULL));
  CHECK_OK(yk_accumulator_take(a, 1, t));
  yk_accumulator_set_global_step(a, 3);
  number((double)(yk_accumulator_global_step(a) + yk_accumulator_count(a) + yk_accumulator_dropped(a)));
  yk_accumulator_cancel(a);
  CHECK_OK(yk_sync_replicas_report(sync, &(yk_sync_report)YK_SYNC_REPORT_INIT));
  CHECK_OK(yk_sync_replicas_worker(sync, 0, &(yk_sync_worker_report)YK_SYNC_WORKER_REPORT_INIT));
  yk_sync_replicas_stop(sync);
  CHECK_OK(yk_sync_replicas_end(sync));
}

/* A checkpoint of the session, and the saver that made it. */
static void open_checkpoint(yk_session *s, yk_graph *g, char *folder, yk_saver **w, yk_checkpoint **c) {
  yk_value init = yk_global_variables_initializer(g);
  assert_non_null(mkdtemp(folder));
  CHECK_OK(yk_saver_open(folder, NULL, w));
  CHECK_OK(yk_session_run(s, 0, NULL, 0, NULL, 1, &init, NULL));
  CHECK_OK(yk_saver_save(*w, s, 1, 0, NULL));
  CHECK_OK(yk_checkpoint_latest(folder, c));
}

static void remove_folder(const char *folder) {
  static const char *const names[] = { "ckpt-1.safetensors", "checkpoint.json", "lock" };
  char path[128];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    CHECK_INT(unlink(path), 0);
  }
  CHECK_INT(rmdir(folder), 0);
}

static yk_monitored *open_monitored(yk_graph **g) {
  yk_monitored *m;
  CHECK_OK(yk_graph_new(g));
  yk_get_variable(*g, "v", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  CHECK_OK(yk_monitored_open(*g, NULL, &m));
  return m;
}

static void call_monitored(yk_monitored *m) {
  see(yk_monitored_session(m));
  number(yk_monitored_should_stop(m));
  yk_monitored_request_stop(m);
}

void fault_call_silent(void) {
  char folder[] = "/tmp/yoke-fault-XXXXXX";
  yk_saver *w;
  yk_summary_writer *events;
  yk_checkpoint *c;
  yk_graph *g;
  yk_session *s;
  yk_tensor *t;
  yk_dataset *d;
  yk_queue *q;
  yk_record_writer *records;
  yk_queue_options o = YK_QUEUE_OPTIONS_INIT;
  yk_tensor_queue_options to = { .size = sizeof to, .ncomponents = 1, .component = { { .dtype = YK_F32 } } };
  yk_accumulator_options ao = { .size = sizeof ao, .desc = { .dtype = YK_F32, .rank = 1, .dim = { 2 } } };
  yk_accumulator *accumulator;
  yk_sync_options so = YK_SYNC_OPTIONS_INIT;
  yk_sync_replicas *sync;
  yk_tensor_queue *tensors;
  CHECK_OK(yk_accumulator_open(&ao, &accumulator));
  yk_coordinator *coordinator;
  CHECK_OK(yk_tensor_queue_open(&to, &tensors));
  CHECK_OK(yk_coordinator_new(&coordinator));
  CHECK_OK(yk_graph_new(&g));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(2), &t));
  CHECK_OK(yk_dataset_shapes10(1, YK_TRAIN, 10, &d));
  CHECK_OK(yk_queue_open(d, &o, &q));
  CHECK_OK(yk_record_writer_open("/tmp/yoke-fault.tfrecord", &records));
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(2), YK_ZEROS, NULL);
  so.optimizer = YK_SGD(0.1);
  so.replicas_to_aggregate = 1;
  yk_value loss = yk_reduce_sum(g, yk_read(v), NULL);
  CHECK_OK(yk_sync_replicas_build(g, &so, 1, &loss, &sync));
  CHECK_OK(yk_session_open(g, NULL, &s));
  open_checkpoint(s, g, folder, &w, &c);
  CHECK_OK(yk_summary_writer_open(folder, NULL, &events));
  CHECK_OK(yk_summary_scalar(events, "x", 1, 1));
  yk_graph *other;
  yk_monitored *m = open_monitored(&other);
  yk_keras *k;
  CHECK_OK(yk_keras_new(1, &k));
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(2) });
  yk_network *n = yk_network_new(k, NULL, 1, &in, 1, &in);
  CHECK_OK(yk_keras_status(k));
  yk_tensor *scene[3], *targets[2];
  yk_detection_score *score;
  CHECK_OK(yk_scenes_new(1, 32, 2, scene));
  CHECK_OK(yk_box_targets_new(1, 2, targets));
  CHECK_OK(yk_detection_score_new(YK_SCENE_CLASSES, 0, &score));
  uint64_t made = yk__alloc_count();
  yk__alloc_fail_from(1);
  call_values(t);
  call_keras(k, n);
  call_detect(scene, targets, score);
  call_graph(g, v);
  call_data(d, q, records);
  call_session(s);
  call_checkpoint(w, s, c);
  call_summary(events);
  call_monitored(m);
  call_queue(tensors, coordinator);
  call_sync(accumulator, t, sync);
  yk_graph_fail_at(YK_HERE, g, YK_EIO, "a failure is kept without memory");
  assert_non_null(strstr(yk_error_message(), "a failure is kept without memory"));
  CHECK_CODE(yk_graph_status(g), YK_EIO, "a failure is kept without memory");
  CHECK_INT(yk__alloc_fail_at(0), 0);
  CHECK_INT(yk__alloc_count(), made);
  assert_true(seen > 0);
  CHECK_OK(yk_monitored_close(m));
  yk_graph_free(other);
  yk_keras_free(k);
  yk_detection_score_free(score);
  for (int i = 0; i < 3; i++) yk_tensor_free(scene[i]);
  for (int i = 0; i < 2; i++) yk_tensor_free(targets[i]);
  CHECK_OK(yk_saver_close(w));
  yk_checkpoint_close(c);
  CHECK_INT(unlink(yk_summary_path(events)), 0);
  CHECK_OK(yk_summary_close(events));
  remove_folder(folder);
  yk_record_writer_drop(records);
  yk_queue_close(q);
  yk_sync_replicas_free(sync);
  yk_accumulator_free(accumulator);
  yk_tensor_queue_free(tensors);
  yk_coordinator_free(coordinator);
  yk_dataset_free(d);
  yk_session_close(s);
  yk_graph_free(g);
  yk_tensor_free(t);
}
