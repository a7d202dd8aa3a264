/*
 * manifest.c - reads, writes and repairs the list of checkpoints of a folder.
 *
 * The list has a checksum of its own at its end and is parsed as strictly as it is written: all that differs is damage, and
 * then the files are asked.
 */
#include "store/manifest.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/log.h"
#include "store/disk.h"
#include "store/token.h"

#define LIST "checkpoint.json"
#define FORMAT "yoke-checkpoints-1"
#define SUM_KEY ",\n \"crc32c\": \""

void yk__manifest_free(yk_manifest *m) {
  yk__free(m->entry);
  *m = (yk_manifest){ 0 };
}

yk_code yk__manifest_append(yk_manifest *m, const yk_ckpt_entry *e) {
  return YK_PUSH(m->entry, m->n, m->cap, *e) ? YK_OK : YK_ENOMEM;
}

yk_code yk__manifest_copy(const yk_manifest *m, yk_manifest *out) {
  yk_manifest c = { .last_kept = m->last_kept };
  for (uint32_t i = 0; i < m->n; i++)
    if (yk__manifest_append(&c, &m->entry[i]) != YK_OK) { yk__manifest_free(&c); return YK_ENOMEM; }
  *out = c;
  return YK_OK;
}

yk_code yk__ckpt_path(const char *folder, const char *name, char **out) {
  yk_str s = { 0 };
  yk__str_add(&s, "%s/%s", folder, name);
  return yk__str_take(&s, out);
}

/* ---- which go ---------------------------------------------------------------------------------------------------- */

static uint32_t passing(const yk_manifest *m) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n; i++) n += !m->entry[i].kept;
  return n;
}

uint32_t yk__manifest_retire(yk_manifest *m, int32_t keep, double hours) {
  uint32_t gone = 0;
  if (m->n > 0 && m->last_kept == 0) m->last_kept = m->entry[0].saved;
  for (uint32_t i = 0; keep >= 0 && passing(m) > (uint32_t)keep;) {
    yk_ckpt_entry e = m->entry[i];
    if (e.kept) { i++; continue; }
    if (hours > 0 && (double)(e.saved - m->last_kept) >= hours * 3600) {
      m->entry[i].kept = true;
      m->last_kept = e.saved;
      continue;
    }
    memmove(&m->entry[i], &m->entry[i + 1], (m->n - i - 1 + gone) * sizeof e);
    m->entry[--m->n + gone++] = e;
  }
  return gone;
}

/* ---- the list as text -------------------------------------------------------------------------------------------- */

static yk_code list_text(const yk_manifest *m, char **out) {
  yk_str s = { 0 };
  yk__str_add(&s, "{\"format\": \"" FORMAT "\",\n \"checkpoints\": [");
  for (uint32_t i = 0; i < m->n; i++) {
    const yk_ckpt_entry *e = &m->entry[i];
    yk__str_add(&s, "%s\n  {\"file\": \"%s\", \"step\": %" PRId64 ", \"bytes\": %" PRIu64 ", \"header_crc32c\": \"%s\", "
                "\"saved\": %" PRId64 ", \"kept\": %d}", i > 0 ? "," : "", e->file, e->step, e->bytes, e->sum, e->saved, e->kept);
  }
  yk__str_add(&s, "],\n \"last_kept\": %" PRId64, m->last_kept);
  uint32_t sum = s.failed ? 0 : yk__crc32c(0, s.s, s.n);
  yk__str_add(&s, SUM_KEY "%08x\"}\n", (unsigned)sum);
  return yk__str_take(&s, out);
}

yk_code yk__manifest_write(const char *folder, const yk_manifest *m) {
  char *text = NULL, *path = NULL;
  YK_TRY(list_text(m, &text));
  yk_code rc = yk__ckpt_path(folder, LIST, &path);
  if (rc == YK_OK) rc = yk__disk_write(path, 1, &(yk_piece){ text, strlen(text) });
  yk__free(path);
  yk__free(text);
  return rc;
}

/* A name that a saver gives: "ckpt-", digits, perhaps "-" and more digits, ".safetensors". */
static bool is_ours(const char *name) {
  static const char end[] = ".safetensors";
  size_t n = strlen(name);
  if (n >= YK__CKPT_NAME || n < 5 + sizeof end || strncmp(name, "ckpt-", 5) != 0) return false;
  size_t digits = strspn(name + 5, "0123456789-");
  return name[5] != '-' && strcmp(name + 5 + digits, end) == 0;
}

static yk_code expect_key(yk_tokens *r, char before, const char *key) {
  char *text = NULL;
  if (before != '\0' && !yk__tok_accept(r, before)) return YK__EXPECTED(r, "the next entry");
  YK_TRY(yk__tok_text(r, &text));
  bool same = strcmp(text, key) == 0;
  yk__free(text);
  return same && yk__tok_accept(r, ':') ? YK_OK : YK__EXPECTED(r, key);
}

static yk_code number_of(yk_tokens *r, char before, const char *key, uint64_t *out) {
  YK_TRY(expect_key(r, before, key));
  return yk__tok_number(r, out);
}

static yk_code text_of(yk_tokens *r, char before, const char *key, char *out, size_t bytes) {
  char *text = NULL;
  YK_TRY(expect_key(r, before, key));
  YK_TRY(yk__tok_text(r, &text));
  bool fits = snprintf(out, bytes, "%s", text) < (int)bytes;
  yk__free(text);
  return fits ? YK_OK : YK__EXPECTED(r, "a shorter text");
}

static yk_code parse_entry(yk_tokens *r, yk_manifest *m) {
  yk_ckpt_entry e = { 0 };
  uint64_t step = 0, saved = 0, kept = 0;
  YK_TRY(text_of(r, '{', "file", e.file, sizeof e.file));
  if (!is_ours(e.file)) return YK__EXPECTED(r, "the name of a checkpoint");
  YK_TRY(number_of(r, ',', "step", &step));
  YK_TRY(number_of(r, ',', "bytes", &e.bytes));
  YK_TRY(text_of(r, ',', "header_crc32c", e.sum, sizeof e.sum));
  YK_TRY(number_of(r, ',', "saved", &saved));
  YK_TRY(number_of(r, ',', "kept", &kept));
  if (!yk__tok_accept(r, '}')) return YK__EXPECTED(r, "'}'");
  e.step = (int64_t)step;
  e.saved = (int64_t)saved;
  e.kept = kept != 0;
  return yk__manifest_append(m, &e);
}

static yk_code parse_list(const char *text, size_t n, yk_manifest *m) {
  yk_tokens r = { .s = text, .n = n, .what = "list" };
  char format[32], said[9], found[9];
  const char *sum = n > 0 ? memmem(text, n, SUM_KEY, sizeof SUM_KEY - 1) : NULL;
  uint64_t last = 0;
  YK_TRY(text_of(&r, '{', "format", format, sizeof format));
  if (strcmp(format, FORMAT) != 0) return YK__EXPECTED(&r, FORMAT);
  YK_TRY(expect_key(&r, ',', "checkpoints"));
  if (!yk__tok_accept(&r, '[')) return YK__EXPECTED(&r, "'['");
  if (!yk__tok_accept(&r, ']')) {
    do YK_TRY(parse_entry(&r, m));
    while (yk__tok_accept(&r, ','));
    if (!yk__tok_accept(&r, ']')) return YK__EXPECTED(&r, "',' or ']'");
  }
  YK_TRY(number_of(&r, ',', "last_kept", &last));
  YK_TRY(text_of(&r, ',', "crc32c", said, sizeof said));
  if (sum == NULL || !yk__tok_accept(&r, '}')) return YK__EXPECTED(&r, "'}'");
  snprintf(found, sizeof found, "%08x", (unsigned)yk__crc32c(0, text, (size_t)(sum - text)));
  m->last_kept = (int64_t)last;
  return strcmp(said, found) == 0 ? YK_OK : YK_FAIL(ECORRUPT, "its checksum is %s, but it should be %s", found, said);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

yk_code yk__ckpt_read(const char *path, yk_safetensors **out, yk_ckpt_entry *e) {
  yk_safetensors *f = NULL;
  int64_t step = 0;
  YK_TRY(yk__safetensors_open(path, &f));
  const char *text = yk__safetensors_note(f, "yoke.step"), *sum = yk__safetensors_note(f, YK__ST_HEADER_SUM);
  if (text == NULL || sum == NULL || !yk__parse_i64(text, 0, INT64_MAX, &step)) {
    yk__safetensors_close(f);
    return YK_FAIL(ECORRUPT, "'%s': its header says no step: it is no checkpoint, or was altered", path);
  }
  *e = (yk_ckpt_entry){ .step = step, .bytes = yk__safetensors_bytes(f) };
  const char *slash = strrchr(path, '/');
  snprintf(e->file, sizeof e->file, "%s", slash != NULL ? slash + 1 : path);
  snprintf(e->sum, sizeof e->sum, "%.8s", sum);
  *out = f;
  return YK_OK;
}

static yk_code read_list(const char *folder, yk_manifest *m) {
  char *path = NULL;
  uint8_t *bytes = NULL;
  size_t n = 0;
  YK_TRY(yk__ckpt_path(folder, LIST, &path));
  yk_code rc = yk__disk_read(path, &bytes, &n);
  if (rc == YK_OK) {
    rc = parse_list((const char *)bytes, n, m);
    if (rc == YK_ECORRUPT) {
      YK_LOG(WARNING, "'%s' is damaged (%s); the checkpoints themselves are looked at", path, yk_error_message());
      yk__manifest_free(m);
      rc = YK_ENOTFOUND;
    }
  }
  yk__free(bytes);
  yk__free(path);
  if (rc != YK_ENOTFOUND) return rc;
  yk_error_clear();
  return YK_OK;
}

/* A file that the list lacks: before the first of a later step, if it is whole. */
static yk_code adopt(const char *folder, const char *name, yk_manifest *m) {
  char *path = NULL;
  struct stat info;
  yk_safetensors *f = NULL;
  yk_ckpt_entry e;
  YK_TRY(yk__ckpt_path(folder, name, &path));
  yk_code rc = yk__ckpt_read(path, &f, &e);
  if (rc == YK_OK) {
    e.saved = stat(path, &info) == 0 ? (int64_t)info.st_mtime : 0;
    rc = yk__manifest_append(m, &e);
  }
  if (rc == YK_ECORRUPT || rc == YK_EIO || rc == YK_EUNSUPPORTED) {
    YK_LOG(WARNING, "%s; it is left alone", yk_error_message());
    rc = YK_ENOTFOUND;
  }
  yk__safetensors_close(f);
  yk__free(path);
  if (rc == YK_ENOTFOUND) { yk_error_clear(); return YK_OK; }
  if (rc != YK_OK) return rc;
  for (uint32_t i = m->n - 1; i > 0 && m->entry[i - 1].step > e.step; i--) {
    m->entry[i] = m->entry[i - 1];
    m->entry[i - 1] = e;
  }
  return YK_OK;
}

static bool listed(const yk_manifest *m, const char *name) {
  for (uint32_t i = 0; i < m->n; i++)
    if (strcmp(m->entry[i].file, name) == 0) return true;
  return false;
}

yk_code yk__manifest_load(const char *folder, yk_manifest *out) {
  yk_code rc = YK_OK;
  YK_TRY(read_list(folder, out));
  DIR *d = opendir(folder);
  if (d == NULL && (errno == ENOENT || errno == ENOTDIR)) return YK_OK;
  if (d == NULL) return YK_FAIL(EIO, "'%s' cannot be read: %s", folder, strerror(errno));
  for (const struct dirent *e; rc == YK_OK && (e = readdir(d)) != NULL;)
    if (is_ours(e->d_name) && !listed(out, e->d_name)) rc = adopt(folder, e->d_name, out);
  closedir(d);
  return rc;
}

void yk__ckpt_sweep(const char *folder) {
  DIR *d = opendir(folder);
  if (d == NULL) return;
  for (const struct dirent *e; (e = readdir(d)) != NULL;) {
    const char *name = e->d_name, *end = strrchr(name, '.');
    char *path = NULL;
    bool ours = strncmp(name, "ckpt-", 5) == 0 || strncmp(name, LIST ".", sizeof LIST) == 0;
    if (!ours || end == NULL || strcmp(end, ".tmp") != 0) continue;
    if (yk__ckpt_path(folder, name, &path) != YK_OK || yk__disk_remove(path) != YK_OK) yk_error_clear();
    yk__free(path);
  }
  closedir(d);
}
