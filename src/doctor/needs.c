/*
 * needs.c - which driver and which card each CUDA version needs, and the command that installs a package here.
 *
 * The numbers are NVIDIA's: the first Linux driver of each major version (any later one runs every minor version of it), and
 * the oldest compute capability that its libraries are built for.
 */
#include <string.h>
#include "doctor/judge.h"

static const yk_cuda_need needs[] = {
  { 13, "580.65.06", 75, "13-0" },
  { 12, "525.60.13", 50, "12-9" },
  { 11, "450.80.02", 35, "11-8" },
  { 10, "410.48",    30, "10-2" },
};

const yk_cuda_need *yk__cuda_need(int major) {
  for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
    if (needs[i].cuda == major) return &needs[i];
  return NULL;
}

const char *yk__install(const yk_facts *f, yk_doctor_report *r, const char *deb, const char *rpm) {
  const char *with = f->machine.installer;
  if (with[0] == '\0') return yk__say(r, "install the package %s", deb);
  return yk__say(r, "sudo %s install %s", with, strcmp(with, "apt") == 0 ? deb : rpm);
}

const char *yk__install_nvidia(const yk_facts *f, yk_doctor_report *r, const char *deb, const char *rpm) {
  return yk__say(r, "%s   # from NVIDIA's repository: https://developer.nvidia.com/cuda-downloads", yk__install(f, r, deb, rpm));
}

const char *yk__install_driver(const yk_facts *f, yk_doctor_report *r) {
  return f->machine.ubuntu ? "sudo ubuntu-drivers install" : yk__install_nvidia(f, r, "cuda-drivers", "cuda-drivers");
}
