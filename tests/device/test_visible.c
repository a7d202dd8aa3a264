/*
 * test_visible.c - which GPUs a process sees: CUDA_VISIBLE_DEVICES in all the forms users write, CUDA_DEVICE_ORDER, and the
 * session's own list.
 *
 * Tables: text, number of GPUs, what is left in which order. docs/devices.md shows the rows marked there.
 */
#include "support/check.h"
#include "device/visible.h"

static const yk_gpu_id gpus[4] = {
  { "GPU-11112222-aaaa", "0000:c1:00.0", 10 }, { "GPU-11113333-bbbb", "0000:3b:00.0", 10 },
  { "GPU-4444", "0000:5e:00.0", 30 },          { "MIG-GPU-4444/1/0", "0000:02:00.0", 20 },
};

static const struct { const char *text; uint16_t count; const char *want; } table[] = {
  { NULL, 3, "0 1 2" },       { NULL, 0, "" },              { "", 2, "" },              { "-1", 2, "" },
  { "1", 2, "1" },            { "0,1", 2, "0 1" },          { "\"0,1\"", 2, "0 1" },    { "'1'", 2, "1" },
  { "1,0", 2, "1 0" },        { "0,2,3", 4, "0 2 3" },      { "0,2,-1,1", 4, "0 2" },   { "9,0", 2, "" },
  { "0,9,1", 2, "0" },        { " 1 , 0 ", 2, "1 0" },      { "\"\"", 2, "" },          { "0,", 2, "0" },
  { "1,1", 2, "" },           { "0,1,0", 2, "" },           { "x", 2, "" },             { "0,1x", 2, "0 1" },
  { "99999999999", 2, "" },   { ",0", 2, "" },              { "0", 0, "" },             { "none", 2, "" },
  { "0,0", 2, "" },           { "99", 2, "" },              { "abc", 2, "" },           { "0,99,1", 2, "0" },
  { "1gpu,0gpu", 2, "1 0" },  { "+1", 2, "" },              { "0x1", 2, "0" },          { "1 0", 2, "1" },
  { "1;0", 2, "1" },          { "'0,1", 2, "0 1" },         { "\"1\",0", 2, "1" },      { "0,abc,1", 2, "0" },
  { "GPU-11112222-aaaa", 4, "0" },                          { "GPU-11113", 4, "1" },
  { "GPU-1111", 4, "" },      { "GPU-9", 4, "" },           { "GPU-4444,GPU-11112", 4, "2 0" },
  { "GPU-4444,0", 4, "2" },   { "0,GPU-4444", 4, "0" },     { "GPU-4444,GPU-4", 4, "" },
  { "GPU-4444,GPU-9,GPU-11112", 4, "2" },                   { " GPU-4444 , GPU-11113 ", 4, "2 1" },
  { "\"GPU-4444\"", 4, "2" }, { "gpu-4444", 4, "" },        { "GPU-44445", 4, "" },
  { "MIG-GPU-4444/1/0", 4, "3" },                           { "MIG-GPU-4444/1/0,GPU-4444", 4, "3" },
  { "MIG-GPU-4444/2/0", 4, "" },                            { "GPU-4444,MIG-GPU-4444/1/0", 4, "2 3" },
};

static char *joined(const uint16_t *out, uint16_t n, char *buf, size_t bytes) {
  buf[0] = '\0';
  for (uint16_t k = 0; k < n; k++) snprintf(buf + strlen(buf), bytes - strlen(buf), "%s%u", k ? " " : "", out[k]);
  return buf;
}

static void test_table(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    uint16_t out[8], n = yk__visible_devices(table[i].text, table[i].count, gpus, out);
    char got[64];
    assert_true(n <= table[i].count);
    if (strcmp(joined(out, n, got, sizeof got), table[i].want) != 0)
      fail_msg("\"%s\" of %u: \"%s\", expected \"%s\"", table[i].text ? table[i].text : "(unset)", table[i].count, got,
               table[i].want);
  }
}

/* Only what may be a mistake is remarked on. */
static void test_remarks(void **state) {
  static const struct { const char *text; uint16_t count; const char *want; } remarks[] = {
    { NULL, 2, "" }, { "", 2, "" }, { "-1", 2, "" }, { "1,0", 2, "" }, { "0,", 2, "" }, { "0,-1,1", 2, "" }, { "99", 0, "" },
    { "99", 2, "CUDA_VISIBLE_DEVICES: \"99\" is no GPU, which ends the list; 0 of 2 GPUs can be seen" },
    { "0,99,1", 2, "CUDA_VISIBLE_DEVICES: \"99\" is no GPU, which ends the list; 1 of 2 GPUs can be seen" },
    { "0,0", 2, "CUDA_VISIBLE_DEVICES: \"0\" is listed twice, which hides all; 0 of 2 GPUs can be seen" },
    { "GPU-4444,0", 4, "CUDA_VISIBLE_DEVICES: \"0\" is no GPU, which ends the list; 1 of 4 GPUs can be seen" },
    { "GPU-1111", 4, "CUDA_VISIBLE_DEVICES: \"GPU-1111\" is no GPU, which ends the list; 0 of 4 GPUs can be seen" },
    { "a\nb%sc0123456789012345678901234567890", 2,
      "CUDA_VISIBLE_DEVICES: \"a?b%sc01234567890123456\" is no GPU, which ends the list; 0 of 2 GPUs can be seen" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof remarks / sizeof *remarks; i++) {
    uint16_t room[4];
    char got[160];
    assert_string_equal(yk__visible_remark(remarks[i].text, remarks[i].count, gpus, room, got, sizeof got), remarks[i].want);
  }
}

/* Without UUIDs, such a list shows nothing; numbers work. */
static void test_without_uuids(void **state) {
  uint16_t out[4];
  (void)state;
  CHECK_INT(yk__visible_devices("GPU-4444", 4, NULL, out), 0);
  CHECK_INT(yk__visible_devices("3,1", 4, NULL, out), 2);
  CHECK_INT(out[0], 3);
}

static void test_order(void **state) {
  static const struct { const char *order; uint16_t count; const char *want; } orders[] = {
    { NULL, 4, "2 0 1 3" }, { "FASTEST_FIRST", 4, "2 0 1 3" }, { "PCI_BUS_ID", 4, "3 1 2 0" }, { "PCI_BUS_ID", 2, "1 0" },
    { "", 2, "0 1" }, { "pci_bus_id", 2, "0 1" }, { NULL, 1, "0" }, { NULL, 0, "" }, { "PCI_BUS_ID", 0, "" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    uint16_t out[4];
    char got[64];
    yk__gpu_order(orders[i].order, orders[i].count, gpus, out);
    if (strcmp(joined(out, orders[i].count, got, sizeof got), orders[i].want) != 0)
      fail_msg("order %s of %u: \"%s\", expected \"%s\"", orders[i].order ? orders[i].order : "(unset)", orders[i].count, got,
               orders[i].want);
  }
}

static void test_session_list(void **state) {
  static const struct { const char *text; uint16_t count; const char *want; } good[] = {
    { NULL, 3, "0 1 2" }, { "", 3, "0 1 2" }, { " ", 2, "0 1" }, { "none", 3, "" }, { "-1", 3, "" }, { "2,0", 3, "2 0" },
    { " 1 , 0 ", 2, "1 0" }, { "\"1\"", 2, "1" }, { "'1,0'", 2, "1 0" }, { "00", 1, "0" }, { "none", 0, "" }, { NULL, 0, "" },
  };
  enum { BAD = YK_EINVAL, NONE = YK_ENOTFOUND };
  static const struct { const char *text; uint16_t count; int code; const char *words; } bad[] = {
    { "2", 2, NONE, "\"2\" is no GPU; there are 2 GPUs, numbers 0 to 1" }, { "0,0", 2, BAD, "\"0\" is there twice" },
    { "abc", 2, BAD, "\"abc\" is no number" }, { "1x", 2, BAD, "\"1x\" is no number" }, { "0,-1", 2, BAD, "\"-1\" is no number" },
    { "0,", 2, BAD, "\"\" is no number" }, { "0", 0, NONE, "there is no GPU" }, { "1", 1, NONE, "there is one GPU, number 0" },
    { "GPU-4444", 4, BAD, "is no number" }, { "99999999999999999999", 2, NONE, "is no GPU" },
    { "none,0", 2, BAD, "\"none\" is no number" }, { "\"0", 2, BAD, "is no number" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    uint16_t out[4], n = 99;
    char got[64];
    CHECK_OK(yk__visible_list(good[i].text, good[i].count, out, &n));
    if (strcmp(joined(out, n, got, sizeof got), good[i].want) != 0)
      fail_msg("\"%s\" of %u: \"%s\", expected \"%s\"", good[i].text ? good[i].text : "(unset)", good[i].count, got, good[i].want);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint16_t out[4], n = 99;
    CHECK_CODE(yk__visible_list(bad[i].text, bad[i].count, out, &n), (yk_code)bad[i].code, bad[i].words);
    CHECK_INT(n, 99);
  }
}

static void test_uuids(void **state) {
  char a[YK__UUID_BYTES], b[YK__UUID_BYTES];
  (void)state;
  for (uint16_t i = 0; i < 64; i++) {
    yk__virtual_uuid(i, a);
    CHECK_INT(strlen(a), 40);
    CHECK_INT(strncmp(a, "GPU-", 4), 0);
    for (uint16_t k = 0; k < i; k++)
      if (strncmp(a, yk__virtual_uuid(k, b), 12) == 0) fail_msg("virtual GPUs %u and %u are both %s", k, i, a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table), cmocka_unit_test(test_remarks), cmocka_unit_test(test_without_uuids),
    cmocka_unit_test(test_order),
    cmocka_unit_test(test_session_list), cmocka_unit_test(test_uuids),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
