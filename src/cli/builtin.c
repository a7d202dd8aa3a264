/*
 * builtin.c - networks by name that are made of Keras's layers: resnet50, lstm, transformer, with their numbers behind a colon.
 *
 * From there on they are what a model file is, so all that can be done to one can be done to them. What the command line leaves open, the size
 * of the input and the number of classes, the data tell; where there are none, it is usual numbers.
 */
#include <math.h>
#include <string.h>
#include "base/error.h"
#include "cli/keyed.h"
#include "cli/network.h"

enum { RESNET50, LSTM, TRANSFORMER, NBUILTIN };
enum { USUAL_SIDE = 224, USUAL_STEPS = 28, USUAL_FEATURES = 28, USUAL_CLASSES = 10, USUAL_RESNET_CLASSES = 1000 };
#define BIT(x) (1u << (x))
#define SEQUENCES (BIT(LSTM) | BIT(TRANSFORMER))

typedef struct builtin {             /* 0: not given */
  int64_t size, channels, classes, steps, features, words, units, layers, heads;
  double dropout;                    /* NaN: not given */
  char weights[YK__KEY_TEXT_BYTES];
} builtin;

static const yk_keyed_name names[NBUILTIN] = {
  [RESNET50] = { "resnet50", "keras.applications.ResNet50 on pictures" },
  [LSTM] = { "lstm", "LSTM(64) on sequences" },
  [TRANSFORMER] = { "transformer", "encoder of two layers on sequences" },
};
#define FIELD(f) offsetof(builtin, f)
static const yk_key keys[] = {
  { "size", "side of the pictures", YK__KEY_WHOLE, FIELD(size), BIT(RESNET50) },
  { "channels", "of the pictures", YK__KEY_WHOLE, FIELD(channels), BIT(RESNET50) },
  { "steps", "of a sequence", YK__KEY_WHOLE, FIELD(steps), SEQUENCES },
  { "features", "of a step", YK__KEY_WHOLE, FIELD(features), SEQUENCES },
  { "words", "the steps are numbers of so many words", YK__KEY_WHOLE, FIELD(words), SEQUENCES },
  { "units", "width", YK__KEY_WHOLE, FIELD(units), SEQUENCES },
  { "layers", "one over the other", YK__KEY_WHOLE, FIELD(layers), SEQUENCES },
  { "heads", "of attention", YK__KEY_WHOLE, FIELD(heads), BIT(TRANSFORMER) },
  { "dropout", "in training", YK__KEY_REAL, FIELD(dropout), SEQUENCES },
  { "classes", "to tell apart", YK__KEY_WHOLE, FIELD(classes), UINT32_MAX },
  { "weights", "file to begin with", YK__KEY_TEXT, FIELD(weights), UINT32_MAX }, { 0 },
};
static const yk_keyed words = { "MODEL", "network", names, NBUILTIN, keys };

bool yk__is_builtin(const char *name) {
  size_t n = strcspn(name, ":");
  for (int i = 0; i < NBUILTIN; i++)
    if (strlen(names[i].name) == n && memcmp(names[i].name, name, n) == 0) return true;
  return false;
}

const char *yk__builtin_at(size_t i) { return i < NBUILTIN ? names[i].name : NULL; }
void yk__help_builtin(void) { yk__keyed_help(&words); }

/* ---- what it reads and tells apart ------------------------------------------------------------------------------------------- */

static int64_t first_of(int64_t given, int64_t seen, int64_t usual) { return given > 0 ? given : seen > 0 ? seen : usual; }

/* Encoded pictures have any size; what is in arrays has one. */
static yk_shape pictures(const builtin *b, const yk_look *l) {
  bool sized = l->input.rank == 3;
  return YK_SHAPE(first_of(b->size, sized && !l->encoded ? l->input.dim[0] : 0, USUAL_SIDE),
                  first_of(b->size, sized && !l->encoded ? l->input.dim[1] : 0, USUAL_SIDE),
                  first_of(b->channels, sized ? l->input.dim[2] : 0, 3));
}

static yk_shape sequences(const builtin *b, const yk_look *l) {
  int64_t steps = first_of(b->steps, l->input.rank > 0 ? l->input.dim[0] : 0, USUAL_STEPS);
  if (b->words > 0) return YK_SHAPE(steps);
  return YK_SHAPE(steps, first_of(b->features, l->input.rank == 2 ? l->input.dim[1] : 0, USUAL_FEATURES));
}

static int check_look(int which, const builtin *b, const yk_look *l) {
  uint32_t want = which == RESNET50 ? 3 : b->words > 0 ? 1 : 2;
  if (l->input.rank == want || !l->there) return 0;
  return yk__die(YK__EXIT_RUN, "data: %s takes %s; an example here has %u dimension%s", names[which].name,
                 which == RESNET50 ? "pictures [height, width, channels]"
                 : want == 1 ? "numbers of words [steps]" : "sequences [steps, features], or with words=N numbers of words [steps]",
                 (unsigned)l->input.rank, l->input.rank == 1 ? "" : "s");
}

/* ---- making it ----------------------------------------------------------------------------------------------------------------- */

static yk_network *build(int which, yk_keras *k, const builtin *b, const yk_look *l) {
  int64_t classes = first_of(b->classes, l->classes, which == RESNET50 ? USUAL_RESNET_CLASSES : USUAL_CLASSES);
  const char *name = names[which].name;            /* where mistakes are blamed on */
  double dropout = isnan(b->dropout) ? 0 : b->dropout != 0 ? b->dropout : YK_EXACTLY_ZERO;
  if (which == RESNET50) return yk_resnet50_at(name, k, &(yk_resnet50_config){ .input_shape = pictures(b, l), .classes = classes });
  if (which == LSTM)
    return yk_lstm_network_at(name, k, &(yk_lstm_network_config){ .input_shape = sequences(b, l), .classes = classes, .units = b->units,
                                                                  .layers = b->layers, .words = b->words, .dropout = dropout });
  return yk_transformer_at(name, k, &(yk_transformer_config){ .input_shape = sequences(b, l), .classes = classes, .units = b->units,
                                                              .layers = b->layers, .heads = b->heads, .words = b->words, .dropout = dropout });
}

static yk_code compile(int which, yk_network *n, const yk_look *l) {
  yk_loss loss = { .name = l->one_hot ? "categorical_crossentropy" : "sparse_categorical_crossentropy" };
  yk_metric accuracy = { .name = "accuracy" };
  yk_optimizer optimizer = which == RESNET50 ? YK_KERAS_SGD(0.01, 0.9) : YK_KERAS_ADAM(1e-3);
  yk_compile_options o = YK_COMPILE_OPTIONS_INIT;
  o.optimizer = &optimizer;
  o.losses = &loss;
  o.nlosses = 1;
  o.metrics = &accuracy;
  o.nmetrics = 1;
  return yk_network_compile(n, &o);
}

int yk__builtin_open(const yk_cli *c, bool needs_weights, yk_keras *k, yk_network **out) {
  builtin b = { .dropout = NAN };
  yk_look l = { 0 };
  int which = 0, status = yk__keyed_find(&words, c->model, &which);
  if (status == 0) status = yk__keyed_set(&words, which, c->model, &b);
  if (status != 0) return status;
  if (needs_weights && b.weights[0] == '\0')
    return yk__die(YK__EXIT_USAGE, "which weights? %s:weights=FILE, or the file that 'yoke train %s' wrote", names[which].name, names[which].name);
  status = yk__table_look(c, b.size, &l);
  if (status == 0) status = check_look(which, &b, &l);
  if (status != 0) return status;
  if (b.classes == 0) b.classes = c->classes;
  yk_network *n = build(which, k, &b, &l);
  if (n == NULL) return yk__die(YK__EXIT_USAGE, "%s", yk_error_message());
  yk_code rc = compile(which, n, &l);
  if (rc == YK_OK && b.weights[0] != '\0') rc = yk_network_load_weights(n, b.weights);
  if (rc == YK_OK) *out = n;
  return rc == YK_OK ? 0 : yk__die_code(rc);
}
