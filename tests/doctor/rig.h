/*
 * rig.h - a machine made of files: folders for /dev, /proc, /sys and the rest, into which a test puts what it needs.
 *
 * A rig starts empty. rig_healthy() makes it a machine on which a GPU would work, from which a test then takes one thing
 * away. Every verdict of every examination must be complete, which rig_examine() checks.
 */
#ifndef YK_TEST_DOCTOR_RIG_H
#define YK_TEST_DOCTOR_RIG_H

#include "doctor/doctor.h"
#include "support/check.h"

/* Setup and teardown of a cmocka test: an empty rig. */
int rig_setup(void **state);
int rig_teardown(void **state);
extern yk_doctor_env rig_env;
extern yk_doctor_report rig_report;

/* Path inside the rig; eight buffers that take turns. */
const char *rig_path(const char *name);
/* A file with that text; missing folders are made. */
void rig_text(const char *name, const char *text);
/* A copy of a fake library; what stood there is replaced. */
void rig_lib(const char *name, const char *fake);
void rig_link(const char *name, const char *target);
void rig_remove(const char *name);
/* Driver 580.65.06 for CUDA 13.0 with one card, runtime 13.0, cuBLAS, cuDNN 9, NCCL, device files, apt. */
void rig_healthy(void);
/* An NVIDIA card on the PCI bus, which that kernel driver has; NULL: none. */
void rig_card(const char *address, const char *driver);

/* Examine; the report is rig_report. */
void rig_examine(void);
/* The only verdict of that check and state whose line contains `says`; fails with the whole report if there is none. */
const yk_verdict *rig_expect(const char *check, yk_doctor_state state, const char *says);
/* No verdict of that check but in that state. */
void rig_only(const char *check, yk_doctor_state state);
/* `text` contains `part`. */
#define CONTAINS(text, part) rig_contains((text), (part), __FILE__, __LINE__)
void rig_contains(const char *text, const char *part, const char *file, int line);

#endif
