/*
 * libraries.c - ask the libraries of a GPU's vendor whether they are there.
 *
 * The driver is asked how many devices it sees, by the two functions that every
 * version of it has. What the loader says is passed on, unless it only says that the file is missing. A library may crash
 * or hang as it pleases: a child process asks.
 */
#include "device/libraries.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/child.h"

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

enum { MOST = 400, TIME_MS = 5000 };

/* In the child: as far as it gets is what is told. */
static void ask_all(void *arg, void *answer) {
  char *text = answer;
  (void)arg;
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    char what[160];
    size_t at = strlen(text);
    snprintf(text + at, MOST - at, "%s%s: ", i ? "; " : "tried ", libraries[i]);
    ask(libraries[i], what, sizeof what);
    at = strlen(text);
    snprintf(text + at, MOST - at, "%s", what);
  }
}

char *yk__gpu_libraries(char *buf, size_t n) {
  yk_child c = { 0 };
  if (yk__child_start(&c, ask_all, NULL, MOST, TIME_MS) != YK_OK) {
    snprintf(buf, n, "the libraries could not be asked: %s", yk_error_message());
    yk_error_clear();
    return buf;
  }
  yk__child_wait(&c);
  bool crashed = c.end == YK__CHILD_SIGNALLED || c.end == YK__CHILD_EXITED;
  const char *end = c.end == YK__CHILD_RETURNED ? "" : crashed ? "found, but it crashes" : "found, but it hangs";
  snprintf(buf, n, "%.*s%s", MOST - 1, (const char *)c.answer, end);
  yk__child_free(&c);
  return buf;
}
