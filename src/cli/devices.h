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
#include "measure/measure.h"

/* Of the object's keys: raised when one changes its meaning or goes, not when one is added. */
enum { YK__DEVICES_VERSION = 1 };

/* Table: its heading, one device, and under a table without GPUs the reason. devices_table.c. */
void yk__devices_heading(void);
void yk__devices_line(const yk_device_info *d);
void yk__devices_reason(void);

/* One device as an object, an element of an array. devices_json.c. */
void yk__devices_json(yk_json *o, const yk_device_info *d);

/* Copies between all devices of the session, and who can train together. `o` NULL: text on stdout. devices_topology.c.
 * 0 or an exit status with the error printed, as below; `save`, unless NULL: a file for the description of the machine with them. */
int yk__devices_topology(yk_session *s, yk_json *o, const char *save);

/* Speeds of every device of the session, each measured in sessions of its own, ranked. devices_bench.c. */
int yk__devices_bench(yk_session *s, const yk_session_options *options, yk_json *o, const char *save);

/* The description of the machine as a file (docs/machine-format.md), whole or not at all, with what was measured: links, speeds
 * [devices], each may be NULL. 0 or an exit status, error printed. devices_save.c. */
int yk__devices_save(const yk_session *s, const char *path, const yk_topology *t, const yk_bench *b);

#endif
