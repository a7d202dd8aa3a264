/*
 * monitor.c - see monitor.h.
 *
 * A number that is not finite is never better.
 */
#include "keras/monitor.h"
#include <math.h>
#include <string.h>
#include "base/error.h"

yk_code yk__monitor_new(const char *name, yk_monitor_mode mode, double delta, yk_monitor *out) {
  if (name == NULL) name = "val_loss";
  if ((unsigned)mode > YK_MONITOR_MAX) return YK_FAIL(EINVAL, "no monitor mode has the number %d", (int)mode);
  if (!(fabs(delta) < HUGE_VAL)) return YK_FAIL(EINVAL, "a min_delta of %g", delta);
  *out = (yk_monitor){ .name = yk__strdup(name), .delta = fabs(delta), .up = mode == YK_MONITOR_MAX };
  if (mode == YK_MONITOR_AUTO) out->up = strstr(name, "acc") != NULL || strncmp(name, "fmeasure", 8) == 0;
  yk__monitor_begin(out);
  return out->name != NULL ? YK_OK : YK_ENOMEM;
}

void yk__monitor_free(yk_monitor *m) { yk__free(m->name); }
void yk__monitor_begin(yk_monitor *m) { m->best = m->up ? -HUGE_VAL : HUGE_VAL; }

bool yk__monitor_read(yk_monitor *m, yk_training *t, const char *who, const yk_logs *logs, double *out) {
  if (yk_logs_get(logs, m->name, out)) return true;
  if (!m->warned)
    yk_training_print(t, "%s: there is no '%s' to watch, so it does nothing; the logs have '%s' and others", who, m->name,
                      yk_logs_count(logs) > 0 ? yk_logs_name(logs, 0) : "");
  m->warned = true;
  return false;
}

bool yk__monitor_better(const yk_monitor *m, double x) { return m->up ? x - m->delta > m->best : x + m->delta < m->best; }
