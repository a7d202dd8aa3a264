/*
 * loop_nn.h - frame of the kernels that are written once for f32 and once for f64, with halves converted around them.
 *
 * A kernel's state starts with a yk_loop_body. Preparing: yk__loop_body() makes the state, the kernel fills it in, and
 * yk__loop_workspace() adds room for converted halves. The body sees f32 where an argument is a half, its own workspace first.
 */
#ifndef YK_CPU_LOOP_NN_H
#define YK_CPU_LOOP_NN_H

#include "loop_isa.h"

enum { LOOP_MAX_ARGS = 16 };

typedef yk_code (*yk_loop_run)(const yk_kernel *k, void *const *arg, void *workspace);
/* Bodies by position in the subject's own list, then f32 and f64. */
enum { LOOP_MAX_BODIES = 12 };
typedef struct yk_body_table { yk_loop_run body[LOOP_MAX_BODIES][2]; } yk_body_table;
typedef enum yk_loop_subject { LOOP_SOFTMAX, LOOP_NORM, LOOP_POOL, LOOP_CONV, LOOP_MATMUL, LOOP_RNN, LOOP_PICTURE } yk_loop_subject;
const yk_body_table *yk__loop_bodies(yk_loop_subject subject);       /* of this machine */

typedef struct yk_loop_body { yk_loop_run body; uint64_t at[LOOP_MAX_ARGS]; } yk_loop_body;

/* Plain layouts, zeroed state of state_bytes into *(state **)out, run and impl set. */
yk_code yk__loop_body(yk_cpu_prepare *p, size_t state_bytes, yk_loop_run body, const char *impl, void *out) YK_CHECKED;
void yk__loop_workspace(yk_cpu_prepare *p, uint64_t body_bytes);

/* Type of the values as the body sees them. */
static inline int yk__loop_is_f64(const yk_kernel *k) { return k->in[0].dtype == YK_F64; }

#endif
