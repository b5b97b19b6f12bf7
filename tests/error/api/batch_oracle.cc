#include "batch_oracle.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kvjit::test {
namespace {

bool rises_from_0(const std::vector<std::int64_t>& starts, std::int64_t count) {
    bool rises = starts[0] == 0;
    for (std::int64_t b = 0; b < count; ++b) rises = rises && starts[b] <= starts[b + 1];
    return rises;
}

/// The table of codes, or that of scales, which blocks at addresses may have besides.
struct Table {
    const char* name;
    const std::vector<std::int64_t>& entries;
    std::int64_t block_bytes;
};

std::vector<Table> tables_of(const BatchCase& c) {
    std::vector<Table> tables{{"cachestarts", c.table, c.code_blocks.bytes}};
    if (!c.scales.empty()) tables.push_back({"scalestarts", c.scales, c.scale_blocks.bytes});
    return tables;
}

/// A token's place: block (or its address) and token in it, or 0 and its slot. A place outside the cache is {-1, -1}.
using Place = std::pair<std::int64_t, std::int64_t>;

bool has_one_entry(const BatchCase& c) {
    return c.spec.cache_mode == KVJIT_OFFSET || c.spec.cache_mode == KVJIT_SEQUENCE_TABLE;
}
bool has_blocks(const BatchCase& c) {
    return c.spec.cache_mode == KVJIT_BLOCK_TABLE || c.spec.cache_mode == KVJIT_SEQUENCE_TABLE;
}
bool has_addresses(const BatchCase& c) {
    return c.spec.cache_mode == KVJIT_BLOCK_POINTERS;
}

/// The table as rows of entries; a row that the table hasn't got is empty.
std::vector<std::int64_t> row_of(const BatchCase& c, const Table& table, std::int64_t b) {
    const auto cut = [&](std::int64_t begin, std::int64_t end) {
        const bool inside = begin >= 0 && begin <= end && end <= std::ssize(table.entries);
        return inside ? std::vector(table.entries.begin() + begin, table.entries.begin() + end)
                      : std::vector<std::int64_t>();
    };
    if (has_one_entry(c)) return cut(b, b + 1);
    if (c.spec.cache_mode == KVJIT_TOKEN_TABLE) return cut(c.kvstarts[b], c.kvstarts[b + 1]);
    if (!c.rowstarts.empty()) return cut(c.rowstarts[b], c.rowstarts[b + 1]);
    const std::int64_t columns = c.batch.cachestarts.shape[1];
    const std::int64_t row = c.row_index.empty() ? b : c.row_index[b];
    return cut(row * columns, (row + 1) * columns);
}

/// Which entry of its row a token falls into.
std::int64_t entry_of(const BatchCase& c, std::int64_t t) {
    if (has_one_entry(c)) return 0;
    return c.spec.cache_mode == KVJIT_TOKEN_TABLE ? t : t / c.spec.page_size;
}

Place place_of(const BatchCase& c, const std::vector<std::int64_t>& row, std::int64_t t) {
    constexpr Place kOutside{-1, -1};
    const std::int64_t page = c.spec.cache_mode == KVJIT_TOKEN_TABLE ? 1 : c.spec.page_size;
    const std::int64_t entry = entry_of(c, t);
    const std::int64_t inside = has_one_entry(c) ? t : t % page;
    if (entry >= std::ssize(row)) return kOutside;
    if (has_addresses(c)) {
        return row[entry] > 0 && row[entry] % kBlockAlignment == 0 ? Place(row[entry], inside) : kOutside;
    }
    if (has_blocks(c)) {
        const bool room = c.spec.cache_mode == KVJIT_BLOCK_TABLE || t < c.batch.max_tokens;
        return room && row[entry] >= 0 && row[entry] < c.batch.num_blocks ? Place(row[entry], inside) : kOutside;
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

/// A sequence's block has room for it.
void add_lengths(const BatchCase& c, Faults& faults) {
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::int64_t keys = c.kvstarts[b + 1] - c.kvstarts[b];
        if (keys > c.batch.max_tokens) faults.push_back({"kvstarts", keys, c.batch.max_tokens, b});
    }
}

void add_entries(const BatchCase& c, const Table& table, Faults& faults) {
    const std::int64_t room = has_addresses(c) ? kBlockAlignment
                              : has_blocks(c)  ? c.batch.num_blocks
                                               : c.batch.max_tokens;
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::vector<std::int64_t> row = row_of(c, table, b);
        std::set<std::int64_t> bad;
        for (std::int64_t t = 0; t < c.kvstarts[b + 1] - c.kvstarts[b]; ++t) {
            if (place_of(c, row, t).second < 0) bad.insert(entry_of(c, t));
        }
        for (const std::int64_t p : bad) faults.push_back({table.name, row[p], room, b});
    }
}

/// Where new tokens go, and of which sequence they are.
std::vector<std::pair<Place, std::int64_t>> new_places(const BatchCase& c, const Table& table) {
    std::vector<std::pair<Place, std::int64_t>> places;
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::vector<std::int64_t> row = row_of(c, table, b);
        for (std::int64_t t = c.start_pos[b]; t < c.kvstarts[b + 1] - c.kvstarts[b]; ++t) {
            places.emplace_back(place_of(c, row, t), b);
        }
    }
    return places;
}

/// Every two new tokens in one place of the cache, or in blocks at addresses that overlap.
void add_shared(const BatchCase& c, const Table& table, Faults& faults) {
    const auto places = new_places(c, table);
    for (std::size_t i = 0; i < places.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const auto& [a, first] = places[j];
            const auto& [b, second] = places[i];
            const std::int64_t low = std::min(a.first, b.first), high = std::max(a.first, b.first);
            if (a.second < 0 || b.second < 0) continue;
            if (a == b) {
                faults.push_back({table.name, has_blocks(c) || has_addresses(c) ? b.first : b.second, 0, second});
            } else if (has_addresses(c) && low != high && high - low < table.block_bytes) {
                faults.push_back({table.name, high, table.block_bytes, second});
            }
        }
    }
}

bool has_legal_lengths(const BatchCase& c, bool stores) {
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::int64_t n = c.seqstarts[b + 1] - c.seqstarts[b];
        const std::int64_t m = c.kvstarts[b + 1] - c.kvstarts[b];
        if (stores && (c.start_pos[b] < 0 || c.start_pos[b] + n != m)) return false;
    }
    return true;
}

/// Every key lies somewhere, and no two new ones reach into one another.
bool is_legal_table(const BatchCase& c, const Table& table, bool stores) {
    std::set<Place> stored;
    std::set<std::int64_t> blocks;
    for (std::int64_t b = 0; b < c.batch.batch_size; ++b) {
        const std::vector<std::int64_t> row = row_of(c, table, b);
        for (std::int64_t t = 0; t < c.kvstarts[b + 1] - c.kvstarts[b]; ++t) {
            const Place place = place_of(c, row, t);
            if (place.second < 0) return false;
            if (!stores || t < c.start_pos[b]) continue;
            if (!stored.insert(place).second) return false;
            blocks.insert(place.first);
        }
    }
    std::int64_t end = 0;
    for (const std::int64_t block : blocks) {  // in the order of their addresses
        if (has_addresses(c) && block < end) return false;
        end = block + table.block_bytes;
    }
    return true;
}

}  // namespace

bool is_legal(const BatchCase& c, bool stores) {
    const std::int64_t count = c.batch.batch_size;
    if (!rises_from_0(c.seqstarts, count) || !rises_from_0(c.kvstarts, count) || !has_legal_rows(c)) return false;
    if (!has_legal_lengths(c, stores)) return false;
    return std::ranges::all_of(tables_of(c), [&](const Table& table) { return is_legal_table(c, table, stores); });
}

std::vector<BatchFault> faults_of(const BatchCase& c, bool stores) {
    Faults faults;
    add_starts("seqstarts", c.seqstarts, faults);
    add_starts("kvstarts", c.kvstarts, faults);
    if (stores) add_positions(c, faults);
    if (has_pages(c.spec)) add_rows(c, faults);
    if (c.spec.cache_mode == KVJIT_SEQUENCE_TABLE) add_lengths(c, faults);
    if (!faults.empty()) return faults;
    for (const Table& table : tables_of(c)) {
        add_entries(c, table, faults);
        if (stores) add_shared(c, table, faults);
    }
    return faults;
}

}  // namespace kvjit::test
