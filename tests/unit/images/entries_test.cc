// Entries for a bundle, made on several threads.
#include "bundle/entries.h"

#include <latch>
#include <new>
#include <thread>

#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

TEST_CASE("memory that ends on another thread ends the making, not the process") {
    World world;
    Images images(options_over(world));
    const std::vector<gen::KernelSpec> specs{spec_of("op=Merge,head_dim=64"), spec_of("op=Merge,head_dim=128")};
    const auto jobs = tool::plan_entries(specs, std::vector<std::string>{"x86-64-v3"});
    REQUIRE(jobs.has_value());
    REQUIRE(jobs->jobs.size() == 2);
    const std::thread::id caller = std::this_thread::get_id();
    std::latch thrown(1);
    world.while_compiling = [&] {
        if (std::this_thread::get_id() == caller) {
            thrown.wait();
        } else {
            thrown.count_down();
            throw std::bad_alloc();
        }
    };
    CHECK_THROWS_AS((void)tool::make_entries(images, *jobs, 2, [](const tool::EntryJob&) {}), std::bad_alloc);
}
