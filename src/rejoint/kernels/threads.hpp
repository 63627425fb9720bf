// Run a function for 0, 1, .., n-1 on as many threads; the last of them is the caller's own.
#pragma once

#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace rejoint {

template <typename Function>
void in_parallel(std::size_t n, Function &&function) {
    std::vector<std::thread> threads;
    threads.reserve(n);
    for (std::size_t i = 0; i + 1 < n; ++i) {
        try {
            threads.emplace_back([&function, i] { function(i); });
        } catch (const std::system_error &) {  // no more threads available: run it here
            function(i);
        }
    }
    if (n) function(n - 1);
    for (std::thread &thread : threads) thread.join();
}

}  // namespace rejoint
