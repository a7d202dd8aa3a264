/*
 * probe.c - loads a library in a child process and asks it.
 *
 * All children of a library run side by side. One that crashes, prints or hangs costs its own verdict and nothing else;
 * how far it came stands in the shared memory.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "doctor/facts.h"

typedef struct question { const yk_lib *lib; const char *path; } question;

/* Does the library have all functions? Tells the first one that it lacks. */
static bool complete(void *handle, const char *symbols, yk_probe *out) {
  char name[64];
  while (*symbols != '\0') {
    size_t n = strcspn(symbols, " ");
    snprintf(name, sizeof name, "%.*s", (int)n, symbols);
    if (dlsym(handle, name) == NULL) {
      memcpy(out->missing, name, sizeof name);
      return false;
    }
    symbols += n + strspn(symbols + n, " ");
  }
  return true;
}

static void child(void *arg, void *answer) {
  const question *q = arg;
  yk_probe *out = answer;
  snprintf(out->stage, sizeof out->stage, "dlopen");
  void *handle = dlopen(q->path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *why = dlerror();
    snprintf(out->error, sizeof out->error, "%s", why != NULL ? why : "no reason given");
    return;
  }
  out->loaded = true;
  if (complete(handle, q->lib->symbols, out)) q->lib->ask(handle, out);
}

static bool wanted(const yk_lib *lib, int number) {
  for (int i = 0; i < 3 && lib->want[i] != 0; i++)
    if (lib->want[i] == number) return true;
  return false;
}

void yk__probe_start(const yk_doctor_env *env, yk_lib_facts *l) {
  for (int i = 0; i < l->n; i++) {
    yk_lib_file *f = &l->file[i];
    question q = { l->lib, f->path };
    if (!wanted(l->lib, f->number)) continue;
    if (yk__child_start(&f->child, child, &q, sizeof(yk_probe), env->timeout_ms) != YK_OK) {
      yk_error_clear();                            /* then it is a file that nobody has asked */
      continue;
    }
    f->asked = true;
    f->probe = f->child.answer;
  }
}

void yk__probe_wait(yk_lib_facts *l) {
  for (int i = 0; i < l->n; i++)
    if (l->file[i].asked) yk__child_wait(&l->file[i].child);
}

void yk__probe_free(yk_lib_facts *l) {
  for (int i = 0; i < l->n; i++) yk__child_free(&l->file[i].child);
}
