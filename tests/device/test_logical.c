/*
 * test_logical.c - one device of a driver, several logical ones.
 *
 * The driver is a toy: a card with a bus address, so not the host, whose work the reference driver does. It counts what is opened
 * and which copies it is asked for, and its peer copy fails, since a copy between parts of a device is no copy between devices.
 */
#include <yoke/math.h>
#include "base/alloc.h"
#include "plan/plan.h"
#include <yoke/session.h>
#include "rig.h"
#include "run/run.h"

enum { CARDS = 2 };
static const uint64_t CARD = 1000000;

static yk_driver toy;
static const yk_driver *ref;
static int opened, closed, copies;
static uint32_t ordinals[8];

static yk_code toy_count(uint32_t *out) { *out = CARDS; return YK_OK; }
static yk_code toy_info(uint32_t ordinal, yk_dev_info *out) {
  uint32_t size = out->size;
  OK(ref->info(0, out));
  assert_int_equal(size, sizeof *out);
  snprintf(out->bus, sizeof out->bus, "0000:%02u:00.0", (unsigned)ordinal + 1);
  out->bytes_total = CARD;
  return YK_OK;
}
static yk_code toy_open(uint32_t ordinal, const yk_dev_config *config, yk_dev **out) {
  ordinals[opened++] = ordinal;
  return ref->open(0, config, out);
}
static void toy_close(yk_dev *dev) {
  closed += dev != NULL;
  ref->close(dev);
}
static yk_code toy_copy(yk_stream *s, yk_mem dst, yk_mem src) {
  copies++;
  return ref->copy(s, dst, src);
}
static yk_code toy_copy_peer(yk_stream *s, yk_mem dst, yk_dev *src_dev, yk_mem src) {
  (void)s;
  (void)dst;
  (void)src_dev;
  (void)src;
  return (yk__host.fail)(YK_EDEVICE, __FILE__, __LINE__, "a peer copy within one device");
}

static int setup(void **state) {
  (void)state;
  ref = yk__driver_find("ref");
  memcpy(&toy, ref, ref->size < sizeof toy ? ref->size : sizeof toy);
  toy.size = ref->size < sizeof toy ? ref->size : (uint32_t)sizeof toy;
  toy.name = "toy";
  toy.count = toy_count;
  toy.info = toy_info;
  toy.open = toy_open;
  toy.close = toy_close;
  toy.copy = toy_copy;
  toy.copy_peer = toy_copy_peer;
  opened = closed = copies = 0;
  return 0;
}

static yk_devices *open_cards(uint16_t nparts, const uint64_t *part) {
  const yk_device_request want[] = { { .type = "CPU", .driver = "ref", .count = 1 },
                                     { .type = "GPU", .table = &toy, .count = 1, .nparts = nparts, .part = part },
                                     { .type = "GPU", .table = &toy, .count = 1, .ordinal = 1 } };
  yk_devices *all = NULL;
  OK(yk__devices_open(3, want, 1, &all));
  return all;
}

static void test_one_opened(void **state) {
  static const uint64_t part[] = { 500000, 300000, 200000 };
  (void)state;
  yk_devices *all = open_cards(3, part);
  assert_int_equal(all->n, 5);
  assert_int_equal(opened, 2);                         /* two cards, four GPUs */
  assert_int_equal(ordinals[0], 0);
  assert_int_equal(ordinals[1], 1);
  for (uint16_t i = 1; i < 4; i++) {
    const yk_device *d = &all->at[i];
    assert_int_equal(d->spec.id, i - 1);
    assert_ptr_equal(d->dev, all->at[1].dev);
    assert_ptr_equal(d->part_of, i == 1 ? NULL : &all->at[1]);
    assert_int_equal(d->part, i - 1);
    assert_int_equal(d->parts, 3);
    assert_int_equal(d->limit, part[i - 1]);
    assert_string_equal(d->info.bus, "0000:01:00.0");
  }
  assert_string_equal(all->at[4].info.bus, "0000:02:00.0");
  assert_int_equal(all->at[4].spec.id, 3);
  assert_int_equal(all->at[4].parts, 0);
  assert_int_equal(all->at[4].limit, CARD);
  assert_false(yk__device_same_memory(&all->at[1], &all->at[2]));
  yk_stream *a = NULL, *b = NULL;
  OK(yk__device_stream(&all->at[1], &a));
  OK(yk__device_stream(&all->at[2], &b));
  assert_ptr_not_equal(a, b);                          /* a card works on several things at once */
  yk__devices_close(all);
  assert_int_equal(closed, 2);
}

static uint64_t in_use(const yk_device *d) {
  yk_device_memory m = YK_DEVICE_MEMORY_INIT;
  yk__device_memory(d, &m);
  return m.bytes_in_use;
}

/* Each part is held to its own limit, though the card has room. */
static void test_limits(void **state) {
  static const uint64_t part[] = { 768, 512 };
  (void)state;
  yk_devices *all = open_cards(2, part);
  yk_mem a = { 0 }, b = { 0 }, c = { 0 };
  OK(yk__device_alloc(&all->at[1], 600, &a));
  FAILS(ENOMEM, yk__device_alloc(&all->at[1], 1, &b));
  SAYS("device:GPU:0: 1 bytes asked for, 768 in use, the limit is 768");
  OK(yk__device_alloc(&all->at[2], 300, &b));
  FAILS(ENOMEM, yk__device_alloc(&all->at[2], 1, &c));
  SAYS("device:GPU:1: 1 bytes asked for, 512 in use, the limit is 512");
  yk__device_free(&all->at[1], a);
  assert_int_equal(in_use(&all->at[1]), 0);
  assert_int_equal(in_use(&all->at[2]), 512);
  yk__device_free(&all->at[2], b);
  yk__devices_close(all);
}

static void test_refused(void **state) {
  static const uint64_t more[] = { 600000, 400001 }, huge[] = { UINT64_MAX, 2 }, all_of_it[] = { 600000, 400000 };
  yk_devices *all = NULL;
  (void)state;
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .table = &toy, .count = 1, .nparts = 2, .part = more },
                                 1, &all));
  SAYS("device:GPU:0 is to be split into 2 parts of together 1000001 bytes, but has 1000000");
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .table = &toy, .count = 1, .nparts = 2, .part = huge },
                                 1, &all));
  FAILS(ENOTFOUND, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .table = &toy, .count = 3, .nparts = 2,
                                                             .part = all_of_it }, 1, &all));
  SAYS("device:GPU:4: 3 devices asked of driver 'toy', it has 2");
  FAILS(EINVAL, yk__devices_open(1, &(yk_device_request){ .type = "GPU", .table = &toy, .count = 60000, .nparts = 2,
                                                          .part = more }, 1, &all));
  SAYS("120000 devices asked for");
  assert_null(all);
  assert_int_equal(opened, 0);
}

/* The parts of a host device have its cores and one stream; only one card is counted when cores are shared out. */
static void test_host_parts(void **state) {
  static const uint64_t part[] = { 500, 500 };
  const yk_device_request want[] = { { .type = "CPU", .driver = "null", .count = 1 },
                                     { .type = "GPU", .driver = "null", .count = 1, .is_virtual = 1, .limit = 1000, .nparts = 2,
                                       .part = part },
                                     { .type = "GPU", .driver = "null", .count = 1, .is_virtual = 1 } };
  (void)state;
  yk_devices *all = NULL;
  OK(yk__devices_open(3, want, 8, &all));
  static const uint32_t first[] = { 0, 0, 0, 4 }, n[] = { 8, 4, 4, 4 };
  for (uint16_t i = 0; i < 4; i++) {
    const yk_dev_config *c = &all->at[i].config;
    if (c->first_core != first[i] || c->ncores != n[i])
      fail_msg("%s has %u cores from %u, expected %u from %u", all->at[i].name, c->ncores, c->first_core, n[i], first[i]);
  }
  assert_ptr_equal(all->at[2].dev, all->at[1].dev);
  assert_ptr_equal(all->at[2].stream_of, &all->at[1]);
  assert_null(all->at[3].stream_of);
  yk__devices_close(all);
  OK(yk__devices_open(2, want, 8, &all));              /* one card: its first part's stream serves the CPU too */
  assert_ptr_equal(all->at[0].stream_of, &all->at[1]);
  assert_ptr_equal(all->at[2].stream_of, &all->at[1]);
  yk__devices_close(all);
}

/* A step over both parts, the other card and the CPU: every value arrives, and between parts by the driver's own copy. */
static void test_step(void **state) {
  static const uint64_t part[] = { 500000, 500000 };
  (void)state;
  yk_devices *all = open_cards(2, part);
  yk_graph *g;
  yk_plan *p = NULL;
  yk_run *r = NULL;
  yk_value y = { 0 }, z = { 0 };
  OK(yk_graph_new(&g));
  yk_value x = yk_placeholder(g, "x", YK_F32, YK_SHAPE(4));
  YK_DEVICE(g, "/gpu:0") { y = yk_add(g, x, x); }
  YK_DEVICE(g, "/gpu:1") { z = yk_mul(g, y, y); }
  OK(yk_graph_status(g));
  yk_desc desc = { .dtype = YK_F32, .rank = 1, .dim = { 4 } };
  yk_plan_request q = { .graph = g, .devices = all, .nfeed = 1, .feed = &x, .feed_desc = &desc, .nfetch = 1, .fetch = &z };
  OK(yk__plan_compile(&q, &p));
  OK(yk__run_new(p, all, NULL, &r));
  const float in[4] = { 1, 2, 3, -4 };
  float out[4] = { 0 };
  const void *feed[1] = { in };
  void *fetch[1] = { out };
  copies = 0;
  OK(yk__run_go(r, &(yk_io){ .feed = feed, .fetch = fetch, .timeout_ms = 10000 }));
  for (int i = 0; i < 4; i++)
    if (out[i] != 4 * in[i] * in[i]) fail_msg("element %d: %g, expected %g", i, (double)out[i], (double)(4 * in[i] * in[i]));
  assert_int_equal(copies, 1);
  yk__run_free(r);
  yk__plan_free(p);
  yk_graph_free(g);
  yk__devices_close(all);
  assert_int_equal(closed, opened);
}

static void test_out_of_memory(void **state) {
  static const uint64_t part[] = { 500000, 500000 };
  uint64_t live = yk__alloc_live();
  yk_code rc = YK_ENOMEM;
  (void)state;
  for (uint64_t n = 1; rc != YK_OK; n++) {
    yk_devices *all = NULL;
    assert_true(n < 100);
    opened = closed = 0;
    yk__alloc_fail_at(n);
    rc = yk__devices_open(1, &(yk_device_request){ .type = "GPU", .table = &toy, .count = 2, .nparts = 2, .part = part }, 1,
                          &all);
    yk__alloc_fail_at(0);
    yk__devices_close(all);
    if (rc != YK_OK) FAILS(ENOMEM, rc);
    assert_int_equal(yk__alloc_live(), live);
  }
  assert_int_equal(opened, 2);
  assert_int_equal(closed, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_one_opened, setup), cmocka_unit_test_setup(test_limits, setup),
    cmocka_unit_test_setup(test_refused, setup),    cmocka_unit_test_setup(test_host_parts, setup),
    cmocka_unit_test_setup(test_step, setup),       cmocka_unit_test_setup(test_out_of_memory, setup),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
