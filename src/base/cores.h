/*
 * cores.h - what cores.c lends to thread.c, and to nobody else.
 *
 * A new thread inherits the mask of the one that made it. Since that may be
 * pinned to a single core, new threads start by taking the whole mask again.
 */
#ifndef YK_BASE_CORES_H
#define YK_BASE_CORES_H

/* Give the calling thread all cores of the process. */
void yk__unpin(void);

#endif
