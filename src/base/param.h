/*
 * param.h - the one registry of settings, with type, default, origin and description.
 *
 * Settings are listed in param.def: PARAM(name, env, kind, default, doc), for example
 * PARAM("trace.steps", "YOKE_TRACE_STEPS", INT, "10", "..."). A value comes from the
 * default, the environment variable, or a call, in rising priority. The only user of getenv.
 */
#ifndef YK_BASE_PARAM_H
#define YK_BASE_PARAM_H

#include <stddef.h>
#include <stdint.h>
#include <yoke/status.h>

typedef enum yk_param_origin { YK_FROM_DEFAULT, YK_FROM_ENV, YK_FROM_CALL } yk_param_origin;
typedef struct yk_param_info {
  const char *name, *env, *kind, *dflt, *doc;   /* static strings; kind: "int" (>= 0) "bytes" "bool" "text" "list" (commas) */
} yk_param_info;

const yk_param_info *yk__param_all(size_t *count);
/* Current value as text (never NULL for a known name; valid for ever), and where it came from. NULL: unknown name. Any thread. */
const char *yk__param(const char *name);
yk_param_origin yk__param_origin_of(const char *name);
/* Typed reads; the value was checked when it was set, so they cannot fail on a known name. */
int64_t yk__param_int(const char *name);
int     yk__param_bool(const char *name);
/* First environment variable whose value was refused: EINVAL telling it. Elsewhere it is only a warning, and the default holds. */
yk_code yk__param_check_env(void) YK_CHECKED;
/* Set from a call. EINVAL with the name, the value and what is expected; ENOTFOUND with the nearest names. */
yk_code yk__param_set(const char *name, const char *value) YK_CHECKED;
/* The raw value of an environment variable of another system (CUDA_VISIBLE_DEVICES); NULL if unset. */
const char *yk__env(const char *name);

#endif
