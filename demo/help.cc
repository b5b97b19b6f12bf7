#include "options.h"

namespace demo {

const char kHelp[] =
    R"(kvjit_demo: the attention part of an LLM engine's step loop, on kvjit

An engine works in steps. In each, some sequences decode (one new token), others prefill (a chunk of their prompt),
requests arrive and finish. For every layer of the model it then calls attention once, for the whole ragged batch. This
program does that, and nothing else of a model: it makes up queries, keys and values.

  shape    Llama 3 8B's attention: 32 query heads over 8 kv heads of 128, float16
  cache    int8 with float16 scales, axes L2HTD, in pages of 128 tokens handed out by a small allocator
  kvjit    engine -> kernel (once), kernel -> plan (once a step), plan -> run (once a layer)

It prints what compiling cost and what finding the programs on disk costs, tokens a second, bytes read a second beside
what the machine can read at all, the largest error against a plain loop in double, and how many programs were compiled
while it served. Exit code 0: the error is within float16's, and there were none.

  --steps N     steps to run, up to 1000000 (48; cuda-emulated 4)
  --layers N    layers of the model, each with a cache of its own, up to 1024 (4; cuda-emulated 1; Llama has 32)
  --threads N   threads of kvjit's pool, on CPU targets, up to 1024 (0: one a core)
  --target T    where attention runs (host)
                  host            this machine's CPU, with all that it has
                  x86-64          any such CPU; also x86-64-v2, x86-64-v3, x86-64-v4
                  cuda, cuda:N    the first GPU, or GPU N; takes NVIDIA's driver and NVRTC. More sequences, longer ones
                  cuda-emulated   CUDA's kernels on this CPU, checked as they run: slow, so a few short sequences
  --bundle[=F]  take the kernels from bundle F, compile nothing (F: the one that the build made, for x86-64, x86-64-v3
                and x86-64-v4)
  --seed N      of requests and data (1)
  --help        this text

NO_COLOR in the environment: no colour, also on a terminal.
)";

}  // namespace demo
