/*
 * call.h: a call's items on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_CALL_H
#define LADE_BATCH_HOST_CALL_H

#include "batch/plan/plan.h"

/* Runs the items that are the host's and have no bytes on a device.  All groups have been chosen.
 * Fails: LADE_E_NOMEM, when nothing could be tried */
lade_status lade__host_run(lade__planner *p, lade_error *err);

#endif
