/*
 * driver.c - the table of the CPU driver, and its one ordinal: this machine.
 *
 * The ordinal may be opened any number of times: every CPU device and every virtual GPU of a session is one
 * opening, with its own share of the cores. Only what is opened owns threads; asking costs nothing.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "cpu.h"
#include "dnnl_compat.h"

const yk_host *yk__cpu_host;

static yk_code cpu_count(uint32_t *out) {
  *out = 1;
  return YK_OK;
}

static uint32_t host_cores(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int n = CPU_COUNT(&set);
  return n > 0 ? (uint32_t)n : 1;
}

/* The processor's name as the system prints it, or "CPU" where it prints none. */
static void model_name(char *buf, size_t n) {
  char line[256];
  snprintf(buf, n, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, "model name", 10) != 0) continue;
    const char *colon = strchr(line, ':');
    if (colon) snprintf(buf, n, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    break;
  }
  if (f) fclose(f);
}

static yk_code cpu_info(uint32_t ordinal, yk_dev_info *out) {
  if (ordinal != 0) return YK_CPU_FAIL(ENOTFOUND, "cpu ordinal %u; there is only 0", (unsigned)ordinal);
  yk_dev_info info = { .size = out->size, .alignment = 64, .numa_node = UINT32_MAX };
  model_name(info.name, sizeof info.name);
  info.bytes_total = yk__cpu_memory_total();
  info.bytes_free = yk__cpu_memory_free();
  info.fast_types = 1u | yk__dnnl_fast_types();
  memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
  return YK_OK;
}

static yk_code cpu_open(uint32_t ordinal, const yk_dev_config *config, yk_dev **out) {
  if (ordinal != 0) return YK_CPU_FAIL(ENOTFOUND, "cpu ordinal %u; there is only 0", (unsigned)ordinal);
  yk_dev *dev = yk__cpu_host->alloc(sizeof *dev, 64);
  if (!dev) return YK_CPU_FAIL(ENOMEM, "no memory for a device (%zu bytes)", sizeof *dev);
  yk_dev_config c = { 0 };
  if (config) memcpy(&c, config, config->size < sizeof c ? config->size : sizeof c);
  *dev = (yk_dev){ .first_core = c.first_core, .ncores = c.ncores, .stream_cores = c.stream_cores, .pin = c.pin };
  if (dev->ncores == 0) {                              /* not told: all of them, wherever the system puts the threads */
    dev->ncores = host_cores();
    dev->pin = 0;
  }
  if (dev->stream_cores == 0 || dev->stream_cores > dev->ncores) dev->stream_cores = dev->ncores;
  *out = dev;
  return YK_OK;
}

static void cpu_close(yk_dev *dev) { yk__cpu_host->free(dev); }

static const yk_driver driver = {
  .size = sizeof(yk_driver), .major = YK_DEVICE_MAJOR, .minor = YK_DEVICE_MINOR, .name = "cpu", .version = "1",
  .count = cpu_count, .info = cpu_info, .open = cpu_open, .close = cpu_close,
  .mem_alloc = yk__cpu_mem_alloc, .mem_free = yk__cpu_mem_free, .mem_map = yk__cpu_mem_map, .desc_bytes = yk__cpu_desc_bytes,
  .stream_open = yk__cpu_stream_open, .stream_close = yk__cpu_stream_close, .stream_sync = yk__cpu_stream_sync,
  .event_open = yk__cpu_event_open, .event_close = yk__cpu_event_close, .event_record = yk__cpu_event_record,
  .event_wait = yk__cpu_event_wait, .event_query = yk__cpu_event_query,
  .copy_in = yk__cpu_copy_in, .copy_out = yk__cpu_copy_out, .copy = yk__cpu_copy, .fill = yk__cpu_fill,
  .kernel_prepare = yk__cpu_kernel_prepare, .kernel_launch = yk__cpu_kernel_launch, .kernel_free = yk__cpu_kernel_free,
  .copy_peer = yk__cpu_copy_peer, .event_time = yk__cpu_event_time, .event_sync = yk__cpu_event_sync,
  .stream_busy = yk__cpu_stream_busy,
};

const yk_driver *yk__cpu_plugin(const yk_host *host) {
  yk__cpu_host = host;
  return &driver;
}
