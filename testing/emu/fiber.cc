/*
 * fiber.cc: see fiber.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <emu/fiber.h>

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#if EMU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifndef LADE_EMU_UCONTEXT
/*
 * emu_swap(&save, to): the registers that a callee keeps go onto the old stack, and come from the
 * new one.  Rounding modes are taken to be the same in all fibers.  The jump in place of a return
 * spares the processor's return stack, which would always guess wrong here.
 */
extern "C" void emu_swap(void **save, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".type emu_swap, @function\n"
        ".hidden emu_swap\n"
        ".globl emu_swap\n"
        "emu_swap:\n"
        "	pushq %rbp\n"
        "	pushq %rbx\n"
        "	pushq %r12\n"
        "	pushq %r13\n"
        "	pushq %r14\n"
        "	pushq %r15\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	popq %r15\n"
        "	popq %r14\n"
        "	popq %r13\n"
        "	popq %r12\n"
        "	popq %rbx\n"
        "	popq %rbp\n"
        "	popq %rcx\n"
        "	jmpq *%rcx\n"
        ".size emu_swap, .-emu_swap\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");
#endif

void emu_fiber_host(emu_fiber *host)
{
	pthread_attr_t attr;
	memset(host, 0, sizeof(*host));
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	pthread_attr_getstack(&attr, &host->stack, &host->stack_size);
	pthread_attr_destroy(&attr);
}

void emu_fiber_make(emu_fiber *fiber, void *stack, size_t stack_size, void (*entry)(void))
{
	fiber->stack = stack;
	fiber->stack_size = stack_size;
	fiber->fake_stack = NULL;
#if EMU_ASAN
	__asan_unpoison_memory_region(stack, stack_size);
#endif
#ifdef LADE_EMU_UCONTEXT
	getcontext(&fiber->context);
	fiber->context.uc_stack.ss_sp = stack;
	fiber->context.uc_stack.ss_size = stack_size;
	fiber->context.uc_link = NULL;
	makecontext(&fiber->context, entry, 0);
#else
	/* | 6 registers | entry | 0 |: entry() begins as if called, 8 below a multiple of 16. */
	uintptr_t top = ((uintptr_t)stack + stack_size) & ~(uintptr_t)15;
	void **at = (void **)top - 8;
	memset(at, 0, 8 * sizeof(void *));
	at[6] = (void *)(uintptr_t)entry;
	fiber->sp = at;
#endif
}

void emu_fiber_entered(void)
{
#if EMU_ASAN
	__sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
}

void emu_fiber_switch(emu_fiber *from, emu_fiber *to)
{
#if EMU_ASAN
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_size);
#endif
#ifdef LADE_EMU_UCONTEXT
	swapcontext(&from->context, &to->context);
#else
	emu_swap(&from->sp, to->sp);
#endif
#if EMU_ASAN
	__sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}
