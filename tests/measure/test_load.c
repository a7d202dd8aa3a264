/*
 * Load and temperature, read from files that the test wrote in the place of /proc/stat and /sys. What is not told is unknown, never 0.
 */
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/thread.h"
#include "measure/load.h"
#include "support/check.h"

static char root[64];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s;
  (void)type;
  (void)at;
  return remove(path);
}

static int setup(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/yoke-load-XXXXXX");
  return mkdtemp(root) == NULL || chdir(root) != 0;
}

static int teardown(void **state) {
  (void)state;
  return chdir("/") != 0 || nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text) {
  char copy[256];
  snprintf(copy, sizeof copy, "%s", path);
  for (char *p = copy; (p = strchr(p, '/')) != NULL; p++) {
    *p = '\0';
    mkdir(copy, 0777);
    *p = '/';
  }
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  CHECK_INT(fputs(text, f) >= 0, 1);
  CHECK_INT(fclose(f), 0);
}

/* Of the first core that this process may use. */
static void put_stat(const char *path, const char *numbers) {
  char text[256];
  snprintf(text, sizeof text, "cpu  1 2 3 4 5 6 7 8\ncpu%d %s\nintr 5\n", yk__core_number(0), numbers);
  put(path, text);
}

static void test_load(void **state) {
  static yk_load a, b, none;
  (void)state;
  put_stat("a", "100 0 50 800 50 0 0 0 0 0");
  put_stat("b", "130 5 60 890 60 3 2 10 99 99");             /* busy 30 + 5 + 10 + 3 + 2 + 10 of 160 */
  yk__load_read("a", &a);
  yk__load_read("b", &b);
  CHECK_NEAR(yk__load_between(&a, &b, 0, 1), 0.375, 1e-12);
  CHECK_NEAR(yk__load_between(&a, &a, 0, 1), YK__UNKNOWN, 0);
  CHECK_NEAR(yk__load_between(&b, &a, 0, 1), YK__UNKNOWN, 0);
  CHECK_NEAR(yk__load_between(&a, &b, 0, 0), YK__UNKNOWN, 0);
  CHECK_NEAR(yk__load_between(&a, &b, 5000, 3), YK__UNKNOWN, 0);
  yk__load_read("nothing", &none);
  CHECK_NEAR(yk__load_between(&none, &none, 0, 1), YK__UNKNOWN, 0);
  put("c", "cpu99999 1 2 3 4\ncpu\ncpux 1\ncpu1 a b\n");
  yk__load_read("c", &none);
  for (int i = 0; i < YK__LOAD_CORES; i++) CHECK_INT(none.total[i], 0);
  yk__load_read("/proc/stat", &none);
  assert_true(none.total[yk__core_number(0)] > 0);
}

static void test_temperature(void **state) {
  (void)state;
  CHECK_NEAR(yk__temperature("nowhere"), YK__UNKNOWN, 0);
  put("sys/class/hwmon/hwmon0/name", "nvme\n");
  put("sys/class/hwmon/hwmon0/temp1_input", "90000\n");
  CHECK_NEAR(yk__temperature("sys"), YK__UNKNOWN, 0);
  put("sys/class/thermal/thermal_zone0/type", "acpitz\n");
  put("sys/class/thermal/thermal_zone0/temp", "91000\n");
  CHECK_NEAR(yk__temperature("sys"), YK__UNKNOWN, 0);
  put("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  put("sys/class/thermal/thermal_zone1/temp", "61500\n");
  CHECK_NEAR(yk__temperature("sys"), 61.5, 1e-9);
  put("sys/class/hwmon/hwmon1/name", "k10temp\n");
  put("sys/class/hwmon/hwmon1/temp1_input", "44250\n");
  put("sys/class/hwmon/hwmon1/temp3_input", "47000\n");
  put("sys/class/hwmon/hwmon1/temp3_max", "95000\n");
  put("sys/class/hwmon/hwmon1/temp4_input", "none\n");
  put("sys/class/hwmon/hwmon1/temp5_input", "999000\n");
  CHECK_NEAR(yk__temperature("sys"), 47, 1e-9);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_load), cmocka_unit_test(test_temperature) };
  return cmocka_run_group_tests(tests, setup, teardown);
}
