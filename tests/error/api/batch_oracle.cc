#include "batch_oracle.h"

#include <map>
#include <set>
#include <utility>

namespace kvjit::test {
namespace {

bool rises_from_0(const std::vector<std::int64_t>& starts, std::int64_t count) {
    bool rises = starts[0] == 0;
    for (std::int64_t b = 0; b < count; ++b) rises = rises && starts[b] <= starts[b + 1];
    return rises;
}

/// A token's place: block and token in it, or 0 and its slot. A place outside the cache is {-1, -1}.
using Place = std::pair<std::int64_t, std::int64_t>;

/// The table as rows of entries; a row that the table hasn't got is empty.
std::vector<std::int64_t> row_of(const BatchCase& c, std::int64_t b) {
    const auto cut = [&](std::int64_t begin, std::int64_t end) {
        const bool inside = begin >= 0 && begin <= end && end <= std::ssize(c.table);
        return inside ? std::vector(c.table.begin() + begin, c.table.begin() + end) : std::vector<std::int64_t>();
    };
    if (c.spec.cache_mode == KVJIT_OFFSET) return cut(b, b + 1);
    if (c.spec.cache_mode == KVJIT_TOKEN_TABLE) return cut(c.kvstarts[b], c.kvstarts[b + 1]);
    if (!c.rowstarts.empty()) return cut(c.rowstarts[b], c.rowstarts[b + 1]);
    const std::int64_t columns = c.batch.cachestarts.shape[1];
    const std::int64_t row = c.row_index.empty() ? b : c.row_index[b];
    return cut(row * columns, (row + 1) * columns);
}

/// Which entry of its row a token falls into.
std::int64_t entry_of(const BatchCase& c, std::int64_t t) {
    if (c.spec.cache_mode == KVJIT_OFFSET) return 0;
    return c.spec.cache_mode == KVJIT_TOKEN_TABLE ? t : t / c.spec.page_size;
}

Place place_of(const BatchCase& c, const std::vector<std::int64_t>& row, std::int64_t t) {
    constexpr Place kOutside{-1, -1};
    const bool offset = c.spec.cache_mode == KVJIT_OFFSET;
    const std::int64_t page = c.spec.cache_mode == KVJIT_TOKEN_TABLE ? 1 : c.spec.page_size;
    const std::int64_t entry = entry_of(c, t);
    const std::int64_t inside = offset ? t : t % page;
    if (entry >= std::ssize(row)) return kOutside;
    if (c.spec.cache_mode == KVJIT_BLOCK_TABLE) {
        return row[entry] >= 0 && row[entry] < c.batch.num_blocks ? Place(row[entry], inside) : kOutside;
    }
    const std::int64_t slot = row[entry] + inside;
    return row[entry] >= 0 && slot < c.batch.max_tokens ? Place(0, slot) : kOutside;
}

bool has_legal_rows(const BatchCase& c) {
    const std::int64_t rows = c.batch.cachestarts.shape[0];
    const bool csr = !c.rowstarts.empty();
    if (csr && (!rises_from_0(c.rowstarts, c.batch.batch_size) || c.rowstarts[c.batch.batch_size] > rows)) return false;
    for (const std::int64_t row : c.row_index) {
        if (row < 0 || row >= rows) return false;
    }
    return true;
}

// ---- Every fault ----------------------------------------------------------------------------------------

using Faults = std::vector<BatchFault>;

void add_starts(const char* name, const std::vector<std::int64_t>& starts, Faults& faults) {
    if (starts.front() != 0) faults.push_back({name, starts.front(), 0, 0});
    const std::int64_t count = std::ssize(starts) - 1;
    for (std::int64_t b = 0; b < count; ++b) {
        if (starts[b + 1] < starts[b]) faults.push_back({name, starts[b + 1], starts[b], b});
    }
    if (starts.back() < 0) faults.push_back({name, starts.back(), 0, count - 1});
}

void add_positions(const BatchCase& c, Faults& faults) {
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::int64_t past = c.start_pos[b];
        const std::int64_t fits = c.kvstarts[b + 1] - c.kvstarts[b] - (c.seqstarts[b + 1] - c.seqstarts[b]);
        if (fits < 0) {
            faults.push_back({"kvstarts", c.kvstarts[b + 1], c.kvstarts[b + 1] - fits, b});
        } else if (past != fits) {
            faults.push_back({"start_pos", past, past < 0 ? 0 : fits, b});
        }
    }
}

void add_rows(const BatchCase& c, Faults& faults) {
    const std::int64_t* shape = c.batch.cachestarts.shape;
    const bool csr = !c.rowstarts.empty();
    if (csr) add_starts("rowstarts", c.rowstarts, faults);
    if (csr && c.rowstarts.back() > shape[0])
        faults.push_back({"rowstarts", c.rowstarts.back(), shape[0], c.batch.batch_size - 1});
    for (std::int64_t b = 0; b < std::ssize(c.row_index); ++b) {
        if (c.row_index[b] < 0 || c.row_index[b] >= shape[0])
            faults.push_back({"row_index", c.row_index[b], shape[0], b});
    }
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::int64_t keys = c.kvstarts[b + 1] - c.kvstarts[b];
        const std::int64_t room = (csr ? c.rowstarts[b + 1] - c.rowstarts[b] : shape[1]) * c.spec.page_size;
        if (keys > room) faults.push_back({"kvstarts", keys, room, b});
    }
}

void add_entries(const BatchCase& c, Faults& faults) {
    const std::int64_t room = c.spec.cache_mode == KVJIT_BLOCK_TABLE ? c.batch.num_blocks : c.batch.max_tokens;
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::vector<std::int64_t> row = row_of(c, b);
        std::set<std::int64_t> bad;
        for (std::int64_t t = 0; t < c.kvstarts[b + 1] - c.kvstarts[b]; ++t) {
            if (place_of(c, row, t).second < 0) bad.insert(entry_of(c, t));
        }
        for (const std::int64_t p : bad) faults.push_back({"cachestarts", row[p], room, b});
    }
}

void add_shared(const BatchCase& c, Faults& faults) {
    std::map<Place, std::int64_t> last;  // sequence that stores there
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::vector<std::int64_t> row = row_of(c, b);
        for (std::int64_t t = c.start_pos[b]; t < c.kvstarts[b + 1] - c.kvstarts[b]; ++t) {
            const Place place = place_of(c, row, t);
            const bool blocks = c.spec.cache_mode == KVJIT_BLOCK_TABLE;
            if (!last.insert({place, b}).second)
                faults.push_back({"cachestarts", blocks ? place.first : place.second, 0, b});
        }
    }
}

}  // namespace

bool is_legal(const BatchCase& c, bool stores) {
    const std::int64_t count = c.batch.batch_size;
    if (!rises_from_0(c.seqstarts, count) || !rises_from_0(c.kvstarts, count) || !has_legal_rows(c)) return false;
    std::set<Place> stored;
    for (std::int64_t b = 0; b < count; ++b) {
        const std::int64_t n = c.seqstarts[b + 1] - c.seqstarts[b];
        const std::int64_t m = c.kvstarts[b + 1] - c.kvstarts[b];
        if (stores && (c.start_pos[b] < 0 || c.start_pos[b] + n != m)) return false;
        const std::vector<std::int64_t> row = row_of(c, b);
        for (std::int64_t t = 0; t < m; ++t) {
            const Place place = place_of(c, row, t);
            if (place.second < 0) return false;
            if (stores && t >= c.start_pos[b] && !stored.insert(place).second) return false;
        }
    }
    return true;
}

std::vector<BatchFault> faults_of(const BatchCase& c, bool stores) {
    Faults faults;
    add_starts("seqstarts", c.seqstarts, faults);
    add_starts("kvstarts", c.kvstarts, faults);
    if (stores) add_positions(c, faults);
    if (gen::is_paged(c.spec)) add_rows(c, faults);
    if (faults.empty()) add_entries(c, faults);
    if (faults.empty() && stores) add_shared(c, faults);
    return faults;
}

}  // namespace kvjit::test
