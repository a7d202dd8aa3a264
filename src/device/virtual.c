/*
 * virtual.c - parse groups of virtual GPUs and splits of devices.
 *
 * Both are lists between commas, walked piece by piece. A piece that is wrong is quoted with the whole
 * text, shortened and without what a terminal would take for a command.
 */
#include "device/virtual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "tensor/device_spec.h"

enum { QUOTE = 60, PIECE = 48, MAX_CORES = 65536 };

typedef struct piece { const char *s; size_t n; } piece;
typedef struct source { const char *what, *text, *grammar; } source;

static const char *quote(piece p, char buf[QUOTE + 4]) {
  size_t n = p.n < QUOTE ? p.n : QUOTE;
  for (size_t i = 0; i < n; i++) buf[i] = p.s[i] >= ' ' && p.s[i] <= '~' ? p.s[i] : '?';
  memcpy(buf + n, p.n > n ? "..." : "", p.n > n ? 4 : 1);
  return buf;
}

static yk_code refuse(const source *from, piece p, const char *problem) {
  char whole[QUOTE + 4], part[QUOTE + 4];
  return YK_FAIL(EINVAL, "%s '%s': '%s' %s; expected %s", from->what, quote((piece){ from->text, strlen(from->text) }, whole),
                 quote(p, part), problem, from->grammar);
}

/* The piece as a string of its own; false if it is longer than anything that could be right. */
static int copy(piece p, char buf[PIECE]) {
  if (p.n >= PIECE) return 0;
  memcpy(buf, p.s, p.n);
  buf[p.n] = '\0';
  return 1;
}

static piece until(const char *s, const char *end, char stop) {
  const char *at = memchr(s, stop, (size_t)(end - s));
  return (piece){ s, (size_t)((at ? at : end) - s) };
}

static yk_code amount(const source *from, piece p, uint64_t *out) {
  char text[PIECE];
  uint64_t bytes = 0;
  if (!copy(p, text) || !yk__parse_bytes(text, &bytes) || bytes == 0) return refuse(from, p, "is no amount of memory");
  if (bytes > (uint64_t)INT64_MAX) return refuse(from, p, "is more memory than there can be");
  *out = bytes;
  return YK_OK;
}

static yk_code whole(const source *from, piece p, int64_t most, const char *problem, int64_t *out) {
  char text[PIECE];
  if (!copy(p, text) || p.n == 0 || !isdigit((unsigned char)text[0]) || !yk__parse_i64(text, 1, most, out))
    return refuse(from, p, problem);
  return YK_OK;
}

/* ---- groups of virtual GPUs -------------------------------------------------------------------------------------- */

static yk_code group(const source *from, piece p, uint32_t most, int64_t *count, yk_gpu_size *each) {
  const char *end = p.s + p.n;
  piece number = until(p.s, end, ':'), limit = { end, 0 }, cores = { end, 0 };
  int64_t n = 0;
  char problem[64];
  snprintf(problem, sizeof problem, "is no number of GPUs from 1 to %u", (unsigned)most);
  *each = (yk_gpu_size){ 0, 0 };
  YK_TRY(whole(from, number, most, problem, count));
  int has_limit = number.n < p.n, has_cores = 0;
  if (has_limit) {
    limit = until(number.s + number.n + 1, end, ':');
    has_cores = limit.s + limit.n < end;
    if (has_cores) cores = (piece){ limit.s + limit.n + 1, (size_t)(end - limit.s) - limit.n - 1 };
  }
  if (has_limit && !(has_cores && limit.n == 0)) YK_TRY(amount(from, limit, &each->bytes));
  if (has_cores) {
    YK_TRY(whole(from, cores, MAX_CORES, "is no number of cores", &n));
    each->cores = (uint32_t)n;
  }
  return YK_OK;
}

yk_code yk__virtual_parse(const char *what, const char *text, uint32_t most, yk_gpu_size **out, uint16_t *n) {
  const source from = { what, text, "groups N[:LIMIT[:CORES]] between commas, such as 4:512MiB or 2:1GiB:2,1:256MiB" };
  const char *end = text + strlen(text);
  yk_gpu_size *gpu = yk__calloc(most, sizeof *gpu);
  uint32_t total = 0;
  yk_code rc = gpu ? YK_OK : YK_ENOMEM;
  for (const char *s = text; rc == YK_OK; s++) {
    piece p = until(s, end, ',');
    yk_gpu_size each;
    int64_t count = 0;
    rc = group(&from, p, most, &count, &each);
    if (rc == YK_OK && (uint64_t)count > most - total) {
      char problem[80];
      snprintf(problem, sizeof problem, "makes it %lld GPUs; at most %u are possible", (long long)(total + count),
               (unsigned)most);
      rc = refuse(&from, p, problem);
    }
    for (; rc == YK_OK && count > 0; count--) gpu[total++] = each;
    s = p.s + p.n;
    if (s == end) break;
  }
  if (rc != YK_OK) {
    yk__free(gpu);
    return rc;
  }
  *out = gpu;
  *n = (uint16_t)total;
  return YK_OK;
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* "gpu:0" or "/gpu:0" or "/device:GPU:0". */
static yk_code split_device(const source *from, piece p, uint16_t *out) {
  yk_device_spec s = YK__ANY_DEVICE;
  char text[PIECE + 1] = "/";
  size_t skip = p.n > 0 && p.s[0] == '/' ? 0 : 1;
  if (!copy(p, text + skip)) return refuse(from, p, "is no GPU");
  if (yk__device_parse(text, &s) != YK_OK) {
    yk_error_clear();
    return refuse(from, p, "is no GPU");
  }
  if (s.job[0] || s.replica >= 0 || s.task >= 0 || strcmp(s.type, "GPU") != 0 || s.id < 0)
    return refuse(from, p, "is no GPU with its number");
  if (s.id >= YK__MAX_GPUS) return refuse(from, p, "is beyond the last GPU there can be");
  *out = (uint16_t)s.id;
  return YK_OK;
}

static size_t count_pieces(const char *text) {
  size_t n = 1;
  for (; *text; text++) n += *text == ',';
  return n;
}

static yk_code split_all(const source *from, yk_gpu_split *split, uint64_t *part, uint16_t *n) {
  const char *end = from->text + strlen(from->text);
  uint16_t found = 0;
  for (const char *s = from->text;; s++) {
    piece p = until(s, end, ','), device = until(p.s, p.s + p.n, '='), limit = p;
    if (device.n < p.n) {
      uint16_t gpu = 0;
      YK_TRY(split_device(from, device, &gpu));
      for (uint16_t k = 0; k < found; k++)
        if (split[k].gpu == gpu) return refuse(from, device, "is split twice");
      split[found++] = (yk_gpu_split){ .gpu = gpu, .nparts = 0, .part = part };
      limit = (piece){ device.s + device.n + 1, p.n - device.n - 1 };
    } else if (found == 0) {
      return refuse(from, p, "does not say which GPU");
    }
    YK_TRY(amount(from, limit, part++));
    split[found - 1].nparts++;
    s = p.s + p.n;
    if (s == end) break;
  }
  *n = found;
  return YK_OK;
}

yk_code yk__split_parse(const char *what, const char *text, yk_gpu_split **out, uint16_t *n) {
  const source from = { what, text,
    "GPUs with the memory of each part, such as gpu:0=256MiB,256MiB or gpu:0=1GiB,1GiB,gpu:1=2GiB,1GiB" };
  size_t most = count_pieces(text);
  if (most > YK__MAX_GPUS) return refuse(&from, (piece){ text, strlen(text) }, "has too many parts");
  yk_gpu_split *split = yk__calloc(most, sizeof *split + sizeof(uint64_t));
  if (!split) return YK_ENOMEM;
  yk_code rc = split_all(&from, split, (uint64_t *)(split + most), n);
  if (rc != YK_OK) {
    yk__free(split);
    return rc;
  }
  *out = split;
  return YK_OK;
}
