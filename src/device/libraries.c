/*
 * libraries.c - ask the libraries of a GPU's vendor whether they are there.
 *
 * The driver is asked how many devices it sees, by the two functions that every
 * version of it has. What the loader says is passed on, unless it only says that the file is missing.
 */
#include "device/libraries.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const libraries[] = { "libcuda.so.1", "libnvidia-ml.so.1" };

/* Functions are found as data pointers; C has no cast for that, POSIX has the same bits. */
static int find(void *lib, const char *name, void *fn, size_t bytes) {
  void *symbol = dlsym(lib, name);
  if (symbol == NULL) return 0;
  memcpy(fn, &symbol, bytes);
  return 1;
}

/* What the driver says of itself. */
static void ask_driver(void *lib, char *buf, size_t n) {
  int (*init)(unsigned) = NULL, (*count)(int *) = NULL, rc, devices = 0;
  if (!find(lib, "cuInit", &init, sizeof init) || !find(lib, "cuDeviceGetCount", &count, sizeof count)) {
    snprintf(buf, n, "found, but it lacks cuInit or cuDeviceGetCount (a stub?)");
    return;
  }
  rc = init(0);
  if (rc == 0) rc = count(&devices);
  if (rc != 0) snprintf(buf, n, "found, but it fails with code %d", rc);
  else if (devices < 1) snprintf(buf, n, "found, but it sees no GPU");
  else snprintf(buf, n, "found, sees %d GPU%s, but this build has no driver for them", devices, devices == 1 ? "" : "s");
}

static void ask(const char *name, char *buf, size_t n) {
  void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (lib == NULL) {
    const char *why = dlerror();
    int missing = why == NULL || (strncmp(why, name, strlen(name)) == 0 && strstr(why, "No such file") != NULL);
    snprintf(buf, n, "%.120s", missing ? "not found" : why);
    return;
  }
  if (strncmp(name, "libcuda.", 8) == 0) ask_driver(lib, buf, n);
  else snprintf(buf, n, "found");
  dlclose(lib);
}

char *yk__gpu_libraries(char *buf, size_t n) {
  size_t at = 0;
  if (n) buf[0] = '\0';
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && at < n; i++) {
    char what[160];
    ask(libraries[i], what, sizeof what);
    int wrote = snprintf(buf + at, n - at, "%s%s: %s", i ? "; " : "tried ", libraries[i], what);
    if (wrote > 0) at += (size_t)wrote;
  }
  return buf;
}
