/*
 * yoke_branches.c - what two devices of one core are worth to a network of two branches.
 *
 *   yoke_branches [BATCH [SECONDS]]
 *
 * The step of lstm_net.h, three ways in turn: both inputs on one device of one core; each on a device of one core of its own; and, to
 * know what two cores of this machine can do at all, two programs at the same time that have nothing to do with each other, a core
 * and an input each ("apart"). Cores of a virtual machine slow each other down, so nobody could do better than those.
 */
#include <math.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"
#include "lstm_net.h"

enum { WARM_UP = 5, FEWEST = 3, ONE = 0, TWO, APART, WAYS };
/* What both programs see. Between turns the other one sleeps: even one that only looks now and then costs the others' turns. */
typedef struct turns {
  sem_t called;
  atomic_int awake, started, done, failed, over;    /* the first three: 1 once that is so in this turn */
} turns;

static void until(atomic_int *flag, atomic_int *failed) {
  while (!atomic_load(flag) && !atomic_load(failed)) continue;
}

/* The other program: its input on the last core it may use, a step a turn. */
static int companion(int64_t batch, turns *t) {
  cpu_set_t cores;
  double loss;
  size_t last = CPU_SETSIZE - 1;
  lstm_net net = { .kind = "lstm", .batch = batch, .inputs = 1, .cores = 1, .devices = 1 };
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    while (last > 0 && !CPU_ISSET(last, &cores)) last--;
    CPU_ZERO(&cores);
    CPU_SET(last, &cores);
    (void)sched_setaffinity(0, sizeof cores, &cores);        /* not possible: the kernel spreads the two */
  }
  yk_code rc = lstm_net_open(&net);
  while (rc == YK_OK && !atomic_load(&t->over)) {
    if (sem_wait(&t->called) != 0) continue;
    atomic_store(&t->awake, 1);
    until(&t->started, &t->over);
    if (!atomic_load(&t->over)) rc = lstm_net_step(&net, &loss);
    atomic_store(&t->done, 1);
  }
  if (rc != YK_OK) atomic_store(&t->failed, 1);
  lstm_net_close(&net);
  return rc == YK_OK ? 0 : 1;
}

static void meet(turns *t) {
  atomic_store(&t->awake, 0);
  atomic_store(&t->started, 0);
  atomic_store(&t->done, 0);
  sem_post(&t->called);
  until(&t->awake, &t->failed);
}

static yk_code apart(lstm_net *own, turns *t, double *loss) {
  atomic_store(&t->started, 1);
  YK_TRY(lstm_net_step(own, loss));
  until(&t->done, &t->failed);
  return atomic_load(&t->failed) ? YK_EINTERNAL : YK_OK;
}

static yk_code race(lstm_net net[WAYS], turns *t, double seconds, bench_times times[WAYS], bench_times gain[WAYS]) {
  double end = 0, loss;
  for (int i = 0; i < WARM_UP + FEWEST || bench_now_ms() < end; i++) {
    double took[WAYS];
    for (int k = 0; k < WAYS; k++) {
      if (k == APART) meet(t);
      const double begin = bench_now_ms();
      YK_TRY(k == APART ? apart(&net[k], t, &loss) : lstm_net_step(&net[k], &loss));
      took[k] = bench_now_ms() - begin;
    }
    if (i < WARM_UP) end = bench_now_ms() + seconds * 1e3;
    for (int k = 0; k < WAYS && i >= WARM_UP; k++)
      if (bench_times_add(&times[k], took[k]) != 0 || bench_times_add(&gain[k], took[ONE] / took[k]) != 0) return YK_ENOMEM;
  }
  return YK_OK;
}

static yk_code measure(int64_t batch, double seconds, turns *t) {
  lstm_net net[WAYS] = { [ONE] = { .kind = "lstm", .batch = batch, .inputs = 2, .cores = 1, .devices = 1 },
                         [TWO] = { .kind = "lstm", .batch = batch, .inputs = 2, .cores = 2, .devices = 2 },
                         [APART] = { .kind = "lstm", .batch = batch, .inputs = 1, .cores = 1, .devices = 1 } };
  bench_times times[WAYS] = { { 0 } }, gain[WAYS] = { { 0 } };
  yk_code rc = YK_OK;
  for (int k = 0; k < WAYS && rc == YK_OK; k++) rc = lstm_net_open(&net[k]);
  if (rc == YK_OK) rc = race(net, t, seconds, times, gain);
  if (rc == YK_OK) {
    const bench_stats one = bench_times_stats(&times[ONE]), two = bench_times_stats(&times[TWO]), both = bench_times_stats(&times[APART]);
    printf("{\"contender\":\"yoke\",\"check\":\"branches\",\"batch\":%lld,\"steps\":%zu,\"one_ms\":%.4f,\"two_ms\":%.4f,\"apart_ms\":%.4f,",
           (long long)batch, times[ONE].n, one.median, two.median, both.median);
    printf("\"one_best_ms\":%.4f,\"two_best_ms\":%.4f,\"apart_best_ms\":%.4f,", one.min, two.min, both.min);
    printf("\"speedup\":%.4f,\"apart_speedup\":%.4f}\n", bench_times_stats(&gain[TWO]).median, bench_times_stats(&gain[APART]).median);
  } else {
    fprintf(stderr, "yoke_branches: %s\n", yk_error_message()[0] != '\0' ? yk_error_message() : "the program beside this one failed");
  }
  for (int k = 0; k < WAYS; k++) lstm_net_close(&net[k]), bench_times_free(&times[k]), bench_times_free(&gain[k]);
  return rc;
}

int main(int argc, char **argv) {
  const double batch = bench_number(argc > 1 ? argv[1] : NULL, 64), seconds = bench_number(argc > 2 ? argv[2] : NULL, 10);
  if (argc > 3 || isnan(batch) || batch > 1e5 || isnan(seconds)) {
    fprintf(stderr, "usage: yoke_branches [BATCH [SECONDS]]\n");
    return 2;
  }
  turns *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t other = t == MAP_FAILED || sem_init(&t->called, 1, 0) != 0 ? -1 : fork();        /* before the first session: its threads would not come along */
  if (other < 0) {
    perror("yoke_branches");
    return 1;
  }
  if (other == 0) _exit(companion((int64_t)batch, t));
  const yk_code rc = measure((int64_t)batch, seconds, t);
  atomic_store(&t->over, 1);
  sem_post(&t->called);
  (void)waitpid(other, NULL, 0);
  return rc == YK_OK ? 0 : 1;
}
