/*
 * The driver's verdicts: absent, a stub, too old, failing at start, of another release than the kernel module, hanging.
 * Each test makes a healthy machine of files and fake libraries and takes one thing away.
 */
#include "rig.h"

#include <sys/stat.h>

static void test_healthy(void **state) {
  (void)state;
  rig_healthy();
  rig_env.gpu_driver = "test 1.0";
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__GOOD, "driver 580.65.06, runs CUDA up to 13.0");
  CONTAINS(v->found, "lib/libcuda.so.1");
  CONTAINS(v->needed, "release 580.65.06 or newer (for CUDA 13)");
  v = rig_expect("card", YK__GOOD, "1 card: Test Card 0");
  CONTAINS(v->found, "0000:3b:00.0, compute capability 9.0, 8.0 GiB");
  CONTAINS(v->needed, "7.5 or newer for CUDA 13");
  rig_only("device files", YK__GOOD);
  rig_only("runtime", YK__GOOD);
  rig_only("cublas", YK__GOOD);
  rig_only("cudnn", YK__GOOD);
  rig_only("nccl", YK__GOOD);
  rig_only("yoke", YK__GOOD);
  assert_true(rig_report.stack_fits);
  assert_false(rig_report.gpu_works);              /* nobody has tried */
  CHECK_INT(rig_report.ncards, 1);
  assert_string_equal(rig_report.cards[0].name, "Test Card 0");
  CHECK_INT(rig_report.cards[0].bytes, 8ll << 30);
}

/* Everything fits, but this build cannot use it: that must not be hidden. */
static void test_no_own_driver(void **state) {
  (void)state;
  rig_healthy();
  rig_examine();
  const yk_verdict *v = rig_expect("yoke", YK__BAD, "this build of yoke has no driver for real GPUs");
  CONTAINS(v->next, "--virtual-gpus");
  assert_true(rig_report.stack_fits);
  CONTAINS(rig_report.summary, "no driver for real GPUs");
}

static void test_nothing(void **state) {
  (void)state;
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__NOTE, "there is no NVIDIA driver (libcuda.so.1 is nowhere)");
  CONTAINS(v->needed, "an NVIDIA card, of which there is no sign here");
  CONTAINS(v->next, "lspci");
  rig_only("card", YK__NOTE);
  rig_only("device files", YK__NOTE);
  rig_only("runtime", YK__NOTE);
  rig_only("cudnn", YK__NOTE);
  rig_only("yoke", YK__NOTE);
  assert_false(rig_report.stack_fits);
  assert_string_equal(rig_report.summary,
                      "the CPU was not tried; no GPU can be used: there is no NVIDIA driver (libcuda.so.1 is nowhere)");
}

static void test_toolkit_but_no_driver(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcuda.so.1");
  rig_remove("lib/libcuda.so.580.65.06");
  rig_remove("dev/nvidia0");
  rig_remove("dev/nvidiactl");
  rig_remove("dev/nvidia-uvm");
  rig_remove("proc/driver/nvidia/version");
  rig_remove("sys/bus/pci/devices/0000:3b:00.0/vendor");
  rig_text("cuda/bin/nvcc", "");
  assert_int_equal(chmod(rig_path("cuda/bin/nvcc"), 0755), 0);
  rig_text("cuda/include/cuda.h", "/* the header */\n#define CUDA_VERSION 13000\n");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "there is no NVIDIA driver (libcuda.so.1 is nowhere)");
  CONTAINS(v->where, "LD_LIBRARY_PATH (not set)");
  CONTAINS(v->where, rig_path("lib"));
  assert_string_equal(v->looked_for, "libcuda.so.1");
  assert_string_equal(v->found, "nothing");
  rig_expect("toolkit", YK__GOOD, "CUDA toolkit 13.0");
  CONTAINS(rig_report.summary, "no NVIDIA driver (libcuda.so.1 is nowhere); the CUDA toolkit 13.0 is there");
}

static void test_card_but_no_driver(void **state) {
  (void)state;
  rig_text("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
  rig_card("0000:3b:00.0", "nouveau");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "there is no NVIDIA driver");
  CONTAINS(v->needed, "in place of the kernel driver nouveau");
  assert_string_equal(v->next, "sudo ubuntu-drivers install");
  v = rig_expect("card", YK__NOTE, "1 NVIDIA card on the PCI bus, which no working driver drives");
  CONTAINS(v->found, "0000:3b:00.0, kernel driver nouveau");
}

/* In a container the kernel module is the host's, but the library is missing. */
static void test_module_but_no_library(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcuda.so.1");
  rig_remove("lib/libcuda.so.580.65.06");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "there is no NVIDIA driver");
  CONTAINS(v->needed, "kernel module 580.65.06 is loaded, so in a container: start it with --gpus all");
}

static void test_too_old_for_runtime(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_12_2");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "the driver is too old: it runs CUDA up to 12.2, the runtime is 13.0");
  CONTAINS(v->needed, "driver release 580.65.06 or newer for CUDA 13, or a CUDA 12 runtime");
  CONTAINS(v->next, "sudo apt install cuda-drivers");
  assert_false(rig_report.stack_fits);
  /* With a runtime that it can run beside the newer one, that one is taken, and the rest is asked to fit it. */
  rig_lib("lib/libcudart.so.12", "cudart_12_4");
  rig_examine();
  rig_only("driver", YK__GOOD);
  rig_expect("runtime", YK__GOOD, "CUDA runtime 12.4");
  v = rig_expect("cublas", YK__BAD, "cuBLAS has the wrong major version: libcublas.so.13");
  CONTAINS(v->next, "sudo apt install libcublas-12-9");
  rig_expect("cudnn", YK__BAD, "was built for CUDA 13, the runtime is CUDA 12.4");
}

/* Without any runtime, it must still be able to run one that would do. */
static void test_too_old_for_any(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudart.so.13");
  rig_lib("lib/libcuda.so.580.65.06", "cuda_11_4");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "the driver is too old: it runs CUDA up to 11.4, needed is 12");
  assert_string_equal(v->needed, "driver release 525.60.13 or newer for CUDA 12");
  rig_only("runtime", YK__BAD);
}

static void test_stub_wins(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("cuda/lib64/stubs/libcuda.so.1", "cuda_stub");
  char path[2048];
  snprintf(path, sizeof path, "%s:%s", rig_path("cuda/lib64/stubs"), rig_path("other"));
  rig_env.ld_library_path = path;
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "LD_LIBRARY_PATH points at a stub of the driver");
  CONTAINS(v->found, "stubs/libcuda.so.1 (LD_LIBRARY_PATH), a stub");
  snprintf(path, sizeof path, "export LD_LIBRARY_PATH=%s", rig_path("other"));
  assert_string_equal(v->next, path);
  rig_env.ld_library_path = rig_path("cuda/lib64/stubs");
  rig_examine();
  assert_string_equal(rig_expect("driver", YK__BAD, "stub")->next, "unset LD_LIBRARY_PATH");
}

/* The toolkit's own folder has a libcuda.so without number: harmless to most programs, a trap for some. */
static void test_stub_without_number(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("cuda/lib64/stubs/libcuda.so", "cuda_stub");
  rig_env.ld_library_path = rig_path("cuda/lib64/stubs");
  rig_examine();
  rig_expect("driver", YK__WARN, "LD_LIBRARY_PATH points at a stub of the driver");
  rig_expect("driver", YK__GOOD, "driver 580.65.06");
}

/* The file in the default folder is a stub that somebody has copied there. */
static void test_stub_installed(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_stub");
  rig_examine();
  CONTAINS(rig_expect("driver", YK__BAD, "the driver library is a stub")->next, "sudo apt install cuda-drivers");
}

static void test_start_up_fails(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_mismatch");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "does not fit the kernel module (error 803)");
  assert_string_equal(v->next, "sudo reboot");
  rig_lib("lib/libcuda.so.580.65.06", "cuda_strange");
  rig_examine();
  rig_expect("driver", YK__BAD, "the driver fails with error 4711");
}

static void test_releases_differ(void **state) {
  (void)state;
  rig_healthy();
  rig_text("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.12.1  Mon\n");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD,
                                   "driver library 580.65.06 and kernel module 570.12.1 are of different releases");
  assert_string_equal(v->next, "sudo reboot");
}

static void test_hidden_cards(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_no_device");
  rig_examine();
  CONTAINS(rig_expect("driver", YK__BAD, "the driver is there but sees no card")->next, "ls -l /dev/nvidia*");
  rig_env.visible = "-1";
  rig_examine();
  assert_string_equal(rig_expect("driver", YK__BAD, "CUDA_VISIBLE_DEVICES=-1 hides every card")->next,
                      "unset CUDA_VISIBLE_DEVICES");
}

static void test_hangs(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_hangs");
  rig_env.timeout_ms = 1500;
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "the NVIDIA driver hangs");
  CONTAINS(v->found, "does not come back from cuInit within 1.5 s");
}

static void test_function_missing(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcuda.so.580.65.06", "cuda_lacks");
  rig_examine();
  const yk_verdict *v = rig_expect("driver", YK__BAD, "the NVIDIA driver lacks the function cuDeviceGetCount");
  CONTAINS(v->needed, "libcuda.so.1 that has cuDeviceGetCount");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
  const struct CMUnitTest tests[] = {
    TEST(test_healthy), TEST(test_no_own_driver), TEST(test_nothing), TEST(test_toolkit_but_no_driver),
    TEST(test_card_but_no_driver),
    TEST(test_module_but_no_library), TEST(test_too_old_for_runtime), TEST(test_too_old_for_any),
    TEST(test_stub_wins), TEST(test_stub_without_number),
    TEST(test_stub_installed), TEST(test_start_up_fails), TEST(test_releases_differ), TEST(test_hidden_cards), TEST(test_hangs),
    TEST(test_function_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
