/*
 * monitored.h - what hooks of the library may ask of a monitored session beside what all hooks can.
 *
 * They go over its last run again and look after its variables when that went wrong; only the thread that runs it calls these.
 */
#ifndef YK_TRAIN_MONITORED_H
#define YK_TRAIN_MONITORED_H

#include <yoke/monitored.h>

/* In after_run: go over this run's step once more, as yk_step_examine(). */
yk_code yk__monitored_examine(yk_monitored *m, yk_finding *out) YK_CHECKED;
/* After a NaN: are the variables free of it? If not, they get the values of the newest checkpoint; without one, nothing is saved from
 * now on. *text tells in half a sentence, for yk_free(). */
yk_code yk__monitored_keep(yk_monitored *m, char **text) YK_CHECKED;
/* Variables hold NaN, and are not to be saved. */
bool yk__monitored_spoilt(yk_monitored *m);

#endif
