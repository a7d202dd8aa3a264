/*
 * cmd_convert.c - `yoke convert model.h5 --out other.h5`: a Keras model for another Keras, or its weights alone.
 *
 * Losses, metrics and optimizer go with it, as far as they are known.
 */
#include "cli/network.h"

static int convert(const yk_cli *c, yk_model_job *m) {
  if (c->out == NULL) return yk__die(YK__EXIT_USAGE, "into what? --out FILE.h5 or FILE.keras");
  if (!yk__is_model_file(c->out)) return yk__die(YK__EXIT_USAGE, "--out '%s': expected a name that ends with .h5 or .keras", yk__shown(c->out));
  int status = yk__model_open(c, YK__MODEL_LOOK, m);
  if (status != 0) return status;
  yk_code rc = c->keras > 0 ? yk_network_set_keras(m->n, (int)c->keras) : YK_OK;
  if (rc == YK_OK) rc = c->weights_only ? yk_network_save_weights(m->n, c->out) : yk_network_save(m->n, c->out);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

int yk__cmd_convert(const yk_cli *c) {
  yk_model_job m = { 0 };
  int status = convert(c, &m);
  yk__model_close(&m);
  return status;
}
