/*
 * feeds.c - check a request and bring it into canonical form.
 *
 * Two requests that differ only in order or repeats are one plan: values are
 * sorted by id, repeats dropped, and two index arrays lead back to the order
 * the caller used. A fetch of a fed value needs no plan: it is the fed tensor.
 */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "op/registry.h"
#include "run/run.h"
#include "tensor/desc.h"

/* The node of v, or NULL with the failure ENOTFOUND set. */
static const yk_node *find(const yk_graph *g, yk_value v, const char *role, size_t i) {
  const yk_node *n = yk__value_node(g, v);
  if (n == NULL && v.id == 0 && yk_graph_status(g) != YK_OK)
    (void)yk__fail_prefix(YK_ENOTFOUND, "%s %zu is {0}, what a builder returns after a mistake in the graph", role, i);
  else if (n == NULL) (void)YK_FAIL(ENOTFOUND, "%s %zu: value %u is not in the session's graph", role, i, v.id);
  return n;
}

static const char *at(const yk_node *n) {
  return n->where ? n->where : "?";
}

static yk_code check_feed(const yk_graph *g, yk_value v, size_t i) {
  const yk_node *n = find(g, v, "feed", i);
  if (n == NULL) return YK_ENOTFOUND;
  if (g->value[v.id].desc.dtype == YK_NONE)
    return YK_FAIL(EINVAL, "feed %zu: %s (%s at %s) is an operation without a value: it cannot be fed", i, n->name,
                   n->op->label, at(n));
  if (n->op == &yk__op_variable)
    return YK_FAIL(EINVAL, "feed %zu: %s (made at %s) is a variable: feed its value yk_read(v), or use yk_variable_set()", i,
                   n->name, at(n));
  return YK_OK;
}

static yk_code check_fetch(const yk_graph *g, yk_value *v, size_t i) {
  const yk_node *n = find(g, *v, "fetch", i);
  if (n == NULL) return YK_ENOTFOUND;
  if (g->value[v->id].desc.dtype == YK_NONE)
    return YK_FAIL(EINVAL, "fetch %zu: %s (%s at %s) is an operation without a value: pass it as a target", i, n->name,
                   n->op->label, at(n));
  if (n->op == &yk__op_variable) {                         /* the storage itself: what is meant is its value */
    uint32_t index = ((const yk_variable_attrs *)n->attrs)->index;
    if (index < g->nvariable) *v = g->variable[index]->read;
  }
  return YK_OK;
}

static int by_id(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void sort(uint64_t *key, size_t n) {
  if (n > 16) { qsort(key, n, sizeof *key, by_id); return; }
  for (size_t i = 1; i < n; i++) {
    uint64_t k = key[i];
    size_t j = i;
    for (; j > 0 && key[j - 1] > k; j--) key[j] = key[j - 1];
    key[j] = k;
  }
}

static yk_code bind_feeds(const yk_graph *g, size_t n, const yk_value *feeds, size_t stride, uint64_t *key, yk_binding *b) {
  for (size_t i = 0; i < n; i++) {
    yk_value v;
    memcpy(&v, (const char *)feeds + i * stride, sizeof v);
    YK_TRY(check_feed(g, v, i));
    key[i] = (uint64_t)v.id << 32 | i;
  }
  sort(key, n);
  for (size_t i = 0; i < n; i++) {
    b->feed[i] = (yk_value){ (uint32_t)(key[i] >> 32) };
    b->feed_of[i] = (uint32_t)key[i];
    if (i > 0 && b->feed[i].id == b->feed[i - 1].id)
      return YK_FAIL(EINVAL, "%s (made at %s) is fed twice: feeds %u and %u", yk__value_node(g, b->feed[i])->name,
                     at(yk__value_node(g, b->feed[i])), b->feed_of[i - 1], b->feed_of[i]);
  }
  b->nfeed = (uint32_t)n;
  return YK_OK;
}

/* The caller's number of fed value `v`, or YK__FED if it is not fed. */
static uint32_t fed(const yk_binding *b, yk_value v) {
  uint32_t lo = 0, hi = b->nfeed;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (b->feed[mid].id < v.id) lo = mid + 1; else hi = mid;
  }
  return lo < b->nfeed && b->feed[lo].id == v.id ? b->feed_of[lo] : YK__FED;
}

static yk_code bind_fetches(const yk_graph *g, size_t n, const yk_value *fetches, uint64_t *key, yk_binding *b) {
  size_t todo = 0;
  for (size_t i = 0; i < n; i++) {
    yk_value v = fetches[i];
    YK_TRY(check_fetch(g, &v, i));
    uint32_t f = fed(b, v);
    if (f != YK__FED) b->fetch_of[i] = YK__FED | f;
    else key[todo++] = (uint64_t)v.id << 32 | i;
  }
  sort(key, todo);
  for (size_t i = 0; i < todo; i++) {
    yk_value v = { (uint32_t)(key[i] >> 32) };
    if (b->nfetch == 0 || b->fetch[b->nfetch - 1].id != v.id) b->fetch[b->nfetch++] = v;
    b->fetch_of[(uint32_t)key[i]] = b->nfetch - 1;
  }
  b->nuser = (uint32_t)n;
  return YK_OK;
}

static yk_code bind_targets(const yk_graph *g, size_t n, const yk_value *targets, uint64_t *key, yk_binding *b) {
  for (size_t i = 0; i < n; i++) {
    const yk_node *node = find(g, targets[i], "target", i);
    if (node == NULL) return YK_ENOTFOUND;
    key[i] = node->first;
  }
  sort(key, n);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || key[i] != key[i - 1]) b->target[b->ntarget++] = (yk_value){ (uint32_t)key[i] };
  return YK_OK;
}

yk_code yk__bind(const yk_graph *g, size_t nfeed, const yk_value *feeds, size_t stride, size_t nfetch, const yk_value *fetches,
                 size_t ntarget, const yk_value *targets, yk_binding *out) {
  size_t n = nfeed + nfetch + ntarget;
  if (n > 0x7FFFFFFF || (nfeed && !feeds) || (nfetch && !fetches) || (ntarget && !targets))
    return YK_FAIL(EINVAL, "feeds, fetches and targets must be arrays of the lengths given (%zu, %zu, %zu)", nfeed, nfetch,
                   ntarget);
  char *mem = yk__alloc((n + 1) * (sizeof(uint64_t) + sizeof(yk_value) + sizeof(uint32_t)));
  if (mem == NULL) return YK_ENOMEM;
  uint64_t *key = (uint64_t *)(void *)mem;               /* first: the pointer to free */
  yk_binding b = { .feed = (yk_value *)(void *)(key + n + 1) };
  b.fetch = b.feed + nfeed;
  b.target = b.fetch + nfetch;
  b.feed_of = (uint32_t *)(void *)(b.feed + n + 1);
  b.fetch_of = b.feed_of + nfeed;
  b.key = key;
  yk_code rc = bind_feeds(g, nfeed, feeds, stride, key, &b);
  if (rc == YK_OK) rc = bind_fetches(g, nfetch, fetches, key, &b);
  if (rc == YK_OK) rc = bind_targets(g, ntarget, targets, key, &b);
  if (rc != YK_OK) { yk__free(mem); return rc; }
  b.hash = yk__hash(b.feed, b.nfeed * sizeof *b.feed, 1);
  b.hash = yk__hash(b.fetch, b.nfetch * sizeof *b.fetch, b.hash + 2);
  b.hash = yk__hash(b.target, b.ntarget * sizeof *b.target, b.hash + 3);
  *out = b;
  return YK_OK;
}

void yk__binding_free(yk_binding *b) {
  yk__free(b->key);
  *b = (yk_binding){ 0 };
}

yk_code yk__feed_check(const yk_graph *g, yk_value v, const yk_tensor *t) {
  const yk_node *n = yk__value_node(g, v);
  const yk_desc *want = &g->value[v.id].desc;
  char a[YK__DESC_TEXT], b[YK__DESC_TEXT];
  if (t == NULL)
    return YK_FAIL(EINVAL, "%s (made at %s) is fed NULL; expected a tensor %s", n->name, at(n), yk__desc_text(want, a, sizeof a));
  const yk_desc *d = yk_tensor_desc(t);
  bool fits = d->dtype == want->dtype && d->rank == want->rank;
  for (uint32_t i = 0; fits && i < d->rank; i++) fits = want->dim[i] == -1 || want->dim[i] == d->dim[i];
  if (fits) return YK_OK;
  return YK_FAIL(EINVAL, "%s (made at %s) is fed %s; expected %s", n->name, at(n), yk__desc_text(d, a, sizeof a),
                 yk__desc_text(want, b, sizeof b));
}

yk_code yk__placeholders_check(const yk_graph *g, const yk_binding *b) {
  char text[YK__DESC_TEXT];
  uint8_t *needed = yk__calloc(g->nnode + 1u, 1);
  if (needed == NULL) return YK_ENOMEM;
  yk_code rc = YK_OK;
  for (uint32_t i = 0; i < b->nfetch; i++) needed[yk__value_node(g, b->fetch[i])->id] = 1;
  for (uint32_t i = 0; i < b->ntarget; i++) needed[yk__value_node(g, b->target[i])->id] = 1;
  for (uint32_t id = g->nnode + 1; rc == YK_OK && id-- > 1;) {       /* inputs have smaller numbers: one sweep back */
    if (!needed[id]) continue;
    const yk_node *n = yk__node(g, id);
    if (n->op == &yk__op_placeholder && fed(b, (yk_value){ n->first }) == YK__FED)
      rc = YK_FAIL(EINVAL, "placeholder %s %s (made at %s) must be fed", n->name,
                   yk__desc_text(&g->value[n->first].desc, text, sizeof text), at(n));
    for (uint16_t i = 0; i < n->nin; i++) {
      const yk_port *p = yk__op_in_port(n->op, n->attrs, n->nin, i);
      if (p && (p->flags & YK_PORT_SHAPE)) continue;               /* a shape needs no data */
      if (n->in[i] != 0 && fed(b, (yk_value){ n->in[i] }) == YK__FED) needed[g->value[n->in[i]].node] = 1;
    }
    for (uint32_t i = 0; i < n->nctrl; i++) needed[n->ctrl[i]] = 1;
  }
  yk__free(needed);
  return rc;
}
