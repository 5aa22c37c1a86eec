/*
 * status.c: names and texts of the status codes, and how an error is filled in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/status.h>
#include <lade/version.h>

#include <stdarg.h>
#include <stdio.h>

const char *lade_status_name(lade_status status)
{
	switch (status) {
#define LADE_X(name, value, text) \
	case name:                \
		return #name;
		LADE_STATUS_LIST(LADE_X)
#undef LADE_X
	}
	return "LADE_E_?";
}

const char *lade_status_text(lade_status status)
{
	switch (status) {
#define LADE_X(name, value, text) \
	case name:                \
		return text;
		LADE_STATUS_LIST(LADE_X)
#undef LADE_X
	}
	return "an unknown status";
}

lade_status lade_fail(lade_error *err, lade_status status, uint64_t offset, const char *format, ...)
{
	if (!err)
		return status;
	err->status = status;
	err->offset = offset;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(err->message, sizeof err->message, format, args);
	va_end(args);
	if (n < 0)
		err->message[0] = 0;
	if (n >= LADE_MESSAGE_CAP) {
		/* Cut before a character that did not fit whole: step back over its continuation
		 * bytes. */
		size_t end = LADE_MESSAGE_CAP - 1;
		size_t lead = end;
		while (lead > 0 && ((unsigned char)err->message[lead - 1] & 0xC0) == 0x80)
			lead--;
		if (lead > 0) {
			unsigned char c = (unsigned char)err->message[lead - 1];
			size_t want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
			if (end - (lead - 1) < want)
				end = lead - 1;
		}
		err->message[end] = 0;
	}
	return status;
}

int lade_version(void)
{
	return LADE_VERSION;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *lade_version_text(void)
{
	return TEXT(LADE_VERSION_MAJOR) "." TEXT(LADE_VERSION_MINOR) "." TEXT(LADE_VERSION_PATCH);
}
