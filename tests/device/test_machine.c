/*
 * test_machine.c - the description of a machine: what is read of it, and the one error that each mistake gives.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/check.h"
#include "base/alloc.h"
#include "device/device.h"
#include "device/machine.h"

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,"
#define CPU "{\"name\":\"/cpu:0\",\"bytes_limit\":8000}"
#define WITH(device) HEAD "\"devices\":[" CPU "," device "]}"

static yk_machine *parse(const char *text) {
  yk_machine *m = NULL;
  CHECK_OK(yk__machine_parse("m.json", text, strlen(text), &m));
  return m;
}

static void test_all_fields(void **state) {
  yk_machine *m = parse("{\"links\":[{\"from\":\"gpu:0\",\"to\":\"/cpu:0\",\"kind\":\"pcie\",\"bytes_per_s\":2.5e10,\"x\":[]}],\n"
                        "\"version\":1, \"later\":{\"a\":[1,2,{\"b\":null}]},\n"
                        "\"devices\":[" CPU ",{\"name\":\"/job:localhost/replica:0/task:0/device:GPU:0\",\"type\":\"GPU\",\"driver\":\"cuda\","
                        "\"model\":\"H\\u0031\",\"bus\":\"0000:01:00.0\",\"uuid\":\"GPU-1\",\"virtual\":false,\"physical\":3,"
                        "\"bytes_total\":100,\"bytes_limit\":90,\"first_core\":0,\"cores\":0,\"compute_capability\":\"9.0\","
                        "\"fast_types\":\"bf16,f16\","
                        "\"part\":1,\"parts\":2,\"gflops_f32\":1e5,\"gbytes_per_s\":3000.5,\"later\":true}],\n"
                        "\"host\":{\"cpu\":\"EPYC\",\"cores\":96,\"bytes\":1000},\"format\":\"yoke-machine\"}");
  (void)state;
  const yk_machine_device *d = &m->device[1];
  CHECK_INT(m->n, 2);
  CHECK_INT(m->cores, 96);
  CHECK_INT(m->bytes, 1000);
  assert_string_equal(m->cpu, "EPYC");
  assert_string_equal(m->source, "m.json");
  CHECK_INT(m->device[0].bytes_limit, 8000);
  CHECK_INT(m->device[0].bytes_total, 8000);
  CHECK_INT(m->device[0].physical, -1);
  assert_string_equal(m->device[0].type, "CPU");
  assert_string_equal(d->model, "H1");
  assert_string_equal(d->driver, "cuda");
  assert_string_equal(d->bus, "0000:01:00.0");
  assert_string_equal(d->uuid, "GPU-1");
  assert_string_equal(d->capability, "9.0");
  assert_string_equal(d->fast_types, "bf16,f16");
  CHECK_INT(d->bytes_total, 100);
  CHECK_INT(d->bytes_limit, 90);
  CHECK_INT(d->physical, 3);
  CHECK_INT(d->part, 1);
  CHECK_INT(d->parts, 2);
  CHECK_NEAR(d->gflops, 1e5, 0);
  CHECK_NEAR(d->gbytes_per_s, 3000.5, 0);
  CHECK_NEAR(yk__machine_speed(m, 1, 0), 2.5e10, 0);
  CHECK_NEAR(yk__machine_speed(m, 0, 1), 0, 0);
  CHECK_NEAR(yk__machine_speed(NULL, 0, 1), 0, 0);
  yk__machine_free(m);
  yk__machine_free(NULL);
}

static const struct { const char *text; yk_code code; const char *says; } bad[] = {
  { "", YK_ECORRUPT, "m.json is empty; expected the description" },
  { " ", YK_ECORRUPT, "m.json:1:2: expected '{'" },
  { "hello", YK_ECORRUPT, "m.json:1:1: expected '{'" },
  { "[]", YK_ECORRUPT, "m.json:1:1: expected '{'" },
  { "{}", YK_ECORRUPT, "its \"format\" is \"\"; expected \"yoke-machine\"" },
  { "{\"format\":\"other\",\"version\":1}", YK_ECORRUPT, "its \"format\" is \"other\"" },
  { "{\"format\":1}", YK_ECORRUPT, "m.json:1:11: expected a string" },
  { "{\"format\":\"yoke-machine\"}", YK_ECORRUPT, "no \"version\"; expected version 1" },
  { "{\"format\":\"yoke-machine\",\"version\":2}", YK_EUNSUPPORTED, "is of version 2 of the format; expected version 1" },
  { "{\"format\":\"yoke-machine\",\"version\":2,\"devices\":\"all new\"}", YK_EUNSUPPORTED, "version 2" },
  { "{\"format\":\"yoke-machine\",\"version\":-1}", YK_ECORRUPT, "m.json:1:36: expected a whole number" },
  { "{\"format\":\"yoke-machine\",\"version\":\"1\"}", YK_ECORRUPT, "m.json:1:36: expected a whole number" },
  { "{\"format\":\"yoke-machine\",\"version\":1.5}", YK_ECORRUPT, "m.json:1:37: expected ',' or '}'" },
  { "{\"format\":\"yoke-machine\",\"version\":1} x", YK_ECORRUPT, "expected nothing behind the end" },
  { HEAD "\"devices\":[]}", YK_ECORRUPT, "no devices; expected a list \"devices\"" },
  { HEAD "\"x\":1}", YK_ECORRUPT, "no devices" },
  { HEAD "\"devices\":{}}", YK_ECORRUPT, "expected '['" },
  { HEAD "\"devices\":[1]}", YK_ECORRUPT, "expected '{'" },
  { HEAD "\"devices\":[" CPU "],\"devices\":[" CPU "]}", YK_ECORRUPT, "\"devices\" only once" },
  { HEAD "\"devices\":[" CPU, YK_ECORRUPT, "expected ',' or ']'" },
  { HEAD "\"devices\":[" CPU ",", YK_ECORRUPT, "expected a value" },
  { HEAD "\"devices\":[{\"name\":\"/gpu:0\",\"bytes_limit\":1}]}", YK_ECORRUPT, "no CPU among the devices" },
  { HEAD "\n\"devices\":[" CPU ",\n {}]}", YK_ECORRUPT, "m.json:3:2: a device without a \"name\"" },
  { WITH("{\"name\":\"\"}"), YK_ECORRUPT, "'' is no name of a device" },
  { WITH("{\"name\":\"/gpu\",\"bytes_limit\":1}"), YK_ECORRUPT, "'/gpu' is no name" },
  { WITH("{\"name\":\"/gpu:x\",\"bytes_limit\":1}"), YK_ECORRUPT, "'/gpu:x' is no name" },
  { WITH("{\"name\":\"/job:w/gpu:0\",\"bytes_limit\":1}"), YK_ECORRUPT, "'/job:w/gpu:0' is no name of a device of one machine" },
  { WITH("{\"name\":\"/device:TPU:0\",\"bytes_limit\":1}"), YK_ECORRUPT, "of type 'TPU'; expected CPU or GPU" },
  { WITH("{\"name\":\"/gpu:0\",\"type\":\"CPU\",\"bytes_limit\":1}"), YK_ECORRUPT, "said to be of type 'CPU'; expected 'GPU'" },
  { WITH("{\"name\":\"/gpu:1\",\"bytes_limit\":1}"), YK_ECORRUPT, "'/gpu:1' comes out of turn; expected GPU:0 here" },
  { WITH("{\"name\":\"/cpu:0\",\"bytes_limit\":1}"), YK_ECORRUPT, "'/cpu:0' is there twice" },
  { WITH("{\"name\":\"/gpu:0\"}"), YK_ECORRUPT, "'/gpu:0' without memory; expected \"bytes_limit\" or \"bytes_total\"" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":2,\"bytes_total\":1}"), YK_ECORRUPT, "may use 2 bytes of 1" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":0}"), YK_ECORRUPT, "expected a whole number from 1 to 4611686018427387904" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":-5}"), YK_ECORRUPT, "expected a whole number from 1" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":99999999999999999999999}"), YK_ECORRUPT, "expected a whole number from 1" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":5000000000000000000}"), YK_ECORRUPT, "expected a whole number from 1" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1e9}"), YK_ECORRUPT, "expected ',' or '}'" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":\"1GiB\"}"), YK_ECORRUPT, "expected a whole number" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"cores\":70000}"), YK_ECORRUPT, "expected a whole number from 0 to 65535" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"cores\":-1}"), YK_ECORRUPT, "expected a whole number from 0 to 65535" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"virtual\":1}"), YK_ECORRUPT, "expected true or false" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"physical\":9999}"), YK_ECORRUPT, "expected a whole number from 0 to 4096" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"part\":2,\"parts\":2}"), YK_ECORRUPT, "is part 2 of 2" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"part\":1}"), YK_ECORRUPT, "is part 1 of 0" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"gflops_f32\":-1}"), YK_ECORRUPT, "expected a number from 0 to" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"gflops_f32\":nan}"), YK_ECORRUPT, "expected a value" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"model\":\"a\\nb\"}"), YK_ECORRUPT,
    "a text of at most 63 printable characters" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"driver\":\"abcdefghijklmnop\"}"), YK_ECORRUPT,
    "a text of at most 15 printable" },
  { WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"name\":\"/gpu:0\"}"), YK_ECORRUPT, "expected \"name\" only once" },
  { HEAD "\"devices\":[" CPU "],\"links\":[{}]}", YK_ECORRUPT, "\"from\" and \"to\" of a link to be devices of this machine" },
  { HEAD "\"devices\":[" CPU "],\"links\":[{\"from\":\"/cpu:0\",\"to\":\"/gpu:0\"}]}", YK_ECORRUPT,
    "to be devices of this machine" },
  { HEAD "\"devices\":[" CPU "],\"links\":1}", YK_ECORRUPT, "expected '['" },
  { HEAD "\"devices\":[" CPU "],\"host\":[]}", YK_ECORRUPT, "expected '{'" },
  { HEAD "\"devices\":[" CPU "],\"host\":{\"cores\":\"many\"}}", YK_ECORRUPT, "expected a whole number" },
};

static void test_bad(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    yk_machine *m = NULL;
    uint64_t live = yk__alloc_live();
    yk_code rc = yk__machine_parse("m.json", bad[i].text, strlen(bad[i].text), &m);
    const char *says = yk_error_message();
    if (rc != bad[i].code || !strstr(says, bad[i].says) || !strstr(says, "expected") || strncmp(says, "m.json", 6) != 0)
      fail_msg("%s\n  %s: %s\n  expected %s with \"%s\"", bad[i].text, yk_code_name(rc), says, yk_code_name(bad[i].code),
               bad[i].says);
    yk_error_clear();
    assert_null(m);
    CHECK_INT(yk__alloc_live(), live);
  }
}

/* Cut off anywhere, it is refused. */
static void test_truncated(void **state) {
  const char *text = WITH("{\"name\":\"/gpu:0\",\"bytes_limit\":1,\"virtual\":true}");
  (void)state;
  for (size_t n = 0; n < strlen(text); n++) {
    yk_machine *m = NULL;
    char *tight = malloc(n + 1);
    assert_non_null(tight);
    memcpy(tight, text, n);
    if (yk__machine_parse("m.json", tight, n, &m) == YK_OK) fail_msg("%zu bytes of it are taken: %.*s", n, (int)n, text);
    yk_error_clear();
    free(tight);
  }
}

/* A text of a megabyte: passed over where nobody asks for it, refused where it would have to be kept. */
static void test_long_texts(void **state) {
  enum { LONG = 1 << 20 };
  char *text = malloc(LONG + 300), *end = text;
  (void)state;
  assert_non_null(text);
  for (int where = 0; where < 3; where++) {
    static const char *const before[] = { HEAD "\"note\":\"",
      HEAD "\"devices\":[{\"name\":\"/cpu:0\",\"bytes_limit\":1,\"model\":\"",
                                          HEAD "\"devices\":[{\"bytes_limit\":1,\"name\":\"" };
    static const char *const after[] = { "\",\"devices\":[" CPU "]}", "\"}]}", "\"}]}" };
    yk_machine *m = NULL;
    end = text + snprintf(text, 300, "%s", before[where]);
    memset(end, 'x', LONG);
    end += LONG;
    end += snprintf(end, 200, "%s", after[where]);
    yk_code rc = yk__machine_parse("m.json", text, (size_t)(end - text), &m);
    if (where == 0) CHECK_OK(rc);
    else CHECK_CODE(rc, YK_ECORRUPT, "a text of at most 63 printable characters");
    yk__machine_free(m);
  }
  free(text);
}

static void test_files(void **state) {
  char folder[] = "/tmp/yoke-machine-XXXXXX", path[64];
  yk_machine *m = NULL;
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/m.json", folder);
  CHECK_CODE(yk__machine_read(path, &m), YK_ENOTFOUND, "there is no file '/tmp/yoke-machine-");
  CHECK_CODE(yk__machine_read(folder, &m), YK_EIO, "is no regular file");
  CHECK_CODE(yk__machine_read("/dev/zero", &m), YK_EIO, "is no regular file");
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fclose(f);
  CHECK_CODE(yk__machine_read(path, &m), YK_ECORRUPT, "is empty");
  assert_null(m);
  f = fopen(path, "w");
  fputs(HEAD "\"devices\":[" CPU "]}\n", f);
  fclose(f);
  CHECK_OK(yk__machine_read(path, &m));
  CHECK_INT(m->n, 1);
  assert_string_equal(m->source, path);
  yk__machine_free(m);
  if (truncate(path, 1 << 30) == 0) CHECK_CODE(yk__machine_read(path, &m), YK_ECORRUPT, "expected at most 67108864");
  CHECK_INT(unlink(path), 0);
  CHECK_INT(rmdir(folder), 0);
}

/* Devices that are planned for: names, limits, who stands in, which memories are one. */
static void test_rehearsed(void **state) {
  yk_machine *m = parse(HEAD "\"devices\":[{\"name\":\"/cpu:0\",\"driver\":\"cpu\",\"bytes_limit\":8000,\"cores\":64},"
                        "{\"name\":\"/cpu:1\",\"driver\":\"cpu\",\"bytes_limit\":8000},"
                        "{\"name\":\"/gpu:0\",\"driver\":\"cuda\",\"model\":\"H100\",\"bytes_limit\":80000000000},"
                        "{\"name\":\"/gpu:1\",\"driver\":\"ref\",\"virtual\":true,\"bytes_limit\":7}]}");
  yk_devices *all = NULL;
  (void)state;
  CHECK_CODE(yk__devices_rehearse(m, "none", &all), YK_ENOTFOUND, "none");
  assert_null(all);
  CHECK_OK(yk__devices_rehearse(m, "cpu", &all));
  CHECK_INT(all->n, 4);
  assert_string_equal(all->at[3].name, "/job:localhost/replica:0/task:0/device:GPU:1");
  static const char *const drivers[] = { "cpu", "cpu", "cpu", "ref" };
  static const int stand_in[] = { 0, 0, 1, 0 };
  for (int i = 0; i < 4; i++) {
    assert_string_equal(all->at[i].driver->name, drivers[i]);
    CHECK_INT(all->at[i].stand_in, stand_in[i]);
    CHECK_INT(all->at[i].limit, m->device[i].bytes_limit);
  }
  CHECK_INT(all->at[0].config.ncores, 64);
  assert_true(yk__device_same_memory(&all->at[0], &all->at[1]));
  assert_false(yk__device_same_memory(&all->at[0], &all->at[2]));
  assert_false(yk__device_same_memory(&all->at[2], &all->at[3]));
  yk__devices_close(all);
  yk__machine_free(m);
}

/* Each allocation fails once: a clean ENOMEM, nothing left behind. */
static void test_out_of_memory(void **state) {
  const char *text = HEAD "\"devices\":[" CPU ",{\"name\":\"/gpu:0\",\"bytes_limit\":5}],\"links\":[{\"from\":\"/cpu:0\",\"to\":\"/gpu:0\"}]}";
  uint64_t live = yk__alloc_live();
  yk_code rc = YK_ENOMEM;
  int tries = 0;
  (void)state;
  for (uint64_t n = 1; rc != YK_OK; n++, tries++) {
    yk_machine *m = NULL;
    yk_devices *all = NULL;
    yk__alloc_fail_at(n);
    rc = yk__machine_parse("m.json", text, strlen(text), &m);
    if (rc == YK_OK) rc = yk__devices_rehearse(m, "ref", &all);
    yk__alloc_fail_at(0);
    if (rc != YK_OK) CHECK_INT(rc, YK_ENOMEM);
    yk__devices_close(all);
    yk__machine_free(m);
    yk_error_clear();
    CHECK_INT(yk__alloc_live(), live);
    assert_true(n < 500);
  }
  assert_true(tries >= 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_fields), cmocka_unit_test(test_bad), cmocka_unit_test(test_truncated), cmocka_unit_test(test_long_texts),
    cmocka_unit_test(test_files), cmocka_unit_test(test_rehearsed), cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
