/*
 * judge_driver.c - the NVIDIA driver: there, no stub, of the kernel module's version, starting up, new enough for the runtime.
 *
 * The driver tells the newest CUDA version that it can run; a runtime of the same major version, or an older one, works.
 * What its start-up call returns is told with what mends it, since the bare number helps nobody.
 */
#include <string.h>
#include "doctor/judge.h"

enum { STUB = 34, NO_DEVICE = 100, BAD_DEVICE = 101 };

static yk_verdict verdict(const yk_facts *f, const char *needed, const char *next) {
  return (yk_verdict){ .state = YK__BAD, .check = "driver", .looked_for = "libcuda.so.1", .where = f->where, .needed = needed,
                       .next = next };
}

/* Release number of the library, which is the end of its real name: libcuda.so.535.54.03. */
static const char *release(const yk_lib_file *file) {
  const char *at = strstr(file->real, "libcuda.so.");
  at = at != NULL ? at + strlen("libcuda.so.") : "";
  return strchr(at, '.') != NULL ? at : "";
}

/* The newest runtime on the path that this driver can run; else the newest there is. */
static const yk_lib_file *runtime_for(const yk_facts *f, int driver_major) {
  const yk_lib_facts *l = &f->lib[YK__LIB_CUDART];
  const yk_lib_file *newest = NULL;
  for (int i = 0; i < 3 && l->lib->want[i] != 0; i++) {
    const yk_lib_file *file = yk__winner(l, l->lib->want[i]);
    if (file == NULL) continue;
    if (newest == NULL) newest = file;
    if (driver_major == 0 || file->number <= driver_major) return file;
  }
  return newest;
}

static const char *needed_driver(const yk_facts *f, yk_doctor_report *r) {
  const yk_lib_file *runtime = runtime_for(f, 0);
  const yk_cuda_need *n = yk__cuda_need(runtime != NULL ? runtime->number : f->lib[YK__LIB_CUDART].lib->want[0]);
  return n != NULL ? yk__say(r, "the NVIDIA driver, release %s or newer (for CUDA %d)", n->driver, n->cuda) : "the NVIDIA driver";
}

/* ---- stub --------------------------------------------------------------------------------------------------------- */

/* LD_LIBRARY_PATH without its folders of stubs. */
typedef struct rest { yk_doctor_report *r; const char *text; } rest;
static bool keep(const char *dir, void *arg) {
  rest *k = arg;
  size_t n = strlen(dir);
  bool stub = strstr(dir, "/stubs/") != NULL || (n >= 6 && strcmp(dir + n - 6, "/stubs") == 0);
  if (!stub) k->text = yk__say(k->r, "%s%s%s", k->text, k->text[0] != '\0' ? ":" : "", dir);
  return false;
}

static void stub(const yk_facts *f, yk_doctor_report *r, const yk_lib_file *file) {
  yk_verdict v = verdict(f, "the driver's own libcuda.so.1; the stub is for the linker only", NULL);
  rest k = { r, "" };
  yk__each_dir(f->env->ld_library_path, keep, &k);
  v.says = f->machine.stub_dir[0] != '\0' ? "LD_LIBRARY_PATH points at a stub of the driver" : "the driver library is a stub";
  v.found = file != NULL ? yk__say(r, "%s (%s), a stub", file->path, file->via)
      : yk__say(r, "a stub in %s", f->machine.stub_dir);
  v.next = f->machine.stub_dir[0] == '\0' ? yk__install_driver(f, r)
      : k.text[0] != '\0' ? yk__say(r, "export LD_LIBRARY_PATH=%s", k.text) : "unset LD_LIBRARY_PATH";
  if (file == NULL) v.state = YK__WARN;
  yk__verdict(r, v);
}

/* ---- start-up ----------------------------------------------------------------------------------------------------- */

/* What the start-up call's number means. */
static const struct { int code; const char *says, *needed, *next; } codes[] = {
  { 2,   "the driver has no memory to start with", "free memory on the card", "nvidia-smi" },
  { 3,   "the driver does not start", "a driver that starts", "nvidia-smi" },
  { 304, "the driver may not use the system", "access to the device files /dev/nvidia*", "ls -l /dev/nvidia*" },
  { 802, "the driver is not ready: the cards' links are not set up", "a running fabric manager",
    "sudo systemctl start nvidia-fabricmanager" },
  { 803, "the driver library does not fit the kernel module", "the same release of both", "sudo reboot" },
  { 804, "a compatibility library stands before the driver's own", "the driver's own libcuda.so.1 first on the path",
    "unset LD_LIBRARY_PATH" },
  { 999, "the driver fails for a reason unknown to it", "loaded kernel modules nvidia and nvidia-uvm",
    "sudo nvidia-modprobe -u -c 0" },
};

static void no_device(const yk_facts *f, yk_doctor_report *r, const char *at) {
  yk_verdict v = verdict(f, "a card that the driver can use", NULL);
  const char *visible = f->env->visible;
  v.found = at;
  if (visible != NULL) {
    v.says = yk__say(r, "CUDA_VISIBLE_DEVICES=%s hides every card", visible);
    v.needed = "CUDA_VISIBLE_DEVICES not set, or naming a card that there is";
    v.next = "unset CUDA_VISIBLE_DEVICES";
  } else {
    v.says = "the driver is there but sees no card";
    v.next = f->machine.ncards > 0 ? "ls -l /dev/nvidia*" : "lspci | grep -i nvidia";
  }
  yk__verdict(r, v);
}

static void failed(const yk_facts *f, yk_doctor_report *r, const yk_lib_file *file, const char *at) {
  int code = file->probe->code;
  yk_verdict v = verdict(f, "a driver that starts", "nvidia-smi");
  v.found = at;
  v.says = yk__say(r, "the driver fails with error %d", code);
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    if (codes[i].code != code) continue;
    v.says = yk__say(r, "%s (error %d)", codes[i].says, code);
    v.needed = codes[i].needed;
    v.next = codes[i].next;
  }
  yk__verdict(r, v);
}

/* Does the driver run the runtime, or any that would do if there is none? Adds the verdict, good or bad. */
static void fit(const yk_facts *f, yk_doctor_report *r, const yk_lib_file *file, yk_accepted *a, const char *at) {
  enum { OLDEST = 12 };                            /* CUDA version that yoke can use */
  const yk_lib_file *runtime = runtime_for(f, file->probe->major);
  int major = file->probe->major, needs = runtime != NULL ? runtime->number : OLDEST;
  yk_verdict v = verdict(f, needed_driver(f, r), "nothing to do");
  v.found = at;
  if (major < needs) {
    const char *other = major < OLDEST ? "" : yk__say(r, ", or a CUDA %d runtime", major);
    v.says = yk__say(r, "the driver is too old: it runs CUDA up to %s, %s %s", yk__version_text(r, file),
                     runtime != NULL ? "the runtime is" : "needed is", runtime != NULL ? yk__version_text(r, runtime) : "12");
    v.needed = yk__say(r, "driver release %s or newer for CUDA %d%s", yk__cuda_need(needs)->driver, needs, other);
    v.next = yk__install_driver(f, r);
  } else {
    v.state = YK__GOOD;
    v.says = yk__say(r, "driver %s, runs CUDA up to %s", release(file), yk__version_text(r, file));
    a->cuda = file;
  }
  a->cudart = runtime;
  yk__verdict(r, v);
}

static const yk_lib_file *present(const yk_facts *f, yk_doctor_report *r) {
  const yk_machine_facts *m = &f->machine;
  yk_presence p = { "NVIDIA driver", { 1 }, needed_driver(f, r), yk__install_driver(f, r), yk__missing(f) };
  if (strcmp(m->card_driver, "nouveau") == 0)
    p.needed = yk__say(r, "%s in place of the kernel driver nouveau, which has the card now", p.needed);
  if (m->ncards == 0 && m->module[0] == '\0' && m->nnodes == 0) {
    p.needed = yk__say(r, "an NVIDIA card, of which there is no sign here, and %s; a container gets both with --gpus all",
                       p.needed);
    p.install = "lspci | grep -i nvidia   # is there a card? without one, go on on the CPU";
  } else if (m->module[0] != '\0') {
    p.needed = yk__say(r, "%s; its kernel module %s is loaded, so in a container: start it with --gpus all", p.needed, m->module);
  }
  return yk__present(f, r, &f->lib[YK__LIB_CUDA], &p);
}

void yk__judge_driver(const yk_facts *f, yk_doctor_report *r, yk_accepted *a) {
  const yk_lib_file *file = yk__winner(&f->lib[YK__LIB_CUDA], 1);
  const char *module = f->machine.module;
  a->cudart = runtime_for(f, 0);
  if (file != NULL && file->asked && file->probe->code == STUB) {
    stub(f, r, file);
    return;
  }
  if (f->machine.stub_dir[0] != '\0') stub(f, r, NULL);
  file = present(f, r);
  if (file == NULL) return;
  int code = file->probe->code;
  const char *at = yk__say(r, "%s (%s), for CUDA %s", file->path, file->via, yk__version_text(r, file));
  if (module[0] != '\0' && release(file)[0] != '\0' && strcmp(module, release(file)) != 0) {
    yk_verdict v = verdict(f, "the same release of both; after an update of the driver a reboot loads the new module",
                           "sudo reboot");
    v.says = yk__say(r, "driver library %s and kernel module %s are of different releases", release(file), module);
    v.found = at;
    yk__verdict(r, v);
  } else if (code == NO_DEVICE || code == BAD_DEVICE || (code == 0 && file->probe->ncards == 0)) {
    no_device(f, r, at);
  } else if (code != 0) {
    failed(f, r, file, at);
  } else {
    fit(f, r, file, a, at);
  }
  yk__judge_several(f, r, &f->lib[YK__LIB_CUDA], file, "driver library");
}
