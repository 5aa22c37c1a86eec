/*
 * library.c: opens libraries at run time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

void *lade__library_open(const char *const *files, const char *const *names, void *functions)
{
	void *library = NULL;
	for (; *files && !library; files++)
		library = dlopen(*files, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && names[i]; i++) {
		void *at = dlsym(library, names[i]);
		memcpy((char *)functions + i * sizeof at, &at, sizeof at);
		if (!at) {
			dlclose(library);
			library = NULL;
		}
	}
	return library;
}

void lade__library_close(void *library)
{
	if (library)
		dlclose(library);
}
