/*
 * status.h - result codes and how a failure carries its message.
 *
 * Every function that can fail returns a yk_code. The text that goes with the
 * last failure of the calling thread is yk_error_message(); it names what was
 * wrong, where, and what was expected.
 */
#ifndef YK_STATUS_H
#define YK_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* The codes, each with a sentence about it: X(name, text). Never renumbered; new ones come at the end. */
#define YK_CODES(X)                                                    \
  X(OK,           "success")                                           \
  X(EINVAL,       "the caller broke the contract")                     \
  X(ENOMEM,       "host or device memory ran out")                     \
  X(ENOTFOUND,    "no such name, file or device")                      \
  X(EUNSUPPORTED, "valid, but this build or device cannot do it")      \
  X(EDEVICE,      "the device or its driver failed")                   \
  X(EIO,          "reading or writing failed")                         \
  X(ECORRUPT,     "stored data failed its check")                      \
  X(EPEER,        "another process failed or left")                    \
  X(EBUSY,        "not finished yet; ask again")                       \
  X(ECANCELLED,   "stopped on request")                                \
  X(EINTERNAL,    "a bug in this library")                             \
  X(ERANGE,       "the end of the data: nothing is left")

/* YK_OK, YK_EINVAL, ... */
typedef enum yk_code {
#define YK__CODE(name, text) YK_##name,
  YK_CODES(YK__CODE)
#undef YK__CODE
  YK_NCODES
} yk_code;

/* Marks a result that must not be ignored, and a function that takes a printf format. */
#if defined(__GNUC__)
#define YK_CHECKED  __attribute__((warn_unused_result))
#define YK_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define YK_CHECKED
#define YK_PRINTF(fmt, first)
#endif

/* Run `call`; on failure return its code from the calling function. */
#define YK_TRY(call)                     \
  do {                                   \
    yk_code yk_rc_ = (call);             \
    if (yk_rc_ != YK_OK) return yk_rc_;  \
  } while (0)

/* Name of a code without prefix ("EINVAL"), and one sentence about it. Static
 * strings; any thread. An unknown number gives "E?" and "unknown code". */
const char *yk_code_name(yk_code code);
const char *yk_code_text(yk_code code);

/* Text of the last failure on this thread, "" if there was none since the last
 * yk_error_clear(). Borrowed: valid until the thread's next failing call. */
const char *yk_error_message(void);

/* Forget this thread's message. Whoever handles a failure calls it. */
void yk_error_clear(void);

/* Library version, "MAJOR.MINOR.PATCH". Static string; any thread. */
const char *yk_version(void);

#ifdef __cplusplus
}
#endif
#endif
