/*
 * cmd_evaluate.c - `yoke evaluate MODEL --out DIR`: the saved weights of a run, measured on the test pictures.
 *
 * Uses the moving averages where the file has some, as training itself does, so
 * both print the same numbers.
 */
#include <stdio.h>
#include <unistd.h>
#include "cli/metrics.h"
#include "cli/network.h"

static void say(const yk_cli *c, const yk_job *j, const char *path, const yk_score *s) {
  yk_json o = { 0 };
  const char *first;
  if (!c->json) {
    printf("%s from %s on %s: test loss %.4f, test accuracy %.4f on %lld %s of %s, %.0f examples/s\n", j->model->name,
           path, j->devices.at[0],
           s->loss, s->accuracy, (long long)s->n, j->pictures ? "pictures" : "examples", j->data_name,
           s->seconds > 0 ? (double)s->n / s->seconds : 0);
    yk__job_say_skipped(j, stdout);
    return;
  }
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "model", j->model->name);
  yk__json_text(&o, "data", j->data_name);
  yk__json_text(&o, "weights", path);
  yk__json_text(&o, "device", j->devices.at[0]);
  yk__json_int(&o, "batch", j->batch);
  yk__json_int(&o, "examples", s->n);
  yk__json_real(&o, "test_loss", s->loss);
  yk__json_real(&o, "test_accuracy", s->accuracy);
  yk__json_real(&o, "seconds", s->seconds);
  yk__json_int(&o, "corrupt_records", yk__job_skipped(j, &first));
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);                 /* main() looks at stdout itself */
  yk__str_free(&o.text);
}

/* A run that did not get to its end has no weights, but perhaps a checkpoint, which holds them too. */
static void look_for_checkpoint(const char *out, char path[YK__PATH]) {
  char folder[YK__PATH];
  yk_checkpoint *c = NULL;
  if (access(path, F_OK) == 0) return;
  if (yk__folder_path(out, "checkpoints", folder) == YK_OK && yk_checkpoint_latest(folder, &c) == YK_OK)
    snprintf(path, YK__PATH, "%s", yk_checkpoint_path(c));
  else yk_error_clear();                             /* then the weights are what is missing */
  yk_checkpoint_close(c);
}

static int evaluate(const yk_cli *c, yk_job *j, yk_eval *e) {
  char path[YK__PATH];
  yk_score score;
  if (c->out == NULL) return yk__die(YK__EXIT_USAGE, "which weights? --out DIR names the folder of a run");
  if (yk__folder_path(c->out, "weights.safetensors", path) != YK_OK)
    return yk__die(YK__EXIT_USAGE, "--out: %s", yk_error_message());
  look_for_checkpoint(c->out, path);
  int status = yk__job_model(c, j);
  if (status == 0) status = yk__job_data(c, j, false, true);
  if (status == 0) status = yk__eval_open(j, e);
  if (status == 0) status = yk__eval_load(e, path);
  if (status != 0) return status;
  yk__stop_catch();
  status = yk__eval_run(e, yk__stop_flag(), &score);
  if (status != 0) return status;
  if (*yk__stop_flag() != 0)
    return yk__die(YK__EXIT_SIGNAL + *yk__stop_flag(), "interrupted after %lld pictures", (long long)score.n);
  say(c, j, path, &score);
  return 0;
}

int yk__cmd_evaluate(const yk_cli *c) {
  if (yk__is_keras(c->model)) return yk__model_evaluate(c);
  yk_job j = { 0 };
  yk_eval e = { 0 };
  int status = evaluate(c, &j, &e);
  yk__eval_close(&e);
  yk__job_free(&j);
  return status;
}
