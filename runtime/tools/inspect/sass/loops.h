// The loops of a kernel.
#pragma once

#include <set>
#include <vector>

#include "inspect/sass/code.h"

namespace kvjit::tool::sass {

/// What a branch back makes: the block that it leads to, through which all ways into the loop pass, and all blocks from
/// which that branch is reached.
struct Loop {
    int head;
    std::set<int> blocks;  // with the head
    int around = -1;       // the smallest loop around this one, by its place in the list; -1: none
};

std::vector<Loop> find_loops(const Code& code);

/// How many instructions of the loop, those of loops inside it included, are such as asked for.
template <class Asked>
int count(const Code& code, const Loop& loop, Asked&& asked) {
    int found = 0;
    for (const int block : loop.blocks) {
        for (const Instruction& each : code[static_cast<std::size_t>(block)].instructions) found += asked(each) ? 1 : 0;
    }
    return found;
}

}  // namespace kvjit::tool::sass
