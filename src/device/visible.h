/*
 * visible.h - CUDA_VISIBLE_DEVICES, as the driver reads it, for virtual GPUs too.
 *
 * The listed devices are renumbered from 0 in the order of the list; the first item
 * that is not a device ends it.
 */
#ifndef YK_DEVICE_VISIBLE_H
#define YK_DEVICE_VISIBLE_H

#include <stdint.h>

/*
 * out[k] = number of the device that becomes gpu:k; returns how many there are, at most `count`.
 * text: NULL (unset) = all; "" or a first item that is no device = none; "1", "0,1", and the same within quotes;
 * an item listed twice = none at all. out: room for `count` entries.
 */
uint16_t yk__visible_devices(const char *text, uint16_t count, uint16_t *out);

#endif
