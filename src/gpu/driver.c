/*
 * driver.c: opens libcuda.so.1, finds its functions, and words its failures.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

/* What the one attempt to open the driver came to. */
static struct {
	lade__driver driver;
	lade_status status;
	lade_error error;
} opened;

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static atomic_bool lost;

static void in_forked_child(void)
{
	atomic_store(&lost, true);
}

bool lade__driver_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* POSIX has dlsym() give functions as void pointers, which ISO C does not convert. */
static bool find(void *library, const char *symbol, void *function)
{
	void *found = dlsym(library, symbol);
	memcpy(function, &found, sizeof found);
	return found != NULL;
}

/* Fills the table; gives the name of the first function that is not there, or NULL. */
static const char *find_all(void *library, lade__driver *driver)
{
#define LADE_X(name, symbol, arguments)                \
	if (!find(library, symbol, &driver->name))     \
		return symbol;
	LADE__DRIVER_NEEDED(LADE_X)
#undef LADE_X
#define LADE_X(name, symbol, arguments) find(library, symbol, &driver->name);
	LADE__DRIVER_OPTIONAL(LADE_X)
#undef LADE_X
	return NULL;
}

static lade_status start(lade__driver *driver, lade_error *err)
{
	const char *call = "cuInit";
	int result = driver->cuInit(0);
	if (result == 0) {
		call = "cuDriverGetVersion";
		result = driver->cuDriverGetVersion(&driver->version);
	}
	if (result == 0)
		return LADE_OK;
	lade_error why = {.message = ""};
	lade__driver_fail(driver, result, -1, call, &why);
	bool none = result == LADE__CU_NO_DEVICE || result == LADE__CU_STUB_LIBRARY;
	return lade_fail(err, none ? LADE_E_NO_DEVICE : LADE_E_DEVICE, LADE_NO_OFFSET,
	                 "%s: %s", none ? "no device" : "the driver does not start", why.message);
}

static lade_status open_driver(lade__driver *driver, lade_error *err)
{
	/* The handler comes first: a child that is born while the driver starts is lost too. */
	if (pthread_atfork(NULL, NULL, in_forked_child))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "pthread_atfork() failed");
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();
		/* The loader's texts begin with the name of the file that it means. */
		const char *name = why && strstr(why, LIBRARY) ? "" : LIBRARY ": ";
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET, "no driver: %s%s", name,
		                 why ? why : "cannot be opened");
	}
	const char *missing = find_all(library, driver);
	if (missing) {
		dlclose(library);
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "no driver: " LIBRARY " lacks %s, so it is older than CUDA 11.4",
		                 missing);
	}
	return start(driver, err);
}

static void open_first(void)
{
	opened.error.offset = LADE_NO_OFFSET;
	opened.status = open_driver(&opened.driver, &opened.error);
}

lade_status lade__driver_get(const lade__driver **driver, lade_error *err)
{
	*driver = NULL;
	if (lade__driver_lost())
		return lade_fail(err, LADE_E_NO_DEVICE, LADE_NO_OFFSET,
		                 "the device's driver was opened before this process was forked, "
		                 "and a forked child cannot use it; start the child with exec(), "
		                 "or use devices in children only");
	pthread_once(&open_once, open_first);
	if (opened.status != LADE_OK) {
		if (err)
			*err = opened.error;
		return opened.status;
	}
	*driver = &opened.driver;
	return LADE_OK;
}

lade_status lade__driver_fail(const lade__driver *driver, int result, int32_t device,
                              const char *call, lade_error *err)
{
	const char *name = NULL, *text = NULL;
	char place[24] = "";

	if (device >= 0)
		snprintf(place, sizeof place, "device %d: ", (int)device);
	if (driver->cuGetErrorName(result, &name) != 0 || !name)
		name = "an unknown result";
	if (driver->cuGetErrorString(result, &text) != 0 || !text)
		text = "the driver has no text for it";
	return lade_fail(err, result == LADE__CU_OUT_OF_MEMORY ? LADE_E_NOMEM : LADE_E_DEVICE,
	                 LADE_NO_OFFSET, "%s%s: %s (%d): %s", place, call, name, result, text);
}
