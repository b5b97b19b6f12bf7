// Spec texts that are refused name the field, what it got and what it takes.
#include <cstring>
#include <string>

#include "public_call.h"

namespace kvjit::test {
namespace {

struct SpecMisuse {
    const char* text;
    const char* field;
    const char* got;
    const char* takes;
};

constexpr SpecMisuse kMisuses[] = {
    // unknown
    {"op=Nonsense", "op", "Nonsense", "KeyValueCache | MultiHeadAttention | MultiHeadCacheAttention | Merge"},
    {"head_size=128", "head_size", "unknown field", "head_dim"},
    {"=128", "", "unknown field", "head_dim"},
    {"head_dim", "head_dim", "head_dim", "field=value"},
    {"OP=Merge", "OP", "unknown field", "op"},
    // bad values
    {"head_dim=", "head_dim", "\"\"", "a multiple of 8"},
    {"head_dim=12", "head_dim", "12", "a multiple of 8 from 8 to 512"},
    {"head_dim=0", "head_dim", "0", "a multiple of 8 from 8 to 512"},
    {"head_dim=520", "head_dim", "520", "a multiple of 8 from 8 to 512"},
    {"head_dim=-8", "head_dim", "-8", "a multiple of 8 from 8 to 512"},
    {"head_dim=64x", "head_dim", "64x", "a multiple of 8 from 8 to 512"},
    {"head_dim=99999999999999999999", "head_dim", "99999999999999999999", "a multiple of 8 from 8 to 512"},
    {"group=0", "group", "0", "1 to 256"},
    {"group=257", "group", "257", "1 to 256"},
    {"t1=i32", "t1", "i32", "f32 | f16 | bf16 | i8"},
    {"t1=auto", "t1", "auto", "f32 | f16 | bf16 | i8"},
    {"t3=i8", "t3", "i8", "auto | f32 | f16"},
    {"quant_bit=3", "quant_bit", "3", "0 | 8 | 4"},
    {"quant_bit=8,quant_group=2", "quant_group", "2", "power of two"},
    {"cache_mode=paged", "cache_mode", "paged", "offset | token_table | page_table | block_table"},
    {"page_size=0", "page_size", "0", "1 to"},
    {"page_size=-4", "page_size", "-4", "1 to"},
    {"index_type=i8", "index_type", "i8", "i64 | i32"},
    {"is_causal=yes", "is_causal", "yes", "0 | 1"},
    {"attn_mask=1", "attn_mask", "1", "0 | 2 | 3"},
    {"layout=TL2DD", "layout", "TL2DD", "an order of"},
    {"layout=TL2HHD", "layout", "TL2HHD", "an order of"},
    {"layout=TLD", "layout", "TLD", "an order of"},
    {"layout=4", "layout", "4", "0..3"},
    {"layout=r3:1", "layout", "r3:1", "r1:0..r1:3"},
    {"layout=TL2HDTL2HD", "layout", "TL2HDTL2HD", "an order of"},
    {"group=2,group=2", "group", "2", "once"},
    // contradictions
    {"op=MultiHeadCacheAttention,t1=i8", "t1", "i8", "KeyValueCache"},
    {"op=KeyValueCache,t1=i8,quant_bit=8", "quant_bit", "8", "0"},
    {"op=KeyValueCache,quant_bit=8,t2=f16", "t2", "f16", "auto"},
    {"op=KeyValueCache,t1=f16,t2=i8", "t2", "i8", "t1=i8"},
    {"op=KeyValueCache,t1=i8,t2=f16", "t2", "f16", "t1=i8"},
    {"head_dim=24,quant_bit=8,quant_group=16", "quant_group", "16", "divides"},
    {"head_dim=48,quant_bit=8,quant_group=12", "quant_group", "12", "power of two"},
    {"cache_mode=block_table,layout=L2HTD", "layout", "L2HTD", "block_table"},
    {"cache_mode=page_table,layout=N2LTHD", "layout", "N2LTHD", "block_table"},
};

TEST_CASE("bad spec texts") {
    for (const SpecMisuse& misuse : kMisuses) {
        CAPTURE(std::string(misuse.text));
        kvjit_spec spec;
        kvjit_spec_init(&spec);
        spec.head_dim = 80;
        kvjit_error error = new_error();
        CHECK(kvjit_spec_parse(misuse.text, &spec, &error) == KVJIT_BAD_SPEC);
        const std::string message = error.message;
        CAPTURE(message);
        CHECK(error.status == KVJIT_BAD_SPEC);
        CHECK(error.argument == std::string(misuse.field));
        CHECK(message.find(misuse.field) != message.npos);
        CHECK(message.find(misuse.got) != message.npos);
        CHECK(message.find(misuse.takes) != message.npos);
        CHECK(spec.head_dim == 80);
    }
}

struct NumberMisuse {
    const char* text;
    std::int64_t value, limit;
};

constexpr NumberMisuse kNumberMisuses[] = {
    {"head_dim=-8", -8, 8},
    {"head_dim=520", 520, 512},
    {"head_dim=12", 12, 8},  // what it takes multiples of
    {"group=257", 257, 256},
    {"page_size=0", 0, 1},
    {"page_size=99999999999", 99999999999, 1048576},
    {"quant_group=513", 513, 512},
    {"quant_bit=8,quant_group=256,head_dim=64", 256, 64},
    {"quant_bit=3", 3, 0},   // one of a few: no limit
    {"head_dim=64x", 0, 0},  // no number
    {"t1=i32", 0, 0},
};

TEST_CASE("bad numbers of a spec have a value and a limit, which the message repeats") {
    for (const NumberMisuse& misuse : kNumberMisuses) {
        CAPTURE(std::string(misuse.text));
        kvjit_spec spec;
        kvjit_error error = new_error();
        CHECK(kvjit_spec_parse(misuse.text, &spec, &error) == KVJIT_BAD_SPEC);
        const std::string message = error.message;
        CAPTURE(message);
        CHECK(error.value == misuse.value);
        CHECK(error.limit == misuse.limit);
        CHECK((error.value == 0 || message.find(std::to_string(error.value)) != message.npos));
        CHECK((error.limit == 0 || message.find(std::to_string(error.limit)) != message.npos));
    }
}

TEST_CASE("spec structs are checked where they are used") {
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    spec.head_dim = 7;
    kvjit_kernel* kernel = nullptr;
    kvjit_error error = new_error();
    CHECK(kvjit_engine_kernel(shared_engine(), &spec, nullptr, &kernel, &error) == KVJIT_BAD_SPEC);
    CHECK(error.argument == std::string("head_dim"));
    CHECK(error.value == 7);
    CHECK(error.limit == 8);
    CHECK(kernel == nullptr);
    spec.struct_size = 4096;
    CHECK(kvjit_engine_kernel(shared_engine(), &spec, nullptr, &kernel, &error) == KVJIT_BAD_ARGUMENT);
    CHECK(error.argument == std::string("spec.struct_size"));
    CHECK(error.value == 4096);
}

TEST_CASE("an order of axes without its NUL may have been cut, and is refused, legal or not") {
    constexpr struct {
        const char* name;
        char (kvjit_spec::*member)[16];
    } kOrders[] = {{"layout", &kvjit_spec::layout},
                   {"value_layout", &kvjit_spec::value_layout},
                   {"to_layout", &kvjit_spec::to_layout},
                   {"to_value_layout", &kvjit_spec::to_value_layout}};
    for (const auto& [name, member] : kOrders) {
        kvjit_spec spec;
        kvjit_spec_init(&spec);
        std::memcpy(spec.*member, "NTL2HDt1024d1024", sizeof(spec.*member));
        kvjit_kernel* kernel = nullptr;
        kvjit_error error = new_error();
        CHECK(kvjit_engine_kernel(shared_engine(), &spec, nullptr, &kernel, &error) == KVJIT_BAD_SPEC);
        CHECK(error.argument == std::string(name));
        CHECK(error.value == 16);
        CHECK(error.limit == 15);
    }
}

TEST_CASE("unknown targets") {
    for (const char* name : {"", "x86-64-v5", "native", "sm_90a?", "x86-64-v3 "}) {
        CAPTURE(std::string(name));
        kvjit_target* target = nullptr;
        kvjit_error error = new_error();
        CHECK(kvjit_target_create(name, &target, &error) == KVJIT_BAD_TARGET);
        CHECK(std::string(error.message).find(name) != std::string::npos);
        CHECK(target == nullptr);
    }
}

TEST_CASE("layouts that have a name are handed out, and each is one that a spec takes") {
    struct Rows {
        int count = 0;
    } rows;
    kvjit_spec_layouts(
        [](void* context, const char* name, const char* order, const char* sets, const char* users) {
            CAPTURE(name);
            ++static_cast<Rows*>(context)->count;
            kvjit_spec named, spelt;
            kvjit_spec_init(&named);
            kvjit_spec_init(&spelt);
            kvjit_error error = new_error();
            CHECK(kvjit_spec_parse((std::string("layout=") + name).c_str(), &named, &error) == KVJIT_OK);
            const std::string fields = std::string("layout=") + order + "," + sets;
            CHECK(kvjit_spec_parse(fields.c_str(), &spelt, &error) == KVJIT_OK);
            CHECK(std::memcmp(&named, &spelt, sizeof named) == 0);
            CHECK(users[0] != '\0');
        },
        &rows);
    CHECK(rows.count > 30);
    kvjit_spec_layouts(nullptr, &rows);
}

}  // namespace
}  // namespace kvjit::test
