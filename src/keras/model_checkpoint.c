/*
 * model_checkpoint.c - ModelCheckpoint: the network in a file after epochs, or only when it got better.
 *
 * What is saved is the network that was compiled, whatever devices it runs on; a file appears only when it is whole.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/error.h"
#include "base/str.h"
#include "keras/monitor.h"

typedef struct checkpoint {
  yk_callback self;
  yk_monitor monitor;
  yk_checkpoint_config config;
  char *path;
  int64_t since;                   /* epochs since the last look */
} checkpoint;

/* ---- names -------------------------------------------------------------------------------------------------------------- */

/* "name:02d" or "name:.2f" or "name" -> the number as text. */
static yk_code add_field(yk_str *s, const char *field, size_t n, int64_t epoch, const yk_logs *logs) {
  char name[YK__LOG_NAME], format[16] = "";
  size_t length = 0;
  double x = (double)(epoch + 1);
  while (length < n && field[length] != ':') length++;
  size_t rest = n - length;
  if (length >= sizeof name || rest >= sizeof format - 2) return YK_FAIL(EINVAL, "'{%.*s}' is too long", (int)n, field);
  snprintf(name, sizeof name, "%.*s", (int)length, field);
  if (rest > 1) snprintf(format, sizeof format, "%.*s", (int)rest - 1, field + length + 1);
  bool whole = strcmp(name, "epoch") == 0;
  if (!whole && !yk_logs_get(logs, name, &x)) return YK_FAIL(EINVAL, "the logs have no '%s'", name);
  size_t f = strlen(format);
  char kind = f > 0 && isalpha((unsigned char)format[f - 1]) ? format[f - 1] : '\0';
  if (kind != '\0') format[f - 1] = '\0';
  if (strspn(format, "0123456789.") != strlen(format) || strchr("dfge", kind) == NULL || (kind == 'd' && !whole))
    return YK_FAIL(EINVAL, "'{%.*s}': expected a format as :02d, of the epoch, or as :.2f", (int)n, field);
  long width = strtol(format, NULL, 10), digits = strchr(format, '.') != NULL ? strtol(strchr(format, '.') + 1, NULL, 10) : 6;
  if (whole && (kind == 'd' || kind == '\0'))
    yk__str_add(s, format[0] == '0' ? "%0*lld" : "%*lld", (int)(width % 100), (long long)epoch + 1);
  else if (kind == 'e') yk__str_add(s, "%*.*e", (int)(width % 100), (int)(digits % 100), x);
  else if (kind == 'f') yk__str_add(s, "%*.*f", (int)(width % 100), (int)(digits % 100), x);
  else yk__str_add(s, "%*.*g", (int)(width % 100), (int)(digits % 100), x);
  return YK_OK;
}

static yk_code name_of(const checkpoint *c, int64_t epoch, const yk_logs *logs, char **out) {
  yk_str s = { 0 };
  yk_code rc = YK_OK;
  for (const char *p = c->path; *p != '\0' && rc == YK_OK;) {
    const char *end = *p == '{' ? strchr(p, '}') : NULL;
    if (end != NULL) rc = add_field(&s, p + 1, (size_t)(end - p) - 1, epoch, logs);
    else yk__str_put(&s, p, 1);
    p = end != NULL ? end + 1 : p + 1;
  }
  if (rc == YK_OK) return yk__str_take(&s, out);
  yk__str_free(&s);
  return yk__fail_prefix(rc, "checkpoint '%s'", c->path);
}

/* ---- saving ---------------------------------------------------------------------------------------------------------------- */

/* A folder that is missing shows before hours of training, not after. */
static yk_code begin(yk_callback *self, yk_training *t) {
  checkpoint *c = (checkpoint *)self;
  const char *slash = strrchr(c->path, '/');
  struct stat st;
  char folder[1024];
  (void)t;
  c->since = 0;
  yk__monitor_begin(&c->monitor);
  if (slash == NULL || slash == c->path || memchr(c->path, '{', (size_t)(slash - c->path)) != NULL) return YK_OK;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - c->path), c->path);
  if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) return YK_OK;
  return YK_FAIL(ENOTFOUND, "checkpoint '%s': there is no folder '%s'", c->path, folder);
}

static yk_code save(const checkpoint *c, yk_training *t, int64_t epoch, const yk_logs *logs, double now, bool better) {
  char *path = NULL;
  YK_TRY(name_of(c, epoch, logs, &path));
  if (c->config.verbose && better)
    yk_training_print(t, "\nEpoch %05lld: %s improved from %0.5f to %0.5f, saving model to %s", (long long)epoch + 1,
                      c->monitor.name, c->monitor.best, now, path);
  else if (c->config.verbose) yk_training_print(t, "\nEpoch %05lld: saving model to %s", (long long)epoch + 1, path);
  yk_network *n = yk_training_network(t);
  yk_code rc = c->config.save_weights_only ? yk_network_save_weights(n, path) : yk_network_save(n, path);
  yk__free(path);
  return rc;
}

static yk_code end(yk_callback *self, yk_training *t, int64_t epoch, yk_logs *logs) {
  checkpoint *c = (checkpoint *)self;
  double now = 0;
  if (++c->since < c->config.period) return YK_OK;
  c->since = 0;
  if (!c->config.save_best_only) return save(c, t, epoch, logs, now, false);
  if (!yk__monitor_read(&c->monitor, t, "checkpoint", logs, &now)) return YK_OK;
  if (!yk__monitor_better(&c->monitor, now)) {
    if (c->config.verbose)
      yk_training_print(t, "\nEpoch %05lld: %s did not improve from %0.5f", (long long)epoch + 1, c->monitor.name,
                        c->monitor.best);
    return YK_OK;
  }
  YK_TRY(save(c, t, epoch, logs, now, true));
  c->monitor.best = now;
  return YK_OK;
}

static void drop(yk_callback *self) {
  checkpoint *c = (checkpoint *)self;
  yk__monitor_free(&c->monitor);
  yk__free(c->path);
  yk__free(c);
}

yk_code yk_callback_checkpoint(const yk_checkpoint_config *config, yk_callback **out) {
  if (config == NULL || out == NULL || config->path == NULL || config->path[0] == '\0')
    return YK_FAIL(EINVAL, "yk_callback_checkpoint: needs a config with a path");
  if (config->period < 0) return YK_FAIL(EINVAL, "a checkpoint every %lld epochs", (long long)config->period);
  checkpoint *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  c->self = (yk_callback){ .on_train_begin = begin, .on_epoch_end = end, .free = drop };
  c->config = *config;
  if (c->config.period == 0) c->config.period = 1;
  c->path = yk__strdup(config->path);
  yk_code rc = c->path != NULL ? yk__monitor_new(config->monitor, config->mode, 0, &c->monitor) : YK_ENOMEM;
  if (rc == YK_OK) *out = &c->self;
  else drop(&c->self);
  return rc;
}
