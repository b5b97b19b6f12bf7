// Includes nothing of the standard library: its inline functions would be compiled for this file's instruction set and
// might then be the ones that the whole program uses.
#include "limits/register_loop.h"

namespace kvjit::limits {
namespace {

constexpr int kBytes = KVJIT_REGISTER_BITS / 8;
constexpr int kLanes = kBytes / 4;
/// More than a multiply-add's latency times the ports that take it: no one waits for another.
constexpr int kChains = 12;

typedef float Vector __attribute__((vector_size(kBytes)));

}  // namespace

double KVJIT_REGISTER_LOOP(long rounds) {
    Vector chains[kChains];
    Vector factor = Vector{} + 0.5f;
    Vector term = Vector{} + 1.0f;
    // Nobody knows any of these values, so nothing can be computed before or left out.
    __asm__("" : "+x"(factor), "+x"(term));
    for (int i = 0; i < kChains; ++i) __asm__("" : "=x"(chains[i]));
    for (long round = 0; round < rounds; ++round) {
        for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
    }
    for (int i = 0; i < kChains; ++i) __asm__ volatile("" ::"x"(chains[i]));
    return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

}  // namespace kvjit::limits
