/*
 * machine.h - the description of a machine: its host, its devices, and what is known of the links between them.
 *
 * `yoke devices --save` writes it as JSON (docs/machine-format.md), and a session can be opened on it elsewhere, to see what
 * a job would take there. A file may come from anywhere or be written by hand, so whatever is wrong with it is one error with
 * its line.
 */
#ifndef YK_DEVICE_MACHINE_H
#define YK_DEVICE_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>
#include "tensor/device_spec.h"

enum { YK__MACHINE_VERSION = 1 };

typedef struct yk_machine_device {
  yk_device_spec spec;               /* full, of this machine */
  char name[64], type[16];           /* as in the file */
  char model[64], driver[16], bus[32], uuid[48], capability[8], fast_types[12];
  int is_virtual;
  int32_t physical;                  /* number of a GPU, -1 = not told */
  uint64_t bytes_total, bytes_limit;
  uint64_t first_core, ncores;       /* 0 cores: no host device */
  uint64_t part, parts;              /* of a logical device; 0 parts = a whole one */
  double gflops, gbytes_per_s;       /* measured; 0 = not told */
} yk_machine_device;

typedef struct yk_machine_link {
  uint16_t from, to;                 /* device numbers */
  char kind[16];
  double bytes_per_s;                /* 0 = not measured */
} yk_machine_link;

typedef struct yk_machine {
  char *source;                      /* where it was read from, for messages */
  char cpu[64];
  uint64_t cores, bytes;             /* of the host; 0 = not told */
  uint16_t n;                        uint32_t cap;
  yk_machine_device *device;
  uint32_t nlink, link_cap;
  yk_machine_link *link;
} yk_machine;

/* Read a description. *out: yk__machine_free(), untouched on failure. ENOTFOUND no such file; EIO; ECORRUPT with line, column and
 * what was expected there; EUNSUPPORTED another version of the format. */
yk_code yk__machine_read(const char *path, yk_machine **out) YK_CHECKED;
/* The same from memory; `source` stands for the path in messages. */
yk_code yk__machine_parse(const char *source, const char *text, size_t n, yk_machine **out) YK_CHECKED;
void    yk__machine_free(yk_machine *m);
/* The measured speed of the link from device `from` to `to`, bytes a second; 0 = not known. */
double  yk__machine_speed(const yk_machine *m, uint16_t from, uint16_t to);

#endif
