/*
 * rig.h - one driver under test: a device, a stream, and kernels made of a test's own functions.
 *
 * Every driver runs the op "dequeue" by calling back into the host, so a source whose `next` is a function of the
 * test is a kernel that can do anything: count, block, fail. The null driver never calls it and moves no bytes:
 * `real` tells the tests what they may compare.
 */
#ifndef TESTS_DEVICE_RIG_H
#define TESTS_DEVICE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <yoke/op.h>
#include <yoke/op_attrs.h>
#include "device/device.h"

typedef struct rig_variant { const char *driver; uint32_t flags; int real, threaded; } rig_variant;
typedef struct rig {
  const rig_variant *v;
  const yk_driver *d;
  yk_dev *dev;
  yk_stream *s;
} rig;

typedef struct rig_call {                      /* a kernel that calls `source.next(source.self, 1, ...)` */
  yk_source source;
  yk_dequeue_attrs attrs;
  yk_kernel *kernel;
  yk_mem out;                                  /* one i64 */
} rig_call;

void rig_open(rig *r, const rig_variant *v);
void rig_close(rig *r);
yk_dev *rig_device(const rig *r);              /* one more device of the driver, a team of one */
void rig_call_open(const rig *r, yk_dev *dev, yk_code (*fn)(void *self, int64_t rows, void *const *out), void *self, rig_call *c);
void rig_call_close(const rig *r, yk_dev *dev, rig_call *c);
yk_code rig_launch(const rig *r, yk_stream *s, rig_call *c);
yk_mem rig_slice(yk_mem m, size_t offset, size_t bytes);

/* An expected code; prints both and the message. */
#define OK(call) rig_expect((call), YK_OK, #call, __FILE__, __LINE__)
#define FAILS(code, call) rig_expect((call), YK_##code, #call, __FILE__, __LINE__)
void rig_expect(yk_code got, yk_code want, const char *text, const char *file, int line);
/* The thread's message contains `part`; prints both. */
#define SAYS(part) rig_says((part), __FILE__, __LINE__)
void rig_says(const char *part, const char *file, int line);

#endif
