/*
 * Callbacks: what they do when the numbers they watch go a way that is laid down by the test, and the files they write.
 */
#include "support/check.h"
#include <unistd.h>
#include <yoke/yoke.h>
#include "keras/h5.h"

static char folder[] = "/tmp/yoke-callbacks-XXXXXX";

static char *in_folder(const char *name) {
  static char path[4][256];
  static int next;
  char *p = path[next++ % 4];
  snprintf(p, 256, "%s/%s", folder, name);
  return p;
}

/* ---- a network with two outputs, and examples for it ------------------------------------------------------------------------------ */

typedef struct rig { yk_keras *k; yk_network *n; yk_layer *head; yk_tensor *x, *y[2]; yk_examples e; } rig;

static void open_rig(rig *r, uint32_t devices) {
  static const char *const device[] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3" };
  yk_session_options o = YK_SESSION_OPTIONS_INIT;
  yk_network_options place = YK_NETWORK_OPTIONS_INIT;
  yk_compile_options compile = YK_COMPILE_OPTIONS_INIT;
  yk_optimizer sgd = YK_KERAS_SGD(0.1, 0);
  CHECK_OK(yk_keras_new(1, &r->k));
  yk_sym in = yk_input(r->k, &(yk_input_config){ .name = "in", .shape = YK_SHAPE(3) }), out[2];
  yk_sym x = yk_apply(yk_layer_dense(r->k, &(yk_dense_config){ .name = "body", .units = 4, .activation = "tanh" }), in);
  r->head = yk_layer_dense(r->k, &(yk_dense_config){ .name = "main_output", .units = 3, .activation = "softmax" });
  out[0] = yk_apply(r->head, x);
  out[1] = yk_apply(yk_layer_dense(r->k, &(yk_dense_config){ .name = "aux_output", .units = 1 }), x);
  r->n = yk_network_new(r->k, "two", 1, &in, 2, out);
  CHECK_OK(yk_keras_status(r->k));
  o.virtual_gpus = (int32_t)devices;
  place.ndevices = devices;
  place.devices = device;
  place.session = &o;
  CHECK_OK(yk_network_place(r->n, &place));
  compile.optimizer = &sgd;
  compile.nlosses = 2;
  compile.losses = (const yk_loss[]){ { .output = "main_output", .name = "sparse_categorical_crossentropy" },
                                      { .output = "aux_output", .name = "mse", .weight = 0.5 } };
  compile.nmetrics = 1;
  compile.metrics = &(yk_metric){ .output = "main_output", .name = "acc" };
  CHECK_OK(yk_network_compile(r->n, &compile));
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(10, 3), &r->x));
  CHECK_OK(yk_tensor_new(YK_U8, YK_SHAPE(10, 1), &r->y[0]));         /* cast, and with a dimension of 1 too many */
  CHECK_OK(yk_tensor_new(YK_F64, YK_SHAPE(10), &r->y[1]));           /* cast, and with one too few */
  for (int i = 0; i < 30; i++) ((float *)yk_tensor_data(r->x))[i] = (float)(i * 7 % 11) / 11 - 0.5f;
  for (int i = 0; i < 10; i++) {
    ((uint8_t *)yk_tensor_data(r->y[0]))[i] = (uint8_t)(i % 3);
    ((double *)yk_tensor_data(r->y[1]))[i] = i % 2;
  }
  r->e = (yk_examples){ .x = (const yk_tensor *const *)&r->x, .y = (const yk_tensor *const *)r->y };
}

static void close_rig(rig *r) {
  yk_tensor_free(r->x);
  yk_tensor_free(r->y[0]);
  yk_tensor_free(r->y[1]);
  yk_keras_free(r->k);
}

/* ---- numbers laid down -------------------------------------------------------------------------------------------------------------- */

typedef struct script { yk_callback self; const char *name; const double *value; char said[4096]; int64_t ended; } script;

static yk_code put(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  script *s = (script *)c;
  (void)t;
  s->ended = epoch;
  return yk_logs_set(logs, s->name, s->value[epoch]);
}

static void hear(const char *text, void *arg) {
  script *s = arg;
  size_t n = strlen(s->said);
  snprintf(s->said + n, sizeof s->said - n, "%s", text);
}

/* A fit whose logs say `value` under `name` before c sees them. */
static yk_code scripted(rig *r, script *s, const char *name, const double *value, int64_t epochs, yk_callback *c,
                        yk_history **h) {
  *s = (script){ .self = { .on_epoch_end = put }, .name = name, .value = value };
  yk_callback *list[2] = { &s->self, c };
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  o.epochs = epochs;
  o.verbose = 0;
  o.ncallbacks = 2;
  o.callbacks = list;
  o.print = hear;
  o.print_arg = s;
  return yk_network_fit(r->n, &r->e, &o, h);
}

static void test_early_stopping(void **state) {
  static const double down[] = { 5, 4, 4.5, 3.95, 4, 4.1, 4, 1 }, up[] = { 0.1, 0.5, 0.4, 0.5, 0.6, 0.6, 0.6, 0.6 };
  static const struct { yk_early_stopping_config c; const double *value; int64_t last; } cases[] = {
    { { .patience = 0 }, down, 2 },
    { { .patience = 1 }, down, 2 },
    { { .patience = 3 }, down, 6 },                        /* best 3.95 in epoch 3; 4, 4.1, 4 */
    { { .patience = 2, .min_delta = 0.1 }, down, 3 },      /* 3.95 is not enough */
    { { .patience = 9 }, down, 7 },
    { { .patience = 2, .monitor = "val_acc" }, up, 3 },    /* up, since it has "acc" */
    { { .patience = 3, .monitor = "val_acc" }, up, 7 },
    { { .patience = 2, .has_baseline = true, .baseline = 3 }, down, 1 },
    { { .patience = 2, .mode = YK_MONITOR_MAX }, down, 2 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    script s;
    yk_callback *c;
    yk_early_stopping_config config = cases[i].c;
    config.verbose = true;
    open_rig(&r, 0);
    CHECK_OK(yk_callback_early_stopping(&config, &c));
    CHECK_OK(scripted(&r, &s, config.monitor != NULL ? config.monitor : "val_loss", cases[i].value, 8, c, NULL));
    if (s.ended != cases[i].last)
      fail_msg("case %zu: stopped after epoch %lld, expected %lld", i, (long long)s.ended, (long long)cases[i].last);
    if (i == 0) assert_string_equal(s.said, "Epoch 00003: early stopping\n");
    yk_callback_free(c);
    close_rig(&r);
  }
}

typedef struct keeper { yk_callback self; yk_layer *l; int64_t epoch; double value; } keeper;
static yk_code keep(yk_callback *c, yk_training *t, int64_t epoch, yk_logs *logs) {
  keeper *k = (keeper *)c;
  yk_tensor *w;
  (void)t;
  (void)logs;
  if (epoch != k->epoch) return YK_OK;
  YK_TRY(yk_layer_weight(k->l, "kernel", &w));
  k->value = yk_tensor_at(w, 0);
  yk_tensor_free(w);
  return YK_OK;
}

static void test_restore_best(void **state) {
  static const double down[] = { 5, 4, 4.5, 4.6, 1 };
  rig r;
  script s = { .self = { .on_epoch_end = put }, .name = "val_loss", .value = down };
  yk_callback *c;
  yk_tensor *w;
  (void)state;
  open_rig(&r, 0);
  keeper k = { .self = { .on_epoch_end = keep }, .l = r.head, .epoch = 1 };
  CHECK_OK(yk_callback_early_stopping(&(yk_early_stopping_config){ .patience = 2, .restore_best_weights = true }, &c));
  yk_callback *list[3] = { &s.self, &k.self, c };
  yk_fit_options o = YK_FIT_OPTIONS_INIT;
  o.epochs = 5;
  o.verbose = 0;
  o.ncallbacks = 3;
  o.callbacks = list;
  CHECK_OK(yk_network_fit(r.n, &r.e, &o, NULL));
  CHECK_INT(s.ended, 3);
  CHECK_OK(yk_layer_weight(r.head, "kernel", &w));
  CHECK_NEAR(yk_tensor_at(w, 0), k.value, 0);
  yk_tensor_free(w);
  yk_callback_free(c);
  close_rig(&r);
}

static void test_plateau(void **state) {
  static const double value[] = { 5, 4, 4, 4, 4, 4, 3, 3, 3, 3 };
  static const double rates[] = { 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125 };
  static const double floor_[] = { 0.1, 0.1, 0.1, 0.1, 0.04, 0.04, 0.04, 0.04, 0.04, 0.04 };
  static const double cooled[] = { 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.025 };
  static const struct { yk_reduce_lr_config c; const double *rate; } cases[] = {
    { { .factor = 0.5, .patience = 2 }, rates },
    { { .factor = 0.1, .patience = 2, .min_lr = 0.04 }, floor_ },
    { { .factor = 0.5, .patience = 2, .cooldown = 2 }, cooled },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    script s;
    yk_callback *c;
    yk_history *h;
    open_rig(&r, 0);
    CHECK_OK(yk_callback_reduce_lr_on_plateau(&cases[i].c, &c));
    CHECK_OK(scripted(&r, &s, "val_loss", value, 10, c, &h));
    for (int e = 0; e < 10; e++) {
      double rate = yk_history_values(h, "lr")[e];
      if (!(fabs(rate - cases[i].rate[e]) < 1e-9))
        fail_msg("case %zu, epoch %d: a rate of %g, expected %g", i, e, rate, cases[i].rate[e]);
    }
    yk_history_free(h);
    yk_callback_free(c);
    close_rig(&r);
  }
  yk_callback *c;
  CHECK_CODE(yk_callback_reduce_lr_on_plateau(&(yk_reduce_lr_config){ .factor = 1 }, &c), YK_EINVAL, "factor of 1");
}

static double halve(int64_t epoch, double rate, void *arg) { (void)arg; return epoch == 3 ? NAN : epoch > 0 ? rate / 2 : rate; }

static void test_schedule(void **state) {
  static const double none[4];
  rig r;
  script s;
  yk_callback *c;
  yk_history *h;
  (void)state;
  open_rig(&r, 0);
  CHECK_OK(yk_callback_learning_rate_scheduler(halve, NULL, true, &c));
  CHECK_OK(scripted(&r, &s, "x", none, 3, c, &h));
  for (int e = 0; e < 3; e++) CHECK_NEAR(yk_history_values(h, "lr")[e], 0.1 / (1 << e), 1e-9);
  assert_non_null(strstr(s.said, "Epoch 00002: LearningRateScheduler setting learning rate to 0.05."));
  yk_history_free(h);
  CHECK_CODE(scripted(&r, &s, "x", none, 4, c, NULL), YK_EINVAL, "a learning rate of nan for epoch 3");
  yk_callback_free(c);
  close_rig(&r);
}

static void test_nan(void **state) {
  static const double none[4];
  rig r;
  script s;
  yk_callback *c;
  yk_history *h;
  (void)state;
  open_rig(&r, 0);
  ((float *)yk_tensor_data(r.x))[4] = NAN;
  CHECK_OK(yk_callback_terminate_on_nan(&c));
  CHECK_OK(scripted(&r, &s, "x", none, 4, c, &h));
  CHECK_INT(yk_history_epochs(h), 1);
  assert_string_equal(s.said, "Batch 0: Invalid loss, terminating training\n");
  yk_history_free(h);
  yk_callback_free(c);
  close_rig(&r);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------------ */

static void test_csv(void **state) {
  static const double value[] = { 3, 2.5 };
  rig r;
  script s;
  yk_callback *c;
  char *path = in_folder("log.csv"), line[512];
  (void)state;
  open_rig(&r, 0);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("old\n", f);
  fclose(f);
  CHECK_OK(yk_callback_csv_logger(path, ';', true, &c));
  CHECK_OK(scripted(&r, &s, "aaa", value, 1, c, NULL));
  f = fopen(path, "r");
  assert_true(fgets(line, sizeof line, f) != NULL && strcmp(line, "old\n") == 0);
  assert_true(fgets(line, sizeof line, f) != NULL && strncmp(line, "0;3;", 4) == 0); /* no names; in order of the alphabet */
  fclose(f);
  yk_callback_free(c);
  CHECK_OK(yk_callback_csv_logger(path, 0, false, &c));
  CHECK_OK(scripted(&r, &s, "zzz", value, 2, c, NULL));
  f = fopen(path, "r");
  assert_true(fgets(line, sizeof line, f) != NULL);
  assert_string_equal(line, "epoch,aux_output_loss,loss,main_output_acc,main_output_loss,zzz\n");
  assert_true(fgets(line, sizeof line, f) != NULL && line[0] == '0' && strstr(line, ",3\n") != NULL);
  assert_true(fgets(line, sizeof line, f) != NULL && line[0] == '1' && strstr(line, ",2.5\n") != NULL);
  fclose(f);
  yk_callback_free(c);
  unlink(path);
  CHECK_OK(yk_callback_csv_logger("/no/such/folder/log.csv", 0, false, &c));
  CHECK_CODE(scripted(&r, &s, "x", value, 1, c, NULL), YK_EIO, "/no/such/folder/log.csv");
  yk_callback_free(c);
  close_rig(&r);
}

static void test_names(void **state) {
  static const double value[] = { 3, 2, 2.5, 1 };
  static const struct { const char *pattern, *first; bool best; int files; } cases[] = {
    { "w.{epoch:02d}-{val_loss:.2f}.h5", "w.01-3.00.h5", false, 4 },
    { "b.{epoch}.h5", "b.1.h5", true, 3 },
    { "c-{val_loss:e}.h5", "c-3.000000e+00.h5", false, 4 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    script s;
    yk_callback *c;
    char path[256], first[512];
    open_rig(&r, 0);
    snprintf(path, sizeof path, "%s/%s", folder, cases[i].pattern);
    CHECK_OK(
        yk_callback_checkpoint(&(yk_checkpoint_config){ .path = path, .save_best_only = cases[i].best, .verbose = true }, &c));
    CHECK_OK(scripted(&r, &s, "val_loss", value, 4, c, NULL));
    snprintf(first, sizeof first, "%s/%s", folder, cases[i].first);
    CHECK_INT(access(first, R_OK), 0);
    int saved = 0;
    for (const char *at = s.said; (at = strstr(at, "saving model to ")) != NULL; at += 16) {
      char name[512];
      snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 16, "\n"), at + 16);
      CHECK_INT(unlink(name), 0);
      saved++;
    }
    CHECK_INT(saved, cases[i].files);
    if (cases[i].best) assert_non_null(strstr(s.said, "Epoch 00003: val_loss did not improve from 2.00000"));
    yk_callback_free(c);
    close_rig(&r);
  }
}

static void test_bad_names(void **state) {
  static const double value[] = { 3 };
  static const struct { const char *path, *says; } cases[] = {
    { "/no/such/folder/w.h5", "there is no folder '/no/such/folder'" },
    { "/tmp/{val_los:.2f}.h5", "the logs have no 'val_los'" },
    { "/tmp/{epoch:x}.h5", "expected a format" },
    { "/tmp/{val_loss:d}.h5", "expected a format" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r;
    script s;
    yk_callback *c;
    open_rig(&r, 0);
    CHECK_OK(yk_callback_checkpoint(&(yk_checkpoint_config){ .path = cases[i].path }, &c));
    yk_code rc = scripted(&r, &s, "val_loss", value, 1, c, NULL);
    if (rc == YK_OK || strstr(yk_error_message(), cases[i].says) == NULL) fail_msg("%s: %s", cases[i].path, yk_error_message());
    yk_callback_free(c);
    close_rig(&r);
  }
  yk_callback *c;
  CHECK_CODE(yk_callback_checkpoint(&(yk_checkpoint_config){ .path = NULL }, &c), YK_EINVAL, "path");
}

/* The best of a fit on four devices and the best of one on one device: the same groups and names, and either loads on one. */
static void test_devices(void **state) {
  char *path[2] = { in_folder("one.h5"), in_folder("four.h5") };
  yk_history *h[2];
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig r;
    yk_callback *c;
    yk_fit_options o = YK_FIT_OPTIONS_INIT;
    open_rig(&r, i ? 4 : 0);
    CHECK_OK(yk_callback_checkpoint(&(yk_checkpoint_config){ .path = path[i], .save_best_only = true }, &c));
    o.epochs = 3;
    o.batch_size = 3;
    o.verbose = 0;
    o.no_shuffle = true;
    o.validation_split = 0.3;
    o.ncallbacks = 1;
    o.callbacks = &c;
    CHECK_OK(yk_network_fit(r.n, &r.e, &o, &h[i]));
    yk_callback_free(c);
    close_rig(&r);
  }
  for (size_t k = 0; yk_history_name(h[0], k) != NULL; k++) {
    const char *name = yk_history_name(h[0], k);
    assert_string_equal(yk_history_name(h[1], k), name);
    for (int e = 0; e < 3; e++) CHECK_NEAR(yk_history_values(h[1], name)[e], yk_history_values(h[0], name)[e], 1e-5);
  }
  assert_non_null(yk_history_values(h[1], "val_main_output_acc"));
  assert_non_null(yk_history_values(h[1], "aux_output_loss"));
  yk_h5 *f[2];
  yk_texts names[2] = { { 0 }, { 0 } };
  for (int i = 0; i < 2; i++) {
    CHECK_OK(yk__h5_open(path[i], &f[i]));
    CHECK_OK(yk__h5_texts(f[i], "model_weights", "layer_names", &names[i]));
  }
  CHECK_INT(names[0].n, names[1].n);
  for (uint32_t l = 0; l < names[0].n; l++) {
    char group[256];
    yk_texts w[2] = { { 0 }, { 0 } };
    assert_string_equal(names[0].at[l], names[1].at[l]);
    snprintf(group, sizeof group, "model_weights/%s", names[0].at[l]);
    for (int i = 0; i < 2; i++) CHECK_OK(yk__h5_texts(f[i], group, "weight_names", &w[i]));
    CHECK_INT(w[0].n, w[1].n);
    for (uint32_t x = 0; x < w[0].n; x++) assert_string_equal(w[0].at[x], w[1].at[x]);
    yk__texts_free(&w[0]);
    yk__texts_free(&w[1]);
  }
  for (int i = 0; i < 2; i++) {
    yk_keras *k;
    yk_network *n;
    yk__texts_free(&names[i]);
    yk__h5_close(f[i]);
    CHECK_OK(yk_keras_new(1, &k));
    CHECK_OK(yk_network_load(k, path[i], &n));
    assert_string_equal(yk_layer_name(yk_network_layer_at(n, 2)), "main_output");
    yk_keras_free(k);
    yk_history_free(h[i]);
    CHECK_INT(unlink(path[i]), 0);
  }
}

static void test_tensorboard(void **state) {
  static const double value[] = { 3, 2 };
  rig r;
  script s;
  yk_callback *c;
  char line[512], name[256] = "";
  int records = 0;
  (void)state;
  open_rig(&r, 0);
  char *logs = in_folder("logs");
  CHECK_OK(yk_callback_tensorboard(&(yk_tensorboard_config){ .folder = logs, .update_freq = 1, .histogram_freq = 1 }, &c));
  CHECK_OK(scripted(&r, &s, "more", value, 2, c, NULL));
  yk_callback_free(c);
  snprintf(line, sizeof line, "ls %s", logs);
  FILE *p = popen(line, "r");
  assert_non_null(p);
  assert_true(fscanf(p, "%255s", name) == 1);
  pclose(p);
  snprintf(line, sizeof line, "%s/%s", logs, name);
  yk_record_reader *reader;
  CHECK_OK(yk_record_reader_open(line, &reader));
  for (const void *bytes = ""; bytes != NULL; records++) {
    size_t n;
    CHECK_OK(yk_record_read(reader, &bytes, &n));
  }
  yk_record_reader_close(reader);
  CHECK_INT(records - 1,
            2 + 2 * (4 + 5 + 6)); /* version and graph; each epoch: a batch's numbers, its own and one more, weights */
  unlink(line);
  rmdir(logs);
  close_rig(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_early_stopping), cmocka_unit_test(test_restore_best), cmocka_unit_test(test_plateau),
    cmocka_unit_test(test_schedule),       cmocka_unit_test(test_nan),          cmocka_unit_test(test_csv),
    cmocka_unit_test(test_names),          cmocka_unit_test(test_bad_names),    cmocka_unit_test(test_devices),
    cmocka_unit_test(test_tensorboard)
  };
  if (mkdtemp(folder) == NULL) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(folder);
  return failed;
}
