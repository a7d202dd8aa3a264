/*
 * matmul.c - [[1 2 3] [4 5 6]] times [[1 2] [3 4] [5 6]] on every device, which must be [[22 28] [49 64]].
 *
 * The proof that a device works is work done on it. Each device has a graph and a session of its own, so that one that
 * refuses does not take the others along.
 */
#include <stdio.h>
#include <string.h>
#include <yoke/yoke.h>
#include "doctor/judge.h"
#include "doctor/matmul.h"

enum { MAX_DEVICES = 64 };

typedef struct answer {
  uint32_t n;                      /* devices there are */
  char error[256];                 /* why there is no list of devices */
  struct { char name[64], model[64], error[256]; bool is_virtual, is_gpu, done; float result[4]; } at[MAX_DEVICES];
} answer;

static const float want[4] = { 22, 28, 49, 64 };

static yk_code multiply(const yk_session_options *options, const char *device, float out[4]) {
  static const float left[] = { 1, 2, 3, 4, 5, 6 };
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_tensor *product = NULL;
  yk_value c = { 0 };
  yk_code rc = yk_graph_new(&g);
  if (rc == YK_OK) {
    YK_DEVICE(g, device) {
      yk_value a = yk_constant_f32(g, YK_SHAPE(2, 3), left), b = yk_constant_f32(g, YK_SHAPE(3, 2), left);
      c = yk_matmul(g, a, b, NULL);
    }
    rc = yk_session_open(g, options, &s);
  }
  if (rc == YK_OK) rc = yk_session_run(s, 0, NULL, 1, &c, 0, NULL, &product);
  for (int i = 0; i < 4 && rc == YK_OK; i++) out[i] = (float)yk_tensor_at(product, i);
  yk_tensor_free(product);
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}

static yk_code list(const yk_session_options *options, answer *out) {
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_code rc = yk_graph_new(&g);
  if (rc == YK_OK) rc = yk_session_open(g, options, &s);
  size_t n = rc == YK_OK ? yk_session_device_count(s) : 0;
  for (size_t i = 0; i < n && i < MAX_DEVICES && rc == YK_OK; i++) {
    yk_device_info d;
    rc = yk_session_device(s, i, &d);
    if (rc != YK_OK) break;
    memcpy(out->at[i].name, d.name, sizeof d.name);
    memcpy(out->at[i].model, d.model, sizeof d.model);
    out->at[i].is_virtual = d.is_virtual;
    out->at[i].is_gpu = strcmp(d.type, "GPU") == 0;
    out->n = (uint32_t)i + 1;
  }
  yk_session_close(s);
  yk_graph_free(g);
  return rc;
}

static void child(void *arg, void *answer_memory) {
  yk_session_options options = *(const yk_session_options *)arg;
  answer *out = answer_memory;
  options.log_device_placement = false;
  if (list(&options, out) != YK_OK) snprintf(out->error, sizeof out->error, "%.250s", yk_error_message());
  for (uint32_t i = 0; i < out->n; i++) {
    if (multiply(&options, out->at[i].name, out->at[i].result) != YK_OK)
      snprintf(out->at[i].error, sizeof out->at[i].error, "%.250s", yk_error_message());
    out->at[i].done = true;
  }
}

yk_code yk__matmul_start(const yk_session_options *options, int timeout_ms, yk_child *out) {
  yk_session_options copy = *options;
  return yk__child_start(out, child, &copy, sizeof(answer), timeout_ms);
}

/* Why the result of device i is not there, or is wrong; "" if it is right. */
static const char *error_of(const answer *a, uint32_t i, const yk_child *c, int timeout_ms, yk_doctor_report *r) {
  const float *x = a->at[i].result;
  if (a->at[i].done && a->at[i].error[0] != '\0') return yk__say(r, "%s", a->at[i].error);
  if (a->at[i].done && memcmp(x, want, sizeof want) == 0) return "";
  if (a->at[i].done)
    return yk__say(r, "the matmul gave [[%g %g] [%g %g]]", (double)x[0], (double)x[1], (double)x[2], (double)x[3]);
  const char *colon = c->said[0] != '\0' ? ": " : "";
  if (c->end == YK__CHILD_SIGNALLED) return yk__say(r, "the process died of signal %d%s%s", c->number, colon, c->said);
  if (c->end == YK__CHILD_EXITED) return yk__say(r, "the process ended with status %d%s%s", c->number, colon, c->said);
  return yk__say(r, "no result within %g s", timeout_ms / 1000.0);
}

/* "/gpu:0" of the full name. */
static const char *short_name(yk_doctor_report *r, const yk_doctor_device *d) {
  const char *colon = strrchr(d->name, ':');
  return yk__say(r, "/%s%s", d->is_gpu ? "gpu" : "cpu", colon != NULL ? colon : "");
}

static void judge(const yk_doctor_device *d, yk_doctor_report *r) {
  const char *name = short_name(r, d);
  yk_verdict v = { YK__GOOD, "matmul", yk__say(r, "%s: matmul gave [[22 28] [49 64]]", name),
                   "[[1 2 3] [4 5 6]] times [[1 2] [3 4] [5 6]]", d->name, yk__say(r, "[[22 28] [49 64]] on %s", d->model),
                   "[[22 28] [49 64]]", "nothing to do" };
  if (!d->ok) {
    v.state = YK__BAD;
    v.says = yk__say(r, "%s does not compute", name);
    v.found = d->error;
    v.next = "YOKE_VERBOSE=4 yoke devices";
  }
  yk__verdict(r, v);
}

void yk__matmul_finish(yk_child *c, int timeout_ms, yk_doctor_report *r) {
  const answer *a = c->answer;
  yk__child_wait(c);
  r->devices = yk__bump(&r->text, sizeof *r->devices * (a->n + 1));
  if (r->devices == NULL) r->failed = true;
  for (uint32_t i = 0; i < a->n && r->devices != NULL; i++) {
    yk_doctor_device *d = &r->devices[r->ndevices++];
    *d = (yk_doctor_device){ .name = yk__say(r, "%s", a->at[i].name), .model = yk__say(r, "%s", a->at[i].model),
                             .is_virtual = a->at[i].is_virtual, .is_gpu = a->at[i].is_gpu };
    memcpy(d->result, a->at[i].result, sizeof d->result);
    d->error = error_of(a, i, c, timeout_ms, r);
    d->ok = d->error[0] == '\0';
    r->cpu_works = r->cpu_works || (d->ok && !d->is_gpu);
    r->gpu_works = r->gpu_works || (d->ok && d->is_gpu && !d->is_virtual);
    judge(d, r);
  }
  if (a->n == 0)
    yk__verdict(r, (yk_verdict){ YK__BAD, "matmul", "no session can be opened", "devices", "this process",
                                 a->error[0] != '\0' ? yk__say(r, "%s", a->error) : error_of(a, 0, c, timeout_ms, r), "a session",
                                 "YOKE_VERBOSE=4 yoke devices" });
  yk__child_free(c);
}
