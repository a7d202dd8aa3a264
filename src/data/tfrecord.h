/*
 * tfrecord.h - what a TFRecord data set keeps: files with the offsets of their records, and features with their components.
 *
 * Component k of an example is made from slot[k].
 */
#ifndef YK_DATA_TFRECORD_H
#define YK_DATA_TFRECORD_H

#include "data/example.h"
#include "data/record.h"

typedef struct yk_shard {
  yk_record_file r;
  int64_t first;                     /* number of its first example */
  int64_t *offset;                   /* [n]: of each record, and of the end of the last one */
  uint32_t n, cap;
} yk_shard;

typedef struct yk_slot {
  char *name;                        /* of the feature; owned */
  yk_dtype dtype;
  yk_shape shape;
  int64_t count, bytes;
  bool encoded;                      /* a picture to be decoded, whatever its length */
  void *missing;                     /* [bytes] owned, or NULL */
} yk_slot;

typedef struct yk_shards { uint32_t nshards; yk_shard *shard; yk_slot slot[YK_MAX_COMPONENTS]; yk_fit fit; } yk_shards;

/*
 * What a record seems to hold. With a picture: that and the label; else every feature of numbers. name, dtype, shape and encoded of
 * found[*n] are filled in, names are the caller's to free, also after a failure; component NULL = as the feature. Messages tell what
 * is wrong, not where.
 */
yk_code yk__tfrecord_guess(yk_span record, const yk_dataset_options *o, yk_slot found[YK_MAX_COMPONENTS],
                           const char *component[YK_MAX_COMPONENTS],
                           uint32_t *n) YK_CHECKED;

#endif
