#include "bundle/compiler_path.h"

#include <dlfcn.h>

#include "environment.h"
#include "kvjit/kvjit.h"
#include "library_search.h"

namespace kvjit::tool {

std::string compiler_path() {
    Dl_info info;
    const bool chosen = !rt::environment_text(rt::Variable::kCompiler).value_or("").empty();
    if (chosen || dladdr(reinterpret_cast<const void*>(&kvjit_status_name), &info) == 0) return "";
    const std::string library = rt::real_path(info.dli_fname).value_or(info.dli_fname);
    return rt::parent_folder(library) + "/libkvjit_compiler.so";
}

}  // namespace kvjit::tool
