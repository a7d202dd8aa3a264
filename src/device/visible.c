/*
 * visible.c - parse CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and the session's list.
 *
 * Users write the first with and without quotes, since shells and launch files keep them
 * differently. It never fails: what cannot be read ends the list, as the driver does it.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/str.h"
#include "device/visible.h"

/* ---- order ---- */

void yk__gpu_order(const char *order, uint16_t count, const yk_gpu_id *gpu, uint16_t *out) {
  bool by_bus = order && strcmp(order, "PCI_BUS_ID") == 0;
  for (uint16_t k = 0; k < count; k++) out[k] = k;
  if (by_bus) {                                      /* insertion: a machine has few */
    for (uint16_t k = 1; k < count; k++)
      for (uint16_t i = k; i > 0 && strcmp(gpu[out[i]].bus, gpu[out[i - 1]].bus) < 0; i--) {
        uint16_t swap = out[i];
        out[i] = out[i - 1];
        out[i - 1] = swap;
      }
    return;
  }
  uint16_t best = 0;
  for (uint16_t k = 1; k < count; k++)
    if (gpu[k].speed > gpu[best].speed) best = k;
  for (uint16_t i = best; i > 0; i--) out[i] = (uint16_t)(i - 1);
  if (count) out[0] = best;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

typedef struct piece { const char *s; size_t n; } piece;     /* one item, without the spaces around it */

static piece trimmed(const char *s, size_t n) {
  while (n > 0 && isspace((unsigned char)*s)) { s++; n--; }
  while (n > 0 && isspace((unsigned char)s[n - 1])) n--;
  return (piece){ s, n };
}

static int begins(piece p, const char *with) {
  size_t n = strlen(with);
  return p.n >= n && memcmp(p.s, with, n) == 0;
}

static int is_uuid(piece p) { return begins(p, "GPU-") || begins(p, "MIG-"); }

/* The leading digits; -1 if there are none, or the number is not below `count`. */
static int32_t number(piece p, uint16_t count) {
  int32_t n = 0;
  size_t i = 0;
  for (; i < p.n && isdigit((unsigned char)p.s[i]); i++) {
    n = n * 10 + (p.s[i] - '0');
    if (n >= count) return -1;
  }
  return i ? n : -1;
}

/* The only GPU whose UUID begins with `p`; -1 if there is none, or more than one. */
static int32_t by_uuid(piece p, uint16_t count, const yk_gpu_id *gpu) {
  int32_t found = -1;
  for (uint16_t k = 0; gpu && k < count; k++) {
    if (strlen(gpu[k].uuid) < p.n || memcmp(gpu[k].uuid, p.s, p.n) != 0) continue;
    if (found >= 0) return -1;
    found = k;
  }
  return found;
}

static int has(const uint16_t *set, uint16_t n, int32_t x) {
  for (uint16_t k = 0; k < n; k++)
    if (set[k] == x) return 1;
  return 0;
}

typedef struct ending { piece item; int twice; } ending;     /* what ended a list early: item.s NULL = nothing */

static uint16_t read_list(const char *text, uint16_t count, const yk_gpu_id *gpu, uint16_t *out, ending *why) {
  uint16_t n = 0;
  char quote = *text == '"' || *text == '\'' ? *text++ : '\0';
  const char *close = quote ? strchr(text, quote) : NULL, *end = close ? close : text + strlen(text);
  int uuids = -1;                                    /* what the first item is: the others must be the same */
  for (;; text++) {
    const char *comma = memchr(text, ',', (size_t)(end - text)), *stop = comma ? comma : end;
    piece p = trimmed(text, (size_t)(stop - text));
    if (uuids < 0) uuids = is_uuid(p);
    int32_t i = is_uuid(p) != uuids ? -1 : uuids ? by_uuid(p, count, gpu) : number(p, count);
    int twice = i >= 0 && has(out, n, i);
    if (i < 0 || twice) *why = (ending){ p, twice };
    if (twice) return 0;
    if (i < 0) return n;
    out[n++] = (uint16_t)i;
    if (!comma || begins(p, "MIG-")) return n;       /* a process sees one MIG instance */
    text = comma;
  }
}

uint16_t yk__visible_devices(const char *text, uint16_t count, const yk_gpu_id *gpu, uint16_t *out) {
  ending why = { { NULL, 0 }, 0 };
  if (text) return read_list(text, count, gpu, out, &why);
  for (uint16_t n = 0; n < count; n++) out[n] = n;
  return count;
}

char *yk__visible_remark(const char *text, uint16_t count, const yk_gpu_id *gpu, uint16_t *room, char *buf, size_t n) {
  ending why = { { NULL, 0 }, 0 };
  uint16_t left = text ? read_list(text, count, gpu, room, &why) : 0;
  int meant = !why.item.s || why.item.n == 0 || begins(why.item, "-");      /* nothing and -1 are how one says "no more" */
  buf[0] = '\0';
  if (meant || count == 0) return buf;
  char item[24];
  size_t len = why.item.n < sizeof item - 1 ? why.item.n : sizeof item - 1;
  for (size_t i = 0; i < len; i++) item[i] = isprint((unsigned char)why.item.s[i]) ? why.item.s[i] : '?';
  item[len] = '\0';
  snprintf(buf, n, "CUDA_VISIBLE_DEVICES: \"%s\" is %s; %u of %u GPUs can be seen", item,
           why.twice ? "listed twice, which hides all" : "no GPU, which ends the list", (unsigned)left, (unsigned)count);
  return buf;
}

/* ---- the session's list ---- */

static yk_code refuse(yk_code code, const char *text, piece item, const char *problem, uint16_t count) {
  char have[64];
  if (count == 0) snprintf(have, sizeof have, "there is no GPU");
  else if (count == 1) snprintf(have, sizeof have, "there is one GPU, number 0");
  else snprintf(have, sizeof have, "there are %u GPUs, numbers 0 to %u", (unsigned)count, (unsigned)count - 1);
  return yk__fail(code, __FILE__, __LINE__, "visible devices \"%.60s\": \"%.*s\" %s; %s (numbers count what CUDA_VISIBLE_DEVICES "
                  "left); expected numbers such as 2,0, or none", text, (int)(item.n < 20 ? item.n : 20), item.s, problem, have);
}

static yk_code list_item(const char *text, piece p, uint16_t count, uint16_t *out, uint16_t *n) {
  size_t digits = 0;
  while (digits < p.n && isdigit((unsigned char)p.s[digits])) digits++;
  if (digits == 0 || digits != p.n) return refuse(YK_EINVAL, text, p, "is no number", count);
  int32_t i = number(p, count);
  if (i < 0) return refuse(YK_ENOTFOUND, text, p, "is no GPU", count);
  if (has(out, *n, i)) return refuse(YK_EINVAL, text, p, "is there twice", count);
  out[(*n)++] = (uint16_t)i;
  return YK_OK;
}

static yk_code parse_list(const char *text, const char *end, uint16_t count, uint16_t *out, uint16_t *n) {
  for (const char *s = text;; s++) {
    const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
    YK_TRY(list_item(text, trimmed(s, (size_t)(stop - s)), count, out, n));
    if (!comma) return YK_OK;
    s = comma;
  }
}

yk_code yk__visible_list(const char *text, uint16_t count, uint16_t *out, uint16_t *n) {
  uint16_t found = 0;
  piece all = trimmed(text ? text : "", text ? strlen(text) : 0);
  if (all.n >= 2 && (*all.s == '"' || *all.s == '\'') && all.s[all.n - 1] == *all.s) all = trimmed(all.s + 1, all.n - 2);
  if (all.n == 0) {
    for (; found < count; found++) out[found] = found;
  } else if (!(all.n == 4 && begins(all, "none")) && !(all.n == 2 && begins(all, "-1"))) {
    YK_TRY(parse_list(all.s, all.s + all.n, count, out, &found));
  }
  *n = found;
  return YK_OK;
}

char *yk__virtual_uuid(uint16_t index, char buf[YK__UUID_BYTES]) {
  uint64_t a = yk__hash(&index, sizeof index, 0x9E3779B97F4A7C15u), b = yk__hash(&index, sizeof index, a);
  snprintf(buf, YK__UUID_BYTES, "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF),
           (unsigned)(a & 0xFFFF), (unsigned)(b >> 48), (unsigned long long)(b & 0xFFFFFFFFFFFFu));
  return buf;
}
