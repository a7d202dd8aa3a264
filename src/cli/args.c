/*
 * args.c - from argv to yk_cli, and the one line a failing command prints.
 *
 * "--name value" and "--name=value" are the same; "--" ends the options. The first
 * mistake stops the parse: one error, naming the option, the value and what was expected.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "cli/cli.h"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *current_verb;

void yk__die_verb(const char *verb) {
  current_verb = verb;
}

/* One line whatever is quoted in it: a path may hold line feeds, and what a terminal takes for a command. */
int yk__die(int status, const char *fmt, ...) {
  char text[5000];                       /* a message of the library, and what a command puts in front */
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  for (char *p = text; *p != '\0'; p++)
    if (iscntrl((unsigned char)*p)) *p = '?';
  fflush(stdout);
  fprintf(stderr, "yoke%s%s: %s%s\n", current_verb != NULL ? " " : "", current_verb != NULL ? current_verb : "", text,
          n >= (int)sizeof text ? "..." : "");
  return status;
}

int yk__die_code(yk_code code) {
  const char *message = yk_error_message();
  return yk__die(YK__EXIT_RUN, "%s", message[0] != '\0' ? message : yk_code_text(code));
}

const char *yk__shown(const char *text) {
  enum { WIDTH = 80 };
  static char buffer[4][WIDTH + 4];
  static int turn;
  char *out = buffer[turn++ % 4];
  size_t n = strlen(text), kept = n > WIDTH ? WIDTH : n;
  for (size_t i = 0; i < kept; i++) out[i] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
  memcpy(out + kept, n > WIDTH ? "..." : "", n > WIDTH ? 4 : 1);
  return out;
}

const char *yk__did_you_mean(const char *text, size_t n, const char *const *names) {
  static char hint[96];
  uint32_t best = 4, d;
  const char *name = NULL;
  for (size_t i = 0; i < n; i++)
    if ((d = yk__str_distance(text, names[i])) < best && d < strlen(names[i])) {
      best = d;
      name = names[i];
    }
  hint[0] = '\0';
  if (name != NULL) snprintf(hint, sizeof hint, ", did you mean '%s'?", name);
  return hint;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static bool takes(const yk_opt *o, yk_verb_id verb) {
  return o->verbs == 0 || (o->verbs >> verb & 1u) != 0;
}

static int unknown(yk_verb_id verb, const char *text) {
  const char *names[64];
  size_t n = 0;
  const char *hint;
  for (const yk_opt *o = yk__options; o->name != NULL && n < 64; o++)
    if (takes(o, verb)) names[n++] = o->name;
  hint = yk__did_you_mean(text, n, names);
  return yk__die(YK__EXIT_USAGE, "unknown option '%s'%s; try 'yoke %s --help'", yk__shown(text), hint, yk__verbs[verb].name);
}

static int set_number(const yk_opt *o, const char *value, yk_cli *out) {
  char *field = (char *)out + o->offset;
  if (o->kind == YK__OPT_INT) {
    int64_t x;
    if (!yk__parse_i64(value, (int64_t)o->lo, (int64_t)o->hi, &x))
      return yk__die(YK__EXIT_USAGE, "%s '%s': expected a whole number from %.0f to %.0f", o->name, yk__shown(value), o->lo,
                     o->hi);
    memcpy(field, &x, sizeof x);
  } else {
    double x;
    if (!yk__parse_f64(value, &x) || !(x >= o->lo && x <= o->hi))
      return yk__die(YK__EXIT_USAGE, "%s '%s': expected a number from %g to %g", o->name, yk__shown(value), o->lo, o->hi);
    memcpy(field, &x, sizeof x);
  }
  return 0;
}

int yk__opt_set(const yk_opt *o, const char *value, yk_cli *out) {
  char *field = (char *)out + o->offset;
  if (o->kind == YK__OPT_FLAG) {
    bool on = true;
    memcpy(field, &on, sizeof on);
    return 0;
  }
  if (value == NULL) {
    double none = 0;
    memcpy(field, &none, sizeof none);
    return 0;
  }
  if (value[0] == '\0') return yk__die(YK__EXIT_USAGE, "%s needs a value: %s %s", o->name, o->name, o->value);
  if (strlen(value) > YK__MAX_VALUE)
    return yk__die(YK__EXIT_USAGE, "%s '%s': a value of %zu characters; at most %d are taken", o->name, yk__shown(value),
                   strlen(value),
                   YK__MAX_VALUE);
  if (o->kind != YK__OPT_TEXT) return set_number(o, value, out);
  memcpy(field, &value, sizeof value);
  return 0;
}

/* One option at argv[*i]; steps over its value. */
static int option(yk_verb_id verb, int argc, char **argv, int *i, yk_cli *out) {
  const char *text = strcmp(argv[*i], "-h") == 0 ? "--help" : argv[*i], *value = NULL;
  const char *equals = strchr(text, '=');
  size_t len = equals != NULL ? (size_t)(equals - text) : strlen(text);
  const yk_opt *o = yk__options;
  while (o->name != NULL && !(strlen(o->name) == len && memcmp(o->name, text, len) == 0 && takes(o, verb))) o++;
  if (o->name == NULL) return unknown(verb, text);
  if (o->kind == YK__OPT_FLAG && equals != NULL)
    return yk__die(YK__EXIT_USAGE, "%s takes no value, got '%s'", o->name, yk__shown(equals + 1));
  if (o->kind == YK__OPT_MAYBE) {
    if (equals != NULL) value = equals + 1;
    else if (*i + 1 < argc && isdigit((unsigned char)argv[*i + 1][0])) value = argv[++*i];
  } else if (o->kind != YK__OPT_FLAG) {
    if (equals != NULL) value = equals + 1;
    else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0) value = argv[++*i];
    else return yk__die(YK__EXIT_USAGE, "%s needs a value: %s %s", o->name, o->name, o->value);
  }
  return yk__opt_set(o, value, out);
}

static int operand(yk_verb_id verb, const char *text, yk_cli *out) {
  const yk_verb *v = &yk__verbs[verb];
  if (v->operand == NULL)
    return yk__die(YK__EXIT_USAGE, "unexpected argument '%s'; 'yoke %s' takes only options", yk__shown(text), v->name);
  if (out->model != NULL)
    return yk__die(YK__EXIT_USAGE, "unexpected argument '%s' after %s '%s'", yk__shown(text), v->operand, yk__shown(out->model));
  out->model = text;
  return 0;
}

int yk__args_parse(yk_verb_id verb, int argc, char **argv, yk_cli *out) {
  bool only_operands = false;
  *out = yk__cli_defaults;
  out->verb = yk__verbs[verb].name;
  for (int i = 0; i < argc; i++) {
    int status;
    if (!only_operands && strcmp(argv[i], "--") == 0) {
      only_operands = true;
      continue;
    }
    status = !only_operands && argv[i][0] == '-' && argv[i][1] != '\0' ? option(verb, argc, argv, &i, out)
        : operand(verb, argv[i], out);
    if (status != 0) return status;
    if (out->help) return 0;
  }
  if (yk__verbs[verb].operand != NULL && out->model == NULL)
    return yk__die(YK__EXIT_USAGE, "which network? yoke %s MODEL; 'yoke %s --help' lists them", out->verb, out->verb);
  if (out->steps != 0 && out->epochs != 0) return yk__die(YK__EXIT_USAGE, "--steps and --epochs exclude each other");
  if (out->memory_limit != NULL && out->memory_fraction > 0)
    return yk__die(YK__EXIT_USAGE, "--memory-limit and --memory-fraction exclude each other");
  if (out->live && (out->quiet || out->json)) return yk__die(YK__EXIT_USAGE, "--live and --%s exclude each other", out->quiet ? "quiet" : "json");
  if (out->quiet && out->json) return yk__die(YK__EXIT_USAGE, "--quiet and --json exclude each other");
  return 0;
}
