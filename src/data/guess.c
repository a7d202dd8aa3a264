/*
 * guess.c - which features of a tf.Example are the picture, the label, and numbers, judged by one record.
 *
 * The names are those that TensorFlow's own tools write: image/encoded and image/class/label, or image_raw with height, width and
 * depth beside it. Whoever has others names the features.
 */
#include <inttypes.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "data/picture.h"
#include "data/tfrecord.h"

typedef struct yk_guess { yk_span record; const yk_dataset_options *o; yk_slot *found; const char **component; uint32_t *n; } yk_guess;

static yk_code add(yk_guess *g, const yk_entry *e, const yk_slot *s, const char *component) {
  if (*g->n == YK_MAX_COMPONENTS)
    return YK_FAIL(EINVAL, "it has more than %d features of numbers; options.features chooses among them", YK_MAX_COMPONENTS);
  char *name = yk__strndup((const char *)e->name.p, (size_t)(e->name.end - e->name.p));
  if (name == NULL) return YK_ENOMEM;
  g->found[*g->n] = *s;
  g->found[*g->n].name = name;
  g->component[(*g->n)++] = component;
  return YK_OK;
}

/* An integer feature of one value, called so or "image/" and so; 0 if there is none. */
static int64_t whole(const yk_guess *g, const char *name) {
  char full[64] = "image/";
  yk_entry e;
  int64_t v = 0;
  memcpy(full + 6, name, strlen(name) + 1);
  for (int way = 0; way < 2 && v == 0; way++)
    if (yk__example_find(g->record, way == 0 ? name : full, &e) != YK_OK || yk__list_numbers(&e, YK_I64, 1, &v) != YK_OK) v = 0;
  yk_error_clear();
  return v;
}

/* Does the record tell a shape that has exactly n bytes? */
static bool raw_shape(const yk_guess *g, int64_t n, yk_shape *out) {
  int64_t h = whole(g, "height"), w = whole(g, "width"), c = whole(g, "depth");
  if (c == 0) c = whole(g, "channels");
  if (h < 1 || w < 1 || c < 1 || h > n || w > n || c > n || h > n / w || h * w > n / c || h * w * c != n) return false;
  *out = YK_SHAPE(h, w, c);
  return true;
}

/* The one feature that is a picture; *is stays false if this one is not. */
static yk_code try_picture(yk_guess *g, const yk_entry *e, bool *is) {
  yk_slot s = { .dtype = YK_U8 };
  yk_span b;
  if (e->kind != YK_LIST_BYTES) return YK_OK;
  if (yk__list_bytes(e, &b) != YK_OK) {
    yk_error_clear();
    return YK_OK;
  }
  size_t n = (size_t)(b.end - b.p);
  s.encoded = yk__picture_coding(b.p, n) != YK_CODING_NONE;
  if (s.encoded) {
    int64_t h = g->o->height, w = g->o->width;
    if (h == 0) YK_TRY(yk__picture_size(b.p, n, &h, &w));
    s.shape = YK_SHAPE(h, w, g->o->channels);
  } else if (!raw_shape(g, (int64_t)n, &s.shape)) {
    return YK_OK;
  }
  *is = true;
  return add(g, e, &s, "image");
}

static bool is_label(const yk_guess *g, const yk_entry *e) {
  static const char *const usual[] = { "label", "image/class/label", "class", "y", "target" };
  if (e->kind != YK_LIST_INTS || yk__list_count(e) != 1) return false;
  if (g->o->label != NULL) return yk__span_is(e->name, g->o->label);
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
    if (yk__span_is(e->name, usual[i])) return true;
  return false;
}

static yk_code add_numbers(yk_guess *g, const yk_entry *e) {
  int64_t n = yk__list_count(e);
  yk_slot s = { .dtype = e->kind == YK_LIST_FLOATS ? YK_F32 : YK_I64, .shape = n == 1 ? YK_SCALAR : YK_SHAPE(n) };
  if (e->kind == YK_LIST_BYTES || e->kind == YK_LIST_NONE || n == 0) return YK_OK;
  return n < 0 ? YK_FAIL(ECORRUPT, "a feature of it is malformed") : add(g, e, &s, NULL);
}

/* What is done with the features of one round: pictures first, since it is them that networks read; then labels; then the others. */
static yk_code round_of(yk_guess *g, int round, bool *picture, bool *label) {
  const uint8_t *at = NULL;
  const char *why;
  yk_entry e;
  while (yk__example_next(g->record, &at, &e, &why)) {
    bool labels = is_label(g, &e);
    if (round == 0 && !*picture) YK_TRY(try_picture(g, &e, picture));
    if (round == 1 && !*picture && !labels) YK_TRY(add_numbers(g, &e));
    if (round != 2 || !labels || *label) continue;
    *label = true;
    YK_TRY(add(g, &e, &(yk_slot){ .dtype = YK_I32, .shape = YK_SCALAR }, "label"));
  }
  return why == NULL ? YK_OK : YK_FAIL(ECORRUPT, "%s", why);
}

yk_code yk__tfrecord_guess(yk_span record, const yk_dataset_options *o, yk_slot found[YK_MAX_COMPONENTS],
                           const char *component[YK_MAX_COMPONENTS],
                           uint32_t *n) {
  yk_guess g = { .record = record, .o = o, .found = found, .component = component, .n = n };
  bool picture = false, label = false;
  for (int round = 0; round < 3; round++) YK_TRY(round_of(&g, round, &picture, &label));
  if (o->label != NULL && !label)
    return YK_FAIL(EINVAL, "it has no feature '%s' of one integer, which was to be the label", o->label);
  return *n > 0 ? YK_OK : YK_FAIL(EINVAL, "no feature of it is a picture or numbers; options.features tells what to read");
}
