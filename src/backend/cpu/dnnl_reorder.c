/*
 * dnnl_reorder.c - a value from one layout into another.
 *
 * The planner puts this kernel where two kernels could not agree. One of the two layouts is private and tells the role;
 * two private ones must be of one role, which is what kernels see to: they never keep a layout of another role.
 */
#include "dnnl_kernel.h"

yk_code yk__cpu_dnnl_reorder(yk_cpu_prepare *p) {
  yk_kernel *k = p->k;
  yk_role role = YK_ROLE_SAME, other = YK_ROLE_SAME;
  uint32_t groups = 1, more = 1;
  k->out[0].layout = p->spec->out[0].layout;
  if (yk__cpu_count(&k->in[0]) == 0) return YK_CPU_REFUSE("the value is empty");
  int a = yk__layout_role(k->in[0].layout, &role, &groups), b = yk__layout_role(k->out[0].layout, &other, &more);
  if (!a && b) {
    role = other;
    groups = more;
  }
  if (!a && k->in[0].layout != YK_LAYOUT_PLAIN) return YK_CPU_REFUSE("layout %u is unknown", (unsigned)k->in[0].layout);
  if (!b && k->out[0].layout != YK_LAYOUT_PLAIN) return YK_CPU_REFUSE("layout %u is unknown", (unsigned)k->out[0].layout);
  yk_md src = { 0 }, dst = { 0 };
  YK_TRY(yk__layout_md(&k->in[0], role, groups, &src));
  yk_code code = yk__layout_md(&k->out[0], role, groups, &dst);
  dnnl_primitive_desc_t pd = NULL;
  double bytes = 2.0 * (double)yk__cpu_count(&k->in[0]) * (double)yk__cpu_dtype_bytes(k->in[0].dtype);
  yk_dnnl_team team = yk__dnnl_team_begin(p, 0.0, bytes);
  if (code == YK_OK) {
    yk_prim prim = { .kind = YK_PRIM_REORDER, .src = &src, .dst = &dst };
    code = yk__dnnl_describe(&prim, YK_IMPL_ANY, &pd);
  }
  static const yk_bind bind[] = { { DNNL_ARG_FROM, 0 }, { DNNL_ARG_TO, 1 } };
  if (code == YK_OK) code = yk__dnnl_finish(p, pd, team, bind, 2);
  yk__dnnl_team_end(team);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  yk__md_free(&src);
  yk__md_free(&dst);
  return code;
}
