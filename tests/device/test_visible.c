/*
 * test_visible.c - CUDA_VISIBLE_DEVICES in all the forms users write.
 *
 * A table: text, number of devices, what is left in which order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "device/visible.h"

static const struct { const char *text; uint16_t count; const char *want; } table[] = {
  { NULL, 3, "0 1 2" },       { NULL, 0, "" },              { "", 2, "" },              { "-1", 2, "" },
  { "1", 2, "1" },            { "0,1", 2, "0 1" },          { "\"0,1\"", 2, "0 1" },    { "'1'", 2, "1" },
  { "1,0", 2, "1 0" },        { "0,2,3", 4, "0 2 3" },      { "0,2,-1,1", 4, "0 2" },   { "9,0", 2, "" },
  { "0,9,1", 2, "0" },        { " 1 , 0 ", 2, "1 0" },      { "\"\"", 2, "" },          { "0,", 2, "0" },
  { "1,1", 2, "" },           { "0,1,0", 2, "" },           { "x", 2, "" },             { "0,1x", 2, "0" },
  { "99999999999", 2, "" },   { ",0", 2, "" },              { "0", 0, "" },             { "none", 2, "" },
};

static void test_table(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    uint16_t out[8], n = yk__visible_devices(table[i].text, table[i].count, out);
    char got[64] = "";
    assert_true(n <= table[i].count);
    for (uint16_t k = 0; k < n; k++) snprintf(got + strlen(got), sizeof got - strlen(got), "%s%u", k ? " " : "", out[k]);
    if (strcmp(got, table[i].want) != 0)
      fail_msg("\"%s\" of %u: \"%s\", expected \"%s\"", table[i].text ? table[i].text : "(unset)", table[i].count, got,
               table[i].want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_table) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
