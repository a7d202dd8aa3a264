/*
 * virtual.h - the texts that make GPUs: groups of virtual ones, and devices split into logical ones.
 *
 * Option, setting and command line all come here, so that a text means the same wherever it is written. Only the text is
 * looked at: whether the machine has that much memory and that many cores is asked by whoever opens the devices.
 */
#ifndef YK_DEVICE_VIRTUAL_H
#define YK_DEVICE_VIRTUAL_H

#include <stdint.h>
#include <yoke/status.h>

enum { YK__MAX_GPUS = 4096 };        /* of one session; logical ones count */

typedef struct yk_gpu_size { uint64_t bytes; uint32_t cores; } yk_gpu_size;   /* 0 bytes: the default; 0 cores: an even share */

/*
 * "4:512MiB", "2:1GiB:2,1:256MiB", "2::1": groups N[:LIMIT[:CORES]] between commas; an empty LIMIT is the default one. *out: an
 * entry a GPU, in order, at most `most` (<= YK__MAX_GPUS); yk__free(). `what` begins the message, such as "--virtual-gpus".
 * EINVAL naming text, piece and what was expected.
 */
yk_code yk__virtual_parse(const char *what, const char *text, uint32_t most, yk_gpu_size **out, uint16_t *n) YK_CHECKED;

typedef struct yk_gpu_split { uint16_t gpu, nparts; const uint64_t *part; } yk_gpu_split;   /* part: bytes of each */

/*
 * "gpu:0=256MiB,256MiB", "gpu:0=1GiB,1GiB,gpu:2=512MiB,256MiB": devices, each with the memory of its parts. *out: [n], each GPU
 * once; one block of memory, yk__free(). EINVAL as above.
 */
yk_code yk__split_parse(const char *what, const char *text, yk_gpu_split **out, uint16_t *n) YK_CHECKED;

#endif
