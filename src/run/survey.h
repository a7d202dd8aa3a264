/*
 * survey.h - what one compiled step takes of each device: bytes, copies, operations, arithmetic.
 *
 * Everything here is read off the plan and the placement of the graph; nothing runs and nothing is allocated on a device, so it
 * is as true of devices that only a file tells of.
 */
#ifndef YK_RUN_SURVEY_H
#define YK_RUN_SURVEY_H

#include "run/run.h"

/* Copies from one device to another; YK__NO_DEVICE: the caller's memory. */
typedef struct yk_route { uint16_t from, to; uint32_t copies; uint64_t bytes; } yk_route;
/* One piece of memory. The name is the variable's, or that of the node that first writes it. */
typedef struct yk_holding { const char *name; const yk_desc *desc; uint64_t bytes; uint16_t dev; bool variable; } yk_holding;

typedef enum yk_phase { YK__FORWARD, YK__BACKWARD, YK__UPDATE, YK__NPHASES } yk_phase;

typedef struct yk_survey {
  const yk_session *s;
  const yk_plan *p;
  bool fits;
  yk_device_use *use;                /* [devices] */
  double (*flops)[YK__NPHASES];      /* [devices] floating-point operations of the step's kernels */
  yk_route *route;   uint32_t nroute, route_cap;
  yk_holding *held;  uint32_t nheld, held_cap;     /* the largest first */
} yk_survey;

/* With the compile lock held, as in a yk_look; everything is borrowed from session and plan. yk__survey_free(). */
yk_code yk__survey(const yk_session *s, const yk_plan *p, const yk_var_slot *var, yk_survey *out) YK_CHECKED;
void    yk__survey_free(yk_survey *v);

/* In words, each ending its line: whose kernels a rehearsal plans with (nothing if the devices are real); the copies of one step;
 * the verdict, which names the largest tensors where the step does not fit. rehearse.c. Failures of memory are kept in `out`. */
void yk__survey_put_source(const yk_survey *v, yk_str *out);
void yk__survey_put_copies(const yk_survey *v, yk_str *out);
void yk__survey_put_verdict(const yk_survey *v, yk_str *out);
/* "/gpu:1", or "caller" for YK__NO_DEVICE. "conv1/weights f32[5,5,3,64]", cut to n bytes. Both return buf. */
enum { YK__ROUTE_TEXT = 32, YK__HOLDING_TEXT = 200 };
const char *yk__survey_device(const yk_survey *v, uint16_t dev, char buf[YK__ROUTE_TEXT]);
const char *yk__holding_text(const yk_holding *h, char buf[YK__HOLDING_TEXT]);

/* Of a launch: which part of training it belongs to; floating-point operations; bytes read and written. */
bool     yk__instr_input(const yk_plan *p, const yk_instr *i);       /* takes a batch from a queue */
yk_phase yk__instr_phase(const yk_plan *p, const yk_instr *i);
double   yk__instr_flops(const yk_plan *p, const yk_instr *i);
uint64_t yk__instr_bytes(const yk_plan *p, const yk_instr *i);

#endif
