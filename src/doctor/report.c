/*
 * report.c - collects verdicts, and the texts in them, in one piece of memory.
 *
 * Texts live as long as the report. A text that finds no memory is empty and is remembered, so that no judge needs to care.
 */
#include <stdarg.h>
#include <stdio.h>
#include "doctor/judge.h"

const char *yk__say(yk_doctor_report *r, const char *fmt, ...) {
  char text[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  const char *kept = yk__bump_str(&r->text, text);
  if (kept != NULL) return kept;
  r->failed = true;
  return "";
}

void yk__verdict(yk_doctor_report *r, yk_verdict v) {
  if (!YK_PUSH(r->at, r->n, r->cap, v)) r->failed = true;
}

yk_doctor_state yk__missing(const yk_facts *f) {
  return f->gpu_expected ? YK__BAD : YK__NOTE;
}

const char *yk__doctor_state_text(yk_doctor_state s) {
  static const char *const texts[] = { [YK__GOOD] = "ok", [YK__NOTE] = "note", [YK__WARN] = "warn", [YK__BAD] = "fail" };
  return texts[s];
}

void yk__doctor_free(yk_doctor_report *r) {
  yk__free(r->at);
  yk__bump_free(&r->text);
  *r = (yk_doctor_report){ 0 };
}
