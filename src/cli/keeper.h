/*
 * keeper.h - checkpoints of a training run: when they are due, what they hold beside the variables, and how a run goes on from one.
 *
 * A checkpoint's texts hold all that a resumed run needs to be the same run: its options, the position of its input, its curves,
 * and how far its metrics file had grown.
 */
#ifndef YK_CLI_KEEPER_H
#define YK_CLI_KEEPER_H

#include "base/alloc.h"
#include "cli/metrics.h"

/* ---- going on: resume.c ---------------------------------------------------------------------------------------------- */

/*
 * Before anything else. With --resume: open the newest whole checkpoint of --out, NULL if there is none yet, and fill in the options
 * that were not given from it; their texts live in `texts`. Without: refuse a folder that has checkpoints. 0 or an exit status with
 * the error printed.
 */
int yk__resume_find(yk_cli *c, yk_bump *texts, yk_checkpoint **out);
/* Is it a checkpoint of this network, these data, this batch and seed? Call when network and data are there. */
int yk__resume_check(const yk_checkpoint *from, const yk_cli *c, const yk_job *j);
/* Has it the variables of the job's graph, but for what another precision changes? */
int yk__resume_fits(const yk_checkpoint *from, const yk_cli *c, const yk_job *j);
/* Move the queue to where it was; call before the first step. */
int yk__resume_input(const yk_checkpoint *from, const yk_job *j);
/* The values of all variables, and the curves. */
int yk__resume_state(const yk_checkpoint *from, const yk_job *j, yk_metrics *m);
/* "bf16": the precision that it was made in. */
const char *yk__resume_precision(const yk_checkpoint *from);
/* Open metrics.jsonl at `path`: new, or cut to what it had when the checkpoint was made. NULL and errno. */
FILE *yk__resume_log(const yk_checkpoint *from, const char *path);
/* Did it run on other devices? */
bool yk__resume_moved(const yk_checkpoint *from, const yk_job *j);

/* Is the option one that a checkpoint records, and does it differ from its default? */
bool yk__recorded(const yk_opt *o);
bool yk__given(const yk_opt *o, const yk_cli *c);

/* ---- saving: keeper.c ------------------------------------------------------------------------------------------------ */

enum { YK__MOST_FAILURES = 3 };      /* checkpoints in a row that cannot be written before the run gives up */

typedef struct yk_keeper {           /* {0}: no checkpoints */
  yk_saver *saver;
  const yk_cli *cli;
  const yk_job *job;
  yk_metrics *metrics;
  int64_t every;                     /* steps; 0: by time */
  double seconds;
  int64_t saved;                     /* step of the last one, begun or found; -1: none */
  uint64_t saved_ns;
  int failures;                      /* in a row */
  bool pending;                      /* one is being written */
  yk_bump texts;
  yk_note *note;                     /* those that stay the same, then room for those that do not */
  uint32_t fixed;
} yk_keeper;

/* "100" or "10m". False if it is neither. */
bool yk__every_parse(const char *text, int64_t *steps, double *seconds);
/* Open the saver in `folder`/checkpoints, if checkpoints are wanted. Call before anything is written into the folder. */
int yk__keeper_open(yk_keeper *k, const yk_cli *c, const yk_job *j, yk_metrics *m, const char *folder, const yk_checkpoint *from);
/* Before the first step: is there room? */
int yk__keeper_start(yk_keeper *k);
/* After each step: tell of one that ended, begin one that is due. */
int yk__keeper_step(yk_keeper *k);
/* At the end: wait, and save the last step. A failure is told and remembered (k->failures), not returned. */
void yk__keeper_finish(yk_keeper *k);
void yk__keeper_close(yk_keeper *k);

/* ---- curves as text: state.c ----------------------------------------------------------------------------------------- */

/* All that metrics add up, exactly. *out: yk__free(). The reverse; ECORRUPT. */
yk_code yk__metrics_text(const yk_metrics *m, char **out) YK_CHECKED;
yk_code yk__metrics_take(yk_metrics *m, const char *text) YK_CHECKED;

#endif
