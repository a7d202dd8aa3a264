/*
 * restore.c - from the tensors of a file to the variables of a graph: by name, with renames, all of it or a part.
 *
 * First every variable is matched and everything that does not fit is written down; only then, and only if what does not fit
 * is allowed, do values move.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph.h"
#include "run/run.h"
#include "store/checkpoint.h"
#include "tensor/desc.h"

typedef struct match {
  const yk_checkpoint *c;
  const yk_graph *g;
  yk_restore_options o;
  bool all;                          /* write down what is allowed too */
  uint32_t *index;                   /* [n] variables that fit, and */
  const void **data;                 /* [n] their values */
  uint32_t n;
  bool *used;                        /* [count of tensors] */
  bool *fits;                        /* [nrenames + nonly] is for some variable */
  yk_map at;                         /* tensors by name */
  yk_str lines;
  uint32_t missing, unexpected, mismatch;   /* not allowed */
} match;

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_start(const char *s) {
  size_t n = strlen(s);
  return n == 0 || s[n - 1] == '/';
}

static bool begins(const char *name, const char *start) {
  return strncmp(name, start, strlen(start)) == 0;
}

static bool chosen(match *m, const char *name) {
  bool yes = m->o.nonly == 0;
  for (size_t i = 0; i < m->o.nonly; i++) {
    const char *want = m->o.only[i];
    if (strcmp(name, want) != 0 && !(is_start(want) && begins(name, want))) continue;
    m->fits[m->o.nrenames + i] = true;
    yes = true;
  }
  return yes;
}

/* Name of the tensor for variable `name`. *out: yk__free(). */
static yk_code tensor_of(match *m, const char *name, char **out) {
  yk_str s = { 0 };
  for (size_t i = 0; i < m->o.nrenames; i++) {
    const yk_rename *r = &m->o.renames[i];
    bool whole = strcmp(name, r->variable) == 0 && !is_start(r->variable);
    if (!whole && !(is_start(r->variable) && begins(name, r->variable))) continue;
    m->fits[i] = true;
    yk__str_add(&s, "%s%s", r->tensor, whole ? "" : name + strlen(r->variable));
    return yk__str_take(&s, out);
  }
  *out = yk__strdup(name);
  return *out != NULL ? YK_OK : YK_ENOMEM;
}

static yk_code check_options(const yk_restore_options *o) {
  for (size_t i = 0; i < o->nrenames; i++) {
    const yk_rename *r = &o->renames[i];
    if (r->variable == NULL || r->tensor == NULL || is_start(r->variable) != is_start(r->tensor))
      return YK_FAIL(EINVAL, "rename %zu, from tensor '%s' to variable '%s': both must be whole names, or starts that end in '/'", i,
                     r->tensor != NULL ? r->tensor : "NULL", r->variable != NULL ? r->variable : "NULL");
  }
  for (size_t i = 0; i < o->nonly; i++)
    if (o->only[i] == NULL) return YK_FAIL(EINVAL, "name %zu of those to restore is NULL", i);
  return YK_OK;
}

/* A rename or a choice that is for no variable is a mistake in it. */
static yk_code check_fits(const match *m) {
  for (size_t i = 0; i < m->o.nrenames; i++)
    if (!m->fits[i])
      return YK_FAIL(EINVAL, "the rename from tensor '%s' to variable '%s' is for no variable", m->o.renames[i].tensor, m->o.renames[i].variable);
  for (size_t i = 0; i < m->o.nonly; i++)
    if (!m->fits[m->o.nrenames + i]) return YK_FAIL(EINVAL, "no variable is called or begins with '%s'", m->o.only[i]);
  return YK_OK;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static void miss(match *m, const yk_variable *v, const char *tensor) {
  char text[YK__DESC_TEXT];
  if (!m->o.allow_missing) m->missing++;
  if (m->o.allow_missing && !m->all) return;
  yk__str_add(&m->lines, "missing %s: the file has no tensor '%s' for this variable %s\n", v->name, tensor,
              yk__desc_text(&v->desc, text, sizeof text));
}

static yk_code match_variable(match *m, uint32_t i) {
  const yk_variable *v = m->g->variable[i];
  char *name = NULL, a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  uint32_t k = 0;
  if (v->master != NULL || !chosen(m, v->name)) return YK_OK;    /* a copy gets its master's value */
  YK_TRY(tensor_of(m, v->name, &name));
  const yk_desc *d = yk__safetensors_desc(m->c->file, name);
  if (d == NULL) miss(m, v, name);
  else if (d->dtype != v->desc.dtype || !yk__desc_same_shape(d, &v->desc)) {
    m->mismatch++;
    yk__str_add(&m->lines, "mismatch %s: tensor '%s' is %s, the variable is %s\n", v->name, name, yk__desc_text(d, a, sizeof a),
                yk__desc_text(&v->desc, b, sizeof b));
  } else {
    m->index[m->n] = i;
    m->data[m->n++] = yk__safetensors_data(m->c->file, name);
  }
  if (yk__map_get(&m->at, name, &k)) m->used[k] = true;
  yk__free(name);
  return YK_OK;
}

static void match_rest(match *m) {
  char text[YK__DESC_TEXT];
  for (size_t i = 0; i < yk__safetensors_count(m->c->file) && m->o.nonly == 0; i++) {
    const char *name = yk__safetensors_name(m->c->file, i);
    if (m->used[i]) continue;
    if (!m->o.allow_unexpected) m->unexpected++;
    if (m->o.allow_unexpected && !m->all) continue;
    yk__str_add(&m->lines, "unexpected %s: no variable takes this tensor %s\n", name,
                yk__desc_text(yk__safetensors_desc(m->c->file, name), text, sizeof text));
  }
}

static void match_free(match *m) {
  yk__free(m->index);
  yk__free(m->data);
  yk__free(m->used);
  yk__free(m->fits);
  yk__map_free(&m->at);
  yk__str_free(&m->lines);
}

static yk_code match_all(match *m) {
  size_t tensors = yk__safetensors_count(m->c->file);
  m->index = yk__calloc((size_t)m->g->nvariable + 1, sizeof *m->index);
  m->data = yk__calloc((size_t)m->g->nvariable + 1, sizeof *m->data);
  m->used = yk__calloc(tensors + 1, sizeof *m->used);
  m->fits = yk__calloc(m->o.nrenames + m->o.nonly + 1, sizeof *m->fits);
  if (m->index == NULL || m->data == NULL || m->used == NULL || m->fits == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < tensors; i++)
    if (!yk__map_set(&m->at, yk__safetensors_name(m->c->file, i), i)) return YK_ENOMEM;
  for (uint32_t i = 0; i < m->g->nvariable; i++) YK_TRY(match_variable(m, i));
  match_rest(m);
  return check_fits(m);
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. */
static yk_code take_options(const yk_restore_options *given, yk_restore_options *o) {
  *o = (yk_restore_options)YK_RESTORE_OPTIONS_INIT;
  if (given == NULL) return YK_OK;
  if (given->size < sizeof given->size || given->size > 4096)
    return YK_FAIL(EINVAL, "yk_restore_options.size is %u; start from YK_RESTORE_OPTIONS_INIT", given->size);
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  return check_options(o);
}

yk_code yk_checkpoint_compare(const yk_checkpoint *c, const yk_graph *g, const yk_restore_options *options, char **out) {
  match m = { .c = c, .g = g, .all = true };
  if (c == NULL || g == NULL || out == NULL)
    return YK_FAIL(EINVAL, "yk_checkpoint_compare needs a checkpoint, a graph and a place for the result");
  YK_TRY(take_options(options, &m.o));
  yk__str_put(&m.lines, "", 0);
  yk_code rc = match_all(&m);
  if (rc == YK_OK) rc = yk__str_take(&m.lines, out);
  match_free(&m);
  return rc;
}

/* What is wrong, with the first lines of it. */
static yk_code refuse(match *m) {
  enum { MOST = 1500 };
  char *text = NULL;
  YK_TRY(yk__str_take(&m->lines, &text));
  size_t n = strlen(text);
  for (char *p = text; *p != '\0'; p++)
    if (*p == '\n') *p = ';';
  if (n > 0) text[--n] = '\0';
  yk_code rc = m->mismatch > 0 ? YK_EINVAL : YK_ENOTFOUND;
  rc = yk__fail(rc, __FILE__, __LINE__, "'%s' does not fit the graph: %u missing, %u unexpected, %u mismatched; nothing was changed. "
                "%.*s%s", m->c->path, m->missing, m->unexpected, m->mismatch, (int)(n < MOST ? n : MOST), text, n > MOST ? " ..." : "");
  yk__free(text);
  return rc;
}

static yk_code restore(match *m, yk_session *s) {
  const char *text = yk__safetensors_note(m->c->file, YK__NOTE_COUNTER);
  int64_t counter = 0;
  YK_TRY(match_all(m));
  if (m->missing + m->unexpected + m->mismatch > 0) return refuse(m);
  bool has = !m->o.keep_counter && text != NULL && yk__parse_i64(text, 0, INT64_MAX, &counter);
  return yk__vars_write(s, m->n, m->index, m->data, has ? &counter : NULL);
}

yk_code yk_checkpoint_restore(const yk_checkpoint *c, yk_session *session, const yk_restore_options *options) {
  match m = { .c = c };
  if (c == NULL || session == NULL) return YK_FAIL(EINVAL, "yk_checkpoint_restore needs a checkpoint and a session");
  YK_TRY(take_options(options, &m.o));
  m.g = session->g;
  yk_code rc = restore(&m, session);
  match_free(&m);
  return rc;
}
