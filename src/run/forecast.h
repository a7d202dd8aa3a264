/*
 * forecast.h - what a job will hold of each device's memory, to the byte, before any of it is taken.
 *
 * The steps of the job are compiled in the order in which it will run them, and the requests that they would make of the devices'
 * pools are made of pools without memory behind them: same policy, same limit, same rounding. What those count is what the run will count.
 */
#ifndef YK_RUN_FORECAST_H
#define YK_RUN_FORECAST_H

#include "run/run.h"

typedef struct yk_forecast yk_forecast;

/* The session must outlive it, and is one that has run nothing; it may rehearse. *out: yk__forecast_close(). */
yk_code yk__forecast_open(yk_session *s, yk_forecast **out) YK_CHECKED;
void    yk__forecast_close(yk_forecast *f);
/* The job runs such a step, for the first time. look, unless NULL, is called as for yk__step_look(), with the step's memory taken. */
yk_code yk__forecast_step(yk_forecast *f, size_t nfetch, const yk_value *fetches, size_t ntarget, const yk_value *targets,
                          yk_look *look, void *arg) YK_CHECKED;
/* The job reads all variables at once or one by one, as what saves them does: each needs its plain copy for a moment. */
yk_code yk__forecast_read_back(yk_forecast *f) YK_CHECKED;
/* NULL if all so far got its memory. Otherwise what device *dev would have said when it refused for the first time, until f is
 * closed; the counts are then those of what a run would have had. Sums that fit are no promise: memory may be free in pieces. */
enum { YK__REFUSAL_TEXT = 300 };
const char *yk__forecast_refusal(const yk_forecast *f, uint16_t *dev);
/* The counts of device i after the steps so far. out->size must be set. */
void    yk__forecast_memory(const yk_forecast *f, size_t i, yk_device_memory *out);

#endif
