/*
 * resume.c - `yoke train --resume`: from a checkpoint back to the run that made it.
 *
 * A resumed run takes over every option that is not given anew, so `yoke train MODEL --out DIR --resume` goes on as the
 * same run. What would make it another one (network, data, batch, seed) is refused; devices may change.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "cli/keeper.h"

/* ---- options ------------------------------------------------------------------------------------------------------- */

bool yk__recorded(const yk_opt *o) {
  static const char *const passing[] = { "--out", "--resume", "--trace", "--interval", "--live", "--quiet", "--json", "--help",
                                         "--log-device-placement" };
  if ((o->verbs >> YK__TRAIN & 1u) == 0) return false;
  for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
    if (strcmp(o->name, passing[i]) == 0) return false;
  return true;
}

static size_t width(const yk_opt *o) {
  switch (o->kind) {
    case YK__OPT_FLAG: return sizeof(bool);
    case YK__OPT_TEXT: return sizeof(const char *);
    case YK__OPT_INT: return sizeof(int64_t);
    default: return sizeof(double);
  }
}

bool yk__given(const yk_opt *o, const yk_cli *c) {
  return memcmp((const char *)c + o->offset, (const char *)&yk__cli_defaults + o->offset, width(o)) != 0;
}

/* Of options that together say one thing, one that is given makes all count as given. */
static bool said(const yk_opt *o, const yk_cli *given) {
  static const char *const together[][4] = { { "--steps", "--epochs" }, { "--devices", "--virtual-gpus", "--split", "--rehearse" } };
  for (size_t t = 0; t < sizeof together / sizeof together[0]; t++) {
    bool in = false, any = false;
    for (size_t i = 0; i < 4 && together[t][i] != NULL; i++) {
      in |= strcmp(together[t][i], o->name) == 0;
      for (const yk_opt *p = yk__options; p->name != NULL; p++)
        any |= strcmp(together[t][i], p->name) == 0 && yk__given(p, given);
    }
    if (in) return any;
  }
  return yk__given(o, given);
}

static int take_over(const yk_checkpoint *from, yk_cli *c, yk_bump *texts) {
  yk_cli given = *c;
  for (const yk_opt *o = yk__options; o->name != NULL; o++) {
    char key[64];
    snprintf(key, sizeof key, "option.%s", o->name);
    const char *value = yk_checkpoint_note(from, key);
    if (!yk__recorded(o) || said(o, &given) || value == NULL) continue;
    char *text = yk__bump_str(texts, value);
    if (text == NULL) return yk__die_code(YK_ENOMEM);
    int status = yk__opt_set(o, text, c);
    if (status != 0) return status;
  }
  return 0;
}

/* ---- finding ------------------------------------------------------------------------------------------------------- */

/* Whole or not, listed or not: what an earlier run left must not be taken for this one's. */
static int refuse_old(const char *folder, const char *out) {
  yk_checkpoint *c = NULL;
  yk_code rc = yk_checkpoint_latest(folder, &c);
  yk_checkpoint_close(c);
  if (rc == YK_ENOTFOUND) { yk_error_clear(); return 0; }
  if (rc != YK_OK && rc != YK_ECORRUPT) return yk__die(YK__EXIT_RUN, "--out: %s", yk_error_message());
  return yk__die(YK__EXIT_RUN, "--out: '%s' has checkpoints of an earlier run: go on with --resume, or name another folder", out);
}

static int find(yk_cli *c, yk_bump *texts, yk_checkpoint **out) {
  char folder[YK__PATH];
  if (c->resume && c->out == NULL) return yk__die(YK__EXIT_USAGE, "which run? --resume needs --out DIR");
  if (c->out == NULL) return 0;
  if (yk__folder_path(c->out, "checkpoints", folder) != YK_OK) return yk__die(YK__EXIT_USAGE, "--out: %s", yk_error_message());
  if (!c->resume) return refuse_old(folder, c->out);
  yk_code rc = yk_checkpoint_latest(folder, out);
  if (rc == YK_ENOTFOUND) { yk_error_clear(); return 0; }
  if (rc != YK_OK) return yk__die(YK__EXIT_RUN, "--resume: %s", yk_error_message());
  return take_over(*out, c, texts);
}

int yk__resume_find(yk_cli *c, yk_bump *texts, yk_checkpoint **out) {
  int64_t steps;
  double seconds;
  *out = NULL;
  int status = find(c, texts, out);
  if (status != 0) return status;
  if (c->checkpoint_every != NULL && !yk__every_parse(c->checkpoint_every, &steps, &seconds))
    return yk__die(YK__EXIT_USAGE, "--checkpoint-every '%s': expected a number of steps, or a time such as 30s, 10m or 2h",
                   yk__shown(c->checkpoint_every));
  if ((c->keep != 0 || c->keep_every != 0) && c->checkpoint_every == NULL)
    return yk__die(YK__EXIT_USAGE, "%s needs --checkpoint-every", c->keep != 0 ? "--keep" : "--keep-every");
  if (c->gradient_histograms != 0 && c->tensorboard == NULL) return yk__die(YK__EXIT_USAGE, "--gradient-histograms needs --tensorboard");
  return 0;
}

static int differs(const yk_checkpoint *from, const char *key, const char *what, const char *now) {
  const char *then = yk_checkpoint_note(from, key);
  if (then != NULL && strcmp(then, now) == 0) return 0;
  return yk__die(YK__EXIT_RUN, "--resume: '%s' was made with %s %s, this run has %s", yk_checkpoint_path(from), what,
                 then != NULL ? yk__shown(then) : "(unknown)", now);
}

int yk__resume_check(const yk_checkpoint *from, const yk_cli *c, const yk_job *j) {
  char batch[24], seed[24], examples[24];
  if (from == NULL) return 0;
  snprintf(batch, sizeof batch, "%" PRId64, j->batch);
  snprintf(seed, sizeof seed, "%" PRId64, yk__job_seed(c));
  snprintf(examples, sizeof examples, "%" PRId64, yk_dataset_size(j->train));
  int status = differs(from, "model", "network", j->model->name);
  if (status == 0) status = differs(from, "data", "data", j->data_name);
  if (status == 0) status = differs(from, "train_examples", "a number of training pictures of", examples);
  if (status == 0) status = differs(from, "batch", "batch", batch);
  if (status == 0) status = differs(from, "seed", "seed", seed);
  if (status == 0 && yk_checkpoint_step(from) > j->steps)
    status = yk__die(YK__EXIT_RUN, "--resume: '%s' is of step %" PRId64 " already, this run has %" PRId64 " steps",
                     yk_checkpoint_path(from), yk_checkpoint_step(from), j->steps);
  return status;
}

/* ---- going on -------------------------------------------------------------------------------------------------------- */

static bool number(const yk_checkpoint *from, const char *key, int64_t *out) {
  const char *text = yk_checkpoint_note(from, key);
  return text != NULL && yk__parse_i64(text, 0, INT64_MAX, out);
}

int yk__resume_input(const yk_checkpoint *from, const yk_job *j) {
  yk_position p = { 0, 0 };
  if (from == NULL) return 0;
  if (!number(from, "queue.epoch", &p.epoch) || !number(from, "queue.example", &p.example))
    return yk__die(YK__EXIT_RUN, "--resume: '%s' does not say where its input was", yk_checkpoint_path(from));
  yk_code rc = yk_queue_seek(j->queue, p);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--resume: '%s': %s", yk_checkpoint_path(from), yk_error_message());
}

const char *yk__resume_precision(const yk_checkpoint *from) {
  const char *then = yk_checkpoint_note(from, "option.--precision");
  return then != NULL ? then : yk_dtype_name(YK_F32);
}

/* Only f16 has a loss scale: another precision leaves it behind, and f16 begins with a new one. All else is in f32 whatever it is. */
static bool is_scale(const char *line) {
  static const char *const fine[] = { "missing loss_scale", "unexpected loss_scale" };
  return strncmp(line, fine[0], strlen(fine[0])) == 0 || strncmp(line, fine[1], strlen(fine[1])) == 0;
}

static bool other_precision(const yk_checkpoint *from, const yk_job *j) {
  return strcmp(yk__resume_precision(from), yk_dtype_name(j->precision)) != 0;
}

/* Other slots are what usually does not fit; `line` is the first thing that does not. */
static int refuse(const yk_checkpoint *from, const yk_cli *c, const char *line) {
  const char *then = yk_checkpoint_note(from, "option.--optimizer"), *own = "the network's own";
  if ((then == NULL) == (c->optimizer == NULL) && (then == NULL || strcmp(then, c->optimizer) == 0))
    return yk__die(YK__EXIT_RUN, "--resume: '%s' does not fit: %.*s", yk_checkpoint_path(from), (int)strcspn(line, "\n"), line);
  return yk__die(YK__EXIT_RUN, "--resume: '%s' was made with optimizer %s, this run has %s, which keeps other variables: %.*s",
                 yk_checkpoint_path(from), then != NULL ? yk__shown(then) : own, c->optimizer != NULL ? yk__shown(c->optimizer) : own,
                 (int)strcspn(line, "\n"), line);
}

int yk__resume_fits(const yk_checkpoint *from, const yk_cli *c, const yk_job *j) {
  char *lines = NULL;
  int status = 0;
  if (from == NULL) return 0;
  if (yk_checkpoint_compare(from, j->graph, NULL, &lines) != YK_OK) return yk__die(YK__EXIT_RUN, "--resume: %s", yk_error_message());
  for (const char *line = lines; *line != '\0' && status == 0; line += *line == '\n') {
    if (!other_precision(from, j) || !is_scale(line)) status = refuse(from, c, line);
    line += strcspn(line, "\n");
  }
  yk_free(lines);
  return status;
}

int yk__resume_state(const yk_checkpoint *from, const yk_job *j, yk_metrics *m) {
  yk_restore_options o = YK_RESTORE_OPTIONS_INIT;
  if (from == NULL) return 0;
  const char *text = yk_checkpoint_note(from, "metrics");
  o.allow_missing = o.allow_unexpected = other_precision(from, j);      /* of the loss scale, as was seen before */
  yk_code rc = yk_checkpoint_restore(from, j->session, &o);
  if (rc == YK_OK && text != NULL) rc = yk__metrics_take(m, text);
  m->step = yk_checkpoint_step(from);
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--resume: %s", yk_error_message());
}

bool yk__resume_moved(const yk_checkpoint *from, const yk_job *j) {
  char now[4096];
  const char *then = from != NULL ? yk_checkpoint_note(from, "devices") : NULL;
  yk__job_devices(j, now, sizeof now);
  return then != NULL && strcmp(then, now) != 0;
}

/* The end of the last whole line at or before `at`. */
static off_t line_end(FILE *f, off_t at) {
  for (; at > 0; at--)
    if (fseeko(f, at - 1, SEEK_SET) != 0 || getc(f) == '\n') break;
  return at;
}

FILE *yk__resume_log(const yk_checkpoint *from, const char *path) {
  int64_t bytes = 0;
  FILE *f = from != NULL && number(from, "log_bytes", &bytes) ? fopen(path, "r+") : NULL;
  if (f == NULL) return fopen(path, "w");
  off_t end = fseeko(f, 0, SEEK_END) == 0 ? ftello(f) : 0;
  end = line_end(f, end < (off_t)bytes ? end : (off_t)bytes);
  if (ftruncate(fileno(f), end) == 0 && fseeko(f, end, SEEK_SET) == 0) return f;
  int why = errno;
  fclose(f);
  errno = why;
  return NULL;
}
