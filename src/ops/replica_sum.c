/*
 * replica_sum.c - a value added up over all replicas of a step.
 *
 * Each replica has a node of its own with the group's number; the planner finds the members of a group and puts one sum in
 * the place of all, in the order of replicas, so that a member alone is its input. The sum of every replica's loss depends on
 * each member through all results, so the gradient is the same sum of what arrives at each of them.
 */
#include "norm.h"

static const yk_attr attrs[] = { YK__SEED(yk_replica_attrs, group), YK__INT(yk_replica_attrs, replica, 0, 0, 65535), { 0 } };

static yk_code grad(yk_grad *c) {
  yk_replica_attrs a = YK__ATTRS(yk_replica_attrs, c);
  a.group = yk__hash(&a.group, sizeof a.group, 1);
  c->din[0] = YK__OPA(c, replica_sum, &a, 1, c->dout[0]);
  return YK_OK;
}

static const yk_case cases[] = { YK__CASES_1(NULL, -2, 2), { 0 } };

const yk_op yk__op_replica_sum = {
  .name = "replica_sum", .label = "CrossReplicaSum", .doc = "The sum of x over all replicas of a step.",
  .version = 1, .attr_bytes = sizeof(yk_replica_attrs), .traits = YK_VIEW | YK_COLLECTIVE, .attrs = attrs,
  .in = yk__float1, .out = yk__out1, .infer = yk__infer_same, .grad = grad, .ref = yk__ref_copy, .cases = cases,
};

yk_value yk__replica_sum(const char *where, yk_graph *g, yk_value x, uint64_t group, uint32_t replica) {
  return yk__build(where, g, &yk__op_replica_sum, &(yk_replica_attrs){ group, replica }, 1, x);
}
