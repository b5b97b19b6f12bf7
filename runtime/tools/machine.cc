#include "machine.h"

namespace kvjit::tool {

kvjit_plan_options plan_options(const Machine& machine, const kvjit_batch& host) {
    kvjit_plan_options options;
    kvjit_plan_options_init(&options);
    if (machine.on_cuda) {
        options.host_batch = &host;
        options.stream = machine.stream;
    } else {
        options.num_threads = machine.num_threads;
    }
    return options;
}

}  // namespace kvjit::tool
