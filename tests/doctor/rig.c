/*
 * rig.c - see rig.h. Libraries are copied rather than linked, since the doctor takes two names of one file for one.
 */
#include "rig.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

yk_doctor_env rig_env;
yk_doctor_report rig_report;
static char root[256];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at) {
  (void)s;
  (void)type;
  (void)at;
  return remove(path);
}

int rig_setup(void **state) {
  static char path[16][300];
  const char *tmp = getenv("TMPDIR");
  static const char *const dirs[] = { "dev", "proc", "sys", "etc", "shm", "lib", "other", "cache", "include", "cuda" };
  (void)state;
  snprintf(root, sizeof root, "%s/yoke-doctor-XXXXXX", tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(root) == NULL || chmod(root, 0755) != 0) return -1;
  for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
    snprintf(path[i], sizeof path[i], "%s/%s", root, dirs[i]);
    if (strcmp(dirs[i], "cache") != 0 && mkdir(path[i], 0755) != 0) return -1;
  }
  rig_env = (yk_doctor_env){ .dev = path[0], .proc = path[1], .sys = path[2], .etc = path[3], .shm = path[4],
                             .default_dirs = path[5], .other_dirs = path[6], .ld_cache = path[7], .header_dirs = path[8],
                             .toolkit_dirs = path[9], .shm_need = 1, .timeout_ms = 60000 };
  rig_report = (yk_doctor_report){ 0 };
  return 0;
}

int rig_teardown(void **state) {
  (void)state;
  yk__doctor_free(&rig_report);
  return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *rig_path(const char *name) {
  static char path[8][512];
  static int turn;
  char *out = path[turn++ % 8];
  snprintf(out, 512, "%s/%s", root, name);
  return out;
}

static void make_folders(const char *name) {
  char part[256];
  for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
    if (mkdir(rig_path(part), 0755) != 0 && errno != EEXIST) fail_msg("mkdir %s: %s", part, strerror(errno));
  }
}

static void write_file(const char *name, const char *bytes, size_t n) {
  make_folders(name);
  FILE *f = fopen(rig_path(name), "wb");
  if (f == NULL) fail_msg("%s: %s", name, strerror(errno));
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

void rig_text(const char *name, const char *text) {
  write_file(name, text, strlen(text));
}

void rig_lib(const char *name, const char *fake) {
  static char bytes[4 << 20];
  char path[4096];
  const char *build = getenv("YOKE_BUILD_DIR");
  assert_non_null(build);
  snprintf(path, sizeof path, "%s/tests/doctor/fakes/%s.so", build, fake);
  FILE *f = fopen(path, "rb");
  if (f == NULL) fail_msg("%s: %s", path, strerror(errno));
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  assert_true(n > 0 && n < sizeof bytes);
  unlink(rig_path(name));
  write_file(name, bytes, n);
}

void rig_link(const char *name, const char *target) {
  make_folders(name);
  if (symlink(target, rig_path(name)) != 0) fail_msg("symlink %s: %s", name, strerror(errno));
}

void rig_remove(const char *name) {
  if (remove(rig_path(name)) != 0) fail_msg("remove %s: %s", name, strerror(errno));
}

void rig_card(const char *address, const char *driver) {
  char name[256], target[256];
  snprintf(name, sizeof name, "sys/bus/pci/devices/%s/vendor", address);
  rig_text(name, "0x10de\n");
  snprintf(name, sizeof name, "sys/bus/pci/devices/%s/class", address);
  rig_text(name, "0x030200\n");
  if (driver == NULL) return;
  snprintf(name, sizeof name, "sys/bus/pci/devices/%s/driver", address);
  snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver);
  rig_link(name, target);
}

void rig_healthy(void) {
  rig_text("etc/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\n");
  rig_card("0000:3b:00.0", "nvidia");
  rig_text("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Mon\nGCC version: 12\n");
  static const char *const files[] = { "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm" };
  for (int i = 0; i < 3; i++) {
    rig_text(files[i], "");
    CHECK_INT(chmod(rig_path(files[i]), 0666), 0);
  }
  rig_lib("lib/libcuda.so.580.65.06", "cuda_13_0");
  rig_link("lib/libcuda.so.1", "libcuda.so.580.65.06");
  rig_lib("lib/libcudart.so.13", "cudart_13_0");
  rig_lib("lib/libcublas.so.13", "cublas_13");
  rig_lib("lib/libcudnn.so.9", "cudnn_9_for_13");
  rig_lib("lib/libnccl.so.2", "nccl_2");
}

/* ---- the examination ---------------------------------------------------------------------------------------------- */

static void show(void) {
  for (uint32_t i = 0; i < rig_report.n; i++) {
    const yk_verdict *v = &rig_report.at[i];
    print_error("%s %s: %s\n  looked for %s\n  in %s\n  found %s\n  needed %s\n  next %s\n",
                yk__doctor_state_text(v->state), v->check, v->says, v->looked_for, v->where, v->found, v->needed, v->next);
  }
  print_error("%s\n", rig_report.summary);
}

void rig_examine(void) {
  yk__doctor_free(&rig_report);
  CHECK_OK(yk__doctor_run(&rig_env, &rig_report));
  for (uint32_t i = 0; i < rig_report.n; i++) {
    const yk_verdict *v = &rig_report.at[i];
    const char *const texts[] = { v->check, v->says, v->looked_for, v->where, v->found, v->needed, v->next };
    for (int k = 0; k < 7; k++)
      if (texts[k] == NULL || texts[k][0] == '\0') {
        show();
        fail_msg("text %d of verdict %u (%s) is empty", k, i, v->check);
      }
  }
}

const yk_verdict *rig_expect(const char *check, yk_doctor_state state, const char *says) {
  const yk_verdict *found = NULL;
  for (uint32_t i = 0; i < rig_report.n; i++) {
    const yk_verdict *v = &rig_report.at[i];
    if (strcmp(v->check, check) != 0 || v->state != state || strstr(v->says, says) == NULL) continue;
    if (found != NULL) fail_msg("two verdicts: %s and %s", found->says, v->says);
    found = v;
  }
  if (found == NULL) {
    show();
    fail_msg("no verdict %s of %s with \"%s\"", yk__doctor_state_text(state), check, says);
  }
  return found;
}

void rig_only(const char *check, yk_doctor_state state) {
  int n = 0;
  for (uint32_t i = 0; i < rig_report.n; i++) {
    const yk_verdict *v = &rig_report.at[i];
    if (strcmp(v->check, check) != 0) continue;
    n++;
    if (v->state == state) continue;
    show();
    fail_msg("%s is %s: %s", check, yk__doctor_state_text(v->state), v->says);
  }
  if (n == 0) fail_msg("no verdict of %s", check);
}

void rig_contains(const char *text, const char *part, const char *file, int line) {
  if (strstr(text, part) != NULL) return;
  show();
  print_error("\"%s\" lacks \"%s\"\n", text, part);
  _fail(file, line);
}
