/*
 * curl.h: the part of libcurl's interface that the HTTP store uses.  The library is opened at run
 * time, so that liblade needs neither its headers nor itself; the numbers are part of its ABI.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STORE_CURL_H
#define LADE_STORE_CURL_H

#include <lade/status.h>

/* Options: 0 numbers, 10000 pointers, 20000 functions. */
enum {
	CURLOPT_LOW_SPEED_LIMIT = 19,
	CURLOPT_NOBODY = 44,
	CURLOPT_FOLLOWLOCATION = 52,
	CURLOPT_MAXREDIRS = 68,
	CURLOPT_BUFFERSIZE = 98,
	CURLOPT_NOSIGNAL = 99,
	CURLOPT_CONNECTTIMEOUT_MS = 156,
	CURLOPT_PROTOCOLS = 181,
	CURLOPT_REDIR_PROTOCOLS = 182,
	CURLOPT_WRITEDATA = 10001,
	CURLOPT_URL = 10002,
	CURLOPT_RANGE = 10007,
	CURLOPT_ERRORBUFFER = 10010,
	CURLOPT_HTTPHEADER = 10023,
	CURLOPT_HEADERDATA = 10029,
	CURLOPT_CAINFO = 10065,
	CURLOPT_PRIVATE = 10103,
	CURLOPT_WRITEFUNCTION = 20011,
	CURLOPT_HEADERFUNCTION = 20079,

	CURLMOPT_MAXCONNECTS = 6,

	CURLINFO_RESPONSE_CODE = 0x200002,
	CURLINFO_PRIVATE = 0x100015,

	CURLPROTO_HTTP = 1,
	CURLPROTO_HTTPS = 2,

	CURL_GLOBAL_DEFAULT = 3,
	CURLMSG_DONE = 1,
};

/* Results of a transfer that another try may change: no name, no connection, a part of the bytes,
 * time, nothing, sending, receiving, HTTP/2. */
#define CURL_WORTH_A_RETRY(code) \
	((code) == 6 || (code) == 7 || (code) == 16 || (code) == 18 || (code) == 28 || \
	 (code) == 52 || (code) == 55 || (code) == 56 || (code) == 92)

typedef struct curl_message {
	int what;
	void *easy;
	union {
		void *whatever;
		int result;
	} data;
} curl_message;

#define CURL_FUNCTIONS(X) \
	X(int, global_init, (long flags)) \
	X(void *, easy_init, (void)) \
	X(void, easy_cleanup, (void *easy)) \
	X(void, easy_reset, (void *easy)) \
	X(int, easy_setopt, (void *easy, int option, ...)) \
	X(int, easy_getinfo, (void *easy, int info, ...)) \
	X(const char *, easy_strerror, (int code)) \
	X(void *, multi_init, (void)) \
	X(int, multi_cleanup, (void *multi)) \
	X(int, multi_setopt, (void *multi, int option, ...)) \
	X(int, multi_add_handle, (void *multi, void *easy)) \
	X(int, multi_remove_handle, (void *multi, void *easy)) \
	X(int, multi_perform, (void *multi, int *running)) \
	X(int, multi_poll, (void *multi, void *fds, unsigned count, int ms, int *ready)) \
	X(int, multi_wakeup, (void *multi)) \
	X(curl_message *, multi_info_read, (void *multi, int *left)) \
	X(void *, slist_append, (void *list, const char *text)) \
	X(void, slist_free_all, (void *list))

typedef struct lade__curl {
	void *library;
#define X(type, name, arguments) type(*name) arguments;
	CURL_FUNCTIONS(X)
#undef X
} lade__curl;

/* Opens libcurl: the file 'name', or what the system has (NULL).  It stays open until the process
 * ends: its threads and what it has registered cannot be taken back.
 * Fails: LADE_E_UNSUPPORTED: there is none, or it is older than 7.68 */
lade_status lade__curl_open(lade__curl *curl, const char *name, lade_error *err);

#endif
