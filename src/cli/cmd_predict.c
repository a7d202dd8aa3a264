/*
 * cmd_predict.c - `yoke predict model.h5 --data x.npy`: what a Keras model says of each example, as lines, JSON, or a .npy file for each output.
 *
 * Examples need no targets; where the data have a test part, that is what is predicted.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "cli/json.h"
#include "cli/network.h"
#include "keras/keras.h"
#include "store/disk.h"

/* ---- lines ---------------------------------------------------------------------------------------------------------------- */

static void print_lines(const yk_cli *c, const yk_network *n, yk_tensor *const *y, int64_t rows) {
  for (int64_t r = 0; r < rows; r++) {
    yk_json o = { .flat = true };
    if (c->json) yk__json_open(&o, NULL, '{');
    for (uint32_t k = 0; k < n->nout; k++) {
      int64_t each = yk_tensor_count(y[k]) / (rows > 0 ? rows : 1);
      if (c->json) yk__json_open(&o, n->out[k].layer->name, '[');
      for (int64_t i = 0; i < each; i++) {
        double x = yk_tensor_at(y[k], r * each + i);
        if (c->json) yk__json_real(&o, NULL, x);
        else printf("%s%.7g", k > 0 || i > 0 ? "," : "", x);
      }
      if (c->json) yk__json_close(&o, ']');
    }
    if (c->json) {
      yk__json_close(&o, '}');
      yk__json_flush(&o, stdout, NULL);
      yk__str_free(&o.text);
    } else {
      printf("\n");
    }
  }
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

/* NumPy's format, version 1: a header of a multiple of 64 bytes, then the numbers. */
static yk_code write_npy(const char *path, const yk_tensor *t) {
  const yk_desc *d = yk_tensor_desc(t);
  char head[512], shape[256] = "";
  size_t n = 0;
  if (d->dtype != YK_F32) return YK_FAIL(EUNSUPPORTED, "%s: an output of type %s; expected f32", path, yk_dtype_name((yk_dtype)d->dtype));
  for (uint32_t i = 0; i < d->rank; i++)
    n += (size_t)snprintf(shape + n, sizeof shape - n, "%lld,%s", (long long)d->dim[i], i + 1 < d->rank ? " " : "");
  int text = snprintf(head + 10, sizeof head - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
  int whole = (10 + text + 1 + 63) / 64 * 64;
  memcpy(head, "\x93NUMPY\x01\x00", 8);
  head[8] = (char)((whole - 10) & 255);
  head[9] = (char)((whole - 10) >> 8);
  memset(head + 10 + text, ' ', (size_t)(whole - 10 - text));
  head[whole - 1] = '\n';
  FILE *f = fopen(path, "wb");
  if (f == NULL) return YK_FAIL(EIO, "%s: %s", path, strerror(errno));
  bool good = fwrite(head, 1, (size_t)whole, f) == (size_t)whole;
  good = good && fwrite(yk_tensor_data(t), 1, yk_tensor_bytes(t), f) == yk_tensor_bytes(t);
  good = fclose(f) == 0 && good;
  return good ? YK_OK : YK_FAIL(EIO, "%s: %s", path, strerror(errno));
}

/* "p.npy", of several outputs "p-main_output.npy". */
static int write_files(const yk_cli *c, const yk_network *n, yk_tensor *const *y) {
  char path[8192];
  size_t stem = strlen(c->out) - 4;
  for (uint32_t k = 0; k < n->nout; k++) {
    if (n->nout == 1) snprintf(path, sizeof path, "%s", c->out);
    else snprintf(path, sizeof path, "%.*s-%s.npy", (int)stem, c->out, n->out[k].layer->name);
    yk_code rc = write_npy(path, y[k]);
    if (rc != YK_OK) return yk__die_code(rc);
    if (!c->json) printf("%s\n", path);
  }
  return 0;
}

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

static int predict(const yk_cli *c, yk_model_job *m, yk_table *t) {
  yk_tensor *y[YK__MAX_PORTS] = { NULL };
  size_t n = c->out != NULL ? strlen(c->out) : 0;
  if (c->out != NULL && (n < 5 || strcmp(c->out + n - 4, ".npy") != 0))
    return yk__die(YK__EXIT_USAGE, "--out '%s': expected a name that ends with .npy", yk__shown(c->out));
  int status = yk__model_open(c, YK__MODEL_USE, m);
  if (status == 0) status = yk__table_open(c, m->n, YK_TEST, true, t);
  if (status != 0) return status;
  yk_code rc = yk_network_predict(m->n, (const yk_tensor *const *)t->x, c->batch, y);
  if (rc != YK_OK) return yk__die_code(rc);
  if (c->out != NULL) status = write_files(c, m->n, y);
  else print_lines(c, m->n, y, t->rows);
  for (uint32_t k = 0; k < m->n->nout; k++) yk_tensor_free(y[k]);
  return status;
}

int yk__cmd_predict(const yk_cli *c) {
  yk_model_job m = { 0 };
  yk_table t = { 0 };
  int status = predict(c, &m, &t);
  yk__table_free(&t);
  yk__model_close(&m);
  return status;
}
