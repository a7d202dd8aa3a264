/*
 * visible.c - parse CUDA_VISIBLE_DEVICES.
 *
 * Users write it with and without quotes, since shells and launch files keep them
 * differently. It never fails: what cannot be read ends the list, as the driver does it.
 */
#include <ctype.h>
#include <stddef.h>
#include "device/visible.h"

/* A whole number at *p, spaces around it skipped; -1 if there is none below `count`. */
static int32_t item(const char **p, uint16_t count) {
  int32_t n = 0;
  while (isspace((unsigned char)**p)) (*p)++;
  if (!isdigit((unsigned char)**p)) return -1;
  for (; isdigit((unsigned char)**p); (*p)++) {
    n = n * 10 + (**p - '0');
    if (n >= count) return -1;
  }
  while (isspace((unsigned char)**p)) (*p)++;
  return n;
}

uint16_t yk__visible_devices(const char *text, uint16_t count, uint16_t *out) {
  uint16_t n = 0;
  if (text == NULL) {
    for (; n < count; n++) out[n] = n;
    return n;
  }
  char quote = *text == '"' || *text == '\'' ? *text++ : '\0';
  for (;; text++) {
    int32_t i = item(&text, count);
    char end = *text;
    int at_end = end == '\0' || (quote && end == quote);
    if (i < 0 || !(at_end || end == ',')) return n;
    for (uint16_t k = 0; k < n; k++)
      if (out[k] == (uint16_t)i) return 0;
    out[n++] = (uint16_t)i;
    if (at_end) return n;
  }
}
