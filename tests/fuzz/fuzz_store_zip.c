/*
 * fuzz_store_zip.c: a zip file: its directory, and every value that it names, whole and in part.
 * Readers keep to their spans, and what is read in part is what is read whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/store.h>

#include <stdlib.h>
#include <string.h>

static void expect(bool good)
{
	if (!good)
		abort();
}

enum { VALUE_MAX = 1 << 16, KEYS = 32 };

typedef struct keys {
	char text[KEYS][LADE_KEY_MAX + 1];
	size_t count;
} keys;

static lade_status see(void *ctx, const lade_store_entry *entry)
{
	keys *k = ctx;
	expect(lade_key_check(entry->key, NULL) == LADE_OK);
	if (k->count == KEYS)
		return LADE_E_LIMIT;
	strcpy(k->text[k->count++], entry->key);
	return LADE_OK;
}

static lade_status read_range(lade_store *store, lade_range *range)
{
	lade_error err = {0};
	lade_status status = lade_store_read(store, range, 1, NULL, NULL, &err);
	expect(status == LADE_OK || (err.status == status && err.message[0]));
	expect(status != LADE_E_INTERNAL && status != LADE_E_ARG && range->status == status);
	return status;
}

static void read_key(lade_store *store, const char *key)
{
	uint8_t *whole = malloc(VALUE_MAX);
	expect(whole);
	lade_range all = {
		.key = key, .kind = LADE_RANGE_REST, .dst = lade_host_span(whole, VALUE_MAX)};
	if (read_range(store, &all) == LADE_OK) {
		expect(all.size == all.object_size);
		size_t size = all.size / 2, off = all.size / 3;
		uint8_t *part = malloc(size + !size);
		expect(part);
		lade_range some = {.key = key, .off = off, .dst = lade_host_span(part, size)};
		expect(read_range(store, &some) == LADE_OK);
		expect(size == 0 || memcmp(part, whole + off, size) == 0);
		free(part);
	}
	free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static keys found;
	lade_zip_options options = {
		.struct_size = sizeof options, .directory_max = 1 << 16, .value_max = VALUE_MAX};
	lade_source source;
	lade_store *store;
	lade_error err = {0};
	uint8_t *copy = malloc(size + !size); /* so that a byte too far is seen */
	expect(copy);
	memcpy(copy, data, size);
	expect(lade_source_memory_open(lade_host_cspan(copy, size), &source, NULL) == LADE_OK);
	lade_status status = lade_store_zip_open(source, &options, &store, &err);
	if (status == LADE_OK) {
		lade_store_listing listing = {
			.struct_size = sizeof listing, .visit = see, .ctx = &found, .sizes = true};
		found.count = 0;
		status = lade_store_list(store, &listing, NULL);
		expect(status == LADE_OK || status == LADE_E_LIMIT);
		for (size_t i = 0; i < found.count; i++)
			read_key(store, found.text[i]);
		lade_store_unref(store);
	} else {
		expect(err.status == status && err.message[0] && status != LADE_E_INTERNAL);
		expect(err.offset == LADE_NO_OFFSET || err.offset <= size);
		lade_source_close(source);
	}
	free(copy);
	return 0;
}
