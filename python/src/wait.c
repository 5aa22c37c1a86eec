/*
 * wait.c: calls that may take long: without the interpreter's lock, and open to signals.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

/* The library asks about every 50 ms, between two chunks, on the thread of the call. */
bool py_wait_poll(void *ctx)
{
	py_wait *wait = ctx;

	PyEval_RestoreThread(wait->saved);
	if (!wait->raised && PyErr_CheckSignals())
		wait->raised = PyErr_GetRaisedException();
	wait->saved = PyEval_SaveThread();
	return wait->raised != NULL;
}

void py_wait_begin(py_wait *wait, bool is_long)
{
	*wait = (py_wait){.cancel = NULL};
	/* Without memory for it the call cannot be interrupted. */
	if (is_long)
		lade_cancel_new(py_wait_poll, wait, &wait->cancel, NULL);
	wait->saved = PyEval_SaveThread();
}

bool py_wait_end(py_wait *wait)
{
	PyEval_RestoreThread(wait->saved);
	lade_cancel_free(wait->cancel);
	if (wait->raised)
		PyErr_SetRaisedException(wait->raised);
	return !wait->raised;
}

/* Less than this of one item is done before anybody could want to stop it. */
#define LONG_SIZE ((size_t)1 << 20)

lade_status py_work_run(py_work *work, bool encode)
{
	bool is_long = work->count > 1 || work->segments[0].size >= LONG_SIZE ||
	               work->items[0].dst.size >= LONG_SIZE;
	lade_status status;
	py_wait wait;

	py_wait_begin(&wait, is_long);
	work->cancel = wait.cancel;
	status = encode ? py_work_encode(work) : py_work_decode(work);
	work->cancel = NULL;
	return py_wait_end(&wait) ? status : LADE_E_CANCELLED;
}
