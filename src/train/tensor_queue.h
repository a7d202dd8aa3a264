/*
 * tensor_queue.h - the inside of tensor queues, for who wants a place in the line before it wants the element.
 *
 * A worker takes its place before it gives its gradient: so it stands there when the tokens come that the gradient brings, and
 * nobody is faster than it.
 */
#ifndef YK_TRAIN_TENSOR_QUEUE_H
#define YK_TRAIN_TENSOR_QUEUE_H

#include <yoke/queue.h>

typedef struct yk_caller { struct yk_caller *next; } yk_caller;

/* Stand in line to dequeue. Those behind wait until `me` has taken or left: one of the calls below must follow soon. */
void yk__tensor_queue_stand(yk_tensor_queue *q, yk_caller *me);
/* Dequeue one element of fixed shapes to out[ncomponents]; `me` is out of the line then, whatever is returned. */
yk_code yk__tensor_queue_take(yk_tensor_queue *q, yk_caller *me, void *const *out) YK_CHECKED;
void yk__tensor_queue_leave(yk_tensor_queue *q, yk_caller *me);

#endif
