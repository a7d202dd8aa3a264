/*
 * cudnn_weights.c - see cudnn_weights.h.
 *
 * Gates stand side by side in a matrix of [rows, gates * units]. Each gate of cuDNN's is written row by row where ours would be read
 * column by column; for the square recurrent one that is a transpose. LSTM's two biases are only ever added, GRU's are two rows.
 */
#include "keras/cudnn_weights.h"
#include <string.h>
#include "base/error.h"
#include "tensor/desc.h"

const char *yk__cudnn_plain_class(const char *class) {
  if (strcmp(class, "CuDNNLSTM") == 0) return "LSTM";
  return strcmp(class, "CuDNNGRU") == 0 ? "GRU" : class;
}

bool yk__cudnn_has_bias(const yk_weight_ref *m, const yk_desc *bias) {
  const yk_desc *ours = &m->weight->desc;
  if (strcmp(m->weight->name, "bias") != 0 || bias->dtype != YK_F32 || ours->dtype != YK_F32 || bias->rank != 1) return false;
  if (m->layer->class == &yk__class_lstm) return bias->dim[0] == 2 * ours->dim[0];
  return m->layer->class == &yk__class_gru && ours->rank == 2 && bias->dim[0] == ours->dim[0] * ours->dim[1];
}

/* In every gate, ours[a][b] is element a + rows*b of cuDNN's. */
static yk_code transpose_gates(yk_tensor *t, int64_t gates) {
  int64_t rows = yk_tensor_desc(t)->dim[0], width = yk_tensor_desc(t)->dim[1], units = width / gates;
  float *x = yk_tensor_data(t), *gate = yk__calloc((size_t)(rows * units), sizeof *gate);
  if (gate == NULL) return YK_ENOMEM;
  for (int64_t g = 0; g < gates; g++) {
    float *at = x + g * units;
    for (int64_t i = 0; i < rows * units; i++) gate[i] = at[i / units * width + i % units];
    for (int64_t a = 0; a < rows; a++)
      for (int64_t b = 0; b < units; b++) at[a * width + b] = gate[a + rows * b];
  }
  yk__free(gate);
  return YK_OK;
}

static yk_code convert_bias(yk_weight_ref *m) {
  const yk_desc *ours = &m->weight->desc;
  const float *from = yk_tensor_data(m->value);
  yk_tensor *t;
  YK_TRY(yk_tensor_new(YK_F32, yk__desc_shape(ours), &t));
  float *to = yk_tensor_data(t);
  int64_t n = yk_tensor_count(t);
  bool add = m->layer->class == &yk__class_lstm;
  for (int64_t i = 0; i < n; i++) to[i] = add ? from[i] + from[i + n] : from[i];
  yk_tensor_free(m->value);
  m->value = t;
  return YK_OK;
}

yk_code yk__cudnn_convert(yk_weight_ref *m, uint32_t n) {
  for (uint32_t i = 2; i < n; i++) {
    if (m[i - 2].layer != m[i].layer || !yk__cudnn_has_bias(&m[i], yk_tensor_desc(m[i].value))) continue;
    int64_t gates = m[i].layer->class == &yk__class_lstm ? 4 : 3;
    YK_TRY(transpose_gates(m[i - 2].value, gates));
    YK_TRY(transpose_gates(m[i - 1].value, gates));
    YK_TRY(convert_bias(&m[i]));
  }
  return YK_OK;
}
