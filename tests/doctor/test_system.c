/*
 * Device files, cards, shared memory, the loader's cache, and the matmuls. As root nothing is forbidden, so the test of
 * permissions takes another user's rights meanwhile.
 */
#include "rig.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>
#include "doctor/ldcache.h"

static void test_no_permission(void **state) {
  char command[2048];
  uid_t user = geteuid();
  (void)state;
  rig_healthy();
  assert_int_equal(chmod(rig_path("dev/nvidia0"), 0600), 0);
  if (user == 0) assert_int_equal(seteuid(65534), 0);
  else assert_int_equal(chmod(rig_path("dev/nvidia0"), 0), 0);
  rig_examine();
  if (user == 0) assert_int_equal(seteuid(user), 0);
  const yk_verdict *v = rig_expect("device files", YK__BAD, "no permission to use");
  CONTAINS(v->says, rig_path("dev/nvidia0"));
  CONTAINS(v->found, user == 0 ? "has mode 0600, owner root, group root" : "has mode 0000");
  snprintf(command, sizeof command, "sudo chmod a+rw %s/nvidia*", rig_path("dev"));
  assert_string_equal(v->next, command);
  assert_false(rig_report.stack_fits);
}

/* A group that may use the file: join it. */
static void test_no_permission_but_a_group(void **state) {
  (void)state;
  if (geteuid() != 0) skip();
  rig_healthy();
  assert_int_equal(chmod(rig_path("dev/nvidiactl"), 0660), 0);
  assert_int_equal(chown(rig_path("dev/nvidiactl"), 0, 4242), 0);
  assert_int_equal(seteuid(65534), 0);
  rig_examine();
  assert_int_equal(seteuid(0), 0);
  const yk_verdict *v = rig_expect("device files", YK__BAD, "no permission to use");
  assert_string_equal(v->next, "sudo usermod -aG 4242 $USER   # then log in again");
}

static void test_file_missing(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("dev/nvidia-uvm");
  rig_examine();
  const yk_verdict *v = rig_expect("device files", YK__BAD, "nvidia-uvm is missing");
  assert_string_equal(v->next, "sudo nvidia-modprobe -u -c 0");
  rig_remove("dev/nvidia0");
  rig_remove("dev/nvidiactl");
  rig_examine();
  v = rig_expect("device files", YK__BAD, "nvidia0 is missing");
  CONTAINS(v->found, "kernel module 580.65.06");
  CONTAINS(v->needed, "--gpus all");
}

static void test_old_cards(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_volta");
  rig_examine();
  const yk_verdict *v = rig_expect("card", YK__BAD, "the card is too old for CUDA 13: compute capability 7.0");
  CONTAINS(v->needed, "7.5 or newer for CUDA 13");
  CONTAINS(v->next, "sudo apt install cuda-libraries-12-9");
  assert_false(rig_report.stack_fits);
  rig_lib("lib/libcuda.so.580.65.06", "cuda_mixed");
  rig_examine();
  rig_expect("card", YK__WARN, "a card is too old for CUDA 13: compute capability 6.1");
  CHECK_INT(rig_report.ncards, 2);
  rig_lib("lib/libcuda.so.580.65.06", "cuda_kepler");
  rig_lib("lib/libcudart.so.12", "cudart_12_4");
  rig_examine();
  v = rig_expect("card", YK__BAD, "the card is too old for CUDA 12: compute capability 3.5");
  CONTAINS(v->next, "training goes on on the CPU");
}

static void test_shared_memory(void **state) {
  (void)state;
  rig_examine();
  rig_only("shared memory", YK__GOOD);
  rig_env.shm_need = UINT64_MAX;
  rig_examine();
  const yk_verdict *v = rig_expect("shared memory", YK__WARN, "is too small");
  CONTAINS(v->next, "sudo mount -o remount,size=1G");
  CONTAINS(v->next, rig_env.shm);
  rig_env.container = true;
  rig_examine();
  CONTAINS(rig_expect("shared memory", YK__WARN, "is too small")->next, "docker run --shm-size=1g");
  rig_remove("shm");
  rig_examine();
  CONTAINS(rig_expect("shared memory", YK__WARN, "is missing")->next, "sudo mount -t tmpfs");
}

/* A 32-bit library of the right name stands first; the loader passes over it. */
static void test_foreign_library(void **state) {
  unsigned char elf[64] = { 0x7F, 'E', 'L', 'F', 1, 1, 1 };
  (void)state;
  rig_healthy();
  elf[18] = 3;
  rig_text("lib32/libcudart.so.13", "");
  FILE *f = fopen(rig_path("lib32/libcudart.so.13"), "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(elf, 1, sizeof elf, f), sizeof elf);
  fclose(f);
  rig_env.ld_library_path = rig_path("lib32");
  rig_examine();
  CONTAINS(rig_expect("runtime", YK__GOOD, "13.0")->found, rig_path("lib/libcudart.so.13"));
}

/* ---- the loader's cache ------------------------------------------------------------------------------------------- */

/* One entry, in the form that ldconfig writes. */
static void write_cache(const char *name, const char *path, uint32_t path_offset) {
  struct {
    char magic[20];
    uint32_t nlibs, bytes, unused[5];
    int32_t flags;
    uint32_t key, value, version;
    uint64_t hwcap;
  } h = { 0 };
  static char text[2048];
  memcpy(h.magic, "glibc-ld.so.cache1.1", 20);
  h.nlibs = 1;
  h.flags = 0x303;
  h.key = sizeof h;
  h.value = path_offset != 0 ? path_offset : (uint32_t)(sizeof h + strlen(name) + 1);
  memcpy(text, name, strlen(name) + 1);
  memcpy(text + strlen(name) + 1, path, strlen(path) + 1);
  h.bytes = (uint32_t)(strlen(name) + strlen(path) + 2);
  FILE *f = fopen(rig_path("cache"), "wb");
  assert_non_null(f);
  fwrite(&h, 1, sizeof h, f);
  fwrite(text, 1, h.bytes, f);
  fclose(f);
}

static void test_cache(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudart.so.13");
  rig_lib("cached/libcudart.so.13", "cudart_13_1");
  write_cache("libcudart.so.13", rig_path("cached/libcudart.so.13"), 0);
  rig_examine();
  const yk_verdict *v = rig_expect("runtime", YK__GOOD, "CUDA runtime 13.1");
  CONTAINS(v->found, rig_env.ld_cache);
  write_cache("libcudart.so.13", rig_path("cached/libcudart.so.13"), 0xFFFFFFF0u);   /* damaged: as good as none */
  rig_examine();
  rig_expect("runtime", YK__BAD, "there is no CUDA runtime");
  rig_text("cache", "glibc-ld.so.cache1.1");
  rig_examine();
  rig_expect("runtime", YK__BAD, "there is no CUDA runtime");
}

static void count(const char *name, const char *path, void *arg) {
  int *n = arg;
  *n += name[0] != '\0' && path != NULL;
}

/* A cache cut off anywhere, or with any one byte changed, is read without harm. */
static void test_damaged_cache(void **state) {
  char whole[512];
  int n = 0;
  (void)state;
  write_cache("libcudart.so.13", "/nowhere/libcudart.so.13", 0);
  FILE *f = fopen(rig_path("cache"), "rb");
  assert_non_null(f);
  size_t bytes = fread(whole, 1, sizeof whole, f);
  fclose(f);
  yk__ldcache_each(rig_path("cache"), "libcudart.so", count, &n);
  CHECK_INT(n, 1);
  for (size_t i = 0; i < 2 * bytes; i++) {
    char damaged[512];
    memcpy(damaged, whole, bytes);
    if (i < bytes) damaged[i] = (char)~damaged[i];
    f = fopen(rig_path("cache"), "wb");
    assert_non_null(f);
    CHECK_INT(fwrite(damaged, 1, i < bytes ? bytes : i - bytes, f), i < bytes ? bytes : i - bytes);
    fclose(f);
    n = 0;
    yk__ldcache_each(rig_path("cache"), "lib", count, &n);
    assert_true(n <= 1);
  }
}

static void first(const char *name, const char *path, void *arg) {
  char *out = arg;
  if (out[0] == '\0' && strcmp(name, "libm.so.6") == 0) snprintf(out, 4096, "%s", path);
}

/* The system's own cache leads where the system's own loader goes. */
static void test_cache_of_the_system(void **state) {
  char ours[4096] = "", theirs_real[4096], ours_real[4096];
  struct link_map *map = NULL;
  (void)state;
  yk__ldcache_each("/etc/ld.so.cache", "libm.so", first, ours);
  if (ours[0] == '\0') skip();                     /* no cache of that form here */
  void *handle = dlopen("libm.so.6", RTLD_LAZY);
  assert_non_null(handle);
  CHECK_INT(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
  assert_non_null(realpath(map->l_name, theirs_real));
  assert_non_null(realpath(ours, ours_real));
  assert_string_equal(ours_real, theirs_real);
  dlclose(handle);
}

/* ---- work --------------------------------------------------------------------------------------------------------- */

static void test_matmuls(void **state) {
  yk_session_options options = YK_SESSION_OPTIONS_INIT;
  (void)state;
  options.virtual_gpus = 2;
  options.virtual_gpu_bytes = 1 << 20;
  rig_env.session = &options;
  rig_examine();
  CHECK_INT(rig_report.ndevices, 3);
  rig_expect("matmul", YK__GOOD, "/cpu:0: matmul gave [[22 28] [49 64]]");
  rig_expect("matmul", YK__GOOD, "/gpu:1: matmul gave [[22 28] [49 64]]");
  for (int i = 0; i < 3; i++) {
    static const float want[] = { 22, 28, 49, 64 };
    assert_true(rig_report.devices[i].ok);
    for (int k = 0; k < 4; k++) CHECK_NEAR(rig_report.devices[i].result[k], want[k], 0);
  }
  assert_true(rig_report.cpu_works);
  assert_false(rig_report.gpu_works);              /* virtual ones are no GPUs to a doctor */
  CONTAINS(rig_report.summary, "training works on the CPU; no GPU can be used");
}

static void test_no_session(void **state) {
  yk_session_options options = YK_SESSION_OPTIONS_INIT;
  (void)state;
  options.drivers = "nonsense";
  rig_env.session = &options;
  rig_examine();
  CONTAINS(rig_expect("matmul", YK__BAD, "no session can be opened")->found, "nonsense");
  assert_false(rig_report.cpu_works);
  CONTAINS(rig_report.summary, "training does not work on the CPU");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
  const struct CMUnitTest tests[] = {
    TEST(test_no_permission), TEST(test_no_permission_but_a_group), TEST(test_file_missing), TEST(test_old_cards),
    TEST(test_shared_memory), TEST(test_foreign_library), TEST(test_cache), TEST(test_damaged_cache),
    TEST(test_cache_of_the_system), TEST(test_matmuls),
    TEST(test_no_session),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
