/*
 * Machines saved and rehearsed at the command line: what is saved is what is listed, a job that does not fit says where and why,
 * and every bad file gives one line that names it. Virtual GPUs of several sizes and split ones are listed as asked for.
 */
#include "run_yoke.h"

#include <dirent.h>
#include <sys/stat.h>

#define HEAD "{\"format\":\"yoke-machine\",\"version\":1,"
#define CPU "{\"name\":\"/cpu:0\",\"driver\":\"cpu\",\"bytes_limit\":64000000000}"
#define CARD(k, bytes) "{\"name\":\"/gpu:" #k "\",\"driver\":\"cuda\",\"model\":\"a card\",\"bytes_limit\":" #bytes "}"

static void put(const char *path, const char *text) {
  write_file(path, text, strlen(text));
}

static int count(const char *text, const char *what) {
  int n = 0;
  for (; (text = strstr(text, what)) != NULL; text++) n++;
  return n;
}

static int files(void) {
  int n = 0;
  DIR *d = opendir(".");
  assert_non_null(d);
  while (readdir(d) != NULL) n++;
  closedir(d);
  return n;
}

static void test_listed(void **state) {
  static const struct { const char *groups, *split, *limits; } table[] = {
    { "3", NULL, NULL }, { "2:1GiB,1:256MiB", NULL, "1073741824 1073741824 268435456" },
    { "1:512MiB:1,2:1MiB", NULL, "536870912 1048576 1048576" },
    { "1:512MiB", "gpu:0=256MiB,128MiB", "268435456 134217728" }, { "2:2MiB", "gpu:1=1MiB,1MiB", "2097152 1048576 1048576" },
    { "2:2MiB", "gpu:1=1MiB,1MiB,gpu:0=2MiB", "2097152 1048576 1048576" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    char got[200] = "";
    char *out = table[i].split ? SUCCEEDS("devices", "--json", "--virtual-gpus", table[i].groups, "--split", table[i].split)
                               : SUCCEEDS("devices", "--json", "--virtual-gpus", table[i].groups);
    check_json(out, false);
    const char *p = strstr(out, "GPU:0\"");
    for (; p && table[i].limits && (p = strstr(p, "\"bytes_limit\":")) != NULL; p++)
      snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", got[0] ? " " : "", strtoll(p + 14, NULL, 10));
    if (table[i].limits && strcmp(got, table[i].limits) != 0) fail_msg("%s: %s, expected %s", table[i].groups, got,
                                                                       table[i].limits);
    CHECK_INT(count(out, "\"parts\":"), table[i].split ? (strstr(table[i].split, ",gpu:0=") ? 3 : 2) : 0);
    free(out);
  }
  setenv("YOKE_VIRTUAL_GPUS", "1:1MiB,1:2MiB", 1);
  setenv("YOKE_SPLIT_GPUS", "gpu:1=1MiB,1MiB", 1);
  char *out = SUCCEEDS("devices");
  unsetenv("YOKE_VIRTUAL_GPUS");
  unsetenv("YOKE_SPLIT_GPUS");
  CHECK_INT(count(out, "/gpu:"), 3);
  CHECK_INT(count(out, "part 2 of 2"), 1);
  free(out);
}

static void test_usage(void **state) {
  static const char *const bad[] = { "gpu:0", "gpu:0=", "512MiB", "cpu:0=1MiB", "gpu:0=1MiB,gpu:0=1MiB", "gpu:0=0",
    "gpu:x=1MiB" };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    FAILS(2, "--split '", "devices", "--virtual-gpus", "2", "--split", bad[i]);
    FAILS(2, "--split '", "explain", "mlp", "--virtual-gpus", "2", "--split", bad[i]);
  }
  FAILS(2, "'7:8' is no number of cores", "devices", "--virtual-gpus", "1,5:6:7:8");
  FAILS(2, "makes it 65 GPUs", "devices", "--virtual-gpus", "64,1");
  FAILS(1, "gpu:2 is to be split, and there are 2 GPUs", "devices", "--virtual-gpus", "2", "--split", "gpu:2=1MiB");
  FAILS(1, "of together 2097152 bytes, but has 1048576", "devices", "--virtual-gpus", "1:1MiB", "--split", "gpu:0=1MiB,1MiB");
  FAILS(1, "is to have 60000 cores, the session has", "devices", "--virtual-gpus", "1:1MiB:60000");
  FAILS(2, "--rehearse and --virtual-gpus exclude each other", "devices", "--rehearse", "x", "--virtual-gpus", "2");
  FAILS(2, "--rehearse and --split exclude each other", "explain", "mlp", "--rehearse", "x", "--split", "gpu:0=1MiB");
  FAILS(2, "--save and --rehearse exclude each other", "devices", "--rehearse", "x", "--save", "y");
  FAILS(2, "nothing runs on a machine that is only described; 'yoke explain mlp --rehearse m.json' checks", "train", "mlp",
        "--rehearse", "m.json");
  FAILS(2, "unknown option '--rehearse'", "evaluate", "mlp", "--rehearse", "m.json");
  FAILS(2, "unknown option '--save'", "explain", "mlp", "--save", "m.json");
}

/* A listing without the second in which it was made. */
static char *timeless(char *listing) {
  char *time = strstr(listing, "\"time\":");
  assert_non_null(time);
  for (time += 7; *time >= '0' && *time <= '9'; time++) *time = '0';
  return listing;
}

/* What was saved is listed to the last byte, and can be saved over. */
static void test_save(void **state) {
  (void)state;
  for (int twice = 0; twice < 2; twice++) {
    char *here = SUCCEEDS("devices", "--virtual-gpus", "1:1GiB:1,2:3MiB", "--split", "gpu:0=512MiB,512MiB", "--save", "m.json");
    char *there = SUCCEEDS("devices", "--rehearse", "m.json"), *text = read_file("m.json");
    assert_string_equal(here, there);
    check_json(text, false);
    assert_non_null(strstr(text, "\"format\":\"yoke-machine\",\"version\":1"));
    CHECK_INT(count(text, "\"name\":"), 5);
    free(here);
    free(there);
    free(text);
  }
  char *here = timeless(SUCCEEDS("devices", "--virtual-gpus", "1:1GiB:1,2:3MiB", "--split", "gpu:0=512MiB,512MiB", "--json"));
  char *there = timeless(SUCCEEDS("devices", "--rehearse", "m.json", "--json"));
  assert_string_equal(here, there);
  free(here);
  free(there);
  int before = files();                                     /* among them those with the output of the command */
  mkdir("folder", 0777);
  FAILS(1, "'folder' cannot be written: ", "devices", "--save", "folder");
  FAILS(1, "'no/such/m.json' cannot be created: ", "devices", "--save", "no/such/m.json");
  CHECK_INT(files(), before + 1);                           /* nothing half written is left */
}

/* Links that were measured are saved with the machine, and tell the time of a step's copies. */
static void test_save_links(void **state) {
  (void)state;
  free(SUCCEEDS("devices", "--virtual-gpus", "1:64MiB", "--topology", "--save", "links.json"));
  char *text = read_file("links.json"), *out = SUCCEEDS("explain", "mlp", "--batch", "8", "--rehearse", "links.json");
  check_json(text, false);
  CHECK_INT(count(text, "\"from\":"), 2);
  CHECK_INT(count(text, "\"bytes_per_s\":"), 2);
  CHECK_INT(count(out, " ms at "), 2);
  free(text);
  free(out);
}

static void expect_explain(const char *file, int status, const char *says) {
  yoke_result r;
  YOKE(&r, "explain", "mlp", "--batch", "64", "--rehearse", file);
  char *last = (char *)(uintptr_t)last_line(r.out);
  last[strcspn(last, "\n")] = '\0';
  if (r.status != status || strncmp(last, says, strlen(says)) != 0) fail_msg("status %d, expected %d; %s\n%s", r.status, status,
                                                                             last, r.err);
  if (status && !strstr(r.err, last)) fail_msg("the verdict is not on stderr: %s", r.err);
  if (status && count(r.err, "\n") != 1) fail_msg("more than one line: %s", r.err);
  if (!status && r.err[0]) fail_msg("stderr: %s", r.err);
  if (count(r.out, "'cuda' is not here: 'cpu' stands in") != 1) fail_msg("who stands in is not told once: %s", r.out);
  yoke_free(&r);
}

static void test_explain(void **state) {
  (void)state;
  put("big.json", HEAD "\"devices\":[" CPU "," CARD(0, 85899345920) "," CARD(1, 85899345920) "]}");
  put("small.json", HEAD "\"devices\":[" CPU "," CARD(0, 85899345920) "," CARD(1, 100000) "]}");
  put("none.json", HEAD "\"devices\":[{\"name\":\"/cpu:0\",\"driver\":\"cuda\",\"bytes_limit\":1000}]}");
  expect_explain("big.json", 0, "the step fits");
  expect_explain("small.json", 1, "the step does not fit on 1 of 3 devices: /gpu:1 needs ");
  expect_explain("none.json", 1, "the step does not fit on 1 of 1 devices: /cpu:0 needs ");
  char *out = SUCCEEDS("explain", "mlp", "--batch", "64", "--rehearse", "small.json", "--devices", "gpu:0");   /* not all */
  assert_non_null(strstr(out, "the step fits\n"));
  CHECK_INT(count(out, "GPU:1"), 0);
  free(out);
  FAILS(3, "the machine of 'big.json' has no gpu:2; it has cpu:0, gpu:0, gpu:1", "explain", "mlp", "--rehearse", "big.json",
        "--devices", "gpu:2");
  FAILS(3, "has no cpu:1; it has", "explain", "mlp", "--rehearse", "big.json", "--devices", "cpu:1");
  out = SUCCEEDS("explain", "mlp", "--rehearse", "big.json", "--log-device-placement");
  assert_non_null(strstr(out, "GPU:1 -> device: 1, name: a card, pci bus id: "));
  assert_non_null(strstr(out, "tower_1/hidden1/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:1\n"));
  free(out);
}

/* A batch and a machine that no laptop could hold. */
static void test_huge(void **state) {
  char text[2048] = HEAD "\"devices\":[" CPU;
  (void)state;
  for (int k = 0; k < 8; k++)
    snprintf(text + strlen(text), sizeof text - strlen(text),
             ",{\"name\":\"/gpu:%d\",\"driver\":\"cuda\",\"bytes_limit\":4294967296}", k);
  snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
  put("eight.json", text);
  yoke_result r;
  YOKE(&r, "explain", "cifar10", "--batch", "524288", "--rehearse", "eight.json");
  if (r.status != 1 || !strstr(r.err, "the step does not fit on ")) fail_msg("status %d: %s", r.status, r.err);
  if (!strstr(r.err, "the largest on /")) fail_msg("no tensors are named: %s", r.err);
  yoke_free(&r);
  char *out = SUCCEEDS("devices", "--rehearse", "eight.json", "--json");
  check_json(out, false);
  CHECK_INT(count(out, "\"stand_in\":\"cpu\""), 8);
  free(out);
}

/* More GPUs than a command uses: it says so. */
static void test_many(void **state) {
  enum { N = 70 };
  char text[N * 60 + 200] = HEAD "\"devices\":[" CPU;
  (void)state;
  for (int k = 0; k < N; k++)
    snprintf(text + strlen(text), sizeof text - strlen(text), ",{\"name\":\"/gpu:%d\",\"bytes_limit\":85899345920}", k);
  snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
  put("many.json", text);
  yoke_result r;
  YOKE(&r, "explain", "mlp", "--batch", "64", "--strategy", "home", "--rehearse", "many.json");
  if (r.status != 0 || !strstr(r.err, "there are more than 64 GPUs; the first 64 are used")) fail_msg("status %d: %s", r.status, r.err);
  CHECK_INT(count(r.out, "\n/gpu:"), N + 64);                /* a row of the table each, and copies from those that are used */
  yoke_free(&r);
}

static void test_bad_files(void **state) {
  static const struct { const char *text, *says; } bad[] = {
    { "", "bad.json is empty" }, { "\n", "bad.json:2:1: expected '{'" }, { "hello", "bad.json:1:1: expected '{'" },
    { HEAD, "bad.json:1:38: expected a string" }, { "{\"format\":\"yoke-machine\",\"version\":7}", "is of version 7" },
    { HEAD "\"devices\":[]}", "no devices" }, { HEAD "\"devices\":[" CPU "," CPU "]}", "'/cpu:0' is there twice" },
    { HEAD "\"devices\":[" CPU "," CARD(0, -1) "]}", "expected a whole number from 1" },
    { HEAD "\"devices\":[" CPU "," CARD(0, 1000000000000000000000) "]}", "expected a whole number from 1" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    put("bad.json", bad[i].text);
    FAILS(1, bad[i].says, "devices", "--rehearse", "bad.json");
    FAILS(1, bad[i].says, "explain", "mlp", "--rehearse", "bad.json");
  }
  FAILS(1, "there is no file 'absent.json'", "devices", "--rehearse", "absent.json");
  FAILS(1, "'.' is no regular file", "explain", "mlp", "--rehearse", ".");
  enum { LONG = 1 << 20 };
  char *text = malloc(LONG + 200);
  assert_non_null(text);
  int n = snprintf(text, 100, HEAD "\"devices\":[{\"name\":\"");
  memset(text + n, 'g', LONG);
  snprintf(text + n + LONG, 100, "\"}]}");
  put("bad.json", text);
  free(text);
  FAILS(1, "expected a text of at most 63 printable characters", "devices", "--rehearse", "bad.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_listed), cmocka_unit_test(test_usage), cmocka_unit_test(test_save), cmocka_unit_test(test_save_links),
    cmocka_unit_test(test_explain), cmocka_unit_test(test_huge), cmocka_unit_test(test_many), cmocka_unit_test(test_bad_files),
  };
  return cmocka_run_group_tests(tests, yoke_setup, yoke_teardown);
}
