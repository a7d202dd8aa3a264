/*
 * table.c - a data set as the inputs and targets of a network: read once, kept in memory.
 *
 * Components go where their names say, x, x0, x1, ... and y, y0, ... to inputs and outputs by number, a label to the first output, and
 * what is left in order. Numbers stay as they are in the files; --divide scales inputs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "cli/network.h"
#include "keras/keras.h"

typedef struct reading {
  const yk_cli *c;
  const yk_network *n;
  const yk_dataset *d;
  yk_table *t;
  bool all;                          /* of the examples, to predict */
  int32_t to[YK_MAX_COMPONENTS];     /* input i, or -1 - output; NONE: nowhere */
} reading;
enum { NONE = 1 << 20 };

/* ---- which component is what --------------------------------------------------------------------------------------------- */

static bool is_taken(const reading *r, uint32_t n, int32_t place) {
  for (uint32_t i = 0; i < n; i++)
    if (r->to[i] == place) return true;
  return false;
}

/* "x" or "x1" -> 0, 1; -1: neither. */
static int32_t number_behind(const char *name, char letter) {
  char *end;
  if (name[0] != letter) return -1;
  if (name[1] == '\0') return 0;
  long i = strtol(name + 1, &end, 10);
  return *end == '\0' && i >= 0 && i < 64 ? (int32_t)i : -1;
}

static int32_t place_of(const reading *r, const char *name) {
  for (uint32_t i = 0; i < r->n->nin; i++)
    if (strcmp(r->n->in[i].layer->name, name) == 0) return (int32_t)i;
  for (uint32_t i = 0; i < r->n->nout; i++)
    if (strcmp(r->n->out[i].layer->name, name) == 0) return -1 - (int32_t)i;
  int32_t x = number_behind(name, 'x'), y = number_behind(name, 'y');
  if (x >= 0 && x < (int32_t)r->n->nin) return x;
  if (y >= 0 && y < (int32_t)r->n->nout) return -1 - y;
  if (strcmp(name, "label") == 0) return -1;
  return NONE;
}

static yk_code find_places(reading *r) {
  uint32_t n = yk_dataset_components(r->d);
  for (uint32_t i = 0; i < n; i++) {
    r->to[i] = place_of(r, yk_dataset_component_name(r->d, i));
    if (r->to[i] != NONE && is_taken(r, i, r->to[i])) r->to[i] = NONE;
  }
  for (uint32_t k = 0; k < r->n->nin; k++) {
    for (uint32_t i = 0; i < n && !is_taken(r, n, (int32_t)k); i++)
      if (r->to[i] == NONE) r->to[i] = (int32_t)k;
    if (!is_taken(r, n, (int32_t)k))
      return YK_FAIL(EINVAL, "the data have nothing for input '%s'", r->n->in[k].layer->name);
  }
  for (uint32_t k = 0; k < r->n->nout; k++)
    for (uint32_t i = 0; i < n && !is_taken(r, n, -1 - (int32_t)k); i++)
      if (r->to[i] == NONE) r->to[i] = -1 - (int32_t)k;
  return YK_OK;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static yk_code read_rows(const reading *r, yk_tensor **of) {
  uint32_t n = yk_dataset_components(r->d);
  char *at[YK_MAX_COMPONENTS];
  void *row[YK_MAX_COMPONENTS];
  size_t bytes[YK_MAX_COMPONENTS];
  for (uint32_t k = 0; k < n; k++) {
    at[k] = yk_tensor_data(of[k]);
    bytes[k] = r->t->rows > 0 ? yk_tensor_bytes(of[k]) / (size_t)r->t->rows : 0;
  }
  for (int64_t i = 0; i < r->t->rows; i++) {
    for (uint32_t k = 0; k < n; k++) row[k] = at[k] + (size_t)i * bytes[k];
    YK_TRY(yk_dataset_read(r->d, i, row));
  }
  return YK_OK;
}

static yk_shape shape_of(const yk_desc *d) {
  yk_shape s = { .rank = d->rank };
  for (uint32_t i = 0; i < d->rank; i++) s.dim[i] = d->dim[i];
  return s;
}

/* The numbers as another type, divided by --divide; what is out of its range becomes the nearest one, which no table of words has. */
static yk_code convert(const reading *r, yk_dtype want, yk_tensor **t) {
  yk_tensor *made;
  double by = r->c->divide > 0 ? r->c->divide : 1;
  int64_t n = yk_tensor_count(*t);
  YK_TRY(yk_tensor_new(want, shape_of(yk_tensor_desc(*t)), &made));
  void *to = yk_tensor_data(made);
  for (int64_t i = 0; i < n; i++) {
    double x = yk_tensor_at(*t, i) / by;
    if (want == YK_F32) ((float *)to)[i] = (float)x;
    else ((int32_t *)to)[i] = (int32_t)fmin(fmax(x, INT32_MIN), INT32_MAX);
  }
  yk_tensor_free(*t);
  *t = made;
  return YK_OK;
}

/* Training takes any type batch by batch; predictions want the input's own. */
static yk_code suit_input(const reading *r, uint32_t input, yk_tensor **t) {
  yk_dtype have = (yk_dtype)yk_tensor_desc(*t)->dtype, want = (yk_dtype)yk_sym_desc(r->n->in[input])->dtype;
  bool whole = have == YK_U8 || have == YK_I32 || have == YK_I64;
  if (r->c->divide > 0) return convert(r, YK_F32, t);
  if (r->all && have != want && (want == YK_F32 || (want == YK_I32 && whole))) return convert(r, want, t);
  return YK_OK;
}

/* Class numbers beyond the output are told before training, not in its middle. */
static yk_code check_classes(const reading *r, uint32_t component, uint32_t output) {
  const yk_desc *d = yk_sym_desc(r->n->out[output]), *c = yk_dataset_component(r->d, component);
  int64_t have = yk_dataset_classes(r->d), want = d->rank > 1 ? d->dim[d->rank - 1] : -1;
  if (strcmp(yk_dataset_component_name(r->d, component), "label") != 0 || c->rank != 0 || want < 2 || have <= want) return YK_OK;
  return YK_FAIL(EINVAL, "the data have %lld classes, output '%s' of the network has %lld", (long long)have, r->n->out[output].layer->name,
                 (long long)want);
}

static yk_code hand_out(const reading *r, yk_tensor **of) {
  r->t->nx = r->n->nin;
  r->t->ny = r->n->nout;
  for (uint32_t k = 0; k < yk_dataset_components(r->d); k++) {
    if (r->to[k] == NONE) continue;
    bool input = r->to[k] >= 0;
    if (!input) YK_TRY(check_classes(r, k, (uint32_t)(-1 - r->to[k])));
    if (input) YK_TRY(suit_input(r, (uint32_t)r->to[k], &of[k]));
    if (input) r->t->x[r->to[k]] = of[k];
    else r->t->y[-1 - r->to[k]] = of[k];
    of[k] = NULL;
  }
  return YK_OK;
}

static yk_code read_all(reading *r) {
  yk_tensor *of[YK_MAX_COMPONENTS] = { NULL };
  uint32_t n = yk_dataset_components(r->d);
  yk_code rc = find_places(r);
  r->t->rows = yk_dataset_size(r->d);
  for (uint32_t k = 0; k < n && rc == YK_OK; k++) {
    const yk_desc *d = yk_dataset_component(r->d, k);
    yk_shape s = { .rank = d->rank + 1u, .dim = { r->t->rows } };
    for (uint32_t i = 0; i < d->rank; i++) s.dim[i + 1] = d->dim[i];
    rc = yk_tensor_new((yk_dtype)d->dtype, s, &of[k]);
  }
  if (rc == YK_OK) rc = read_rows(r, of);
  if (rc == YK_OK) rc = hand_out(r, of);
  for (uint32_t k = 0; k < n; k++) yk_tensor_free(of[k]);
  return rc;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------- */

/* Encoded pictures are decoded to what the first input takes, `d`. */
static yk_dataset_options options(const yk_cli *c, const yk_desc *d, bool all) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  o.format = c->data_format;
  o.label = c->label;
  o.classes = c->classes;
  o.skip = c->skip_corrupt;
  o.holdout = all || c->test_data != NULL ? 0 : c->holdout;
  if (d->rank == 4 && d->dim[1] > 0) o.height = d->dim[1];
  if (d->rank == 4 && d->dim[2] > 0) o.width = d->dim[2];
  if (d->rank == 4 && d->dim[3] > 0) o.channels = d->dim[3];
  return o;
}

static yk_code open_data(const yk_cli *c, const yk_desc *in, yk_split split, bool all, yk_dataset **out) {
  yk_dataset_options o = options(c, in, all);
  const char *path = (split == YK_TEST || c->data == NULL) && c->test_data != NULL ? c->test_data : c->data;
  yk_code rc = strcmp(path, "shapes10") == 0 ? yk_dataset_shapes10(1, split, 0, out) : yk_dataset_open(path, &o, split, out);
  if (rc != YK_ENOTFOUND || !(all || path == c->test_data)) return rc;
  yk_error_clear();                                        /* no part that says so: all of it */
  return yk_dataset_open(path, &o, split == YK_TEST ? YK_TRAIN : YK_TEST, out);
}

int yk__table_open(const yk_cli *c, const yk_network *n, yk_split split, bool all, yk_table *out) {
  yk_dataset *d = NULL;
  if (c->data == NULL && !(split == YK_TEST && c->test_data != NULL)) return yk__die(YK__EXIT_USAGE, "which data? --data PATH");
  yk_code rc = open_data(c, yk_sym_desc(n->in[0]), split, all, &d);
  if (rc == YK_OK) {
    reading r = { .c = c, .n = n, .d = d, .t = out, .all = all };
    rc = read_all(&r);
  }
  yk_dataset_free(d);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "data: %s", yk_error_message());
}

/* ---- looking at the data before there is a network --------------------------------------------------------------------------- */

static bool is_target(const yk_dataset *d, uint32_t k) {
  const char *name = yk_dataset_component_name(d, k);
  return strcmp(name, "label") == 0 || number_behind(name, 'y') >= 0;
}

/* The input is called x, or is the first that is no target. */
static uint32_t find_component(const yk_dataset *d, bool target) {
  uint32_t n = yk_dataset_components(d), found = n;
  for (uint32_t k = n; k-- > 0;)
    if (is_target(d, k) == target) found = k;
  for (uint32_t k = 0; k < n && !target; k++)
    if (number_behind(yk_dataset_component_name(d, k), 'x') == 0) return k;
  return found;
}

/* One more than the largest of the whole numbers that component k has. */
static yk_code count_classes(const yk_dataset *d, uint32_t k, int64_t *out) {
  yk_tensor *one[YK_MAX_COMPONENTS] = { NULL };
  void *row[YK_MAX_COMPONENTS];
  yk_code rc = YK_OK;
  int64_t most = -1;
  for (uint32_t i = 0; i < yk_dataset_components(d) && rc == YK_OK; i++) {
    const yk_desc *c = yk_dataset_component(d, i);
    rc = yk_tensor_new((yk_dtype)c->dtype, shape_of(c), &one[i]);
    if (rc == YK_OK) row[i] = yk_tensor_data(one[i]);
  }
  for (int64_t r = 0; r < yk_dataset_size(d) && rc == YK_OK; r++) {
    rc = yk_dataset_read(d, r, row);
    if (rc == YK_OK && yk_tensor_at(one[k], 0) > (double)most) most = (int64_t)yk_tensor_at(one[k], 0);
  }
  for (uint32_t i = 0; i < yk_dataset_components(d); i++) yk_tensor_free(one[i]);
  *out = most + 1;
  return rc;
}

/* As many as the target tells: a label, whole numbers, or a number for each class. */
static yk_code look_at_target(const yk_dataset *d, yk_look *out) {
  uint32_t k = find_component(d, true);
  if (k == yk_dataset_components(d)) return YK_OK;
  const yk_desc *c = yk_dataset_component(d, k);
  bool whole = c->dtype == YK_I32 || c->dtype == YK_I64 || c->dtype == YK_U8, single = c->rank == 0 || (c->rank == 1 && c->dim[0] == 1);
  out->classes = yk_dataset_classes(d);
  if (out->classes > 0 && strcmp(yk_dataset_component_name(d, k), "label") == 0) return YK_OK;
  if (single && whole) return count_classes(d, k, &out->classes);
  out->one_hot = true;
  out->classes = c->rank == 1 ? c->dim[0] : 0;
  if (c->rank == 1 && !single) return YK_OK;
  return YK_FAIL(EINVAL, "the target '%s' has type %s and %u dimensions; expected the number of a class, or a number for each class",
                 yk_dataset_component_name(d, k), yk_dtype_name((yk_dtype)c->dtype), (unsigned)c->rank);
}

static yk_code look(const yk_dataset *d, yk_look *out) {
  uint32_t k = find_component(d, false);
  if (k == yk_dataset_components(d)) return YK_FAIL(EINVAL, "there is no input in them");
  out->there = true;
  out->input = shape_of(yk_dataset_component(d, k));
  out->encoded = strcmp(yk_dataset_name(d), "folder") == 0;
  return look_at_target(d, out);
}

int yk__table_look(const yk_cli *c, int64_t side, yk_look *out) {
  yk_desc in = { .rank = side > 0 ? 4 : 0, .dim = { -1, side, side, -1 } };
  yk_dataset *d = NULL;
  if (c->data == NULL && c->test_data == NULL) return 0;
  yk_code rc = open_data(c, &in, YK_TRAIN, true, &d);
  if (rc == YK_OK) rc = look(d, out);
  yk_dataset_free(d);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "data: %s", yk_error_message());
}

void yk__table_free(yk_table *t) {
  for (uint32_t i = 0; i < t->nx; i++) yk_tensor_free(t->x[i]);
  for (uint32_t i = 0; i < t->ny; i++) yk_tensor_free(t->y[i]);
  t->nx = t->ny = 0;
}

yk_examples yk__table_examples(const yk_table *t) {
  return (yk_examples){ .x = (const yk_tensor *const *)t->x, .y = (const yk_tensor *const *)t->y };
}
