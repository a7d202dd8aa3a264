/*
 * cores.c - which host cores the process may use, and binding threads to them.
 *
 * The affinity mask is taken once, before any thread is pinned. A container's
 * processor quota (cgroup v1 and v2) counts too: more threads than quota are
 * throttled, which costs more than it gives.
 */
#include "base/cores.h"
#include "base/param.h"
#include "base/thread.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cpu_set_t allowed;
static int have_mask, available = 1;

/* Whole cores for a quota per period, both in microseconds; 0 = no limit. */
static int quota_cores(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  return (int)((quota + period - 1) / period);
}

/* Quota of one cgroup folder; 0 = none, or no such folder. */
static int folder_cores(const char *folder) {
  char path[1024];
  long long quota = 0, period = 0;
  FILE *f;
  snprintf(path, sizeof path, "%.900s/cpu.max", folder);                       /* v2: "max 100000" or "150000 100000" */
  if ((f = fopen(path, "re"))) {
    if (fscanf(f, "%lld %lld", &quota, &period) != 2) quota = 0;
    fclose(f);
    return quota_cores(quota, period);
  }
  snprintf(path, sizeof path, "%.900s/cpu.cfs_quota_us", folder);              /* v1: two files */
  if ((f = fopen(path, "re"))) {
    if (fscanf(f, "%lld", &quota) != 1) quota = 0;
    fclose(f);
  }
  snprintf(path, sizeof path, "%.900s/cpu.cfs_period_us", folder);
  if ((f = fopen(path, "re"))) {
    if (fscanf(f, "%lld", &period) != 1) period = 0;
    fclose(f);
  }
  return quota_cores(quota, period);
}

/* The tightest quota of `path` and the folders above it, up to `root`. */
static int tightest(const char *root, const char *path) {
  char folder[896];
  int best = 0;
  size_t base = strlen(root);
  if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder) return 0;
  for (;;) {
    int n = folder_cores(folder);
    char *slash;
    if (n > 0 && (best == 0 || n < best)) best = n;
    slash = strrchr(folder, '/');
    if (strlen(folder) <= base || !slash || (size_t)(slash - folder) < base) return best;
    *slash = '\0';
  }
}

/* One line of the membership file, "4:cpu,cpuacct:/path" or "0::/path". Names the root below which its path is found. */
static int line_cores(char *line, const char *mount) {
  char root[640];
  char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
  if (!path) return 0;
  *path++ = '\0';
  names++;
  path[strcspn(path, "\n")] = '\0';
  if (!*names) {
    snprintf(root, sizeof root, "%.600s", mount);
  } else if (strcmp(names, "cpu") == 0 || strncmp(names, "cpu,", 4) == 0 || strstr(names, ",cpu,") ||
             (strlen(names) > 4 && strcmp(names + strlen(names) - 4, ",cpu") == 0)) {
    snprintf(root, sizeof root, "%.600s/cpu", mount);
  } else {
    return 0;
  }
  return tightest(root, path);
}

int yk__cgroup_cores(const char *membership, const char *mount) {
  char line[768];
  int best = 0;
  FILE *f = fopen(membership, "re");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    int n = line_cores(line, mount);
    if (n > 0 && (best == 0 || n < best)) best = n;
  }
  fclose(f);
  return best;
}

static void look(void) {
  int quota;
  have_mask = sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0;
  if (have_mask) {
    available = CPU_COUNT(&allowed);
  } else {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    available = n > 0 ? (int)n : 1;
  }
  if (available == 1 && omp_get_num_procs() > 1) {        /* OMP_PROC_BIND bound the first thread before we came */
    available = omp_get_num_procs();
    have_mask = 0;
  }
  quota = yk__cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
  if (quota > 0 && quota < available) available = quota;
  if (available < 1) available = 1;
}

int yk__ncores(void) {
  int64_t most = yk__param_int("cores");
  pthread_once(&once, look);
  return most > 0 && most < available ? (int)most : available;
}

int yk__core_number(int k) {
  pthread_once(&once, look);
  if (k < 0) return -1;
  if (!have_mask) return k;
  for (size_t i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &allowed) && k-- == 0) return (int)i;
  return -1;
}

int yk__pin(int first, int n) {
  cpu_set_t set;
  int seen = 0;
  pthread_once(&once, look);
  if (!have_mask || first < 0 || n < 1) return 0;
  CPU_ZERO(&set);
  for (size_t i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &allowed)) continue;
    if (seen >= first && seen - first < n) CPU_SET(i, &set);
    seen++;
  }
  if (seen < first + n) return 0;
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

void yk__unpin(void) {
  pthread_once(&once, look);
  if (have_mask) sched_setaffinity(0, sizeof allowed, &allowed);
}
