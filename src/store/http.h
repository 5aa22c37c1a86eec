/*
 * http.h: what a server's answer to one request means.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_HTTP_H
#define LADE_STORE_HTTP_H

#include "store/store.h"

/* An answer's head, line by line. */
typedef struct lade__http_answer {
	int code;
	uint64_t length;   /* of the body; LADE_SIZE_UNKNOWN: not stated */
	uint64_t off, end; /* of a part: its bytes are [off, end) */
	uint64_t total;    /* LADE_SIZE_UNKNOWN: not stated */
	bool part, coded;  /* has Content-Range, Content-Encoding */
	uint64_t retry_ns; /* the server asks for so much time; 0: it does not */
	lade_object_version tag, date;
} lade__http_answer;

/* Reads one line of a head; a status line begins a new answer. */
void lade__http_line(lade__http_answer *answer, const char *line, size_t size);

/* Where the body's bytes go. */
typedef struct lade__http_body {
	uint64_t at;  /* the first byte's place in the value */
	uint64_t off; /* what is wanted: [off, off + size) of the value */
	uint64_t size;
	bool to_end; /* the value's size is known when the body has ended */
} lade__http_body;

/*
 * What an answer to the request for 'range' says: sets the range's answer, and '*body'.
 * Fails: LADE_E_NOT_FOUND, LADE_E_RANGE, LADE_E_NOSPACE, LADE_E_CHANGED, LADE_E_UNSUPPORTED,
 *        LADE_E_IO; 'true' in '*again' if another try may help
 */
lade_status lade__http_judge(const lade__http_answer *answer, lade_range *range,
                             lade__http_body *body, bool *again, lade_error *err);

/* The text of a request's Range header behind "bytes=", of up to 48 bytes; false: it needs none. */
bool lade__http_range(const lade_range *range, char *text);

/* Base and key as a URL, to be freed; NULL: no memory.  The key goes before a '?' of the base. */
char *lade__http_url(const char *base, const char *key);

/* Whether a base is one.  'shown' gets it without credentials, for messages.  Fails: LADE_E_ARG */
lade_status lade__http_base_check(const char *base, char *shown, size_t shown_size,
                                  lade_error *err);

#endif
