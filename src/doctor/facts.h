/*
 * facts.h - what the doctor has found out, before anybody judges it.
 *
 * Gathering (search, probe, machine) touches the system and judges nothing; judging (the judge_*.c) reads facts and touches
 * nothing. So every verdict can be tested with files that a test made.
 */
#ifndef YK_DOCTOR_FACTS_H
#define YK_DOCTOR_FACTS_H

#include "base/child.h"
#include "doctor/doctor.h"

enum { YK__MAX_FILES = 12, YK__MAX_CARDS = 16, YK__MAX_NODES = 40 };

/* ---- libraries: libs.c, search.c, probe.c ------------------------------------------------------------------------- */

typedef enum yk_lib_id {
  YK__LIB_CUDA, YK__LIB_CUDART, YK__LIB_CUBLAS, YK__LIB_CUDNN, YK__LIB_NCCL, YK__LIB_MPI, YK__NLIBS
} yk_lib_id;

/* What a library told in the child; lies in memory shared with it, so it is what was known when the child ended. */
typedef struct yk_probe {
  bool loaded;
  int code;                        /* what its own start-up call returned; 0 = good */
  int major, minor, patch;
  int built_for;                   /* CUDA version it was built for, 1000 * major + 10 * minor; 0 = does not tell */
  int ncards;
  char stage[48];                  /* what was under way, last */
  char error[512];                 /* of dlopen() */
  char missing[64];                /* first function that it lacks */
  char words[128];                 /* version in the library's own words; "" = none */
  struct { char name[96], bus[32]; int major, minor; uint64_t bytes; } card[YK__MAX_CARDS];
} yk_probe;

typedef struct yk_lib {
  const char *check;               /* name of the verdict */
  const char *prefix;              /* "libcudart.so" */
  int want[3];                     /* numbers behind it that will do, best first; 0 ends */
  const char *symbols;             /* functions that are needed, between blanks */
  void (*ask)(void *handle, yk_probe *out);
} yk_lib;

typedef struct yk_lib_file {
  const char *path, *real;         /* as the loader finds it; without links */
  const char *via;                 /* "LD_LIBRARY_PATH", "/etc/ld.so.cache", ... */
  int number;                      /* behind the prefix: 13 of libcudart.so.13 */
  bool on_path;                    /* the loader looks there */
  bool asked;                      /* child and probe are filled in */
  yk_child child;
  const yk_probe *probe;
} yk_lib_file;

typedef struct yk_lib_facts { const yk_lib *lib; int n; yk_lib_file file[YK__MAX_FILES]; } yk_lib_facts;

/* ---- the machine: machine.c --------------------------------------------------------------------------------------- */

typedef struct yk_dev_node { const char *path; bool there, usable; unsigned mode; const char *owner, *group; } yk_dev_node;

typedef struct yk_machine_facts {
  int ncards;                      /* NVIDIA display controllers on the PCI bus */
  const char *card, *card_driver;  /* the first one's address and kernel driver; "" */
  const char *module;              /* version of the NVIDIA kernel module; "" = not loaded */
  int nnodes;
  yk_dev_node node[YK__MAX_NODES];
  const char *toolkit;             /* folder of the CUDA toolkit; "" */
  int toolkit_version;             /* 13000 */
  const char *mpi_header;          /* path; "" */
  const char *stub_dir;            /* folder of LD_LIBRARY_PATH that holds a stub of the driver; "" */
  bool shm_there;
  uint64_t shm_total, shm_free;
  const char *installer;           /* "apt", "dnf", "zypper", or "" */
  bool ubuntu;
} yk_machine_facts;

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

typedef struct yk_facts {
  const yk_doctor_env *env;
  yk_lib_facts lib[YK__NLIBS];
  yk_machine_facts machine;
  const char *where;               /* the folders that were searched, for messages */
  bool gpu_expected;               /* a card, a driver or a runtime is there: somebody wants a GPU */
} yk_facts;

extern const yk_lib yk__libs[YK__NLIBS];

/* Text in the report's memory; "" (and r->failed) without memory. */
const char *yk__say(yk_doctor_report *r, const char *fmt, ...) YK_PRINTF(2, 3);
/* The files of one library, in the loader's order; those where it does not look come last. */
void yk__search(const yk_doctor_env *env, yk_doctor_report *r, const yk_lib *lib, yk_lib_facts *out);
const char *yk__search_text(const yk_doctor_env *env, yk_doctor_report *r);
/* Calls fn for each item between colons, until it returns true; that is returned. */
bool yk__each_dir(const char *list, bool (*fn)(const char *dir, void *arg), void *arg);
/* Start a child for every file that matters; wait for all of them. */
void yk__probe_start(const yk_doctor_env *env, yk_lib_facts *l);
void yk__probe_wait(yk_lib_facts *l);
void yk__probe_free(yk_lib_facts *l);
void yk__machine(const yk_doctor_env *env, yk_doctor_report *r, yk_machine_facts *out);

#endif
