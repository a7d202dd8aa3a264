/*
 * h5_image.h - the bytes of an HDF5 file in memory, read once and without copies: the library works on them, tensors borrow them.
 *
 * They stay as long as anybody refers to them. What the library would never come back from is found before it sees them.
 */
#ifndef YK_KERAS_H5_IMAGE_H
#define YK_KERAS_H5_IMAGE_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

typedef struct yk_h5_image { uint8_t *bytes; size_t n; char *name; _Atomic uint32_t refs; } yk_h5_image;      /* name: what messages call it */

/* All of a file. ENOTFOUND, EIO, ECORRUPT (no HDF5 file; what begins like a web page or an archive is told). */
yk_code yk__h5_image_read(const char *path, yk_h5_image **out) YK_CHECKED;
/* Bytes of yk__alloc() that are taken over, also after a failure. */
yk_code yk__h5_image_of(const char *name, void *bytes, size_t n, yk_h5_image **out) YK_CHECKED;
yk_h5_image *yk__h5_image_ref(yk_h5_image *i);
void yk__h5_image_drop(yk_h5_image *i);
/* The library's file of these bytes, to be read; below 0: its error stack tells. The image must outlive it. */
hid_t yk__h5_image_open(yk_h5_image *i);

#endif
