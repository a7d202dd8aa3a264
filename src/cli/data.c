/*
 * data.c - from --data and what belongs to it to the two data sets of a run.
 *
 * Both must agree on what a class is: labels are counted over training and test data, and names of classes compared. A set without a
 * test part lends a tenth of its examples, the same ones in every run.
 */
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/param.h"
#include "cli/cli.h"

enum { SHAPES_SEED = 1 };             /* the built-in set is one set: the run's seed does not change it */

/* A bare name is looked for in the folder of the setting data.dir first. */
static const char *find(const char *name, char *buffer, size_t bytes) {
  const char *dir = yk__param("data.dir");
  FILE *f;
  if (name == NULL || strcmp(name, "shapes10") == 0) return NULL;
  if (dir[0] == '\0' || strchr(name, '/') != NULL || snprintf(buffer, bytes, "%s/%s", dir, name) >= (int)bytes) return name;
  f = fopen(buffer, "r");
  if (f == NULL) return name;
  fclose(f);
  return buffer;
}

/* Encoded pictures are decoded to the side that the network takes, or a third more where it cuts pieces out of them. */
static int64_t decoded_side(const yk_model *m) {
  enum { USUAL = 32 };
  if (m->image_size == 0) return USUAL;
  return m->train_augment == YK_AUGMENT_CIFAR_TRAIN ? m->image_size * 4 / 3 : m->image_size;
}

static yk_dataset_options options(const yk_cli *c, const yk_job *j) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  o.format = c->data_format;
  o.label = c->label;
  o.classes = c->classes;
  o.skip = c->skip_corrupt;
  o.holdout = c->test_data == NULL ? c->holdout : 0;
  o.height = decoded_side(j->model);
  return o;
}

/* All of --test-data is for tests, unless it has a part that says so. */
static yk_code open_test(const yk_cli *c, const char *path, const yk_dataset_options *o, yk_dataset **out) {
  if (c->test_data == NULL) return yk_dataset_open(path, o, YK_TEST, out);
  yk_code rc = yk_dataset_open(c->test_data, o, YK_TEST, out);
  if (rc != YK_ENOTFOUND) return rc;
  yk_error_clear();
  return yk_dataset_open(c->test_data, o, YK_TRAIN, out);
}

static yk_code open_both(const yk_cli *c, yk_job *j, const char *path, bool with_train, bool with_test) {
  yk_dataset_options o = options(c, j);
  if (with_train) YK_TRY(yk_dataset_open(path, &o, YK_TRAIN, &j->train));
  if (!with_test) return YK_OK;
  if (with_train && yk_dataset_classes(j->train) > 0) o.classes = yk_dataset_classes(j->train);
  if (with_train || c->classes > 0) return open_test(c, path, &o, &j->test);
  /* Test data alone may lack the last class; the training data know, if they are there. */
  YK_TRY(open_test(c, path, &o, &j->test));
  if (strcmp(yk_dataset_name(j->test), "cifar10") == 0) return YK_OK;
  yk_dataset *train = NULL;
  if (yk_dataset_open(path, &o, YK_TRAIN, &train) != YK_OK) {
    yk_error_clear();
    return YK_OK;
  }
  o.classes = yk_dataset_classes(train);
  yk_dataset_free(train);
  if (o.classes <= yk_dataset_classes(j->test)) return YK_OK;
  yk_dataset_free(j->test);
  j->test = NULL;
  return open_test(c, path, &o, &j->test);
}

/* Do class numbers mean the same? */
static yk_code compare_classes(const yk_job *j) {
  if (j->train == NULL || j->test == NULL) return YK_OK;
  for (int64_t k = 0; k < yk_dataset_classes(j->train); k++) {
    const char *a = yk_dataset_class_name(j->train, k), *b = yk_dataset_class_name(j->test, k);
    if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
      return YK_FAIL(EINVAL, "class %lld is '%s' in the training data and '%s' in the test data", (long long)k,
                     a != NULL ? a : "", b != NULL ? b : "");
  }
  return YK_OK;
}

static const char *text_of(const yk_dataset *d, uint32_t k, char text[160]) {
  const yk_desc *c = yk_dataset_component(d, k);
  int n = snprintf(text, 160, "%.60s %s[", yk_dataset_component_name(d, k), yk_dtype_name((yk_dtype)c->dtype));
  for (int i = 0; i < c->rank && n < 120; i++)
    n += snprintf(text + n, 160 - (size_t)n, "%s%lld", i > 0 ? "," : "", (long long)c->dim[i]);
  snprintf(text + n, 160 - (size_t)n, "]");
  return text;
}

/* A network reads one thing and is told its class. */
static yk_code check_use(const yk_job *j, const yk_dataset *d) {
  char a[160], b[160];
  uint32_t n = yk_dataset_components(d);
  const yk_desc *label = yk_dataset_component(d, 1);
  if (n != 2 || label->dtype != YK_I32 || label->rank != 0 || strcmp(yk_dataset_component_name(d, 1), "label") != 0 ||
      yk_dataset_classes(d) < 1)
    return YK_FAIL(EINVAL, "the networks learn classes: they take one input and one label; an example here has %s%s%s%s",
                   text_of(d, 0, a), n > 1 ? ", " : " and no label", n > 1 ? text_of(d, 1, b) : "", n > 2 ? " and more" : "");
  if (j->model->image_size != 0 && yk_dataset_shape(d).rank == 0)
    return YK_FAIL(EINVAL, "%s takes pictures; an example here has %s", j->model->name, text_of(d, 0, a));
  return YK_OK;
}

int yk__job_open_data(const yk_cli *c, yk_job *j, bool with_train, bool with_test) {
  char buffer[4096];
  const char *path = find(c->data, buffer, sizeof buffer);
  yk_code rc = YK_OK;
  if (path == NULL && with_train) rc = yk_dataset_shapes10(SHAPES_SEED, YK_TRAIN, 0, &j->train);
  if (path == NULL && rc == YK_OK && with_test) rc = yk_dataset_shapes10(SHAPES_SEED, YK_TEST, 0, &j->test);
  if (path != NULL) rc = open_both(c, j, path, with_train, with_test);
  if (rc == YK_OK) rc = compare_classes(j);
  if (rc == YK_OK && j->train != NULL) rc = check_use(j, j->train);
  if (rc == YK_OK && j->test != NULL) rc = check_use(j, j->test);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "data: %s", yk_error_message());
}

int64_t yk__job_skipped(const yk_job *j, const char **first) {
  const char *f[2] = { "", "" };
  int64_t train = j->train != NULL ? yk_dataset_skipped(j->train, &f[0]) : 0;
  int64_t test = j->test != NULL ? yk_dataset_skipped(j->test, &f[1]) : 0;
  *first = train > 0 ? f[0] : f[1];
  return train + test;
}

void yk__job_say_skipped(const yk_job *j, FILE *out) {
  const char *first;
  int64_t n = yk__job_skipped(j, &first);
  if (n > 0) fprintf(out, "%lld corrupt record%s passed over; the first: %s\n", (long long)n, n > 1 ? "s were" : " was", first);
}
