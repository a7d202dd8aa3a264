/*
 * loop_rnn.c - preparing the recurrent operations.
 *
 * Decides how many rows a block has: enough that the recurrent kernel, read once a block and step, is not what the step waits for,
 * and few enough that every core has one. The loops are in loop_rnn_isa.c.
 */
#include "loop_rnn.h"

#include <string.h>

enum { SMALL_KERNEL = 24576, MAX_ROWS = 32, MAX_SLOTS = 64 };   /* elements of a kernel that the second cache has room for */

typedef struct rnn_kind { const char *op, *impl; int kind; } rnn_kind;
static const rnn_kind kinds[] = {
  { "lstm", "plain:lstm", RNN_LSTM }, { "lstm_grad", "plain:lstm_grad", RNN_LSTM_GRAD },
  { "gru", "plain:gru", RNN_GRU }, { "gru_grad", "plain:gru_grad", RNN_GRU_GRAD },
  { "simple_rnn", "plain:simple_rnn", RNN_SIMPLE }, { "simple_rnn_grad", "plain:simple_rnn_grad", RNN_SIMPLE_GRAD },
};

static void set_attrs(yk_rnn_state *s, const yk_rnn_attrs *a) {
  if (!a) {
    s->fast = 1;
    return;
  }
  s->activation = a->activation;
  s->hard = a->recurrent_activation != YK_RNN_SIGMOID;
  s->slope = a->recurrent_activation == YK_RNN_HARD_SIGMOID ? 0.2 : 1.0 / 6;
  s->fast = s->activation == YK_RNN_TANH && !s->hard;
  s->backwards = a->go_backwards;
  s->zero_output = a->zero_output;
  s->reset_before = a->reset_before;
}

static void set_packs(yk_rnn_state *s) {
  const int64_t u = s->u, all = s->columns;
  switch (s->kind) {
    case RNN_GRU:
      s->pack[0] = (yk_rnn_pack){ u, s->reset_before ? 2 * u : all, 0, 0 };
      s->pack[1] = (yk_rnn_pack){ u, u, 2 * u, 0 };
      s->npack = s->reset_before ? 2 : 1;
      break;
    case RNN_GRU_GRAD:
      s->pack[0] = (yk_rnn_pack){ s->reset_before ? 2 * u : all, u, 0, 1 };
      s->pack[1] = (yk_rnn_pack){ u, u, 2 * u, 1 };
      s->npack = s->reset_before ? 2 : 1;
      break;
    case RNN_LSTM: case RNN_SIMPLE:
      s->pack[0] = (yk_rnn_pack){ u, all, 0, 0 };
      s->npack = 1;
      break;
    default:
      s->pack[0] = (yk_rnn_pack){ all, u, 0, 1 };
      s->npack = 1;
      break;
  }
  for (uint32_t i = 0; i < s->npack; i++) {
    s->pitch[i] = yk__rnn_padded(s->pack[i].columns);
    s->pack_at[i] = s->packed;
    s->packed += s->pack[i].depth * s->pitch[i];
  }
}

static void set_blocks(yk_rnn_state *s, int64_t cores) {
  int64_t each = s->n / (cores > 0 ? cores : 1) / RNN_TILE * RNN_TILE;
  if (s->u * s->columns <= SMALL_KERNEL || each < RNN_TILE) each = RNN_TILE;
  s->rows = each > MAX_ROWS ? MAX_ROWS : each;
  s->blocks = (s->n + s->rows - 1) / s->rows;
  s->slots = s->blocks < MAX_SLOTS ? s->blocks : MAX_SLOTS;
  /* state h (padded: a product goes there), c, what enters the product (four gates at most), and the products */
  s->scratch = s->rows * (yk__rnn_padded(s->u) + s->u + 4 * s->u + s->pitch[0] + s->pitch[1]);
  s->scratch = yk__rnn_padded(s->scratch);
}

yk_code yk__cpu_loop_rnn(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  const int f64 = yk__loop_is_f64(k);
  yk_rnn_state *s;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const rnn_kind *kind = &kinds[i];
    if (strcmp(kind->op, p->spec->op) != 0) continue;
    YK_TRY(yk__loop_body(p, sizeof *s, yk__loop_bodies(LOOP_RNN)->body[kind->kind][f64], kind->impl, &s));
    s->kind = kind->kind;
    s->n = k->in[0].dim[0];
    s->t = k->in[0].dim[1];
    s->u = k->in[1].dim[0];
    s->columns = k->in[1].dim[1];
    set_attrs(s, k->attrs);
    set_packs(s);
    set_blocks(s, k->dev->ncores);
    if (s->kind == RNN_LSTM_GRAD) p->inplace = 1;
    /* the last columns: a bias of zeros */
    yk__loop_workspace(p, (uint64_t)(s->packed + s->slots * s->scratch + s->columns) * (f64 ? 8 : 4));
    return YK_OK;
  }
  return YK_CPU_REFUSE("not a recurrent operation");
}
