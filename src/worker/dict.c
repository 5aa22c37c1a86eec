/*
 * dict.c: dictionaries, and the forms of them that codecs prepare once and share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/codec.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A form is made under the lock, so that two threads do not make it twice, and never changes. */
typedef struct form {
	const void *key;
	int variant;
	void *prepared;
	void (*free_fn)(void *prepared);
	struct form *next;
} form;

struct lade_dict {
	pthread_mutex_t mutex;
	form *forms;
	size_t size;
	uint8_t data[];
};

lade_status lade_dict_new(const void *data, size_t size, lade_dict **out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	if (!data || size == 0)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "a dictionary must not be empty");
	lade_dict *dict = size > SIZE_MAX / 2 ? NULL : malloc(sizeof *dict + size);
	if (!dict)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a dictionary of %zu bytes", size);
	pthread_mutex_init(&dict->mutex, NULL);
	dict->forms = NULL;
	dict->size = size;
	memcpy(dict->data, data, size);
	*out = dict;
	return LADE_OK;
}

void lade_dict_free(lade_dict *dict)
{
	if (!dict)
		return;
	form *next;
	for (form *f = dict->forms; f; f = next) {
		next = f->next;
		f->free_fn(f->prepared);
		free(f);
	}
	pthread_mutex_destroy(&dict->mutex);
	free(dict);
}

lade_cspan lade_dict_data(const lade_dict *dict)
{
	return lade_host_cspan(dict->data, dict->size);
}

const void *lade_dict_prepared(const lade_dict *dict, const void *key, int variant,
                               void *(*make)(lade_cspan data, int variant),
                               void (*free_fn)(void *prepared))
{
	/* The forms are a cache: a dictionary that is const to its user may fill it. */
	lade_dict *d = (lade_dict *)(uintptr_t)dict;
	void *prepared = NULL;
	pthread_mutex_lock(&d->mutex);
	form *f = d->forms;
	while (f && (f->key != key || f->variant != variant))
		f = f->next;
	if (f) {
		prepared = f->prepared;
	} else if ((f = malloc(sizeof *f)) != NULL) {
		prepared = make(lade_dict_data(d), variant);
		*f = (form){key, variant, prepared, free_fn, d->forms};
		if (prepared)
			d->forms = f;
		else
			free(f);
	}
	pthread_mutex_unlock(&d->mutex);
	return prepared;
}
