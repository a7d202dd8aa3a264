/*
 * matmul.h - a small matmul on every device of a session.
 *
 * It runs in a child process, so a device that crashes or hangs loses its own result only.
 */
#ifndef YK_DOCTOR_MATMUL_H
#define YK_DOCTOR_MATMUL_H

#include "base/child.h"
#include "doctor/doctor.h"

/* Start them all. */
yk_code yk__matmul_start(const yk_session_options *options, int timeout_ms, yk_child *out) YK_CHECKED;
/* Wait, put the devices into the report and judge them; frees the child. */
void yk__matmul_finish(yk_child *c, int timeout_ms, yk_doctor_report *r);

#endif
