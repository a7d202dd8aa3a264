/*
 * cmd_summary.c - `yoke summary model.h5`: the layers of a Keras model as a table, and as a picture.
 *
 * Nothing is run, and no device is asked for.
 */
#include <stdio.h>
#include <string.h>
#include "cli/json.h"
#include "cli/network.h"
#include "keras/keras.h"

static void put_desc(yk_json *o, const yk_desc *d) {
  yk__json_open(o, "shape", '[');
  for (uint32_t i = 0; d != NULL && i < d->rank; i++) yk__json_int(o, NULL, d->dim[i]);
  yk__json_close(o, ']');
}

static void put_json(const yk_network *n) {
  yk_json o = { 0 };
  int64_t all, trainable;
  yk_network_parameters(n, &all, &trainable);
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "name", n->self.name);
  yk__json_int(&o, "parameters", all);
  yk__json_int(&o, "trainable", trainable);
  yk__json_open(&o, "layers", '[');
  for (size_t i = 0; yk_network_layer_at(n, i) != NULL; i++) {
    yk_layer *l = yk_network_layer_at(n, i);
    yk__json_open(&o, NULL, '{');
    yk__json_text(&o, "name", yk_layer_name(l));
    yk__json_text(&o, "class", yk_layer_class_name(l));
    put_desc(&o, yk_sym_desc((yk_sym){ l, 0, 0 }));
    yk__json_close(&o, '}');
  }
  yk__json_close(&o, ']');
  yk__json_close(&o, '}');
  yk__json_flush(&o, stdout, NULL);
  yk__str_free(&o.text);
}

static int say(const yk_cli *c, const yk_network *n) {
  char *text = NULL;
  if (c->json) return put_json(n), 0;
  yk_code rc = yk_network_summary(n, &text);
  if (rc != YK_OK) return yk__die_code(rc);
  fputs(text, stdout);
  yk_free(text);
  return 0;
}

static int check(const yk_cli *c) {
  size_t n = c->plot != NULL ? strlen(c->plot) : 0;
  if (c->plot != NULL && (n < 5 || strcmp(c->plot + n - 4, ".svg") != 0))
    return yk__die(YK__EXIT_USAGE, "--plot '%s': expected a name that ends with .svg", yk__shown(c->plot));
  if (c->plot == NULL && c->expand_nested) return yk__die(YK__EXIT_USAGE, "--expand-nested is for the picture that --plot FILE.svg draws");
  return 0;
}

static int plot(const yk_cli *c, const yk_network *n) {
  yk_plot_options o = YK_PLOT_OPTIONS_INIT;
  o.expand_nested = c->expand_nested;
  yk_code rc = c->plot != NULL ? yk_network_plot(n, c->plot, &o) : YK_OK;
  return rc == YK_OK ? 0 : yk__die(YK__EXIT_RUN, "--plot: %s", yk_error_message());
}

int yk__cmd_summary(const yk_cli *c) {
  yk_model_job m = { 0 };
  int status = check(c);
  if (status == 0) status = yk__model_open(c, YK__MODEL_LOOK, &m);
  if (status == 0) status = plot(c, m.n);
  if (status == 0) status = say(c, m.n);
  yk__model_close(&m);
  return status;
}
