// wgmma: products of matrices that the tests lay out by themselves, and the places that descriptors tell.
#include <doctest/doctest.h>

#include <string>

#include "ptx/machine/descriptor.h"
#include "ptx/machine/half.h"
#include "ptx/machine/matrices.h"
#include "ptx/warpgroup_lab.h"

namespace kvjit::ptx {
namespace {

// ---- Layouts, number by number -----------------------------------------------------------------------------------

/// A matrix of rows along M or N, and K: where each number lies, by the definitions of the two offsets in ISA
/// 9.7.15.5.1.2.1. `swizzle`: bytes, 0 for none.
struct Layout {
    u32 start = 0, leading = 0, stride = 0;
    u32 swizzle = 0;
    bool is_transposed = false;
    u32 base_offset = 0;

    /// Dense, for `rows` and `depth` numbers along K; returns the bytes that it takes.
    u32 pack(u32 rows, u32 depth) {
        const u32 lines = swizzle == 0 ? 128 : 8 * swizzle;
        if (swizzle == 0) {
            leading = is_transposed ? lines : rows / 8 * lines;
            stride = is_transposed ? depth / 8 * lines : lines;
        } else {
            stride = lines;
            leading = is_transposed ? depth / 8 * lines : 0;
        }
        return 2 * rows * depth;
    }

    u32 unswizzled(u32 row, u32 k) const {
        if (swizzle == 0) {
            const u32 inside = is_transposed ? k % 8 * 16 + row % 8 * 2 : row % 8 * 16 + k % 8 * 2;
            return row / 8 * stride + k / 8 * leading + inside;
        }
        if (!is_transposed) return row / 8 * stride + row % 8 * swizzle + 2 * k;
        const u32 across = swizzle / 2;
        return row / across * leading + k / 8 * stride + k % 8 * swizzle + row % across * 2;
    }
    /// Address bits 4 to 6 are changed by bits 7 to 9: all three, two or one of them.
    u32 place(u32 row, u32 k) const {
        const u32 address = start + unswizzled(row, k), line = (address >> 7) - base_offset;
        const u32 bits = swizzle == 128 ? line & 7 : swizzle == 64 ? line & 3 : swizzle == 32 ? line & 1 : 0;
        return address ^ bits << 4;
    }

    u64 mode() const { return swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0; }
    /// Of the 16 numbers along K from `k` on.
    u64 at(u32 k) const {
        const u32 groups = k / 8;
        const u32 step = swizzle == 0 ? groups * leading : is_transposed ? groups * stride : 2 * k;
        return descriptor(start + step, leading, stride, mode(), base_offset);
    }
};

// ---- Products ----------------------------------------------------------------------------------------------------

struct Case {
    u32 n = 64, depth = 32;
    bool has_fragment = false, accumulates = false;
    Layout a{}, b{};
    i32 scale_a = 1, scale_b = 1;
};

/// Small whole numbers, so that sums are exact whatever the order.
int a_of(u32 row, u32 k) {
    return static_cast<int>((5 * row + 3 * k + row * k) % 7) - 3;
}
int b_of(u32 k, u32 column) {
    return static_cast<int>((2 * k + 7 * column + k * column / 3) % 5) - 2;
}
int c_of(u32 thread, u32 i) {
    return static_cast<int>((thread * 3 + i * 11) % 101);
}

constexpr u32 kThreads = 128;

/// The buffer: shared memory's image, the fragments of A by thread and step, C and then D by thread.
template <class Format>
class Experiment {
public:
    explicit Experiment(const Case& of, const char* type) : of_(of), type_(type) {
        const u32 a_bytes = of_.a.pack(64, of_.depth);
        if (of_.b.start == 0) of_.b.start = (a_bytes + 1023) / 1024 * 1024;
        image_ = of_.b.start + of_.b.pack(of_.n, of_.depth);
        fragments_ = image_;
        sums_ = fragments_ + kThreads * of_.depth / 16 * 16;
        bench_.data.assign((sums_ + kThreads * of_.n * 2) / 8, 0);
        bench_.launch.threads = kThreads;
        bench_.launch.shared_bytes = image_;
        fill();
    }

    void check(const Options& options) {
        bench_.options = options;
        bench_.run(text());
        u32 wrong = 0;
        for (u32 t = 0; t < kThreads; ++t) {
            for (u32 i = 0; i < of_.n / 2; ++i) wrong += sum_at(t, i) != expected(t, i);
        }
        CHECK(wrong == 0);
    }

private:
    template <class T>
    T& at(u32 bytes) {
        return *reinterpret_cast<T*>(reinterpret_cast<std::byte*>(bench_.data.data()) + bytes);
    }
    float& sum_at(u32 thread, u32 i) { return at<float>(sums_ + (thread * of_.n / 2 + i) * 4); }
    /// ISA, figures 148 and 149: a warp has 16 rows; of its lanes each group of four has rows g and g + 8.
    static u32 row_of(u32 thread, bool is_lower) { return thread / 32 * 16 + thread % 32 / 4 + (is_lower ? 8 : 0); }

    void fill() {
        for (u32 k = 0; k < of_.depth; ++k) {
            for (u32 row = 0; row < 64; ++row) at<u16>(of_.a.place(row, k)) = Format::narrow(a_of(row, k));
            for (u32 j = 0; j < of_.n; ++j) at<u16>(of_.b.place(j, k)) = Format::narrow(b_of(k, j));
        }
        for (u32 t = 0; t < kThreads; ++t) {
            for (u32 e = 0; e < of_.depth / 2; ++e) {  // of each step 8: a0 to a7
                const u32 k = e / 8 * 16 + t % 4 * 2 + e % 2 + (e % 8 >= 4 ? 8 : 0);
                at<u16>(fragments_ + t * of_.depth + 2 * e) = Format::narrow(a_of(row_of(t, e / 2 % 2 == 1), k));
            }
            for (u32 i = 0; i < of_.n / 2; ++i) sum_at(t, i) = static_cast<float>(c_of(t, i));
        }
    }

    float expected(u32 thread, u32 i) const {
        const u32 row = row_of(thread, i % 4 >= 2), column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        double sum = of_.accumulates ? c_of(thread, i) : 0;
        for (u32 k = 0; k < of_.depth; ++k) sum += of_.scale_a * a_of(row, k) * of_.scale_b * b_of(k, column);
        return static_cast<float>(sum);
    }

    std::string text() const {
        const u32 registers_of_d = of_.n / 2;
        std::string body = stage(image_) + kPublish + "mul.wide.u32 %rd9, %r1, " + std::to_string(2 * of_.n) +
                           "; add.s64 %rd10, %rd0, %rd9; add.s64 %rd10, %rd10, " + std::to_string(sums_) +
                           "; mul.wide.u32 %rd11, %r1, " + std::to_string(of_.depth) +
                           "; add.s64 %rd12, %rd0, %rd11; add.s64 %rd12, %rd12, " + std::to_string(fragments_) + ";\n";
        for (u32 i = 0; of_.accumulates && i < registers_of_d; ++i)
            body += "ld.global.f32 %f" + std::to_string(i) + ", [%rd10+" + std::to_string(4 * i) + "];\n";
        for (u32 i = 0; of_.has_fragment && i < of_.depth / 4; ++i)
            body += "ld.global.u32 %r" + std::to_string(10 + i) + ", [%rd12+" + std::to_string(4 * i) + "];\n";
        body += kFence;
        for (u32 k = 0; k < of_.depth; k += 16) body += step(k);
        body += kWait;
        for (u32 i = 0; i < registers_of_d; ++i)
            body += "st.global.f32 [%rd10+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
        return body;
    }

    /// In the form that inline assembly takes.
    std::string step(u32 k) const {
        const int first = static_cast<int>(10 + k / 4);
        const bool adds = of_.accumulates || k > 0;
        return "mov.u64 %rd40, " + std::to_string(of_.a.at(k)) + "; mov.u64 %rd41, " + std::to_string(of_.b.at(k)) +
               "; mov.u32 %r8, " + (adds ? "1" : "0") + ";\n{\n.reg .pred p;\nsetp.ne.b32 p, %r8, 0;\n" +
               wgmma(type_, static_cast<int>(of_.n)) + registers("%f", 0, static_cast<int>(of_.n / 2)) + ", " +
               (of_.has_fragment ? registers("%r", first, 4) : "%rd40") + ", %rd41, p, " + std::to_string(of_.scale_a) +
               ", " + std::to_string(of_.scale_b) +
               (of_.has_fragment      ? ""
                : of_.a.is_transposed ? ", 1"
                                      : ", 0") +
               (of_.b.is_transposed ? ", 1" : ", 0") + ";\n}\n";
    }

    Case of_;
    std::string type_;
    Bench bench_;
    u32 image_ = 0, fragments_ = 0, sums_ = 0;
};

void check_product(const Case& of, bool is_bfloat16 = false, const Options& options = {}) {
    CAPTURE(of.n);
    CAPTURE(of.has_fragment);
    CAPTURE(of.b.swizzle);
    CAPTURE(of.a.is_transposed);
    CAPTURE(of.b.is_transposed);
    CAPTURE(is_bfloat16);
    if (is_bfloat16) {
        Experiment<BFloat16>(of, "bf16").check(options);
    } else {
        Experiment<Float16>(of, "f16").check(options);
    }
}

/// As many steps along K as a line of the swizzle has: each begins 32 bytes further on.
u32 depth_of(u32 swizzle) {
    return swizzle == 0 ? 32 : swizzle / 2;
}

TEST_CASE("wgmma multiplies matrices of all layouts, of whatever width") {
    for (const u32 swizzle : {0U, 32U, 64U, 128U}) {
        for (const u32 n : {8U, 64U, 128U, 136U, 256U}) {
            for (const bool is_transposed : {false, true}) {
                const bool is_defined = !is_transposed || swizzle == 0 || n % (swizzle / 2) == 0;
                if (!is_defined) continue;
                Case of{.n = n, .depth = depth_of(swizzle), .has_fragment = true};
                of.b.swizzle = swizzle;
                of.b.is_transposed = is_transposed;
                check_product(of, n == 64);
            }
        }
    }
}

TEST_CASE("wgmma takes A from shared memory, too, K-major and M-major") {
    for (const u32 swizzle : {0U, 32U, 64U, 128U}) {
        for (const int majors : {0, 1, 2, 3}) {
            Case of{.n = 64, .depth = depth_of(swizzle), .accumulates = true};
            of.a.swizzle = of.b.swizzle = swizzle;
            of.a.is_transposed = majors % 2 == 1;
            of.b.is_transposed = majors / 2 == 1;
            check_product(of, majors == 2);
        }
    }
}

TEST_CASE("wgmma adds to D or not, and negates A, B or both") {
    for (const bool accumulates : {false, true}) {
        for (const i32 scale_a : {1, -1}) {
            for (const i32 scale_b : {1, -1}) {
                for (const bool has_fragment : {false, true})
                    check_product({24, 32, has_fragment, accumulates, {}, {}, scale_a, scale_b}, true);
            }
        }
    }
}

TEST_CASE("wgmma's results are the same whenever it executes, and however sums are cut") {
    Case of{.n = 64, .depth = 64, .accumulates = true};
    of.a.swizzle = of.b.swizzle = 128;
    for (const char* options :
         {"wgmma=issue", "wgmma=wait", "seed=2", "seed=3,mma=ampere", "mma=hopper", "mma=exact"}) {
        CAPTURE(options);
        check_product(of, false, parse_options(options));
    }
}

TEST_CASE("a base offset tells where the swizzle's pattern begins") {
    for (const bool is_transposed : {false, true}) {
        for (const u32 offset : {1U, 3U, 7U}) {
            Case of{.n = 64, .depth = 64, .has_fragment = true};
            of.b.swizzle = 128;
            of.b.is_transposed = is_transposed;
            of.b.start = 8192 + 128 * offset;
            of.b.base_offset = offset;
            check_product(of);
        }
    }
}

TEST_CASE("wgmma's sums are cut as mma's are") {
    for (const char* mode : {"narrow", "ampere", "hopper", "exact"}) {
        CAPTURE(mode);
        // A's first row is 2^-12 16 times, B's numbers are that or 0 in odd columns; C is 1.
        Bench bench;
        bench.launch.threads = kThreads;
        bench.launch.shared_bytes = 256;
        bench.options = parse_options(std::string("mma=") + mode);
        u16 row[16], column[16];
        for (int k = 0; k < 16; ++k) row[k] = column[k] = Float16::narrow(0x1p-12);
        column[5] = column[6] = column[15] = Float16::narrow(3 * 0x1p-12);
        const Layout layout{.leading = 128, .stride = 128};
        auto* image = reinterpret_cast<std::byte*>(bench.data.data());
        for (u32 j = 0; j < 8; ++j) {
            for (u32 k = 0; k < 16; ++k) std::memcpy(image + layout.place(j, k), &column[k], 2);
        }
        const std::string pair = std::to_string(row[0] * 0x10001U);
        bench.run(stage(256) + kPublish + "mov.u32 %r10, " + pair + "; mov.u64 %rd41, " + std::to_string(layout.at(0)) +
                  "; mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n" + kFence +
                  wgmma("f16", 8) + "{%f0, %f1, %f2, %f3}, {%r10, %r10, %r10, %r10}, %rd41, 1, 1, 1, 0;\n" + kWait +
                  "setp.ne.s32 %p2, %r1, 0; @%p2 ret; st.global.f32 [%rd0], %f3;");
        CHECK(static_cast<u32>(bench.data[0]) == bits_of(sum_of_products(row, column, 1.0F, bench.options.sums)));
    }
}

// ---- Descriptors -------------------------------------------------------------------------------------------------

TEST_CASE("descriptors tell the places of the ISA's examples") {
    // Figures 168 to 170: exact layouts of 16-bit numbers, MN-major, 2 patterns along M and 16 numbers along K.
    const struct {
        u32 across, m_stride, line,
            k_stride;  // in numbers: ((8, across, 2), (8, 2)):((1, 8, m_stride), (line, k_stride))
        u64 mode;
        u32 mask;  // of the swizzle
    } examples[] = {{1, 64, 8, 128, 0, 0}, {2, 128, 16, 256, 3, 1}, {4, 256, 32, 512, 2, 3}};
    for (const auto& example : examples) {
        CAPTURE(example.mode);
        const u32 m_bytes = 2 * example.m_stride, k_bytes = 2 * example.k_stride;
        const u64 bits =
            example.mode == 0 ? descriptor(0, k_bytes, m_bytes, 0) : descriptor(0, m_bytes, k_bytes, example.mode);
        const std::vector<u32> pieces = pieces_of(bits, {'A', 16 * example.across, true});
        for (u32 group = 0; group < 2 * example.across; ++group) {
            for (u32 k = 0; k < 16; ++k) {
                const u32 number = group % example.across * 8 + group / example.across * example.m_stride +
                                   k % 8 * example.line + k / 8 * example.k_stride;
                const u32 address = kSharedBegin + 2 * number;
                CHECK(pieces[16 * group + k] == (address ^ (address >> 7 & example.mask) << 4));
            }
        }
    }
    // K-major, 128 bytes: the second 16 bytes of row 3 are the third of its line, those of row 11 are 1024 further on.
    const std::vector<u32> pieces = pieces_of(descriptor(0, 0, 1024, 1), {'B', 16, false});
    CHECK(pieces[2 * 3 + 1] == kSharedBegin + 3 * 128 + 32);
    CHECK(pieces[2 * 11 + 1] == kSharedBegin + 1024 + 3 * 128 + 32);
}

std::string refusal(u64 bits, const MatrixShape& shape) {
    try {
        pieces_of(bits, shape);
    } catch (const Fault& fault) {
        CHECK(fault.kind() == FaultKind::kUndefined);
        return fault.what();
    }
    return "none";
}

TEST_CASE("descriptors that the ISA does not define are refused") {
    const MatrixShape k_major{'B', 64, false}, mn_major{'A', 64, true};
    for (const int bit : {14, 15, 30, 31, 46, 47, 48, 52, 61})
        CHECK(refusal(descriptor(0, 128, 128, 0) | u64{1} << bit, k_major) ==
              "the descriptor of B has bits that are no field's");
    CHECK(refusal(descriptor(0, 128, 128, 0, 1), k_major) == "the descriptor of B has a base offset, but no swizzle");
    CHECK(refusal(descriptor(128, 0, 1024, 1), k_major) ==
          "the descriptor of B begins 128 bytes into the pattern of its swizzle of 128 bytes");
    CHECK(refusal(descriptor(1024, 0, 1024, 1, 2), k_major).contains("begins 768 bytes into the pattern"));
    CHECK(refusal(descriptor(112, 0, 1024, 1), k_major).contains("begins 112 bytes"));
    CHECK(refusal(descriptor(32, 0, 512, 2), k_major) == "none");
    CHECK(refusal(descriptor(32, 0, 256, 3), k_major).contains("begins 32 bytes"));
    CHECK(refusal(descriptor(32, 1024, 1024, 1), mn_major).contains("the descriptor of A begins 32 bytes"));
    CHECK(refusal(descriptor(0, 0, 1008, 1), k_major) ==
          "the descriptor of B has a stride dimension's offset of 1008 bytes, no multiple of its swizzle's pattern of "
          "1024");
    CHECK(refusal(descriptor(0, 0, 1008, 1), {'B', 8, false}) == "none");  // not used
    CHECK(refusal(descriptor(0, 256, 512, 2), mn_major).contains("a leading dimension's offset of 256 bytes"));
    CHECK(refusal(descriptor(0, 256, 1024, 1), mn_major) == "none");  // not used
    CHECK(refusal(descriptor(0, 1024, 1024, 1), {'B', 136, true}) ==
          "the descriptor of B has 136 rows, but transposed and with a swizzle of 128 bytes it has multiples of 64");
}

}  // namespace
}  // namespace kvjit::ptx
