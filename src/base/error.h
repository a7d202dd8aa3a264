/*
 * error.h - how library code reports a failure. Public half: <yoke/status.h>.
 *
 * The message is kept per thread in a fixed buffer, so reporting out-of-memory
 * never allocates. YK_FAIL is an expression: `return YK_FAIL(EINVAL, "...")`.
 */
#ifndef YK_BASE_ERROR_H
#define YK_BASE_ERROR_H

#include <stdarg.h>
#include <yoke/status.h>

enum { YK__ERROR_BYTES = 4096 };

/* Store the formatted message for this thread and return `code`. */
yk_code yk__fail(yk_code code, const char *file, int line, const char *fmt, ...) YK_PRINTF(4, 5);
yk_code yk__failv(yk_code code, const char *file, int line, const char *fmt, va_list ap);

#define YK_FAIL(code, ...) yk__fail(YK_##code, __FILE__, __LINE__, __VA_ARGS__)

/* Put "prefix: " before this thread's message, and return `code` unchanged: how
 * a caller adds what it knows (op, node, file) to a callee's failure. */
yk_code yk__fail_prefix(yk_code code, const char *fmt, ...) YK_PRINTF(2, 3);

#endif
