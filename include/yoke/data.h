/*
 * data.h - data sets, and batch queues that several devices dequeue from.
 *
 * A data set is a numbered collection of examples in memory. A queue turns one
 * into an endless stream of examples in an order fixed by its seed, prepared by
 * background threads; the stream is the same for any number of threads.
 */
#ifndef YK_DATA_H
#define YK_DATA_H

#include <stdbool.h>
#include "op_attrs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Labelled pictures in memory, and which half of them: to learn from or to be tested on. */
typedef struct yk_dataset yk_dataset;
typedef enum yk_split { YK_TRAIN, YK_TEST } yk_split;

/*
 * CIFAR-10 in its original binary form (records of 1 label byte and 3072 pixels: R, G, B planes of 32x32). `path` is the folder with
 * data_batch_1.bin ... data_batch_5.bin (those that are there; at least one) and test_batch.bin.
 * Errors, each naming the file: ENOTFOUND, EIO (also: not a regular file), ECORRUPT (size not a multiple of 3073, empty, label above 9 with
 * record and offset).
 */
yk_code yk_dataset_cifar10(const char *path, yk_split split, yk_dataset **out) YK_CHECKED;
/* shapes10: pictures [32,32,3] of ten kinds of figures, drawn from a seed: position, size, angle, colours, texture and noise vary, so
 * that colour alone tells nothing. The same bytes on every machine. Train and test never share a draw; picture i does not depend on n,
 * its label is i % 10. A picture is drawn when it is first asked for. n = 0: 20000 train, 4000 test. */
yk_code yk_dataset_shapes10(uint64_t seed, yk_split split, int64_t n, yk_dataset **out) YK_CHECKED;
/* Pictures and labels from memory: images u8 [n, height, width, channels], labels u8 [n]; copied. */
yk_code yk_dataset_images(int64_t n, int64_t height, int64_t width, int64_t channels, const uint8_t *images, const uint8_t *labels,
                          int64_t nclasses, yk_dataset **out) YK_CHECKED;
void yk_dataset_free(yk_dataset *d);

/* Number of examples, of classes, and names. Strings are borrowed, valid while the data set lives. Any thread. */
int64_t yk_dataset_size(const yk_dataset *d);
int64_t yk_dataset_classes(const yk_dataset *d);
const char *yk_dataset_name(const yk_dataset *d);                     /* "cifar10", "shapes10", "images" */
const char *yk_dataset_class_name(const yk_dataset *d, int64_t label); /* NULL if it has no name */
/* Shape of one picture, and example i: borrowed u8 [height, width, channels], and its label. NULL / -1 out of range. */
yk_shape yk_dataset_shape(const yk_dataset *d);
const uint8_t *yk_dataset_image(const yk_dataset *d, int64_t i);
int32_t yk_dataset_label(const yk_dataset *d, int64_t i);

/* How a picture becomes network input, f32 [size, size, channels]. */
typedef enum yk_augment {
  YK_AUGMENT_NONE,          /* x/255 - 0.5, whole picture */
  YK_AUGMENT_CIFAR_TRAIN,   /* the tutorial's: random crop to `size`, flip, brightness, contrast, standardise */
  YK_AUGMENT_CIFAR_EVAL,    /* central crop to `size`, standardise */
  YK_AUGMENT_PAD_CROP_FLIP, /* standardise whole, pad 4, random crop back, flip: the usual residual-network recipe */
  YK_AUGMENT_STANDARDISE    /* standardise whole */
} yk_augment;

/* Standardise: (x - mean) / max(deviation, 1/sqrt(count)) over the whole picture. `draw` numbers the random choices: same (seed, draw), same result.
 * in: u8 [h, w, c]; out: f32 [size, size, c]. EINVAL if size > h or w, or above 4096, or c > 64. */
yk_code yk_augment_image(yk_augment kind, const uint8_t *in, int64_t h, int64_t w, int64_t c, int64_t size, uint64_t seed, uint64_t draw,
                         float *out) YK_CHECKED;

typedef struct yk_queue yk_queue;
typedef struct yk_queue_options {
  uint32_t size;                /* YK_QUEUE_OPTIONS_INIT sets it */
  yk_augment augment;
  int64_t  image_size;          /* side of the result; 0 = the picture's */
  bool     shuffle;             /* each epoch in its own order, all examples once */
  uint64_t seed;
  int64_t  capacity;            /* prepared examples kept ahead; 0 = 1024 */
  int32_t  threads;             /* 0 = 1 */
  int64_t  epochs;              /* 0 = endless; else `next` fails with ECANCELLED once they are used up */
} yk_queue_options;
#define YK_QUEUE_OPTIONS_INIT { .size = sizeof(yk_queue_options) }

/* The data set must outlive the queue. Components of a batch: f32 [rows, size, size, channels], i32 [rows]. */
yk_code yk_queue_open(const yk_dataset *d, const yk_queue_options *options, yk_queue **out) YK_CHECKED;
void    yk_queue_close(yk_queue *q);      /* wakes whoever waits (ECANCELLED), lets them leave, then frees; NULL is fine */
const yk_source *yk_queue_source(const yk_queue *q);   /* for dequeue ops; borrowed, valid until close */
/* Examples taken so far, counted from the first of the stream: a seek changes it. */
int64_t yk_queue_taken(const yk_queue *q);

/* A place in the stream: `example` examples of epoch `epoch` (from 0) have been taken. With the same data set and options, a queue
 * that is moved there goes on exactly as the one that told it. */
typedef struct yk_position { int64_t epoch, example; } yk_position;
yk_position yk_queue_position(const yk_queue *q);
/* Waits for calls under way. EINVAL: not a place in this stream, as when the data set has another size. */
yk_code yk_queue_seek(yk_queue *q, yk_position position) YK_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
