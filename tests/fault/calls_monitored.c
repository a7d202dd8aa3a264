/*
 * calls_monitored.c - monitored sessions and their hooks while memory runs out.
 *
 * The session is opened over a graph that is complete, since a builder that fails leaves its error in the graph.
 */
#include "fault.h"

#include <unistd.h>

static yk_graph *g;
static yk_value init, train, loss;
static yk_monitored *m;
static yk_hook hook;
static yk_saver *saver;
static yk_summary_writer *writer;
static char folder[64];

static void graph(void) {
  CHECK_OK(yk_graph_new(&g));
  yk_variable *w = yk_get_variable(g, "w", YK_F32, YK_SHAPE(3), YK_ONES, NULL), *step = yk_global_step(g);
  loss = yk_l2_loss(g, yk_read(w));
  train = yk_minimize(g, &YK_SGD(0.1), loss, step);
  init = yk_global_variables_initializer(g);
  CHECK_OK(yk_graph_status(g));
  m = NULL;
  hook = (yk_hook){ 0 };
}

static yk_code open_monitored(void) {
  yk_monitored_options o = YK_MONITORED_OPTIONS_INIT;
  o.init = init;
  return yk_monitored_open(g, &o, &m);
}
static void opened(void) { graph(); CHECK_OK(open_monitored()); }
static void not_opened(void) { assert_null(m); }
static yk_code step(void) {
  int64_t at;
  return yk_monitored_step(m, &at);
}
static yk_code run_and_open(void) {                    /* a failed run ends a session: another one is made */
  YK_TRY(open_monitored());
  yk_code rc = yk_monitored_run(m, 0, NULL, 1, &loss, 1, &train, NULL);
  if (rc != YK_OK) {
    char text[256];
    snprintf(text, sizeof text, "%s", yk_error_message());
    CHECK_OK(yk_monitored_close(m));
    m = NULL;
  }
  return rc;
}
static void close_monitored(void) {
  CHECK_OK(yk_monitored_close(m));
  yk_hook_free(&hook);
  yk_graph_free(g);
  m = NULL;
  g = NULL;
}

static void files(void) {
  graph();
  snprintf(folder, sizeof folder, "/tmp/yoke-fault-XXXXXX");
  assert_non_null(mkdtemp(folder));
  CHECK_OK(yk_saver_open(folder, NULL, &saver));
  CHECK_OK(yk_summary_writer_open(folder, NULL, &writer));
}
static void close_files(void) {
  char path[256];
  snprintf(path, sizeof path, "%s", yk_summary_path(writer));
  CHECK_OK(yk_saver_close(saver));
  CHECK_OK(yk_summary_close(writer));
  CHECK_INT(unlink(path), 0);
  snprintf(path, sizeof path, "rm -rf %s", folder);
  CHECK_INT(system(path), 0);
  close_monitored();
}

static void no_hook(void) { assert_null(hook.self); }
static const yk_hook_timer often = { .steps = 2 };
static yk_code feeds(void *arg, yk_hook_request *r) { (void)arg; (void)r; return YK_OK; }
static yk_code stop_at(void) { return yk_hook_stop_at_step(3, 0, &hook); }
static yk_code nan_hook(void) { return yk_hook_nan(loss, false, &hook); }
static yk_code nan_examine(void) { return yk_hook_nan_examine(loss, false, NULL, NULL, &hook); }
static yk_monitored_team *team;
static void no_team(void) { team = NULL; }
static yk_code new_team(void) { return yk_monitored_team_new(3, &team); }
static void not_made(void) { assert_null(team); }
static void free_team(void) { yk_monitored_team_free(team); }
static yk_code logging(void) { return yk_hook_logging(1, &loss, (const char *const[]){ "loss" }, often, true, NULL, NULL, &hook); }
static yk_code counter(void) { return yk_hook_step_counter(often, writer, NULL, NULL, &hook); }
static yk_code checkpoint(void) { return yk_hook_checkpoint(saver, often, NULL, NULL, &hook); }
static yk_code summary(void) { return yk_hook_summary(writer, 1, &loss, NULL, often, &hook); }
static yk_code profiler(void) { return yk_hook_profiler("/tmp", often, &hook); }
static yk_code final_op(void) { return yk_hook_final_op(train, &hook); }
static yk_code feed(void) { return yk_hook_feed(feeds, NULL, &hook); }
static yk_code wait_for(void) { return yk_hook_wait_for_step(1, &hook); }

#define HOOK(function, call_) { .names = function, .open = graph, .call = call_, .intact = no_hook, .close = close_monitored, .least = 1 }
const fault_case fault_monitored[] = {
  { .names = "yk_monitored_open", .open = graph, .call = open_monitored, .intact = not_opened, .close = close_monitored,
    .survives = true, .stride = 7, .least = 20 },
  { .names = "yk_monitored_run", .open = graph, .call = run_and_open, .intact = not_opened, .close = close_monitored,
    .survives = true, .stride = 13, .least = 20 },       /* idle plans give way */
  { .names = "yk_monitored_team_new", .open = no_team, .call = new_team, .intact = not_made, .close = free_team, .least = 1 },
  { .names = "yk_monitored_step", .open = opened, .call = step, .close = close_monitored, .least = 1 },
  HOOK("yk_hook_stop_at_step", stop_at), HOOK("yk_hook_nan", nan_hook), HOOK("yk_hook_nan_examine", nan_examine), HOOK("yk_hook_logging", logging),
  HOOK("yk_hook_profiler", profiler),
  HOOK("yk_hook_final_op", final_op), HOOK("yk_hook_feed", feed), HOOK("yk_hook_wait_for_step", wait_for),
  { .names = "yk_hook_step_counter", .open = files, .call = counter, .intact = no_hook, .close = close_files, .least = 1 },
  { .names = "yk_hook_checkpoint", .open = files, .call = checkpoint, .intact = no_hook, .close = close_files, .least = 1 },
  { .names = "yk_hook_summary", .open = files, .call = summary, .intact = no_hook, .close = close_files, .least = 1 },
  { 0 },
};
