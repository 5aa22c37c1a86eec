/*
 * kernel.h: makes the emulated device's table of one image.  Included behind a .cu file, where
 * EMULATED_<image>(function) is EMULATED_KERNEL for that file's image and nothing for all others;
 * a row of base/kernels.h that names no .cu file does not compile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/kernels.h"
#include "gpu/emulated/inside.h"

#include <new>
#include <tuple>
#include <utility>

/* Arguments lie where no kernel could reach them, so reading them is not checked. */
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

#define LADE_X(name, image, function, shared) EMULATED_##image(function)
LADE__KERNELS(LADE_X)
#undef LADE_X
