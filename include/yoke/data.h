/*
 * data.h - data sets, and batch queues that several devices dequeue from.
 *
 * A data set is a numbered collection of examples, in memory or in files. A queue turns one
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

/*
 * Numbered examples, and which half of them: to learn from or to be tested on. An example is a tuple of named components, each a
 * dense tensor of the same dtype and shape in every example. Two of them may have a meaning of their own: the picture, u8 [height,
 * width, channels], which a queue can augment; and the label, an i32 scalar from 0 to the number of classes - 1, named "label".
 */
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
/*
 * Scenes of figures whose boxes are known: discs, squares and triangles, classes 0, 1 and 2, 1 to `most` of them in each; the
 * same on every machine. out[0] pictures f32 [n, side, side, 3], from 0 to 1; out[1] boxes f32 [n, most, 4], (y1, x1, y2, x2)
 * in pixels, zeros behind the last one, see detect.h; out[2] classes i32 [n, most]. New: yk_tensor_free() each; n from 1, side
 * 32 to 1024, most 1 to 64. Draw: those numbered `first` to first + n - 1 of a seed, into such tensors; takes no memory.
 * EINVAL: a number out of range, tensors that do not fit.
 */
enum { YK_SCENE_CLASSES = 3 };
yk_code yk_scenes_new(int64_t n, int64_t side, int64_t most, yk_tensor *out[3]) YK_CHECKED;
yk_code yk_scenes_draw(uint64_t seed, uint64_t first, yk_tensor *const out[3]) YK_CHECKED;
/* Pictures and labels from memory: images u8 [n, height, width, channels], labels u8 [n]; copied. */
yk_code yk_dataset_images(int64_t n, int64_t height, int64_t width, int64_t channels, const uint8_t *images, const uint8_t *labels,
                          int64_t nclasses, yk_dataset **out) YK_CHECKED;
/* From tensors: example i is slice i of each, along the first dimension, which is the same for all. The tensors are kept (one more
 * owner), the names copied. A component named "label" is i32 [n] and not negative; the first u8 [n, h, w, c] is the picture. */
yk_code yk_dataset_tensors(uint32_t ncomponents, const char *const *name, yk_tensor *const *tensor, yk_dataset **out) YK_CHECKED;

/* How a decoded picture gets to the size that was asked for; both smooth what they shrink (a triangle filter as wide as the scale). */
typedef enum yk_fit {
  YK_FIT_CROP,              /* scaled until the shorter side fits, then the middle is cut out */
  YK_FIT_STRETCH            /* each side scaled on its own */
} yk_fit;

/* A feature of tf.Example records, which becomes a component. Float lists give f32, f64; int64 lists i64, i32, u8, bool; bytes lists u8:
 * one value of as many bytes as the shape has, or, for a shape [height, width, channels], an encoded JPEG or PNG. */
typedef struct yk_feature {
  const char *name, *component;    /* component NULL: called like the feature */
  yk_dtype dtype;
  yk_shape shape;                  /* of one example */
  const void *missing;             /* dense value where a record lacks the feature; NULL: such a record is corrupt */
} yk_feature;

typedef struct yk_dataset_options {
  uint32_t size;            /* YK_DATASET_OPTIONS_INIT sets it */
  const char *format;       /* "cifar10" "idx" "csv" "npy" "npz" "tfrecord" "folder"; NULL = recognised */
  const char *label;        /* csv: the column, by name or number from 1; tfrecord: the feature; NULL = recognised */
  int64_t classes;          /* 0 = counted, for which tfrecord files are read once */
  int64_t skip;             /* corrupt records to pass over; one more, or with 0 the first, is an error */
  double holdout;           /* part of the examples, 0 to 1, that is YK_TEST where the files have no test part; 0 = none is */
  int64_t height, width, channels;   /* of decoded pictures; 0 = as the first one, channels 3 */
  yk_fit fit;
  char delimiter;           /* csv; 0 = comma */
  int32_t header;           /* csv: 1 = the first line has names, -1 = it has none, 0 = found out */
  const char *types;        /* csv: number, class or skip for each column, with commas; NULL = found out from the first rows */
  size_t nfeatures;         /* tfrecord; 0 = found out from the first record */
  const yk_feature *features;
  int64_t max_bytes;        /* that a compressed file without a declared size may inflate to; 0 = 4 GiB */
} yk_dataset_options;
#define YK_DATASET_OPTIONS_INIT { .size = sizeof(yk_dataset_options) }

/*
 * The data set at `path`, in any of the formats of docs/data.md: a file, or a folder. What is large is read example by example when
 * it is wanted. `options` NULL = defaults. A split that the files do not have is ENOTFOUND, unless there is a holdout.
 * ENOTFOUND tells what was looked for; EINVAL an option that does not fit; EIO and ECORRUPT name file, record and offset.
 */
yk_code yk_dataset_open(const char *path, const yk_dataset_options *options, yk_split split, yk_dataset **out) YK_CHECKED;
void yk_dataset_free(yk_dataset *d);

/* Number of examples, of classes (0: no labels), and names. Strings are borrowed, valid while the data set lives. Any thread. */
int64_t yk_dataset_size(const yk_dataset *d);
int64_t yk_dataset_classes(const yk_dataset *d);
const char *yk_dataset_name(const yk_dataset *d);                     /* its format, "shapes10", "images" or "tensors" */
const char *yk_dataset_class_name(const yk_dataset *d, int64_t label); /* NULL if it has no name */
/* Components: how many; name and description (one example) of component k, borrowed, NULL out of range. */
uint32_t yk_dataset_components(const yk_dataset *d);
const char *yk_dataset_component_name(const yk_dataset *d, uint32_t k);
const yk_desc *yk_dataset_component(const yk_dataset *d, uint32_t k);
/*
 * Example i: component k is written to out[k]. Any thread. EINVAL out of range; ECORRUPT and EIO tell file, record and offset. With
 * options.skip a corrupt record's place is taken by the next good one, so that the length stays; it is counted once.
 */
yk_code yk_dataset_read(const yk_dataset *d, int64_t i, void *const *out) YK_CHECKED;
/* Corrupt records met and passed over so far; *first (may be NULL) becomes the message of the first, "" if there was none. */
int64_t yk_dataset_skipped(const yk_dataset *d, const char **first);
/* Of a set with pictures: the shape of one (rank 0: there are none); of those whose pictures are in memory, also picture i (borrowed u8
 * [height, width, channels]) and its label. NULL / -1 out of range, or where yk_dataset_read has to be used. */
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
  yk_augment augment;           /* of the picture, if the data set has one; other components stay as they are */
  int64_t  image_size;          /* side of the result; 0 = the picture's shorter one */
  bool     shuffle;             /* each epoch in its own order, all examples once */
  uint64_t seed;
  int64_t  capacity;            /* prepared examples kept ahead; 0 = 1024 */
  int32_t  threads;             /* 0 = 1 */
  int64_t  epochs;              /* 0 = endless; else `next` fails with ERANGE once they are used up */
  int64_t  whole_batches;       /* leave out the last size % whole_batches examples of each epoch's order; 0 = none */
} yk_queue_options;
#define YK_QUEUE_OPTIONS_INIT { .size = sizeof(yk_queue_options) }

/* The data set must outlive the queue. Components of a batch: those of the data set with a first dimension `rows`; the picture as
 * f32 [rows, size, size, channels]. EINVAL: options, an augmentation that does not fit, or fewer examples than whole_batches. */
yk_code yk_queue_open(const yk_dataset *d, const yk_queue_options *options, yk_queue **out) YK_CHECKED;
void    yk_queue_close(yk_queue *q);      /* wakes whoever waits (ECANCELLED), lets them leave, then frees; NULL is fine */
/* For dequeue ops; borrowed, valid until close. An example that cannot be read (ECORRUPT, EIO) fails the batch that it belongs to,
 * whatever the number of threads, and all after it. */
const yk_source *yk_queue_source(const yk_queue *q);
/* Examples taken so far, counted from the first of the stream: a seek changes it. */
int64_t yk_queue_taken(const yk_queue *q);

/* How many examples one call takes. */
typedef enum yk_take {
  YK_TAKE_ALL,              /* as many as asked for; ERANGE, and none is taken, if the queue has fewer left */
  YK_TAKE_UP_TO,            /* those that are left, at least one; ERANGE if none is */
  YK_TAKE_IN_EPOCH          /* like that, but none of the next epoch: the last batch of each may be smaller */
} yk_take;
/* The next `rows` examples or fewer, component k to out[k]; *taken of them. Rows behind those are left as they are. Any thread. */
yk_code yk_queue_take(yk_queue *q, yk_take how, int64_t rows, void *const *out, int64_t *taken) YK_CHECKED;

/* A place in the stream: `example` examples of epoch `epoch` (from 0) have been taken. With the same data set and options, a queue
 * that is moved there goes on exactly as the one that told it. */
typedef struct yk_position { int64_t epoch, example; } yk_position;
yk_position yk_queue_position(const yk_queue *q);
/* Waits for calls under way. EINVAL: not a place in this stream, as when the data set has another size. */
yk_code yk_queue_seek(yk_queue *q, yk_position position) YK_CHECKED;

/* ---- TFRecord files ----------------------------------------------------------------------------------------------------- */

/* Writes records with their checksums; TensorFlow reads them. The file appears when it is closed; until then it has another name. */
typedef struct yk_record_writer yk_record_writer;
yk_code yk_record_writer_open(const char *path, yk_record_writer **out) YK_CHECKED;
/* One record of any bytes; or one tf.Example with a value for each feature (component is not used), dense in value[k]. After a failure
 * (EIO) the file cannot be saved any more. One thread at a time. EINVAL: an f16 or bf16 feature. */
yk_code yk_record_write(yk_record_writer *w, const void *bytes, size_t n) YK_CHECKED;
yk_code yk_record_write_example(yk_record_writer *w, size_t nfeatures, const yk_feature *features, const void *const *value) YK_CHECKED;
/* Saves the file under its name, replacing one that was there; frees the writer in any case. NULL is fine. */
yk_code yk_record_writer_close(yk_record_writer *w) YK_CHECKED;
/* Frees it without saving. NULL is fine. */
void yk_record_writer_drop(yk_record_writer *w);

/* Reads records of any kind in their order, one after the other; compressed files (gzip, zlib) too. One thread at a time. */
typedef struct yk_record_reader yk_record_reader;
yk_code yk_record_reader_open(const char *path, yk_record_reader **out) YK_CHECKED;
/* The next record, borrowed until the next call; *bytes NULL at the end. ECORRUPT: file, record and offset. */
yk_code yk_record_read(yk_record_reader *r, const void **bytes, size_t *n) YK_CHECKED;
void yk_record_reader_close(yk_record_reader *r);

#ifdef __cplusplus
}
#endif
#endif
