/*
 * kernel.h: makes the emulated device's table of one image: included behind a .cu file, and then
 * EMULATED_KERNEL(image, function) for each of its kernels.  testing/emu/device.cmake writes these
 * lines from the file's declarations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/inside.h"

#include <new>
#include <tuple>
#include <utility>

/* Arguments are where no kernel could reach them, so reading them is not checked. */
template <typename... A, size_t... I>
__attribute__((no_sanitize("thread"))) static inline void
emulated_call(void (*function)(A...), const std::tuple<A...> *packed, std::index_sequence<I...>)
{
	function(std::get<I>(*packed)...);
}

template <typename... A, size_t... I>
static inline void emulated_pack(void (*)(A...), void **arguments, unsigned char *packed,
                                 std::index_sequence<I...>)
{
	(void)arguments;
	new (packed) std::tuple<A...>(*static_cast<const A *>(arguments[I])...);
}

template <typename... A> static constexpr size_t emulated_size(void (*)(A...))
{
	return sizeof(std::tuple<A...>);
}

template <typename... A> static std::tuple<A...> emulated_tuple(void (*)(A...));

template <typename... A> static std::index_sequence_for<A...> emulated_indexes(void (*)(A...));

#define EMULATED_KERNEL(image, function)                                                          \
	static kernel_entry emulated_##function({                                                 \
		#image, #function, emulated_size(function),                                       \
		[](void **arguments, unsigned char *packed) {                                     \
			emulated_pack(function, arguments, packed,                                \
			              decltype(emulated_indexes(function))());                    \
		},                                                                                \
		[](const unsigned char *packed) {                                                 \
			typedef decltype(emulated_tuple(function)) tuple;                         \
			emulated_call(function, reinterpret_cast<const tuple *>(packed),          \
			              decltype(emulated_indexes(function))());                    \
		},                                                                                \
		NULL,                                                                             \
	});
