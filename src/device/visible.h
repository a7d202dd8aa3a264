/*
 * visible.h - which of a machine's GPUs a process sees, and as which numbers.
 *
 * Three steps, each a pure function: CUDA_DEVICE_ORDER sorts what there is, CUDA_VISIBLE_DEVICES picks from that as the
 * driver does (it never fails; what cannot be read ends the list), and the session's own list picks from what is left
 * (strictly). The devices picked are renumbered from 0 in the order of the list. For virtual GPUs and real ones alike.
 */
#ifndef YK_DEVICE_VISIBLE_H
#define YK_DEVICE_VISIBLE_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

enum { YK__UUID_BYTES = 48 };

typedef struct yk_gpu_id {
  const char *uuid;                /* "GPU-...", "MIG-..."; "" = none */
  const char *bus;                 /* "0000:c1:00.0" */
  uint64_t speed;                  /* larger is faster; equal for virtual ones */
} yk_gpu_id;

/* out[k] = number of the k-th GPU. order: "PCI_BUS_ID" = by rising bus id; NULL, "FASTEST_FIRST" and anything else = the fastest
 * first, the others as they come, as the driver does it. */
void yk__gpu_order(const char *order, uint16_t count, const yk_gpu_id *gpu, uint16_t *out);

/*
 * out[k] = number of the GPU that becomes gpu:k; returns how many there are, at most `count`.
 * text: NULL (unset) = all; "" or a first item that is no GPU = none; "1", "0,1", and the same within quotes; "1x" reads as 1;
 * "GPU-1a2b" = the one GPU whose UUID begins so; "MIG-..." likewise, and it is then the only one; the first item that is no
 * GPU, or of the other kind (number, UUID), ends the list; an item listed twice = none at all. gpu: [count], NULL = no UUIDs are
 * known. out: room for `count` entries.
 */
uint16_t yk__visible_devices(const char *text, uint16_t count, const yk_gpu_id *gpu, uint16_t *out);

/* What a user may not have meant: "CUDA_VISIBLE_DEVICES: "99" is no GPU, which ends the list; 1 of 2 GPUs can be seen", or "".
 * room: for `count` entries. Returns buf, always terminated (n > 0). */
char *yk__visible_remark(const char *text, uint16_t count, const yk_gpu_id *gpu, uint16_t *room, char *buf, size_t n);

/* A session's list: NULL or "" = all, "none" or "-1" = none, else "2,0": each number below `count` and only once; spaces and
 * quotes around are taken too. EINVAL, ENOTFOUND (no such GPU) naming list, item and what there is; *n is untouched then, `out` is not. */
yk_code yk__visible_list(const char *text, uint16_t count, uint16_t *out, uint16_t *n) YK_CHECKED;

/* The UUID that virtual GPU `index` has, the same on every machine. Returns buf. */
char *yk__virtual_uuid(uint16_t index, char buf[YK__UUID_BYTES]);

#endif
