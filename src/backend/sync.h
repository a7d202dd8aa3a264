/*
 * sync.h - streams and events of a driver whose work is done by the time it is enqueued.
 *
 * Shared by the drivers that exist for tests (ref, null): a stream without YK_STREAM_INLINE runs on the calling
 * thread too, and only differs in where failures are reported. So an event has fired as soon as it is recorded, and
 * waiting for one never blocks. The driver that includes this defines sync_move, sync_fill and sync_run.
 */
#ifndef YK_BACKEND_SYNC_H
#define YK_BACKEND_SYNC_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <yoke/device.h>

static const yk_host *host;                          /* of the including driver */
#define HOST_FAIL(code, ...) host->fail(YK_##code, __FILE__, __LINE__, __VA_ARGS__)

static void sync_move(void *dst, const void *src, size_t bytes);
static void sync_fill(void *dst, uint8_t byte, size_t bytes);
static yk_code sync_run(yk_kernel *k, const yk_mem *arg, uint32_t nargs, yk_mem workspace);

struct yk_stream {
  uint32_t is_inline;
  uint64_t done, failed;                             /* work entries since the last sync; ordinal of the first failure */
  yk_code code;
  char text[2048];
};

struct yk_event { _Atomic uint64_t time_ns; _Atomic uint32_t code; };    /* time 0: never recorded */

static inline void *sync_address(yk_mem m) { return m.base ? (char *)m.base + m.offset : NULL; }

static yk_code sync_stream_open(yk_dev *dev, uint32_t flags, yk_stream **out) {
  (void)dev;
  if (flags & ~(uint32_t)YK_STREAM_INLINE) return HOST_FAIL(EUNSUPPORTED, "stream flags 0x%x, known is 0x1", (unsigned)flags);
  yk_stream *s = host->alloc(sizeof *s, 64);
  if (!s) return HOST_FAIL(ENOMEM, "no memory for a stream (%zu bytes)", sizeof *s);
  memset(s, 0, sizeof *s);
  s->is_inline = flags & YK_STREAM_INLINE;
  *out = s;
  return YK_OK;
}

static void sync_stream_close(yk_stream *s) { host->free(s); }

static yk_code sync_stream_sync(yk_stream *s, uint64_t *failed) {
  yk_code code = s->code;
  s->code = YK_OK;
  s->done = 0;
  if (code == YK_OK) return YK_OK;
  if (failed) *failed = s->failed;
  return host->fail(code, __FILE__, __LINE__, "%s", s->text);
}

static yk_code sync_event_open(yk_dev *dev, yk_event **out) {
  (void)dev;
  yk_event *e = host->alloc(sizeof *e, 64);
  if (!e) return HOST_FAIL(ENOMEM, "no memory for an event (%zu bytes)", sizeof *e);
  memset(e, 0, sizeof *e);
  *out = e;
  return YK_OK;
}

static void sync_event_close(yk_event *e) { host->free(e); }

static yk_code sync_event_record(yk_stream *s, yk_event *e) {
  atomic_store(&e->code, (uint32_t)s->code);
  atomic_store(&e->time_ns, host->now_ns());
  return YK_OK;
}

static yk_code sync_event_wait(yk_stream *s, yk_event *e) {
  (void)s;
  (void)e;
  return YK_OK;
}

static yk_code sync_event_query(yk_event *e) {
  yk_code code = (yk_code)atomic_load(&e->code);
  if (code == YK_OK) return YK_OK;
  return host->fail(code, __FILE__, __LINE__, "work before this event failed; synchronising its stream tells what");
}

static yk_code sync_event_time(yk_event *e, uint64_t *ns) {
  uint64_t t = atomic_load(&e->time_ns);
  if (t == 0) return HOST_FAIL(EINVAL, "the time of an event that was never recorded");
  *ns = t;
  return YK_OK;
}

/* Work before which something failed is skipped. */
static int sync_work(yk_stream *s) {
  if (s->code != YK_OK) return 0;
  s->done++;
  return 1;
}

static yk_code sync_copy_in(yk_stream *s, yk_mem dst, const void *src) {
  if (sync_work(s)) sync_move(sync_address(dst), src, dst.bytes);
  return YK_OK;
}

static yk_code sync_copy_out(yk_stream *s, void *dst, yk_mem src) {
  if (sync_work(s)) sync_move(dst, sync_address(src), src.bytes);
  return YK_OK;
}

static yk_code sync_copy(yk_stream *s, yk_mem dst, yk_mem src) {
  if (src.bytes < dst.bytes) return HOST_FAIL(EINVAL, "a copy of %zu bytes from a source of %zu", dst.bytes, src.bytes);
  if (sync_work(s)) sync_move(sync_address(dst), sync_address(src), dst.bytes);
  return YK_OK;
}

static yk_code sync_copy_peer(yk_stream *s, yk_mem dst, yk_dev *src_dev, yk_mem src) {
  (void)src_dev;
  return sync_copy(s, dst, src);
}

static yk_code sync_fill_mem(yk_stream *s, yk_mem dst, uint8_t byte) {
  if (sync_work(s)) sync_fill(sync_address(dst), byte, dst.bytes);
  return YK_OK;
}

static yk_code sync_launch(yk_kernel *k, yk_stream *s, const yk_mem *arg, uint32_t nargs, yk_mem workspace) {
  if (!sync_work(s)) return YK_OK;
  yk_code rc = sync_run(k, arg, nargs, workspace);
  if (rc == YK_OK) return YK_OK;
  s->code = rc;
  s->failed = s->done - 1;
  const char *text = yk_error_message();
  snprintf(s->text, sizeof s->text, "%s", text[0] ? text : "a kernel failed without a message");
  if (s->is_inline) return rc;
  yk_error_clear();
  return YK_OK;
}

/* Bytes of a plain value; these drivers have no layouts of their own. */
static yk_code sync_desc_bytes(yk_dev *dev, const yk_desc *d, uint64_t *out) {
  static const uint8_t element[YK_NDTYPES] = { [YK_F32] = 4, [YK_F64] = 8, [YK_F16] = 2, [YK_BF16] = 2,
                                               [YK_I32] = 4, [YK_I64] = 8, [YK_U8] = 1,  [YK_BOOL] = 1 };
  (void)dev;
  if (d->layout != YK_LAYOUT_PLAIN)
    return HOST_FAIL(EUNSUPPORTED, "layout %u; this driver has the plain one only", (unsigned)d->layout);
  uint64_t bytes = d->dtype < YK_NDTYPES ? element[d->dtype] : 0;
  for (uint32_t i = 0; i < d->rank; i++) {
    if (d->dim[i] < 0) return HOST_FAIL(EINVAL, "the size of a value whose dimension %u is unknown", (unsigned)i);
    if (__builtin_mul_overflow(bytes, (uint64_t)d->dim[i], &bytes)) return HOST_FAIL(EINVAL, "a value too big for memory");
  }
  *out = bytes;
  return YK_OK;
}

static yk_code sync_mem_map(yk_dev *dev, yk_mem mem, void **out) {
  (void)dev;
  *out = sync_address(mem);
  return YK_OK;
}

static yk_code sync_count(uint32_t *out) {
  *out = 1;
  return YK_OK;
}

/* Every entry that a synchronous driver does not write itself. */
#define SYNC_ENTRIES                                                                                             \
  .size = sizeof(yk_driver), .major = YK_DEVICE_MAJOR, .minor = YK_DEVICE_MINOR, .count = sync_count,            \
  .mem_map = sync_mem_map, .desc_bytes = sync_desc_bytes, .stream_open = sync_stream_open,                       \
  .stream_close = sync_stream_close, .stream_sync = sync_stream_sync, .event_open = sync_event_open,             \
  .event_close = sync_event_close, .event_record = sync_event_record, .event_wait = sync_event_wait,             \
  .event_query = sync_event_query, .event_time = sync_event_time, .copy_in = sync_copy_in,                       \
  .copy_out = sync_copy_out, .copy = sync_copy, .copy_peer = sync_copy_peer, .fill = sync_fill_mem,              \
  .kernel_launch = sync_launch

#endif
