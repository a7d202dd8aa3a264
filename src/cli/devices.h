/*
 * devices.h - the views of `yoke devices`: each turns what a session tells of its devices into one form.
 *
 * cmd_devices.c opens the session and picks a view; a view has a file of its own, devices_<view>.c.
 */
#ifndef YK_CLI_DEVICES_H
#define YK_CLI_DEVICES_H

#include <yoke/yoke.h>
#include "cli/json.h"

/* Table: its heading, one device, and under a table without GPUs the reason. devices_table.c. */
void yk__devices_heading(void);
void yk__devices_line(const yk_device_info *d);
void yk__devices_reason(void);

/* One device as an object, an element of an array. devices_json.c. */
void yk__devices_json(yk_json *o, const yk_device_info *d);

#endif
