/*
 * machine.c - what files tell of this machine: cards on the PCI bus, kernel module, device files, toolkit, shared memory.
 *
 * Everything is read below folders that the caller names, and nothing is opened but text. What is not there is an empty
 * fact, not a failure: most machines lack most of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/str.h"
#include "doctor/facts.h"

enum { PATH_BYTES = PATH_MAX + 300 };

/* The beginning of a file as text; "" if it cannot be read. */
static const char *head_of(const char *path, char *buffer, size_t bytes) {
  FILE *f = fopen(path, "rbe");
  size_t n = f != NULL ? fread(buffer, 1, bytes - 1, f) : 0;
  if (f != NULL) fclose(f);
  buffer[n] = '\0';
  return buffer;
}

static bool exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

/* ---- cards and kernel module -------------------------------------------------------------------------------------- */

static void one_card(const char *dir, const char *address, yk_doctor_report *r, yk_machine_facts *out) {
  char path[PATH_BYTES], text[64], target[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s/vendor", dir, address);
  if (strncmp(head_of(path, text, sizeof text), "0x10de", 6) != 0) return;
  snprintf(path, sizeof path, "%s/%s/class", dir, address);
  if (strncmp(head_of(path, text, sizeof text), "0x03", 4) != 0) return;       /* display controllers; not their sound */
  if (out->ncards++ > 0) return;
  snprintf(path, sizeof path, "%s/%s/driver", dir, address);
  ssize_t n = readlink(path, target, sizeof target - 1);
  target[n > 0 ? n : 0] = '\0';
  const char *name = strrchr(target, '/');
  out->card = yk__say(r, "%s", address);
  out->card_driver = yk__say(r, "%s", name != NULL ? name + 1 : target);
}

static void cards(const yk_doctor_env *env, yk_doctor_report *r, yk_machine_facts *out) {
  char dir[PATH_MAX];
  snprintf(dir, sizeof dir, "%s/bus/pci/devices", env->sys);
  DIR *d = opendir(dir);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.') one_card(dir, e->d_name, r, out);
  if (d != NULL) closedir(d);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue ...": the word that begins with a digit and has a dot. */
static void module(const yk_doctor_env *env, yk_doctor_report *r, yk_machine_facts *out) {
  char path[PATH_MAX], text[512];
  snprintf(path, sizeof path, "%s/driver/nvidia/version", env->proc);
  const char *p = head_of(path, text, sizeof text);
  for (p += strspn(p, " \n"); *p != '\0' && *p != '\n'; p += strspn(p, " ")) {
    size_t n = strcspn(p, " \n");
    if (*p >= '0' && *p <= '9' && strspn(p, "0123456789.") == n && memchr(p, '.', n) != NULL) {
      out->module = yk__say(r, "%.*s", (int)n, p);
      return;
    }
    p += n;
  }
  if (exists(path)) out->module = "of unknown version";
}

/* ---- device files ------------------------------------------------------------------------------------------------- */

static void node(const char *path, yk_doctor_report *r, yk_machine_facts *out) {
  struct stat st;
  if (out->nnodes == YK__MAX_NODES) return;
  yk_dev_node *n = &out->node[out->nnodes++];
  *n = (yk_dev_node){ .path = yk__say(r, "%s", path), .owner = "", .group = "" };
  if (stat(path, &st) != 0) return;
  const struct passwd *owner = getpwuid(st.st_uid);
  const struct group *group = getgrgid(st.st_gid);
  n->there = true;
  n->mode = (unsigned)st.st_mode & 0777u;
  n->owner = owner != NULL ? yk__say(r, "%s", owner->pw_name) : yk__say(r, "%u", (unsigned)st.st_uid);
  n->group = group != NULL ? yk__say(r, "%s", group->gr_name) : yk__say(r, "%u", (unsigned)st.st_gid);
  n->usable = faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}

/* The control file, the one for memory, and one a card; nvidia-caps and modeset are of no interest. */
static void nodes(const yk_doctor_env *env, yk_doctor_report *r, yk_machine_facts *out) {
  static const char *const fixed[] = { "nvidiactl", "nvidia-uvm" };
  char path[PATH_BYTES];
  bool any = false;
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", env->dev, fixed[i]);
    any = any || exists(path);
  }
  for (int i = 0; i < 32; i++) {
    snprintf(path, sizeof path, "%s/nvidia%d", env->dev, i);
    if (exists(path)) node(path, r, out);
  }
  any = any || out->nnodes > 0 || out->module[0] != '\0';
  if (any && out->nnodes == 0) {
    snprintf(path, sizeof path, "%s/nvidia0", env->dev);
    node(path, r, out);
  }
  for (int i = 0; i < 2 && any; i++) {
    snprintf(path, sizeof path, "%s/%s", env->dev, fixed[i]);
    node(path, r, out);
  }
}

/* ---- toolkit, headers, stub --------------------------------------------------------------------------------------- */

typedef struct place { yk_doctor_report *r; yk_machine_facts *out; } place;

static bool toolkit_in(const char *dir, void *arg) {
  enum { HEAD = 256 << 10 };
  place *p = arg;
  char path[PATH_BYTES], real[PATH_MAX];
  snprintf(path, sizeof path, "%s/bin/nvcc", dir);
  if (access(path, X_OK) != 0 || realpath(dir, real) == NULL) return false;
  p->out->toolkit = yk__say(p->r, "%s", real);
  snprintf(path, sizeof path, "%s/include/cuda.h", dir);
  char *text = yk__alloc(HEAD);
  if (text == NULL) return true;
  const char *define = strstr(head_of(path, text, HEAD), "#define CUDA_VERSION");
  if (define != NULL) {
    char digits[16];
    int64_t version;
    define += strlen("#define CUDA_VERSION");
    define += strspn(define, " \t");
    size_t n = strspn(define, "0123456789");
    snprintf(digits, sizeof digits, "%.*s", n < sizeof digits ? (int)n : 0, define);
    if (yk__parse_i64(digits, 1000, 999999, &version)) p->out->toolkit_version = (int)version;
  }
  yk__free(text);
  return true;
}

static bool header_in(const char *dir, void *arg) {
  place *p = arg;
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/mpi.h", dir);
  if (!exists(path)) return false;
  p->out->mpi_header = yk__say(p->r, "%s", path);
  return true;
}

/* The toolkit keeps a driver library without content in "stubs", for the linker only. */
static bool stub_in(const char *dir, void *arg) {
  static const char *const names[] = { "libcuda.so.1", "libcuda.so" };
  place *p = arg;
  char path[PATH_BYTES], real[PATH_MAX];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s", dir, names[i]);
    if (realpath(path, real) == NULL || (strstr(real, "/stubs/") == NULL && strstr(path, "/stubs/") == NULL)) continue;
    p->out->stub_dir = yk__say(p->r, "%s", dir);
    return true;
  }
  return false;
}

/* ---- the system --------------------------------------------------------------------------------------------------- */

/* Which command installs packages here, from the names that os-release gives the system and its relatives. */
static void installer(const yk_doctor_env *env, yk_machine_facts *out) {
  static const struct { const char *name, *command; } known[] = {
    { "debian", "apt" }, { "ubuntu", "apt" }, { "rhel", "dnf" }, { "fedora", "dnf" }, { "suse", "zypper" } };
  char path[PATH_MAX], text[4096];
  snprintf(path, sizeof path, "%s/os-release", env->etc);
  head_of(path, text, sizeof text);
  for (char *line = text; *line != '\0';) {
    size_t n = strcspn(line, "\n");
    char *next = line + n + (line[n] == '\n');
    line[n] = '\0';
    if (strncmp(line, "ID=", 3) == 0 || strncmp(line, "ID_LIKE=", 8) == 0) {
      for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (out->installer[0] == '\0' && strstr(line, known[i].name) != NULL) out->installer = known[i].command;
      if (strstr(line, "ubuntu") != NULL) out->ubuntu = true;
    }
    line = next;
  }
}

static void shared_memory(const yk_doctor_env *env, yk_machine_facts *out) {
  struct statvfs fs;
  if (statvfs(env->shm, &fs) != 0) return;
  out->shm_there = true;
  out->shm_total = (uint64_t)fs.f_blocks * fs.f_frsize;
  out->shm_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

void yk__machine(const yk_doctor_env *env, yk_doctor_report *r, yk_machine_facts *out) {
  place p = { r, out };
  *out = (yk_machine_facts){ .card = "", .card_driver = "", .module = "", .toolkit = "", .mpi_header = "", .stub_dir = "",
                             .installer = "" };
  cards(env, r, out);
  module(env, r, out);
  nodes(env, r, out);
  yk__each_dir(env->toolkit_dirs, toolkit_in, &p);
  yk__each_dir(env->header_dirs, header_in, &p);
  yk__each_dir(env->ld_library_path, stub_in, &p);
  installer(env, out);
  shared_memory(env, out);
}
