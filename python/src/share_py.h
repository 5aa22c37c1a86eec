/*
 * share_py.h: the types of liblade.share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_PY_H
#define LADE_SHARE_PY_H

#include "lade_py.h"

extern PyType_Spec py_share_spec, py_share_version_spec;

#endif
