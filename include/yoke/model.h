/*
 * model.h - the built-in networks, as functions that build them.
 *
 * A model turns pictures into logits with variables of the current variable
 * scope; building it again with reuse borrows them. Everything else (loss,
 * towers, updates) is the caller's, or yk_towers().
 */
#ifndef YK_MODEL_H
#define YK_MODEL_H

#include <stdbool.h>
#include "data.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Logits [N, classes] of `images` f32 [N, H, W, C]. Penalties go to YK_LOSSES; statistics' updates through yk_batch_norm_updates. */
typedef yk_value (*yk_model_fn)(yk_graph *g, yk_value images, int64_t classes, bool training);

typedef struct yk_model {
  const char *name, *doc;
  yk_model_fn build;
  int64_t image_size;             /* side of the input pictures */
  yk_augment train_augment, eval_augment;
  int64_t batch;                  /* its usual global batch */
  double learning_rate, momentum; /* momentum 0 = plain SGD */
  double moving_average;          /* of the trainable variables, for evaluation; 0 = none */
} yk_model;

/* cifar10: the tutorial's network and constants, 24x24 pictures. resnet20: 32x32, projection shortcuts. mlp: 784-1024-1024-10 on any picture. */
const yk_model *yk_model_find(const char *name);              /* NULL if unknown */
const yk_model *yk_model_at(size_t i);                        /* all of them; NULL past the end */

/*
 * Where the variables of a step over several devices live, and where gradients are summed and applied. Numbers are the same bits with
 * each of them: gradients are summed tower by tower from the first to the last. A checkpoint made with one is loaded with any other.
 */
typedef enum yk_strategy {
  YK_STRATEGY_AUTO,               /* one device: home; several: sharded */
  YK_STRATEGY_HOME,               /* all on `home`, which sums and updates; the others borrow them */
  YK_STRATEGY_SHARDED,            /* spread over the devices by bytes; each sums, updates and lends its part */
  YK_STRATEGY_MIRRORED            /* a copy on each device; sums are shared out in buckets, and each device updates its copies */
} yk_strategy;
/* "home"; NULL for no strategy. */
const char *yk_strategy_name(yk_strategy strategy);

/* One training step of a model on several devices, from one queue: a tower for each replica of the batch, gradients summed and
 * applied where the strategy says. */
typedef struct yk_tower_options {
  uint32_t size;                  /* YK_TOWER_OPTIONS_INIT sets it */
  const yk_model *model;
  const yk_source *source;        /* components: what the model reads, as f32 [rows, s, s, c] (cast if it is another type); i32 [rows] */
  int64_t classes, batch;         /* the global batch: split over the replicas, the first ones take the remainder */
  size_t ndevices; const char *const *devices;   /* "/gpu:0", ... */
  const char *home;               /* NULL = "/cpu:0"; has the losses and the global step, and with `home` the variables */
  yk_value learning_rate;         /* f32 scalar; {0} = the constant rate of the optimizer, else of the model */
  const yk_optimizer *optimizer;  /* NULL = the model's; its learning_rate is used if the one above is {0} */
  double clip_norm;               /* > 0: the summed gradients are clipped to this global norm */
  yk_strategy strategy;
  size_t replicas;                /* towers, in equal blocks over the devices, of which there may not be more; 0 = one a device. In a
                                     deterministic session the bits depend on this number, not on that of devices */
  bool sync_batch_norm;           /* batch normalisation by the statistics of the whole batch, not of each replica's part */
  bool guard, nan_only;           /* a step whose loss, rate or summed gradients hold a NaN or, unless nan_only, an infinity changes
                                     nothing, not even global_step */
  yk_dtype precision;             /* of the network's products and convolutions: YK_BF16 or YK_F16 as in yk_precision_push(); 0 or YK_F32: as
                                     built. With YK_F16 the loss is scaled, and a step whose gradients overflow is skipped, guard or not */
} yk_tower_options;
#define YK_TOWER_OPTIONS_INIT { .size = sizeof(yk_tower_options) }

typedef struct yk_towers {
  yk_value train, loss, accuracy; /* one op; mean loss (with penalties) and accuracy over the global batch, f32 scalars, at home */
  yk_variable *global_step;
  yk_strategy strategy;           /* in force, never AUTO */
  const char *why;                /* static: who chose it */
  size_t replicas;
  yk_value good;                  /* with a guard: bool scalar, did this step change the variables, or, in f16, was skipped for an overflow that
                                     a lower loss scale may mend? else {0} */
  yk_loss_scale scale;            /* of f16; else all zero */
} yk_towers;
/* Rows of replica i of n: what is left over goes to the first ones. */
int64_t yk_replica_share(int64_t batch, size_t n, size_t i);
/*
 * Do all copies of each variable have the same bits? ECORRUPT if not: the message names the variable, two devices and the checksums
 * (CRC-32C) of what they have. Between two steps; without copies there is nothing to compare. g: the session's graph.
 */
yk_code yk_check_replicas(yk_session *s, const yk_graph *g) YK_CHECKED;
/* What the update applies, summed and clipped: the collection YK_TOWER_GRADIENTS has a value for each variable that has one, and YK_TOWER_TRAINED, in
 * the same order, the variables (yk_variable_of()). */
#define YK_TOWER_GRADIENTS "tower_gradients"
#define YK_TOWER_TRAINED   "tower_trained"
/* Sticky errors as any builder, *out then is all zero. A replica whose share is 0 rows gets no tower. */
void yk_build_towers_at(const char *where, yk_graph *g, const yk_tower_options *options, yk_towers *out);
#define yk_build_towers(...) yk_build_towers_at(YK_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
