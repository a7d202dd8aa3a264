/*
 * support.h - compile a small graph for a set of devices, and look at the plan.
 *
 * A fixture owns devices, graph, variable slots and plan; the tests ask it for
 * counts and for the explained text.
 */
#ifndef YK_TEST_PLAN_SUPPORT_H
#define YK_TEST_PLAN_SUPPORT_H

#include <yoke/math.h>
#include "../support/check.h"
#include "base/alloc.h"
#include "device/device.h"
#include "plan/plan.h"

typedef struct yk_fixture {
  yk_devices *devices;
  yk_graph *g;
  yk_var_slot var[64];
  yk_plan *plan;
  int soft, strict;
} yk_fixture;

static inline void fixture_open(yk_fixture *f, const char *driver, uint16_t ngpu) {
  yk_device_request r[2] = { { .type = "CPU", .driver = driver, .count = 1 }, { .type = "GPU", .driver = driver, .count = ngpu, .is_virtual = 1 } };
  memset(f, 0, sizeof *f);
  CHECK_OK(yk__devices_open(ngpu ? 2 : 1, r, 2, &f->devices));
  CHECK_OK(yk_graph_new(&f->g));
}

static inline yk_code fixture_compile(yk_fixture *f, uint32_t nfeed, const yk_value *feed, const yk_desc *desc, uint32_t nfetch,
                                      const yk_value *fetch, uint32_t ntarget, const yk_value *target) {
  yk_plan_request r = { .graph = f->g, .devices = f->devices, .var = f->var, .nfeed = nfeed, .feed = feed, .feed_desc = desc, .nfetch = nfetch,
                        .fetch = fetch, .ntarget = ntarget, .target = target, .soft_placement = (uint8_t)f->soft, .strict = (uint8_t)f->strict };
  yk__plan_free(f->plan);
  f->plan = NULL;
  CHECK_OK(yk_graph_status(f->g));
  for (uint32_t i = 0; i < f->g->nvariable; i++)
    if (f->var[i].desc.dtype == 0) f->var[i] = (yk_var_slot){ .dev = 0xFFFF, .desc = *yk_variable_desc(f->g->variable[i]) };
  return yk__plan_compile(&r, &f->plan);
}

static inline uint32_t count_code(const yk_plan *p, yk_opcode code) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->ninstr; i++) n += p->instr[i].code == code;
  return n;
}

static inline uint32_t count_kind(const yk_plan *p, yk_buf_kind kind) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->nbuf; i++) n += p->buf[i].kind == kind;
  return n;
}

/* Launches whose node's label is `label`. */
static inline uint32_t count_label(const yk_plan *p, const char *label) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->ninstr; i++) n += p->instr[i].code == YK_I_LAUNCH && strcmp(p->origin[p->instr[i].origin].label, label) == 0;
  return n;
}

static inline void fixture_close(yk_fixture *f) {
  yk__plan_free(f->plan);
  yk_graph_free(f->g);
  yk__devices_close(f->devices);
}

#endif
