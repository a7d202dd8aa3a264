/*
 * main.c - the command `yoke`: a table of verbs.
 *
 * Everything a verb does is in its cmd_<verb>.c. Here only the verb is looked up,
 * its arguments are parsed, and bad settings in the environment are refused.
 */
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/param.h"
#include "cli/cli.h"
#include "device/board.h"

const yk_verb yk__verbs[YK__NVERBS] = {
  [YK__TRAIN]    = { "train", "MODEL", "train a network into the folder of a run, or a Keras model into a file",
                     yk__cmd_train },
  [YK__EVALUATE] = { "evaluate", "MODEL", "measure saved weights, or a Keras model, on the test data", yk__cmd_evaluate },
  [YK__PREDICT]  = { "predict", "MODEL", "print or save what a Keras model says of each example", yk__cmd_predict },
  [YK__SUMMARY]  = { "summary", "MODEL", "list the layers of a Keras model, with shapes and parameters, or draw them", yk__cmd_summary },
  [YK__CONVERT]  = { "convert", "MODEL", "write a Keras model for another Keras, or its weights alone", yk__cmd_convert },
  [YK__EXPLAIN]  = { "explain", "MODEL", "print the plan of the training step: every kernel, copy and byte", yk__cmd_explain },
  [YK__PLAN]     = { "plan", "MODEL", "tell before a run what it takes: parameters, operations, memory, copies, step time", yk__cmd_plan },
  [YK__BENCH]    = { "bench", "MODEL", "measure training steps on 1, 2, 4 devices: where the time goes, and what bounds it",
                     yk__cmd_bench },
  [YK__VERIFY]   = { "verify", "MODEL", "check that several devices compute what one does: losses, gradients, weights", yk__cmd_verify },
  [YK__OPS]      = { "ops", NULL, "list the operations, and which data types each device has a kernel for", yk__cmd_ops },
  [YK__DEVICES]  = { "devices", NULL, "list the devices of this machine", yk__cmd_devices },
  [YK__DOCTOR]   = { "doctor", NULL, "examine driver, libraries and devices: what works, what is missing, what mends it",
                     yk__cmd_doctor },
  [YK__CONFIG]   = { "config", NULL, "print the configuration: what each setting is, who set it, what it means", yk__cmd_config },
  [YK__PARAMS]   = { "params", NULL, "list the settings: name, environment variable, value, origin", yk__cmd_params },
};

static int unknown_verb(const char *text) {
  const char *names[YK__NVERBS];
  for (size_t i = 0; i < YK__NVERBS; i++) names[i] = yk__verbs[i].name;
  if (text[0] == '-') return yk__die(YK__EXIT_USAGE, "unknown option '%s'; try 'yoke --help'", yk__shown(text));
  return yk__die(YK__EXIT_USAGE, "unknown command '%s'%s; try 'yoke --help'", yk__shown(text),
                 yk__did_you_mean(text, YK__NVERBS, names));
}

static void unheard(int level, const char *line, void *arg) {
  (void)level;
  (void)line;
  (void)arg;
}

/* The library only warns of a value that it ignores; here it is an error, told once. */
static int check_settings(void) {
  yk__log_sink(unheard, NULL);
  yk_code rc = yk__param_check_env();
  yk__log_sink(NULL, NULL);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_USAGE, "%s", yk_error_message());
}

static int run_verb(yk_verb_id id, int argc, char **argv) {
  yk_cli c;
  yk__die_verb(yk__verbs[id].name);
  int status = yk__args_parse(id, argc, argv, &c);
  if (status != 0) return status;
  if (c.help) {
    yk__help_verb(id);
    return YK__EXIT_OK;
  }
  status = check_settings();
  if (status != 0) return status;
  char command[YK__BOARD_COMMAND];
  snprintf(command, sizeof command, "yoke %s%s%.60s", c.verb, c.model != NULL ? " " : "", c.model != NULL ? c.model : "");
  yk__board_command(command);
  return yk__verbs[id].run(&c);
}

/* A full disk or a closed pipe must not look like success. */
static int flushed(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  return status != YK__EXIT_OK ? status : yk__die(YK__EXIT_RUN, "writing to the standard output failed");
}

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN);                          /* a file that grows too large is a failed write, told as such */
  if (argc < 2) return yk__die(YK__EXIT_USAGE, "which command? try 'yoke --help'");
  const char *first = argv[1];
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
    yk__help();
    return flushed(YK__EXIT_OK);
  }
  if (strcmp(first, "--version") == 0) {
    printf("yoke %s\n", yk_version());
    return flushed(YK__EXIT_OK);
  }
  for (int i = 0; i < YK__NVERBS; i++)
    if (strcmp(first, yk__verbs[i].name) == 0) return flushed(run_verb((yk_verb_id)i, argc - 2, argv + 2));
  return unknown_verb(first);
}
