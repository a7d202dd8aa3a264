/*
 * Training 2k steps is training k steps, saving, and training k steps in a new graph and session from what was saved: every loss and
 * every variable, bit for bit, for each optimizer, with dropout, augmentation, averages and statistics, on one device and on four.
 * What four devices saved is read on one, and the reverse.
 */
#include "folder.h"
#include "trainer.h"

enum { STEPS = 4 };

static int setup(void **state) {
  trainer_setup();
  return folder_setup(state);
}

static int teardown(void **state) {
  trainer_teardown();
  return folder_teardown(state);
}

static void save(run *r, bool background) {
  yk_saver *s;
  CHECK_OK(yk_saver_open(folder, NULL, &s));
  save_as(r, s, STEPS, background);
  if (background) {                                  /* what is trained meanwhile is not in it */
    float loss[2];
    train(r, 2, loss);
  }
  CHECK_OK(yk_saver_close(s));
}

static void restore(run *r) {
  CHECK_INT(restore_newest(r), STEPS);
}

static void same_losses(const float *got, const float *want, const run *r) {
  for (int i = 0; i < STEPS; i++)
    if (memcmp(&got[i], &want[i], sizeof *got) != 0)
      fail_msg("%s on %d devices: loss %d after going on is %.9g, without a stop it was %.9g", r->k->name, r->devices, i, (double)got[i],
               (double)want[i]);
}

/* `initialise`: run the initializer before the values are restored over it, or never. */
static void check(const kind *k, int devices, bool initialise) {
  run whole, first, second;
  float want[2 * STEPS], early[STEPS], late[STEPS];
  folder_empty(NULL);
  start(&whole, k, devices, true);
  train(&whole, 2 * STEPS, want);
  start(&first, k, devices, true);
  train(&first, STEPS, early);
  same_losses(early, want, &first);
  save(&first, initialise);
  stop(&first);
  start(&second, k, devices, initialise);
  restore(&second);
  train(&second, STEPS, late);
  same_losses(late, want + STEPS, &second);
  same_variables(&whole, &second);
  if (memcmp(&want[0], &want[STEPS], sizeof want[0]) == 0) fail_msg("the loss does not change");
  stop(&second);
  stop(&whole);
}

static void test_on_one(void **state) {
  (void)state;
  for (int i = 0; i < nkinds; i++) check(&kinds[i], 1, i % 2 == 0);
}

static void test_on_four(void **state) {
  (void)state;
  for (int i = 0; i < nkinds; i++) check(&kinds[i], 4, i % 2 == 1);
}

/* Saved on `from` devices, read on `to`: all variables are what they were. */
static void moves(int from, int to) {
  run a, b;
  float loss[STEPS];
  folder_empty(NULL);
  start(&a, &kinds[1], from, true);
  train(&a, STEPS, loss);
  save(&a, false);
  start(&b, &kinds[1], to, false);
  restore(&b);
  same_variables(&a, &b);
  train(&b, 1, loss);
  stop(&b);
  stop(&a);
}

static void test_other_devices(void **state) {
  (void)state;
  moves(4, 1);
  moves(1, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_on_one), cmocka_unit_test(test_on_four), cmocka_unit_test(test_other_devices) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
