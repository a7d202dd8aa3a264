/*
 * progress.c - the bar of a run on a terminal.
 *
 * One line that is written over itself. How often is the caller's business; what a
 * narrow terminal cannot hold is cut, since a wrapped bar would scroll.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "cli/metrics.h"

enum { BAR = 24, NARROW_BAR = 12, WIDE = 100 };          /* cells of the bar; columns from which on it is long */

int yk__columns(FILE *out) {
  struct winsize w;
  return ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static void time_text(double seconds, char *buffer, size_t n) {
  long long s = seconds < 0 ? 0 : seconds > 3.6e8 ? 360000000 : (long long)(seconds + 0.5);
  if (s >= 3600) snprintf(buffer, n, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else snprintf(buffer, n, "%lld:%02lld", s / 60, s % 60);
}

void yk__bar_text(int width, int64_t step, int64_t steps, double loss, double accuracy, double rate, double left, char line[YK__BAR_TEXT]) {
  char bar[BAR + 1], time[32];
  int cells = width >= WIDE ? BAR : NARROW_BAR;
  int full = steps > 0 ? (int)((double)step / (double)steps * cells) : 0;
  memset(bar, '.', (size_t)cells);
  memset(bar, '#', (size_t)(full > cells ? cells : full));
  bar[cells] = '\0';
  time_text(left, time, sizeof time);
  snprintf(line, YK__BAR_TEXT, "[%s] %lld/%lld  loss %.4f  accuracy %.3f  %.0f ex/s  %s left", bar, (long long)step,
           (long long)steps, loss, accuracy, rate, time);
}

void yk__bar_draw(FILE *out, const char *line) {
  fprintf(out, "\r%.*s\033[K", yk__columns(out) - 1, line);
  fflush(out);
}

void yk__bar_clear(FILE *out) {
  fputs("\r\033[K", out);
  fflush(out);
}
