/*
 * npy.h - one NumPy array, from a file or from a member of an archive.
 *
 * The header is a Python literal with three known keys; anything else in it is refused, and so are pickled objects, whose reading
 * would run code.
 */
#ifndef YK_DATA_NPY_H
#define YK_DATA_NPY_H

#include "data/arrays.h"

/* Where an array is: `bytes` from `at` of the file that the array owns; or in a->block, which holds them. `who` names it in messages. */
typedef struct yk_npy { const char *who; int64_t at, bytes; } yk_npy;
/* Fills in everything of `a` but its file and block, and brings it into memory where its order asks for that. */
yk_code yk__npy_read(const yk_npy *s, yk_array *a) YK_CHECKED;

/* The column's name from that of a file or member: "x" of "data/x_train.npy"; X, images and data are called x as well, labels y. */
void yk__columns_name(const char *path, yk_column *c);
/* Pictures or features first, labels second, others as they come. */
void yk__columns_sort(uint32_t n, yk_column *column);

#endif
