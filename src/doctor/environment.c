/*
 * environment.c - where to look on this machine: what the environment says, and the places where such things usually lie.
 *
 * Nothing is looked at here but environment variables and the names of folders; the lists are only used as far as the
 * folders are there.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/param.h"
#include "base/str.h"
#include "doctor/doctor.h"

enum { SHM_MIB = 256, TIMEOUT_MS = 10000 };

static bool has(const yk_str *list, const char *dir) {
  size_t n = strlen(dir);
  for (const char *p = list->s; p != NULL && *p != '\0'; p += strcspn(p, ":"), p += *p == ':')
    if (strcspn(p, ":") == n && memcmp(p, dir, n) == 0) return true;
  return false;
}

/* Every folder that matches, behind what there is. */
static void add(yk_str *list, const char *pattern) {
  glob_t g;
  struct stat st;
  if (glob(pattern, 0, NULL, &g) != 0) return;
  for (size_t i = 0; i < g.gl_pathc; i++) {
    const char *dir = g.gl_pathv[i];
    if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && !has(list, dir)) yk__str_add(list, "%s%s", list->n > 0 ? ":" : "", dir);
  }
  globfree(&g);
}

/* The folder `below` under what an environment variable names. */
static void add_env(yk_str *list, const char *name, const char *below) {
  const char *value = yk__env(name);
  char path[4096];
  if (value == NULL || value[0] != '/') return;
  snprintf(path, sizeof path, "%.3000s%s", value, below);
  add(list, path);
}

/* The list moves to `text`; NULL without memory. */
static const char *take(yk_str *list, yk_bump *text) {
  const char *kept = list->failed ? NULL : yk__bump_str(text, list->s != NULL ? list->s : "");
  yk__str_free(list);
  return kept;
}

static const char *default_dirs(yk_bump *text, const char *machine) {
  yk_str list = { 0 };
  char path[256];
  snprintf(path, sizeof path, "/lib/%.64s-linux-gnu", machine);
  add(&list, path);
  snprintf(path, sizeof path, "/usr/lib/%.64s-linux-gnu", machine);
  add(&list, path);
  add(&list, "/lib64");
  add(&list, "/usr/lib64");
  add(&list, "/lib");
  add(&list, "/usr/lib");
  return take(&list, text);
}

static const char *other_dirs(yk_bump *text) {
  static const char *const patterns[] = {
    "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64", "/usr/local/lib", "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib", "/usr/lib/nvidia*", "/run/opengl-driver/lib", "/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib",
    "/opt/openmpi/lib", "/opt/mpich/lib",
  };
  yk_str list = { 0 };
  add_env(&list, "CUDA_HOME", "/lib64");
  add_env(&list, "CUDA_PATH", "/lib64");
  add_env(&list, "CONDA_PREFIX", "/lib");
  add_env(&list, "VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/*/lib");
  add_env(&list, "MPI_HOME", "/lib");
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) add(&list, patterns[i]);
  return take(&list, text);
}

static const char *toolkit_dirs(yk_bump *text) {
  yk_str list = { 0 };
  add_env(&list, "CUDA_HOME", "");
  add_env(&list, "CUDA_PATH", "");
  add(&list, "/usr/local/cuda");
  add(&list, "/usr/local/cuda-*");
  add(&list, "/opt/cuda");
  add(&list, "/usr/lib/cuda");
  return take(&list, text);
}

static const char *header_dirs(yk_bump *text, const char *machine) {
  static const char *const patterns[] = {
    "/usr/include/openmpi*", "/usr/include/mpich*", "/usr/lib64/openmpi/include", "/usr/include", "/usr/local/include",
    "/opt/openmpi/include", "/opt/mpich/include",
  };
  yk_str list = { 0 };
  char path[256];
  add_env(&list, "MPI_HOME", "/include");
  snprintf(path, sizeof path, "/usr/lib/%.64s-linux-gnu/*mpi*/include", machine);
  add(&list, path);
  snprintf(path, sizeof path, "/usr/include/%.64s-linux-gnu/mpi*", machine);
  add(&list, path);
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) add(&list, patterns[i]);
  return take(&list, text);
}

yk_code yk__doctor_env(yk_bump *text, yk_doctor_env *out) {
  struct utsname system;
  const char *machine = uname(&system) == 0 ? system.machine : "unknown";
  yk_doctor_env env = {
    .ld_library_path = yk__env("LD_LIBRARY_PATH"), .ld_cache = "/etc/ld.so.cache", .visible = yk__env("CUDA_VISIBLE_DEVICES"),
    .dev = "/dev", .proc = "/proc", .sys = "/sys", .shm = "/dev/shm", .etc = "/etc",
    .container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0,
    .shm_need = (uint64_t)SHM_MIB << 20, .timeout_ms = TIMEOUT_MS,
  };
  env.default_dirs = default_dirs(text, machine);
  env.other_dirs = other_dirs(text);
  env.toolkit_dirs = toolkit_dirs(text);
  env.header_dirs = header_dirs(text, machine);
  if (!env.default_dirs || !env.other_dirs || !env.toolkit_dirs || !env.header_dirs) return YK_ENOMEM;
  *out = env;
  return YK_OK;
}
