/*
 * test_pool.c - the pool against a model that searches by brute force.
 *
 * The driver is a pretended one that gives handles and no memory, since a pool never looks at the memory; it can refuse. After
 * every call of a random sequence the whole pool is walked: chunks cover their regions, free neighbours are one, bins are
 * complete and sorted, counts are right; and the chunk that was taken is the one that a search over all of them finds.
 */
#include "device/pool.h"
#include "base/error.h"
#include "support/fuzz.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

typedef struct card {                          /* the pretended driver */
  uint64_t size, taken, calls, given;          /* bytes there are, bytes out; numbers of calls */
  uint64_t handle;
  yk_code code;                                /* what it says when it refuses; OK: ENOMEM */
  size_t asked[64];                            /* of the first calls */
} card;

static yk_code card_take(void *arg, size_t bytes, yk_mem *out) {
  card *c = arg;
  if (c->calls < 64) c->asked[c->calls] = bytes;
  c->calls++;
  if (c->code != YK_OK || bytes > c->size - c->taken) {
    yk_code rc = c->code != YK_OK ? c->code : YK_ENOMEM;
    return yk__fail(rc, __FILE__, __LINE__, "the card has no %zu bytes", bytes);
  }
  c->taken += bytes;
  *out = (yk_mem){ .base = (void *)(uintptr_t)(0x1000 + 64 * c->handle++), .offset = 128 * (c->handle % 3), .bytes = bytes };
  return YK_OK;
}

static void card_give(void *arg, yk_mem mem) {
  card *c = arg;
  c->taken -= mem.bytes;
  c->given++;
}

static yk_pool *open_pool(card *c, yk_pool_policy policy, uint64_t limit, uint32_t alignment) {
  yk_pool_source source = { card_take, card_give, c };
  yk_pool *p = NULL;
  CHECK_OK(yk__pool_open(policy, limit, limit, alignment, &source, &p));
  return p;
}

static uint64_t n(const _Atomic uint64_t *x) { return atomic_load(x); }

/* ---- the walk --------------------------------------------------------------------------------------------------- */

#define MUST(x) do { if (!(x)) fail_msg("%s:%d: %s", __FILE__, __LINE__, #x); } while (0)

static bool in_order(const yk_chunk *a, const yk_chunk *b) {
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  if (a->region != b->region) return a->region->number < b->region->number;
  return a->offset < b->offset;
}

static size_t walk_bins(const yk_pool *p) {
  size_t free = 0;
  for (uint32_t bin = 0; bin < YK__POOL_BINS; bin++) {
    for (const yk_chunk *c = p->bin[bin].least; c; c = c->more, free++) {
      CHECK_INT(c->bin, bin);
      CHECK_INT(yk__pool_bin(c->bytes), bin);
      if (c->more) MUST(in_order(c, c->more));
      MUST((c->more ? c->more->less : p->bin[bin].most) == c);
    }
    if (p->bin[bin].least) MUST(p->bin[bin].least->less == NULL);
  }
  return free;
}

static void walk(const yk_pool *p, const card *driver) {
  uint64_t held = 0, used = 0, asked = 0, most = 0, regions = 0;
  size_t free = 0;
  for (const yk_region *r = p->first; r; r = r->after, regions++) {
    size_t at = 0;
    uint32_t inside = 0;
    MUST(r->after ? r->after->before == r : p->last == r);
    for (const yk_chunk *c = r->first; c; c = c->after) {
      bool mine = c->bin == YK__POOL_IN_USE;
      CHECK_INT(c->offset, at);
      MUST(c->region == r && c->bytes > 0);
      MUST(p->policy == YK__POOL_EXACT || (c->bytes % p->unit == 0 && c->offset % p->unit == 0));
      if (c->after) MUST(c->after->before == c && (mine || c->after->bin == YK__POOL_IN_USE));
      at += c->bytes;
      inside += mine;
      free += !mine;
      if (mine) used += c->bytes;
      else if (c->bytes > most) most = c->bytes;
      asked += c->asked;
      MUST(c->asked <= c->bytes && (c->asked > 0) == mine);
    }
    CHECK_INT(at, r->mem.bytes);
    CHECK_INT(inside, r->used);
    held += r->mem.bytes;
  }
  CHECK_INT(walk_bins(p), free);
  CHECK_INT(n(&p->count->held), held);
  CHECK_INT(driver->taken, held);
  CHECK_INT(n(&p->count->in_use), used);
  CHECK_INT(n(&p->count->requested), asked);
  CHECK_INT(n(&p->count->largest_free), most);
  CHECK_INT(n(&p->count->regions), regions);
  MUST(held <= n(&p->count->limit) && n(&p->count->peak_held) >= held && n(&p->count->peak_in_use) >= used);
}

/* ---- the example: growth under 64 MiB --------------------------------------------------------------------------- */

static void test_growth(void **state) {
  (void)state;
  card c = { .size = UINT64_MAX };
  yk_pool *p = open_pool(&c, YK__POOL_GROWTH, 64 * MIB, 64);
  yk_mem m[6];
  CHECK_INT(p->next, 1 * MIB);
  static const struct { size_t ask, region, next; } step[] = {
    { 1 * KIB, 1 * MIB, 2 * MIB }, { 3 * MIB / 2, 2 * MIB, 4 * MIB }, { 10 * MIB, 16 * MIB, 16 * MIB },
    { 16 * MIB, 16 * MIB, 32 * MIB }, { 29 * MIB, 29 * MIB, 64 * MIB },
  };
  for (uint64_t i = 0; i < 5; i++) {
    CHECK_OK(yk__pool_alloc(p, step[i].ask, &m[i]));
    CHECK_INT(c.calls, i + 1);
    CHECK_INT(c.asked[i], step[i].region);
    if (i < 4) CHECK_INT(p->next, step[i].next);
    walk(p, &c);
  }
  CHECK_INT(n(&p->count->held), 64 * MIB);
  CHECK_CODE(yk__pool_alloc(p, 7 * MIB, &m[5]), YK_ENOMEM, "7340032 bytes asked for, ");
  CHECK_INT(c.calls, 5);                       /* the driver is not bothered with what the limit forbids */
  CHECK_INT(n(&p->count->refusals), 1);
  for (int i = 0; i < 5; i++) yk__pool_free(p, m[i]);
  walk(p, &c);
  CHECK_INT(n(&p->count->in_use), 0);
  CHECK_INT(n(&p->count->held), 64 * MIB);     /* grown is grown */
  CHECK_OK(yk__pool_alloc(p, 60 * MIB, &m[0]));  /* but regions without a chunk in use go back for a larger one */
  CHECK_INT(c.given, 5);
  CHECK_INT(n(&p->count->peak_held), 64 * MIB);
  walk(p, &c);
  yk__pool_free(p, m[0]);
  yk__pool_close(p);
  CHECK_INT(c.taken, 0);
}

static void test_whole(void **state) {
  (void)state;
  card c = { .size = UINT64_MAX };
  yk_pool *p = open_pool(&c, YK__POOL_WHOLE, 100 * MIB, 64);
  yk_mem a, b, d;
  CHECK_INT(c.calls, 0);
  CHECK_OK(yk__pool_alloc(p, 0, &a));
  assert_null(a.base);
  CHECK_INT(c.calls, 0);                       /* nothing is no first allocation */
  CHECK_OK(yk__pool_alloc(p, 1, &a));
  CHECK_INT(c.asked[0], 100 * MIB);
  CHECK_INT(n(&p->count->in_use), 256);
  CHECK_INT(a.bytes, 1);
  CHECK_OK(yk__pool_alloc(p, 60 * MIB, &b));   /* more than half: all that is left, since less would be waste below the limit */
  CHECK_INT(n(&p->count->in_use), 100 * MIB);
  CHECK_CODE(yk__pool_alloc(p, 100, &d), YK_ENOMEM, "104857600 in use, the limit is 104857600");
  yk__pool_free(p, b);
  CHECK_OK(yk__pool_alloc(p, 10 * MIB, &b));
  CHECK_OK(yk__pool_alloc(p, 10 * MIB, &d));
  yk__pool_free(p, b);
  walk(p, &c);
  CHECK_CODE(yk__pool_alloc(p, 85 * MIB, &b), YK_ENOMEM, "are free, but the largest piece has");
  CHECK_INT(c.calls, 1);
  yk__pool_free(p, a);
  yk__pool_free(p, d);
  walk(p, &c);
  CHECK_INT(n(&p->count->largest_free), 100 * MIB);
  yk__pool_close(p);
}

/* 128 MiB are too much to waste, whatever the size. */
static void test_split(void **state) {
  (void)state;
  static const struct { uint64_t limit, ask, takes; } row[] = {   /* MiB */
    { 10, 5, 5 }, { 10, 6, 10 }, { 300, 151, 151 }, { 300, 172, 172 }, { 300, 173, 300 }, { 1000, 800, 800 }, { 1000, 873, 1000 },
  };
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    card c = { .size = UINT64_MAX };
    yk_pool *p = open_pool(&c, YK__POOL_WHOLE, row[i].limit * MIB, 64);
    yk_mem m;
    CHECK_OK(yk__pool_alloc(p, (size_t)row[i].ask * MIB, &m));
    CHECK_INT(n(&p->count->in_use), row[i].takes * MIB);
    yk__pool_free(p, m);
    yk__pool_close(p);
  }
}

static void test_bins(void **state) {
  (void)state;
  static const struct { size_t bytes; uint32_t bin; } row[] = {
    { 0, 0 }, { 1, 0 }, { 256, 0 }, { 511, 0 }, { 512, 1 }, { 1023, 1 }, { 1024, 2 }, { MIB, 12 }, { 256u * MIB - 1, 19 },
    { 256u * MIB, 20 }, { SIZE_MAX, 20 },
  };
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) CHECK_INT(yk__pool_bin(row[i].bytes), row[i].bin);
}

/* ---- a driver that refuses -------------------------------------------------------------------------------------- */

static void test_driver_has_less(void **state) {
  (void)state;
  card c = { .size = 60 * MIB };
  yk_pool *p = open_pool(&c, YK__POOL_WHOLE, 100 * MIB, 64);
  yk_mem a, b, d;
  CHECK_OK(yk__pool_alloc(p, 1 * MIB, &a));    /* 100, 90, 81, 72.9, 65.6, 59.05 */
  CHECK_INT(c.calls, 6);
  size_t want = 100 * MIB;
  for (int i = 0; i < 6; i++) {
    CHECK_INT(c.asked[i], want);
    want = (want - want / 10 + 255) / 256 * 256;
  }
  walk(p, &c);
  CHECK_OK(yk__pool_alloc(p, 30 * MIB, &b));   /* it backs off once in its life only */
  CHECK_CODE(yk__pool_alloc(p, 40 * MIB, &d), YK_ENOMEM, "the card has no");
  CHECK_INT(c.calls, 7);
  CHECK_INT(n(&p->count->refusals), 1);
  walk(p, &c);
  yk__pool_free(p, a);
  yk__pool_free(p, b);
  yk__pool_close(p);
  CHECK_INT(c.taken, 0);
}

static void test_driver_refuses(void **state) {
  (void)state;
  static const uint32_t alignment[] = { 1, 64, 1024 };
  for (int i = 0; i < 3; i++) {
    card c = { .size = 0 };
    yk_pool *p = open_pool(&c, i ? YK__POOL_WHOLE : YK__POOL_GROWTH, 3 * MIB, alignment[i]);
    yk_mem a = { .bytes = 5 };
    CHECK_CODE(yk__pool_alloc(p, 100, &a), YK_ENOMEM, "100 bytes asked for, 0 in use, the limit is 3145728: the card has no");
    MUST(a.base == NULL && a.bytes == 5 && c.calls > 50);
    walk(p, &c);
    c.size = UINT64_MAX;
    c.code = YK_EDEVICE;                       /* not a matter of size: told as it is, and no smaller piece is tried */
    uint64_t calls = c.calls;
    CHECK_CODE(yk__pool_alloc(p, 100, &a), YK_EDEVICE, "the card has no");
    CHECK_INT(c.calls, calls + 1);
    c.code = YK_OK;
    CHECK_OK(yk__pool_alloc(p, 100, &a));
    CHECK_INT(a.bytes, 100);
    walk(p, &c);
    yk__pool_free(p, a);
    yk__pool_close(p);
    CHECK_INT(c.taken, 0);
  }
}

/* The n-th allocation of a record fails: nothing has happened. */
static void test_no_records(void **state) {
  (void)state;
  for (int policy = YK__POOL_WHOLE; policy <= YK__POOL_EXACT; policy++) {
    card c = { .size = UINT64_MAX };
    yk_pool *p = open_pool(&c, (yk_pool_policy)policy, 8 * MIB, 64);
    yk_mem m = { 0 };
    uint64_t times = 0;
    for (yk_code rc = YK_ENOMEM; rc != YK_OK; times++) {
      yk__alloc_fail_at(1);
      rc = yk__pool_alloc(p, 1000, &m);
      if (yk__alloc_fail_at(0) == 0) break;
      CHECK_INT(rc, YK_ENOMEM);
      walk(p, &c);
      CHECK_INT(c.calls, 0);
      if (times > 0) CHECK_OK(rc = yk__pool_alloc(p, 1000, &m));
    }
    MUST(times > 0);
    CHECK_INT(n(&p->count->in_use), policy == YK__POOL_EXACT ? 1000 : 1024);
    CHECK_INT(n(&p->count->refusals), 0);
    yk__pool_close(p);
    CHECK_INT(c.taken, 0);
  }
}

/* ---- random sequences ------------------------------------------------------------------------------------------- */

enum { LIVE = 200 };

static size_t random_size(fuzz *f) {
  static const size_t upto[] = { 300, 5000, 70000, 1 * MIB, 9 * MIB };
  return 1 + fuzz_below(f, (uint32_t)upto[fuzz_below(f, 5)]);
}

/* The smallest free chunk that is large enough, by looking at all of them. */
static const yk_chunk *search(const yk_pool *p, size_t want) {
  const yk_chunk *best = NULL;
  for (const yk_region *r = p->first; r; r = r->after)
    for (const yk_chunk *c = r->first; c; c = c->after)
      if (c->bin != YK__POOL_IN_USE && c->bytes >= want && (!best || in_order(c, best))) best = c;
  return best;
}

static bool overlap(yk_mem a, size_t na, yk_mem b, size_t nb) {
  return a.base == b.base && a.offset < b.offset + nb && b.offset < a.offset + na;
}

static void check_mem(const yk_pool *p, yk_mem m, size_t bytes, const yk_mem *live, uint32_t nlive) {
  CHECK_INT(m.bytes, bytes);
  const yk_region *r = p->first;
  while (r && r->mem.base != m.base) r = r->after;
  MUST(r && m.offset >= r->mem.offset && m.offset + bytes <= r->mem.offset + r->mem.bytes);
  MUST((m.offset - r->mem.offset) % (p->policy == YK__POOL_EXACT ? 1 : p->unit) == 0);
  for (uint32_t i = 0; i < nlive; i++) MUST(!overlap(m, bytes, live[i], live[i].bytes));
}

/* One allocation, held against what the rules say will happen. */
static bool alloc_one(yk_pool *p, card *c, fuzz *f, const yk_mem *live, uint32_t nlive, yk_mem *out) {
  size_t bytes = random_size(f), want = (size_t)yk__pool_rounded(p, bytes), expect_offset = 0;
  const yk_chunk *best = p->policy == YK__POOL_EXACT ? NULL : search(p, want);
  const void *expect_base = best ? best->region->mem.base : NULL;
  uint64_t calls = c->calls, held = n(&p->count->held), limit = n(&p->count->limit);
  uint64_t unused = 0;                         /* what may be given back first */
  for (const yk_region *r = p->first; r; r = r->after) unused += r->used ? 0 : r->mem.bytes;
  if (best) expect_offset = best->region->mem.offset + best->offset;
  yk_code rc = yk__pool_alloc(p, bytes, out);
  if (rc != YK_OK) {
    MUST(best == NULL);
    CHECK_INT(rc, YK_ENOMEM);
    if ((limit - held + unused) / p->unit * p->unit >= want)
      fail_msg("%zu bytes refused; held %llu of %llu, unused %llu", bytes, (unsigned long long)held, (unsigned long long)limit,
               (unsigned long long)unused);
    return false;
  }
  check_mem(p, *out, bytes, live, nlive);
  if (best) {
    MUST(out->base == expect_base);
    CHECK_INT(out->offset, expect_offset);
    CHECK_INT(c->calls, calls);
  }
  return true;
}

static void sequence(yk_pool_policy policy, uint64_t limit, uint32_t alignment, uint64_t seed) {
  fuzz f = { seed };
  card c = { .size = UINT64_MAX };
  yk_pool *p = open_pool(&c, policy, limit, alignment);
  yk_mem live[LIVE];
  uint32_t nlive = 0;
  uint64_t most = 0;
  for (int i = 0; i < 1500; i++) {
    bool rising = i / 250 % 2 == 0;
    if (nlive < LIVE && (nlive == 0 || fuzz_below(&f, 10) < (rising ? 7u : 3u))) {
      nlive += alloc_one(p, &c, &f, live, nlive, &live[nlive]);
    } else {
      uint32_t k = fuzz_below(&f, nlive);
      yk__pool_free(p, live[k]);
      live[k] = live[--nlive];
    }
    walk(p, &c);
    if (n(&p->count->in_use) > most) most = n(&p->count->in_use);
    if (policy == YK__POOL_EXACT) CHECK_INT(n(&p->count->held), n(&p->count->in_use));
  }
  CHECK_INT(n(&p->count->peak_in_use), most);
  while (nlive > 0) yk__pool_free(p, live[--nlive]);
  walk(p, &c);
  CHECK_INT(n(&p->count->in_use), 0);
  for (const yk_region *r = p->first; r; r = r->after) MUST(r->first->after == NULL);      /* all is one piece again */
  if (policy == YK__POOL_EXACT) CHECK_INT(n(&p->count->held), 0);
  yk__pool_close(p);
  CHECK_INT(c.taken, 0);
}

static void test_sequences(void **state) {
  (void)state;
  uint64_t rounds = fuzz_rounds(4);
  for (uint64_t seed = 0; seed < rounds; seed++) {
    sequence(YK__POOL_WHOLE, 48 * MIB, 64, 3 * seed);
    sequence(YK__POOL_GROWTH, 64 * MIB, 64, 3 * seed + 1);
    sequence(YK__POOL_GROWTH, 30 * MIB + 777, 1024, 3 * seed + 1);
    sequence(YK__POOL_EXACT, 40 * MIB, 64, 3 * seed + 2);
  }
}

/* From the third allocation on no record is allocated for what was there before. */
static void test_records_are_kept(void **state) {
  (void)state;
  for (int policy = YK__POOL_WHOLE; policy <= YK__POOL_EXACT; policy++) {
    card c = { .size = UINT64_MAX };
    yk_pool *p = open_pool(&c, (yk_pool_policy)policy, 8 * MIB, 64);
    yk_mem m[3];
    for (int round = 0; round < 100; round++) {
      uint64_t count = yk__alloc_count();
      for (int i = 0; i < 3; i++) CHECK_OK(yk__pool_alloc(p, (size_t)(1000 << i), &m[i]));
      for (int i = 0; i < 3; i++) yk__pool_free(p, m[i]);
      if (round > 0) CHECK_INT(yk__alloc_count(), count);
    }
    yk__pool_close(p);
  }
}

/* ---- the dump --------------------------------------------------------------------------------------------------- */

static void test_dump(void **state) {
  (void)state;
  card c = { .size = UINT64_MAX };
  yk_pool *p = open_pool(&c, YK__POOL_WHOLE, 100 * KIB, 64);
  yk_mem m[4];
  yk_str s = { 0 };
  char *text = NULL;
  for (int i = 0; i < 4; i++) CHECK_OK(yk__pool_alloc(p, i < 2 ? 10 * KIB : 20 * KIB - 100, &m[i]));
  yk__pool_free(p, m[1]);
  yk__pool_dump(p, "/device:GPU:0", 50 * KIB, &s);
  CHECK_OK(yk__str_take(&s, &text));
  static const char *const parts[] = {
    "pool of /device:GPU:0: no room for 50.0KiB, rounded to 51200",
    "bin (8192): 2 chunks, 1 in use; 20.0KiB in chunks, 10.0KiB in use, 10.0KiB asked for",
    "bin for 50.0KiB is that of 32768", "free 40.0KiB, before it 20.0KiB in use\n",
    "region 0 of size 102400", "InUse at ", "Free  at ", " of size 10240\n", "2 chunks of size 20480 totalling 40.0KiB",
    "in use, all together: 50.0KiB", "held: 102400, limit: 102400, available: 0", "Limit:                      102400",
    "MaxInUse:                    61440", "NumAllocs:                       4",
    "\n**********__________****************************************________________________________________\n",
  };
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (!strstr(text, parts[i])) fail_msg("the dump lacks \"%s\":\n%s", parts[i], text);
  yk__free(text);
  yk__pool_close(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_bins), cmocka_unit_test(test_growth), cmocka_unit_test(test_whole), cmocka_unit_test(test_split),
    cmocka_unit_test(test_driver_has_less), cmocka_unit_test(test_driver_refuses), cmocka_unit_test(test_no_records),
    cmocka_unit_test(test_sequences), cmocka_unit_test(test_records_are_kept), cmocka_unit_test(test_dump),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
