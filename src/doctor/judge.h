/*
 * judge.h - from facts to verdicts.
 *
 * Each judge looks at one thing and adds one verdict, two at most, in the order below: later ones build on what earlier ones
 * accepted. None of them touches the system, and none fails.
 */
#ifndef YK_DOCTOR_JUDGE_H
#define YK_DOCTOR_JUDGE_H

#include "doctor/facts.h"

/* What has been accepted so far; NULL: nothing usable. */
typedef struct yk_accepted { const yk_lib_file *cuda, *cudart; } yk_accepted;

void yk__judge_card(const yk_facts *f, yk_doctor_report *r, yk_accepted *a);
void yk__judge_driver(const yk_facts *f, yk_doctor_report *r, yk_accepted *a);
void yk__judge_nodes(const yk_facts *f, yk_doctor_report *r);
void yk__judge_runtime(const yk_facts *f, yk_doctor_report *r, yk_accepted *a);
void yk__judge_cublas(const yk_facts *f, yk_doctor_report *r, const yk_accepted *a);
void yk__judge_cudnn(const yk_facts *f, yk_doctor_report *r, const yk_accepted *a);
void yk__judge_nccl(const yk_facts *f, yk_doctor_report *r);
void yk__judge_mpi(const yk_facts *f, yk_doctor_report *r);
void yk__judge_shm(const yk_facts *f, yk_doctor_report *r);
void yk__judge_toolkit(const yk_facts *f, yk_doctor_report *r);

/* ---- shared by the judges: report.c, presence.c, needs.c ---------------------------------------------------------- */

/* Add a verdict. Strings are borrowed for the life of the report. */
void yk__verdict(yk_doctor_report *r, yk_verdict v);
/* What is missing or wrong for a GPU: bad where one is expected, else only worth knowing. */
yk_doctor_state yk__missing(const yk_facts *f);

typedef struct yk_presence {
  const char *title;               /* "CUDA runtime" */
  int want[3];                     /* numbers that will do, best first; 0 ends */
  const char *needed, *install;    /* for the verdict's needed and next */
  yk_doctor_state missing;
} yk_presence;
/* The file that the loader takes, if it loads, is complete and answers; else NULL with the reason as a verdict. */
const yk_lib_file *yk__present(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_presence *p);
/* The first file of that number on the loader's path, or NULL. */
const yk_lib_file *yk__winner(const yk_lib_facts *l, int number);
/* "13.0", "9.1.0", or the library's own words. */
const char *yk__version_text(yk_doctor_report *r, const yk_lib_file *file);
/* "libcudart.so.13 or libcudart.so.12". */
const char *yk__names_text(yk_doctor_report *r, const yk_lib *lib, const int *want);
/* A warning if files of the accepted name but of other versions lie behind it on the path. */
void yk__judge_several(const yk_facts *f, yk_doctor_report *r, const yk_lib_facts *l, const yk_lib_file *winner,
                       const char *title);

/* What each CUDA major needs: NULL for one that nobody knows. */
typedef struct yk_cuda_need {
  int cuda;                        /* 12 */
  const char *driver;              /* first release of the driver for it */
  int capability;                  /* 10 * major + minor of the oldest card */
  const char *release;             /* "12-9", as packages are named */
} yk_cuda_need;
const yk_cuda_need *yk__cuda_need(int major);
/* The command that installs a package, which is called so under apt and under dnf and zypper. */
const char *yk__install(const yk_facts *f, yk_doctor_report *r, const char *deb, const char *rpm);
/* The same for what comes from NVIDIA's package repository, which the user may have to add first. */
const char *yk__install_nvidia(const yk_facts *f, yk_doctor_report *r, const char *deb, const char *rpm);
const char *yk__install_driver(const yk_facts *f, yk_doctor_report *r);

#endif
