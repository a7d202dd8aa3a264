/*
 * devices.h - the views of `yoke devices`: each turns what a session tells of its devices into one form.
 *
 * cmd_devices.c opens the session and picks a view; a view has a file of its own, devices_<view>.c. In JSON each is part of the one
 * object whose keys docs/devices.md lists.
 */
#ifndef YK_CLI_DEVICES_H
#define YK_CLI_DEVICES_H

#include <yoke/yoke.h>
#include "cli/cli.h"
#include "cli/json.h"
#include "device/board.h"
#include "measure/load.h"
#include "measure/measure.h"

/* Of the object's keys: raised when one changes its meaning or goes, not when one is added. */
enum { YK__DEVICES_VERSION = 1 };

/* What is seen at one moment: who runs, how busy and how warm the host is. devices_glance.c. */
typedef struct yk_glance {
  uint64_t ns;                       /* clock */
  yk_board board;                    /* other processes than this one */
  yk_load load;
  double temperature;                /* YK__UNKNOWN if not told */
  const struct yk_glance *before;    /* the one before, for shares of the time between; NULL: none */
} yk_glance;
/* 0 or an exit status with the error printed. Before the next one of the two that take turns: yk__glance_free(). */
int    yk__glance(const yk_glance *before, yk_glance *out);
void   yk__glance_free(yk_glance *g);
/* Busy share since the glance before: of a device's host cores; of a slot's device in its process. YK__UNKNOWN. */
double yk__busy_cores(const yk_glance *now, const yk_device_info *d);
double yk__busy_slot(const yk_glance *now, const yk_board_page *job, const yk_board_slot *slot);
/* Is the slot's device the one that `d` is, too? Host devices of one machine are; GPUs if their UUIDs are the same. */
bool   yk__same_device(const yk_device_info *d, const yk_board_slot *slot);

/* The running jobs with their devices: lines of text; the array "jobs". devices_jobs.c. */
void yk__devices_jobs(const yk_glance *now);
void yk__devices_jobs_json(yk_json *o, const yk_glance *now);
/* For one device: the array "processes". */
void yk__devices_processes_json(yk_json *o, const yk_device_info *d, const yk_glance *now);

/* The list and the jobs again and again. devices_watch.c. */
int yk__devices_watch(const yk_cli *c, yk_session *s);

/* Table: its heading, one device, and under a table without GPUs the reason. devices_table.c. */
void yk__devices_heading(void);
void yk__devices_line(const yk_device_info *d);
void yk__devices_reason(void);

/* One device as an object, an element of an array. devices_json.c. */
void yk__devices_json(yk_json *o, const yk_device_info *d, const yk_device_memory *m, const yk_glance *now);
/* The object with version, time, devices and jobs; the caller adds what else there is and closes it. */
int  yk__devices_object(yk_json *o, yk_session *s, const yk_glance *now);

/* Copies between all devices of the session, and who can train together. `o` NULL: text on stdout. devices_topology.c.
 * 0 or an exit status with the error printed, as below; `save`, unless NULL: a file for the description of the machine with them. */
int yk__devices_topology(yk_session *s, yk_json *o, const char *save);

/* Speeds of every device of the session, each measured in sessions of its own, ranked. devices_bench.c. */
int yk__devices_bench(yk_session *s, const yk_session_options *options, yk_json *o, const char *save);

/* The description of the machine as a file (docs/machine-format.md), whole or not at all, with what was measured: links, speeds
 * [devices], each may be NULL. 0 or an exit status, error printed. devices_save.c. */
int yk__devices_save(const yk_session *s, const char *path, const yk_topology *t, const yk_bench *b);

#endif
