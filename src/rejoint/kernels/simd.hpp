// Differences between compilers and processors.
#pragma once

#include <cstddef>  // any standard header defines __GLIBC__ where there is one
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// A function compiled for several instruction sets, chosen when the module is loaded. That needs
// ifuncs: x86-64 with glibc. Elsewhere the plain version is compiled alone.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define REJOINT_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define REJOINT_CLONES
#endif

// A function compiled for AVX2 alone, to be called where has_avx2() says so. For code whose vectors
// have a fixed width: the clones above would lower wide ones badly for narrow hardware.
#if defined(__x86_64__) && defined(__GNUC__)
#define REJOINT_AVX2 __attribute__((target("avx2")))
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

// Which of 64 numbers differ from 64 others, as bits.
template <typename Integer>
inline std::uint64_t unequal(const Integer *a, const Integer *b) {
    // Words of several numbers: the highest bit of each that is not zero, gathered by a product.
    constexpr unsigned BITS = 8 * sizeof(Integer), STEP = 64 / BITS;
    constexpr std::uint64_t ONES = ~std::uint64_t{0} / (~std::uint64_t{0} >> (64 - BITS));
    constexpr std::uint64_t LOW = ~(ONES << (BITS - 1));
    std::uint64_t magic = 0, found = 0, x, y;
    for (unsigned k = 0; k < STEP; ++k) magic |= std::uint64_t{1} << (64 - STEP - (BITS - 1) * k);
    for (unsigned v = 0; v < 64; v += STEP) {
        std::memcpy(&x, a + v, sizeof x);
        std::memcpy(&y, b + v, sizeof y);
        x ^= y;
        x = ((((x & LOW) + LOW) | x) & ~LOW) >> (BITS - 1);
        found |= ((x * magic) >> (64 - STEP)) << v;
    }
    return found;
}
#if defined(__SSE2__)
template <>
inline std::uint64_t unequal(const std::int8_t *a, const std::int8_t *b) {
    std::uint64_t found = 0;
    for (unsigned v = 0; v < 64; v += 16) {
        const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i *>(a + v));
        const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i *>(b + v));
        const auto equal = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)));
        found |= std::uint64_t{equal ^ 0xFFFFu} << v;
    }
    return found;
}
#endif

inline bool has_avx2() {
#if defined(REJOINT_AVX2)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

// WIDTH doubles that are processed at once: two anywhere, four with AVX2.
#if defined(__GNUC__)
template <int WIDTH>
struct Lanes;
template <>
struct Lanes<2> {
    typedef double Vector __attribute__((vector_size(16)));
    typedef double Unaligned __attribute__((vector_size(16), aligned(8), may_alias));
    Vector x;
};
template <>
struct Lanes<4> {
    typedef double Vector __attribute__((vector_size(32)));
    typedef double Unaligned __attribute__((vector_size(32), aligned(8), may_alias));
    Vector x;
};
template <int WIDTH>
REJOINT_INLINE void load(Lanes<WIDTH> &lanes, const double *from) {
    lanes.x = *reinterpret_cast<const typename Lanes<WIDTH>::Unaligned *>(from);
}
template <int WIDTH>
REJOINT_INLINE void store(const Lanes<WIDTH> &lanes, double *to) {
    *reinterpret_cast<typename Lanes<WIDTH>::Unaligned *>(to) = lanes.x;
}
template <int WIDTH>
REJOINT_INLINE void multiply(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &by) {
    lanes.x *= by.x;
}
template <int WIDTH>
REJOINT_INLINE void add(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &more) {
    lanes.x += more.x;
}
template <int WIDTH>
REJOINT_INLINE void add_product(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &a, const Lanes<WIDTH> &b) {
    lanes.x += a.x * b.x;
}
REJOINT_INLINE void spread(Lanes<2> &lanes, double x) { lanes.x = Lanes<2>::Vector{x, x}; }
REJOINT_INLINE void spread(Lanes<4> &lanes, double x) { lanes.x = Lanes<4>::Vector{x, x, x, x}; }
#else
template <int WIDTH>
struct Lanes {
    double x[WIDTH];
};
template <int WIDTH>
REJOINT_INLINE void load(Lanes<WIDTH> &lanes, const double *from) {
    for (int i = 0; i < WIDTH; ++i) lanes.x[i] = from[i];
}
template <int WIDTH>
REJOINT_INLINE void store(const Lanes<WIDTH> &lanes, double *to) {
    for (int i = 0; i < WIDTH; ++i) to[i] = lanes.x[i];
}
template <int WIDTH>
REJOINT_INLINE void multiply(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &by) {
    for (int i = 0; i < WIDTH; ++i) lanes.x[i] *= by.x[i];
}
template <int WIDTH>
REJOINT_INLINE void add(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &more) {
    for (int i = 0; i < WIDTH; ++i) lanes.x[i] += more.x[i];
}
template <int WIDTH>
REJOINT_INLINE void add_product(Lanes<WIDTH> &lanes, const Lanes<WIDTH> &a, const Lanes<WIDTH> &b) {
    for (int i = 0; i < WIDTH; ++i) lanes.x[i] += a.x[i] * b.x[i];
}
template <int WIDTH>
REJOINT_INLINE void spread(Lanes<WIDTH> &lanes, double x) {
    for (int i = 0; i < WIDTH; ++i) lanes.x[i] = x;
}
#endif

}  // namespace rejoint
