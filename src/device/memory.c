/*
 * memory.c - memory of a device, held to its limit.
 *
 * The limit counts what was asked for, on every driver, so that a virtual GPU runs out of memory exactly as its
 * size says. Blocks are few and large (plans allocate whole arenas), so there is no cache in between.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include "base/error.h"
#include "device/device.h"

yk_code yk__device_alloc(yk_device *d, size_t bytes, yk_mem *out) {
  uint64_t used = atomic_load(&d->in_use);
  do {
    if (bytes > d->limit || used > d->limit - bytes)
      return YK_FAIL(ENOMEM, "%s: %zu bytes asked for, %" PRIu64 " in use, the limit is %" PRIu64, d->name, bytes, used,
                     d->limit);
  } while (!atomic_compare_exchange_weak(&d->in_use, &used, used + bytes));
  yk_code rc = d->driver->mem_alloc(d->dev, YK_DEVICE_MEM, bytes, out);
  if (rc != YK_OK) {
    atomic_fetch_sub(&d->in_use, bytes);
    return yk__fail_prefix(rc, "%s: %zu bytes asked for, %" PRIu64 " in use, the limit is %" PRIu64, d->name, bytes, used,
                           d->limit);
  }
  uint64_t now = used + bytes, peak = atomic_load(&d->peak);
  while (now > peak && !atomic_compare_exchange_weak(&d->peak, &peak, now)) {}
  return YK_OK;
}

void yk__device_free(yk_device *d, yk_mem mem) {
  if (!mem.base) return;
  d->driver->mem_free(d->dev, mem);
  atomic_fetch_sub(&d->in_use, mem.bytes);
}
