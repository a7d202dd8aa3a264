/*
 * test_strategies.c - home, sharded and mirrored variables are one and the same training to the bit, whatever the shares.
 *
 * Copies keep out of files and agree after a restore; a copy that has changed is found.
 */
#include "model/towers.h"

/* ---- the strategies ---------------------------------------------------------------------------------------------------- */

static void test_mlp(void **state) {
  (void)state;
  static const int64_t batch[] = { 1, 2, 7, 12 };        /* of three devices: fewer rows, a remainder, equal shares */
  for (size_t i = 0; i < sizeof batch / sizeof *batch; i++)
    strategies((setup){ .model = "mlp", .ndevices = 3, .batch = batch[i], .steps = 3 });
}

static void test_cifar10(void **state) {
  (void)state;
  strategies((setup){ .model = "cifar10", .ndevices = 2, .batch = 5, .steps = 2 });
}

static void test_resnet20(void **state) {
  (void)state;
  strategies((setup){ .model = "resnet20", .ndevices = 2, .batch = 4, .steps = 2 });
}

/* A layer or two is enough to meet every optimizer. */
static yk_value build_small(yk_graph *g, yk_value images, int64_t classes, bool training) {
  yk_value x = yk_flatten(g, images);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(yk_value_desc(g, x)->dim[1], 48), YK_GLOROT_UNIFORM, NULL);
  yk_variable *v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(48, classes), YK_GLOROT_UNIFORM, NULL);
  (void)training;
  if (!w || !v) return (yk_value){ 0 };
  return yk_matmul(g, yk_relu(g, yk_matmul(g, x, yk_read(w), NULL)), yk_read(v), NULL);
}

static const yk_model small = { .name = "small", .doc = "two layers", .build = build_small, .image_size = 8, .batch = 8,
                                .learning_rate = 0.1 };

static void test_optimizers(void **state) {
  (void)state;
  const yk_optimizer all[] = { YK_SGD(0.01), YK_NESTEROV(0.01, 0.9), YK_ADAM(0.001), YK_LAMB(0.001, 0.01), YK_FTRL(0.05) };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    strategies((setup){ .own = &small, .ndevices = 2, .batch = 5, .steps = 3, .optimizer = &all[i], .clip = i % 2 ? 0.5 : 0 });
}

static void test_clipped(void **state) {
  (void)state;
  strategies((setup){ .model = "resnet20", .ndevices = 3, .batch = 6, .steps = 2, .clip = 0.3 });
}

/* What auto takes, and that it says so. */
static void test_auto(void **state) {
  (void)state;
  run r;
  open_run(&r, &(setup){ .model = "mlp", .ndevices = 2, .batch = 4 });
  CHECK_INT(r.t.strategy, YK_STRATEGY_SHARDED);
  assert_non_null(strstr(r.t.why, "auto"));
  close_run(&r);
  open_run(&r, &(setup){ .model = "mlp", .ndevices = 1, .batch = 4 });
  CHECK_INT(r.t.strategy, YK_STRATEGY_HOME);
  close_run(&r);
}

/* ---- places and copies ------------------------------------------------------------------------------------------------- */

static yk_variable *find(const run *r, const char *name) {
  for (size_t i = 0; i < yk_variable_count(r->g); i++)
    if (strcmp(yk_variable_name(yk_variable_get(r->g, i)), name) == 0) return yk_variable_get(r->g, i);
  fail_msg("no variable %s", name);
  return NULL;
}

/* The two large matrices are on different devices, with their slots beside them. */
static void test_sharded_places(void **state) {
  (void)state;
  run r;
  open_run(&r, &(setup){ .model = "mlp", .ndevices = 2, .batch = 4, .strategy = YK_STRATEGY_SHARDED });
  const char *one = yk_variable_device(find(&r, "hidden1/weights")), *two = yk_variable_device(find(&r, "hidden2/weights"));
  if (strcmp(one, two) == 0) fail_msg("both matrices are on %s", one);
  assert_string_equal(yk_variable_device(find(&r, "hidden2/weights/Momentum")), two);
  close_run(&r);
}

static void test_mirrored_places(void **state) {
  (void)state;
  run r;
  open_run(&r, &(setup){ .model = "mlp", .ndevices = 3, .batch = 6, .strategy = YK_STRATEGY_MIRRORED });
  yk_variable *v = find(&r, "hidden1/weights"), *copy = find(&r, "hidden1/weights/copy_2");
  assert_ptr_equal(yk_variable_master(copy), v);
  assert_ptr_equal(yk_variable_master(v), v);
  assert_null(yk_variable_master(NULL));
  assert_string_equal(yk_variable_device(v), "/device:GPU:0");
  assert_string_equal(yk_variable_device(copy), "/device:GPU:2");
  assert_string_equal(yk_variable_device(find(&r, "hidden1/weights/Momentum/copy_2")), "/device:GPU:2");
  assert_false(yk_variable_trainable(copy));
  close_run(&r);
}

/* A copy that was changed behind the step's back is found; putting a value into the variable mends it. */
static void test_check(void **state) {
  (void)state;
  run r;
  yk_tensor *t;
  open_run(&r, &(setup){ .model = "mlp", .ndevices = 2, .batch = 4, .strategy = YK_STRATEGY_MIRRORED });
  train(&r, 2);
  CHECK_OK(yk_check_replicas(r.s, r.g));
  yk_variable *v = find(&r, "hidden2/biases"), *copy = find(&r, "hidden2/biases/copy_1");
  CHECK_OK(yk_variable_fetch(r.s, copy, &t));
  ((float *)yk_tensor_data(t))[5] += 1e-6f;
  CHECK_OK(yk_variable_set(r.s, copy, t));
  CHECK_INT(yk_check_replicas(r.s, r.g), YK_ECORRUPT);
  const char *text = yk_error_message();
  if (!strstr(text, "'hidden2/biases'") || !strstr(text, "GPU:0") || !strstr(text, "GPU:1")) fail_msg("the message is: %s", text);
  CHECK_OK(yk_variable_set(r.s, v, t));
  CHECK_OK(yk_check_replicas(r.s, r.g));
  yk_tensor_free(t);
  CHECK_INT(yk_check_replicas(NULL, r.g), YK_EINVAL);
  close_run(&r);
}

/* ---- the plan ---------------------------------------------------------------------------------------------------------- */

static long place_of(const char *text, const char *part) {
  const char *at = strstr(text, part);
  if (!at) fail_msg("no '%s' in\n%s", part, text);
  return (long)(at - text);
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (; (text = strstr(text, part)) != NULL; text++) n++;
  return n;
}

/* Of a mirrored network of 65 variables each device sends a few buckets, not every gradient; and a device adds up the first ones
 * before the last kernels of its own backward pass. */
static void test_overlap(void **state) {
  (void)state;
  char *text = NULL;
  run r;
  open_run(&r, &(setup){ .model = "resnet20", .ndevices = 2, .batch = 8, .strategy = YK_STRATEGY_MIRRORED });
  CHECK_OK(yk_session_explain(r.s, 0, NULL, 1, &r.t.loss, 1, &r.t.train, &text));
  int buckets = count(text, "launch    all_reduce/bucket"), copies = count(text, "copy-peer");
  if (buckets < 4 || buckets > 20) fail_msg("%d buckets in\n%s", buckets, text);
  if (copies > 140) fail_msg("%d copies in\n%s", copies, text);
  long sum = place_of(text, "all_reduce/AddN"), end = place_of(text, "tower_0/gradients/tower_0/conv0/Conv2D_grad");
  long other = place_of(text, "tower_1/gradients/tower_1/conv0/Conv2D_grad");
  if (sum > end && sum > other) fail_msg("nothing is summed before the backward pass has ended:\n%s", text);
  yk_free(text);
  close_run(&r);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------------- */

/* Two steps, a checkpoint, two steps under another strategy and number of devices: as four steps in one go. */
static void resumes(const setup *before, const setup *after, uint32_t want) {
  char folder[64] = "/tmp/yoke-strategies-XXXXXX", command[96];
  run r;
  yk_saver *saver;
  yk_saver_options so = YK_SAVER_OPTIONS_INIT;
  yk_checkpoint *c;
  assert_non_null(mkdtemp(folder));
  CHECK_OK(yk_saver_open(folder, &so, &saver));
  open_run(&r, before);
  train(&r, 2);
  CHECK_OK(yk_saver_save(saver, r.s, 2, 0, NULL));
  CHECK_OK(yk_saver_close(saver));
  int64_t next = r.p.next;
  close_run(&r);
  open_run(&r, after);
  r.p.next = next;
  CHECK_OK(yk_checkpoint_latest(folder, &c));
  CHECK_OK(yk_checkpoint_restore(c, r.s, NULL));
  yk_checkpoint_close(c);
  CHECK_OK(yk_check_replicas(r.s, r.g));
  train(&r, 2);
  uint32_t got = weights(&r);
  close_run(&r);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  CHECK_INT(system(command), 0);
  if (got != want)
    fail_msg("from %s on %zu devices to %s on %zu: %08x, expected %08x", yk_strategy_name(before->strategy), before->ndevices,
             yk_strategy_name(after->strategy), after->ndevices, got, want);
}

static void test_checkpoints(void **state) {
  (void)state;
  const yk_optimizer adam = YK_ADAM(0.001);
  setup u = { .model = "mlp", .ndevices = 2, .replicas = 4, .batch = 9, .steps = 4, .optimizer = &adam, .deterministic = true }, v = u;
  uint32_t want = result_of(&u).weights;
  for (int s = YK_STRATEGY_HOME; s <= YK_STRATEGY_MIRRORED; s++) {
    u.strategy = (yk_strategy)s;
    v.strategy = s == YK_STRATEGY_MIRRORED ? YK_STRATEGY_HOME : (yk_strategy)(s + 1);
    v.ndevices = s == YK_STRATEGY_HOME ? 1 : 4;
    resumes(&u, &v, want);
    resumes(&v, &u, want);
  }
}

/* ---- penalties and shares ------------------------------------------------------------------------------------------------ */

/* One weight w = 2 with the penalty 0.1*w^2, on which the logits do not depend otherwise. */
static yk_value build_decayed(yk_graph *g, yk_value images, int64_t classes, bool training) {
  (void)training;
  yk_value x = yk_flatten(g, images);
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SCALAR, YK_CONSTANT(2), NULL);
  yk_variable *z = yk_get_variable(g, "z", YK_F32, YK_SHAPE(yk_value_desc(g, x)->dim[1], classes), YK_ZEROS, NULL);
  if (!w || !z) return (yk_value){ 0 };
  yk_add_to_collection(g, YK_LOSSES, yk_mul(g, yk_square(g, yk_read(w)), yk_scalar_f32(g, 0.1f)));
  return yk_matmul(g, x, yk_read(z), NULL);
}

static const yk_model decayed = { .name = "decayed", .doc = "with a penalty", .build = build_decayed, .image_size = 4, .batch = 8,
                                  .learning_rate = 0.25 };

/* Over four towers the loss has the penalty once: 0.4 beside ln 10, and w moves by its gradient 0.4: 2 - 0.25*0.4 = 1.9. */
static void test_penalty(void **state) {
  (void)state;
  for (int s = YK_STRATEGY_HOME; s <= YK_STRATEGY_MIRRORED; s++) {
    run r;
    yk_tensor *t;
    open_run(&r, &(setup){ .own = &decayed, .ndevices = 4, .batch = 10, .strategy = (yk_strategy)s });
    CHECK_NEAR(train(&r, 1) - log(10), 0.4, 1e-6);
    CHECK_OK(yk_variable_fetch(r.s, find(&r, "w"), &t));
    CHECK_NEAR(yk_tensor_at(t, 0), 1.9, 1e-6);
    yk_tensor_free(t);
    close_run(&r);
  }
}

static void test_shares(void **state) {
  (void)state;
  CHECK_INT(yk_replica_share(10, 3, 0), 4);
  CHECK_INT(yk_replica_share(10, 3, 2), 3);
  CHECK_INT(yk_replica_share(2, 3, 2), 0);
  CHECK_INT(yk_replica_share(5, 0, 0), 0);
  CHECK_INT(yk_replica_share(5, 2, 2), 0);
}

static void refused(yk_tower_options *o, const char *part) {
  yk_graph *g;
  yk_towers t;
  CHECK_OK(yk_graph_new(&g));
  yk_build_towers(g, o, &t);
  CHECK_INT(yk_graph_status(g), YK_EINVAL);
  if (!strstr(yk_error_message(), part)) fail_msg("expected '%s' in: %s", part, yk_error_message());
  CHECK_INT(t.train.id, 0);
  yk_graph_free(g);
}

static void test_refusals(void **state) {
  (void)state;
  pictures p;
  pictures_open(&p, 3, 4, 8, 8, 3, 10);
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  o.model = yk_model_find("mlp");
  o.source = &p.source;
  o.classes = 10;
  o.batch = 4;
  o.ndevices = 2;
  o.devices = gpus;
  o.replicas = 1;
  refused(&o, "1 replicas on 2 devices");
  o.replicas = 0;
  o.strategy = (yk_strategy)9;
  refused(&o, "no strategy has the number 9");
  assert_null(yk_strategy_name((yk_strategy)9));
  o.strategy = YK_STRATEGY_AUTO;
  o.size = 0;
  refused(&o, "yk_tower_options.size is 0");
  pictures_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_mlp), cmocka_unit_test(test_cifar10), cmocka_unit_test(test_resnet20), cmocka_unit_test(test_optimizers),
    cmocka_unit_test(test_clipped), cmocka_unit_test(test_auto), cmocka_unit_test(test_sharded_places),
    cmocka_unit_test(test_mirrored_places), cmocka_unit_test(test_check), cmocka_unit_test(test_overlap), cmocka_unit_test(test_checkpoints),
    cmocka_unit_test(test_penalty), cmocka_unit_test(test_shares), cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
