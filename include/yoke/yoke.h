/*
 * yoke.h - everything a program needs: one include.
 *
 * Headers for extenders (device.h, op.h, plan.h, half.h) come along where these
 * need them; the rest is to be included by name.
 */
#ifndef YK_YOKE_H
#define YK_YOKE_H

#include "applications.h"
#include "callbacks.h"
#include "checkpoint.h"
#include "data.h"
#include "detect.h"
#include "fit.h"
#include "graph.h"
#include "math.h"
#include "layers.h"
#include "model.h"
#include "monitored.h"
#include "network.h"
#include "nn.h"
#include "queue.h"
#include "session.h"
#include "summary.h"
#include "sync.h"
#include "train.h"

#endif
