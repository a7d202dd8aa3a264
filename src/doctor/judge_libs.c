/*
 * judge_libs.c - the CUDA runtime, cuBLAS, cuDNN and NCCL, and whether they fit each other.
 *
 * The runtime's major version leads: cuBLAS must have the same, and cuDNN must be built for it. NCCL is needed only where
 * several cards train together.
 */
#include "doctor/judge.h"

static yk_verdict good(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_lib_file *file,
                       const char *title) {
  return (yk_verdict){ YK__GOOD, l->lib->check, yk__say(r, "%s %s", title, yk__version_text(r, file)),
                       yk__say(r, "%s.%d", l->lib->prefix, file->number), f->where,
                       yk__say(r, "%s (%s), version %s", file->path, file->via, yk__version_text(r, file)), "", "nothing to do" };
}

/* The library answers, but with an error: told in `v`. */
static bool refuses(yk_doctor_report *r, const yk_lib_file *file, yk_verdict *v, const yk_presence *p) {
  if (file->probe->code == 0) return false;
  v->state = p->missing == YK__NOTE ? YK__WARN : p->missing;
  v->says = yk__say(r, "the %s fails with error %d in %s", p->title, file->probe->code, file->probe->stage);
  v->needed = p->needed;
  v->next = p->install;
  return true;
}

void yk__judge_runtime(const yk_facts *f, yk_doctor_report *r, yk_accepted *a) {
  const yk_lib_facts *l = &f->lib[YK__LIB_CUDART];
  int major = a->cudart != NULL ? a->cudart->number : a->cuda != NULL && a->cuda->probe->major == 12 ? 12 : l->lib->want[0];
  const yk_cuda_need *n = yk__cuda_need(major);
  yk_presence p = { "CUDA runtime", { l->lib->want[0], l->lib->want[1] }, "the CUDA runtime, major version 13 or 12", NULL,
                    yk__missing(f) };
  p.install = yk__install_nvidia(f, r, yk__say(r, "cuda-cudart-%s", n->release), yk__say(r, "cuda-cudart-%s", n->release));
  if (a->cudart != NULL) p.want[0] = major, p.want[1] = 0;
  a->cudart = yk__present(f, r, l, &p);
  if (a->cudart == NULL) return;
  yk_verdict v = good(f, r, l, a->cudart, "CUDA runtime");
  v.needed = yk__say(r, "major version %d", major);
  if (refuses(r, a->cudart, &v, &p)) a->cudart = NULL;
  yk__verdict(r, v);
  if (a->cudart != NULL) yk__judge_several(f, r, l, a->cudart, "CUDA runtime");
}

/* A library that only has to be there, and to fit. */
static void judge_presence(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_presence *p, const char *name) {
  const yk_lib_file *file = yk__present(f, r, l, p);
  if (file == NULL) return;
  yk_verdict v = good(f, r, l, file, name);
  v.needed = p->needed;
  bool bad = refuses(r, file, &v, p);
  yk__verdict(r, v);
  if (!bad) yk__judge_several(f, r, l, file, name);
}

void yk__judge_cublas(const yk_facts *f, yk_doctor_report *r, const yk_accepted *a) {
  const yk_lib_facts *l = &f->lib[YK__LIB_CUBLAS];
  int major = a->cudart != NULL ? a->cudart->number : 0;
  const yk_cuda_need *n = yk__cuda_need(major ? major : l->lib->want[0]);
  yk_presence p = { "cuBLAS", { l->lib->want[0], l->lib->want[1] }, "cuBLAS, major version 13 or 12", NULL, yk__missing(f) };
  if (major != 0) {
    p.want[0] = major, p.want[1] = 0;
    p.needed = yk__say(r, "cuBLAS, major version %d like the CUDA runtime", major);
  }
  p.install = yk__install_nvidia(f, r, yk__say(r, "libcublas-%s", n->release), yk__say(r, "libcublas-%s", n->release));
  judge_presence(f, r, l, &p, "cuBLAS");
}

void yk__judge_cudnn(const yk_facts *f, yk_doctor_report *r, const yk_accepted *a) {
  const yk_lib_facts *l = &f->lib[YK__LIB_CUDNN];
  int cuda = a->cudart != NULL ? a->cudart->number : f->lib[YK__LIB_CUDART].lib->want[0];
  const char *package = yk__say(r, "libcudnn9-cuda-%d", cuda);
  yk_presence p = { "cuDNN", { 9 }, yk__say(r, "cuDNN 9 for CUDA %d", cuda), yk__install_nvidia(f, r, package, package),
                    yk__missing(f) };
  const yk_lib_file *file = yk__present(f, r, l, &p);
  if (file == NULL) return;
  yk_verdict v = good(f, r, l, file, "cuDNN");
  int built = file->probe->built_for;
  v.needed = p.needed;
  if (built != 0) v.found = yk__say(r, "%s, built for CUDA %d.%d", v.found, built / 1000, built % 1000 / 10);
  if (a->cudart != NULL && built != 0 && built / 1000 != cuda) {
    v.state = p.missing;
    v.says = yk__say(r, "cuDNN %s was built for CUDA %d, the runtime is CUDA %s", yk__version_text(r, file), built / 1000,
                     yk__version_text(r, a->cudart));
    v.next = p.install;
  }
  yk__verdict(r, v);
  yk__judge_several(f, r, l, file, "cuDNN");
}

void yk__judge_nccl(const yk_facts *f, yk_doctor_report *r) {
  const yk_lib_facts *l = &f->lib[YK__LIB_NCCL];
  const yk_lib_file *driver = yk__winner(&f->lib[YK__LIB_CUDA], 1);
  bool several = f->machine.ncards > 1 || (driver != NULL && driver->asked && driver->probe->ncards > 1);
  yk_presence p = { "NCCL", { 2 }, "NCCL 2, for training on several GPUs at once",
                    yk__install_nvidia(f, r, "libnccl2", "libnccl"), several ? YK__WARN : YK__NOTE };
  judge_presence(f, r, l, &p, "NCCL");
}
