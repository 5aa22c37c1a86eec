/*
 * keeper.h: the process that holds all that a broker has published, and outlives it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_KEEPER_H
#define LADE_SHARE_KEEPER_H

#include "share/store.h"

/*
 * Connects to the keeper of 'path' (a socket's); starts one if there is none.  Only the holder of
 * the path's lock may call.
 * Fails: LADE_E_IO, LADE_E_NOMEM
 */
lade_status lade__keeper_connect(const char *path, int *out, lade_error *err);

/* Asks a keeper for its process number and all that it holds, and adds that, visible and safe.
 * 'p' is room for messages.  Fails: LADE_E_IO, LADE_E_NOMEM, LADE_E_CORRUPT */
lade_status lade__keeper_all(int fd, lade__packet *p, lade__shelf *shelf, uint64_t *pid,
                             lade_error *err);

#endif
