/*
 * team.h - what a chief and its workers know of each other: who is there, whose session it is, and whether it goes on.
 *
 * Monitored sessions call these; nothing here runs a step. All waits end, and tell who was waited for.
 */
#ifndef YK_TRAIN_TEAM_H
#define YK_TRAIN_TEAM_H

#include <yoke/monitored.h>

/* Worker `worker`, 0 = the chief, is there from now on. EINVAL: no such worker, or it is there already. */
yk_code yk__team_claim(yk_monitored_team *t, int32_t worker) YK_CHECKED;
/* It is gone. */
void yk__team_leave(yk_monitored_team *t, int32_t worker);

/* Chief: variables have values, this is the session. */
void yk__team_ready(yk_monitored_team *t, yk_graph *g, yk_session *s);
/* Worker: wait for that. EBUSY out of time; EINVAL another graph; ERANGE the training has ended; what the chief failed with. */
yk_code yk__team_wait(yk_monitored_team *t, int32_t worker, int64_t wait_ms, const yk_graph *g, yk_session **out) YK_CHECKED;
/* Chief: all are to end. `why` with this thread's message, unless it is YK_OK; the first reason counts. */
void yk__team_stop(yk_monitored_team *t, yk_code why);
/* ERANGE or the chief's failure once it has stopped. */
yk_code yk__team_ended(yk_monitored_team *t) YK_CHECKED;
bool yk__team_stopped(yk_monitored_team *t);
/* Chief: wait until no worker is there. EBUSY names those that are. */
yk_code yk__team_empty(yk_monitored_team *t, int64_t wait_ms) YK_CHECKED;
/* Variables hold NaN: nobody of the team saves them. */
void yk__team_spoil(yk_monitored_team *t);
bool yk__team_spoilt(yk_monitored_team *t);

#endif
