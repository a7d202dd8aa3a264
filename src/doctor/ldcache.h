/*
 * ldcache.h - what the system's loader has in its cache, /etc/ld.so.cache.
 *
 * The cache maps the name of a shared library to files, in the loader's order. Reading it tells which file a dlopen() would
 * take, without loading anything; a file of another form is as good as none.
 */
#ifndef YK_DOCTOR_LDCACHE_H
#define YK_DOCTOR_LDCACHE_H

#include <stddef.h>

/* Calls `fn` for each entry whose name begins with `prefix`, in file order. */
void yk__ldcache_each(const char *file, const char *prefix, void (*fn)(const char *name, const char *path, void *arg), void *arg);

#endif
