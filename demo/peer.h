#pragma once

#include <string>

#include "model.h"

namespace demo {

/// Another library's attention, beside kvjit's: PyTorch's, if Python finds it (peer.py). A process of its own, which
/// waits for work and ends with this object.
class Peer {
public:
    /// Starts it, on so many threads; 0: there is to be none.
    explicit Peer(int threads);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    /// "PyTorch 2.4.1"; "" if there is none.
    const std::string& name() const { return name_; }

    /// Seconds of one layer's attention on sequences of the batch's lengths, on keys and values of its own; 0 if there
    /// is none, or no longer.
    double attend(const RaggedBatch& batch);

private:
    std::string read_line();

    int socket_ = -1;
    int process_ = -1;
    std::string name_;
};

}  // namespace demo
