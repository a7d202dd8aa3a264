/*
 * Pictures of networks, read back from their SVG: every layer and every arrow once, boxes that do not overlap, arrows that meet no box on
 * their way, and text that is XML whatever names say.
 */
#include "support/check.h"
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>

enum { MOST = 200, SAMPLES = 24 };
typedef struct box { char name[80]; double x, y, w, h; bool frame; } box;
typedef struct drawing {
  char *text;
  box box[MOST];
  size_t nbox, narrow;
  char arrow[MOST][160];               /* "a -> b" */
  char *way[MOST];                     /* what is behind d=" of each */
} drawing;

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
  fclose(f);
  return text;
}

static void name_at(const char *text, char *out, size_t n) {
  const char *from = strstr(text, "<title>") + 7, *to = strstr(from, "</title>");
  assert_true((size_t)(to - from) < n);
  memcpy(out, from, (size_t)(to - from));
  out[to - from] = '\0';
}

static void draw(const yk_network *n, bool expand, drawing *d) {
  char path[] = "/tmp/yoke-plot-XXXXXX";
  yk_plot_options o = YK_PLOT_OPTIONS_INIT;
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  o.expand_nested = expand;
  CHECK_OK(yk_network_plot(n, path, &o));
  memset(d, 0, sizeof *d);
  d->text = read_file(path);
  CHECK_INT(unlink(path), 0);
  for (char *at = d->text; (at = strstr(at, "<g class=\"")) != NULL; at++) {
    box *b = &d->box[d->nbox++];
    assert_true(d->nbox < MOST);
    b->frame = strncmp(at + 10, "network", 7) == 0;
    name_at(at, b->name, sizeof b->name);
    CHECK_INT(sscanf(strstr(at, "<rect "), "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &b->x, &b->y, &b->w, &b->h), 4);
  }
  for (char *at = d->text; (at = strstr(at, "<path class=\"arrow\"")) != NULL; at++) {
    assert_true(d->narrow < MOST);
    d->way[d->narrow] = strstr(at, " d=\"") + 4;
    name_at(at, d->arrow[d->narrow++], sizeof d->arrow[0]);
  }
}

static const box *box_called(const drawing *d, const char *name) {
  const box *found = NULL;
  for (size_t i = 0; i < d->nbox; i++)
    if (strcmp(d->box[i].name, name) == 0) {
      if (found != NULL) fail_msg("'%s' is drawn twice", name);
      found = &d->box[i];
    }
  if (found == NULL) fail_msg("no box '%s'", name);
  return found;
}

static void has_arrows(const drawing *d, size_t n, const char *const *pairs) {      /* "a", "b" */
  CHECK_INT(d->narrow, n);
  for (size_t i = 0; i < n; i++) {
    char want[160];
    int times = 0;
    snprintf(want, sizeof want, "%s &#8594; %s", pairs[2 * i], pairs[2 * i + 1]);
    for (size_t k = 0; k < d->narrow; k++) times += strcmp(d->arrow[k], want) == 0;
    if (times != 1) fail_msg("%d arrows '%s'", times, want);
  }
}

static bool overlap(const box *a, const box *b) {
  return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}
static bool within(const box *b, double x, double y, double by) {
  return x > b->x + by && x < b->x + b->w - by && y > b->y + by && y < b->y + b->h - by;
}

/* A point that an arrow goes through: in no box, and in no frame that it is not a part of. */
static void check_point(const drawing *d, size_t arrow, double x, double y, double from_x, double from_y) {
  for (size_t i = 0; i < d->nbox; i++) {
    const box *b = &d->box[i];
    if (b->frame && within(b, from_x, from_y, 1)) continue;
    if (within(b, x, y, 1)) fail_msg("%s runs through '%s' at %g, %g", d->arrow[arrow], b->name, x, y);
  }
}

/* M x y, then V y and C x y x y x y. */
static void follow(const drawing *d, size_t arrow) {
  double at[2], begin[2], c[6], to;
  char *p = d->way[arrow];
  int used;
  CHECK_INT(sscanf(p, "M %lf %lf%n", &at[0], &at[1], &used), 2);
  memcpy(begin, at, sizeof at);
  for (p += used; *p != '"'; p += used) {
    if (sscanf(p, " V %lf%n", &to, &used) == 1) {
      for (int i = 0; i <= SAMPLES; i++) check_point(d, arrow, at[0], at[1] + (to - at[1]) * i / SAMPLES, begin[0], begin[1]);
      at[1] = to;
    } else if (sscanf(p, " C %lf %lf %lf %lf %lf %lf%n", &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &used) == 6) {
      for (int i = 0; i <= SAMPLES; i++) {
        double t = (double)i / SAMPLES, u = 1 - t, xy[2];
        for (int k = 0; k < 2; k++) xy[k] = u * u * u * at[k] + 3 * u * u * t * c[k] + 3 * u * t * t * c[k + 2] + t * t * t * c[k + 4];
        check_point(d, arrow, xy[0], xy[1], begin[0], begin[1]);
      }
      memcpy(at, c + 4, sizeof at);
    } else if (sscanf(p, " c %lf %lf %lf %lf %lf %lf%n", &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &used) == 6) {
      assert_true(c[4] == 0);                                 /* a layer called on itself */
    } else fail_msg("%s: a way '%.40s'", d->arrow[arrow], p);
  }
}

static void check_places(const drawing *d) {
  double w, h;
  CHECK_INT(sscanf(strstr(d->text, "<svg "), "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%lf\" height=\"%lf\"", &w, &h), 2);
  for (size_t i = 0; i < d->nbox; i++) {
    const box *a = &d->box[i];
    if (a->x < 0 || a->y < 0 || a->x + a->w > w || a->y + a->h > h) fail_msg("'%s' is not in the picture", a->name);
    for (size_t k = 0; k < i; k++) {
      const box *b = &d->box[k];
      bool inside = b->frame && within(b, a->x, a->y, 1) && within(b, a->x + a->w, a->y + a->h, 1);
      if (overlap(a, b) && !inside) fail_msg("'%s' overlaps '%s'", a->name, b->name);
    }
  }
  for (size_t i = 0; i < d->narrow; i++) follow(d, i);
}

static yk_layer *dense(yk_keras *k, const char *name, int64_t units) {
  return yk_layer_dense(k, &(yk_dense_config){ .name = name, .units = units });
}

/* Two inputs through one layer, which is also called on itself and on what another one makes of it; a network inside called twice. */
static yk_network *busy(yk_keras *k) {
  yk_sym in[2] = { yk_input(k, &(yk_input_config){ .name = "a", .shape = YK_SHAPE(6) }),
                   yk_input(k, &(yk_input_config){ .name = "b", .shape = YK_SHAPE(6) }) };
  yk_sym own = yk_input(k, &(yk_input_config){ .name = "own", .shape = YK_SHAPE(6) });
  yk_sym parts[2] = { yk_apply(dense(k, "left", 4), own), yk_apply(dense(k, "right", 5), own) };
  yk_network *inner = yk_network_new(k, "inner", 1, &own, 2, parts);
  yk_layer *shared = dense(k, "shared", 6);
  yk_sym x = yk_apply(shared, in[0]), y = yk_apply(shared, in[1]), again = yk_apply(shared, x);
  yk_sym round = yk_apply(shared, yk_apply(dense(k, "between", 6), again));
  yk_sym u = yk_apply(yk_network_layer(inner), x), v = yk_apply(yk_network_layer(inner), y);
  yk_sym all[5] = { x, y, round, u, yk_sym_output(v, 1) };
  yk_sym out[2] = { yk_apply(dense(k, "main", 3), yk_apply_n(yk_layer_concatenate(k, &(yk_concatenate_config){ .name = "join" }), 5, all)),
                    yk_apply(dense(k, "aux", 1), x) };
  return yk_network_new(k, "busy", 2, in, 2, out);
}

static void test_structure(void **state) {
  static const char *const outer[] = { "a", "shared", "b", "shared", "shared", "shared", "shared", "between", "between", "shared", "shared", "inner",
                                       "shared", "join", "inner", "join", "join", "main", "shared", "aux",
                                       "own", "left", "own", "right" };
  yk_keras *k;
  drawing *d = calloc(1, sizeof *d);
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  yk_network *n = busy(k);
  CHECK_OK(yk_keras_status(k));
  draw(n, false, d);
  CHECK_INT(d->nbox, 8);
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) assert_false(box_called(d, yk_layer_name(yk_network_layer_at(n, i)))->frame);
  has_arrows(d, 10, outer);
  check_places(d);
  assert_true(box_called(d, "a")->y < box_called(d, "shared")->y && box_called(d, "shared")->y < box_called(d, "between")->y);
  assert_non_null(strstr(d->text, ">Dense, 42 parameters<"));
  assert_non_null(strstr(d->text, ">in [None, 6]<"));
  assert_non_null(strstr(d->text, ">Model, 63 parameters<"));
  assert_null(strstr(d->text, "f32"));
  free(d->text);
  draw(n, true, d);
  CHECK_INT(d->nbox, 11);
  assert_true(box_called(d, "inner")->frame);
  assert_non_null(strstr(d->text, ">inner: Model, 63 parameters<"));
  has_arrows(d, 12, outer);
  check_places(d);
  free(d->text);
  free(d);
  yk_keras_free(k);
}

/* Each layer takes what all before it give, so arrows pass many ranks. */
static void test_many_arrows(void **state) {
  enum { LAYERS = 12 };
  yk_keras *k;
  drawing *d = calloc(1, sizeof *d);
  yk_sym x[LAYERS + 1];
  (void)state;
  CHECK_OK(yk_keras_new(1, &k));
  x[0] = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(4) });
  for (size_t i = 1; i <= LAYERS; i++) {
    yk_sym all = i == 1 ? x[0] : yk_apply_n(yk_layer_concatenate(k, NULL), i, x);
    x[i] = yk_apply(dense(k, NULL, 3), all);
  }
  yk_network *n = yk_network_new(k, NULL, 1, x, 1, &x[LAYERS]);
  CHECK_OK(yk_keras_status(k));
  draw(n, false, d);
  CHECK_INT(d->nbox, 1 + LAYERS + LAYERS - 1);
  CHECK_INT(d->narrow, 1 + (LAYERS - 1) + LAYERS * (LAYERS + 1) / 2 - 1);
  check_places(d);
  free(d->text);
  free(d);
  yk_keras_free(k);
}

static void test_text(void **state) {
  char path[] = "/tmp/yoke-plot-XXXXXX", wide[400];
  yk_plot_options o = YK_PLOT_OPTIONS_INIT;
  yk_keras *k;
  (void)state;
  memset(wide, 'x', sizeof wide - 1);
  wide[sizeof wide - 1] = '\0';
  CHECK_OK(yk_keras_new(1, &k));
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(28, 28, 1) });
  yk_sym out = yk_apply(yk_layer_time_distributed(k, &(yk_wrapper_config){ .name = wide, .layer = dense(k, NULL, 2) }), in);
  yk_network *n = yk_network_new(k, "a < b & \"c\" > \x01\xFF d", 1, &in, 1, &out);
  CHECK_OK(yk_keras_status(k));
  CHECK_INT(close(mkstemp(path)), 0);
  o.show_dtype = true;
  CHECK_OK(yk_network_plot(n, path, &o));
  char *text = read_file(path);
  assert_non_null(strstr(text, "<title>a &lt; b &amp; &quot;c&quot; &gt; \xEF\xBF\xBD\xEF\xBF\xBD d</title>"));
  assert_non_null(strstr(text, ">out [None, 28, 28, 1] f32<"));
  assert_non_null(strstr(text, ">TimeDistributed(Dense), 4 parameters<"));
  assert_non_null(strstr(text, wide));                        /* the whole name in the title, a short one in the box */
  assert_non_null(strstr(text, "xxx...xxx"));
  free(text);
  CHECK_INT(unlink(path), 0);
  CHECK_CODE(yk_network_plot(n, "/nowhere/at/all.svg", NULL), YK_EIO, "/nowhere/at/all.svg");
  CHECK_CODE(yk_network_plot(NULL, path, NULL), YK_EINVAL, "NULL argument");
  o.size = 0;
  CHECK_CODE(yk_network_plot(n, path, &o), YK_EINVAL, "start from YK_PLOT_OPTIONS_INIT");
  assert_int_equal(access(path, F_OK), -1);
  yk_keras_free(k);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_structure), cmocka_unit_test(test_many_arrows), cmocka_unit_test(test_text) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
