/*
 * cmd_ops.c - `yoke ops`: every operation, whether gradients flow through it, and its dtypes on each device.
 *
 * One column a driver that has a device here. A dtype in brackets has kernels for
 * some of the operation's cases only.
 */
#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "op/kernels.h"
#include "device/device.h"

enum { MAX_DRIVERS = 4 };
typedef struct yk_column { char name[16]; const yk_driver *driver; yk_dev *dev; } yk_column;
typedef struct yk_columns { yk_column at[MAX_DRIVERS]; size_t n; } yk_columns;

static yk_code open_column(yk_columns *c, const char *name) {
  yk_dev_config config = { .size = sizeof config };
  yk_column *k = &c->at[c->n];
  for (size_t i = 0; i < c->n; i++)
    if (strcmp(c->at[i].name, name) == 0) return YK_OK;
  if (c->n == MAX_DRIVERS) return YK_OK;
  *k = (yk_column){ .driver = yk__driver_find(name) };
  snprintf(k->name, sizeof k->name, "%s", name);
  if (k->driver == NULL) return YK_ENOTFOUND;
  YK_TRY(k->driver->open(0, &config, &k->dev));
  c->n++;
  return YK_OK;
}

static int open_columns(const yk_cli *c, yk_columns *out) {
  yk_session_options options;
  yk_graph *g = NULL;
  yk_session *s = NULL;
  yk_code rc = YK_OK;
  int status = yk__session_settings(c, &options);
  if (status == 0) status = yk__probe(&options, &g, &s);
  if (status != 0) return status;
  for (size_t i = 0; i < yk_session_device_count(s) && rc == YK_OK; i++) {
    yk_device_info d;
    rc = yk_session_device(s, i, &d);
    if (rc == YK_OK) rc = open_column(out, d.driver);
  }
  yk_session_close(s);
  yk_graph_free(g);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}

static const char *set_text(yk_support s, char *buffer, size_t n) {
  size_t at = 0;
  buffer[0] = '\0';
  for (uint32_t t = 1; t < YK_NDTYPES && at < n; t++) {
    const char *name = yk_dtype_name((yk_dtype)t), *space = at > 0 ? " " : "";
    if ((s.all & YK_T(t)) != 0) at += (size_t)snprintf(buffer + at, n - at, "%s%s", space, name);
    else if ((s.some & YK_T(t)) != 0) at += (size_t)snprintf(buffer + at, n - at, "%s(%s)", space, name);
  }
  if (at == 0) snprintf(buffer, n, "-");
  return buffer;
}

static void put_set(yk_json *o, const char *key, uint32_t set) {
  yk__json_open(o, key, '[');
  for (uint32_t t = 1; t < YK_NDTYPES; t++)
    if ((set & YK_T(t)) != 0) yk__json_text(o, NULL, yk_dtype_name((yk_dtype)t));
  yk__json_close(o, ']');
}

static void put_json(yk_json *o, const yk_op *op, const yk_columns *c) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "name", op->name);
  yk__json_text(o, "label", op->label);
  yk__json_text(o, "doc", op->doc);
  yk__json_bool(o, "gradient", op->grad != NULL);
  put_set(o, "dtypes", yk__op_dtypes(op));
  yk__json_open(o, "devices", '{');
  for (size_t i = 0; i < c->n; i++) {
    yk_support s = yk__kernel_support(c->at[i].driver, c->at[i].dev, op);
    yk__json_open(o, c->at[i].name, '{');
    put_set(o, "dtypes", s.all);
    put_set(o, "some_cases", s.some);
    yk__json_close(o, '}');
  }
  yk__json_close(o, '}');
  yk__json_close(o, '}');
}

static void put_line(const yk_op *op, const yk_columns *c) {
  char text[128];
  printf("%-28s  %-8s", op->name, op->grad != NULL ? "yes" : "no");
  for (size_t i = 0; i < c->n; i++)
    printf("  %-40s", set_text(yk__kernel_support(c->at[i].driver, c->at[i].dev, op), text, sizeof text));
  printf("  %s\n", op->doc);
}

int yk__cmd_ops(const yk_cli *c) {
  size_t n = 0, shown = 0;
  const yk_op *const *ops = yk_op_all(&n);
  yk_columns columns = { 0 };
  yk_json o = { 0 };
  int status = open_columns(c, &columns);
  if (status == 0 && c->json) yk__json_open(&o, NULL, '[');
  if (status == 0 && !c->json) {
    printf("%-28s  %-8s", "operation", "gradient");
    for (size_t i = 0; i < columns.n; i++) printf("  %-40s", columns.at[i].name);
    printf("\n");
  }
  for (size_t i = 0; i < n && status == 0; i++) {
    if (c->no_gradient && ops[i]->grad != NULL) continue;
    shown++;
    if (c->json) put_json(&o, ops[i], &columns);
    else put_line(ops[i], &columns);
  }
  if (status == 0 && c->json) {
    yk__json_close(&o, ']');
    yk__json_flush(&o, stdout, NULL);
  } else if (status == 0) {
    printf("%zu operations%s\n", shown, c->no_gradient ? " without a gradient" : "");
  }
  yk__str_free(&o.text);
  for (size_t i = 0; i < columns.n; i++) columns.at[i].driver->close(columns.at[i].dev);
  return status;
}
