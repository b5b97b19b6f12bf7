// Finds NVRTC: in the toolkit, or in a Python package that contains it.
#pragma once

#include <string>
#include <vector>

#include "cuda/dynamic_library.h"

namespace kvjit::rt {

/// The texts of errors about NVRTC.
extern const LibraryText kNvrtcText;

/// Folders to search after the linker's, in order: lib64 and lib of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda; the
/// Python packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12 of $VIRTUAL_ENV, $CONDA_PREFIX, ~/.local, /usr/local
/// and /usr, newest Python first; $CONDA_PREFIX/lib. Only those that exist. A set-user-id program ignores variables.
std::vector<std::string> nvrtc_folders();

/// Names of the library, best first: the newest one whose cubins a driver for CUDA `driver_major` can load; 0: there is
/// no driver.
std::vector<std::string> nvrtc_names(int driver_major);

/// Resolved path of the NVRTC to use. `chosen` wins, then $KVJIT_NVRTC (ignored when set-user-id), then for each name
/// what the linker would load, then nvrtc_folders(). Loads none, unless only the linker's cache knows it. Errors:
/// KVJIT_COMPILER_MISSING.
gen::Result<std::string> find_nvrtc(const std::string& chosen, int driver_major);

/// A line for the library at `path` and for each libnvrtc-builtins beside it, see LibraryFile::describe. Errors:
/// KVJIT_COMPILER_MISSING for a file that is no library.
gen::Result<std::string> describe_nvrtc(const std::string& path);

}  // namespace kvjit::rt
