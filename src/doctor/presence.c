/*
 * presence.c - is a library there, on the loader's path, of a version that will do, whole, and alive?
 *
 * The same five questions for every library, with one verdict at the first "no". Which file counts is the loader's choice,
 * the first of its name, even if a better one lies behind it.
 */
#include <signal.h>
#include <string.h>
#include "doctor/judge.h"

const yk_lib_file *yk__winner(const yk_lib_facts *l, int number) {
  for (int i = 0; i < l->n; i++)
    if (l->file[i].on_path && l->file[i].number == number) return &l->file[i];
  return NULL;
}

const char *yk__version_text(yk_doctor_report *r, const yk_lib_file *file) {
  const yk_probe *p = file->probe;
  if (p == NULL || (p->major == 0 && p->words[0] == '\0')) return yk__say(r, "of unknown version");
  if (p->words[0] != '\0') return p->words;
  return p->patch > 0 ? yk__say(r, "%d.%d.%d", p->major, p->minor, p->patch) : yk__say(r, "%d.%d", p->major, p->minor);
}

const char *yk__names_text(yk_doctor_report *r, const yk_lib *lib, const int *want) {
  const char *text = yk__say(r, "%s.%d", lib->prefix, want[0]);
  for (int i = 1; i < 3 && want[i] != 0; i++) text = yk__say(r, "%s or %s.%d", text, lib->prefix, want[i]);
  return text;
}

static bool among(const int *want, int number) {
  for (int i = 0; i < 3 && want[i] != 0; i++)
    if (want[i] == number) return true;
  return false;
}

/* "/a/libx.so.11 (LD_LIBRARY_PATH), /b/libx.so.10 (...)". */
static const char *list(yk_doctor_report *r, const yk_lib_facts *l) {
  const char *text = "";
  for (int i = 0; i < l->n; i++)
    text = yk__say(r, "%s%s%s (%s)", text, i > 0 ? ", " : "", l->file[i].path, l->file[i].via);
  return l->n > 0 ? text : "nothing";
}

static const char *folder(yk_doctor_report *r, const char *path) {
  const char *slash = strrchr(path, '/');
  return yk__say(r, "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
}

/* ---- a file that does not do -------------------------------------------------------------------------------------- */

/* How the child ended, if it did not return. */
static const char *end_text(yk_doctor_report *r, const yk_lib_file *file, int timeout_ms) {
  const yk_child *c = &file->child;
  const char *said = c->said[0] != '\0' ? yk__say(r, "; it said: %s", c->said) : "";
  const char *in = file->probe->stage;
  switch (c->end) {
    case YK__CHILD_SIGNALLED: return yk__say(r, "%s crashes in %s (signal %d, %s)%s", file->path, in, c->number,
                                             strsignal(c->number), said);
    case YK__CHILD_EXITED: return yk__say(r, "%s ends the process in %s (status %d)%s", file->path, in, c->number, said);
    case YK__CHILD_LATE: return yk__say(r, "%s does not come back from %s within %g s%s", file->path, in, timeout_ms / 1000.0,
                                        said);
    case YK__CHILD_STUCK: return yk__say(r, "%s hangs inside the kernel in %s and cannot even be killed%s", file->path, in, said);
    case YK__CHILD_RETURNED: break;
  }
  return NULL;
}

/* The name of the library that dlopen() missed, if it was not the file itself. */
static const char *dependency(yk_doctor_report *r, const yk_lib_file *file) {
  const char *error = file->probe->error, *end = strstr(error, ": cannot open shared object file");
  if (end == NULL || strncmp(error, file->path, (size_t)(end - error)) == 0) return NULL;
  return yk__say(r, "%.*s", (int)(end - error), error);
}

static bool sound(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_lib_file *file, const yk_presence *p) {
  const yk_probe *probe = file->probe;
  yk_verdict v = { p->missing == YK__NOTE ? YK__WARN : p->missing, l->lib->check, NULL, yk__names_text(r, l->lib, p->want),
                   f->where, NULL, p->needed, p->install };
  if (!file->asked) {
    v.says = yk__say(r, "the %s could not be asked: no process for it", p->title);
    v.found = file->path;
    v.next = "yoke doctor";
  } else if ((v.found = end_text(r, file, f->env->timeout_ms)) != NULL) {
    bool hangs = file->child.end == YK__CHILD_LATE || file->child.end == YK__CHILD_STUCK;
    v.says = yk__say(r, "the %s %s", p->title, hangs ? "hangs" : "crashes");
  } else if (!probe->loaded) {
    const char *missing = dependency(r, file);
    v.says = missing != NULL ? yk__say(r, "the %s lacks %s, which it is linked to", p->title, missing)
        : yk__say(r, "the %s is there but does not load", p->title);
    v.found = yk__say(r, "%s (%s): %s", file->path, file->via, probe->error);
    if (missing != NULL) {
      v.needed = yk__say(r, "%s where the loader looks", missing);
      v.next = yk__say(r, "ldd %s | grep 'not found'", file->path);
    }
  } else if (probe->missing[0] != '\0') {
    v.says = yk__say(r, "the %s lacks the function %s", p->title, probe->missing);
    v.found = yk__say(r, "%s (%s) without %s", file->path, file->via, probe->missing);
    v.needed = yk__say(r, "%s that has %s", v.looked_for, probe->missing);
  } else {
    return true;
  }
  yk__verdict(r, v);
  return false;
}

/* ---- no file that would do ---------------------------------------------------------------------------------------- */

static void absent(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_presence *p) {
  yk_verdict v = { p->missing, l->lib->check, NULL, yk__names_text(r, l->lib, p->want), f->where, list(r, l), p->needed,
                   p->install };
  const yk_lib_file *beside = NULL;
  for (int i = 0; i < l->n && beside == NULL; i++)
    if (among(p->want, l->file[i].number)) beside = &l->file[i];
  if (beside != NULL) {
    v.says = yk__say(r, "the %s is there, but not where the loader looks", p->title);
    v.needed = yk__say(r, "%s on the loader's path", v.looked_for);
    v.next = yk__say(r, "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", folder(r, beside->path));
  } else if (l->n > 0) {
    v.says = yk__say(r, "the %s has the wrong major version: %s.%d", p->title, l->lib->prefix, l->file[0].number);
  } else {
    v.says = yk__say(r, "there is no %s (%s is nowhere)", p->title, v.looked_for);
  }
  yk__verdict(r, v);
}

const yk_lib_file *yk__present(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_presence *p) {
  for (int i = 0; i < 3 && p->want[i] != 0; i++) {
    const yk_lib_file *file = yk__winner(l, p->want[i]);
    if (file != NULL) return sound(f, r, l, file, p) ? file : NULL;
  }
  absent(f, r, l, p);
  return NULL;
}

/* ---- several ------------------------------------------------------------------------------------------------------ */

void yk__judge_several(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_lib_file *winner,
                       const char *title) {
  const char *wins = yk__version_text(r, winner), *found = yk__say(r, "%s in %s (%s) wins", wins, winner->path, winner->via);
  const yk_lib_file *other = NULL;
  for (int i = 0; i < l->n; i++) {
    const yk_lib_file *file = &l->file[i];
    if (file == winner || !file->on_path || file->number != winner->number) continue;
    const char *version = yk__version_text(r, file);
    if (strcmp(version, wins) == 0) continue;
    found = yk__say(r, "%s; %s in %s (%s) loses", found, version, file->path, file->via);
    if (other == NULL) other = file;
  }
  if (other == NULL) return;
  yk__verdict(r, (yk_verdict){ YK__WARN, l->lib->check,
    yk__say(r, "several versions of the %s are on the path; %s in %s wins", title, wins, folder(r, winner->path)),
    yk__say(r, "other files named %s.%d", l->lib->prefix, winner->number), f->where, found,
    "one version, or the right one first",
    yk__say(r, "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}   # to take the other one",
            folder(r, other->path)) });
}
