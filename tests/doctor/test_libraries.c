/*
 * Runtime, cuBLAS, cuDNN, NCCL and MPI: absent, of the wrong major version, several, beside the path, broken in every way.
 * A broken library costs its own verdict and nothing else.
 */
#include "rig.h"

static void test_runtime_absent(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudart.so.13");
  rig_examine();
  const yk_verdict *v = rig_expect("runtime", YK__BAD,
                                   "there is no CUDA runtime (libcudart.so.13 or libcudart.so.12 is nowhere)");
  CONTAINS(v->next, "sudo apt install cuda-cudart-13-0");
  CONTAINS(v->next, "https://developer.nvidia.com/cuda-downloads");
  CONTAINS(v->where, rig_path("lib"));
  rig_only("driver", YK__GOOD);
}

static void test_runtime_wrong_major(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudart.so.13");
  rig_lib("lib/libcudart.so.11.0", "cudart_11_0");
  rig_examine();
  const yk_verdict *v = rig_expect("runtime", YK__BAD, "the CUDA runtime has the wrong major version: libcudart.so.11");
  CONTAINS(v->found, "libcudart.so.11.0");
  CONTAINS(v->needed, "major version 13 or 12");
}

static void test_runtime_fails(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudart.so.13", "cudart_fails");
  rig_examine();
  rig_expect("runtime", YK__BAD, "the CUDA runtime fails with error 35 in cudaRuntimeGetVersion");
}

static void test_cublas(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcublas.so.13");
  rig_examine();
  rig_expect("cublas", YK__BAD, "there is no cuBLAS (libcublas.so.13 is nowhere)");
  rig_lib("lib/libcublas.so.12", "cublas_12");
  rig_examine();
  const yk_verdict *v = rig_expect("cublas", YK__BAD, "cuBLAS has the wrong major version: libcublas.so.12");
  CONTAINS(v->needed, "major version 13 like the CUDA runtime");
  CONTAINS(v->next, "sudo apt install libcublas-13-0");
}

static void test_cudnn_absent(void **state) {
  (void)state;
  rig_healthy();
  rig_text("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  rig_remove("lib/libcudnn.so.9");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "there is no cuDNN (libcudnn.so.9 is nowhere)");
  CONTAINS(v->next, "sudo dnf install libcudnn9-cuda-13");
  assert_string_equal(v->needed, "cuDNN 9 for CUDA 13");
}

static void test_cudnn_wrong_major(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudnn.so.9");
  rig_lib("lib/libcudnn.so.8", "cudnn_8");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "the cuDNN has the wrong major version: libcudnn.so.8");
  CONTAINS(v->next, "sudo apt install libcudnn9-cuda-13");
}

static void test_cudnn_for_other_cuda(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudnn.so.9", "cudnn_9_for_12");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "cuDNN 9.1 was built for CUDA 12, the runtime is CUDA 13.0");
  CONTAINS(v->found, "built for CUDA 12.4");
  CONTAINS(v->next, "libcudnn9-cuda-13");
}

static void test_nccl_absent(void **state) {
  (void)state;
  rig_healthy();
  rig_remove("lib/libnccl.so.2");
  rig_examine();
  rig_expect("nccl", YK__NOTE, "there is no NCCL (libnccl.so.2 is nowhere)");
  assert_true(rig_report.stack_fits);
  rig_lib("lib/libcuda.so.580.65.06", "cuda_two");   /* with two cards it is worth a warning */
  rig_examine();
  const yk_verdict *v = rig_expect("nccl", YK__WARN, "there is no NCCL");
  CONTAINS(v->next, "sudo apt install libnccl2");
  CONTAINS(v->needed, "several GPUs");
}

/* ---- which one ---------------------------------------------------------------------------------------------------- */

static void test_several(void **state) {
  char path[2048];
  (void)state;
  rig_healthy();
  rig_lib("new/libcudart.so.13", "cudart_13_1");
  rig_env.ld_library_path = rig_path("new");
  rig_examine();
  const yk_verdict *v = rig_expect("runtime", YK__WARN, "several versions of the CUDA runtime are on the path; 13.1 in");
  snprintf(path, sizeof path, "13.1 in %s/libcudart.so.13 (LD_LIBRARY_PATH) wins; 13.0 in %s/libcudart.so.13", rig_path("new"),
           rig_path("lib"));
  CONTAINS(v->found, path);
  snprintf(path, sizeof path, "export LD_LIBRARY_PATH=%s$", rig_path("lib"));
  path[strlen(path) - 1] = '\0';
  CONTAINS(v->next, path);
  rig_expect("runtime", YK__GOOD, "CUDA runtime 13.1");
  /* The order decides, not the age. */
  snprintf(path, sizeof path, "%s:%s", rig_path("lib"), rig_path("new"));
  rig_env.ld_library_path = path;
  rig_examine();
  rig_expect("runtime", YK__WARN, "several versions of the CUDA runtime are on the path; 13.0 in");
  rig_expect("runtime", YK__GOOD, "CUDA runtime 13.0");
}

static void test_same_version_twice(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("new/libcudart.so.13", "cudart_13_0");
  rig_env.ld_library_path = rig_path("new");
  rig_examine();
  rig_only("runtime", YK__GOOD);
}

static void test_beside_the_path(void **state) {
  char path[2048];
  (void)state;
  rig_healthy();
  rig_remove("lib/libcudnn.so.9");
  rig_lib("other/libcudnn.so.9", "cudnn_9_for_13");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "the cuDNN is there, but not where the loader looks");
  snprintf(path, sizeof path, "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", rig_path("other"));
  assert_string_equal(v->next, path);
}

/* ---- broken ------------------------------------------------------------------------------------------------------- */

static void test_undefined_function(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudart.so.13", "cudart_undefined");
  rig_examine();
  const yk_verdict *v = rig_expect("runtime", YK__BAD, "the CUDA runtime is there but does not load");
  CONTAINS(v->found, "yoke_test_defined_nowhere");
  CONTAINS(v->next, "sudo apt install cuda-cudart-13-0");
}

static void test_dependency_missing(void **state) {
  char command[2048];
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudnn.so.9", "cudnn_needs_part");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "the cuDNN lacks libyokepart.so.7, which it is linked to");
  assert_string_equal(v->needed, "libyokepart.so.7 where the loader looks");
  snprintf(command, sizeof command, "ldd %s | grep 'not found'", rig_path("lib/libcudnn.so.9"));
  assert_string_equal(v->next, command);
}

static void test_not_a_library(void **state) {
  (void)state;
  rig_healthy();
  rig_text("lib/libcudnn.so.9", "version https://git-lfs.github.com/spec/v1\n");
  rig_text("lib/libnccl.so.2", "");
  rig_examine();
  rig_expect("cudnn", YK__BAD, "the cuDNN is there but does not load");
  rig_expect("nccl", YK__WARN, "the NCCL is there but does not load");
}

static void test_aborts(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudnn.so.9", "cudnn_aborts");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "the cuDNN crashes");
  CONTAINS(v->found, "in cudnnGetVersion");
  CONTAINS(v->found, "it said: Could not load library libcudnn_graph.so.9");
  rig_only("runtime", YK__GOOD);
}

static void test_exits(void **state) {
  (void)state;
  rig_healthy();
  rig_lib("lib/libcudnn.so.9", "cudnn_exits");
  rig_examine();
  const yk_verdict *v = rig_expect("cudnn", YK__BAD, "the cuDNN crashes");
  CONTAINS(v->found, "ends the process in cudnnGetVersion (status 5)");
}

/* ---- MPI ---------------------------------------------------------------------------------------------------------- */

static void test_mpi(void **state) {
  (void)state;
  rig_healthy();
  rig_examine();
  rig_expect("mpi", YK__NOTE, "there is no MPI library (libmpi.so.40 or libmpi.so.12 is nowhere)");
  rig_text("include/mpi.h", "");
  rig_examine();
  const yk_verdict *v = rig_expect("mpi", YK__WARN, "there is no MPI library, though its header is there");
  CONTAINS(v->needed, rig_path("include/mpi.h"));
  assert_string_equal(v->next, "sudo apt install openmpi-bin");
  rig_lib("lib/libmpi.so.40", "mpi_open");
  rig_examine();
  v = rig_expect("mpi", YK__GOOD, "MPI: Open MPI v4.1.4");
  CONTAINS(v->found, "lib/libmpi.so.40");
}

/* No memory anywhere: an error, never a report that lacks something. */
static void test_no_memory(void **state) {
  (void)state;
  rig_healthy();
  rig_env.default_dirs = "";                       /* no children: only this process counts */
  for (uint64_t n = 1;; n++) {
    uint64_t before = yk__alloc_live();
    yk__alloc_fail_at(n);
    yk_code rc = yk__doctor_run(&rig_env, &rig_report);
    yk__alloc_fail_at(0);
    if (rc == YK_OK) {
      assert_true(n > 3);
      return;
    }
    CHECK_INT(rc, YK_ENOMEM);
    CHECK_INT(yk__alloc_live(), before);
    assert_true(n < 10000);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
  const struct CMUnitTest tests[] = {
    TEST(test_runtime_absent), TEST(test_runtime_wrong_major), TEST(test_runtime_fails), TEST(test_cublas),
    TEST(test_cudnn_absent),
    TEST(test_cudnn_wrong_major), TEST(test_cudnn_for_other_cuda), TEST(test_nccl_absent), TEST(test_several),
    TEST(test_same_version_twice), TEST(test_beside_the_path), TEST(test_undefined_function), TEST(test_dependency_missing),
    TEST(test_not_a_library), TEST(test_aborts), TEST(test_exits), TEST(test_mpi), TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
