/*
 * calls_data.c - data files, their examples and records while memory runs out.
 *
 * The files are golden ones (tests/golden/data), and a few that are made here. Zlib and libpng take their memory from our allocator,
 * so theirs fails too.
 */
#include "fault.h"

#include <sys/stat.h>
#include <unistd.h>

static yk_dataset *data;
static yk_record_writer *writer;
static yk_record_reader *reader;
static char folder[64];
static yk_tensor *x, *y;

static const char *golden(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/golden/data/%s", getenv("YOKE_TEST_DATA"), name);
  return path;
}

static void nothing_yet(void) { data = NULL; writer = NULL; reader = NULL; }
static void no_data(void) { assert_null(data); }
static void data_close(void) { yk_dataset_free(data); data = NULL; }

static yk_code open_it(const char *name, yk_split split) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  o.skip = 2;
  return yk_dataset_open(golden(name), &o, split, &data);
}
static yk_code open_idx(void) { return open_it("mnist", YK_TRAIN); }
static yk_code open_gzip(void) { return open_it("mnist", YK_TEST); }
static yk_code open_npy(void) { return open_it("npy_folder", YK_TRAIN); }
static yk_code open_fortran(void) { return open_it("npy/fortran.npy", YK_TRAIN); }
static yk_code open_stored(void) { return open_it("npz/stored.npz", YK_TRAIN); }
static yk_code open_deflated(void) { return open_it("npz/deflated.npz", YK_TEST); }
static yk_code open_numeric(void) { return open_it("tfrecord/numeric.tfrecord", YK_TRAIN); }
static yk_code open_zipped(void) { return open_it("tfrecord/numeric_gzip.tfrecord", YK_TRAIN); }
static yk_code open_pictures(void) { return open_it("tfrecord/pictures.tfrecord", YK_TRAIN); }

static yk_code open_spec(void) {
  static const float zero[2];
  yk_feature f[2] = { { .name = "gone", .component = "a", .dtype = YK_F32, .shape = { 1, { 2 } }, .missing = zero },
                      { .name = "label", .dtype = YK_I32 } };
  yk_dataset_options o = { .size = sizeof o, .nfeatures = 2, .features = f };
  return yk_dataset_open(golden("tfrecord/numeric.tfrecord"), &o, YK_TRAIN, &data);
}

/* ---- files made here ---- */

static const char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void put(const char *name, const void *bytes, size_t n) {
  FILE *f = fopen(in_folder(name), "wb");
  assert_non_null(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  CHECK_INT(fclose(f), 0);
}

static void folder_open(void) {
  nothing_yet();
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
}

static void folder_close(void) {
  CHECK_INT(rmdir(folder), 0);                       /* nothing was left behind */
}

static void csv_open(void) {
  static const char train[] = "a,b,kind\n1,2,dog\n3,x,ant\n\"5\",6,cat\n", test[] = "a,b,kind\n1,2,emu\n";
  folder_open();
  put("train.csv", train, sizeof train - 1);
  put("test.csv", test, sizeof test - 1);
}
static yk_code csv(void) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  o.skip = 1;
  return yk_dataset_open(folder, &o, YK_TRAIN, &data);
}
static void csv_close(void) {
  data_close();
  CHECK_INT(unlink(in_folder("train.csv")), 0);
  CHECK_INT(unlink(in_folder("test.csv")), 0);
  folder_close();
}

static void copy(const char *from, const char *to) {
  static uint8_t bytes[1 << 16];
  FILE *f = fopen(golden(from), "rb");
  assert_non_null(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  put(to, bytes, n);
}

static void pictures_open(void) {
  folder_open();
  CHECK_INT(mkdir(in_folder("a"), 0777), 0);
  CHECK_INT(mkdir(in_folder("b"), 0777), 0);
  copy("pictures/rgba.png", "a/1.png");
  copy("pictures/palette.png", "b/1.png");
}
static yk_code pictures(void) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  o.skip = 1;
  return yk_dataset_open(folder, &o, YK_TRAIN, &data);
}
static void pictures_close(void) {
  data_close();
  CHECK_INT(unlink(in_folder("a/1.png")), 0);
  CHECK_INT(unlink(in_folder("b/1.png")), 0);
  CHECK_INT(rmdir(in_folder("a")), 0);
  CHECK_INT(rmdir(in_folder("b")), 0);
  folder_close();
}

static void read_open(void) {
  yk_dataset_options o = YK_DATASET_OPTIONS_INIT;
  pictures_open();
  o.height = 4;
  CHECK_OK(yk_dataset_open(folder, &o, YK_TRAIN, &data));
}
static yk_code read_one(void) {
  uint8_t image[48];
  int32_t label;
  return yk_dataset_read(data, 1, (void *const[]){ image, &label });
}

/* ---- tensors ---- */

static void tensors_open(void) {
  nothing_yet();
  CHECK_OK(yk_tensor_new(YK_F32, YK_SHAPE(3, 2), &x));
  CHECK_OK(yk_tensor_new(YK_I32, YK_SHAPE(3), &y));
}
static yk_code tensors(void) { return yk_dataset_tensors(2, (const char *const[]){ "x", "label" }, (yk_tensor *const[]){ x, y },
                                                         &data); }
static void tensors_close(void) {
  data_close();
  yk_tensor_free(x);
  yk_tensor_free(y);
}

/* ---- records ---- */

static yk_code writer_open(void) { return yk_record_writer_open(in_folder("r"), &writer); }
static void no_writer(void) { assert_null(writer); }
static void writer_close(void) {
  yk_record_writer_drop(writer);
  folder_close();
}
static void write_open(void) {
  folder_open();
  CHECK_OK(writer_open());
}
static yk_code write_example(void) {
  static const float v[40];
  yk_feature f[2] = { { .name = "a", .dtype = YK_F32, .shape = { 1, { 40 } } },
                     { .name = "b", .dtype = YK_U8, .shape = { 1, { 100 } } } };
  return yk_record_write_example(writer, 2, f, (const void *const[]){ v, v });
}
static void write_good(void) {
  CHECK_OK(yk_record_writer_close(writer));
  writer = NULL;
  CHECK_INT(unlink(in_folder("r")), 0);
}

static yk_code reader_open(void) { return yk_record_reader_open(golden("tfrecord/numeric_zlib.tfrecord"), &reader); }
static void no_reader(void) { assert_null(reader); }
static void reader_close(void) { yk_record_reader_close(reader); }
static void reading_open(void) {
  nothing_yet();
  CHECK_OK(reader_open());
}
static yk_code read_record(void) {
  const void *bytes = NULL;
  size_t n = 0;
  yk_code rc = yk_record_read(reader, &bytes, &n);
  CHECK_INT(bytes != NULL, rc == YK_OK);
  return rc;
}

#define OPENS(how, most)                                                                                                           \
  { .names = "yk_dataset_open", .open = nothing_yet, .call = how, .intact = no_data, .close = data_close, .least = most }

const fault_case fault_data[] = {
  OPENS(open_idx, 12), OPENS(open_gzip, 16), OPENS(open_npy, 12), OPENS(open_fortran, 8), OPENS(open_stored,
      14), OPENS(open_deflated, 18),
  OPENS(open_numeric, 16), OPENS(open_zipped, 18), OPENS(open_pictures, 14), OPENS(open_spec, 12),
  { .names = "yk_dataset_open", .open = csv_open, .call = csv, .intact = no_data, .close = csv_close, .least = 30 },
  { .names = "yk_dataset_open", .open = pictures_open, .call = pictures, .intact = no_data, .close = pictures_close, .least = 20 },
  { .names = "yk_dataset_read", .open = read_open, .call = read_one, .close = pictures_close, .least = 8 },
  { .names = "yk_dataset_tensors", .open = tensors_open, .call = tensors, .intact = no_data, .close = tensors_close, .least = 5 },
  { .names = "yk_record_writer_open", .open = folder_open, .call = writer_open, .intact = no_writer, .close = writer_close, .least = 3 },
  { .names = "yk_record_write_example", .open = write_open, .call = write_example, .good = write_good, .close = writer_close, .least = 3 },
  { .names = "yk_record_reader_open", .open = nothing_yet, .call = reader_open, .intact = no_reader, .close = reader_close, .least = 5 },
  { .names = "yk_record_read", .open = reading_open, .call = read_record, .close = reader_close, .least = 1 },
  { 0 },
};
