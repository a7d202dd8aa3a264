/*
 * hook_nan.c - the hook that ends a training whose loss is NaN, tells where it came from, and keeps the last good weights.
 *
 * Its after_run comes before those of the others, so that no checkpoint of such a step is written.
 */
#include <math.h>
#include "base/log.h"
#include "train/monitored.h"
#include "train/train.h"

typedef struct nan_hook {
  yk_value loss;
  const char *name;              /* of the loss; the graph's */
  bool stop, examine;
  yk_rewind_fn rewind;
  void *arg;
} nan_hook;

static yk_code begin(void *self, yk_graph *g) {
  nan_hook *h = self;
  h->name = yk_value_name(g, h->loss);
  return h->name != NULL ? YK_OK : YK_FAIL(EINVAL, "the loss is not a value of this graph");
}

static yk_code before(void *self, yk_hook_request *r) {
  r->fetch[r->nfetch++] = ((nan_hook *)self)->loss;
  return YK_OK;
}

/* Where it came from, for yk_free(); what keeps that from being found out is no failure of its own. */
static char *origin(const nan_hook *h, yk_monitored *m) {
  static const char elsewhere[] = "it does not come again: the input is another one (a queue needs a function that moves it back)";
  yk_finding f = YK_FINDING_INIT;
  char *text = NULL;
  yk_code rc = h->rewind != NULL ? h->rewind(h->arg) : YK_OK;
  if (rc == YK_OK) rc = yk__monitored_examine(m, &f);
  if (rc == YK_OK && f.kind != YK_FOUND_NOTHING) rc = yk_finding_text(&f, &text);
  if (rc == YK_OK) return text != NULL ? text : yk__strdup(elsewhere);
  text = yk__strdup(yk_error_message());
  yk_error_clear();
  return text;
}

static yk_code after(void *self, const yk_hook_result *r) {
  const nan_hook *h = self;
  char *from = NULL, *kept = NULL;
  int64_t step;
  if (!isnan(yk_tensor_at(r->fetched[0], 0))) return YK_OK;
  YK_TRY(yk_monitored_step(r->monitored, &step));
  if (h->examine) from = origin(h, r->monitored);
  yk_code rc = yk__monitored_keep(r->monitored, &kept);
  if (rc == YK_OK && !h->stop)
    rc = YK_FAIL(EINVAL, "'%s' is NaN at global step %lld%s%s; %s", h->name, (long long)step, from != NULL ? ": " : "",
                 from != NULL ? from : "", kept);
  else if (rc == YK_OK) {
    YK_LOG(ERROR, "'%s' is NaN at global step %lld%s%s; %s; training stops", h->name, (long long)step, from != NULL ? ": " : "",
           from != NULL ? from : "", kept);
    yk_monitored_request_stop(r->monitored);
  }
  yk_free(from);
  yk_free(kept);
  return rc;
}

static yk_code make(nan_hook like, yk_hook *out) {
  nan_hook *h = yk__alloc(sizeof *h);
  if (h == NULL) return YK_ENOMEM;
  *h = like;
  *out = (yk_hook){ .name = "nan", .begin = begin, .before_run = before, .after_run = after, .free = yk__free, .self = h, .first = true };
  return YK_OK;
}

yk_code yk_hook_nan(yk_value loss, bool stop, yk_hook *out) { return make((nan_hook){ .loss = loss, .stop = stop }, out); }

yk_code yk_hook_nan_examine(yk_value loss, bool stop, yk_rewind_fn rewind, void *arg, yk_hook *out) {
  return make((nan_hook){ .loss = loss, .stop = stop, .examine = true, .rewind = rewind, .arg = arg }, out);
}
