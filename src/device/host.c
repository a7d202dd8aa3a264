/*
 * host.c - what the core lends to drivers.
 *
 * One constant table of services, so that a backend needs no symbol of ours and its failures land in the
 * calling thread's message like everybody else's.
 */
#include "device/device.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/rng.h"
#include "base/thread.h"

static void host_pin(int first_core, int ncores) { (void)yk__pin(first_core, ncores); }   /* not possible: only slower */

const yk_host yk__host = {
  .size = sizeof(yk_host), .major = YK_DEVICE_MAJOR, .minor = YK_DEVICE_MINOR,
  .fail = yk__fail, .log = yk__log, .alloc = yk__alloc_aligned, .free = yk__free, .param = yk__param,
  .pin = host_pin, .team_set = yk__team_set, .team = yk__team, .parallel_for = yk__parallel_for,
  .random_block = yk__rng_block, .now_ns = yk__now_ns,
};
