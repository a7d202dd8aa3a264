/*
 * logs.c - see logs.h.
 *
 * Names are few and short, so they are looked for one after the other and kept in place.
 */
#include "keras/logs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"

/* ---- logs ------------------------------------------------------------------------------------------------------------------ */

void yk__logs_clear(yk_logs *l) { l->n = 0; }
void yk__logs_free(yk_logs *l) {
  yk__free(l->at);
  *l = (yk_logs){ 0 };
}

size_t yk_logs_count(const yk_logs *l) { return l != NULL ? l->n : 0; }
const char *yk_logs_name(const yk_logs *l, size_t i) { return l != NULL && i < l->n ? l->at[i].name : NULL; }
double yk_logs_at(const yk_logs *l, size_t i) { return l != NULL && i < l->n ? l->at[i].value : NAN; }

bool yk_logs_get(const yk_logs *l, const char *name, double *out) {
  for (uint32_t i = 0; l != NULL && name != NULL && i < l->n; i++)
    if (strcmp(l->at[i].name, name) == 0) return *out = l->at[i].value, true;
  return false;
}

yk_code yk_logs_set(yk_logs *l, const char *name, double value) {
  if (l == NULL || name == NULL || name[0] == '\0' || strlen(name) >= YK__LOG_NAME)
    return YK_FAIL(EINVAL, "yk_logs_set: needs logs and a name of 1 to %d characters", YK__LOG_NAME - 1);
  for (uint32_t i = 0; i < l->n; i++)
    if (strcmp(l->at[i].name, name) == 0) return l->at[i].value = value, YK_OK;
  if (!yk__grow((void **)&l->at, &l->cap, l->n + 1, sizeof *l->at)) return YK_ENOMEM;
  snprintf(l->at[l->n].name, YK__LOG_NAME, "%s", name);
  l->at[l->n++].value = value;
  return YK_OK;
}

/* ---- history ---------------------------------------------------------------------------------------------------------------- */

static yk_code make_room(yk_history *h) {
  if (h->epochs < h->room) return YK_OK;
  size_t room = h->room > 0 ? 2 * h->room : 16;
  for (uint32_t i = 0; i < h->n; i++) {
    double *more = yk__realloc(h->list[i].value, room, sizeof *more);
    if (more == NULL) return YK_ENOMEM;
    h->list[i].value = more;
  }
  h->room = room;
  return YK_OK;
}

static yk_code new_list(yk_history *h, const char *name) {
  double *value = yk__alloc(h->room * sizeof *value);
  if (value == NULL || !yk__grow((void **)&h->list, &h->cap, h->n + 1, sizeof *h->list)) {
    yk__free(value);
    return YK_ENOMEM;
  }
  for (size_t e = 0; e < h->room; e++) value[e] = NAN;
  snprintf(h->list[h->n].name, YK__LOG_NAME, "%s", name);
  h->list[h->n++].value = value;
  return YK_OK;
}

yk_code yk__history_add(yk_history *h, const yk_logs *l) {
  YK_TRY(make_room(h));
  for (uint32_t i = 0; i < l->n; i++)
    if (yk_history_values(h, l->at[i].name) == NULL) YK_TRY(new_list(h, l->at[i].name));
  for (uint32_t i = 0; i < h->n; i++) {
    h->list[i].value[h->epochs] = NAN;
    yk_logs_get(l, h->list[i].name, &h->list[i].value[h->epochs]);
  }
  h->epochs++;
  return YK_OK;
}

void yk_history_free(yk_history *h) {
  if (h == NULL) return;
  for (uint32_t i = 0; i < h->n; i++) yk__free(h->list[i].value);
  yk__free(h->list);
  yk__free(h);
}

size_t yk_history_epochs(const yk_history *h) { return h != NULL ? h->epochs : 0; }
const char *yk_history_name(const yk_history *h, size_t i) { return h != NULL && i < h->n ? h->list[i].name : NULL; }

const double *yk_history_values(const yk_history *h, const char *name) {
  for (uint32_t i = 0; h != NULL && name != NULL && i < h->n; i++)
    if (strcmp(h->list[i].name, name) == 0) return h->list[i].value;
  return NULL;
}
