/*
 * options.c - the one table of options, and the help that is printed from it.
 *
 * Parser and help read the same lines, so neither can know an option that the
 * other does not. The manual page and the shell completion are checked against it.
 */
#include <stdio.h>
#include <string.h>
#include "cli/network.h"

#define BIT(verb) (1u << YK__##verb)
#define RUN (BIT(TRAIN) | BIT(BENCH) | BIT(VERIFY))                     /* that run training steps */
#define STEP (RUN | BIT(EXPLAIN) | BIT(PLAN))                          /* that build one */
#define NETWORK (STEP | BIT(EVALUATE) | BIT(PREDICT))
#define DATA (RUN | BIT(EVALUATE) | BIT(PREDICT))
#define TOWERS (STEP | BIT(EVALUATE))                                  /* that take networks made of operations */
#define KERAS (BIT(TRAIN) | BIT(EVALUATE) | BIT(PREDICT) | BIT(SUMMARY) | BIT(CONVERT))
#define SESSION (NETWORK | BIT(DEVICES) | BIT(DOCTOR))
#define FIELD(name) offsetof(yk_cli, name)

const yk_opt yk__options[] = {
  { "--data", "PATH", YK__OPT_TEXT, FIELD(data), 0, 0, DATA,
    "shapes10 (built in, the default), or a file or folder in a format of docs/data.md" },
  { "--data-format", "NAME", YK__OPT_TEXT, FIELD(data_format), 0, 0, DATA,
    "cifar10, idx, csv, npy, npz, tfrecord or folder (of pictures), where it is not to be recognised" },
  { "--test-data", "PATH", YK__OPT_TEXT, FIELD(test_data), 0, 0, BIT(TRAIN) | BIT(EVALUATE), "what to test on, if not the test part of --data" },
  { "--holdout", "X", YK__OPT_REAL, FIELD(holdout), 0, 1, DATA,
    "part of --data kept for tests where it has no test part (default: 0.1)" },
  { "--label", "NAME", YK__OPT_TEXT, FIELD(label), 0, 0, DATA, "the column (CSV) or feature (TFRecord) that is the class" },
  { "--classes", "N", YK__OPT_INT, FIELD(classes), 1, 1e9, DATA, "number of classes (default: counted)" },
  { "--skip-corrupt", "N", YK__OPT_INT, FIELD(skip_corrupt), 0, 1e15, DATA, "pass over up to N corrupt records (default: 0)" },
  { "--devices", "LIST", YK__OPT_TEXT, FIELD(devices), 0, 0, NETWORK,
    "where to compute: gpu:0,gpu:1 or cpu:0; auto takes what works (default: the virtual GPUs, else cpu:0)" },
  { "--virtual-gpus", "GROUPS", YK__OPT_TEXT, FIELD(virtual_gpus), 0, 0, SESSION,
    "emulate GPUs on host cores, groups N[:MEMORY[:CORES]], as 2:512MiB or 2:1GiB:2,1:256MiB" },
  { "--memory-limit", "BYTES", YK__OPT_TEXT, FIELD(memory_limit), 0, 0, SESSION, "memory each device may use, as 512MiB" },
  { "--memory-fraction", "F", YK__OPT_REAL, FIELD(memory_fraction), 1e-9, 1, SESSION,
    "part of its memory that each GPU may use, as 0.4" },
  { "--memory-growth", NULL, YK__OPT_FLAG, FIELD(memory_growth), 0, 0, SESSION,
    "take a GPU's memory as it is needed, not all at the first use" },
  { "--split", "GPU=LIST", YK__OPT_TEXT, FIELD(split), 0, 0, NETWORK | BIT(DEVICES),
    "split GPUs into logical ones with that much memory, as gpu:0=256MiB,256MiB" },
  { "--save", "FILE", YK__OPT_TEXT, FIELD(save), 0, 0, BIT(DEVICES), "write the description of this machine, for --rehearse" },
  { "--rehearse", "FILE", YK__OPT_TEXT, FIELD(rehearse), 0, 0, BIT(TRAIN) | BIT(EXPLAIN) | BIT(PLAN) | BIT(DEVICES),
    "on the machine that FILE describes: list, or check placement, memory and plan; nothing runs" },
  { "--batch", "N", YK__OPT_INT, FIELD(batch), 1, 1e6, NETWORK, "pictures a step, all devices together (default: the network's)"
    },
  { "--steps", "N", YK__OPT_INT, FIELD(steps), 1, 1e12, RUN, "training steps (bench: 20 by default, verify: 3)" },
  { "--epochs", "N", YK__OPT_REAL, FIELD(epochs), 1e-9, 1e9, BIT(TRAIN),
    "passes over the training pictures, fractions too (default: 10)" },
  { "--optimizer", "NAME[:KEY=X]", YK__OPT_TEXT, FIELD(optimizer), 0, 0, STEP,
    "one of the list above with its numbers, as adam:beta1=0.5,lr=1e-4 (default: the network's)" },
  { "--schedule", "NAME[:KEY=X]", YK__OPT_TEXT, FIELD(schedule), 0, 0, STEP,
    "of the learning rate, as cosine:warm_up=100,alpha=0.01 (default: the network's)" },
  { "--lr", "X", YK__OPT_REAL, FIELD(lr), 0, 1e6, STEP,
    "learning rate that the schedule starts from (default: the optimizer's, the network's)" },
  { "--learning-rate", "X", YK__OPT_REAL, FIELD(lr), 0, 1e6, STEP, "the same as --lr" },
  { "--clip-norm", "X", YK__OPT_REAL, FIELD(clip_norm), 1e-30, 1e30, STEP,
    "scale the summed gradients down to this norm, all by one factor" },
  { "--nan-check", "WHAT", YK__OPT_TEXT, FIELD(nan_check), 0, 0, STEP,
    "stop at the first step with a NaN or infinity in loss or gradients, and name its origin: finite (default), nan (NaN alone), off" },
  { "--precision", "TYPE", YK__OPT_TEXT, FIELD(precision), 0, 0, STEP,
    "of products and convolutions: f32 (default), bf16, or f16 with a scaled loss; variables stay in f32" },
  { "--strategy", "NAME", YK__OPT_TEXT, FIELD(strategy), 0, 0, STEP,
    "where variables live: home (/cpu:0), sharded (spread over the devices), mirrored (a copy on each), auto (default)" },
  { "--replicas", "N", YK__OPT_INT, FIELD(replicas), 1, 65536, STEP,
    "parts that each batch is split into, in equal blocks over the devices (default: one a device)" },
  { "--deterministic", NULL, YK__OPT_FLAG, FIELD(deterministic), 0, 0, STEP,
    "the same bits from the same seed and replicas, on any number of devices; slower" },
  { "--sync-batch-norm", NULL, YK__OPT_FLAG, FIELD(sync_batch_norm), 0, 0, STEP,
    "batch normalisation by the statistics of the whole batch, not of each replica's part" },
  { "--check-replicas", "K", YK__OPT_INT, FIELD(check_replicas), 1, 1e12, BIT(TRAIN),
    "compare the devices' copies of each variable every K steps (--strategy mirrored)" },
  { "--seed", "N", YK__OPT_INT, FIELD(seed), 0, 9e15, RUN, "of initial weights, order and distortions (default: 1)" },
  { "--out", "PATH", YK__OPT_TEXT, FIELD(out), 0, 0, BIT(TRAIN) | BIT(EVALUATE) | BIT(PREDICT) | BIT(CONVERT),
    "folder of the run: train writes it (default: runs/MODEL-DATE-TIME), evaluate reads weights.safetensors in it; of a Keras model: "
    "the trained or converted model (default: trained.h5), the .npy file of predictions" },
  { "--checkpoint-every", "N|TIME", YK__OPT_TEXT, FIELD(checkpoint_every), 0, 0, BIT(TRAIN),
    "save the whole state into the folder every N steps, or after a time: 30s, 10m, 2h" },
  { "--keep", "N", YK__OPT_INT, FIELD(keep), 1, 1e6, BIT(TRAIN), "checkpoints to keep, the newest ones (default: 5)" },
  { "--keep-every", "HOURS", YK__OPT_REAL, FIELD(keep_every), 1e-9, 1e6, BIT(TRAIN),
    "of those that go, keep one in so many hours for good" },
  { "--resume", NULL, YK__OPT_FLAG, FIELD(resume), 0, 0, BIT(TRAIN),
    "go on from the newest whole checkpoint in --out, with its options where none are given" },
  { "--tensorboard", "DIR", YK__OPT_TEXT, FIELD(tensorboard), 0, 0, BIT(TRAIN),
    "write event files for TensorBoard: curves, distributions, pictures and the graph" },
  { "--gradient-histograms", "K", YK__OPT_INT, FIELD(gradient_histograms), 1, 1e12, BIT(TRAIN),
    "distributions of the gradients too, of every K-th step (--tensorboard)" },
  { "--trace", "FILE", YK__OPT_TEXT, FIELD(trace), 0, 0, BIT(TRAIN),
    "timeline of a few steps in Chrome's trace format (default: trace.json in the folder)" },
  { "--interval", "SECONDS", YK__OPT_REAL, FIELD(interval), 0, 1e6, BIT(TRAIN),
    "between two lines of metrics; 0 = every step (default: 5)" },
  { "--loss", "LIST", YK__OPT_TEXT, FIELD(loss), 0, 0, BIT(TRAIN) | BIT(EVALUATE),
    "of a Keras model: mse, or main_output=binary_crossentropy,aux_output=mse (default: the file's)" },
  { "--metrics", "LIST", YK__OPT_TEXT, FIELD(metrics), 0, 0, BIT(TRAIN) | BIT(EVALUATE),
    "of a Keras model: accuracy,mae, or by output as for --loss (default: the file's)" },
  { "--checkpoint", "FILE", YK__OPT_TEXT, FIELD(checkpoint), 0, 0, BIT(TRAIN),
    "of a Keras model: save the best epoch there, or every epoch in w.{epoch:02d}-{val_loss:.2f}.h5" },
  { "--early-stopping", "N", YK__OPT_INT, FIELD(early_stopping), 1, 1e9, BIT(TRAIN),
    "of a Keras model: stop after N epochs that are no better, and keep the best" },
  { "--csv", "FILE", YK__OPT_TEXT, FIELD(csv), 0, 0, BIT(TRAIN), "of a Keras model: a line of numbers for each epoch" },
  { "--divide", "X", YK__OPT_REAL, FIELD(divide), 1e-30, 1e30, BIT(TRAIN) | BIT(EVALUATE) | BIT(PREDICT),
    "of a Keras model: divide inputs, as pictures by 255 (default: as they are)" },
  { "--keras", "2|3", YK__OPT_INT, FIELD(keras), 1, 9, BIT(CONVERT), "the Keras that is to read the file (default: that of the model)" },
  { "--weights", NULL, YK__OPT_FLAG, FIELD(weights_only), 0, 0, BIT(CONVERT), "weights alone" },
  { "--plot", "FILE.svg", YK__OPT_TEXT, FIELD(plot), 0, 0, BIT(SUMMARY), "draw the network too: boxes, shapes and arrows, for a browser" },
  { "--expand-nested", NULL, YK__OPT_FLAG, FIELD(expand_nested), 0, 0, BIT(SUMMARY), "with the layers of networks inside (--plot)" },
  { "--soft-placement", NULL, YK__OPT_FLAG, FIELD(soft_placement), 0, 0, NETWORK,
    "run elsewhere what an asked-for device is absent for or cannot do" },
  { "--log-device-placement", NULL, YK__OPT_FLAG, FIELD(log_device_placement), 0, 0, BIT(TRAIN) | BIT(EXPLAIN),
    "print the device of every operation" },
  { "--no-time", NULL, YK__OPT_FLAG, FIELD(no_time), 0, 0, BIT(PLAN), "do not time the kernels; nothing runs then" },
  { "--tolerance", "X", YK__OPT_REAL, FIELD(tolerance), 0, 1, BIT(VERIFY),
    "allowed difference, relative to the largest value of each tensor (default: 1e-5; as --precision rounds)" },
  { "--no-gradient", NULL, YK__OPT_FLAG, FIELD(no_gradient), 0, 0, BIT(OPS), "only those that no gradient flows through" },
  { "--require", "WHAT", YK__OPT_TEXT, FIELD(require), 0, 0, BIT(DOCTOR),
    "gpu: exit status 3 unless a real GPU computes rightly" },
  { "--topology", NULL, YK__OPT_FLAG, FIELD(topology), 0, 0, BIT(DEVICES),
    "measure the copies between every two devices and tell which can train together" },
  { "--bench", NULL, YK__OPT_FLAG, FIELD(bench), 0, 0, BIT(DEVICES),
    "measure GFLOP/s, GB/s and training images/s of each device; the fastest first" },
  { "--watch", "[SECONDS]", YK__OPT_MAYBE, FIELD(watch), 0.05, 86400, BIT(DEVICES),
    "show devices and running jobs again and again (default: every 2 seconds)" },
  { "--count", "N", YK__OPT_INT, FIELD(count), 1, 1e12, BIT(DEVICES), "end --watch after so many times" },
  { "--dump", NULL, YK__OPT_FLAG, FIELD(dump), 0, 0, BIT(CONFIG), "print every setting" },
  { "--live", NULL, YK__OPT_FLAG, FIELD(live), 0, 0, BIT(TRAIN), "on a terminal: draw curves, tests and devices while it trains, not a bar alone" },
  { "--quiet", NULL, YK__OPT_FLAG, FIELD(quiet), 0, 0, BIT(TRAIN), "print nothing but errors" },
  { "--json", NULL, YK__OPT_FLAG, FIELD(json), 0, 0, BIT(TRAIN) | BIT(EVALUATE) | BIT(PREDICT) | BIT(SUMMARY) | BIT(PLAN) |
    BIT(BENCH) | BIT(VERIFY) | BIT(OPS) | BIT(DEVICES) |
    BIT(DOCTOR) | BIT(CONFIG) | BIT(PARAMS),
    "print JSON: one object a line (train), or one value" },
  { "--help", NULL, YK__OPT_FLAG, FIELD(help), 0, 0, 0, "print this" },
  { 0 },
};

const yk_cli yk__cli_defaults = { .seed = -1, .lr = -1, .interval = 5, .holdout = 0.1, .watch = -1, .tolerance = -1 };

static void print_option(const yk_opt *o) {
  char left[64];
  snprintf(left, sizeof left, "%s%s%s", o->name, o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
  printf("  %-24s  %s\n", left, o->doc);
}

static void help_models(yk_verb_id verb) {
  const yk_model *m;
  bool keras = (KERAS >> verb & 1u) != 0;
  printf("\nnetworks:\n");
  for (size_t i = 0; (m = yk_model_at(i)) != NULL && (TOWERS >> verb & 1u) != 0; i++)
    printf("  %-24s  %s; batch %lld, rate %g\n", m->name, m->doc, (long long)m->batch, m->learning_rate);
  if (keras) {
    yk__help_builtin();
    printf("\nKeras models: the networks that take numbers, as lstm:units=32,layers=2, and FILE.h5 or FILE.keras, which Keras or yoke saved.\n");
  }
  if ((STEP >> verb & 1u) != 0) yk__help_recipes();
}

void yk__help_verb(yk_verb_id verb) {
  const yk_verb *v = &yk__verbs[verb];
  printf("usage: yoke %s%s%s [OPTION...]\n\n%c%s.\n", v->name, v->operand != NULL ? " " : "", v->operand != NULL ? v->operand
         : "",
         v->doc[0] - 'a' + 'A', v->doc + 1);
  if (v->operand != NULL) help_models(verb);
  printf("\noptions:\n");
  for (const yk_opt *o = yk__options; o->name != NULL; o++)
    if (o->verbs == 0 || (o->verbs >> verb & 1u) != 0) print_option(o);
}

void yk__help(void) {
  printf("usage: yoke COMMAND [ARGUMENT...]\n\nTrains neural networks on every device of this machine.\n\ncommands:\n");
  for (int i = 0; i < YK__NVERBS; i++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", yk__verbs[i].name, yk__verbs[i].operand != NULL ? " " : "",
             yk__verbs[i].operand != NULL ? yk__verbs[i].operand : "");
    printf("  %-24s  %s\n", left, yk__verbs[i].doc);
  }
  printf("\noptions:\n  %-24s  %s\n  %-24s  %s\n", "--help", "print this; 'yoke COMMAND --help' tells its options", "--version",
         "print the version");
  printf("\nexit status: 0 success, 1 the run failed, 2 wrong usage, 3 no usable GPU, 130 interrupted\n");
}
