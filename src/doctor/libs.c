/*
 * libs.c - the libraries that training on a GPU, or on several machines, rests on, and how each is asked for its version.
 *
 * The functions here run in a child process that may die at any call, so each tells first what it is about to do. Types are
 * written out: no header of CUDA or MPI is needed to build this.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "doctor/facts.h"

typedef void (*any_fn)(void);

/* ISO C has no cast from an object pointer to a function; POSIX promises that the copy works. */
static any_fn function(void *handle, const char *name) {
  void *address = dlsym(handle, name);
  any_fn fn;
  memcpy(&fn, &address, sizeof fn);
  return fn;
}

static void stage(yk_probe *out, const char *name) {
  snprintf(out->stage, sizeof out->stage, "%s", name);
}

static void set_cuda_version(yk_probe *out, int version) {
  out->major = version / 1000;
  out->minor = version % 1000 / 10;
}

/* ---- the driver --------------------------------------------------------------------------------------------------- */

static void ask_card(void *handle, int i, yk_probe *out) {
  enum { CC_MAJOR = 75, CC_MINOR = 76 };
  int (*get)(int *, int) = (int (*)(int *, int))function(handle, "cuDeviceGet");
  int (*name)(char *, int, int) = (int (*)(char *, int, int))function(handle, "cuDeviceGetName");
  int (*attribute)(int *, int, int) = (int (*)(int *, int, int))function(handle, "cuDeviceGetAttribute");
  int (*total)(size_t *, int) = (int (*)(size_t *, int))function(handle, "cuDeviceTotalMem_v2");
  int (*bus)(char *, int, int) = (int (*)(char *, int, int))function(handle, "cuDeviceGetPCIBusId");
  int device, bad;
  size_t bytes = 0;
  stage(out, "cuDeviceGet");
  bad = get(&device, i);
  if (!bad) bad = name(out->card[i].name, sizeof out->card[i].name, device);
  if (!bad) bad = attribute(&out->card[i].major, CC_MAJOR, device);
  if (!bad) bad = attribute(&out->card[i].minor, CC_MINOR, device);
  if (!bad) bad = total(&bytes, device);
  if (!bad) bad = bus(out->card[i].bus, sizeof out->card[i].bus, device);
  out->card[i].bytes = bytes;
  if (bad) out->code = bad;
}

static void ask_cuda(void *handle, yk_probe *out) {
  int (*version)(int *) = (int (*)(int *))function(handle, "cuDriverGetVersion");
  int (*init)(unsigned) = (int (*)(unsigned))function(handle, "cuInit");
  int (*count)(int *) = (int (*)(int *))function(handle, "cuDeviceGetCount");
  int v = 0, n = 0;
  stage(out, "cuDriverGetVersion");
  if (version(&v) == 0) set_cuda_version(out, v);
  stage(out, "cuInit");
  out->code = init(0);
  if (out->code) return;
  stage(out, "cuDeviceGetCount");
  out->code = count(&n);
  for (int i = 0; i < n && i < YK__MAX_CARDS && !out->code; i++) {
    ask_card(handle, i, out);
    if (!out->code) out->ncards = i + 1;
  }
}

/* ---- the libraries ------------------------------------------------------------------------------------------------ */

static void ask_cudart(void *handle, yk_probe *out) {
  int (*version)(int *) = (int (*)(int *))function(handle, "cudaRuntimeGetVersion");
  int v = 0;
  stage(out, "cudaRuntimeGetVersion");
  out->code = version(&v);
  set_cuda_version(out, v);
}

static void ask_cublas(void *handle, yk_probe *out) {
  int (*property)(int, int *) = (int (*)(int, int *))function(handle, "cublasGetProperty");
  stage(out, "cublasGetProperty");
  out->code = property(0, &out->major);
  if (!out->code) out->code = property(1, &out->minor);
  if (!out->code) out->code = property(2, &out->patch);
}

static void ask_cudnn(void *handle, yk_probe *out) {
  size_t (*version)(void) = (size_t (*)(void))function(handle, "cudnnGetVersion");
  size_t (*built)(void) = (size_t (*)(void))function(handle, "cudnnGetCudartVersion");
  stage(out, "cudnnGetVersion");
  int v = (int)version(), unit = v >= 90000 ? 10000 : 1000;      /* 8907 = 8.9.7, 90100 = 9.1.0 */
  out->major = v / unit;
  out->minor = v % unit / 100;
  out->patch = v % 100;
  stage(out, "cudnnGetCudartVersion");
  out->built_for = (int)built();
}

static void ask_nccl(void *handle, yk_probe *out) {
  int (*version)(int *) = (int (*)(int *))function(handle, "ncclGetVersion");
  int v = 0, unit;
  stage(out, "ncclGetVersion");
  out->code = version(&v);
  unit = v >= 10000 ? 10000 : 1000;                              /* 2804 = 2.8.4, 20903 = 2.9.3 */
  out->major = v / unit;
  out->minor = v % unit / 100;
  out->patch = v % 100;
}

static void ask_mpi(void *handle, yk_probe *out) {
  static char words[16384];                                      /* the length is the library's business: MPICH takes 8192 */
  int (*version)(char *, int *) = (int (*)(char *, int *))function(handle, "MPI_Get_library_version");
  int n = 0;
  stage(out, "MPI_Get_library_version");
  out->code = version(words, &n);
  words[sizeof words - 1] = '\0';
  for (char *p = words; *p != '\0'; p++)
    if (*p == '\t' || *p == '\r') *p = ' ';
  words[strcspn(words, "\n,")] = '\0';
  snprintf(out->words, sizeof out->words, "%.120s", words);
}

/* NCCL and the driver have never changed their numbers; of MPI, 40 is Open MPI, 12 is MPICH and Intel MPI. */
const yk_lib yk__libs[YK__NLIBS] = {
  [YK__LIB_CUDA]   = { "driver", "libcuda.so", { 1 },
                       "cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute "
                       "cuDeviceTotalMem_v2 cuDeviceGetPCIBusId", ask_cuda },
  [YK__LIB_CUDART] = { "runtime", "libcudart.so", { 13, 12 }, "cudaRuntimeGetVersion cudaMalloc cudaLaunchKernel", ask_cudart },
  [YK__LIB_CUBLAS] = { "cublas", "libcublas.so", { 13, 12 }, "cublasGetProperty cublasCreate_v2 cublasGemmEx", ask_cublas },
  [YK__LIB_CUDNN]  = { "cudnn", "libcudnn.so", { 9 }, "cudnnGetVersion cudnnGetCudartVersion cudnnCreate", ask_cudnn },
  [YK__LIB_NCCL]   = { "nccl", "libnccl.so", { 2 }, "ncclGetVersion ncclCommInitRank ncclAllReduce", ask_nccl },
  [YK__LIB_MPI]    = { "mpi", "libmpi.so", { 40, 12 }, "MPI_Get_library_version MPI_Init_thread MPI_Allreduce", ask_mpi },
};
