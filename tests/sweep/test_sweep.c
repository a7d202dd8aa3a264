/*
 * test_sweep.c - every operation of the registry x dtype x case, on every device, against its reference in double.
 *
 * The plain CPU is a device like any other. It is swept twice: with the kernel the driver prefers, and with each of its
 * candidates alone, so that the plain loops are checked even where oneDNN comes first.
 */
#include "support/sweep.h"

#include "backend/cpu/cpu.h"
#include "device/device.h"
#include "op/registry.h"
#include "support/check.h"

/* Ops that have no kernel to compare, and why. */
static const struct { const char *op, *why; } not_swept[] = {
  { "constant", "a source" }, { "placeholder", "a source" }, { "variable", "a source" }, { "run_counter", "a source" },
  { "dequeue", "needs a queue: test_kernels" }, { "reorder", "made by the planner: test_kernels" },
};
enum { NOT_SWEPT = sizeof not_swept / sizeof *not_swept };

static int is_skipped(const char *name) {
  for (int i = 0; i < NOT_SWEPT; i++)
    if (strcmp(not_swept[i].op, name) == 0) return 1;
  return 0;
}

static void report(const char *what, const sweep_total *t) {
  print_message("%s: %llu ops x dtypes (%llu) x cases (%llu) x devices (%llu) compared, %llu values, %llu skipped", what,
                (unsigned long long)t->ops, (unsigned long long)t->dtypes, (unsigned long long)t->cases,
                (unsigned long long)t->devices, (unsigned long long)t->values, (unsigned long long)t->skipped);
  if (t->skipped) {
    print_message(" (");
    for (int i = 0; i < NOT_SWEPT; i++) print_message("%s%s: %s", i ? ", " : "", not_swept[i].op, not_swept[i].why);
    print_message(")");
  }
  print_message("\n");
}

static void finish(const char *what, const sweep_total *t) {
  report(what, t);
  if (t->failed)
    fail_msg("%s: %llu of %llu cases failed", what, (unsigned long long)t->failed, (unsigned long long)(t->cases + t->refused));
  if (t->values == 0) fail_msg("%s: nothing was compared", what);
}

static void sweep_registry(const char *driver, int inline_stream) {
  const yk_driver *d = yk__driver_find(driver);
  sweep_total total = { .devices = 1 };
  sweep_device device;
  size_t n;
  const yk_op *const *ops = yk_op_all(&n);
  if (!d) fail_msg("no driver %s", driver);
  sweep_open(d, inline_stream, &device);
  for (size_t i = 0; i < n; i++) {
    if (is_skipped(ops[i]->name)) {
      total.skipped++;
      continue;
    }
    if (!ops[i]->cases || !ops[i]->cases[0].shapes) {
      print_message("%s has no cases\n", ops[i]->name);
      total.failed++;
    }
    sweep_op(&device, ops[i], ops[i]->cases, &total);
  }
  sweep_close(&device);
  CHECK_INT(total.skipped, NOT_SWEPT);
  finish(driver, &total);
}

static void cpu(void **state) {
  (void)state;
  sweep_registry("cpu", 1);
}

/* Each candidate alone; one that refuses every case of its op is reported, for it may be dead. */
static void cpu_candidates(void **state) {
  sweep_total total = { .devices = 1 };
  sweep_device device;
  size_t n;
  const yk_op *const *ops = yk_op_all(&n);
  (void)state;
  sweep_open(yk__driver_find("cpu"), 1, &device);
  for (size_t i = 0; i < n; i++) {
    if (is_skipped(ops[i]->name)) continue;
    for (device.only = 0; yk__cpu_candidate_name(ops[i]->name, device.only); device.only++) {
      uint64_t before = total.cases;
      device.name = yk__cpu_candidate_name(ops[i]->name, device.only);
      sweep_op(&device, ops[i], ops[i]->cases, &total);
      if (total.cases == before) print_message("%s: candidate %s takes no case\n", ops[i]->name, device.name);
    }
  }
  sweep_close(&device);
  finish("cpu, each candidate", &total);
}

static void ref(void **state) {
  (void)state;
  sweep_registry("ref", 0);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(cpu), cmocka_unit_test(cpu_candidates), cmocka_unit_test(ref) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
