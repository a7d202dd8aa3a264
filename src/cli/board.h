/*
 * board.h - a training run told to TensorBoard: what goes into its event files, and when.
 *
 * Two runs below one folder, as users of TensorBoard expect: `train` and `eval`, with the same names for the same things. Nothing
 * is written on a step but where an interval is over, so a run that is told costs what one costs that is not.
 */
#ifndef YK_CLI_BOARD_H
#define YK_CLI_BOARD_H

#include <stdbool.h>
#include <yoke/summary.h>
#include "cli/cli.h"

typedef struct yk_board {            /* {0}: none is wanted */
  yk_summary_writer *train, *eval;
  const yk_job *job;
  double rate;                       /* the learning rate of the last step */
  bool failed;                       /* told once; then nothing more is written, and the run goes on */
} yk_board;

/* Make the folders and files, if --tensorboard was given. A run that goes on from step `first` makes readers forget what came
 * behind it. 0 or an exit status with the error printed. */
int  yk__board_open(yk_board *b, const yk_cli *c, const yk_job *j, bool resumed, int64_t first);
/* Before the first step of a run that is new: settings (JSON), graph, some pictures, and the variables. Of a resumed one: the graph. */
void yk__board_start(yk_board *b, const char *settings, bool resumed);
/* An interval of training is over. */
void yk__board_progress(yk_board *b, int64_t step, double epoch, double loss, double accuracy, double examples_per_second);
/* A test. */
void yk__board_tested(yk_board *b, int64_t step, const yk_score *score);
/* The distribution of each trainable variable. */
void yk__board_variables(yk_board *b, int64_t step);
/* The distribution of each gradient of a step, tensors in the order of the job's collections. */
void yk__board_gradients(yk_board *b, int64_t step, const yk_tensor *const *gradients);
/* Give all that was told to the system: a run that is killed from now on has told it. A failure is told and remembered. */
void yk__board_flush(yk_board *b);
/* Write the rest. A failure is told and remembered. */
void yk__board_finish(yk_board *b);
/* What a failed run left open. */
void yk__board_close(yk_board *b);

#endif
