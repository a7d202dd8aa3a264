/*
 * doctor.c - the examination: gather, then judge, then sum up.
 *
 * Everything that may take time or die runs in children, all at once, while this process only waits. The summary is the one
 * sentence that a user in a hurry reads.
 */
#include <string.h>
#include "doctor/judge.h"
#include "doctor/matmul.h"

/* Is there any sign that somebody wants to use a GPU here? */
static bool gpu_expected(const yk_facts *f) {
  const yk_machine_facts *m = &f->machine;
  return m->ncards > 0 || m->module[0] != '\0' || m->nnodes > 0 || m->toolkit[0] != '\0' || f->lib[YK__LIB_CUDA].n > 0 ||
         f->lib[YK__LIB_CUDART].n > 0;
}

static void gather(yk_facts *f, yk_doctor_report *r) {
  for (int i = 0; i < YK__NLIBS; i++) {
    yk__search(f->env, r, &yk__libs[i], &f->lib[i]);
    yk__probe_start(f->env, &f->lib[i]);
  }
  yk__machine(f->env, r, &f->machine);
  f->where = yk__search_text(f->env, r);
  f->gpu_expected = gpu_expected(f);
  for (int i = 0; i < YK__NLIBS; i++) yk__probe_wait(&f->lib[i]);
}

static void keep_cards(const yk_lib_file *driver, yk_doctor_report *r) {
  if (driver == NULL) return;
  const yk_probe *p = driver->probe;
  r->cards = yk__bump(&r->text, sizeof *r->cards * (size_t)(p->ncards + 1));
  if (r->cards == NULL) {
    r->failed = true;
    return;
  }
  for (int i = 0; i < p->ncards; i++) {
    const char *name = yk__say(r, "%s", p->card[i].name), *bus = yk__say(r, "%s", p->card[i].bus);
    r->cards[r->ncards++] = (yk_doctor_card){ name, bus, p->card[i].major, p->card[i].minor, p->card[i].bytes };
  }
}

static const yk_verdict *first_bad(const yk_doctor_report *r) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->at[i].state == YK__BAD && strcmp(r->at[i].check, "matmul") != 0) return &r->at[i];
  return NULL;
}

/* Is there code in this build that would use a real GPU? */
static void judge_own_driver(const yk_facts *f, yk_doctor_report *r) {
  const char *own = f->env->gpu_driver;
  yk_verdict v = { YK__GOOD, "yoke", "yoke has a driver for GPUs", "a driver for real GPUs", "this build of yoke", own,
                   "a driver, to train on a GPU", "nothing to do" };
  if (own == NULL) {
    v.state = r->stack_fits ? YK__BAD : YK__NOTE;
    v.says = "this build of yoke has no driver for real GPUs";
    v.found = "the CPU, and virtual GPUs";
    v.next = "yoke train mlp --virtual-gpus 2   # rehearses on emulated GPUs";
  }
  yk__verdict(r, v);
}

/* The verdict that says why no GPU is in use: a bad one, else the driver's. */
static const yk_verdict *reason(const yk_doctor_report *r) {
  const yk_verdict *v = first_bad(r);
  for (uint32_t i = 0; i < r->n && v == NULL; i++)
    if (strcmp(r->at[i].check, "driver") == 0 && r->at[i].state != YK__GOOD) v = &r->at[i];
  return v;
}

static void sum_up(const yk_facts *f, yk_doctor_report *r) {
  const yk_verdict *why = reason(r);
  const yk_machine_facts *m = &f->machine;
  const char *toolkit = "", *cpu = "the CPU was not tried", *gpu = "no GPU was tried";
  if (f->env->session != NULL) cpu = r->cpu_works ? "training works on the CPU" : "training does not work on the CPU";
  if (why != NULL && strcmp(why->check, "driver") == 0 && m->toolkit[0] != '\0') {
    int v = m->toolkit_version;
    toolkit = v != 0 ? yk__say(r, "; the CUDA toolkit %d.%d is there, in %s", v / 1000, v % 1000 / 10, m->toolkit)
        : yk__say(r, "; the CUDA toolkit is there, in %s", m->toolkit);
  }
  if (why != NULL) gpu = yk__say(r, "no GPU can be used: %s%s", why->says, toolkit);
  r->summary = r->gpu_works ? yk__say(r, "%s and on the GPU", cpu) : yk__say(r, "%s; %s", cpu, gpu);
}

static void judge(const yk_facts *f, yk_doctor_report *r) {
  yk_accepted a = { NULL, NULL };
  yk__judge_driver(f, r, &a);
  yk__judge_card(f, r, &a);
  yk__judge_nodes(f, r);
  yk__judge_runtime(f, r, &a);
  yk__judge_cublas(f, r, &a);
  yk__judge_cudnn(f, r, &a);
  keep_cards(a.cuda, r);
  r->stack_fits = r->ncards > 0 && first_bad(r) == NULL;
  judge_own_driver(f, r);
  yk__judge_nccl(f, r);
  yk__judge_mpi(f, r);
  yk__judge_toolkit(f, r);
  yk__judge_shm(f, r);
}

yk_code yk__doctor_run(const yk_doctor_env *env, yk_doctor_report *out) {
  yk_doctor_report r = { .summary = "" };
  yk_child matmul = { 0 };
  yk_code rc = YK_OK;
  yk_facts *f = yk__calloc(1, sizeof *f);
  if (f == NULL) return YK_ENOMEM;
  f->env = env;
  if (env->session != NULL) rc = yk__matmul_start(env->session, env->timeout_ms, &matmul);
  if (rc == YK_OK) {
    gather(f, &r);
    if (env->session != NULL) yk__matmul_finish(&matmul, env->timeout_ms, &r);
    judge(f, &r);
    sum_up(f, &r);
  }
  for (int i = 0; i < YK__NLIBS; i++) yk__probe_free(&f->lib[i]);
  yk__free(f);
  if (rc == YK_OK && r.failed) rc = YK_ENOMEM;
  if (rc != YK_OK) {
    yk__doctor_free(&r);
    return rc;
  }
  *out = r;
  return YK_OK;
}
