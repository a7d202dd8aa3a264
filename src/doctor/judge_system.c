/*
 * judge_system.c - cards, device files, toolkit, MPI, shared memory.
 *
 * A card counts as the driver sees it; where the driver sees none, the PCI bus tells whether there is one at all, which
 * decides what is worth doing next.
 */
#include <string.h>
#include "doctor/judge.h"

/* ---- cards -------------------------------------------------------------------------------------------------------- */

static const char *cards_text(yk_doctor_report *r, const yk_probe *p) {
  const char *text = "";
  for (int i = 0; i < p->ncards; i++)
    text = yk__say(r, "%s%s%s (%s, compute capability %d.%d, %.1f GiB)", text, i > 0 ? ", " : "", p->card[i].name, p->card[i].bus,
                   p->card[i].major, p->card[i].minor, (double)p->card[i].bytes / 1073741824.0);
  return text;
}

static void seen_cards(const yk_facts *f, yk_doctor_report *r, const yk_probe *p, int cuda) {
  const yk_cuda_need *n = yk__cuda_need(cuda), *older = yk__cuda_need(12);
  int old = 0, oldest = 1000;
  for (int i = 0; i < p->ncards; i++) {
    int capability = 10 * p->card[i].major + p->card[i].minor;
    if (capability < oldest) oldest = capability;
    old += capability < n->capability;
  }
  yk_verdict v = { YK__GOOD, "card", yk__say(r, "%d card%s: %s%s", p->ncards, p->ncards == 1 ? "" : "s", p->card[0].name,
                                             p->ncards > 1 ? ", ..." : ""),
                   "cards", "the driver", cards_text(r, p),
                   yk__say(r, "compute capability %d.%d or newer for CUDA %d", n->capability / 10, n->capability % 10, cuda),
                   "nothing to do" };
  if (old > 0) {
    v.state = old == p->ncards ? YK__BAD : YK__WARN;
    v.says = yk__say(r, "%s too old for CUDA %d: compute capability %d.%d", old == p->ncards ? "the card is" : "a card is", cuda,
                     oldest / 10, oldest % 10);
    const char *package = yk__say(r, "cuda-libraries-%s", older->release);
    v.next = cuda > 12 && oldest >= older->capability ? yk__install_nvidia(f, r, package, package)
        : "no command helps: use a newer card; training goes on on the CPU";
  }
  yk__verdict(r, v);
}

void yk__judge_card(const yk_facts *f, yk_doctor_report *r, yk_accepted *a) {
  const yk_machine_facts *m = &f->machine;
  if (a->cuda != NULL) {
    const yk_lib_facts *l = &f->lib[YK__LIB_CUDART];
    seen_cards(f, r, a->cuda->probe, a->cudart != NULL ? a->cudart->number : a->cuda->probe->major < 13 ? 12 : l->lib->want[0]);
    return;
  }
  yk_verdict v = { YK__NOTE, "card", "no NVIDIA card on the PCI bus", "display controllers of vendor 0x10de",
                   yk__say(r, "%s/bus/pci/devices", f->env->sys), "nothing", "a card, to train on a GPU",
                   "lspci | grep -i nvidia" };
  if (m->ncards > 0) {
    v.says = yk__say(r, "%d NVIDIA card%s on the PCI bus, which no working driver drives", m->ncards, m->ncards == 1 ? "" : "s");
    v.found = yk__say(r, "%s, kernel driver %s", m->card, m->card_driver[0] != '\0' ? m->card_driver : "none");
    v.needed = "a working driver";
    v.next = "the driver's verdict tells";
  }
  yk__verdict(r, v);
}

/* ---- device files ------------------------------------------------------------------------------------------------- */

static const char *mode_text(yk_doctor_report *r, const yk_dev_node *n) {
  return yk__say(r, "%s has mode %04o, owner %s, group %s", n->path, n->mode, n->owner, n->group);
}

void yk__judge_nodes(const yk_facts *f, yk_doctor_report *r) {
  const yk_machine_facts *m = &f->machine;
  const yk_dev_node *missing = NULL, *closed = NULL;
  yk_verdict v = { YK__GOOD, "device files", "the device files can be used", "nvidia0, nvidia1, ..., nvidiactl, nvidia-uvm",
                   f->env->dev, yk__say(r, "%d files", m->nnodes), "leave to read and write them", "nothing to do" };
  if (m->nnodes == 0) {
    v.state = YK__NOTE;
    v.says = "no device files: no NVIDIA kernel module is loaded";
    v.found = "nothing";
    v.needed = "the driver's kernel module, to train on a GPU";
    v.next = m->ncards > 0 ? "sudo modprobe nvidia" : "lspci | grep -i nvidia";
  }
  for (int i = 0; i < m->nnodes; i++) {
    if (!m->node[i].there && missing == NULL) missing = &m->node[i];
    if (m->node[i].there && !m->node[i].usable && closed == NULL) closed = &m->node[i];
  }
  if (closed != NULL) {
    bool by_group = (closed->mode & 0060u) == 0060u && strcmp(closed->group, "root") != 0;
    v.state = YK__BAD;
    v.says = yk__say(r, "no permission to use %s", closed->path);
    v.found = mode_text(r, closed);
    v.next = by_group ? yk__say(r, "sudo usermod -aG %s $USER   # then log in again", closed->group)
        : yk__say(r, "sudo chmod a+rw %s/nvidia*", f->env->dev);
  } else if (missing != NULL) {
    v.state = YK__BAD;
    v.says = yk__say(r, "the device file %s is missing", missing->path);
    v.found = m->module[0] != '\0' ? yk__say(r, "kernel module %s, but not the file", m->module) : "other device files only";
    v.needed = "the file; a container gets it with --gpus all";
    v.next = "sudo nvidia-modprobe -u -c 0";
  }
  yk__verdict(r, v);
}

/* ---- the rest ----------------------------------------------------------------------------------------------------- */

void yk__judge_toolkit(const yk_facts *f, yk_doctor_report *r) {
  const yk_machine_facts *m = &f->machine;
  yk_verdict v = { YK__NOTE, "toolkit", "no CUDA toolkit", "bin/nvcc", f->env->toolkit_dirs, "nothing",
                   "nothing: it is for those who write CUDA kernels", "nothing to do" };
  if (m->toolkit[0] != '\0') {
    v.state = YK__GOOD;
    v.says = m->toolkit_version != 0 ? yk__say(r, "CUDA toolkit %d.%d", m->toolkit_version / 1000, m->toolkit_version % 1000 / 10)
        : "CUDA toolkit of unknown version";
    v.found = m->toolkit;
  }
  yk__verdict(r, v);
}

void yk__judge_mpi(const yk_facts *f, yk_doctor_report *r) {
  const yk_lib_facts *l = &f->lib[YK__LIB_MPI];
  const char *header = f->machine.mpi_header;
  bool mpich = strstr(header, "mpich") != NULL;
  yk_presence p = { "MPI library", { 40, 12 }, "Open MPI or MPICH, for training on several machines",
                    mpich ? yk__install(f, r, "mpich", "mpich") : yk__install(f, r, "openmpi-bin", "openmpi"), YK__NOTE };
  if (header[0] != '\0') {
    p.missing = YK__WARN;
    p.title = "MPI library, though its header is there";
    p.needed = yk__say(r, "the library that belongs to %s", header);
  }
  if (yk__winner(l, 40) != NULL || yk__winner(l, 12) != NULL) p.title = "MPI library";
  const yk_lib_file *file = yk__present(f, r, l, &p);
  if (file == NULL) return;
  yk__verdict(r, (yk_verdict){ YK__GOOD, "mpi", yk__say(r, "MPI: %s", yk__version_text(r, file)),
                               yk__names_text(r, l->lib, p.want), f->where, yk__say(r, "%s (%s)", file->path, file->via),
                               "Open MPI or MPICH, for training on several machines", "nothing to do" });
  yk__judge_several(f, r, l, file, "MPI library");
}

void yk__judge_shm(const yk_facts *f, yk_doctor_report *r) {
  const yk_machine_facts *m = &f->machine;
  double mib = 1048576.0;
  yk_verdict v = { YK__GOOD, "shared memory", yk__say(r, "%.0f MiB of shared memory", (double)m->shm_total / mib),
                   "a file system for shared memory", f->env->shm,
                   yk__say(r, "%.0f MiB, %.0f MiB of them free", (double)m->shm_total / mib, (double)m->shm_free / mib),
                   yk__say(r, "%.0f MiB free, for several processes or cards on one machine", (double)f->env->shm_need / mib),
                   "nothing to do" };
  if (!m->shm_there) {
    v.state = YK__WARN;
    v.says = yk__say(r, "no shared memory: %s is missing", f->env->shm);
    v.found = "nothing";
    v.next = yk__say(r, "sudo mount -t tmpfs tmpfs %s", f->env->shm);
  } else if (m->shm_free < f->env->shm_need) {
    bool full = m->shm_total >= f->env->shm_need;
    v.state = YK__WARN;
    v.says = full ? yk__say(r, "%s is full", f->env->shm) : yk__say(r, "%s is too small", f->env->shm);
    v.next = full ? yk__say(r, "ls -lS %s", f->env->shm)
        : f->env->container ? "docker run --shm-size=1g ...   # start the container again with more"
        : yk__say(r, "sudo mount -o remount,size=1G %s", f->env->shm);
  }
  yk__verdict(r, v);
}
