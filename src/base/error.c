/*
 * error.c - the message of a thread's last failure, and the names of the codes.
 *
 * Formatting goes through a buffer on the stack, because the arguments of a new
 * message often quote the old one. Nothing here allocates.
 */
#include "base/error.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char message[YK__ERROR_BYTES];

static const char *const names[YK_NCODES] = {
#define YK__CODE(name, text) #name,
  YK_CODES(YK__CODE)
#undef YK__CODE
};

static const char *const texts[YK_NCODES] = {
#define YK__CODE(name, text) text,
  YK_CODES(YK__CODE)
#undef YK__CODE
};

/* Through int: a caller may hand over a number that is not of the enum. */
static int known(yk_code code) {
  int c = (int)code;
  return c >= 0 && c < (int)YK_NCODES;
}

const char *yk_code_name(yk_code code) {
  return known(code) ? names[code] : "E?";
}

const char *yk_code_text(yk_code code) {
  return known(code) ? texts[code] : "unknown code";
}

const char *yk_error_message(void) {
  return message;
}

void yk_error_clear(void) {
  message[0] = '\0';
}

yk_code yk__failv(yk_code code, const char *file, int line, const char *fmt, va_list ap) {
  char text[YK__ERROR_BYTES];
  int n = vsnprintf(text, sizeof text, fmt, ap);
  if (n < 0) text[0] = '\0';
  memcpy(message, text, strlen(text) + 1);
  yk__log(YK_LOG_DEBUG, file, line, "%s: %s", yk_code_name(code), message);
  return code;
}

yk_code yk__fail(yk_code code, const char *file, int line, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  yk__failv(code, file, line, fmt, ap);
  va_end(ap);
  return code;
}

yk_code yk__fail_prefix(yk_code code, const char *fmt, ...) {
  char text[YK__ERROR_BYTES];
  va_list ap;
  size_t used, rest;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (n < 0) return code;
  used = strlen(text);
  if (used + 3 > sizeof text) return code;         /* a prefix that long says nothing */
  memcpy(text + used, ": ", 2);
  used += 2;
  rest = strlen(message);
  if (rest > sizeof text - 1 - used) rest = sizeof text - 1 - used;
  memcpy(text + used, message, rest);
  text[used + rest] = '\0';
  memcpy(message, text, used + rest + 1);
  return code;
}

const char *yk_version(void) {
  return YOKE_VERSION;
}
