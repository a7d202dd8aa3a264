/*
 * A driver library for tests: VERSION is the CUDA version it runs, INIT what cuInit() returns, CARDS and CAPABILITY what is
 * plugged in. It lives in its own shared object, loaded by the doctor as the real one would be.
 */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#ifndef INIT
#define INIT 0
#endif
#ifndef CARDS
#define CARDS 1
#endif
#ifndef CAPABILITY
#define CAPABILITY 90
#endif
#ifndef SECOND_CAPABILITY
#define SECOND_CAPABILITY CAPABILITY
#endif

int cuInit(unsigned flags);
int cuDriverGetVersion(int *out);
int cuDeviceGetCount(int *out);
int cuDeviceGet(int *out, int i);
int cuDeviceGetName(char *out, int bytes, int device);
int cuDeviceGetAttribute(int *out, int which, int device);
int cuDeviceTotalMem_v2(size_t *out, int device);
int cuDeviceGetPCIBusId(char *out, int bytes, int device);

int cuInit(unsigned flags) {
#ifdef HANGS
  for (;;) pause();
#endif
  return flags == 0 ? INIT : 1;
}

int cuDriverGetVersion(int *out) {
  *out = VERSION;
  return 0;
}

#ifndef LACKS_COUNT
int cuDeviceGetCount(int *out) {
  *out = CARDS;
  return 0;
}
#endif

int cuDeviceGet(int *out, int i) {
  *out = i;
  return i < CARDS ? 0 : 101;
}

int cuDeviceGetName(char *out, int bytes, int device) {
  snprintf(out, (size_t)bytes, "Test Card %d", device);
  return 0;
}

int cuDeviceGetAttribute(int *out, int which, int device) {
  int capability = device == 0 ? CAPABILITY : SECOND_CAPABILITY;
  *out = which == 75 ? capability / 10 : capability % 10;
  return which == 75 || which == 76 ? 0 : 1;
}

int cuDeviceTotalMem_v2(size_t *out, int device) {
  (void)device;
  *out = (size_t)8 << 30;
  return 0;
}

int cuDeviceGetPCIBusId(char *out, int bytes, int device) {
  snprintf(out, (size_t)bytes, "0000:%02x:00.0", 0x3b + device);
  return 0;
}
