// fuzz_TARGET CORPUS SEED RUNS: hands the files of the folder CORPUS to the target, then RUNS damaged inputs. Where one
// ends the process, its last line repeats it.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "support/read_file.h"
#include "support/rng.h"
#include "support/temporary_folder.h"

namespace {

using kvjit::test::Rng;

char reproducer[512];

void on_end(int signal) {
    static_cast<void>(!::write(STDERR_FILENO, reproducer, std::strlen(reproducer)));
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

std::size_t place_in(const std::string& bytes, Rng& rng) {
    return static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(bytes.size()) + 1));
}

/// A number at one of the widths that formats have, of those that break sums and bounds.
void put_number(std::string& bytes, Rng& rng) {
    const std::uint64_t numbers[] = {0,
                                     1,
                                     0x7fffffff,
                                     0xffffffff,
                                     std::uint64_t{1} << 63,
                                     ~std::uint64_t{0},
                                     bytes.size(),
                                     bytes.size() + 1,
                                     rng.next() % 1024};
    const std::uint64_t number = numbers[rng.below(std::size(numbers))];
    const std::size_t width = rng.chance(0.5) ? 4 : 8, at = place_in(bytes, rng);
    if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &number, width);
}

void damage(std::string& bytes, Rng& rng) {
    const std::size_t at = place_in(bytes, rng), other = place_in(bytes, rng), count = place_in(bytes, rng) % 256;
    switch (rng.below(5)) {
        case 0:
            if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << rng.below(8));
            return;
        case 1:
            return put_number(bytes, rng);
        case 2:
            return bytes.resize(at);
        case 3:
            return void(bytes.insert(at, bytes.substr(std::min(other, bytes.size()), count)));
        default:
            return void(bytes.erase(at, count));
    }
}

using Corpus = std::vector<std::string>;

std::string damaged_input(const Corpus& corpus, std::uint64_t seed, std::uint64_t run) {
    Rng rng(seed * 0x10001 + run);
    std::string bytes = rng.chance(0.5) ? rng.pick(corpus) : kvjit::test::good_input(rng.next());
    for (std::int64_t i = rng.below(4); i >= 0; --i) damage(bytes, rng);
    return bytes;
}

void run_target(const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// Hands the folder's files to the target.
Corpus replay(const char* folder) {
    Corpus corpus;
    std::vector<std::string> paths = kvjit::test::files_in(folder);
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
        std::snprintf(reproducer, sizeof reproducer, "the input is %s\n", path.c_str());
        corpus.push_back(kvjit::test::read_file(path));
        run_target(corpus.back());
    }
    return corpus;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return std::fprintf(stderr, "usage: %s CORPUS SEED RUNS [FIRST_RUN]\n", argv[0]), 2;
    const std::uint64_t seed = std::strtoull(argv[2], nullptr, 10), runs = std::strtoull(argv[3], nullptr, 10);
    const std::uint64_t first = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 0;
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, on_end);
    const Corpus corpus = replay(argv[1]);
    if (corpus.empty()) return std::fprintf(stderr, "%s: no files\n", argv[1]), 2;
    for (std::uint64_t run = first; run < first + runs; ++run) {
        std::snprintf(reproducer, sizeof reproducer, "to repeat it: %.200s %.200s %llu 1 %llu\n", argv[0], argv[1],
                      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run));
        run_target(damaged_input(corpus, seed, run));
    }
    std::printf("%zu files and %llu runs from seed %llu\n", corpus.size(), static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(seed));
    return 0;
}
