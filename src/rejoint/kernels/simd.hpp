// What differs between compilers and processors.
#pragma once

#include <cstddef>  // any standard header defines __GLIBC__ where there is one
#include <cstdint>

// A function compiled for several instruction sets, chosen when the module is loaded. That needs
// ifuncs: x86-64 with glibc. Elsewhere the plain version is compiled alone.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define REJOINT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define REJOINT_CLONES
#endif

#if defined(_MSC_VER)
#include <intrin.h>
#define REJOINT_INLINE __forceinline
#define REJOINT_RESTRICT __restrict
#else
#define REJOINT_INLINE inline __attribute__((always_inline))
#define REJOINT_RESTRICT __restrict__
#endif

namespace rejoint {

// Position of the lowest bit of a number that is not zero.
REJOINT_INLINE unsigned lowest_bit(std::uint64_t bits) {
#if defined(_MSC_VER)
    unsigned long position;
    _BitScanForward64(&position, bits);
    return static_cast<unsigned>(position);
#else
    return static_cast<unsigned>(__builtin_ctzll(bits));
#endif
}

}  // namespace rejoint
