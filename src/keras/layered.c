/*
 * layered.c - ranks by the longest path, few crossings by barycentres, then places: Sugiyama's way to draw a graph.
 *
 * All arrows of one box share the places that they pass by, so a box that many need is a trunk with branches. Across a rank
 * arrows go straight down; between two ranks, where there are no boxes, they move to the side.
 */
#include "keras/layered.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

enum { SWEEPS = 12, SPACE = 26, GAP = 40, MOST_GAP = 110, PORT = 14 };

typedef struct link { uint32_t up, down; } link;     /* from a rank to the next one */
typedef struct work {
  yk_layered *d;
  link *link;      uint32_t nlink, link_cap;
  uint32_t *first_link;              /* [nrank + 1], by the rank of `up` */
  uint32_t **row, *nrow;             /* [nrank]: places from left to right */
  uint32_t *place_of_row;            /* what the rows lie in */
  uint32_t *best;                    /* the best order so far, as place_of_row */
  double *want, *key, *room;         /* [nplace]; room: what the place takes of its row */
  uint32_t *count;                   /* [nplace] */
} work;

static uint32_t upper(const yk_arrow *a) { return a->from < a->to ? a->from : a->to; }
static uint32_t lower(const yk_arrow *a) { return a->from < a->to ? a->to : a->from; }

/* ---- what is given ---------------------------------------------------------------------------------------------------------- */

yk_code yk__layered_box(yk_layered *d, double w, double h) {
  yk_place p = { .w = w, .h = h };
  if (!YK_PUSH(d->place, d->nplace, d->place_cap, p)) return YK_ENOMEM;
  d->nbox = d->nplace;
  return YK_OK;
}

yk_code yk__layered_arrow(yk_layered *d, uint32_t from, uint32_t to) {
  yk_arrow a = { .from = from, .to = to };
  for (uint32_t i = 0; i < d->narrow; i++)
    if (d->arrow[i].from == from && d->arrow[i].to == to) return YK_OK;
  return YK_PUSH(d->arrow, d->narrow, d->arrow_cap, a) ? YK_OK : YK_ENOMEM;
}

void yk__layered_free(yk_layered *d) {
  yk__free(d->place);
  yk__free(d->arrow);
  yk__free(d->via);
  yk__free(d->top);
  yk__free(d->bottom);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------------------- */

static int by_upper(const void *a, const void *b) {
  uint32_t x[2] = { upper(a), lower(a) }, y[2] = { upper(b), lower(b) };
  int k = x[0] == y[0];
  return (x[k] > y[k]) - (x[k] < y[k]);
}

/* Branches that begin beside a long path move down to where they join it. held: the box is no part of such a branch. */
static void pull_down(yk_layered *d, uint32_t *leaving, uint32_t *held, uint32_t *limit) {
  for (uint32_t i = 0; i < d->narrow; i++) leaving[upper(&d->arrow[i])]++;
  for (uint32_t i = 0; i < d->narrow; i++) {
    uint32_t up = upper(&d->arrow[i]);
    if (held[up] || leaving[up] > 1) held[lower(&d->arrow[i])] = 1;
  }
  for (uint32_t i = 0; i < d->nbox; i++) limit[i] = UINT32_MAX;
  for (uint32_t i = d->narrow; i-- > 0;) {           /* the last arrow of a box is met first; what is below it is settled */
    uint32_t up = upper(&d->arrow[i]), below = d->place[lower(&d->arrow[i])].rank;
    if (below < limit[up]) limit[up] = below;
    bool all = i == 0 || upper(&d->arrow[i - 1]) != up;
    if (all && !held[up]) d->place[up].rank = limit[up] - 1;
  }
}

/* Sorted by their upper boxes, arrows are met when the rank of that box is final. */
static yk_code find_ranks(yk_layered *d) {
  if (d->narrow > 0) qsort(d->arrow, d->narrow, sizeof *d->arrow, by_upper);
  for (uint32_t i = 0; i < d->narrow; i++) {
    yk_place *up = &d->place[upper(&d->arrow[i])], *down = &d->place[lower(&d->arrow[i])];
    if (down->rank < up->rank + 1) down->rank = up->rank + 1;
  }
  uint32_t *count = yk__calloc(3 * ((size_t)d->nbox + 1), sizeof *count);
  if (count == NULL) return YK_ENOMEM;
  pull_down(d, count, count + d->nbox, count + 2 * (size_t)d->nbox);
  yk__free(count);
  for (uint32_t i = 0; i < d->nbox; i++)
    if (d->place[i].rank + 1 > d->nrank) d->nrank = d->place[i].rank + 1;
  return YK_OK;
}

/* ---- places to pass by, and links ---------------------------------------------------------------------------------------------- */

static bool add_link(work *w, uint32_t up, uint32_t down) {
  link l = { up, down };
  return YK_PUSH(w->link, w->nlink, w->link_cap, l);
}

/* The trunk of a box: a place in each rank below it, as far down as an arrow of that direction needs it. Arrows that go up have another one. */
static yk_code add_trunk(work *w, uint32_t begin, uint32_t end, bool back) {
  yk_layered *d = w->d;
  uint32_t top = d->place[upper(&d->arrow[begin])].rank, deepest = top + 1, first = d->nplace;
  for (uint32_t i = begin; i < end; i++)
    if ((d->arrow[i].from > d->arrow[i].to) == back && d->place[lower(&d->arrow[i])].rank > deepest)
      deepest = d->place[lower(&d->arrow[i])].rank;
  for (uint32_t rank = top + 1; rank < deepest; rank++) {
    yk_place p = { .rank = rank };
    if (!YK_PUSH(d->place, d->nplace, d->place_cap, p)) return YK_ENOMEM;
    if (!add_link(w, rank == top + 1 ? upper(&d->arrow[begin]) : d->nplace - 2, d->nplace - 1)) return YK_ENOMEM;
  }
  for (uint32_t i = begin; i < end; i++) {
    yk_arrow *a = &d->arrow[i];
    if ((a->from > a->to) != back) continue;
    a->first = d->nvia;
    a->nvia = d->place[lower(a)].rank - top - 1;
    for (uint32_t k = 0; k < a->nvia; k++) {
      uint32_t place = first + k;
      if (!YK_PUSH(d->via, d->nvia, d->via_cap, place)) return YK_ENOMEM;
    }
    if (!add_link(w, a->nvia > 0 ? first + a->nvia - 1 : upper(a), lower(a))) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code add_trunks(work *w) {
  const yk_layered *d = w->d;
  for (uint32_t begin = 0, end; begin < d->narrow; begin = end) {
    for (end = begin; end < d->narrow && upper(&d->arrow[end]) == upper(&d->arrow[begin]);) end++;
    YK_TRY(add_trunk(w, begin, end, false));
    YK_TRY(add_trunk(w, begin, end, true));
  }
  return YK_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------ */

static yk_code open_rows(work *w) {
  yk_layered *d = w->d;
  size_t n = d->nplace + 1u, ranks = d->nrank + 1u;
  w->row = yk__calloc(ranks, sizeof *w->row);
  w->nrow = yk__calloc(ranks, sizeof *w->nrow);
  w->first_link = yk__calloc(ranks + 1, sizeof *w->first_link);
  w->place_of_row = yk__calloc(n, sizeof *w->place_of_row);
  w->best = yk__calloc(n, sizeof *w->best);
  w->want = yk__calloc(n, sizeof *w->want);
  w->key = yk__calloc(n, sizeof *w->key);
  w->room = yk__calloc(n, sizeof *w->room);
  w->count = yk__calloc(n, sizeof *w->count);
  d->top = yk__calloc(ranks, sizeof *d->top);
  d->bottom = yk__calloc(ranks, sizeof *d->bottom);
  if (w->row == NULL || w->nrow == NULL || w->first_link == NULL || w->place_of_row == NULL || w->best == NULL || w->want == NULL ||
      w->key == NULL || w->room == NULL || w->count == NULL || d->top == NULL || d->bottom == NULL)
    return YK_ENOMEM;
  for (uint32_t i = 0; i < d->nplace; i++) w->nrow[d->place[i].rank]++;
  for (uint32_t r = 0, at = 0; r < d->nrank; at += w->nrow[r++]) w->row[r] = w->place_of_row + at;
  memset(w->nrow, 0, ranks * sizeof *w->nrow);
  for (uint32_t i = 0; i < d->nplace; i++) {
    yk_place *p = &d->place[i];
    p->at = w->nrow[p->rank];
    w->row[p->rank][w->nrow[p->rank]++] = i;
  }
  return YK_OK;
}

/* Links by the rank that they begin in; their order within one is of no account. */
static yk_code sort_links(work *w) {
  const yk_place *p = w->d->place;
  link *sorted = yk__calloc(w->nlink + 1u, sizeof *sorted);
  if (sorted == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < w->nlink; i++) w->first_link[p[w->link[i].up].rank + 1]++;
  for (uint32_t r = 0; r < w->d->nrank; r++) w->first_link[r + 1] += w->first_link[r];
  for (uint32_t i = w->nlink; i-- > 0;) sorted[--w->first_link[p[w->link[i].up].rank + 1]] = w->link[i];
  memmove(w->first_link, w->first_link + 1, w->d->nrank * sizeof *w->first_link);
  w->first_link[w->d->nrank] = w->nlink;
  yk__free(w->link);
  w->link = sorted;
  return YK_OK;
}

static uint64_t crossings(const work *w) {
  const yk_place *p = w->d->place;
  uint64_t n = 0;
  for (uint32_t r = 0; r < w->d->nrank; r++)
    for (uint32_t i = w->first_link[r]; i < w->first_link[r + 1]; i++)
      for (uint32_t k = w->first_link[r]; k < i; k++) {
        int64_t up = (int64_t)p[w->link[i].up].at - p[w->link[k].up].at, down = (int64_t)p[w->link[i].down].at - p[w->link[k].down].at;
        n += (up > 0 && down < 0) || (up < 0 && down > 0);
      }
  return n;
}

/* For each place of rank r: the mean of `of` over its neighbours above (or below), or where it is if it has none there. */
static void mean_of_neighbours(work *w, uint32_t r, bool above, bool of_x, double *mean) {
  const yk_place *p = w->d->place;
  uint32_t links = above ? r - 1 : r;
  for (uint32_t i = 0; i < w->nrow[r]; i++) {
    mean[w->row[r][i]] = 0;
    w->count[w->row[r][i]] = 0;
  }
  for (uint32_t i = w->first_link[links]; i < w->first_link[links + 1]; i++) {
    uint32_t me = above ? w->link[i].down : w->link[i].up, other = above ? w->link[i].up : w->link[i].down;
    mean[me] += of_x ? p[other].x : p[other].at;
    w->count[me]++;
  }
  for (uint32_t i = 0; i < w->nrow[r]; i++) {
    uint32_t me = w->row[r][i];
    mean[me] = w->count[me] > 0 ? mean[me] / w->count[me] : of_x ? p[me].x : p[me].at;
  }
}

/* By insertion, which is stable, and quick for what is nearly sorted. */
static void sort_row(work *w, uint32_t r) {
  uint32_t *row = w->row[r];
  for (uint32_t i = 1; i < w->nrow[r]; i++) {
    uint32_t x = row[i], k = i;
    for (; k > 0 && w->key[row[k - 1]] > w->key[x]; k--) row[k] = row[k - 1];
    row[k] = x;
  }
  for (uint32_t i = 0; i < w->nrow[r]; i++) w->d->place[row[i]].at = i;
}

static void order_rows(work *w) {
  const yk_layered *d = w->d;
  uint64_t fewest = crossings(w), n;
  memcpy(w->best, w->place_of_row, d->nplace * sizeof *w->best);
  for (int sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
    for (uint32_t k = 1; k < d->nrank; k++) {
      uint32_t r = sweep % 2 == 0 ? k : d->nrank - 1 - k;
      mean_of_neighbours(w, r, sweep % 2 == 0, false, w->key);
      sort_row(w, r);
    }
    if ((n = crossings(w)) >= fewest) continue;
    fewest = n;
    memcpy(w->best, w->place_of_row, d->nplace * sizeof *w->best);
  }
  memcpy(w->place_of_row, w->best, d->nplace * sizeof *w->best);
  for (uint32_t r = 0; r < d->nrank; r++)
    for (uint32_t i = 0; i < w->nrow[r]; i++) d->place[w->row[r][i]].at = i;
}

/* ---- from left to right ------------------------------------------------------------------------------------------------------------ */

static double apart(const work *w, uint32_t left, uint32_t right) { return (w->room[left] + w->room[right]) / 2 + SPACE; }

/* Two boxes, or two places to pass by, that have only each other. */
static bool chained(const work *w, const uint32_t *above, const link *l) {
  return w->count[l->up] == 1 && above[l->down] == 1 && (l->up < w->d->nbox) == (l->down < w->d->nbox);
}

/* A chain takes in every row what the widest of it takes, so that it can be straight. */
static yk_code find_room(work *w) {
  uint32_t n = w->d->nplace, *above = yk__calloc(n + 1u, sizeof *above);
  if (above == NULL) return YK_ENOMEM;
  for (uint32_t i = 0; i < n; i++) w->room[i] = w->d->place[i].w;
  memset(w->count, 0, n * sizeof *w->count);
  for (uint32_t i = 0; i < w->nlink; i++) {
    w->count[w->link[i].up]++;
    above[w->link[i].down]++;
  }
  for (uint32_t i = 0; i < w->nlink; i++)
    if (chained(w, above, &w->link[i])) w->room[w->link[i].down] = fmax(w->room[w->link[i].up], w->room[w->link[i].down]);
  for (uint32_t i = w->nlink; i-- > 0;)
    if (chained(w, above, &w->link[i])) w->room[w->link[i].up] = w->room[w->link[i].down];
  yk__free(above);
  return YK_OK;
}

/*
 * The places of a row as near as can be, by squares, to where they want to be, in their order and apart from each other. Without the distances that
 * must lie between them the row has to be rising: neighbours that want to pass each other become a block, which is at the mean of its wishes.
 */
static void settle_row(work *w, uint32_t r) {
  const uint32_t *row = w->row[r];
  uint32_t n = w->nrow[r], nblock = 0, at = 0;
  double shift = 0;
  for (uint32_t i = 0; i < n; i++) {                 /* key, count: mean and size of the blocks so far */
    if (i > 0) shift += apart(w, row[i - 1], row[i]);
    w->key[nblock] = w->want[row[i]] - shift;
    w->count[nblock++] = 1;
    while (nblock > 1 && w->key[nblock - 2] > w->key[nblock - 1]) {
      uint32_t a = w->count[nblock - 2], b = w->count[nblock - 1];
      w->key[nblock - 2] = (w->key[nblock - 2] * a + w->key[nblock - 1] * b) / (a + b);
      w->count[--nblock - 1] = a + b;
    }
  }
  shift = 0;
  for (uint32_t i = 0, block = 0; i < n; i++) {
    if (i > 0) shift += apart(w, row[i - 1], row[i]);
    if (i == at + w->count[block]) at += w->count[block++];
    w->d->place[row[i]].x = w->key[block] + shift;
  }
}

static void find_columns(work *w) {
  yk_layered *d = w->d;
  for (uint32_t r = 0; r < d->nrank; r++) {
    for (uint32_t i = 0; i < w->nrow[r]; i++) w->want[w->row[r][i]] = 0;
    settle_row(w, r);
  }
  for (int sweep = 0; sweep < 2 * SWEEPS + 1; sweep++)
    for (uint32_t k = 1; k < d->nrank; k++) {
      uint32_t r = sweep % 2 == 0 ? k : d->nrank - 1 - k;
      mean_of_neighbours(w, r, sweep % 2 == 0, true, w->want);
      settle_row(w, r);
    }
  double left = INFINITY, right = -INFINITY;
  for (uint32_t i = 0; i < d->nplace; i++) {
    const yk_place *p = &d->place[i];
    if (p->x - p->w / 2 < left) left = p->x - p->w / 2;
    if (p->x + p->w / 2 > right) right = p->x + p->w / 2;
  }
  for (uint32_t i = 0; i < d->nplace; i++) d->place[i].x -= left;
  d->w = d->nplace > 0 ? right - left : 0;
}

/* ---- from top to bottom -------------------------------------------------------------------------------------------------------------- */

/* Arrows that move far to the side have more room to do it. */
static void find_rows(work *w) {
  yk_layered *d = w->d;
  double y = 0;
  for (uint32_t r = 0; r < d->nrank; r++) {
    double tallest = 0, far = 0;
    for (uint32_t i = 0; i < w->nrow[r]; i++) tallest = fmax(tallest, d->place[w->row[r][i]].h);
    for (uint32_t i = w->first_link[r]; i < w->first_link[r + 1]; i++)
      far = fmax(far, fabs(d->place[w->link[i].up].x - d->place[w->link[i].down].x));
    d->top[r] = y;
    d->bottom[r] = y + tallest;
    for (uint32_t i = 0; i < w->nrow[r]; i++) d->place[w->row[r][i]].y = y + (tallest - d->place[w->row[r][i]].h) / 2;
    d->h = d->bottom[r];
    y = d->bottom[r] + fmin(GAP + far / 6, MOST_GAP);
  }
}

/* The middle of what lies next to the box on the way. */
static double next_below(const yk_layered *d, const yk_arrow *a) { return d->place[a->nvia > 0 ? d->via[a->first] : lower(a)].x; }
static double next_above(const yk_layered *d, const yk_arrow *a) { return d->place[a->nvia > 0 ? d->via[a->first + a->nvia - 1] : upper(a)].x; }

static double port(const yk_place *p, uint32_t i, uint32_t n) { return p->x + (i - (n - 1) / 2.0) * fmin(PORT, p->w / (n + 1)); }

/* Arrows meet the upper edge of a box side by side, in the order in which they come; at the lower edge, those that leave are one trunk beside
 * those that return. */
static void find_ports(yk_layered *d) {
  for (uint32_t i = 0; i < d->narrow; i++) {
    yk_arrow *a = &d->arrow[i];
    bool leaves = a->from < a->to, trunk = false;
    double x = next_above(d, a), y = leaves ? d->place[upper(a)].x : next_below(d, a);
    uint32_t n = 0, before = 0, returns = 0, before_y = 0;
    for (uint32_t k = 0; k < d->narrow; k++) {
      const yk_arrow *b = &d->arrow[k];
      if (lower(b) == lower(a)) {
        double other = next_above(d, b);
        n++;
        before += other < x || (other == x && k < i);
      }
      if (upper(b) != upper(a)) continue;
      if (b->from < b->to) trunk = true;
      else {
        double other = next_below(d, b);
        returns++;
        before_y += other < y || (other == y && k < i);
      }
    }
    if (!leaves) before_y += trunk && d->place[upper(a)].x <= y;
    a->below = port(&d->place[lower(a)], before, n);
    a->above = port(&d->place[upper(a)], before_y, returns + trunk);
  }
}

static yk_code arrange(work *w) {
  YK_TRY(find_ranks(w->d));
  YK_TRY(add_trunks(w));
  YK_TRY(open_rows(w));
  YK_TRY(sort_links(w));
  YK_TRY(find_room(w));
  order_rows(w);
  find_columns(w);
  find_rows(w);
  find_ports(w->d);
  return YK_OK;
}

yk_code yk__layered_arrange(yk_layered *d) {
  work w = { .d = d };
  yk_code rc = arrange(&w);
  yk__free(w.link);
  yk__free(w.first_link);
  yk__free(w.row);
  yk__free(w.nrow);
  yk__free(w.place_of_row);
  yk__free(w.best);
  yk__free(w.want);
  yk__free(w.key);
  yk__free(w.room);
  yk__free(w.count);
  return rc;
}
