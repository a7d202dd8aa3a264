/*
 * fault.h - one public function, called while memory runs out at every place where it can.
 *
 * A case opens its objects, makes its call and looks at them again. The loop in fault.c makes the n-th allocation fail, for
 * every n until none is left: once alone, as when another program was greedy for a moment, and once with all after it, as when
 * memory is gone for good. Then the same call must work on the same objects.
 */
#ifndef YK_TEST_FAULT_FAULT_H
#define YK_TEST_FAULT_FAULT_H

#include <stdbool.h>
#include "base/alloc.h"
#include "support/check.h"
#include <yoke/yoke.h>

typedef struct fault_case {
  const char *names;              /* the public functions that this case is about, with blanks between them */
  void (*open)(void);             /* NULL: nothing to open */
  yk_code (*call)(void);          /* what may fail */
  void (*intact)(void);           /* after each failure, memory being back: outputs untouched? NULL: nothing to look at */
  void (*good)(void);             /* after the call that worked */
  void (*close)(void);
  bool survives;                  /* documented to do without the memory: may return YK_OK although it was refused some */
  uint64_t stride;                /* each try is dear: after the first hundred only every so many; 0 = every one */
  uint64_t least;                 /* allocations that the call makes at least: a case must not prove nothing */
} fault_case;

void fault_run(const fault_case *c);

/* Tables of cases, each ending with {0}: calls_*.c. */
extern const fault_case fault_values[], fault_data[], fault_sessions[], fault_steps[], fault_training[], fault_checkpoints[],
                        fault_monitored[], fault_events[], fault_sync[], fault_keras[], fault_fit[], fault_detect[];

/* Builders (builders.c): the error is kept in the graph. `name` as in the headers. */
typedef struct fault_inputs {
  yk_graph *g;
  yk_value x, image, filter, a, b, bias, cond, index, labels,
    step;   /* f32 [4,6] | [2,8,8,4] | [3,3,4,8] | [4,6] | [6,5] | [6]; bool [4,6]; i32 [2] | [4]; i64 */
  yk_variable *v, *w, *slot, *counter;                                /* f32 [6,5] three times; i64 */
  yk_value loss;                                                      /* depends on v and w */
  const yk_source *source;
} fault_inputs;
typedef struct fault_builder { const char *name; yk_value (*build)(const fault_inputs *in); } fault_builder;
extern const fault_builder fault_builders[];       /* ends with {0} */
void fault_build(const fault_builder *b);

/* Functions that return no code: silent.c. Calls each with sensible arguments and fails if one takes memory. */
extern const char *const fault_silent[];           /* their names; ends with NULL */
extern const char *const fault_freeing[];          /* those that give back, which every case above ends with; ends with NULL */
void fault_call_silent(void);

#endif
