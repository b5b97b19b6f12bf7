#include "options.h"

#include <getopt.h>

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace demo {

const char kHelp[] =
    R"(engine_loop: the attention part of an LLM engine's step loop, on kvjit

An engine works in steps. In each, some sequences decode (one new token), others prefill (a chunk of their prompt),
requests arrive and finish. For every layer of the model it then calls attention once, for the whole ragged batch. This
program does that, and nothing else of a model: it makes up queries, keys and values.

  shape    Llama 3 8B's attention: 32 query heads over 8 kv heads of 128, float16
  cache    int8 with float16 scales, axes L2HTD, in pages of 128 tokens handed out by a small allocator
  kvjit    engine -> kernel (once), kernel -> plan (once a step), plan -> run (once a layer)

It prints what compiling cost and what finding the programs on disk costs, tokens a second, bytes read a second beside
what the machine can read at all, and the largest error against a plain loop in double. Exit code 0: the error is within
float16's.

  --steps N     steps to run (48)
  --layers N    layers of the model, each with a cache of its own (4; Llama has 32)
  --threads N   threads of kvjit's pool (0: one a core)
  --target T    instructions to use: host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4 (host)
  --seed N      of requests and data (1)
  --help        this text

NO_COLOR in the environment: no colour, also on a terminal.
)";

namespace {

template <class T>
T number(const char* text, T least, const std::string& name) {
    const std::string_view view(text);
    T value{};
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error == std::errc() && end == view.data() + view.size() && value >= least) return value;
    throw std::runtime_error("--" + name + " is \"" + text + "\"; it takes a number from " + std::to_string(least));
}

}  // namespace

Options parse_options(int argc, char** argv) {
    const option names[] = {{"steps", required_argument, nullptr, 's'},
                            {"layers", required_argument, nullptr, 'l'},
                            {"threads", required_argument, nullptr, 't'},
                            {"target", required_argument, nullptr, 'g'},
                            {"seed", required_argument, nullptr, 'e'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found; (found = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        switch (found) {
            case 's':
                options.steps = number(optarg, 1, "steps");
                break;
            case 'l':
                options.layers = number(optarg, 1, "layers");
                break;
            case 't':
                options.threads = number(optarg, 0, "threads");
                break;
            case 'g':
                options.target = optarg;
                break;
            case 'e':
                options.seed = number<std::uint64_t>(optarg, 0, "seed");
                break;
            case 'h':
                options.help = true;
                break;
            default:
                throw std::runtime_error("engine_loop --help lists the options");
        }
    }
    if (optind < argc) throw std::runtime_error(std::string("unexpected argument ") + argv[optind]);
    return options;
}

}  // namespace demo
