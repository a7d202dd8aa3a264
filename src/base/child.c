/*
 * child.c - fork, catch what the child prints, wait for it with a limit.
 *
 * The pipe from the child's output serves twice: its end of file tells that the child
 * is gone, or nearly so, without a busy loop. One byte behind the answer tells a return from an exit.
 * Linux ends the child with its parent.
 */
#include "base/child.h"
#include "base/error.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { KILL_MS = 1000 };

/* Everything of the child's life; does not return. */
static void live(void (*fn)(void *, void *), void *arg, const yk_child *c, int out) {
  struct rlimit none = { 0, 0 };
  int null = open("/dev/null", O_RDONLY);
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  setpgid(0, 0);
  setrlimit(RLIMIT_CORE, &none);
  if (null >= 0) dup2(null, 0);
  dup2(out, 1);
  dup2(out, 2);
  fn(arg, c->answer);
  ((char *)c->answer)[c->bytes] = 1;
  _exit(0);
}

yk_code yk__child_start(yk_child *c, void (*fn)(void *, void *), void *arg, size_t bytes, int timeout_ms) {
  yk_child new = { .bytes = bytes, .deadline_ns = yk__now_ns() + (uint64_t)timeout_ms * 1000000u };
  int ends[2];
  new.answer = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (new.answer == MAP_FAILED) return YK_FAIL(ENOMEM, "no %zu bytes to share with a child process: %s", bytes, strerror(errno));
  if (pipe(ends) != 0) {
    munmap(new.answer, bytes + 1);
    return YK_FAIL(EIO, "no pipe for a child process: %s", strerror(errno));
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  new.pid = fork();
  if (new.pid == 0) {
    close(ends[0]);
    live(fn, arg, &new, ends[1]);
  }
  close(ends[1]);
  if (new.pid < 0) {
    close(ends[0]);
    munmap(new.answer, bytes + 1);
    return YK_FAIL(EIO, "no child process: %s", strerror(errno));
  }
  new.pipe = ends[0];
  *c = new;
  return YK_OK;
}

/* Keep the end of what was said, in one line. */
static void hear(yk_child *c, const char *text, size_t n) {
  size_t have = strlen(c->said);
  for (size_t i = 0; i < n; i++) {
    unsigned char ch = (unsigned char)text[i];
    if (ch < 0x20 || ch == 0x7F) ch = ' ';
    if (ch == ' ' && (have == 0 || c->said[have - 1] == ' ')) continue;
    if (have + 1 == sizeof c->said) memmove(c->said, c->said + sizeof c->said / 2, have -= sizeof c->said / 2);
    c->said[have++] = (char)ch;
    c->said[have] = '\0';
  }
}

static int64_t left_ms(uint64_t deadline_ns) {
  uint64_t now = yk__now_ns();
  return now < deadline_ns ? (int64_t)((deadline_ns - now + 999999u) / 1000000u) : 0;
}

/* Read until the last writer is gone or time is up. */
static void listen_to(yk_child *c) {
  char buffer[512];
  for (;;) {
    struct pollfd p = { .fd = c->pipe, .events = POLLIN };
    int64_t ms = left_ms(c->deadline_ns);
    int ready = poll(&p, 1, ms > 60000 ? 60000 : (int)ms);
    ssize_t n;
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || (ready == 0 && left_ms(c->deadline_ns) == 0)) return;
    if (ready == 0) continue;
    n = read(c->pipe, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR)) return;
    if (n > 0) hear(c, buffer, (size_t)n);
  }
}

/* 1 once the child has ended, with its status; looks again until the deadline. */
static int ended(pid_t pid, uint64_t deadline_ns, int *status) {
  for (;;) {
    struct timespec nap = { 0, 1000000 };
    pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid) return 1;
    if (got < 0 && errno != EINTR) return *status = 0, 1;      /* somebody else has waited for it */
    if (left_ms(deadline_ns) == 0) return 0;
    nanosleep(&nap, NULL);
  }
}

void yk__child_wait(yk_child *c) {
  int status = 0;
  listen_to(c);
  close(c->pipe);
  if (ended(c->pid, c->deadline_ns, &status)) {
    c->number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    c->end = ((char *)c->answer)[c->bytes] ? YK__CHILD_RETURNED : WIFSIGNALED(status) ? YK__CHILD_SIGNALLED : YK__CHILD_EXITED;
  } else {
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
    c->end = ended(c->pid, yk__now_ns() + KILL_MS * 1000000ull, &status) ? YK__CHILD_LATE : YK__CHILD_STUCK;
  }
  for (size_t n = strlen(c->said); n > 0 && c->said[n - 1] == ' ';) c->said[--n] = '\0';
}

void yk__child_free(yk_child *c) {
  if (c->answer) munmap(c->answer, c->bytes + 1);
  *c = (yk_child){ 0 };
}
