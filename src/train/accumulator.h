/*
 * accumulator.h - the inside of accumulators, for the chief of synchronous replicas.
 *
 * Its take differs from the public one in two ways: how many gradients it waits for may change while it waits, when workers
 * leave; and rows come in a few sizes only, since each size is another plan of the step that they are fed to.
 */
#ifndef YK_TRAIN_ACCUMULATOR_H
#define YK_TRAIN_ACCUMULATOR_H

#include <stdatomic.h>
#include <yoke/sync.h>

/* As the public takes, of *n gradients. Whoever changes *n calls yk__accumulator_wake(). */
yk_code yk__accumulator_take(yk_accumulator *a, const _Atomic int64_t *n, yk_tensor *into) YK_CHECKED;
/*
 * The number of rows is rounded up to a power of two (or to all rows): the first row is repeated with zeros, which changes no
 * sum. *values and *rows are tensors of an earlier call or NULL; they are replaced if they do not fit.
 */
yk_code yk__accumulator_take_rows(yk_accumulator *a, const _Atomic int64_t *n, yk_tensor **values, yk_tensor **rows) YK_CHECKED;
/* Takes look at their *n again. complete: no gradient comes any more; takes of what is there still succeed, others fail
 * (ECANCELLED). */
void yk__accumulator_wake(yk_accumulator *a, bool complete);

#endif
