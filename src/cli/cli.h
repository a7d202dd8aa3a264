/*
 * cli.h - what the commands of `yoke` share: options, errors, exit statuses, and the way from a command line to a training step.
 *
 * One command is one file, cmd_<verb>.c, and one line of the table in main.c. A command returns its exit status and
 * has then printed exactly one line on stderr if that is not 0.
 */
#ifndef YK_CLI_CLI_H
#define YK_CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <yoke/yoke.h>

enum { YK__EXIT_OK = 0, YK__EXIT_RUN = 1, YK__EXIT_USAGE = 2, YK__EXIT_NO_GPU = 3, YK__EXIT_SIGNAL = 128 };

/* ---- options: args.c, options.c ------------------------------------------------------------------------------------ */

enum { YK__MAX_VALUE = 4000 };       /* characters of an option's value: a path, a list */

typedef struct yk_cli {              /* every option of every command; what was not given has the value in options.c */
  const char *verb, *model, *data, *data_format, *test_data, *label, *devices, *virtual_gpus, *memory_limit, *split, *save, *rehearse, *out, *trace,
      *require;
  int64_t batch, steps, seed;        /* batch and steps 0, epochs 0, lr and seed < 0: not given */
  int64_t classes, skip_corrupt;
  int64_t count;                     /* 0: not given */
  double epochs, lr, interval, holdout, memory_fraction;   /* memory_fraction 0: not given */
  double watch;                      /* seconds; < 0: not given, 0: without a value */
  const char *optimizer, *schedule;
  double clip_norm, tolerance;       /* 0: not given; < 0: not given */
  const char *nan_check, *precision; /* NULL: not given */
  bool quiet, live, json, memory_growth, soft_placement, log_device_placement, no_gradient, no_time, dump, topology,
    bench, help, version;
  const char *tensorboard;
  int64_t gradient_histograms;       /* 0: none */
  const char *checkpoint_every;      /* of checkpoints; NULL and 0: not given */
  int64_t keep;
  double keep_every;
  bool resume;
  const char *strategy;              /* NULL: auto */
  int64_t replicas, check_replicas;  /* 0: one a device; never */
  bool deterministic, sync_batch_norm;
  const char *loss, *metrics, *checkpoint, *csv;     /* of model files */
  int64_t early_stopping, keras;     /* 0: not given */
  double divide;                     /* 0: not given */
  bool weights_only;
  const char *plot;                  /* of summary */
  bool expand_nested;
} yk_cli;

typedef enum yk_verb_id {
  YK__TRAIN, YK__EVALUATE, YK__PREDICT, YK__SUMMARY, YK__CONVERT,
  YK__EXPLAIN, YK__PLAN, YK__BENCH, YK__VERIFY, YK__OPS, YK__DEVICES, YK__DOCTOR, YK__CONFIG, YK__PARAMS, YK__NVERBS
} yk_verb_id;

typedef struct yk_verb {
  const char *name, *operand, *doc;  /* operand: "MODEL", or NULL */
  int (*run)(const yk_cli *c);
} yk_verb;

typedef enum yk_opt_kind { YK__OPT_FLAG, YK__OPT_TEXT, YK__OPT_INT, YK__OPT_REAL,
                           YK__OPT_MAYBE } /* MAYBE: a number, 0 if the option comes without one */ yk_opt_kind;
typedef struct yk_opt {
  const char *name, *value;          /* "--batch", "N" (NULL: a flag) */
  yk_opt_kind kind;
  size_t offset;                     /* in yk_cli */
  double lo, hi;                     /* of a number */
  uint32_t verbs;                    /* bit i: command i of yk_verb_id takes it; 0: the program itself and every command */
  const char *doc;
} yk_opt;

extern const yk_verb yk__verbs[];    /* [YK__NVERBS] */
extern const yk_opt yk__options[];   /* ends with {0} */
extern const yk_cli yk__cli_defaults;

/* The arguments behind the verb. 0, or YK__EXIT_USAGE with the error printed. */
int yk__args_parse(yk_verb_id verb, int argc, char **argv, yk_cli *out);
/* The value of one option, as if it stood on the command line (a flag is set). `value` must outlive `out`. 0, or YK__EXIT_USAGE with
 * the error printed. */
int yk__opt_set(const yk_opt *o, const char *value, yk_cli *out);
/* The help of one command; of the program. */
void yk__help_verb(yk_verb_id verb);
void yk__help(void);
/* ", did you mean 'x'?" for the nearest of n names, or "". Static buffer. */
const char *yk__did_you_mean(const char *text, size_t n, const char *const *names);
/* `text` shortened and with control characters replaced, in a static buffer of four that take turns. */
const char *yk__shown(const char *text);

/* "yoke train: <text>" on stderr; returns status. The second one adds the library's message, or prints that alone. */
int yk__die(int status, const char *fmt, ...) YK_PRINTF(2, 3);
int yk__die_code(yk_code code);
void yk__die_verb(const char *verb);   /* whose name goes in front from now on */

/* ---- devices: choose.c ----------------------------------------------------------------------------------------------- */

enum { YK__MAX_CHOSEN = 64 };
typedef struct yk_chosen {           /* where to train */
  size_t n;
  char name[YK__MAX_CHOSEN][32];     /* "/gpu:0" */
  char instead[YK__MAX_CHOSEN][32];  /* what soft placement takes for an absent one */
  const char *at[YK__MAX_CHOSEN];    /* -> name, or instead */
  bool is_virtual[YK__MAX_CHOSEN], absent[YK__MAX_CHOSEN];
  char fast[YK__MAX_CHOSEN][12];     /* fast_types of the device that computes */
  yk_session_options session;
  bool automatic;
  char why[400];                     /* it chose the CPU: why there is no GPU; else "" */
} yk_chosen;
/* Resolve --devices, --virtual-gpus and their settings against what there is. 0 or an exit status, error printed.
 * `out` must stay where it is: out->at points into it. */
int yk__choose(const yk_cli *c, yk_chosen *out);
/* Session options of --virtual-gpus, --split, --memory-..., --rehearse, --soft-placement and --log-device-placement alone. */
int yk__session_settings(const yk_cli *c, yk_session_options *out);
/* Open a session over an empty graph, to ask for its devices. */
int yk__probe(const yk_session_options *options, yk_graph **graph, yk_session **session);

/* ---- optimizer and schedule: recipes.c -------------------------------------------------------------------------------- */

enum { YK__MAX_LIST = 32 };
typedef struct yk_recipe_list { size_t n; int64_t whole[YK__MAX_LIST]; double real[YK__MAX_LIST]; } yk_recipe_list;
typedef struct yk_recipe {           /* of --optimizer and --schedule; what was not given is the network's */
  bool has_optimizer, has_schedule;
  yk_optimizer optimizer;
  yk_schedule schedule;
  yk_recipe_list boundaries, rates;
} yk_recipe;
/* 0, or an exit status with the error printed. */
int yk__recipe_parse(const yk_cli *c, yk_recipe *out);
/* The schedule of a run that starts at `rate` and takes `steps`; it points into *r. */
yk_schedule yk__recipe_schedule(const yk_recipe *r, double rate, int64_t steps);
/* The lists of both, for --help. */
void yk__help_recipes(void);

/* ---- from options to a step: job.c ----------------------------------------------------------------------------------- */

typedef struct yk_job {
  const yk_model *model;
  yk_recipe recipe;
  double base_rate;                  /* learning rate that the schedule starts from */
  yk_chosen devices;
  yk_strategy strategy;              /* as asked for; towers.strategy is in force */
  size_t replicas;
  yk_dtype precision;
  yk_dataset *train, *test;
  char data_name[64];
  int64_t batch, steps, size, channels;   /* global batch; side of a prepared picture */
  bool pictures;                     /* the input is pictures; else it is as it is in the data set */
  double epochs;
  yk_queue *queue;
  yk_graph *graph;
  yk_session *session;
  yk_towers towers;
  yk_value rate;                     /* the learning rate, if the step is to fetch it as well; else {0} */
  yk_step *step;                     /* fetches loss and accuracy, and at rate_at, good_at > 0 these; runs the update */
  int rate_at, good_at;
  int64_t gradients_every;           /* steps; 0: never. Then a step that fetches the gradients too takes the turn: */
  yk_step *with_gradients;
  size_t ngradients;                 /* behind what the other fetches; the variables are those of YK_TOWER_TRAINED */
  yk_step *last;                     /* the one of the two that was run last */
  bool guard, nan_only;              /* of --nan-check */
  yk_value sound;                    /* with a guard: bool, are all variables free of what the guard watches for? */
  yk_step *check;                    /* fetches it */
  int64_t parameters;                /* trainable elements */
  yk_source blank;                   /* of yk__job_blank(): batches of the right shape that nobody takes */
} yk_job;

/* The pieces, in this order; each returns 0 or an exit status with the error printed. yk__job_free() after any of them. */
int  yk__job_model(const yk_cli *c, yk_job *j);
int  yk__job_data(const yk_cli *c, yk_job *j, bool with_train, bool with_test);
int  yk__job_open_data(const yk_cli *c, yk_job *j, bool with_train, bool with_test);   /* its first half: data.c */
int  yk__job_blank(yk_job *j);                   /* pictures without content, for commands that only look at the plan */
int  yk__job_build(const yk_cli *c, yk_job *j);  /* queue, graph, session */
enum { YK__MOST_FETCHES = 4 };
size_t yk__job_fetches(yk_job *j, yk_value fetch[YK__MOST_FETCHES]);   /* what its step fetches; sets rate_at and good_at */
int  yk__job_start(yk_job *j);                   /* initialise, prepare the step */
/* Step number `step` from 0. *gradients: where those of this step are in *got; NULL: it has none. */
yk_code yk__job_run(yk_job *j, int64_t step, const yk_tensor *const **got, const yk_tensor *const **gradients);
/* What the job's queue and its towers are made with; source and learning rate of these are not filled in. They point into *j. */
yk_queue_options yk__job_queue(const yk_cli *c, const yk_job *j);
yk_tower_options yk__job_towers(const yk_cli *c, const yk_job *j);
int64_t yk__job_seed(const yk_cli *c);           /* --seed, or its default */
void yk__job_devices(const yk_job *j, char *out, size_t bytes);   /* "/gpu:0 /gpu:1" */
size_t yk__job_slow(const yk_job *j);            /* index of the first device known to have no instructions for --precision; YK__MAX_CHOSEN: none */
void yk__job_free(yk_job *j);
/* Corrupt records of both data sets that were passed over, and the message of the first. The second one prints that, if there were any. */
int64_t yk__job_skipped(const yk_job *j, const char **first);
void yk__job_say_skipped(const yk_job *j, FILE *out);

/* ---- steps that go wrong: sound.c ------------------------------------------------------------------------------------- */

/* --nan-check into j->guard and j->nan_only. 0, or an exit status with the error printed. */
int yk__sound_parse(const yk_cli *c, yk_job *j);
/* Bool scalar: no variable of floats holds what the guard watches for. */
yk_value yk__sound_build(yk_graph *g, bool nan_only);
/* Where the variables went wrong, if they did, as a text for yk_free(); NULL: all is well, or it cannot be told. Takes a pass over
 * all variables. */
char *yk__sound_variables(const yk_job *j);
/* Step j->step, the last one, changed nothing: go over it again. The queue then stands before it once more. Text for yk_free(). */
char *yk__sound_examine(const yk_job *j, yk_finding *out);

/* ---- evaluation and weights: evaluate.c, weights.c ------------------------------------------------------------------- */

/* A network without training nodes, in a graph and session of its own. */
typedef struct yk_eval {
  const yk_model *model;
  const yk_dataset *data;
  int64_t batch, size, channels;     /* of pictures; size 0: the input is none */
  yk_graph *graph;
  yk_session *session;
  yk_step *step;
  yk_tensor *images, *labels;        /* [batch, size, size, channels] or as in the data set, [batch] */
  yk_tensor *last_images, *last_labels;   /* the smaller last batch, or NULL */
} yk_eval;
typedef struct yk_score { double loss, accuracy, seconds; int64_t n; } yk_score;

int  yk__eval_open(const yk_job *j, yk_eval *out);
/* Take the weights out of the training session: moving averages where there are some. */
int  yk__eval_take(yk_eval *e, const yk_job *j);
/* Take them out of a file; names, shapes and dtypes must fit. */
int  yk__eval_load(yk_eval *e, const char *path);
/* Every picture once. Stops early, with n < the number of pictures, once *stop is not 0. */
int  yk__eval_run(yk_eval *e, const volatile sig_atomic_t *stop, yk_score *out);
void yk__eval_close(yk_eval *e);

/* Every variable of the job but the optimizer's slots, to `path`. */
int yk__weights_save(const yk_job *j, const char *path);

/* ---- signals: stop.c ------------------------------------------------------------------------------------------------- */

/* Catch SIGINT and SIGTERM: the first one is only noted, a second one ends the process as usual. */
void yk__stop_catch(void);
const volatile sig_atomic_t *yk__stop_flag(void);         /* -> number of the signal, 0 = none */

/* ---- commands -------------------------------------------------------------------------------------------------------- */

int yk__cmd_train(const yk_cli *c);
int yk__cmd_evaluate(const yk_cli *c);
int yk__cmd_predict(const yk_cli *c);
int yk__cmd_summary(const yk_cli *c);
int yk__cmd_convert(const yk_cli *c);
int yk__cmd_explain(const yk_cli *c);
int yk__cmd_plan(const yk_cli *c);
int yk__cmd_bench(const yk_cli *c);
int yk__cmd_verify(const yk_cli *c);
int yk__cmd_ops(const yk_cli *c);
int yk__cmd_devices(const yk_cli *c);
int yk__cmd_doctor(const yk_cli *c);
int yk__cmd_config(const yk_cli *c);
int yk__cmd_params(const yk_cli *c);

/* Every setting as a JSON array on stdout; "default", "environment" or "call". cmd_params.c. */
void yk__params_json(void);
const char *yk__origin_text(const char *name);

#endif
