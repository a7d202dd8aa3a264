/*
 * two_stage_detector.c - alternating training: a network that proposes regions, and a head that learns from what it proposes.
 *
 * In each step the first one learns which anchors show something and how to correct them. What it then proposes is what the head learns to
 * name and to correct once more, from the features inside, which come of a backbone that both train. One file keeps it all.
 *
 *   two_stage_detector [STEPS [FILE]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <yoke/yoke.h>

enum { SIDE = 64, STRIDE = 4, CELLS = SIDE / STRIDE, SIZES = 2, ANCHORS = CELLS * CELLS * SIZES, BOXES = 32, REGION = 4, BATCH = 8 };
enum { PICTURES, TRUTH, KINDS, ANCHOR, TARGETS, NTENSORS = TARGETS + 4, MOST = 3, FOUND = 6, HELD_OUT = 200 };

/* step: one to train each part, the proposer and the head, one that finds. tensor: scenes, anchors, what each part is to learn. */
typedef struct detector { yk_keras *k; yk_network *whole; yk_step *step[3]; yk_tensor *tensor[NTENSORS]; yk_detection_score *score; } detector;

static yk_sym conv(yk_keras *k, yk_sym x, int64_t filters, int64_t size, const char *activation) {
  const yk_conv_config c = { .filters = filters, .kernel_size = { size, size }, .padding = "same", .activation = activation };
  return yk_apply(yk_layer_conv2d(k, &c), x);
}

/* From pictures: logits and codes of anchors, and features; from features in a region: logits and a code. */
static yk_network *model(yk_keras *k) {
  yk_sym in[2] = { yk_input(k, &(yk_input_config){ .name = "picture", .shape = YK_SHAPE(SIDE, SIDE, 3) }),
                   yk_input(k, &(yk_input_config){ .name = "region", .shape = YK_SHAPE(REGION, REGION, 64) }) }, x = in[0], out[5];
  for (int i = 0; i < 2; i++) x = yk_apply(yk_layer_max_pooling2d(k, NULL), conv(k, x, 16 << i, 3, "relu"));
  out[2] = conv(k, x, 64, 3, "relu");
  x = conv(k, out[2], 64, 3, "relu");
  for (int i = 0; i < 2; i++) out[i] = conv(k, x, SIZES * (i ? 4 : 2), 1, NULL);
  x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = 96, .activation = "relu" }), yk_apply(yk_layer_flatten(k, NULL), in[1]));
  for (int i = 0; i < 2; i++) out[3 + i] = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = i ? 4 : 1 + YK_SCENE_CLASSES }), x);
  return yk_network_new(k, "two_stage_detector", 2, in, 5, out);
}

/* Part i of the model on pictures, or on what features there are in boxes: logits and codes of these; and by them the best of the boxes. */
static void look(yk_graph *g, detector *d, size_t i, yk_value x, yk_value boxes, yk_value out[3], yk_value best[4]) {
  const yk_choose_options o = { SIDE, SIDE, .candidates = 200, .most = i ? FOUND : BOXES, .iou = i ? 0.3 : 0.7, .score = i ? 0.05 : 0 };
  const yk_sym *from = yk_network_inputs(d->whole, NULL), *to = yk_network_outputs(d->whole, NULL);
  if (i) x = yk_roi_align(g, x, boxes, (yk_value){ 0 }, &(yk_roi_attrs){ .size = { REGION, REGION }, .scale = 1.0 / STRIDE });
  yk_network_build(yk_network_new(d->k, NULL, 1, from + i, 3 - i, to + 3 * i), true, &x, out);
  yk_choose_boxes(g, out[0], out[1], boxes, &o, best);
}

static yk_code build(detector *d, yk_tensor **t) {
  const yk_anchor_options over = { .rows = CELLS, .columns = CELLS, .stride = STRIDE, .nsizes = SIZES, .sizes = (double[]){ 14, 22 } };
  yk_graph *g;
  yk_session *s;
  YK_TRY(yk_detection_score_new(YK_SCENE_CLASSES, 0.5, &d->score));
  YK_TRY(yk_anchors(&over, &t[ANCHOR]));
  YK_TRY(yk_scenes_new(BATCH, SIDE, MOST, &t[PICTURES]));
  YK_TRY(yk_keras_graph(d->k, &g));
  yk_value pictures = yk_placeholder(g, "pictures", YK_F32, YK_SHAPE(BATCH, SIDE, SIDE, 3)), anchors = yk_constant(g, t[ANCHOR]);
  yk_value x[3], found[2][4], feed[2][4] = { { pictures }, { pictures } }, loss[2], update[2];
  for (size_t i = 0; i < 2; i++) {                         /* each part learns with an optimizer of its own */
    const int64_t n = i ? BOXES : ANCHORS;
    yk_optimizer adam = YK_ADAM(2e-3);
    adam.scope = i ? "head" : "proposer";
    for (int j = 1; j < 4; j++)
      feed[i][j] = yk_placeholder(g, NULL, j > 1 ? YK_F32 : YK_I32, j > 1 ? YK_SHAPE(BATCH, n, 4) : YK_SHAPE(BATCH, n));
    look(g, d, i, i ? x[2] : pictures, i ? feed[1][3] : anchors, x, found[i]);
    loss[i] = yk_detection_loss(g, x[0], x[1], feed[i][1], feed[i][2]);
    update[i] = yk_minimize(g, &adam, loss[i], NULL);
    YK_TRY(yk_box_targets_new(BATCH, n, &t[TARGETS + 2 * i]));
  }
  look(g, d, 1, x[2], found[0][0], x, found[1]);
  YK_TRY(yk_keras_session(d->k, &s));
  YK_TRY(yk_step_prepare(s, 3, feed[0], 2, (yk_value[]){ loss[0], found[0][0] }, 1, &update[0], &d->step[0]));
  YK_TRY(yk_step_prepare(s, 4, feed[1], 1, &loss[1], 1, &update[1], &d->step[1]));
  return yk_step_prepare(s, 1, &pictures, 4, found[1], 0, NULL, &d->step[2]);
}

/* The proposer on anchors, then the head on what it proposed. */
static yk_code train(yk_step **step, yk_tensor **t, int64_t steps) {
  const yk_tensor *const *first, *const *second;
  yk_target_options o[2] = { { .positive = 0.6, .negative = 0.3, .best = true, .most = 64 }, { .most = 16 } };
  for (int64_t i = 0; i < steps; i++) {
    o[0].seed = o[1].seed = (uint64_t)i;
    YK_TRY(yk_scenes_draw(1, (uint64_t)i * BATCH, t));
    YK_TRY(yk_box_targets(t[ANCHOR], t[TRUTH], NULL, &o[0], t + TARGETS));
    YK_TRY(yk_step_run(step[0], (const yk_tensor *[]){ t[PICTURES], t[TARGETS], t[TARGETS + 1] }, &first));
    YK_TRY(yk_box_targets(first[1], t[TRUTH], t[KINDS], &o[1], t + TARGETS + 2));
    YK_TRY(yk_step_run(step[1], (const yk_tensor *[]){ t[PICTURES], t[TARGETS + 2], t[TARGETS + 3], first[1] }, &second));
    if (i % 100 == 99) printf("step %d: proposals %.4f, head %.4f\n", (int)i + 1, yk_tensor_at(first[0], 0), yk_tensor_at(second[0], 0));
  }
  return YK_OK;
}

static yk_code evaluate(yk_step *find, yk_tensor **t, yk_detection_score *score) {
  const yk_tensor *const *found;
  for (uint64_t i = 0; i < HELD_OUT; i += BATCH) {
    YK_TRY(yk_scenes_draw(2, i, t));
    YK_TRY(yk_step_run(find, (const yk_tensor *[]){ t[PICTURES] }, &found));
    YK_TRY(yk_detection_score_add(score, found[0], found[1], found[2], t[TRUTH], t[KINDS]));
  }
  printf("recall %.4f, mAP %.4f in %d other scenes\n", yk_detection_recall(score, -1), yk_average_precision(score, -1), HELD_OUT);
  return YK_OK;
}

int main(int argc, char **argv) {
  const char *file = argc > 2 ? argv[2] : "detector.h5";
  yk_code rc = YK_OK;
  for (int i = 0; i < 2 && rc == YK_OK; i++) {             /* one is trained and saved; another one is what the file holds */
    detector d = { .k = NULL };
    rc = yk_keras_new(1, &d.k);
    if (rc == YK_OK && i == 0) d.whole = model(d.k), rc = yk_keras_status(d.k);
    if (rc == YK_OK && i == 1) rc = yk_network_load(d.k, file, &d.whole);
    if (rc == YK_OK) rc = build(&d, d.tensor);
    if (rc == YK_OK && i == 0) rc = train(d.step, d.tensor, argc > 1 ? strtol(argv[1], NULL, 10) : 800);
    if (rc == YK_OK) rc = evaluate(d.step[2], d.tensor, d.score);
    if (rc == YK_OK && i == 0) rc = yk_network_save(d.whole, file);
    if (rc != YK_OK) fprintf(stderr, "two_stage_detector: %s\n", yk_error_message());
    for (int k = 0; k < 3; k++) yk_step_free(d.step[k]);
    for (int k = 0; k < NTENSORS; k++) yk_tensor_free(d.tensor[k]);
    yk_detection_score_free(d.score), yk_keras_free(d.k);
  }
  return rc == YK_OK ? 0 : 1;
}
