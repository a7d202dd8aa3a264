/*
 * search.c - which files a library's name leads to: LD_LIBRARY_PATH, the loader's cache, its default folders, and beyond.
 *
 * The loader takes the first file of the exact name and of this machine's kind; the order here is the same. Folders where
 * it does not look come last: a library that lies there is the commonest reason for "not found".
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/str.h"
#include "doctor/facts.h"
#include "doctor/ldcache.h"

typedef struct search {
  yk_doctor_report *r;
  const yk_lib *lib;
  const char *via;
  bool on_path;
  yk_lib_facts *out;
} search;

bool yk__each_dir(const char *list, bool (*fn)(const char *, void *), void *arg) {
  char dir[PATH_MAX];
  while (list != NULL && *list != '\0') {
    size_t n = strcspn(list, ":");
    if (n > 0 && n < sizeof dir) {
      memcpy(dir, list, n);
      dir[n] = '\0';
      if (fn(dir, arg)) return true;
    }
    list += n + (list[n] == ':');
  }
  return false;
}

/* The first bytes of an ELF file that say whether the loader can use it here: class, byte order, processor. */
static bool identify(const char *path, unsigned char out[20]) {
  FILE *f = fopen(path, "rbe");
  bool good = f != NULL && fread(out, 1, 20, f) == 20 && memcmp(out, "\177ELF", 4) == 0;
  if (f != NULL) fclose(f);
  return good;
}

/* An ELF file of another kind of machine, as 32-bit libraries are; the loader passes over it. */
static bool foreign(const char *path) {
  unsigned char own[20], its[20];
  if (!identify("/proc/self/exe", own) || !identify(path, its)) return false;
  return own[4] != its[4] || own[5] != its[5] || memcmp(own + 18, its + 18, 2) != 0;
}

static bool wanted(const yk_lib *lib, int64_t number) {
  for (int i = 0; i < 3 && lib->want[i] != 0; i++)
    if (lib->want[i] == number) return true;
  return false;
}

/* "libcudart.so.13" gives 13, "libcudart.so.11.0" 11; 0 for what no program is linked to ("libcudart.so.12.4.127"). */
static int number_of(const yk_lib *lib, const char *name) {
  size_t n = strlen(lib->prefix), digits;
  char text[16];
  int64_t number;
  if (strncmp(name, lib->prefix, n) != 0 || name[n] != '.') return 0;
  name += n + 1;
  digits = strspn(name, "0123456789");
  if (digits == 0 || digits >= sizeof text) return 0;
  snprintf(text, sizeof text, "%.*s", (int)digits, name);
  if (!yk__parse_i64(text, 1, 1000000, &number)) return 0;
  if (name[digits] == '\0') return (int)number;
  name += digits + 1;
  return !wanted(lib, number) && isdigit((unsigned char)*name) && strspn(name, "0123456789") == strlen(name) ? (int)number : 0;
}

static void add(search *s, const char *name, const char *path) {
  char real[PATH_MAX];
  int number = number_of(s->lib, name);
  yk_lib_facts *l = s->out;
  if (number == 0 || l->n == YK__MAX_FILES || realpath(path, real) == NULL || foreign(real)) return;
  for (int i = 0; i < l->n; i++)
    if (l->file[i].number == number && strcmp(l->file[i].real, real) == 0) return;
  l->file[l->n++] = (yk_lib_file){ .path = yk__say(s->r, "%s", path), .real = yk__say(s->r, "%s", real), .via = s->via,
                                   .number = number, .on_path = s->on_path };
}

static void from_cache(const char *name, const char *path, void *arg) {
  add(arg, name, path);
}

static bool from_dir(const char *dir, void *arg) {
  search *s = arg;
  char path[PATH_MAX + 300];
  DIR *d = opendir(dir);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    if (number_of(s->lib, e->d_name) == 0) continue;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    add(s, e->d_name, path);
  }
  if (d != NULL) closedir(d);
  return false;
}

void yk__search(const yk_doctor_env *env, yk_doctor_report *r, const yk_lib *lib, yk_lib_facts *out) {
  search s = { r, lib, "LD_LIBRARY_PATH", true, out };
  *out = (yk_lib_facts){ .lib = lib };
  yk__each_dir(env->ld_library_path, from_dir, &s);
  s.via = env->ld_cache;
  yk__ldcache_each(env->ld_cache, lib->prefix, from_cache, &s);
  s.via = "the loader's default folders";
  yk__each_dir(env->default_dirs, from_dir, &s);
  s.via = "a folder where the loader does not look";
  s.on_path = false;
  yk__each_dir(env->other_dirs, from_dir, &s);
}

const char *yk__search_text(const yk_doctor_env *env, yk_doctor_report *r) {
  const char *set = env->ld_library_path;
  return yk__say(r, "%s%s; %s%s%s%s%s", set != NULL && *set != '\0' ? "LD_LIBRARY_PATH=" : "LD_LIBRARY_PATH (not set)",
                 set != NULL ? set : "", env->ld_cache, *env->default_dirs != '\0' ? "; " : "", env->default_dirs,
                 *env->other_dirs != '\0' ? "; beside the loader's path " : "", env->other_dirs);
}
