/*
 * rig.c - opening a driver for a test, and making kernels out of test functions.
 *
 * Uses nothing but the driver's table, as the core would. Everything runs with a team of one, so that sanitizers see
 * every thread there is.
 */
#include "rig.h"

void rig_expect(yk_code got, yk_code want, const char *text, const char *file, int line) {
  if (got == want) return;
  print_error("%s\n  gave %s (%s), expected %s\n", text, yk_code_name(got), yk_error_message(), yk_code_name(want));
  _fail(file, line);
}

void rig_says(const char *part, const char *file, int line) {
  if (strstr(yk_error_message(), part)) return;
  print_error("the message is\n  \"%s\"\nand should contain\n  \"%s\"\n", yk_error_message(), part);
  _fail(file, line);
}

yk_dev *rig_device(const rig *r) {
  yk_dev *dev = NULL;
  OK(r->d->open(0, &(yk_dev_config){ .size = sizeof(yk_dev_config), .ncores = 1 }, &dev));
  return dev;
}

void rig_open(rig *r, const rig_variant *v) {
  *r = (rig){ .v = v, .d = yk__driver_find(v->driver) };
  assert_non_null(r->d);
  r->dev = rig_device(r);
  OK(r->d->stream_open(r->dev, v->flags, &r->s));
}

void rig_close(rig *r) {
  r->d->stream_close(r->s);
  r->d->close(r->dev);
}

void rig_call_open(const rig *r, yk_dev *dev, yk_code (*fn)(void *self, int64_t rows, void *const *out), void *self,
                   rig_call *c) {
  yk_desc one = { .dtype = YK_I64 }, out = { .dtype = YK_I64, .rank = 1, .layout = YK_LAYOUT_ANY, .dim = { 1 } };
  *c = (rig_call){ .source = { .self = self, .next = fn, .ncomponents = 1, .component = { one } } };
  c->attrs = (yk_dequeue_attrs){ .source = &c->source, .rows = 1 };
  yk_kernel_spec spec = { .size = sizeof spec, .op = "dequeue", .op_version = 1, .nout = 1, .attrs = &c->attrs, .out = &out };
  yk_kernel_info info = { .size = sizeof info };
  OK(r->d->kernel_prepare(dev, &spec, &c->kernel, &info));
  assert_non_null(info.impl);
  assert_int_equal(info.workspace, 0);
  assert_int_equal(out.layout, YK_LAYOUT_PLAIN);
  OK(r->d->mem_alloc(dev, YK_DEVICE_MEM, sizeof(int64_t), &c->out));
}

void rig_call_close(const rig *r, yk_dev *dev, rig_call *c) {
  r->d->mem_free(dev, c->out);
  r->d->kernel_free(c->kernel);
}

yk_code rig_launch(const rig *r, yk_stream *s, rig_call *c) {
  return r->d->kernel_launch(c->kernel, s, &c->out, 1, (yk_mem){ 0 });
}

yk_mem rig_slice(yk_mem m, size_t offset, size_t bytes) {
  return (yk_mem){ .base = m.base, .offset = m.offset + offset, .bytes = bytes };
}
