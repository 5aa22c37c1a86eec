/*
 * curl.c: opens libcurl.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t global_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *open_any(const char *name)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so",
	                                    "libcurl.4.dylib"};
	void *library = NULL;
	if (name)
		return dlopen(name, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

lade_status lade__curl_open(lade__curl *curl, const char *name, lade_error *err)
{
	const char *missing = NULL;
	curl->library = open_any(name);
	if (!curl->library)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "http needs libcurl, and %s cannot be opened",
		                 name ? name : "libcurl.so.4");
#define X(type, function, arguments) \
	{ \
		void *at = dlsym(curl->library, "curl_" #function); \
		missing = at ? missing : "curl_" #function; \
		memcpy(&curl->function, &at, sizeof at); \
	}
	CURL_FUNCTIONS(X)
#undef X
	if (missing)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "http needs libcurl 7.68 or later, this one has no %s()", missing);
	/* Counted by libcurl, but only safe among threads from 7.84 on. */
	pthread_mutex_lock(&global_mutex);
	int rc = curl->global_init(CURL_GLOBAL_DEFAULT);
	pthread_mutex_unlock(&global_mutex);
	if (rc != 0)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "libcurl cannot begin: code %d", rc);
	return LADE_OK;
}
