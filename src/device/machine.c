/*
 * machine.c - read the description of a machine.
 *
 * The file is gone through twice: first only for format and version, so that a file of a later version is told as such and not
 * by whatever is new in it; then for the content. Unknown keys are passed over, so that later writers may add some.
 */
#include "device/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/jread.h"

enum { MAX_DEVICES = 4096, MAX_LINKS = 1 << 20, MAX_FILE = 64 << 20, MAX_CORES = 65535, PLACE = 480 };
static const uint64_t MAX_BYTES = (uint64_t)1 << 62;

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A text that fits into `room` and can be printed in one line. */
static yk_code short_text(yk_jread *r, char *out, size_t room) {
  size_t from = r->at;
  char *text = NULL, expected[96];
  YK_TRY(yk__jread_text(r, &text));
  int good = strlen(text) < room;
  for (const unsigned char *c = (const unsigned char *)text; good && *c; c++) good = *c >= ' ' && *c != 0x7F;
  if (good) memcpy(out, text, strlen(text) + 1);
  yk__free(text);
  if (good) return YK_OK;
  r->at = from;
  snprintf(expected, sizeof expected, "a text of at most %zu printable characters", room - 1);
  return yk__jread_expected(r, expected);
}

typedef enum kind { TEXT, FLAG, BYTES, CORES, NUMBER, REAL } kind;
typedef struct field { const char *key; kind kind; size_t offset, room; } field;
#define FIELD(type, key, kind, name) { key, kind, offsetof(type, name), sizeof ((type *)0)->name }

static const field device_fields[] = {
  FIELD(yk_machine_device, "name", TEXT, name), FIELD(yk_machine_device, "type", TEXT, type),
  FIELD(yk_machine_device, "model", TEXT, model), FIELD(yk_machine_device, "driver", TEXT, driver),
  FIELD(yk_machine_device, "bus", TEXT, bus), FIELD(yk_machine_device, "uuid", TEXT, uuid),
  FIELD(yk_machine_device, "compute_capability", TEXT, capability), FIELD(yk_machine_device, "fast_types", TEXT, fast_types),
  FIELD(yk_machine_device, "virtual", FLAG, is_virtual),
  FIELD(yk_machine_device, "physical", NUMBER, physical), FIELD(yk_machine_device, "bytes_total", BYTES, bytes_total),
  FIELD(yk_machine_device, "bytes_limit", BYTES, bytes_limit), FIELD(yk_machine_device, "first_core", CORES, first_core),
  FIELD(yk_machine_device, "cores", CORES, ncores), FIELD(yk_machine_device, "part", CORES, part),
  FIELD(yk_machine_device, "parts", CORES, parts), FIELD(yk_machine_device, "gflops_f32", REAL, gflops),
  FIELD(yk_machine_device, "gbytes_per_s", REAL, gbytes_per_s),
};
static const field host_fields[] = {
  FIELD(yk_machine, "cpu", TEXT, cpu), FIELD(yk_machine, "cores", CORES, cores), FIELD(yk_machine, "bytes", BYTES, bytes),
};
typedef struct link_text { char from[64], to[64], kind[16]; double bytes_per_s; } link_text;
static const field link_fields[] = {
  FIELD(link_text, "from", TEXT, from), FIELD(link_text, "to", TEXT, to), FIELD(link_text, "kind", TEXT, kind),
  FIELD(link_text, "bytes_per_s", REAL, bytes_per_s),
};
#define COUNT(list) (sizeof (list) / sizeof (list)[0])

static yk_code read_value(yk_jread *r, const field *f, void *object) {
  char *at = (char *)object + f->offset;
  uint64_t x = 0;
  int32_t number;
  switch (f->kind) {
  case TEXT: return short_text(r, at, f->room);
  case FLAG: return yk__jread_bool(r, (int *)(void *)at);
  case REAL: return yk__jread_real(r, 0, 1e18, (double *)(void *)at);
  case BYTES: return yk__jread_whole(r, 1, MAX_BYTES, (uint64_t *)(void *)at);
  case CORES: return yk__jread_whole(r, 0, MAX_CORES, (uint64_t *)(void *)at);
  case NUMBER:
    YK_TRY(yk__jread_whole(r, 0, MAX_DEVICES, &x));
    number = (int32_t)x;
    memcpy(at, &number, sizeof number);
    return YK_OK;
  }
  return yk__jread_skip(r);
}

/* An object of known fields, each at most once; bit k of *seen: field k was there. */
static yk_code read_object(yk_jread *r, const field *list, size_t n, void *object, uint32_t *seen) {
  *seen = 0;
  YK_TRY(yk__jread_enter(r, '{'));
  for (;;) {
    char *key = NULL, expected[64];
    size_t k = 0;
    YK_TRY(yk__jread_key(r, &key));
    if (!key) return YK_OK;
    while (k < n && strcmp(list[k].key, key) != 0) k++;
    yk__free(key);
    if (k < n && (*seen >> k & 1u)) {
      snprintf(expected, sizeof expected, "\"%s\" only once", list[k].key);
      return yk__jread_expected(r, expected);
    }
    if (k < n) *seen |= 1u << k;
    YK_TRY(k < n ? read_value(r, &list[k], object) : yk__jread_skip(r));
  }
}

static int has(const field *list, size_t n, uint32_t seen, const char *key) {
  for (size_t k = 0; k < n; k++)
    if (strcmp(list[k].key, key) == 0) return seen >> k & 1u;
  return 0;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* "gpu:0", "/gpu:0" or the whole name, of this machine. */
static int parse_name(const char *name, yk_device_spec *out) {
  yk_device_spec any = YK__ANY_DEVICE, local = { .job = "localhost", .replica = 0, .task = 0 };
  char text[72];
  snprintf(text, sizeof text, "%s%s", name[0] == '/' ? "" : "/", name);
  if (yk__device_parse(text, &any) != YK_OK) {
    yk_error_clear();
    return 0;
  }
  memcpy(local.type, any.type, sizeof local.type);
  local.id = any.id;
  if (!any.type[0] || any.id < 0 || !yk__device_matches(&any, &local)) return 0;
  *out = local;
  return 1;
}

static int same(const yk_device_spec *a, const yk_device_spec *b) {
  return strcmp(a->type, b->type) == 0 && a->id == b->id;
}

static int known_types(const char *text) {
  static const char *const known[] = { "", "bf16,f16", "bf16", "f16", "none" };
  for (size_t i = 0; i < COUNT(known); i++)
    if (strcmp(text, known[i]) == 0) return 1;
  return 0;
}

/* What the fields of a device must be to one another, and to the devices before it. `at`: where it begins. */
static yk_code check_device(const yk_jread *r, size_t at, const yk_machine *m, yk_machine_device *d, uint32_t seen) {
  char place[PLACE];
  int32_t next = 0;
  yk__jread_place(r, at, place, sizeof place);
  if (!has(device_fields, COUNT(device_fields), seen, "name"))
    return YK_FAIL(ECORRUPT, "%s: a device without a \"name\"; expected one such as \"/gpu:0\"", place);
  if (!parse_name(d->name, &d->spec))
    return YK_FAIL(ECORRUPT, "%s: '%s' is no name of a device of one machine; expected one such as \"/gpu:0\"", place, d->name);
  if (d->type[0] && strcmp(d->type, d->spec.type) != 0)
    return YK_FAIL(ECORRUPT, "%s: device '%s' is said to be of type '%s'; expected '%s'", place, d->name, d->type, d->spec.type);
  if (strcmp(d->spec.type, "CPU") != 0 && strcmp(d->spec.type, "GPU") != 0)
    return YK_FAIL(ECORRUPT, "%s: device '%s' is of type '%s'; expected CPU or GPU", place, d->name, d->spec.type);
  if (!known_types(d->fast_types))
    return YK_FAIL(ECORRUPT, "%s: device '%s' has fast_types '%s'; expected bf16,f16 or bf16 or f16 or none", place, d->name, d->fast_types);
  for (uint16_t i = 0; i < m->n; i++) {
    if (same(&m->device[i].spec, &d->spec))
      return YK_FAIL(ECORRUPT, "%s: device '%s' is there twice; expected each once", place, d->name);
    next += strcmp(m->device[i].spec.type, d->spec.type) == 0;
  }
  if (d->spec.id != next)
    return YK_FAIL(ECORRUPT, "%s: device '%s' comes out of turn; expected %s:%d here, as devices are numbered from 0 in their order",
                   place, d->name, d->spec.type, (int)next);
  if (!d->bytes_limit) d->bytes_limit = d->bytes_total;
  if (!d->bytes_total) d->bytes_total = d->bytes_limit;
  if (!d->bytes_limit)
    return YK_FAIL(ECORRUPT, "%s: device '%s' without memory; expected \"bytes_limit\" or \"bytes_total\"", place, d->name);
  if (d->bytes_limit > d->bytes_total)
    return YK_FAIL(ECORRUPT, "%s: device '%s' may use %llu bytes of %llu; expected a limit within the total", place, d->name,
                   (unsigned long long)d->bytes_limit, (unsigned long long)d->bytes_total);
  if (d->parts > 0 ? d->part >= d->parts : d->part > 0)
    return YK_FAIL(ECORRUPT, "%s: device '%s' is part %llu of %llu; expected a number from 0, below the number of parts", place,
                   d->name, (unsigned long long)d->part, (unsigned long long)d->parts);
  return YK_OK;
}

static yk_code read_devices(yk_jread *r, yk_machine *m) {
  if (m->device) return yk__jread_expected(r, "\"devices\" only once");
  YK_TRY(yk__jread_enter(r, '['));
  for (;;) {
    yk_machine_device d = { .driver = "", .physical = -1 };
    uint32_t seen = 0, n = m->n;
    int more = 0;
    YK_TRY(yk__jread_more(r, &more));
    if (!more) return YK_OK;
    if (n == MAX_DEVICES) return yk__jread_expected(r, "at most 4096 devices");
    size_t at = yk__jread_at(r);
    YK_TRY(read_object(r, device_fields, COUNT(device_fields), &d, &seen));
    YK_TRY(check_device(r, at, m, &d, seen));
    memcpy(d.type, d.spec.type, sizeof d.type);
    if (!YK_PUSH(m->device, n, m->cap, d)) return YK_ENOMEM;
    m->n = (uint16_t)n;
  }
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static int find(const yk_machine *m, const char *name, uint16_t *out) {
  yk_device_spec s;
  if (!parse_name(name, &s)) return 0;
  for (uint16_t i = 0; i < m->n; i++)
    if (same(&m->device[i].spec, &s)) return *out = i, 1;
  return 0;
}

static yk_code read_links(yk_jread *r, yk_machine *m) {
  YK_TRY(yk__jread_enter(r, '['));
  for (;;) {
    link_text t = { .from = "" };
    yk_machine_link l = { .from = 0 };
    uint32_t seen = 0;
    int more = 0;
    YK_TRY(yk__jread_more(r, &more));
    if (!more) return YK_OK;
    if (m->nlink == MAX_LINKS) return yk__jread_expected(r, "fewer links");
    YK_TRY(read_object(r, link_fields, COUNT(link_fields), &t, &seen));
    if (!find(m, t.from, &l.from) || !find(m, t.to, &l.to))
      return yk__jread_expected(r, "\"from\" and \"to\" of a link to be devices of this machine, before this");
    memcpy(l.kind, t.kind, sizeof l.kind);
    l.bytes_per_s = t.bytes_per_s;
    if (!YK_PUSH(m->link, m->nlink, m->link_cap, l)) return YK_ENOMEM;
  }
}

double yk__machine_speed(const yk_machine *m, uint16_t from, uint16_t to) {
  for (uint32_t i = 0; m && i < m->nlink; i++)
    if (m->link[i].from == from && m->link[i].to == to && m->link[i].bytes_per_s > 0) return m->link[i].bytes_per_s;
  return 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* First pass: is it ours, and of a version we know? */
static yk_code check_version(const char *source, const char *text, size_t n) {
  yk_jread r = { .what = source, .s = text, .n = n, .lines = 1 };
  char format[32] = "";
  uint64_t version = 0;
  YK_TRY(yk__jread_enter(&r, '{'));
  for (;;) {
    char *key = NULL;
    YK_TRY(yk__jread_key(&r, &key));
    if (!key) break;
    yk_code rc = strcmp(key, "format") == 0 ? short_text(&r, format, sizeof format)
        : strcmp(key, "version") == 0 ? yk__jread_whole(&r, 1, 1000000, &version) : yk__jread_skip(&r);
    yk__free(key);
    YK_TRY(rc);
  }
  YK_TRY(yk__jread_end(&r));
  if (strcmp(format, "yoke-machine") != 0)
    return YK_FAIL(ECORRUPT, "%.400s: its \"format\" is \"%s\"; expected \"yoke-machine\", as `yoke devices --save` writes it",
                   source, format);
  if (version == 0) return YK_FAIL(ECORRUPT, "%.400s: no \"version\"; expected version %d", source, YK__MACHINE_VERSION);
  if (version != YK__MACHINE_VERSION)
    return YK_FAIL(EUNSUPPORTED, "%.400s is of version %llu of the format; expected version %d", source,
                   (unsigned long long)version, YK__MACHINE_VERSION);
  return YK_OK;
}

/* Second pass, over one kind of member: links come after the devices they name, wherever they stand. */
static yk_code read_members(const char *source, const char *text, size_t n, int links, yk_machine *m) {
  yk_jread r = { .what = source, .s = text, .n = n, .lines = 1 };
  YK_TRY(yk__jread_enter(&r, '{'));
  for (;;) {
    char *key = NULL;
    uint32_t seen;
    YK_TRY(yk__jread_key(&r, &key));
    if (!key) return YK_OK;
    yk_code rc = links && strcmp(key, "links") == 0 ? read_links(&r, m)
        : !links && strcmp(key, "devices") == 0 ? read_devices(&r, m)
        : !links && strcmp(key, "host") == 0 ? read_object(&r, host_fields, COUNT(host_fields), m, &seen) : yk__jread_skip(&r);
    yk__free(key);
    YK_TRY(rc);
  }
}

static yk_code parse(const char *source, const char *text, size_t n, yk_machine *m) {
  int cpus = 0;
  if (n == 0)
    return YK_FAIL(ECORRUPT, "%.400s is empty; expected the description of a machine, as `yoke devices --save` writes it", source);
  YK_TRY(check_version(source, text, n));
  YK_TRY(read_members(source, text, n, 0, m));
  YK_TRY(read_members(source, text, n, 1, m));
  for (uint16_t i = 0; i < m->n; i++) cpus += strcmp(m->device[i].spec.type, "CPU") == 0;
  if (m->n == 0) return YK_FAIL(ECORRUPT, "%.400s: no devices; expected a list \"devices\" with at least /cpu:0", source);
  if (cpus == 0)
    return YK_FAIL(ECORRUPT, "%.400s: no CPU among the devices; expected at least /cpu:0, which every session has", source);
  m->source = yk__strdup(source);
  return m->source ? YK_OK : YK_ENOMEM;
}

yk_code yk__machine_parse(const char *source, const char *text, size_t n, yk_machine **out) {
  yk_machine *m = yk__calloc(1, sizeof *m);
  if (!m) return YK_ENOMEM;
  yk_code rc = parse(source, text, n, m);
  if (rc != YK_OK) {
    yk__machine_free(m);
    return rc;
  }
  *out = m;
  return YK_OK;
}

void yk__machine_free(yk_machine *m) {
  if (!m) return;
  yk__free(m->source);
  yk__free(m->device);
  yk__free(m->link);
  yk__free(m);
}

static yk_code read_file(const char *path, char **text, size_t *n) {
  struct stat info = { 0 };
  FILE *f = fopen(path, "rb");
  if (!f && errno == ENOENT) return YK_FAIL(ENOTFOUND, "there is no file '%.400s'; expected the description of a machine", path);
  if (!f) return YK_FAIL(EIO, "'%.400s' cannot be opened: %s", path, strerror(errno));
  int regular = fstat(fileno(f), &info) == 0 && S_ISREG(info.st_mode);
  yk_code rc = YK_OK;
  char *bytes = NULL;
  *n = regular ? (size_t)info.st_size : 0;
  if (!regular) rc = YK_FAIL(EIO, "'%.400s' is no regular file; expected the description of a machine", path);
  else if (*n > MAX_FILE) rc = YK_FAIL(ECORRUPT, "'%.400s' has %zu bytes; expected at most %d", path, *n, MAX_FILE);
  else if ((bytes = yk__alloc(*n + 1)) == NULL) rc = YK_ENOMEM;
  else if (fread(bytes, 1, *n, f) != *n)
    rc = YK_FAIL(EIO, "'%.400s' cannot be read: %s", path, ferror(f) ? strerror(errno) : "it became shorter");
  fclose(f);
  if (rc != YK_OK) {
    yk__free(bytes);
    return rc;
  }
  *text = bytes;
  return YK_OK;
}

yk_code yk__machine_read(const char *path, yk_machine **out) {
  char *text = NULL;
  size_t n = 0;
  YK_TRY(read_file(path, &text, &n));
  yk_code rc = yk__machine_parse(path, text, n, out);
  yk__free(text);
  return rc;
}
