/*
 * array_type.h: the slots of liblade.Array that array.c defines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARRAY_TYPE_H
#define LADE_ARRAY_TYPE_H

#include "lade_py.h"

int py_array_traverse(PyObject *self, visitproc visit, void *arg);
int py_array_clear(PyObject *self);
void py_array_dealloc(PyObject *self);

#endif
