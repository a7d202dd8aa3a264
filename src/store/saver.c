/*
 * saver.c - writes checkpoints: copies the values at a step's end, and lets a thread do the rest.
 *
 * A save has two halves. The first takes the values and everything it needs from the caller's thread, and may be refused;
 * the second touches only the saver: checksums, file, list, and then what gives way. Between `begin` and the thread's end
 * nobody else looks at what the second half uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "graph/graph.h"
#include "run/run.h"
#include "store/checkpoint.h"
#include "store/disk.h"
#include "store/header.h"
#include "store/manifest.h"
#include "tensor/desc.h"

enum { DEFAULT_KEEP = 5, SLACK = 1 << 16 };      /* SLACK: bytes for the list and the file system's own */

typedef enum phase { IDLE, WRITING, ENDED } phase;

struct yk_saver {
  char *folder;
  yk_saver_options o;
  int lock;                          /* file descriptor, or -1 */
  yk_manifest list;                  /* as it is on the disk */
  uint8_t *data; size_t cap;         /* the values, dense, one after the other; kept for the next save */
  /* the save under way */
  char *header, *path;
  size_t bytes;                      /* of data */
  yk_ckpt_entry entry;
  yk_thread thread;
  bool threaded;                     /* to be joined */
  _Atomic int phase;
  uint64_t begun_ns, copied_ns, ended_ns;
  yk_code rc;
  char why[2048];
  char *latest;                      /* what yk_saver_latest() returned */
};

/* ---- the second half --------------------------------------------------------------------------------------------- */

/* Eight digits in place of those in the header. */
static char *digits_of(char *header, const char *key) {
  char *at = strstr(header, key);
  return at != NULL ? at + strlen(key) + 2 : NULL;
}

static void put_digits(char *at, uint32_t sum) {
  char text[9];
  snprintf(text, sizeof text, "%08x", (unsigned)sum);
  memcpy(at, text, 8);
}

static yk_code write_file(yk_saver *s) {
  uint8_t length[YK__ST_LENGTH];
  size_t n = strlen(s->header);
  char *head = digits_of(s->header, "\"" YK__ST_HEADER_SUM "\""), *data = digits_of(s->header, "\"" YK__ST_DATA_SUM "\"");
  if (head == NULL || data == NULL) return YK_FAIL(EINTERNAL, "the header has no place for its checksums");
  put_digits(data, yk__crc32c(0, s->data, s->bytes));
  yk__st_put_length(n, length);
  put_digits(head, yk__st_header_sum(length, s->header, n, head));
  memcpy(s->entry.sum, head, 8);
  s->entry.bytes = sizeof length + n + s->bytes;
  YK_TRY(yk__disk_room(s->folder, s->entry.bytes + SLACK, s->entry.bytes, "the next checkpoint"));
  return yk__disk_write(s->path, 3, (yk_piece[]){ { length, sizeof length }, { s->header, n }, { s->data, s->bytes } });
}

/* The list with this one, and without those that give way; they are removed when it is on the disk. */
static yk_code write_list(yk_saver *s) {
  yk_manifest next = { 0 };
  s->entry.saved = (int64_t)time(NULL);
  YK_TRY(yk__manifest_copy(&s->list, &next));
  yk_code rc = yk__manifest_append(&next, &s->entry);
  uint32_t gone = rc == YK_OK ? yk__manifest_retire(&next, s->o.keep, s->o.keep_every_hours) : 0;
  if (rc == YK_OK) rc = yk__manifest_write(s->folder, &next);
  if (rc != YK_OK) { yk__manifest_free(&next); return rc; }
  yk__manifest_free(&s->list);
  s->list = next;
  for (uint32_t i = 0; i < gone; i++) {
    char *path = NULL;
    rc = yk__ckpt_path(s->folder, next.entry[next.n + i].file, &path);
    if (rc == YK_OK) rc = yk__disk_remove(path);
    if (rc != YK_OK) {
      YK_LOG(WARNING, "an old checkpoint stays: %s", yk_error_message());
      yk_error_clear();
    }
    yk__free(path);
  }
  return YK_OK;
}

static void *write_it(void *arg) {
  yk_saver *s = arg;
  s->rc = write_file(s);
  if (s->rc == YK_OK) s->rc = write_list(s);
  if (s->rc != YK_OK) {
    snprintf(s->why, sizeof s->why, "%s", yk_error_message());
    if (yk__disk_remove(s->path) != YK_OK) yk_error_clear();     /* a file that no list names only takes room */
    yk_error_clear();
  }
  s->ended_ns = yk__now_ns();
  atomic_store_explicit(&s->phase, ENDED, memory_order_release);
  return NULL;
}

/* ---- the first half ---------------------------------------------------------------------------------------------- */

static size_t bytes_of(const yk_desc *d) {
  return (size_t)yk__desc_count(d) * yk_dtype_bytes((yk_dtype)d->dtype);
}

static yk_code check_notes(int64_t step, size_t n, const yk_note *note) {
  if (step < 0) return YK_FAIL(EINVAL, "a checkpoint's step is %" PRId64 "; expected 0 or more", step);
  for (size_t i = 0; i < n; i++) {
    if (note[i].key == NULL || note[i].value == NULL || note[i].key[0] == '\0' || strncmp(note[i].key, "yoke.", 5) == 0)
      return YK_FAIL(EINVAL, "text %zu of a checkpoint has the key '%s'; expected one that is not empty and does not begin with "
                     "\"yoke.\", and a value", i, note[i].key != NULL ? note[i].key : "NULL");
    for (size_t k = 0; k < i; k++)
      if (strcmp(note[i].key, note[k].key) == 0) return YK_FAIL(EINVAL, "a checkpoint is given two texts '%s'", note[i].key);
  }
  return YK_OK;
}

static yk_code reserve(yk_saver *s, size_t bytes) {
  if (bytes <= s->cap && s->data != NULL) return YK_OK;
  uint8_t *data = yk__alloc(bytes + 1);
  if (data == NULL) return YK_ENOMEM;
  yk__free(s->data);
  s->data = data;
  s->cap = bytes;
  return YK_OK;
}

/* Bytes of all values; a file holds no copies of variables. */
static size_t bytes_of_all(const yk_graph *g) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < g->nvariable; i++)
    if (g->variable[i]->master == NULL) bytes += bytes_of(&g->variable[i]->desc);
  return bytes;
}

/* All values into s->data, and what and where each is for the header. */
static yk_code copy_values(yk_saver *s, yk_session *session, uint32_t *n, const char **name, const yk_desc **desc, void **to,
                           int64_t *counter) {
  const yk_graph *g = session->g;
  size_t at = 0;
  s->bytes = bytes_of_all(g);
  YK_TRY(reserve(s, s->bytes));
  *n = 0;
  for (uint32_t i = 0; i < g->nvariable; i++) {
    if (g->variable[i]->master != NULL) continue;
    name[*n] = g->variable[i]->name;
    desc[(*n)++] = &g->variable[i]->desc;
    to[i] = s->data + at;
    at += bytes_of(&g->variable[i]->desc);
  }
  return yk__vars_read(session, g->nvariable, to, counter);
}

static yk_code make_header(yk_saver *s, uint32_t n, const char *const *name, const yk_desc *const *desc, int64_t counter, size_t nnotes,
                           const yk_note *notes) {
  enum { OURS = 6 };
  char step[24], runs[24];
  yk_note *all = yk__calloc(nnotes + OURS, sizeof *all);
  if (all == NULL) return YK_ENOMEM;
  snprintf(step, sizeof step, "%" PRId64, s->entry.step);
  snprintf(runs, sizeof runs, "%" PRId64, counter);
  const yk_note ours[OURS] = { { YK__ST_HEADER_SUM, "00000000" }, { YK__ST_DATA_SUM, "00000000" }, { YK__NOTE_FORMAT, "1" },
                               { YK__NOTE_STEP, step }, { YK__NOTE_COUNTER, runs }, { "yoke.version", yk_version() } };
  memcpy(all, ours, sizeof ours);
  if (nnotes > 0) memcpy(all + OURS, notes, nnotes * sizeof *all);
  char *header = NULL;
  yk_code rc = yk__st_make(n, name, desc, nnotes + OURS, all, &header);
  yk__free(all);
  if (rc != YK_OK) return rc;
  yk__free(s->header);
  s->header = header;
  return YK_OK;
}

static bool listed(const yk_manifest *m, const char *file) {
  for (uint32_t i = 0; i < m->n; i++)
    if (strcmp(m->entry[i].file, file) == 0) return true;
  return false;
}

/* A name that neither the list nor the folder has, so that an older checkpoint of the same step is not touched. */
static yk_code choose_name(yk_saver *s) {
  for (int k = 1;; k++) {
    char *path = NULL;
    if (k == 1) snprintf(s->entry.file, sizeof s->entry.file, "ckpt-%" PRId64 ".safetensors", s->entry.step);
    else snprintf(s->entry.file, sizeof s->entry.file, "ckpt-%" PRId64 "-%d.safetensors", s->entry.step, k);
    YK_TRY(yk__ckpt_path(s->folder, s->entry.file, &path));
    yk__free(s->path);
    s->path = path;
    if (access(path, F_OK) != 0 && !listed(&s->list, s->entry.file)) return YK_OK;
  }
}

static yk_code first_half(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) {
  uint32_t n = session->g->nvariable;
  int64_t counter = 0;
  const char **name = yk__calloc(n + 1u, sizeof *name);
  const yk_desc **desc = yk__calloc(n + 1u, sizeof *desc);
  void **to = yk__calloc(n + 1u, sizeof *to);
  s->entry = (yk_ckpt_entry){ .step = step };
  yk_code rc = name != NULL && desc != NULL && to != NULL ? YK_OK : YK_ENOMEM;
  if (rc == YK_OK) rc = choose_name(s);
  if (rc == YK_OK) rc = copy_values(s, session, &n, name, desc, to, &counter);
  if (rc == YK_OK) rc = make_header(s, n, name, desc, counter, nnotes, notes);
  yk__free(name);
  yk__free(desc);
  yk__free(to);
  return rc;
}

/* ---- outcomes ---------------------------------------------------------------------------------------------------- */

/* The thread is gone, and what it did is seen. */
static void join(yk_saver *s) {
  if (s->threaded) yk__thread_join(&s->thread);
  s->threaded = false;
}

/* Tell how the save ended, once. */
static yk_code tell(yk_saver *s, yk_saver_report *out) {
  join(s);
  if (atomic_load(&s->phase) == IDLE) {
    if (out != NULL) *out = (yk_saver_report){ .step = -1 };
    return YK_OK;
  }
  atomic_store(&s->phase, IDLE);
  if (out != NULL)
    *out = (yk_saver_report){ .step = s->entry.step, .bytes = s->entry.bytes, .path = s->path,
                              .seconds = (double)(s->ended_ns - s->begun_ns) * 1e-9,
                              .copy_seconds = (double)(s->copied_ns - s->begun_ns) * 1e-9 };
  return s->rc == YK_OK ? YK_OK : yk__fail(s->rc, __FILE__, __LINE__, "%s", s->why);
}

yk_code yk_saver_poll(yk_saver *s, yk_saver_report *out) {
  if (s == NULL) return YK_FAIL(EINVAL, "yk_saver_poll: NULL saver");
  if (atomic_load_explicit(&s->phase, memory_order_acquire) == WRITING) return YK_EBUSY;
  return tell(s, out);
}

yk_code yk_saver_wait(yk_saver *s, yk_saver_report *out) {
  if (s == NULL) return YK_FAIL(EINVAL, "yk_saver_wait: NULL saver");
  return tell(s, out);
}

static yk_code begin(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) {
  if (s == NULL || session == NULL || (nnotes > 0 && notes == NULL))
    return YK_FAIL(EINVAL, "a save needs a saver, a session, and its texts");
  YK_TRY(check_notes(step, nnotes, notes));
  YK_TRY(tell(s, NULL));
  s->begun_ns = yk__now_ns();
  YK_TRY(first_half(s, session, step, nnotes, notes));
  s->copied_ns = yk__now_ns();
  atomic_store(&s->phase, WRITING);
  return YK_OK;
}

yk_code yk_saver_save(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) {
  YK_TRY(begin(s, session, step, nnotes, notes));
  write_it(s);
  s->copied_ns = s->ended_ns;
  yk_code rc = s->rc;
  if (rc == YK_OK) return YK_OK;
  atomic_store(&s->phase, IDLE);                     /* its end is told here */
  return yk__fail(rc, __FILE__, __LINE__, "%s", s->why);
}

yk_code yk_saver_begin(yk_saver *s, yk_session *session, int64_t step, size_t nnotes, const yk_note *notes) {
  YK_TRY(begin(s, session, step, nnotes, notes));
  s->threaded = yk__thread_start(&s->thread, "yk-saver", write_it, s) == YK_OK;
  if (s->threaded) return YK_OK;
  yk_error_clear();                                  /* no thread to be had: then it takes the caller's time */
  write_it(s);
  return YK_OK;
}

const char *yk_saver_latest(yk_saver *s) {
  if (s == NULL) return NULL;
  join(s);
  if (s->list.n == 0) return NULL;
  char *path = NULL;
  if (yk__ckpt_path(s->folder, s->list.entry[s->list.n - 1].file, &path) != YK_OK) return NULL;
  yk__free(s->latest);
  s->latest = path;
  return path;
}

/* ---- open, check, close ------------------------------------------------------------------------------------------ */

/* One process at a time; a file system without locks goes without. */
static yk_code take_lock(yk_saver *s) {
  char *path = NULL;
  YK_TRY(yk__ckpt_path(s->folder, "lock", &path));
  s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  int why = errno;
  yk_code rc = YK_OK;
  if (s->lock < 0) rc = YK_FAIL(EIO, "'%s' cannot be created: %s", path, strerror(why));
  else if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    rc = YK_FAIL(EBUSY, "another process saves checkpoints in '%s'", s->folder);
  yk__free(path);
  return rc;
}

/* A caller compiled against an older header passes a shorter struct: what it lacks stays zero. */
static yk_code take_options(const yk_saver_options *given, yk_saver_options *o) {
  *o = (yk_saver_options)YK_SAVER_OPTIONS_INIT;
  if (given != NULL) {
    if (given->size < sizeof given->size || given->size > 4096)
      return YK_FAIL(EINVAL, "yk_saver_options.size is %u; start from YK_SAVER_OPTIONS_INIT", given->size);
    memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  }
  if (o->keep < -1) return YK_FAIL(EINVAL, "a saver keeps %d checkpoints; expected 0 (= %d), more, or -1 (= all)", o->keep, DEFAULT_KEEP);
  if (!(o->keep_every_hours >= 0)) return YK_FAIL(EINVAL, "keep_every_hours is %g; expected 0 (= none) or more", o->keep_every_hours);
  if (o->keep == 0) o->keep = DEFAULT_KEEP;
  return YK_OK;
}

yk_code yk_saver_open(const char *folder, const yk_saver_options *options, yk_saver **out) {
  yk_saver_options o;
  if (folder == NULL || folder[0] == '\0' || out == NULL) return YK_FAIL(EINVAL, "yk_saver_open needs a folder and a place for the result");
  YK_TRY(take_options(options, &o));
  YK_TRY(yk__disk_folder(folder));
  yk_saver *s = yk__calloc(1, sizeof *s);
  if (s == NULL) return YK_ENOMEM;
  s->o = o;
  s->lock = -1;
  s->folder = yk__strdup(folder);
  yk_code rc = s->folder != NULL ? take_lock(s) : YK_ENOMEM;
  if (rc == YK_OK) {
    yk__ckpt_sweep(folder);
    rc = yk__manifest_load(folder, &s->list);
  }
  if (rc == YK_OK) *out = s;
  else if (yk_saver_close(s) != YK_OK) return YK_EINTERNAL;
  return rc;
}

/* How many may come before old ones give way: `keep` of them stand, and one is being written. */
static uint64_t still_to_come(const yk_saver *s, int64_t saves) {
  int64_t there = 0;
  if (s->o.keep < 0) return saves > 0 ? (uint64_t)saves : 1;
  for (uint32_t i = 0; i < s->list.n; i++) there += !s->list.entry[i].kept;
  int64_t n = s->o.keep + 1 - (there < s->o.keep ? there : s->o.keep);
  return (uint64_t)(saves > 0 && saves < n ? saves : n);
}

yk_code yk_saver_check(yk_saver *s, const yk_session *session, int64_t saves) {
  if (s == NULL || session == NULL) return YK_FAIL(EINVAL, "yk_saver_check needs a saver and a session");
  join(s);
  const yk_graph *g = session->g;
  uint64_t one = bytes_of_all(g), n = still_to_come(s, saves);
  char what[64];
  for (uint32_t i = 0; i < g->nvariable; i++)
    if (g->variable[i]->master == NULL) one += 256 + strlen(g->variable[i]->name);
  snprintf(what, sizeof what, n == 1 ? "the next checkpoint" : "room for %llu checkpoints", (unsigned long long)n);
  return yk__disk_room(s->folder, one * n + SLACK, one, what);
}

yk_code yk_saver_close(yk_saver *s) {
  if (s == NULL) return YK_OK;
  yk_code rc = tell(s, NULL);
  if (s->lock >= 0) close(s->lock);
  yk__manifest_free(&s->list);
  yk__free(s->data);
  yk__free(s->header);
  yk__free(s->path);
  yk__free(s->latest);
  yk__free(s->folder);
  yk__free(s);
  return rc;
}
