/*
 * fiber.h: stacks to switch between.  x86-64 switches in a dozen instructions; elsewhere, or with
 * LADE_EMU_UCONTEXT, the C library does it.  ASan gets a notice of every switch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_EMU_FIBER_H
#define LADE_EMU_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(LADE_EMU_UCONTEXT)
#define LADE_EMU_UCONTEXT
#endif
#ifdef LADE_EMU_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#endif
#ifndef EMU_ASAN
#define EMU_ASAN 0
#endif

struct emu_fiber {
	void *sp; /* the saved stack pointer while the fiber does not run */
	void *stack;
	size_t stack_size;
	void *fake_stack; /* ASan's */
#ifdef LADE_EMU_UCONTEXT
	ucontext_t context;
#endif
};

/* Describes the thread's own stack, so that fibers can switch back to it. */
void emu_fiber_host(emu_fiber *host);

/* A fiber that calls entry() when first switched to; entry() never returns, and ends its first
 * switch with emu_fiber_entered().  May be called again on a fiber that was left in its middle. */
void emu_fiber_make(emu_fiber *fiber, void *stack, size_t stack_size, void (*entry)(void));
void emu_fiber_entered(void);

void emu_fiber_switch(emu_fiber *from, emu_fiber *to);

#endif
