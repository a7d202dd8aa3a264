/*
 * weights.c - a run's variables in a file.
 *
 * Saved is what an evaluation or another program can use: weights, their moving
 * averages, normalisation statistics, the global step; not the optimizer's slots.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/cli.h"
#include "store/safetensors.h"

static bool is_slot(const yk_graph *g, const yk_variable *v, const yk_value *slots, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (yk_variable_of(g, slots[i]) == v) return true;
  return false;
}

/* Updates can overflow although all gradients are finite: such weights are no result. */
static yk_code check(const yk_job *j, const yk_variable *v, const yk_tensor *t) {
  if (!j->guard || (YK_T(yk_tensor_desc(t)->dtype) & YK_FLOATS) == 0) return YK_OK;
  for (int64_t i = 0; i < yk_tensor_count(t); i++) {
    double x = yk_tensor_at(t, i);
    if (isnan(x) || (isinf(x) && !j->nan_only))
      return YK_FAIL(EINVAL, "variable '%s' of %s holds %s at element %lld; no weights are written", yk_variable_name(v), yk_variable_where(v),
                     isnan(x) ? "NaN" : "infinity", (long long)i);
  }
  return YK_OK;
}

static yk_code collect(const yk_job *j, size_t total, const yk_value *slots, yk_saved *list, yk_tensor **value, size_t *n) {
  size_t nslots = yk_get_collection(j->graph, YK_OPTIMIZER_VARIABLES, NULL, NULL, 0);
  for (size_t i = 0; i < total; i++) {
    yk_variable *v = yk_variable_get(j->graph, i);
    if (yk_variable_master(v) != v || is_slot(j->graph, v, slots, nslots)) continue;
    YK_TRY(yk_variable_fetch(j->session, v, &value[*n]));
    list[*n] = (yk_saved){ yk_variable_name(v), value[*n] };
    YK_TRY(check(j, v, value[(*n)++]));
  }
  return YK_OK;
}

int yk__weights_save(const yk_job *j, const char *path) {
  size_t total = yk_variable_count(j->graph), n = 0;
  yk_saved *list = yk__calloc(total + 1, sizeof *list);
  yk_tensor **value = yk__calloc(total + 1, sizeof *value);
  yk_value *slots = yk__calloc(total + 1, sizeof *slots);         /* each is a variable, so there are no more of them */
  yk_code rc = list == NULL || value == NULL || slots == NULL ? YK_ENOMEM : YK_OK;
  if (rc == YK_OK) yk_get_collection(j->graph, YK_OPTIMIZER_VARIABLES, NULL, slots, total);
  if (rc == YK_OK) rc = collect(j, total, slots, list, value, &n);
  if (rc == YK_OK) rc = yk__safetensors_write(path, n, list);
  for (size_t i = 0; i < n; i++) yk_tensor_free(value[i]);
  yk__free(list);
  yk__free(value);
  yk__free(slots);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

/* What the averaged value of `name` is called in a file, or the plain name. */
static yk_code source_of(const yk_safetensors *f, const char *name, char **out) {
  yk_str s = { 0 };
  char *averaged = NULL;
  yk__str_add(&s, "%s/ExponentialMovingAverage", name);
  YK_TRY(yk__str_take(&s, &averaged));
  if (yk__safetensors_desc(f, averaged) != NULL) return *out = averaged, YK_OK;
  yk__free(averaged);
  *out = yk__strdup(name);
  return *out != NULL ? YK_OK : YK_ENOMEM;
}

static const char *shape_text(const yk_desc *d, char *buffer, size_t bytes) {
  size_t at = (size_t)snprintf(buffer, bytes, "%s[", yk_dtype_name((yk_dtype)d->dtype));
  for (uint8_t i = 0; i < d->rank && at < bytes; i++)
    at += (size_t)snprintf(buffer + at, bytes - at, "%s%lld", i > 0 ? "," : "", (long long)d->dim[i]);
  if (at < bytes) snprintf(buffer + at, bytes - at, "]");
  return buffer;
}

static bool same(const yk_desc *a, const yk_desc *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint8_t i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

static int load_one(yk_eval *e, const yk_variable *v, const yk_safetensors *f, const char *path) {
  char *name = NULL, want[160], have[160];
  yk_tensor *value = NULL;
  int status = 0;
  yk_code rc = source_of(f, yk_variable_name(v), &name);
  const yk_desc *d = rc == YK_OK ? yk__safetensors_desc(f, name) : NULL;
  if (rc == YK_OK && d == NULL)
    status = yk__die(YK__EXIT_RUN, "'%s' has no tensor '%s'; it is not from a run of %s", path, name, e->model->name);
  else if (rc == YK_OK && !same(d, yk_variable_desc(v)))
    status = yk__die(YK__EXIT_RUN, "'%s': tensor '%s' is %s; %s needs %s", path, name, shape_text(d, have, sizeof have),
                     e->model->name,
                     shape_text(yk_variable_desc(v), want, sizeof want));
  else {
    if (rc == YK_OK) rc = yk__safetensors_get(f, name, &value);
    if (rc == YK_OK) rc = yk_variable_set(e->session, v, value);
    if (rc != YK_OK) status = yk__die_code(rc);
  }
  yk_tensor_free(value);
  yk__free(name);
  return status;
}

int yk__eval_load(yk_eval *e, const char *path) {
  yk_safetensors *f = NULL;
  int status = 0;
  yk_code rc = yk__safetensors_open(path, &f);
  if (rc != YK_OK) return yk__die_code(rc);
  for (size_t i = 0; i < yk_variable_count(e->graph) && status == 0; i++)
    status = load_one(e, yk_variable_get(e->graph, i), f, path);
  yk__safetensors_close(f);
  return status;
}
