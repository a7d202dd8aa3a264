/*
 * h5.h - what Keras's files need of HDF5: attributes that are texts or lists of them, groups, and tensors.
 *
 * Only h5.c knows the library, which is not for several threads at once: every function takes one lock. Messages name the file, the
 * place in it and what was expected.
 */
#ifndef YK_KERAS_H5_H
#define YK_KERAS_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yoke/tensor.h>

typedef struct yk_h5 yk_h5;                    /* a file */
typedef struct yk_texts { char **at; uint32_t n; } yk_texts;

/* ENOTFOUND, EIO, ECORRUPT (no HDF5 file; what begins like a web page or a text is told). *out: yk__h5_close(). */
yk_code yk__h5_open(const char *path, yk_h5 **out) YK_CHECKED;
/* The same for a file in memory of yk__alloc(), which is taken over, also after a failure. `name`: what messages call it. */
yk_code yk__h5_open_bytes(const char *name, void *bytes, size_t n, yk_h5 **out) YK_CHECKED;
void    yk__h5_close(yk_h5 *f);
/* What messages call it. */
const char *yk__h5_name(const yk_h5 *f);
/* Is there a group or a data set of that path, "model_weights/dense_1"? */
bool    yk__h5_has(const yk_h5 *f, const char *path);
/* Is there anything in the root whose name begins so? */
bool    yk__h5_any(const yk_h5 *f, const char *prefix);
/* Attribute `name` of the group at `path` ("/" is the root). *out: the caller's, NULL if there is none; ECORRUPT if it is no text. */
yk_code yk__h5_text(const yk_h5 *f, const char *path, const char *name, char **out) YK_CHECKED;
/* A list of texts, of fixed or variable length, put together where it was split into name0, name1, ...; none is an empty list. */
yk_code yk__h5_texts(const yk_h5 *f, const char *path, const char *name, yk_texts *out) YK_CHECKED;
void    yk__texts_free(yk_texts *t);
/* A data set of floats or integers as f32 or i32, i64, which may be lent from the file's bytes; and only what it is, before so much
 * memory is taken as a file asks for. Only what is in this very file counts: links out of it are as if they were not there, data kept
 * elsewhere is ECORRUPT. */
yk_code yk__h5_desc(const yk_h5 *f, const char *path, yk_desc *out) YK_CHECKED;
yk_code yk__h5_tensor(const yk_h5 *f, const char *path, yk_tensor **out) YK_CHECKED;

/* ---- writing: h5_write.c ------------------------------------------------------------------------------------------------------ */

typedef struct yk_h5_out yk_h5_out;            /* a file in memory */
yk_code yk__h5_new(yk_h5_out **out) YK_CHECKED;
void    yk__h5_drop(yk_h5_out *f);
/* Groups on the way to a path are made. */
yk_code yk__h5_put_group(yk_h5_out *f, const char *path) YK_CHECKED;
yk_code yk__h5_put_text(yk_h5_out *f, const char *path, const char *name, const char *text) YK_CHECKED;
yk_code yk__h5_put_texts(yk_h5_out *f, const char *path, const char *name, const yk_texts *t) YK_CHECKED;
yk_code yk__h5_put_tensor(yk_h5_out *f, const char *path, const yk_tensor *t) YK_CHECKED;
/* To the disk, whole or not at all. EIO names file and reason. */
yk_code yk__h5_save(yk_h5_out *f, const char *path) YK_CHECKED;
/* All bytes of the file instead, the caller's. */
yk_code yk__h5_bytes(yk_h5_out *f, char **out, size_t *n) YK_CHECKED;
/* Why the library failed last, ": reason" or ""; with the lock held. Returns buf. */
enum { YK__H5_WHY = 208 };
char *yk__h5_why(char buf[YK__H5_WHY]);
/* Held around every call of the library. */
extern _Atomic uint32_t yk__h5_lock;

#endif
