/*
 * device.h - the devices of a session, and their memory.
 *
 * Knows drivers only through <yoke/device.h>. A device is a driver's ordinal
 * opened under a name: the CPU driver is opened once for each CPU device and
 * again for each virtual GPU. Memory comes from one pool a device (pool.h), which
 * holds to the device's limit and keeps the counts; sessions of a process that open
 * the same device of the host under the same limit share it, as they share the device.
 */
#ifndef YK_DEVICE_DEVICE_H
#define YK_DEVICE_DEVICE_H

#include <stdatomic.h>
#include <yoke/device.h>
#include "tensor/device_spec.h"

extern const yk_host yk__host;                       /* what the core lends to drivers */

/* Built-in drivers: "cpu", "ref", "null". NULL with ENOTFOUND if unknown. Validated once (yk__driver_check). */
const yk_driver *yk__driver_find(const char *name);
/* Refuse a table that is half filled, of another major, or too short: names the first missing entry. */
yk_code yk__driver_check(const yk_driver *d) YK_CHECKED;

/* What a pool counts, in bytes unless the name says otherwise. Written by the pool alone, readable at any time. */
typedef struct yk_memory_counters {
  _Atomic uint64_t total;                            /* what the device has */
  _Atomic uint64_t limit;                            /* what may be taken of it */
  _Atomic uint64_t held, peak_held;                  /* got from the driver */
  _Atomic uint64_t in_use, peak_in_use;              /* handed out, as rounded */
  _Atomic uint64_t requested;                        /* of that, what was asked for */
  _Atomic uint64_t largest_free;                     /* largest piece held and not in use */
  _Atomic uint64_t regions;                          /* how many are held */
  _Atomic uint64_t allocations, refusals;            /* requests served and not served since the pool was opened */
  _Atomic uint64_t largest_allocation;
} yk_memory_counters;

/* What the sessions' runs count, in shared memory as well. Busy is the sum of both times: streams with a thread of their own tell how
 * long they worked; of others each run counts as a whole. */
typedef struct yk_work_counters {
  _Atomic uint64_t runs;                             /* steps that this device had a part in */
  _Atomic uint64_t run_ns, stream_ns;
} yk_work_counters;

typedef struct yk_device {
  uint16_t index;
  yk_device_spec spec;                               /* full: job localhost, replica 0, task 0, type, id */
  char name[YK__DEVICE_TEXT];
  const yk_driver *driver;
  uint32_t ordinal;                                  /* of the driver */
  yk_dev *dev;
  _Atomic(yk_stream *) stream;                       /* its own in-order stream, opened on first use: yk__device_stream */
  struct yk_device *stream_of;                       /* works on that device's stream instead of one of its own; NULL = has one */
  yk_dev_info info;
  yk_dev_config config;
  uint8_t is_virtual;
  uint8_t own_memory;                                /* kernels of other devices cannot use its memory where it is */
  uint8_t stand_in;                                  /* rehearsed: `driver` is not the device's own */
  struct yk_device *part_of;                         /* a logical device: the one whose `dev` it uses too; NULL = opened itself */
  uint16_t part, parts;                              /* number among the parts of one device; parts 0 = a whole device */
  uint64_t total, limit;                             /* bytes of memory; what may be taken of them */
  uint8_t growth;                                    /* a GPU's pool starts small instead of taking the whole limit */
  uint16_t number;                                   /* which of the machine's devices of its type */
  struct yk_pool *pool;                              /* NULL: rehearsed, or not yet open */
  yk_work_counters *work;                            /* yk_devices.work, or in `slot` */
  struct yk_board_slot *slot;                        /* where other processes see the counters; NULL: nowhere. See board.h */
} yk_device;

typedef struct yk_device_request {                   /* one group of equal devices to open */
  const char *type, *driver;                         /* "GPU", "cpu" */
  const yk_driver *table;                            /* instead of `driver`: a table that is no built-in one */
  uint16_t count;
  uint8_t is_virtual, growth;
  uint32_t ordinal;                                  /* of the first one; those of a host device are all 0 */
  uint32_t cores;                                    /* host cores of each; 0 = an even share of what the others leave */
  uint64_t total;                                    /* bytes each has; 0 = what the driver reports, of a virtual one a quarter */
  uint64_t limit;                                    /* bytes each may use at most; 0 = not limited so */
  double fraction;                                   /* of the total, over 0 to 1; 0 = not limited so */
  const uint16_t *numbers;                           /* [count] which of the machine's devices they are; NULL = as their ids */
  uint16_t nparts;                                   /* split each into that many logical devices; 0 = whole */
  const uint64_t *part;                              /* [nparts] bytes of each part, together at most the total; limits hold for each part */
} yk_device_request;

typedef struct yk_devices {
  uint16_t n;
  yk_device *at;
  yk_work_counters *work;                            /* [n] */
  struct yk_board_page *board;                       /* that has slots of these devices; NULL: none */
  void *kernels;                                     /* plan/kernels.c: what the drivers have kernels for; one block, freed with this */
} yk_devices;

/* Open all groups; `cores` host cores (0 = all) are shared out evenly over GPU-type devices if there are any, else over CPU
 * devices; CPU devices beside virtual GPUs get all cores, since they work while the others wait. */
/* `driver` NULL = "cpu"; ids count up within a type over all groups. A host device (no bus address) may be opened any number of
 * times; of others each ordinal once. Streams are pinned only
 * where the shares are true parts of the machine. GPUs that name their cores get them first, disjoint while they last, then from
 * the beginning again; the others share what is left. The parts of a split device stand together; they use one opened device of
 * the driver, and each has a stream and a limit of its own (parts of a host device one stream: they have the same cores).
 * ENOTFOUND (driver, ordinal), EINVAL (no device, type, count, more cores than `cores`, parts larger than the whole,
 * limit and fraction both). */
yk_code yk__devices_open(uint16_t nrequests, const yk_device_request *requests, int cores, yk_devices **out) YK_CHECKED;
void    yk__devices_close(yk_devices *d);
/* The devices that a file describes, to plan for: nothing may run on them. Each has the driver it names, if that is here and works
 * on the host, else `stand_in`; names, limits and cores are those of the file. */
struct yk_machine;
yk_code yk__devices_rehearse(const struct yk_machine *m, const char *stand_in, yk_devices **out) YK_CHECKED;
/* The device's stream, borrowed; it has a thread of its own where the driver has such. A CPU device beside one virtual GPU works
 * on that one's stream: two threads for the same cores would only take turns. Any thread. */
yk_code yk__device_stream(yk_device *d, yk_stream **out) YK_CHECKED;
/* May kernels of either use the other's memory where it is? So it is for CPU devices of one driver; a virtual GPU keeps its own, and
 * so does every part of a split device, since each has its limit. */
int     yk__device_same_memory(const yk_device *a, const yk_device *b);
/* May kernels of `a` read and write the memory of `b` where it is, each byte once, as over a link between cards? So it is where both are
 * openings of one host device; parts of a card and cards without such a link stay apart, and rehearsed ones whose driver is not here. */
int     yk__device_reaches(const yk_device *a, const yk_device *b);
/* All device names, comma-separated, for messages. Returns buf. */
char   *yk__devices_text(const yk_devices *d, char *buf, size_t n);

/* Memory of a device, from its pool: aligned, at least 256 bytes apart on a GPU. 0 bytes: base NULL, not an error. What does not
 * fit is refused at once, ENOMEM telling device, size asked, in use, limit. Any thread. */
yk_code yk__device_alloc(yk_device *d, size_t bytes, yk_mem *out) YK_CHECKED;
void    yk__device_free(yk_device *d, yk_mem mem);
/* What a request of that many bytes takes of the limit. */
uint64_t yk__device_rounded(const yk_device *d, uint64_t bytes);
/* The counters themselves, as long as the device is open; its pool is not NULL. Any thread. */
const yk_memory_counters *yk__device_counters(const yk_device *d);
/* The counts at one moment. out->size says how much of it there is. */
struct yk_device_memory;                             /* <yoke/session.h> */
void    yk__device_memory(const yk_device *d, struct yk_device_memory *out);
uint64_t yk__device_refusals(const yk_device *d);
/* For yk__devices_open(): the pool of a device whose total and limit are set; and its end. */
yk_code yk__device_pool_open(yk_device *d) YK_CHECKED;
void    yk__device_pool_close(yk_device *d);
/* What a driver that has nothing to share may take: the free memory less a reserve for others. */
uint64_t yk__memory_whole(const yk_dev_info *info);

#endif
