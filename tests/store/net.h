/*
 * net.h - a small session whose whole state is known: what the tests of savers and checkpoints save.
 *
 * Its variables are a/w f32 [2,3], a/b f64 [], step i64 [] and flag bool [5], all filled from one number.
 */
#ifndef YK_TEST_STORE_NET_H
#define YK_TEST_STORE_NET_H

#include <yoke/yoke.h>
#include "support/check.h"

typedef struct net { yk_graph *g; yk_session *s; yk_variable *w, *b, *step, *flag; } net;

void net_open(net *n);
void net_close(net *n);
/* All values from `x`; is it all still from `x`? */
void net_set(net *n, int x);
bool net_is(net *n, int x);
void net_expect(net *n, int x, const char *why);

#endif
