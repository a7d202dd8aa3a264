/*
 * test_towers.c - one training step, however many devices share the batch.
 *
 * A network without batch statistics is the same function on any number of towers: with one seed and one queue the losses
 * of the steps agree but for rounding, because the sums are in another order. How far rounding grows depends on the rate.
 * At 0.1 this network is chaotic: on one CPU, a rate one float32 step higher changes losses by 1e-7 for forty steps and by
 * 2e-2 at fifty (batch 7), which is also what another number of towers does. At 0.01 it takes a rectified unit or a maximum
 * that rounding turns over to see 2e-5. So fifty steps are compared at 0.001, and the tutorial's 0.1 for the first ones.
 */
#include <yoke/yoke.h>
#include "support/check.h"
#include "support/pictures.h"

enum { MOST_STEPS = 50, MOST_DEVICES = 4 };
static const char *const cpu[] = { "/cpu:0" }, *const gpus[] = { "/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3" };

typedef struct job {
  const char *model;
  int64_t batch;
  int steps;
  double rate;
} job;

typedef struct run {
  yk_graph *g;
  yk_session *s;
  yk_towers t;
} run;

/* Towers on `ngpus` virtual GPUs, 0 meaning one CPU device, with variables initialized. */
static void open_run(run *r, const job *j, const yk_source *source, int ngpus) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  yk_value init;
  CHECK_OK(yk_graph_new(&r->g));
  yk_graph_set_seed(r->g, 7);
  o.model = yk_model_find(j->model);
  o.source = source;
  o.classes = 10;
  o.batch = j->batch;
  o.ndevices = ngpus ? (size_t)ngpus : 1;
  o.devices = ngpus ? gpus : cpu;
  o.learning_rate = yk_scalar_f32(r->g, (float)j->rate);
  yk_build_towers(r->g, &o, &r->t);
  init = yk_global_variables_initializer(r->g);
  so.virtual_gpus = ngpus;
  CHECK_OK(yk_session_open(r->g, &so, &r->s));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &init, NULL));
}

static void close_run(run *r) {
  yk_session_close(r->s);
  yk_graph_free(r->g);
}

static void train(run *r, int steps, float *loss) {
  const yk_tensor *const *out;
  yk_step *step;
  CHECK_OK(yk_step_prepare(r->s, 0, NULL, 1, &r->t.loss, 1, &r->t.train, &step));
  for (int i = 0; i < steps; i++) {
    CHECK_OK(yk_step_run(step, NULL, &out));
    loss[i] = *(const float *)yk_tensor_data(out[0]);
  }
  yk_step_free(step);
}

/* Root mean square of the difference of two tensors, as a part of that of the first. */
static double apart(const yk_tensor *a, const yk_tensor *b) {
  double size = 0, off = 0;
  CHECK_INT(yk_tensor_count(a), yk_tensor_count(b));
  for (int64_t i = 0; i < yk_tensor_count(a); i++) {
    double d = yk_tensor_at(a, i) - yk_tensor_at(b, i);
    size += yk_tensor_at(a, i) * yk_tensor_at(a, i);
    off += d * d;
  }
  return sqrt(off / size);
}

static yk_tensor *value_of(const run *r, const char *name) {
  yk_tensor *t = NULL;
  for (size_t i = 0; i < yk_variable_count(r->g); i++)
    if (strcmp(yk_variable_name(yk_variable_get(r->g, i)), name) == 0)
      CHECK_OK(yk_variable_fetch(r->s, yk_variable_get(r->g, i), &t));
  if (!t) fail_msg("no variable %s", name);
  return t;
}

static yk_dataset *drawn;

/* Noise around a grey that depends on the place and the label, so that there is something to learn. Drawn once for all. */
static int draw(void **state) {
  enum { N = 500, SIDE = 32, VALUES = SIDE * SIDE * 3 };
  uint8_t *image = malloc(N * VALUES), label[N];
  (void)state;
  if (!image) return -1;
  for (int i = 0; i < N; i++) {
    label[i] = (uint8_t)(pictures_word(1, (uint64_t)i) >> 8) % 10;
    for (int k = 0; k < VALUES; k++)
      image[i * VALUES + k] = (uint8_t)(128 + 60 * pictures_uniform(2, (uint64_t)(i * VALUES + k)) +
                                        60 * pictures_uniform(3 + label[i], (uint64_t)k / 96));
  }
  yk_code rc = yk_dataset_images(N, SIDE, SIDE, 3, image, label, 10, &drawn);
  free(image);
  return rc == YK_OK ? 0 : -1;
}

static int forget(void **state) {
  (void)state;
  yk_dataset_free(drawn);
  return 0;
}

/* A queue of drawn pictures, the same stream each time; `follow` (may be NULL) is the variable to give back in *end. */
static void losses(const job *j, int ngpus, const char *follow, float *loss, yk_tensor **end) {
  yk_queue_options qo = YK_QUEUE_OPTIONS_INIT;
  yk_queue *q;
  run r;
  const yk_model *m = yk_model_find(j->model);
  qo.augment = m->train_augment;
  qo.image_size = m->image_size;
  qo.shuffle = true;
  qo.seed = 5;
  qo.capacity = 2 * j->batch + 8;
  qo.threads = 2;
  CHECK_OK(yk_queue_open(drawn, &qo, &q));
  open_run(&r, j, yk_queue_source(q), ngpus);
  train(&r, j->steps, loss);
  CHECK_INT(yk_queue_taken(q), j->batch * j->steps);
  if (follow) *end = value_of(&r, follow);
  close_run(&r);
  yk_queue_close(q);
}

/* Fifty steps take too long under a sanitizer, which is told by YOKE_TEST_QUICK: it looks at memory, and each step uses the same. */
static int affordable(int steps, int all) { return getenv("YOKE_TEST_QUICK") ? steps : all; }

/* On 1 to 4 virtual GPUs as on the CPU: losses to 1e-5, and the followed variable, which changes by some 1e-3, to 1e-6. */
static void same_on_any_number(job j, const char *follow) {
  float want[MOST_STEPS], got[MOST_STEPS];
  yk_tensor *expected, *end;
  losses(&j, 0, follow, want, &expected);
  for (int n = 1; n <= MOST_DEVICES; n += j.batch > 100 ? affordable(3, 1) : 1) {
    losses(&j, n, follow, got, &end);
    double off = apart(expected, end);
    yk_tensor_free(end);
    for (int i = 0; i < j.steps; i++)
      if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * fabs((double)want[i])))
        fail_msg("%s, batch %d, rate %g, step %d: loss %.9g on %d virtual GPUs, %.9g on one CPU", j.model, (int)j.batch,
                 j.rate, i, (double)got[i], n, (double)want[i]);
    if (!(off <= 1e-6))
      fail_msg("%s, batch %d, rate %g: %s is %.2g of its size away on %d virtual GPUs", j.model, (int)j.batch, j.rate,
               follow, off, n);
  }
  if (want[0] == want[j.steps - 1]) fail_msg("the loss stays %.9g, nothing was trained", (double)want[0]);
  yk_tensor_free(expected);
}

static void cifar10(int64_t batch, int steps, double rate) {
  same_on_any_number((job){ "cifar10", batch, steps, rate }, "conv2/weights/ExponentialMovingAverage");
}

static void test_one_row(void **state) { (void)state; cifar10(1, affordable(4, 50), 0.001); }         /* towers 1 to 3 have no rows */
static void test_seven_rows(void **state) { (void)state; cifar10(7, affordable(4, 50), 0.001); }      /* unequal shares */
static void test_33_rows(void **state) { (void)state; cifar10(33, affordable(3, 50), 0.001); }
static void test_128_rows(void **state) { (void)state; cifar10(128, affordable(2, 50), 0.001); }

/* Before the rounding has grown, the tutorial's own rate does as well. */
static void test_full_rate(void **state) { (void)state; cifar10(7, affordable(3, 8), 0.1); }

static void test_mlp(void **state) {
  (void)state;
  same_on_any_number((job){ "mlp", 33, 20, 0.001 }, "hidden2/weights");
}

/* A device without rows adds nothing to the graph. */
static void test_no_rows(void **state) {
  (void)state;
  job j = { "mlp", 1, 1, 0.01 };
  pictures p;
  run r;
  char *text;
  pictures_open(&p, 1, 1, 8, 8, 1, 10);
  open_run(&r, &j, &p.source, 4);
  CHECK_OK(yk_graph_dump(r.g, &text));
  if (!strstr(text, "tower_0/") || strstr(text, "tower_1/")) fail_msg("expected tower_0 and no other in\n%s", text);
  yk_free(text);
  close_run(&r);
  pictures_close(&p);
}

/* ---- one seed, one result ------------------------------------------------------------------------------------ */

static void test_two_runs(void **state) {
  (void)state;
  int steps = affordable(2, 5);
  const job jobs[] = { { "cifar10", 9, steps, 0.1 }, { "resnet20", 4, steps, 0.1 }, { "mlp", 9, steps, 0.01 } };
  float first[5], second[5];
  for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++)
    for (int n = 0; n <= 2; n += 2) {
      losses(&jobs[k], n, NULL, first, NULL);
      losses(&jobs[k], n, NULL, second, NULL);
      for (int i = 0; i < steps; i++)
        if (memcmp(&first[i], &second[i], sizeof *first) != 0)
          fail_msg("%s, %d virtual GPUs, step %d: loss %.9g in one run, %.9g in the next", jobs[k].model, n, i, (double)first[i],
                   (double)second[i]);
    }
}

/* ln 10 for ten equal guesses, and 0.004/2 * 0.774 * 0.04^2 a weight of the two layers that decay. */
static void test_first_loss(void **state) {
  (void)state;
  float loss[1];
  losses(&(job){ "cifar10", 32, 1, 0.1 }, 0, NULL, loss, NULL);
  CHECK_NEAR((double)loss[0], 4.68, 0.1);
}

/* ---- batch statistics ------------------------------------------------------------------------------------------ */

/* Step once at rate 0, so that nothing but the moving averages changes, on `batch` pictures from number `first`. */
static void step_of_resnet(run *r, pictures *p, int64_t batch, int64_t first, int ngpus) {
  float loss;
  p->next = first;
  open_run(r, &(job){ "resnet20", batch, 1, 0.0 }, &p->source, ngpus);
  train(r, 1, &loss);
}

/* A second tower makes no variables, and moves each average once, by the mean over the towers' own batches. */
static void test_moving_averages(void **state) {
  (void)state;
  pictures p;
  run front, back, both;
  int compared = 0;
  pictures_open(&p, 11, 4, 16, 16, 3, 10);
  step_of_resnet(&front, &p, 2, 0, 0);
  step_of_resnet(&back, &p, 2, 2, 0);
  step_of_resnet(&both, &p, 4, 0, 2);
  CHECK_INT(yk_variable_count(both.g), yk_variable_count(front.g));
  for (size_t i = 0; i < yk_variable_count(front.g); i++) {
    const char *name = yk_variable_name(yk_variable_get(front.g, i));
    yk_tensor *a = value_of(&front, name), *b = value_of(&back, name), *c = value_of(&both, name);
    double start = strstr(name, "moving_variance") ? 1.0 : 0.0;
    if (strstr(name, "moving_"))
      for (int64_t k = 0; k < yk_tensor_count(a); k++, compared++) {
        double want = (yk_tensor_at(a, k) + yk_tensor_at(b, k)) / 2;
        if (yk_tensor_at(c, k) == start) fail_msg("%s: element %lld is still %g", name, (long long)k, start);
        if (!(fabs(yk_tensor_at(c, k) - want) <= 1e-5 * fmax(fabs(want), 0.1)))
          fail_msg("%s: element %lld is %.9g with two towers, expected %.9g", name, (long long)k, yk_tensor_at(c, k), want);
      }
    yk_tensor_free(a);
    yk_tensor_free(b);
    yk_tensor_free(c);
  }
  CHECK_INT(compared, 2 * (7 * 16 + 7 * 32 + 7 * 64));    /* mean and variance of every channel */
  close_run(&front);
  close_run(&back);
  close_run(&both);
  pictures_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_row),    cmocka_unit_test(test_seven_rows), cmocka_unit_test(test_33_rows),
    cmocka_unit_test(test_128_rows),   cmocka_unit_test(test_full_rate),  cmocka_unit_test(test_mlp),
    cmocka_unit_test(test_no_rows),    cmocka_unit_test(test_two_runs),   cmocka_unit_test(test_first_loss),
    cmocka_unit_test(test_moving_averages),
  };
  return cmocka_run_group_tests(tests, draw, forget);
}
