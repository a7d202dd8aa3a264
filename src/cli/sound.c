/*
 * sound.c - NaN and infinity in a training run: whether to look for them, and where one came from.
 *
 * The step itself keeps a bad update from happening, so its input can be taken from the queue again and the same step be
 * walked through, one operation at a time.
 */
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "cli/cli.h"

int yk__sound_parse(const yk_cli *c, yk_job *j) {
  const char *what = c->nan_check != NULL ? c->nan_check : "finite";
  j->guard = strcmp(what, "off") != 0;
  j->nan_only = strcmp(what, "nan") == 0;
  if (!j->guard || j->nan_only || strcmp(what, "finite") == 0) return 0;
  return yk__die(YK__EXIT_USAGE, "--nan-check '%s': expected finite, nan or off", yk__shown(what));
}

yk_value yk__sound_build(yk_graph *g, bool nan_only) {
  size_t n = 0, total = yk_variable_count(g);
  yk_value *v = yk__calloc(total + 1, sizeof *v), ok = { 0 };
  if (v == NULL) return yk_graph_fail_at(YK_HERE, g, YK_ENOMEM, "no memory to look at %zu variables", total);
  for (size_t i = 0; i < total; i++) {
    const yk_variable *x = yk_variable_get(g, i);
    if ((YK_T(yk_variable_desc(x)->dtype) & YK_FLOATS) != 0) v[n++] = yk_read(x);
  }
  if (n > 0) ok = yk_all_good(g, n, v, 0, NULL, nan_only);
  yk__free(v);
  return ok;
}

/* Texts are for a message: without memory for one there is none. */
static char *text_of(const yk_finding *f) {
  char *text = NULL;
  if (yk_finding_text(f, &text) != YK_OK) yk_error_clear();
  return text;
}

char *yk__sound_variables(const yk_job *j) {
  const yk_tensor *const *got;
  yk_finding f = YK_FINDING_INIT;
  if (j->check == NULL || yk_step_run(j->check, NULL, &got) != YK_OK || yk_tensor_at(got[0], 0) != 0 ||
      yk_step_examine(j->check, NULL, &f) != YK_OK) {
    yk_error_clear();
    return NULL;
  }
  return text_of(&f);
}

/* Back by one batch. */
static yk_code step_back(const yk_job *j) {
  int64_t n = yk_dataset_size(j->train);
  yk_position p = yk_queue_position(j->queue);
  int64_t at = p.epoch * n + p.example - j->batch;
  return yk_queue_seek(j->queue, (yk_position){ at / n, at % n });
}

/* A tower's rows are those of the batch behind what the towers before it take. */
static void count_in_batch(const yk_job *j, yk_finding *f) {
  size_t n = j->towers.replicas;
  unsigned tower = 0;
  if (f->row < 0 || n < 2 || sscanf(f->name, "tower_%5u/", &tower) != 1 || tower >= n) return;
  if (f->rows != yk_replica_share(j->batch, n, tower)) return;
  for (size_t i = 0; i < tower; i++) f->row += yk_replica_share(j->batch, n, i);
  f->rows = j->batch;
}

char *yk__sound_examine(const yk_job *j, yk_finding *out) {
  *out = (yk_finding)YK_FINDING_INIT;
  yk_code rc = step_back(j);
  if (rc == YK_OK) rc = yk_step_examine(j->last, NULL, out);
  if (rc == YK_OK) rc = step_back(j);
  if (rc != YK_OK) {
    char *why = yk__strdup(yk_error_message());
    yk_error_clear();
    return why;
  }
  count_in_batch(j, out);
  return text_of(out);
}
