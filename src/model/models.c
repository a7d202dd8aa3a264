/*
 * models.c - the list of built-in networks.
 *
 * One line a network; each has its own file.
 */
#include <string.h>
#include "model/parts.h"

static const yk_model *const list[] = { &yk__model_cifar10, &yk__model_resnet20, &yk__model_mlp };
enum { COUNT = sizeof list / sizeof list[0] };

const yk_model *yk_model_at(size_t i) {
  return i < COUNT ? list[i] : NULL;
}

const yk_model *yk_model_find(const char *name) {
  for (size_t i = 0; i < COUNT; i++)
    if (name != NULL && strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}
