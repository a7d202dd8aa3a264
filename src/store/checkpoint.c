/*
 * checkpoint.c - opens checkpoints: a file that is named, or the newest whole one of a folder.
 *
 * Whether a file is whole is decided by its checksums, and by the list where that has it; a damaged one costs a warning and
 * the one before it is tried.
 */
#include "store/checkpoint.h"
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "store/manifest.h"

static yk_code make(const char *path, yk_safetensors *f, yk_checkpoint **out) {
  const char *step = yk__safetensors_note(f, YK__NOTE_STEP);
  yk_checkpoint *c = yk__calloc(1, sizeof *c);
  if (c == NULL) return YK_ENOMEM;
  c->path = yk__strdup(path);
  if (c->path == NULL) { yk__free(c); return YK_ENOMEM; }
  c->file = f;
  if (step == NULL || !yk__parse_i64(step, 0, INT64_MAX, &c->step)) c->step = -1;
  *out = c;
  return YK_OK;
}

static yk_code known_format(const char *path, const yk_safetensors *f) {
  const char *format = yk__safetensors_note(f, YK__NOTE_FORMAT);
  if (format == NULL || strcmp(format, "1") == 0) return YK_OK;
  return YK_FAIL(EUNSUPPORTED, "'%s' is a checkpoint of format %.20s; this version reads format 1", path, format);
}

yk_code yk_checkpoint_open(const char *path, yk_checkpoint **out) {
  yk_safetensors *f = NULL;
  if (path == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_checkpoint_open needs a path and a place for the result");
  YK_TRY(yk__safetensors_open(path, &f));
  yk_code rc = known_format(path, f);
  if (rc == YK_OK) rc = make(path, f, out);
  if (rc != YK_OK) yk__safetensors_close(f);
  return rc;
}

static yk_code open_listed(const char *path, const yk_ckpt_entry *want, yk_checkpoint **out) {
  yk_safetensors *f = NULL;
  yk_ckpt_entry have;
  YK_TRY(yk__ckpt_read(path, &f, &have));
  yk_code rc = known_format(path, f);
  if (rc == YK_OK && (have.bytes != want->bytes || strcmp(have.sum, want->sum) != 0 || have.step != want->step))
    rc = YK_FAIL(ECORRUPT, "'%s' is not the file in the list: step %lld, %llu bytes, checksum %s; the list says step %lld, %llu "
                 "bytes, %s", path, (long long)have.step, (unsigned long long)have.bytes, have.sum, (long long)want->step,
                 (unsigned long long)want->bytes, want->sum);
  if (rc == YK_OK) rc = make(path, f, out);
  if (rc != YK_OK) yk__safetensors_close(f);
  return rc;
}

/* From the newest on. `first` keeps what was wrong with that. */
static yk_code open_newest(const char *folder, const yk_manifest *m, char *first, size_t bytes, yk_checkpoint **out) {
  yk_code rc = YK_ENOTFOUND;
  for (uint32_t i = m->n; i > 0 && rc != YK_OK && rc != YK_ENOMEM; i--) {
    char *path = NULL;
    YK_TRY(yk__ckpt_path(folder, m->entry[i - 1].file, &path));
    rc = open_listed(path, &m->entry[i - 1], out);
    yk__free(path);
    if (rc == YK_OK || rc == YK_ENOMEM) break;
    YK_LOG(WARNING, "%s; the checkpoint before it is tried", yk_error_message());
    if (first[0] == '\0') snprintf(first, bytes, "%s", yk_error_message());
    yk_error_clear();
  }
  return rc;
}

/* One look at the folder. `stamp` tells whether it is the same list as at the look before. */
static yk_code look(const char *folder, uint64_t *stamp, yk_checkpoint **out) {
  yk_manifest m = { 0 };
  char first[1024] = "";
  yk_code rc = yk__manifest_load(folder, &m);
  if (rc == YK_OK) {
    *stamp = 1;
    for (uint32_t i = 0; i < m.n; i++) *stamp = yk__hash(m.entry[i].file, strlen(m.entry[i].file), *stamp);
    rc = m.n > 0 ? open_newest(folder, &m, first, sizeof first, out) : YK_FAIL(ENOTFOUND, "there is no checkpoint in '%s'", folder);
    if (rc != YK_OK && first[0] != '\0' && rc != YK_ENOMEM)
      rc = YK_FAIL(ECORRUPT, "none of the %u checkpoints in '%s' is whole; the newest: %s", m.n, folder, first);
  }
  yk__manifest_free(&m);
  return rc;
}

/* A live writer may replace all that the list named while it was looked at: then there is another list. */
yk_code yk_checkpoint_latest(const char *folder, yk_checkpoint **out) {
  enum { LOOKS = 20 };
  uint64_t stamp = 0, before = 0;
  yk_code rc = YK_ECORRUPT;
  if (folder == NULL || out == NULL) return YK_FAIL(EINVAL, "yk_checkpoint_latest needs a folder and a place for the result");
  for (int i = 0; i < LOOKS && rc == YK_ECORRUPT && (i == 0 || stamp != before); i++) {
    before = stamp;
    rc = look(folder, &stamp, out);
  }
  return rc;
}

void yk_checkpoint_close(yk_checkpoint *c) {
  if (c == NULL) return;
  yk__safetensors_close(c->file);
  yk__free(c->path);
  yk__free(c);
}

const char *yk_checkpoint_path(const yk_checkpoint *c) {
  return c->path;
}

int64_t yk_checkpoint_step(const yk_checkpoint *c) {
  return c->step;
}

const char *yk_checkpoint_note(const yk_checkpoint *c, const char *key) {
  return yk__safetensors_note(c->file, key);
}

size_t yk_checkpoint_count(const yk_checkpoint *c) {
  return yk__safetensors_count(c->file);
}

const char *yk_checkpoint_name(const yk_checkpoint *c, size_t i) {
  return yk__safetensors_name(c->file, i);
}

const yk_desc *yk_checkpoint_desc(const yk_checkpoint *c, const char *name) {
  return yk__safetensors_desc(c->file, name);
}

yk_code yk_checkpoint_get(const yk_checkpoint *c, const char *name, yk_tensor **out) {
  yk_code rc = yk__safetensors_get(c->file, name, out);
  return rc == YK_OK || rc == YK_ENOMEM ? rc : yk__fail_prefix(rc, "'%s'", c->path);
}
