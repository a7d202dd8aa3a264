/*
 * driver.c - finding drivers, and refusing tables that cannot be trusted.
 *
 * The built-in ones come through the same door as a plugin: one function that takes the host table, then the check.
 * Nothing is called through a table before it has passed.
 */
#include <string.h>
#include "base/error.h"
#include "base/thread.h"
#include "device/device.h"

typedef const yk_driver *(*plugin_fn)(const yk_host *host);

#define DRIVER(name) extern const yk_driver *yk__##name##_plugin(const yk_host *host);
#include "drivers.def"
#undef DRIVER

typedef enum slot_state { NEW, BUSY, READY } slot_state;
typedef struct slot {
  const char *name;
  plugin_fn plugin;
  _Atomic uint32_t state;                            /* slot_state; a word to wait on while another thread asks first */
  const yk_driver *driver;                           /* valid once READY; NULL if the table was refused */
} slot;

static slot slots[] = {
#define DRIVER(name) { #name, yk__##name##_plugin, NEW, NULL },
#include "drivers.def"
#undef DRIVER
};
enum { NSLOTS = sizeof slots / sizeof slots[0] };

static const char known[] =
#define DRIVER(name) " " #name
#include "drivers.def"
#undef DRIVER
;

/* Ask the backend for its table, once in the process. */
static const yk_driver *slot_get(slot *s) {
  uint32_t state = NEW;
  if (atomic_compare_exchange_strong(&s->state, &state, BUSY)) {
    const yk_driver *d = s->plugin(&yk__host);
    s->driver = yk__driver_check(d) == YK_OK ? d : NULL;
    atomic_store(&s->state, READY);
    yk__word_wake(&s->state);
  } else {
    while (atomic_load(&s->state) == BUSY) yk__word_wait(&s->state, BUSY);
  }
  return s->driver;
}

const yk_driver *yk__driver_find(const char *name) {
  for (int i = 0; i < NSLOTS; i++) {
    if (strcmp(slots[i].name, name) != 0) continue;
    const yk_driver *d = slot_get(&slots[i]);
    if (!d) (void)YK_FAIL(EINTERNAL, "the built-in driver '%s' has an incomplete table", name);
    return d;
  }
  (void)YK_FAIL(ENOTFOUND, "no driver '%.64s'; built in are:%s", name, known);
  return NULL;
}

static yk_code check_entry(const yk_driver *d, const char *entry, size_t end, int is_set) {
  if (d->size < end)
    return YK_FAIL(EINVAL, "driver '%.64s': its table of %u bytes ends before the required entry '%s'", d->name,
                   (unsigned)d->size, entry);
  if (!is_set) return YK_FAIL(EINVAL, "driver '%.64s': the required entry '%s' is not set", d->name, entry);
  return YK_OK;
}

yk_code yk__driver_check(const yk_driver *d) {
  if (!d) return YK_FAIL(EINVAL, "a driver without a table");
  if (d->size < offsetof(yk_driver, count))
    return YK_FAIL(EINVAL, "a driver table of only %u bytes", (unsigned)d->size);
  if (d->major != YK_DEVICE_MAJOR)
    return YK_FAIL(EUNSUPPORTED, "driver '%.64s' is of interface %u.%u, this library knows %d.x", d->name ? d->name : "?",
                   (unsigned)d->major, (unsigned)d->minor, YK_DEVICE_MAJOR);
  if (!d->name || !d->name[0]) return YK_FAIL(EINVAL, "a driver without a name");
  if (!d->version) return YK_FAIL(EINVAL, "driver '%.64s' has no version", d->name);
#define CHECK(f) YK_TRY(check_entry(d, #f, offsetof(yk_driver, f) + sizeof d->f, YK_HAS(d, f)));
  YK_DRIVER_REQUIRED(CHECK)
#undef CHECK
  return YK_OK;
}
