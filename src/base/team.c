/*
 * team.c - the team of a thread, and loops split over it.
 *
 * The team is the thread's OpenMP team, because oneDNN uses that one: two pools
 * on the same cores would fight. Work is cut into as many pieces as the team
 * has members, so the pieces, and with them the results, depend on nothing else.
 */
#include "base/thread.h"

#include <omp.h>
#include <pthread.h>

static _Thread_local int team;           /* 0 = never set */

void yk__team_set(int n) {
  team = n < 1 ? 1 : n;
  omp_set_num_threads(team);
}

int yk__team(void) {
  if (team == 0) yk__team_set(yk__ncores());
  return team;
}

void yk__team_rest(void) {
  (void)omp_pause_resource(omp_pause_soft, omp_get_initial_device());
}

typedef struct piece {
  int64_t begin, end;
  void (*fn)(int64_t begin, int64_t end, void *arg);
  void *arg;
} piece;

/* Piece k of p: the first n % p pieces are one longer. */
static piece cut(int64_t n, int64_t p, int64_t k, void (*fn)(int64_t, int64_t, void *), void *arg) {
  int64_t size = n / p, longer = n % p;
  int64_t begin = k * size + (k < longer ? k : longer);
  return (piece){ begin, begin + size + (k < longer), fn, arg };
}

#if defined(__SANITIZE_THREAD__)

/* The thread sanitizer does not understand libgomp's barriers; plain threads show it the same races. */
static void *run_piece(void *arg) {
  piece *p = arg;
  p->fn(p->begin, p->end, p->arg);
  return NULL;
}

static void run_pieces(int64_t n, int pieces, void (*fn)(int64_t, int64_t, void *), void *arg) {
  enum { MOST = 64 };
  piece part[MOST];
  pthread_t id[MOST];
  int started[MOST];
  if (pieces > MOST) pieces = MOST;
  for (int k = 1; k < pieces; k++) {
    part[k] = cut(n, pieces, k, fn, arg);
    started[k] = pthread_create(&id[k], NULL, run_piece, &part[k]) == 0;
    if (!started[k]) run_piece(&part[k]);
  }
  part[0] = cut(n, pieces, 0, fn, arg);
  run_piece(&part[0]);
  for (int k = 1; k < pieces; k++) {
    if (started[k]) pthread_join(id[k], NULL);
  }
}

#else

static void run_pieces(int64_t n, int pieces, void (*fn)(int64_t, int64_t, void *), void *arg) {
  /* A loop over pieces, not one piece a thread: the runtime may give fewer threads than asked for. */
#pragma omp parallel for schedule(static, 1) num_threads(pieces)
  for (int k = 0; k < pieces; k++) {
    piece p = cut(n, pieces, k, fn, arg);
    p.fn(p.begin, p.end, p.arg);
  }
}

#endif

void yk__parallel_for(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *arg), void *arg) {
  int64_t most;
  int pieces = yk__team();
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  most = n / grain;
  if (most < pieces) pieces = (int)most;
  if (pieces <= 1) {
    fn(0, n, arg);
    return;
  }
  run_pieces(n, pieces, fn, arg);
}
