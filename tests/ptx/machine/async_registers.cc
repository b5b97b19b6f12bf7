#include "ptx/machine/async_registers.h"

#include "ptx/machine/fault.h"

namespace kvjit::ptx {

void AsyncRegisters::refuse(Place place, const std::string& what) const {
    throw Fault(FaultKind::kUndefined, "register " + kernel_.registers[place] + " " + what);
}

void AsyncRegisters::check_fenced() const {
    if (fences_ == 0) throw Fault(FaultKind::kUndefined, "no wgmma.fence comes before the first operation");
}

void AsyncRegisters::check_idle(Place place, const char* what) const {
    if (is_pending(place)) refuse(place, std::string(what) + " before the operation that uses it was waited for");
}

void AsyncRegisters::read(Place place) {
    check_idle(place, "is read");
    Use& use = uses_[place];
    if (use.kind == Kind::kWritten && use.fences == fences_) return;  // a write matters to more operations
    use.kind = Kind::kRead;
    use.fences = fences_;
}

void AsyncRegisters::write(Place place) {
    check_idle(place, "is written");
    uses_[place].kind = Kind::kWritten;
    uses_[place].fences = fences_;
}

std::string AsyncRegisters::describe(const Use& use) {
    switch (use.kind) {
        case Kind::kRead:
            return "was read";
        case Kind::kWritten:
            return "was written";
        case Kind::kSum:
            return "was an accumulator of m64n" + std::to_string(use.n) + "k16";
        case Kind::kFragment:
            return "was a fragment of A";
    }
    return "";
}

void AsyncRegisters::begin_sum(Place place, u16 n) {
    Use& use = uses_[place];
    const bool continues = use.kind == Kind::kSum && use.n == n;
    if (!continues) {
        check_idle(place, "becomes an accumulator of another shape");
        if (use.fences == fences_) refuse(place, describe(use) + ", and is added to without a wgmma.fence after that");
    }
    use = {fences_, static_cast<u16>(use.pending + 1), n, Kind::kSum};
}

void AsyncRegisters::begin_fragment(Place place) {
    Use& use = uses_[place];
    if (use.kind != Kind::kFragment) {
        check_idle(place, "becomes a fragment of A");
        if (use.fences == fences_ && use.kind != Kind::kRead)
            refuse(place, describe(use) + ", and is a fragment of A without a wgmma.fence after that");
    }
    use = {fences_, static_cast<u16>(use.pending + 1), 0, Kind::kFragment};
}

}  // namespace kvjit::ptx
