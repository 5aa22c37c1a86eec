/*
 * status.h: how liblade reports failures, and the macros that every header needs.
 *
 *	lade_spec *typo;
 *	if (lade_spec_parse(engine, "shufle(4)", &typo, &err) != LADE_OK)      // lade_error err;
 *		printf("%s: %s\n", lade_status_name(err.status), err.message);
 *
 * Every function that can fail returns a lade_status and fills in the caller's lade_error, if it
 * gets one.  The library never prints, never exits, and never reads the environment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_STATUS_H
#define LADE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LADE_API __attribute__((visibility("default")))
#define LADE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LADE_API
#define LADE_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The status codes, their numbers (part of the ABI) and texts.  docs/errors.md says when each is
 * returned and what to do about it. */
#define LADE_STATUS_LIST(X)                                                        \
	X(LADE_OK, 0, "done")                                                      \
	X(LADE_E_ARG, 1, "an argument is not valid")                               \
	X(LADE_E_NOMEM, 2, "memory could not be allocated")                        \
	X(LADE_E_NOSPACE, 3, "the destination is too small")                       \
	X(LADE_E_CORRUPT, 4, "the data is corrupt")                                \
	X(LADE_E_TRUNCATED, 5, "the data ends too early")                          \
	X(LADE_E_CHECKSUM, 6, "a checksum does not match")                         \
	X(LADE_E_NO_CHECKSUM, 7, "a checksum was asked for and none is stored")    \
	X(LADE_E_UNSUPPORTED, 8, "this build does not support the data or the request") \
	X(LADE_E_VERSION, 9, "the format's version is unknown")                    \
	X(LADE_E_LIMIT, 10, "a limit would be exceeded")                           \
	X(LADE_E_RANGE, 11, "a range is outside the data")                         \
	X(LADE_E_UNKNOWN_SIZE, 12, "the format does not store the decoded size")   \
	X(LADE_E_SPEC, 13, "the specification is not valid")                       \
	X(LADE_E_NOT_FOUND, 14, "there is nothing of that name")                   \
	X(LADE_E_DTYPE, 15, "the data type does not fit")                          \
	X(LADE_E_NO_DEVICE, 16, "there is no such device")                         \
	X(LADE_E_DEVICE, 17, "the device's driver reported a failure")             \
	X(LADE_E_IO, 18, "reading or writing failed")                              \
	X(LADE_E_STATE, 19, "the call does not fit the object's state")            \
	X(LADE_E_DICT, 20, "the dictionary is missing or is not the right one")    \
	X(LADE_E_VALUE, 21, "a value cannot be represented in the type asked for") \
	X(LADE_E_INTERNAL, 22, "a fault in liblade itself")                        \
	X(LADE_E_CHANGED, 23, "the object is not the version that was asked for")  \
	X(LADE_E_CANCELLED, 24, "the call was cancelled")

typedef enum lade_status {
#define LADE_X(name, value, text) name = value,
	LADE_STATUS_LIST(LADE_X)
#undef LADE_X
} lade_status;

/* The value of 'err->offset' if the failure has no place in the input. */
#define LADE_NO_OFFSET UINT64_MAX

#define LADE_MESSAGE_CAP 240

/*
 * What went wrong.  A call fills it in only if it fails.  Every function accepts NULL for it.  The
 * struct never changes, since callers keep arrays of it.
 */
typedef struct lade_error {
	lade_status status;
	uint64_t offset; /* first bad byte, from the start of the input named in the message */
	char message[LADE_MESSAGE_CAP]; /* one line of UTF-8, NUL-terminated */
} lade_error;

/* The code's name, such as "LADE_E_CORRUPT"; "LADE_E_?" for an unknown number.  Never NULL. */
LADE_API const char *lade_status_name(lade_status status);

/* The code's text, such as "the data is corrupt".  Never NULL; do not free it. */
LADE_API const char *lade_status_text(lade_status status);

/*
 * Fills in '*err' (unless it is NULL) and returns 'status'.  Implementations of your own use it:
 *
 *	return lade_fail(err, LADE_E_CORRUPT, off, "want %zu bytes, have %zu", want, have);
 *
 * A message that is too long is cut after a whole character.
 */
LADE_API lade_status lade_fail(lade_error *err, lade_status status, uint64_t offset,
                               const char *format, ...) LADE_PRINTF(4, 5);

/* The version of the linked library: as a number to compare with LADE_VERSION, and as text. */
LADE_API int lade_version(void);
LADE_API const char *lade_version_text(void);

/*
 * Returns the name of library number 'index' that liblade is linked with ("zstd", "lz4", ...), or
 * NULL past the last one.  These libraries decide which broken data is refused (docs/verdicts.md).
 *
 * '*version' gets the version at run time, such as "1.5.4".  If the library has no call for it,
 * '*version' gets the version of its headers at compile time and '*compiled' is true.  Both
 * pointers may be NULL.
 *
 * Threads: any number
 * Owns:    the texts are static
 */
LADE_API const char *lade_linked(size_t index, const char **version, bool *compiled);

#ifdef __cplusplus
}
#endif

#endif
