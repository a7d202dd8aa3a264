/*
 * load.c - /proc/stat and the sensors of /sys.
 *
 * Which sensor is the processor's is told by its driver's name; the boards' and discs' sensors are left out.
 */
#include "measure/load.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/thread.h"

/* ---- cores --------------------------------------------------------------------------------------------------------- */

/* "cpu3 user nice system idle iowait irq softirq steal ...": idle and iowait are not busy; guests are counted in user already. */
static void read_core(const char *line, yk_load *out) {
  unsigned long long t[8] = { 0 };
  unsigned core;
  int n = sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &core, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
                 &t[6], &t[7]);
  if (n < 5 || core >= YK__LOAD_CORES) return;
  for (int i = 0; i < 8; i++) {
    out->total[core] += t[i];
    if (i != 3 && i != 4) out->busy[core] += t[i];
  }
}

void yk__load_read(const char *file, yk_load *out) {
  char line[512];
  FILE *f = fopen(file, "re");
  memset(out, 0, sizeof *out);
  if (f == NULL) return;
  while (fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9') read_core(line, out);
  fclose(f);
}

double yk__load_between(const yk_load *before, const yk_load *after, uint32_t first, uint32_t n) {
  uint64_t busy = 0, total = 0;
  for (uint32_t k = 0; k < n; k++) {
    int core = yk__core_number((int)(first + k));
    if (core < 0 || core >= YK__LOAD_CORES || after->total[core] <= before->total[core]) continue;
    total += after->total[core] - before->total[core];
    if (after->busy[core] > before->busy[core]) busy += after->busy[core] - before->busy[core];
  }
  return total == 0 ? YK__UNKNOWN : busy > total ? 1 : (double)busy / (double)total;
}

/* ---- sensors ------------------------------------------------------------------------------------------------------- */

static bool read_text(const char *path, char *buf, size_t n) {
  FILE *f = fopen(path, "re");
  bool good = f != NULL && fgets(buf, (int)n, f) != NULL;
  if (f != NULL) fclose(f);
  if (good) buf[strcspn(buf, "\n")] = '\0';
  return good;
}

uint64_t yk__last_cache(const char *sys) {
  char path[512], text[64];
  unsigned long long kib = 0;
  for (int level = 3; level >= 2 && kib == 0; level--) {
    if (snprintf(path, sizeof path, "%s/devices/system/cpu/cpu0/cache/index%d/size", sys, level) >= (int)sizeof path) return 0;
    if (!read_text(path, text, sizeof text) || sscanf(text, "%lluK", &kib) != 1) kib = 0;
  }
  return (uint64_t)kib * 1024;
}

/* Millidegrees; what no processor survives is no reading. */
static void warmer(const char *path, double *most) {
  char text[64];
  double x;
  if (!read_text(path, text, sizeof text) || sscanf(text, "%lf", &x) != 1) return;
  x /= 1000;
  if (x > -100 && x < 200 && x > *most) *most = x;
}

static bool is_processor(const char *name) {
  static const char *const known[] = { "coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "x86_pkg_temp",
                                       "cpu-thermal", "cpu_thermal_zone", "soc-thermal", "cpu0-thermal" };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(name, known[i]) == 0) return true;
  return false;
}

/* Every temp*_input of one hwmon folder. */
static void sensors(const char *folder, double *most) {
  char path[1024];
  DIR *d = opendir(folder);
  if (d == NULL) return;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    size_t n = strlen(e->d_name);
    if (strncmp(e->d_name, "temp", 4) != 0 || n < 10 || strcmp(e->d_name + n - 6, "_input") != 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path) warmer(path, most);
  }
  closedir(d);
}

/* The folders `class`/`prefix`N whose file `kind` names a processor. */
static void each_folder(const char *class, const char *prefix, const char *kind, bool zone, double *most) {
  char path[900], name[64];
  DIR *d = opendir(class);
  if (d == NULL) return;
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
    if (snprintf(path, sizeof path, "%s/%s/%s", class, e->d_name, kind) >= (int)sizeof path) continue;
    if (!read_text(path, name, sizeof name) || !is_processor(name)) continue;
    if (snprintf(path, sizeof path, "%s/%s%s", class, e->d_name, zone ? "/temp" : "") >= (int)sizeof path) continue;
    if (zone) warmer(path, most);
    else sensors(path, most);
  }
  closedir(d);
}

double yk__temperature(const char *sys) {
  char class[512];
  double most = YK__UNKNOWN;
  if (snprintf(class, sizeof class, "%s/class/hwmon", sys) < (int)sizeof class) each_folder(class, "hwmon", "name", false, &most);
  if (most > YK__UNKNOWN) return most;
  if (snprintf(class, sizeof class, "%s/class/thermal", sys) < (int)sizeof class)
    each_folder(class, "thermal_zone", "type", true, &most);
  return most;
}
