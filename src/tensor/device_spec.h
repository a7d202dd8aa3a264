/*
 * device_spec.h - device strings: parse, merge, print.
 *
 * "/job:w/replica:0/task:1/device:GPU:0", the short "/gpu:0", partial ones and
 * wildcards ("/device:GPU:*"), any order. Canonical print leaves missing parts
 * out and prints a missing id as "*". Here, below graph and device, because both use it.
 */
#ifndef YK_TENSOR_DEVICE_SPEC_H
#define YK_TENSOR_DEVICE_SPEC_H

#include <stdint.h>
#include <yoke/status.h>

enum { YK__JOB_BYTES = 32, YK__TYPE_BYTES = 16, YK__DEVICE_TEXT = 128 };

typedef struct yk_device_spec {        /* all zero with -1 ids = empty: use YK__ANY_DEVICE */
  char    job[YK__JOB_BYTES];          /* "" = any */
  int32_t replica, task;               /* -1 = any */
  char    type[YK__TYPE_BYTES];        /* upper case: "CPU", "GPU"; "" = any */
  int32_t id;                          /* -1 = any */
} yk_device_spec;

#define YK__ANY_DEVICE ((yk_device_spec){ .replica = -1, .task = -1, .id = -1 })

/* EINVAL names the string (shortened if long), the part that is wrong and what was expected; *out untouched then. */
yk_code yk__device_parse(const char *text, yk_device_spec *out) YK_CHECKED;
/* Fields set in `inner` win; the others come from `outer`. */
yk_device_spec yk__device_merge(const yk_device_spec *inner, const yk_device_spec *outer);
/* Canonical text, "" for the empty spec; always fits YK__DEVICE_TEXT. Returns buf. */
char *yk__device_text(const yk_device_spec *d, char buf[YK__DEVICE_TEXT]);
/* Does the fully specified `device` satisfy `request`? */
int yk__device_matches(const yk_device_spec *request, const yk_device_spec *device);
int yk__device_empty(const yk_device_spec *d);

#endif
