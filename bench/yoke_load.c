/*
 * yoke_load.c - how long a model's file takes to load, beside the time to read its bytes.
 *
 *   yoke_load [MB [SECONDS [ENDING]]]      ENDING: h5 or keras
 *
 * The file has four dense layers of as many bytes, is written to $TMPDIR or /tmp and is in the page cache. Reading is into memory that was just
 * allocated, as a loader's is. Both take turns; medians are compared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yoke/yoke.h>
#include "common.h"

enum { LAYERS = 4, WARM_UP = 2, MOST = 200, PIECE = 1 << 18 };

static int die(const char *what) {
  fprintf(stderr, "yoke_load: %s: %s\n", what, yk_error_message());
  return 1;
}

static yk_code write_model(const char *path, double megabytes) {
  yk_keras *k;
  int64_t units = (int64_t)sqrt(megabytes * 1e6 / 4 / LAYERS);
  YK_TRY(yk_keras_new(1, &k));
  yk_sym in = yk_input(k, &(yk_input_config){ .shape = YK_SHAPE(units) }), x = in;
  for (int i = 0; i < LAYERS; i++)                         /* random values would only take longer */
    x = yk_apply(yk_layer_dense(k, &(yk_dense_config){ .units = units,
                                                       .no_bias = true,
                                                       .kernel_initializer = { YK_INITIALIZER_CONSTANT, .a = 0.5 } }),
                 x);
  yk_code rc = yk_network_save(yk_network_new(k, NULL, 1, &in, 1, &x), path);
  yk_keras_free(k);
  return rc;
}

static yk_code load(const char *path, double *ms) {
  yk_keras *k;
  yk_network *n;
  double begin = bench_now_ms();
  YK_TRY(yk_keras_new(1, &k));
  yk_code rc = yk_network_load(k, path, &n);
  *ms = bench_now_ms() - begin;
  yk_keras_free(k);
  return rc;
}

/* Its bytes in order; the time, or below 0. */
static double read_all(const char *path, size_t *size) {
  double begin = bench_now_ms();
  FILE *f = fopen(path, "rb");
  if (f == NULL || fseek(f, 0, SEEK_END) != 0) return -1;
  *size = (size_t)ftell(f);
  rewind(f);
  char *bytes = aligned_alloc(64, (*size + 63) / 64 * 64);  /* as aligned as a tensor: copies into it are faster */
  setvbuf(f, NULL, _IONBF, 0);                             /* straight into the memory */
  size_t got = 0;
  while (bytes != NULL && got < *size) {
    size_t n = *size - got < PIECE ? *size - got : PIECE;
    if (fread(bytes + got, 1, n, f) != n) break;
    got += n;
  }
  fclose(f);
  double ms = bench_now_ms() - begin;
  free(bytes);
  return got == *size ? ms : -1;
}

static int race(const char *path, double ms) {
  bench_times a = { 0 }, b = { 0 }, ratio = { 0 };
  double begun = bench_now_ms();
  size_t size = 0;
  for (int i = 0; i < MOST && (i < WARM_UP + 3 || bench_now_ms() - begun < ms); i++) {
    double loading, reading = read_all(path, &size);
    if (reading < 0) return die("the file cannot be read");
    if (load(path, &loading) != YK_OK) return die("load");
    if (i < WARM_UP) continue;
    if (bench_times_add(&a, reading) + bench_times_add(&b, loading) + bench_times_add(&ratio, loading / reading) != 0)
      return die("memory");
  }
  printf("{\"contender\":\"yoke\",\"check\":\"load\",\"bytes\":%zu,\"read_ms\":%.4f,\"load_ms\":%.4f,\"ratio\":%.4f}\n", size,
         bench_times_stats(&a).median, bench_times_stats(&b).median, bench_times_stats(&ratio).median);
  bench_times_free(&a);
  bench_times_free(&b);
  bench_times_free(&ratio);
  return 0;
}

int main(int argc, char **argv) {
  const double megabytes = bench_number(argc > 1 ? argv[1] : NULL, 100), seconds = bench_number(argc > 2 ? argv[2] : NULL, 5);
  const char *folder = getenv("TMPDIR"), *ending = argc > 3 ? argv[3] : "h5";
  char path[600];
  if (argc > 4 || isnan(megabytes) || isnan(seconds)) {
    fprintf(stderr, "usage: yoke_load [MB [SECONDS [h5|keras]]]\n");
    return 2;
  }
  snprintf(path, sizeof path, "%.500s/yoke_load-%ld.%.20s", folder != NULL ? folder : "/tmp", (long)getpid(), ending);
  int status = write_model(path, megabytes) == YK_OK ? race(path, seconds * 1e3) : die("the model cannot be written");
  unlink(path);
  return status;
}
