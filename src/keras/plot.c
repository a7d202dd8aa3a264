/*
 * plot.c - a network as a picture: a box for each layer, an arrow for each two that are joined, in SVG.
 *
 * A network inside is a box, or a frame around a picture of its own. A layer that is called twice is one box with arrows of both calls;
 * where that makes a circle, one arrow goes up. Where boxes and arrows go, layered.c finds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "keras/keras.h"
#include "keras/layered.h"
#include "store/disk.h"

enum { CELL = 12, LINE = 15, PAD = 9, FRAME = 16, TITLE = 24, LOOP = 26, MARGIN = 16, MOST_NAME = 60, MOST_SHAPES = 4 };
#define CELL_WIDTH 7.25                      /* of a character of a monospaced font of CELL pixels */

typedef struct box {
  const yk_layer *layer;
  char *name, *lines;                /* as shown; lines are ended by line feeds. Of a frame `lines` is its title */
  double w, h;                       /* of what is seen; a layer called on itself has room for that beside it */
  bool loops;
  struct picture *inside;            /* NULL: a box */
} box;
typedef struct known {               /* a layer of the network */
  const yk_layer *layer;
  uint32_t first, box;               /* its first call in the network's order; its box */
  uint32_t missing;                  /* arrows to it from layers that have no place in the order yet */
  bool placed;
} known;
typedef struct picture {
  const yk_network *n;
  const yk_plot_options *o;
  yk_layered d;
  box *box; uint32_t nbox;           /* in the order of d */
  known *known;                      /* [nbox], by address */
  uint32_t nplaced;
} picture;

/* ---- what boxes say --------------------------------------------------------------------------------------------------------- */

/* How many columns of a monospaced font; letters of East Asia take two. */
static double columns(const char *text, size_t n) {
  double w = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if ((c & 0xC0) != 0x80) w += c >= 0xE3 ? 2 : 1;
  }
  return w;
}

/* A long name loses its middle; the whole one is what the browser shows when the mouse is there. */
static yk_code short_name(const char *name, char **out) {
  yk_str s = { 0 };
  size_t n = strlen(name), head = MOST_NAME / 2, tail = n - MOST_NAME / 2;
  if (n <= MOST_NAME) yk__str_put(&s, name, n);
  else {
    while (head > 0 && (name[head] & 0xC0) == 0x80) head--;
    while ((name[tail] & 0xC0) == 0x80) tail++;
    yk__str_put(&s, name, head);
    yk__str_add(&s, "...%s", name + tail);
  }
  return yk__str_take(&s, out);
}

static void put_class(yk_str *s, const yk_layer *l) {
  yk__str_add(s, "%s", l->class->name);
  if (l->ninner > 0) yk__str_add(s, "(%s)", l->inner[0]->class->name);
}

static void put_shapes(yk_str *s, const picture *p, const char *what, uint32_t n, const yk_desc *const *d) {
  for (uint32_t i = 0; i < n && i < MOST_SHAPES; i++) {
    yk__str_add(s, "%*s ", (int)strlen(what), i == 0 ? what : "");
    yk__shape_put(s, d[i], "[]");
    if (p->o->show_dtype && d[i] != NULL) yk__str_add(s, " %s", yk_dtype_name((yk_dtype)d[i]->dtype));
    yk__str_put(s, "\n", 1);
  }
  if (n > MOST_SHAPES) yk__str_add(s, "%*s and %u more\n", (int)strlen(what), "", (unsigned)(n - MOST_SHAPES));
}

static void put_call(yk_str *s, const picture *p, const yk_layer *l) {
  const yk_desc *in[YK__MAX_PORTS], *out[YK__MAX_PORTS];
  uint32_t node = yk__network_first_call(p->n, l);
  if (node == l->ncall) return;
  const yk_call_record *r = &l->call[node];
  for (uint32_t i = 0; i < r->nin; i++) in[i] = yk_sym_desc(r->in[i]);
  for (uint32_t i = 0; i < r->nout; i++) out[i] = yk_sym_desc((yk_sym){ (yk_layer *)l, node, i });
  put_shapes(s, p, "in", r->nin, in);
  put_shapes(s, p, "out", r->nout, out);
}

static void put_parameters(yk_str *s, const yk_layer *l) {
  int64_t n = yk__layer_parameters(l);
  if (n > 0) yk__str_add(s, ", %lld parameter%s", (long long)n, n == 1 ? "" : "s");
  if (n > 0 && l->frozen) yk__str_add(s, ", frozen");
}

/* What is to be drawn of a layer that is a network, or has one inside; NULL: nothing. */
static const yk_network *inside_of(const picture *p, const yk_layer *l) {
  if (!p->o->expand_nested) return NULL;
  return l->network != NULL ? l->network : l->ninner > 0 ? l->inner[0]->network : NULL;
}

static yk_code describe(const picture *p, const yk_layer *l, box *b) {
  yk_str s = { 0 };
  YK_TRY(short_name(l->name, &b->name));
  if (b->inside != NULL) yk__str_add(&s, "%s: ", b->name);
  put_class(&s, l);
  put_parameters(&s, l);
  yk__str_put(&s, "\n", 1);
  if (b->inside == NULL) put_call(&s, p, l);
  return yk__str_take(&s, &b->lines);
}

static void measure(box *b) {
  double most = b->inside == NULL ? columns(b->name, strlen(b->name)) : 0, lines = b->inside == NULL ? 1 : 0;
  for (const char *at = b->lines, *end; (end = strchr(at, '\n')) != NULL; at = end + 1, lines++)
    most = fmax(most, columns(at, (size_t)(end - at)));
  b->w = ceil(most * CELL_WIDTH) + 2 * PAD;
  b->h = lines * LINE + 2 * PAD - 4;
  if (b->inside == NULL) return;
  b->w = fmax(b->w, b->inside->d.w + 2 * FRAME);
  b->h = b->inside->d.h + TITLE + 2 * FRAME;
}

/* ---- the picture ---------------------------------------------------------------------------------------------------------------- */

static void free_picture(picture *p) {
  if (p == NULL) return;
  for (uint32_t i = 0; p->box != NULL && i < p->nbox; i++) {
    yk__free(p->box[i].name);
    yk__free(p->box[i].lines);
    free_picture(p->box[i].inside);
  }
  yk__free(p->box);
  yk__free(p->known);
  yk__layered_free(&p->d);
  yk__free(p);
}

static int by_address(const void *a, const void *b) {
  const known *x = a, *y = b;
  if (x->layer != y->layer) return (uintptr_t)x->layer < (uintptr_t)y->layer ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* A network's calls may take nothing but what its other calls give, so every layer is there. */
static known *find(const picture *p, const yk_layer *l) {
  uint32_t lo = 0, hi = p->nbox - 1;
  while (lo < hi) {
    uint32_t middle = (lo + hi) / 2;
    if ((uintptr_t)p->known[middle].layer < (uintptr_t)l) lo = middle + 1;
    else hi = middle;
  }
  return &p->known[lo];
}

static yk_code list_layers(picture *p) {
  uint32_t n = p->n->ncall;
  p->known = yk__calloc(n, sizeof *p->known);
  if (p->known == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < n; i++) p->known[i] = (known){ .layer = p->n->call[i].layer, .first = i };
  qsort(p->known, n, sizeof *p->known, by_address);
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || p->known[i].layer != p->known[i - 1].layer) p->known[p->nbox++] = p->known[i];
  return YK_OK;
}

/* What each call takes goes to its layer. */
static yk_code for_each_arrow(picture *p, yk_code (*use)(picture *p, known *from, known *to)) {
  for (uint32_t i = 0; i < p->n->ncall; i++) {
    const yk_call_record *r = &p->n->call[i].layer->call[p->n->call[i].node];
    for (uint32_t k = 0; k < r->nin; k++) YK_TRY(use(p, find(p, r->in[k].layer), find(p, p->n->call[i].layer)));
  }
  return YK_OK;
}

static yk_code count_arrow(picture *p, known *from, known *to) {
  (void)p;
  if (from != to) to->missing++;
  return YK_OK;
}
/* Of the layer that was placed last. */
static yk_code drop_arrow(picture *p, known *from, known *to) {
  if (from != to && from->placed && from->box + 1 == p->nplaced) to->missing--;
  return YK_OK;
}
static yk_code draw_arrow(picture *p, known *from, known *to) {
  return from != to ? yk__layered_arrow(&p->d, from->box, to->box) : YK_OK;
}
static yk_code find_loop(picture *p, known *from, known *to) {
  if (from == to) p->box[to->box].loops = true;
  return YK_OK;
}

/* A layer comes after all that its calls take; in a circle, the one that is called first comes first. */
static yk_code order_layers(picture *p) {
  YK_TRY(for_each_arrow(p, count_arrow));
  while (p->nplaced < p->nbox) {
    known *next = NULL;
    for (uint32_t i = 0; i < p->nbox; i++) {
      known *k = &p->known[i];
      if (k->placed) continue;
      bool ready = k->missing == 0, before = next == NULL || k->first < next->first;
      if (next == NULL || (ready == (next->missing == 0) ? before : ready)) next = k;
    }
    next->placed = true;
    next->box = p->nplaced++;
    YK_TRY(for_each_arrow(p, drop_arrow));
  }
  return YK_OK;
}

static yk_code make_picture(const yk_network *n, const yk_plot_options *o, picture **out);

static yk_code make_boxes(picture *p) {
  p->box = yk__calloc(p->nbox, sizeof *p->box);
  if (p->box == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < p->nbox; i++) p->box[p->known[i].box].layer = p->known[i].layer;
  YK_TRY(for_each_arrow(p, find_loop));
  for (uint32_t i = 0; i < p->nbox; i++) {
    box *b = &p->box[i];
    const yk_network *inside = inside_of(p, b->layer);
    if (inside != NULL) YK_TRY(make_picture(inside, p->o, &b->inside));
    YK_TRY(describe(p, b->layer, b));
    measure(b);
    YK_TRY(yk__layered_box(&p->d, b->w + (b->loops ? 2 * LOOP : 0), b->h));
  }
  return YK_OK;
}

static yk_code fill_picture(picture *p) {
  YK_TRY(list_layers(p));
  YK_TRY(order_layers(p));
  YK_TRY(make_boxes(p));
  YK_TRY(for_each_arrow(p, draw_arrow));
  return yk__layered_arrange(&p->d);
}

static yk_code make_picture(const yk_network *n, const yk_plot_options *o, picture **out) {
  picture *p = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  p->n = n;
  p->o = o;
  yk_code rc = fill_picture(p);
  if (rc == YK_OK) *out = p;
  else free_picture(p);
  return rc;
}

/* ---- SVG ------------------------------------------------------------------------------------------------------------------------ */

typedef struct at { double x, y; } at;               /* where a picture begins */
#define ARROW "<path class=\"arrow\" fill=\"none\" stroke=\"#555555\" marker-end=\"url(#yoke-arrow)\" d=\""
static long whole(double x) { return lround(x); }

static void put_title(yk_str *s, const char *name) {
  yk__str_add(s, "<title>");
  yk__str_put_xml(s, name);
  yk__str_add(s, "</title>");
}

static void put_arrow_title(yk_str *s, const yk_layer *from, const yk_layer *to) {
  yk__str_add(s, "\"><title>");
  yk__str_put_xml(s, from->name);
  yk__str_add(s, " &#8594; ");
  yk__str_put_xml(s, to->name);
  yk__str_add(s, "</title></path>\n");
}

static void put_text(yk_str *s, double x, double y, const char *text, size_t n) {
  yk_str line = { 0 };
  for (; n > 0 && *text == ' '; text++, n--) x += CELL_WIDTH;      /* which SVG would not show */
  yk__str_put(&line, text, n);
  s->failed |= line.failed;
  yk__str_add(s, "<text x=\"%ld\" y=\"%ld\">", whole(x), whole(y));
  if (line.s != NULL) yk__str_put_xml(s, line.s);
  yk__str_add(s, "</text>");
  yk__str_free(&line);
}

static const char *colour(const box *b) {
  if (b->layer->class == &yk__class_input) return "#e2f0d9";
  if (b->layer->network != NULL) return "#fff2cc";
  return b->layer->nweight > 0 || b->layer->ninner > 0 ? "#dbe8f7" : "#f5f5f5";
}

static void put_picture(yk_str *s, const picture *p, at o);

static void put_box(yk_str *s, const box *b, const yk_place *place, at o) {
  double x = o.x + place->x - b->w / 2, y = o.y + place->y, below = y + PAD + CELL - 2;
  yk__str_add(s, "<g class=\"%s\">", b->inside != NULL ? "network" : "layer");
  put_title(s, b->layer->name);
  yk__str_add(s, "<rect x=\"%ld\" y=\"%ld\" width=\"%ld\" height=\"%ld\" rx=\"4\" fill=\"%s\" stroke=\"#555555\"%s/>", whole(x), whole(y),
              whole(b->w), whole(b->h), b->inside != NULL ? "none" : colour(b), b->inside != NULL ? " stroke-dasharray=\"6 4\"" : "");
  if (b->inside == NULL) {
    yk__str_add(s, "<g font-weight=\"bold\">");
    put_text(s, x + PAD, below, b->name, strlen(b->name));
    yk__str_add(s, "</g>");
    below += LINE;
  }
  for (const char *line = b->lines, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, below += LINE)
    put_text(s, x + PAD, below, line, (size_t)(end - line));
  if (b->inside != NULL) put_picture(s, b->inside, (at){ o.x + place->x - b->inside->d.w / 2, y + TITLE + FRAME });
  if (b->loops) {
    long up = whole(-b->h / 2);
    yk__str_add(s, ARROW "M %ld %ld c %d 0 %d %ld 0 %ld", whole(x + b->w), whole(y + b->h * 0.75), LOOP, LOOP, up, up);
    put_arrow_title(s, b->layer, b->layer);
  }
  yk__str_add(s, "</g>\n");
}

/* Where an arrow goes straight down (or up) through a rank. */
typedef struct stop { long x, from, to; } stop;

static stop stop_at(const yk_layered *d, const yk_arrow *a, uint32_t i, at o) {
  uint32_t last = a->nvia + 1, upper = a->from < a->to ? a->from : a->to, lower = a->from < a->to ? a->to : a->from;
  uint32_t k = a->from < a->to ? i : last - i;       /* from above to below: the upper box, what it passes, the lower box */
  const yk_place *p = &d->place[k == 0 ? upper : k == last ? lower : d->via[a->first + k - 1]];
  long x = whole(o.x + (k == 0 ? a->above : k == last ? a->below : p->x));
  long from = whole(o.y + (k == 0 ? p->y + p->h : d->top[p->rank])), to = whole(o.y + (k == last ? p->y : d->bottom[p->rank]));
  return a->from < a->to ? (stop){ x, from, to } : (stop){ x, to, from };
}

static void put_arrow(yk_str *s, const picture *p, const yk_arrow *a, at o) {
  stop before = stop_at(&p->d, a, 0, o);
  yk__str_add(s, ARROW "M %ld %ld", before.x, before.from);
  if (before.to != before.from) yk__str_add(s, " V %ld", before.to);
  for (uint32_t i = 1; i < a->nvia + 2; i++) {
    stop t = stop_at(&p->d, a, i, o);
    long middle = (before.to + t.from) / 2;
    bool bent = t.x != before.x;
    if (bent) yk__str_add(s, " C %ld %ld %ld %ld %ld %ld", before.x, middle, t.x, middle, t.x, t.from);
    if (!bent || t.to != t.from) yk__str_add(s, " V %ld", t.to);
    before = t;
  }
  put_arrow_title(s, p->box[a->from].layer, p->box[a->to].layer);
}

static void put_picture(yk_str *s, const picture *p, at o) {
  for (uint32_t i = 0; i < p->nbox; i++) put_box(s, &p->box[i], &p->d.place[i], o);
  for (uint32_t i = 0; i < p->d.narrow; i++) put_arrow(s, p, &p->d.arrow[i], o);
}

static yk_code write_picture(const picture *p, const char *path) {
  yk_str s = { 0 };
  long w = whole(p->d.w) + 2 * MARGIN, h = whole(p->d.h) + 2 * MARGIN;
  char *text = NULL;
  yk__str_add(&s, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%ld\" "
              "height=\"%ld\" viewBox=\"0 0 %ld %ld\">\n", w, h, w, h);
  put_title(&s, p->n->self.name);
  yk__str_add(&s, "\n<defs><marker id=\"yoke-arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
              "<path d=\"M 0 0 L 8 4 L 0 8 z\" fill=\"#555555\"/></marker></defs>\n<rect width=\"%ld\" height=\"%ld\" fill=\"#ffffff\"/>\n"
              "<g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"%d\">\n", w, h, CELL);
  put_picture(&s, p, (at){ MARGIN, MARGIN });
  yk__str_add(&s, "</g>\n</svg>\n");
  size_t n = s.n;
  YK_TRY(yk__str_take(&s, &text));
  yk_code rc = yk__disk_write(path, 1, &(yk_piece){ text, n });
  yk__free(text);
  return rc;
}

yk_code yk_network_plot(const yk_network *n, const char *path, const yk_plot_options *options) {
  yk_plot_options o = YK_PLOT_OPTIONS_INIT;
  picture *p;
  if (n == NULL || path == NULL) return YK_FAIL(EINVAL, "yk_network_plot: NULL argument");
  if (options != NULL && (options->size < sizeof options->size || options->size > 4096))
    return YK_FAIL(EINVAL, "yk_plot_options.size is %u; start from YK_PLOT_OPTIONS_INIT", options->size);
  if (options != NULL) memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
  YK_TRY(make_picture(n, &o, &p));
  yk_code rc = write_picture(p, path);
  free_picture(p);
  return rc;
}
