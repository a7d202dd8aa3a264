/*
 * calls_checkpoints.c - savers and checkpoints while memory runs out.
 *
 * The folder has two checkpoints of earlier steps, one of which the list does not know, since that is when most is to be done.
 * After each failure it has to have the same two, whole.
 */
#include "fault.h"

#include <dirent.h>
#include <unistd.h>

static char folder[64], newest[128];
static yk_graph *g;
static yk_session *s;
static yk_variable *v;
static yk_saver *saver;
static yk_checkpoint *c;
static yk_tensor *got;
static char *text;
static const char *path;

static void remove_files(void) {
  char file[512];
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(file, sizeof file, "%s/%s", folder, e->d_name);
    CHECK_INT(unlink(file), 0);
  }
  closedir(d);
}

static void set(float x) {
  yk_tensor *t;
  CHECK_OK(yk_tensor_from(YK_F32, YK_SHAPE(3), (const float[]){ x, x, x }, &t));
  CHECK_OK(yk_variable_set(s, v, t));
  yk_tensor_free(t);
}

static float value(void) {
  yk_tensor *t;
  CHECK_OK(yk_variable_fetch(s, v, &t));
  float x = (float)yk_tensor_at(t, 2);
  yk_tensor_free(t);
  return x;
}

/* Files of the folder, kept so that they are synced to the disk once only. */
typedef struct kept { const char *name; char *bytes; size_t n; } kept;
static kept files[] = { { "ckpt-1.safetensors", NULL, 0 }, { "ckpt-2.safetensors", NULL, 0 }, { "checkpoint.json", NULL, 0 } };
enum { NFILES = sizeof files / sizeof files[0] };

static void take(kept *k) {
  static char bytes[8192];
  char file[128];
  snprintf(file, sizeof file, "%s/%s", folder, k->name);
  FILE *f = fopen(file, "rb");
  assert_non_null(f);
  k->n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  assert_true(k->n > 0 && k->n < sizeof bytes);
  k->bytes = malloc(k->n);
  memcpy(k->bytes, bytes, k->n);
}

/* Steps 1 and 2, of values 1 and 2, and the list as it was after step 1. */
static void make_files(void) {
  CHECK_OK(yk_saver_open(folder, NULL, &saver));
  set(1);
  CHECK_OK(yk_saver_save(saver, s, 1, 0, NULL));
  take(&files[2]);
  set(2);
  CHECK_OK(yk_saver_save(saver, s, 2, 1, &(yk_note){ "key", "a text" }));
  CHECK_OK(yk_saver_close(saver));
  saver = NULL;
  take(&files[0]);
  take(&files[1]);
}

static void put_files(void) {
  for (int i = 0; i < NFILES; i++) {
    char file[128];
    snprintf(file, sizeof file, "%s/%s", folder, files[i].name);
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    CHECK_INT(fwrite(files[i].bytes, 1, files[i].n, f), files[i].n);
    CHECK_INT(fclose(f), 0);
  }
}

/* The variable is 7. */
static void open_folder(void) {
  saver = NULL;
  c = NULL;
  got = NULL;
  text = NULL;
  path = NULL;
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
  snprintf(newest, sizeof newest, "%s/ckpt-2.safetensors", folder);
  CHECK_OK(yk_graph_new(&g));
  v = yk_get_variable(g, "v", YK_F32, YK_SHAPE(3), YK_ZEROS, NULL);
  CHECK_OK(yk_session_open(g, NULL, &s));
  if (files[0].bytes == NULL) make_files();
  put_files();
  set(7);
}

static void open_saver(void) {
  open_folder();
  CHECK_OK(yk_saver_open(folder, NULL, &saver));
}

static void open_checkpoint(void) {
  open_folder();
  CHECK_OK(yk_checkpoint_open(newest, &c));
}

static void close_all(void) {
  CHECK_OK(yk_saver_close(saver));
  yk_checkpoint_close(c);
  yk_tensor_free(got);
  yk_free(text);
  yk_session_close(s);
  yk_graph_free(g);
  remove_files();
  CHECK_INT(rmdir(folder), 0);
}

static void newest_is(int64_t step) {
  yk_checkpoint *l = NULL;
  CHECK_OK(yk_checkpoint_latest(folder, &l));
  CHECK_INT(yk_checkpoint_step(l), step);
  yk_checkpoint_close(l);
}

static yk_code saver_open(void) { return yk_saver_open(folder, NULL, &saver); }
static void no_saver(void) { assert_null(saver); newest_is(2); }
static void saver_good(void) { assert_string_equal(yk_saver_latest(saver), newest); }

static yk_code save(void) { return yk_saver_save(saver, s, 3, 1, &(yk_note){ "key", "a text" }); }
static yk_code begin(void) {
  YK_TRY(yk_saver_begin(saver, s, 3, 1, &(yk_note){ "key", "a text" }));
  return yk_saver_wait(saver, NULL);
}
static void still_two(void) { newest_is(2); }
static void save_good(void) { newest_is(3); }

/* yk_saver_latest has no code of its own. */
static yk_code saver_latest(void) {
  yk_error_clear();
  path = yk_saver_latest(saver);
  return path != NULL ? YK_OK : YK_ENOMEM;
}
static void path_good(void) { assert_string_equal(path, newest); }

static yk_code checkpoint_open(void) { return yk_checkpoint_open(newest, &c); }
static yk_code latest(void) { return yk_checkpoint_latest(folder, &c); }
static void no_checkpoint(void) { assert_null(c); }
static void checkpoint_good(void) {
  CHECK_INT(yk_checkpoint_step(c), 2);
  assert_string_equal(yk_checkpoint_note(c, "key"), "a text");
}

static yk_code get(void) { return yk_checkpoint_get(c, "v", &got); }
static void none_got(void) { assert_null(got); }
static void get_good(void) { CHECK_NEAR(yk_tensor_at(got, 0), 2, 0); }

static yk_code compare(void) {
  yk_restore_options o = YK_RESTORE_OPTIONS_INIT;
  o.nrenames = 1;
  o.renames = &(yk_rename){ "v", "w" };
  return yk_checkpoint_compare(c, g, &o, &text);
}
static void no_text(void) { assert_null(text); }
static void compare_good(void) {
  assert_non_null(strstr(text, "missing v: "));
  assert_non_null(strstr(text, "unexpected v: "));
}

static yk_code restore(void) { return yk_checkpoint_restore(c, s, NULL); }
static void unchanged(void) { CHECK_NEAR(value(), 7, 0); }
static void restored(void) { CHECK_NEAR(value(), 2, 0); }

const fault_case fault_checkpoints[] = {
  { .names = "yk_saver_open", .open = open_folder, .call = saver_open, .intact = no_saver, .good = saver_good, .close = close_all,
    .least = 8 },
  { .names = "yk_saver_save", .open = open_saver, .call = save, .intact = still_two, .good = save_good, .close = close_all,
    .least = 8 },
  { .names = "yk_saver_begin", .open = open_saver, .call = begin, .intact = still_two, .good = save_good, .close = close_all,
    .survives = true, .least = 5 },
  { .names = "yk_saver_latest", .open = open_saver, .call = saver_latest, .good = path_good, .close = close_all, .least = 1 },
  { .names = "yk_checkpoint_open", .open = open_folder, .call = checkpoint_open, .intact = no_checkpoint, .good = checkpoint_good,
    .close = close_all, .least = 8 },
  { .names = "yk_checkpoint_latest", .open = open_folder, .call = latest, .intact = no_checkpoint, .good = checkpoint_good,
    .close = close_all, .least = 12 },
  { .names = "yk_checkpoint_get", .open = open_checkpoint, .call = get, .intact = none_got, .good = get_good, .close = close_all,
    .least = 1 },
  { .names = "yk_checkpoint_compare", .open = open_checkpoint, .call = compare, .intact = no_text, .good = compare_good,
    .close = close_all, .least = 6 },
  { .names = "yk_checkpoint_restore", .open = open_checkpoint, .call = restore, .intact = unchanged, .good = restored,
    .close = close_all, .least = 6 },
  { 0 },
};
