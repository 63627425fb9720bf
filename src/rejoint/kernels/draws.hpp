// Random numbers that depend on a seed and a position alone, not on threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rejoint {

// The numbers of one record: splitmix64, seeded by a hash of the seed and of its position.
class Stream {
  public:
    Stream(std::uint64_t seed, std::uint64_t position)
        : state_(mix(mix(seed) + STEP * (position + 1))) {}

    // Uniform in [0, 1).
    double next() {
        state_ += STEP;
        return static_cast<double>(mix(state_) >> 11) * 0x1p-53;
    }

  private:
    static constexpr std::uint64_t STEP = 0x9E3779B97F4A7C15u;
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

// log k! minus Stirling's leading terms: log k! = (k + 1/2) log(k + 1) - (k + 1) + log(2 pi)/2 + it.
inline double stirling_series(double k) {
    const double x = 1.0 / (k + 1.0), y = x * x;
    return x * (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y / 1680)));
}

inline double stirling_tail(double k) {
    constexpr std::size_t FEW = 15;  // from here on the series is exact to rounding
    static const std::array<double, FEW> tails = [] {
        std::array<double, FEW> found{};
        double tail = stirling_series(FEW);
        for (std::size_t i = FEW; i-- > 0;) {
            const double at = static_cast<double>(i);
            found[i] = tail += (at + 1.5) * std::log1p(1.0 / (at + 1.0)) - 1.0;
        }
        return found;
    }();
    return k < FEW ? tails[static_cast<std::size_t>(k)] : stirling_series(k);
}

// Number of successes in n trials where few are expected: by going up the distribution.
inline double few_successes(double n, double p, Stream &stream) {
    const double odds = p / (1.0 - p);
    double mass = std::exp(n * std::log1p(-p)), u = stream.next(), k = 0.0;
    while (u >= mass && k < n && mass > 0x1p-60) {  // what is left of u then is rounding
        u -= mass;
        ++k;
        mass *= odds * (n - k + 1.0) / k;
    }
    return k;
}

// By transformed rejection (Hormann 1993, algorithm BTRS) where ten or more are expected.
inline double many_successes(double n, double p, Stream &stream) {
    const double spread = std::sqrt(n * p * (1.0 - p)), odds = p / (1.0 - p);
    const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double centre = n * p + 0.5, mode = std::floor((n + 1.0) * p);
    const double alpha = (2.83 + 5.1 / b) * spread, sure = 0.92 - 4.2 / b;
    for (;;) {
        const double u = stream.next() - 0.5, v = stream.next();
        const double us = 0.5 - std::abs(u), k = std::floor((2.0 * a / us + b) * u + centre);
        if (us >= 0.07 && v <= sure) return k;
        if (!(k >= 0.0 && k <= n)) continue;
        const double bound =
            (mode + 0.5) * std::log((mode + 1.0) / (odds * (n - mode + 1.0))) +
            (n + 1.0) * std::log((n - mode + 1.0) / (n - k + 1.0)) +
            (k + 0.5) * std::log(odds * (n - k + 1.0) / (k + 1.0)) +
            (stirling_tail(mode) + stirling_tail(n - mode)) - stirling_tail(k) -
            stirling_tail(n - k);
        if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

// Number of successes in n trials of probability p; n is a whole number.
inline double binomial(double n, double p, Stream &stream) {
    if (n <= 0.0 || p <= 0.0) return 0.0;
    if (p >= 1.0) return n;
    const double rarer = std::min(p, 1.0 - p);
    const double k = n * rarer < 10.0 ? few_successes(n, rarer, stream)
                                      : many_successes(n, rarer, stream);
    return p > 0.5 ? n - k : k;
}

}  // namespace rejoint
