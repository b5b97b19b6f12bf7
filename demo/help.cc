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

What it prints, and what to look at:

  Programs   what compiling each cost, and finding it on disk at the next start
  Steps      what a step takes, and its programs on one layer: their share of a step, what they read or compute in a
             second beside what this machine can, measured at the same moment; the same by plain loops, and by PyTorch
             where Python has it
  Checks     errors against loops in double; whether one thread gives the same bits as several; whether anything was
             compiled while it served. Exit code 0: all is as it must be; 1: it is not; 2: the demo could not run
  Try next   three commands, and what they show

It takes well under a minute, and 2 GiB of memory are enough.

  --steps N     steps to run, up to 1000000 (48; cuda-emulated 4)
  --layers N    layers of the model, each with a cache of its own, up to 1024 (4; cuda-emulated 1; Llama has 32)
  --threads N   threads of kvjit's pool, on CPU targets, up to one a core (0: one a core)
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

const char kNext[] =
    R"(  ./dev demo --bundle                  no compiler: the same kernels out of a file that the build made
  ./dev demo --target cuda-emulated    the GPU's kernels on this CPU, each access to memory checked (slow, so fewer)
  build/kvjit inspect head_dim=128 group=4 quant_bit=8 cache_mode=page_table --program decode --emit asm
                                       the machine code of such a decode program
)";

}  // namespace demo
