// The shadow of global memory: pages of cells, made when a kernel first touches them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "emulation/shadow.h"

namespace kvjit::emulation {

class GlobalMemory {
public:
    /// Between launches nothing needs remembering: gives memory back where there is much of it.
    void start_launch();
    Finding touch(const void* address, i64 bytes, const Actor& actor, const Order& order);
    void clear();

private:
    struct Recent {
        std::uintptr_t number = 0;  // page 0 is never touched: it holds the null pointer
        Cells* cells = nullptr;
    };

    Cells& page(std::uintptr_t number);

    std::unordered_map<std::uintptr_t, std::unique_ptr<Cells>> pages_;
    std::array<Recent, 64> recent_{};
};

}  // namespace kvjit::emulation
