/*
 * devices_save.c - `yoke devices --save FILE`: the description of this machine, for `--rehearse FILE` on another one.
 *
 * One device a line, so that a person can read and change it; what --topology or --bench measured goes in too. The format is
 * described in docs/machine-format.md.
 */
#include <stdio.h>
#include <string.h>
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/devices.h"
#include "device/machine.h"
#include "store/disk.h"

/* Speeds in units of 1e9, if they were measured. */
static void put_speeds(yk_json *o, const yk_bench *b) {
  if (b->of[YK__BENCH_F32].measured) yk__json_real(o, "gflops_f32", b->of[YK__BENCH_F32].value * 1e-9);
  if (b->of[YK__BENCH_MEMORY].measured) yk__json_real(o, "gbytes_per_s", b->of[YK__BENCH_MEMORY].value * 1e-9);
}

static void put_links(yk_json *o, const yk_topology *t) {
  yk__json_break(o);
  yk__json_open(o, "links", '[');
  for (size_t i = 0; i < t->n * t->n; i++) {
    const yk_link *l = &t->between[i];
    if (!l->measured || l->kind == YK__LINK_SELF || l->kind == YK__LINK_MEMORY) continue;      /* where plans copy */
    yk__json_break(o);
    yk__json_open(o, NULL, '{');
    yk__json_text(o, "from", t->device[i / t->n].name);
    yk__json_text(o, "to", t->device[i % t->n].name);
    yk__json_text(o, "kind", yk__link_text(l->kind));
    yk__json_real(o, "bytes_per_s", l->bytes_per_second);
    yk__json_close(o, '}');
  }
  yk__json_close(o, ']');
}

static void put_device(yk_json *o, const yk_device_info *d, const yk_bench *b) {
  yk__json_break(o);
  yk__json_open(o, NULL, '{');
  yk__json_text(o, "name", d->name);
  yk__json_text(o, "type", d->type);
  yk__json_text(o, "driver", d->driver);
  yk__json_text(o, "model", d->model);
  yk__json_text(o, "bus", d->bus);
  yk__json_text(o, "uuid", d->uuid);
  yk__json_bool(o, "virtual", d->is_virtual);
  if (d->physical >= 0) yk__json_int(o, "physical", d->physical);
  yk__json_int(o, "bytes_total", (int64_t)d->bytes_total);
  yk__json_int(o, "bytes_limit", (int64_t)d->bytes_limit);
  yk__json_int(o, "first_core", d->first_core);
  yk__json_int(o, "cores", d->ncores);
  if (d->capability[0] != '\0') yk__json_text(o, "compute_capability", d->capability);
  if (d->fast_types[0] != '\0') yk__json_text(o, "fast_types", d->fast_types);
  if (d->parts > 0) yk__json_int(o, "part", d->part);
  if (d->parts > 0) yk__json_int(o, "parts", d->parts);
  if (b != NULL) put_speeds(o, b);
  yk__json_close(o, '}');
}

static void put_host(yk_json *o, const yk_device_info *cpu) {
  yk__json_open(o, "host", '{');
  yk__json_text(o, "cpu", cpu->model);
  yk__json_int(o, "cores", yk__ncores());
  yk__json_int(o, "bytes", (int64_t)cpu->bytes_total);
  yk__json_close(o, '}');
}

int yk__devices_save(const yk_session *s, const char *path, const yk_topology *t, const yk_bench *b) {
  yk_json o = { 0 };
  yk_device_info d = { .model = "" };
  char *text = NULL;
  yk_code rc = yk_session_device(s, 0, &d);
  yk__json_open(&o, NULL, '{');
  yk__json_text(&o, "format", "yoke-machine");
  yk__json_int(&o, "version", YK__MACHINE_VERSION);
  yk__json_break(&o);
  put_host(&o, &d);
  yk__json_break(&o);
  yk__json_open(&o, "devices", '[');
  for (size_t i = 0; rc == YK_OK && i < yk_session_device_count(s); i++) {
    rc = yk_session_device(s, i, &d);
    put_device(&o, &d, b != NULL ? &b[i] : NULL);
  }
  yk__json_close(&o, ']');
  if (t != NULL) put_links(&o, t);
  yk__json_close(&o, '}');
  yk__str_put(&o.text, "\n", 1);
  if (rc != YK_OK) yk__str_free(&o.text);
  size_t n = o.text.n;
  if (rc == YK_OK) rc = yk__str_take(&o.text, &text);
  if (rc == YK_OK) rc = yk__disk_write(path, 1, &(yk_piece){ text, n });
  yk_free(text);
  return rc == YK_OK ? 0 : yk__die_code(rc);
}
