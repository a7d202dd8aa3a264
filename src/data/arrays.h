/*
 * arrays.h - data sets whose components are arrays, example after example: IDX, NumPy, CSV, and tensors of the program.
 *
 * An array stays in its file when it lies there in order, and is read example by example; otherwise it is in memory. Numbers of
 * kinds that no tensor has become the next wider kind on the way.
 */
#ifndef YK_DATA_ARRAYS_H
#define YK_DATA_ARRAYS_H

#include "data/dataset.h"
#include "data/file.h"

/* As stored. The dtype that each becomes, its bytes and its name: a table in arrays.c. */
typedef enum yk_stored { YK_S_U8, YK_S_I8, YK_S_I16, YK_S_U16, YK_S_I32, YK_S_U32, YK_S_I64, YK_S_F16, YK_S_F32, YK_S_F64,
                        YK_S_BOOL } yk_stored;
int64_t  yk__stored_bytes(yk_stored s);
yk_dtype yk__stored_dtype(yk_stored s);

/* Owns what it points to. */
typedef struct yk_array {
  yk_file file;                     /* its path, for messages, is there too when the numbers are in memory; NULL: tensors */
  int64_t at;                       /* offset of the numbers in the file (or in what it inflates to) */
  void *block;                      /* the numbers, or what holds them; NULL: they are in the file */
  yk_tensor *tensor;                /* ... lends them, instead of block */
  const uint8_t *data;              /* first number; NULL: in the file */
  yk_stored stored;
  bool swapped;                     /* big end first */
  bool columns;                     /* the first dimension runs fastest (Fortran order); in memory only */
  uint8_t rank;                     /* with the first dimension, which counts examples: at least 1 */
  int64_t dim[YK_MAX_RANK];
} yk_array;

/* Bytes of all numbers; -1: a dimension below 0, or more than 2^62. */
int64_t yk__array_bytes(const yk_array *a);
/* From the file into memory. */
yk_code yk__array_load(yk_array *a) YK_CHECKED;
void yk__array_close(yk_array *a);

/* A component from outside: its array, and what it is called. "x" is called "image" where it looks like pictures; "y" is "label" where
 * it is whole numbers. */
typedef struct yk_column { char name[64]; yk_array array; } yk_column;

/* A sealed set of n components; takes the arrays over, also when it fails. */
yk_code yk__arrays_take(const char *name, uint32_t n, yk_column *column, const yk_dataset_options *o, yk_split split,
                        yk_dataset **out) YK_CHECKED;

#endif
