/*
 * test_models.c - whole training runs of the built-in networks against TensorFlow in float64.
 *
 * model_values.txt has, for ten steps on a few pictures, every loss, and of every gradient, updated weight and moving
 * average the largest value, the sums and some elements. The pictures are such that no rectified unit comes nearer to
 * zero than rounding can carry it: a unit on the other side would change a gradient by a percent. What is left is plain
 * rounding, and the tolerances are ten to twenty times the distance between TensorFlow's own float32 and float64 runs
 * (losses 2e-7 relative; of the tensor's largest: weights and averages 4e-7, gradients 5e-6). Weights need the tight one:
 * ten steps change them by about 1e-2 of the largest.
 */
#include <yoke/yoke.h>
#include "support/check.h"
#include "support/pictures.h"

enum { LINE = 512, VARS = 128 };

typedef struct rig {
  char name[32];
  long towers, steps;
  pictures p;
  yk_graph *g;
  yk_session *s;
  yk_towers t;
  yk_value init;
  size_t nvars;
  yk_gradient grad[VARS];
  yk_value wanted[VARS];          /* the gradients, to be fetched */
  yk_tensor *fetched[VARS];       /* of the last step asked about */
  int compared, wrong;
} rig;

static const struct { const char *what; double tolerance; } tolerances[] = {
  { "loss", 5e-6 }, { "grad", 1e-4 }, { "weight", 5e-6 }, { "moving", 1e-5 }, { "shadow", 5e-6 } };

static double tolerance_of(const char *what) {
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++)
    if (strcmp(what, tolerances[i].what) == 0) return tolerances[i].tolerance;
  fail_msg("no line of the file starts with '%s'", what);
  return 0;
}

static void compare(rig *r, const char *what, const char *name, long step, const char *kind, double got, double want,
                    double allowed) {
  r->compared++;
  if (fabs(got - want) <= allowed) return;
  if (r->wrong++ < 40)
    print_error("%s, %s of %s, step %ld, %s: got %.9g, expected %.9g, %.2g apart where %.2g is allowed\n", r->name, what, name,
                step, kind, got, want, fabs(got - want), allowed);
}

/* "<largest> <sum> <squares> <index>:<value> ..." */
static void compare_tensor(rig *r, const char *what, const char *name, long step, const yk_tensor *t, const char *text) {
  double largest, sum, squares, value, max = 0, total = 0, total2 = 0, tol = tolerance_of(what);
  long long index;
  int used = 0;
  if (sscanf(text, "%lf %lf %lf%n", &largest, &sum, &squares, &used) != 3) fail_msg("%s %s: bad line '%s'", what, name, text);
  for (int64_t i = 0; i < yk_tensor_count(t); i++) {
    double x = yk_tensor_at(t, i);
    max = fmax(max, fabs(x));
    total += x;
    total2 += x * x;
  }
  compare(r, what, name, step, "largest", max, largest, tol * largest);
  compare(r, what, name, step, "sum", total, sum, tol * sqrt((double)yk_tensor_count(t) * squares));
  compare(r, what, name, step, "sum of squares", total2, squares, 2 * tol * squares);
  for (text += used; sscanf(text, " %lld:%lf%n", &index, &value, &used) == 2; text += used) {
    char kind[48];
    snprintf(kind, sizeof kind, "element %lld", index);
    compare(r, what, name, step, kind, yk_tensor_at(t, index), value, tol * largest);
  }
}

static yk_variable *variable(const rig *r, const char *name) {
  for (size_t i = 0; i < yk_variable_count(r->g); i++)
    if (strcmp(yk_variable_name(yk_variable_get(r->g, i)), name) == 0) return yk_variable_get(r->g, i);
  return NULL;
}

static yk_variable *must_have(const rig *r, const char *name) {
  yk_variable *v = variable(r, name);
  if (!v) fail_msg("%s has no variable %s", r->name, name);
  return v;
}

/* The network on `devices`, its pictures, and gradients of the whole loss of our own. */
static void build(rig *r, const char *line, size_t ndevices, const char *const *devices) {
  yk_tower_options o = YK_TOWER_OPTIONS_INIT;
  yk_session_options so = YK_SESSION_OPTIONS_INIT;
  long seed, batch, height, width, channels, classes;
  double rate;
  if (sscanf(line, "model %31s %ld %ld %ld %ld %ld %ld %ld %ld %lf", r->name, &r->towers, &seed, &batch, &height, &width,
             &channels, &classes, &r->steps, &rate) != 10) fail_msg("bad line '%s'", line);
  pictures_open(&r->p, (uint32_t)seed, batch, height, width, channels, (int32_t)classes);
  CHECK_OK(yk_graph_new(&r->g));
  o.model = yk_model_find(r->name);
  o.source = &r->p.source;
  o.classes = classes;
  o.batch = batch;
  o.ndevices = ndevices;
  o.devices = devices;
  o.learning_rate = yk_scalar_f32(r->g, (float)rate);
  yk_build_towers(r->g, &o, &r->t);
  r->nvars = yk_compute_gradients(r->g, r->t.loss, 0, NULL, r->grad, VARS);
  if (r->nvars > VARS) fail_msg("%s has %zu variables, room for %d", r->name, r->nvars, VARS);
  for (size_t i = 0; i < r->nvars; i++) {
    if (r->grad[i].grad.id == 0) fail_msg("%s: no gradient for %s", r->name, yk_variable_name(r->grad[i].variable));
    r->wanted[i] = r->grad[i].grad;
  }
  r->init = yk_global_variables_initializer(r->g);
  for (size_t i = 0; i < ndevices; i++) so.virtual_gpus += strncmp(devices[i], "/gpu", 4) == 0;
  CHECK_OK(yk_session_open(r->g, &so, &r->s));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 0, NULL, 1, &r->init, NULL));
}

/* "<name> <seed> <mean> <scale> <rank> <dims>": the variable, and its shadow if it has one, start at the hash's numbers. */
static void set_variable(rig *r, const char *text) {
  char name[96];
  unsigned seed, rank;
  double mean, scale;
  int used = 0;
  yk_shape shape;
  yk_tensor *t;
  if (sscanf(text, "%95s %u %lf %lf %u%n", name, &seed, &mean, &scale, &rank, &used) != 5 || rank > YK_MAX_RANK)
    fail_msg("bad line '%s'", text);
  yk_variable *v = must_have(r, name), *shadow = yk_moving_average_of(r->g, v);
  const yk_desc *d = yk_variable_desc(v);
  CHECK_INT(d->rank, rank);
  shape.rank = rank;
  for (unsigned i = 0; i < rank; i++) {
    long long n;
    int more = 0;
    if (sscanf(text + used, "%lld%n", &n, &more) != 1) fail_msg("bad line '%s'", text);
    used += more;
    if (d->dim[i] != n) fail_msg("%s: dimension %u is %lld, expected %lld", name, i, (long long)d->dim[i], n);
    shape.dim[i] = n;
  }
  CHECK_OK(yk_tensor_new(YK_F32, shape, &t));
  float *x = yk_tensor_data(t);
  for (int64_t i = 0; i < yk_tensor_count(t); i++) x[i] = (float)(mean + scale * pictures_uniform(seed, (uint64_t)i));
  CHECK_OK(yk_variable_set(r->s, v, t));
  if (shadow != v) CHECK_OK(yk_variable_set(r->s, shadow, t));
  yk_tensor_free(t);
}

static void drop_gradients(rig *r) {
  for (size_t i = 0; i < r->nvars; i++) {
    yk_tensor_free(r->fetched[i]);
    r->fetched[i] = NULL;
  }
}

/* "<step> <value>": the gradients before the update in a run of their own, if asked for; then the step. */
static void train(rig *r, const char *text) {
  long step;
  double want;
  yk_tensor *loss;
  if (sscanf(text, "%ld %lf", &step, &want) != 2) fail_msg("bad line '%s'", text);
  drop_gradients(r);
  if (step == 0 || step == r->steps - 1) CHECK_OK(yk_session_run(r->s, 0, NULL, r->nvars, r->wanted, 0, NULL, r->fetched));
  CHECK_OK(yk_session_run(r->s, 0, NULL, 1, &r->t.loss, 1, &r->t.train, &loss));
  compare(r, "loss", "all", step, "value", yk_tensor_at(loss, 0), want, tolerance_of("loss") * want);
  yk_tensor_free(loss);
}

static void compare_line(rig *r, const char *line) {
  char what[16], name[96];
  long step;
  int used = 0;
  if (sscanf(line, "%15s %ld %95s%n", what, &step, name, &used) != 3) fail_msg("bad line '%s'", line);
  yk_variable *v = must_have(r, name);
  if (strcmp(what, "grad") == 0) {
    for (size_t i = 0; i < r->nvars; i++)
      if (r->grad[i].variable == v) compare_tensor(r, what, name, step, r->fetched[i], line + used);
  } else {
    yk_tensor *t;
    CHECK_OK(yk_variable_fetch(r->s, v, &t));
    compare_tensor(r, what, name, step, t, line + used);
    yk_tensor_free(t);
  }
}

static FILE *open_values(void) {
  const char *folder = getenv("YOKE_TEST_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/golden/model_values.txt", folder ? folder : "tests");
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("cannot read %s", path);
  return f;
}

/* The block of `name` for `towers`, on `ndevices` devices. */
static void check(const char *name, int towers, size_t ndevices, const char *const *devices) {
  rig *r = calloc(1, sizeof *r);
  char line[LINE], head[64];
  FILE *f = open_values();
  int length = snprintf(head, sizeof head, "model %s %d ", name, towers);
  if (!r) fail_msg("no memory");
  while (fgets(line, sizeof line, f) && strncmp(line, head, (size_t)length) != 0) {}
  if (feof(f)) fail_msg("the file has no '%s'", head);
  build(r, line, ndevices, devices);
  while (fgets(line, sizeof line, f) && strncmp(line, "end", 3) != 0) {
    if (strncmp(line, "var ", 4) == 0) set_variable(r, line + 4);
    else if (strncmp(line, "loss ", 5) == 0) train(r, line + 5);
    else compare_line(r, line);
  }
  fclose(f);
  drop_gradients(r);
  yk_session_close(r->s);
  yk_graph_free(r->g);
  pictures_close(&r->p);
  int compared = r->compared, wrong = r->wrong;
  size_t least = 10 + 3 * 6 * r->nvars;        /* losses; three times, every number of every variable */
  free(r);
  if (wrong) fail_msg("%s: %d of %d comparisons failed", name, wrong, compared);
  if ((size_t)compared < least) fail_msg("%s: only %d comparisons, expected %zu", name, compared, least);
}

static const char *const cpu[] = { "/cpu:0", "/cpu:0" }, *const gpus[] = { "/gpu:0", "/gpu:1" };

static void test_cifar10(void **state) { (void)state; check("cifar10", 1, 1, cpu); }
static void test_mlp(void **state) { (void)state; check("mlp", 1, 1, cpu); }
static void test_resnet20(void **state) { (void)state; check("resnet20", 1, 1, cpu); }
/* Without batch statistics two towers compute what one does; with them, what the file says for two. */
static void test_cifar10_gpus(void **state) { (void)state; check("cifar10", 1, 2, gpus); }
static void test_mlp_gpus(void **state) { (void)state; check("mlp", 1, 2, gpus); }
static void test_resnet20_gpus(void **state) { (void)state; check("resnet20", 2, 2, gpus); }
static void test_resnet20_towers(void **state) { (void)state; check("resnet20", 2, 2, cpu); }

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cifar10),       cmocka_unit_test(test_mlp),           cmocka_unit_test(test_resnet20),
    cmocka_unit_test(test_cifar10_gpus),  cmocka_unit_test(test_mlp_gpus),      cmocka_unit_test(test_resnet20_gpus),
    cmocka_unit_test(test_resnet20_towers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
