/*
 * check.c - have the copies of each variable stayed the same?
 *
 * Mirrored variables get the same updates in the same order, so a difference of one bit is a fault: of memory, of a
 * device, or of a kernel whose result depends on where it runs. What is compared are the values as files hold them.
 */
#include <yoke/model.h>
#include <yoke/session.h>
#include "base/crc32c.h"
#include "base/error.h"

static yk_code checksum(yk_session *s, const yk_variable *v, uint32_t *out) {
  yk_tensor *t = NULL;
  YK_TRY(yk_variable_fetch(s, v, &t));
  *out = yk__crc32c(0, yk_tensor_data(t), yk_tensor_bytes(t));
  yk_tensor_free(t);
  return YK_OK;
}

/* `v` against those of its copies that come after it. */
static yk_code check_one(yk_session *s, const yk_graph *g, size_t at, const yk_variable *v) {
  uint32_t mine = 0, theirs = 0;
  bool known = false;
  for (size_t i = at + 1; i < yk_variable_count(g); i++) {
    const yk_variable *copy = yk_variable_get(g, i);
    if (yk_variable_master(copy) != v) continue;
    if (!known) YK_TRY(checksum(s, v, &mine));
    known = true;
    YK_TRY(checksum(s, copy, &theirs));
    if (mine != theirs)
      return YK_FAIL(ECORRUPT, "the copies of variable '%s' differ: on '%s' its checksum is %08x, on '%s' it is %08x",
                     yk_variable_name(v), yk_variable_device(v), mine, yk_variable_device(copy), theirs);
  }
  return YK_OK;
}

yk_code yk_check_replicas(yk_session *s, const yk_graph *g) {
  if (s == NULL || g == NULL) return YK_FAIL(EINVAL, "yk_check_replicas needs a session and its graph");
  for (size_t i = 0; i < yk_variable_count(g); i++) {
    const yk_variable *v = yk_variable_get(g, i);
    if (yk_variable_master(v) == v) YK_TRY(check_one(s, g, i, v));
  }
  return YK_OK;
}
