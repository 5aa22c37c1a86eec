/*
 * file.h: the outside of an open file: a descriptor, or a Python object with read(), write(),
 * seek() and tell().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_PY_FILE_H
#define LADE_PY_FILE_H

#include "lade_py.h"

#define PY_FILE_NAME 96

/*
 * The library calls back without the interpreter, from the caller's thread or, for pieces of a
 * frame, from threads of its own.  What an object raises is kept, and raised by py_file_end().
 */
typedef struct py_file {
	py_state *st;
	int fd;       /* owned; -1: 'object' */
	bool emptied; /* the descriptor: what the file held before is gone */
	bool some;    /* bytes have been written */
	PyObject *object;
	bool anywhere;  /* it can be read anywhere */
	uint64_t start; /* where the data begin; 0 if not 'anywhere' */
	uint64_t size;  /* bytes from there, if 'anywhere' */
	uint8_t *ahead; /* bytes that are given before those of the file: ahead_size of them */
	size_t ahead_at, ahead_size;
	PyInterpreterState *interpreter;
	PyThread_type_lock
		lock;         /* of the object's place: taken before the interpreter, never after */
	PyThreadState *saved; /* the caller's, while a call runs */
	unsigned long caller;
	PyObject *raised;
	lade_cancel *cancel; /* for the options of what reads and writes it */
	atomic_flag busy;
	char name[PY_FILE_NAME]; /* for messages; "" if there is none */
} py_file;

/* Takes the descriptor, if 'fd' is not negative, also where it fails; keeps the object else. */
bool py_file_init(py_file *file, py_state *st, int fd, PyObject *object, const char *name,
                  bool writing);
/* Closes a descriptor.  Any number of times. */
void py_file_reset(py_file *file);

/*
 * A call begins: false (and an exception) when another thread is in one, or when '*ready' is false:
 * the file is closed.  The interpreter is let go until the end, which raises what the object has
 * raised, or the failure, and is false then.  Everything below is for use in between.
 */
bool py_file_begin(py_file *file, const bool *ready);
/* The same without letting go of the interpreter; to be ended by clearing 'busy'. */
bool py_file_claim(py_file *file, const bool *ready);
bool py_file_end(py_file *file, lade_status status, lade_error *err);

lade_input py_file_input(py_file *file);
lade_source py_file_source(py_file *file);
lade_output py_file_output(py_file *file);
/* Drops what a descriptor's file held before, unless it is appended to.  Any number of times. */
lade_status py_file_empty(py_file *file, lade_error *err);
/* Looks at the next bytes: all of them that are there, up to 'size'. */
lade_status py_file_peek(py_file *file, size_t size, const uint8_t **out, size_t *have,
                         lade_error *err);
/* Bytes that were read are to be read again. */
lade_status py_file_unread(py_file *file, const void *data, size_t size, lade_error *err);
/* Back to the start; only if 'anywhere'. */
lade_status py_file_rewind(py_file *file, lade_error *err);

extern PyType_Spec py_reader_spec, py_writer_spec;

#endif
