/*
 * work.c - see work.h. What is timed is a target, not a fetch, so no result travels to the host, and inputs are variables, so
 * that nothing can be computed ahead.
 */
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "measure/work.h"

struct yk_pictures {
  yk_source source;
  int64_t values;                  /* of one picture */
  float *image;                    /* [YK__REFERENCE_BATCH, side, side, 3] */
};

enum { CLASSES = 10, CHANNELS = 3 };

/* Open, initialise, prepare. */
static yk_code start(const yk_session_options *o, yk_value target, yk_work *w) {
  yk_value init = yk_global_variables_initializer(w->graph);
  YK_TRY(yk_session_open(w->graph, o, &w->session));
  YK_TRY(yk_session_run(w->session, 0, NULL, 0, NULL, 1, &init, NULL));
  return yk_step_prepare(w->session, 0, NULL, 0, NULL, 1, &target, &w->step);
}

yk_code yk__work_product(const yk_session_options *o, const char *device, yk_dtype dtype, int64_t side, yk_work *out) {
  yk_value y = { 0 };
  YK_TRY(yk_graph_new(&out->graph));
  yk_graph *g = out->graph;
  YK_DEVICE(g, device) {
    yk_variable *a = yk_get_variable(g, "a", dtype, YK_SHAPE(side, side), YK_UNIFORM(-1, 1), NULL);
    yk_variable *b = yk_get_variable(g, "b", dtype, YK_SHAPE(side, side), YK_UNIFORM(-1, 1), NULL);
    y = yk_matmul(g, yk_read(a), yk_read(b), NULL);
  }
  return start(o, y, out);
}

yk_code yk__work_stream(const yk_session_options *o, const char *device, int64_t n, yk_work *out) {
  yk_value y = { 0 };
  YK_TRY(yk_graph_new(&out->graph));
  yk_graph *g = out->graph;
  YK_DEVICE(g, device) {
    y = yk_neg(g, yk_read(yk_get_variable(g, "x", YK_F32, YK_SHAPE(n), YK_ZEROS, NULL)));
  }
  return start(o, y, out);
}

/* ---- a training step ----------------------------------------------------------------------------------------------- */

static yk_code next(void *self, int64_t rows, void *const *out) {
  const yk_pictures *p = self;
  int32_t *label = out[1];
  for (int64_t r = 0; r < rows; r++) {
    memcpy((float *)out[0] + r * p->values, p->image + r % YK__REFERENCE_BATCH * p->values, (size_t)p->values * sizeof(float));
    label[r] = (int32_t)(r % CLASSES);
  }
  return YK_OK;
}

/* Values in [-1, 1) that are all over the place, without a sequence of random numbers to wait for. */
static yk_code open_pictures(int64_t side, yk_pictures **out) {
  yk_pictures *p = yk__calloc(1, sizeof *p);
  if (p == NULL) return YK_ENOMEM;
  p->values = side * side * CHANNELS;
  p->image = yk__alloc((size_t)(p->values * YK__REFERENCE_BATCH) * sizeof *p->image);
  if (p->image == NULL) {
    yk__free(p);
    return YK_ENOMEM;
  }
  for (int64_t i = 0; i < p->values * YK__REFERENCE_BATCH; i++)
    p->image[i] = (float)((uint32_t)i * 2654435761u >> 8) * 0x1p-23f - 1.0f;
  p->source = (yk_source){ .self = p, .next = next, .ncomponents = 2 };
  p->source.component[0] = (yk_desc){ .dtype = YK_F32, .rank = 3, .dim = { side, side, CHANNELS } };
  p->source.component[1] = (yk_desc){ .dtype = YK_I32 };
  *out = p;
  return YK_OK;
}

yk_code yk__work_training(const yk_session_options *o, const char *device, int64_t batch, yk_work *out) {
  yk_tower_options t = YK_TOWER_OPTIONS_INIT;
  yk_towers towers;
  t.model = yk_model_find(YK__REFERENCE_MODEL);
  if (t.model == NULL) return YK_FAIL(ENOTFOUND, "there is no network %s", YK__REFERENCE_MODEL);
  YK_TRY(open_pictures(t.model->image_size, &out->pictures));
  YK_TRY(yk_graph_new(&out->graph));
  t.source = &out->pictures->source;
  t.classes = CLASSES;
  t.batch = batch;
  t.ndevices = 1;
  t.devices = &device;
  yk_build_towers(out->graph, &t, &towers);
  return start(o, towers.train, out);
}

void yk__work_close(yk_work *w) {
  yk_step_free(w->step);
  yk_session_close(w->session);
  yk_graph_free(w->graph);
  if (w->pictures != NULL) yk__free(w->pictures->image);
  yk__free(w->pictures);
  *w = (yk_work){ 0 };
}
