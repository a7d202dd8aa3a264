/*
 * board.h - what the Yoke processes of a user tell each other: which devices they hold, how much memory, how busy they are.
 *
 * Each process has one file, mapped, of a fixed layout; the counters of its devices lie in it, so counting is publishing and a step
 * costs nothing more. A file is alive while its process holds a lock on it, which the system drops at its end however that comes;
 * what readers find unlocked they remove. Where nothing can be published (no folder, no room, setting `board` off) counters stay in
 * private memory: never an error. Readers trust nothing: a file may be cut short, foreign, or full of garbage.
 */
#ifndef YK_DEVICE_BOARD_H
#define YK_DEVICE_BOARD_H

#include <stdbool.h>
#include "device/device.h"

enum { YK__BOARD_VERSION = 1, YK__BOARD_SLOTS = 128, YK__BOARD_COMMAND = 96, YK__BOARD_PATH = 512 };

/* In bytes; copied here when a run of the device ends. */
typedef struct yk_board_memory {
  _Atomic uint64_t total, limit;   /* what the device has; what the session may take of it */
  _Atomic uint64_t held, peak_held;      /* got from the driver, at most so far */
  _Atomic uint64_t in_use, peak_in_use;  /* of that, in use */
} yk_board_memory;

/* One open device of one session. Integers of fixed width, texts ended by a NUL, no pointers; the layout is the version's. */
typedef struct yk_board_slot {
  _Atomic uint64_t session;        /* number of the session in its process, from 1 on; 0: free, the rest means nothing */
  yk_board_memory memory;
  yk_work_counters work;
  double   fraction;               /* per_process_gpu_memory_fraction as asked for; 0 = none */
  uint32_t growth, is_virtual;     /* 0 or 1 */
  uint32_t first_core, ncores;
  char name[YK__DEVICE_TEXT], type[16], driver[16], bus[32], uuid[48], model[64];
} yk_board_slot;

typedef struct yk_board_page {
  char     magic[8];               /* "yokebrd", NUL */
  uint32_t version, bytes;         /* YK__BOARD_VERSION, sizeof(yk_board_page) */
  int64_t  pid;
  uint64_t start;                  /* of the process, in clock ticks since boot, as /proc/PID/stat has it: against recycled pids */
  int64_t  since;                  /* when the page was made, in seconds since 1970 */
  _Atomic uint64_t sessions;       /* made so far */
  _Atomic uint64_t hidden;         /* devices open now that found no slot */
  char     command[YK__BOARD_COMMAND];   /* "yoke train cifar10", or the program's name */
  yk_board_slot slot[YK__BOARD_SLOTS];
} yk_board_page;

/* ---- writing: board.c. Any thread; after a fork the child has a board of its own. ---------------------------------- */

/* What the command column says of this process from now on; until then, the program's name. */
void yk__board_command(const char *text);
/* The devices of a session: their counters move to the board. `about`: [d->n] what the session knows besides; `name` to `ncores` are
 * filled in from the devices. Before anything is allocated. */
typedef struct yk_board_about { double fraction; uint32_t growth; char bus[32], uuid[48]; } yk_board_about;
void yk__board_publish(yk_devices *d, const yk_board_about *about);
/* Let others see how much memory the device has in use now. A few relaxed stores; nothing if it is not published. */
void yk__board_memory(const yk_device *d);
/* Once the pools are closed: the devices' slots are free again; with the last one the file goes. */
void yk__board_withdraw(yk_devices *d);

/* ---- reading: board_read.c ------------------------------------------------------------------------------------------ */

typedef struct yk_board {
  uint32_t n;
  yk_board_page *at;               /* [n] copies, checked: texts end, session numbers are those of whole slots */
} yk_board;

/* Folder of the files: $XDG_RUNTIME_DIR/yoke, else /dev/shm/yoke-UID. Returns buf; "" if neither can be. */
char   *yk__board_folder(char buf[YK__BOARD_PATH]);
/* The processes that live, by rising pid; stale files are removed. No folder is an empty board. Errors: ENOMEM. */
yk_code yk__board_read(const char *folder, yk_board *out) YK_CHECKED;
void    yk__board_free(yk_board *b);
/* Only remove stale files. Takes no memory of ours. */
void    yk__board_sweep(const char *folder);

/* ---- shared by both -------------------------------------------------------------------------------------------------- */

/* Is it a folder of this user that nobody else may enter? With `make` it is made if it is not there. "" or why not, in `why`. */
bool     yk__board_folder_good(const char *folder, bool make, char *why, size_t n);
/* When process `pid` started, in clock ticks since boot; 0: there is none, or it cannot be known. */
uint64_t yk__process_start(int64_t pid);
extern const char yk__board_magic[8];

#endif
