#include "limits/cuda/loops_ptx.h"

namespace kvjit::limits {
namespace {

/// "%f7"
std::string reg(const char* kind, int number) {
    return "%" + std::string(kind) + std::to_string(number);
}

/// "{%r7, %r8}"
std::string registers(const char* kind, int first, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + reg(kind, first + i);
    return text + "}";
}

/// A kernel. `body` finds the thread's number in the grid in %r0, and in the block in %r5; the grid's threads in %r1,
/// the rounds in %r2, the memory's address in %rd0. `store` finds that of the thread's sum in %rd1.
std::string kernel(const std::string& name, const std::string& body, const std::string& store) {
    return "\n.visible .entry " + name +
           "(\n"
           "    .param .align 8 .b8 work[32]\n"
           ")\n"
           ".maxntid " +
           std::to_string(kLoopThreads) +
           ", 1, 1\n"
           "{\n"
           "    .reg .pred %p<2>;\n"
           "    .reg .b32 %r<40>;\n"
           "    .reg .f32 %f<40>;\n"
           "    .reg .b64 %rd<10>;\n"
           "    ld.param.u64 %rd0, [work];\n"
           "    ld.param.u64 %rd1, [work+8];\n"
           "    ld.param.u32 %r2, [work+16];\n"
           "    mov.u32 %r3, %ctaid.x;\n"
           "    mov.u32 %r4, %ntid.x;\n"
           "    mov.u32 %r5, %tid.x;\n"
           "    mov.u32 %r6, %nctaid.x;\n"
           "    mad.lo.s32 %r0, %r3, %r4, %r5;\n"
           "    mul.lo.s32 %r1, %r6, %r4;\n"
           "    mul.wide.u32 %rd2, %r0, 4;\n"
           "    add.s64 %rd1, %rd1, %rd2;\n" +
           body + store + "    ret;\n}\n";
}

/// Counts down to 0, and jumps back to `label` until then.
std::string repeat(const std::string& counter, const std::string& label) {
    return "    add.s32 " + counter + ", " + counter +
           ", -1;\n"
           "    setp.ne.s32 %p0, " +
           counter +
           ", 0;\n"
           "    @%p0 bra " +
           label + ";\n";
}

std::string add_up(int count) {
    std::string text;
    for (int i = 1; i < count; ++i) text += "    add.f32 %f0, %f0, " + reg("f", i) + ";\n";
    return text + "    st.global.f32 [%rd1], %f0;\n";
}

std::string start_chains(int chains, int registers_each) {
    std::string text;
    for (int i = 0; i < chains * registers_each; ++i) {
        text += "    mov.u32 %r7, " + std::to_string(i / registers_each) + ";\n    cvt.rn.f32.u32 " + reg("f", i) +
                ", %r7;\n";
    }
    return text;
}

/// Sums of a load's four words, so that nothing that was loaded can be left out.
std::string read_loop() {
    std::string loads, sums;
    for (int i = 0; i < kLoads; ++i) {
        const int first = 12 + 4 * i;
        loads += "    ld.global.v4.u32 " + registers("r", first, 4) + ", [%rd4];\n    add.s64 %rd4, %rd4, %rd3;\n";
        for (int word = 0; word < 4; ++word) {
            sums +=
                "    add.s32 " + reg("r", 8 + word) + ", " + reg("r", 8 + word) + ", " + reg("r", first + word) + ";\n";
        }
    }
    std::string start, store;
    for (int word = 0; word < 4; ++word) start += "    mov.u32 " + reg("r", 8 + word) + ", 0;\n";
    for (int word = 1; word < 4; ++word) store += "    add.s32 %r8, %r8, " + reg("r", 8 + word) + ";\n";
    return kernel(kReadKernel,
                  start +
                      "    mul.wide.u32 %rd2, %r0, 16;\n"
                      "    add.s64 %rd0, %rd0, %rd2;\n"
                      "    mul.wide.u32 %rd3, %r1, 16;\n"
                      "$READ_ROUND:\n"
                      "    ld.param.u32 %r7, [work+20];\n"
                      "    mov.u64 %rd4, %rd0;\n"
                      "$READ_TURN:\n" +
                      loads + sums + repeat("%r7", "$READ_TURN") + repeat("%r2", "$READ_ROUND"),
                  store + "    st.global.u32 [%rd1], %r8;\n");
}

std::string multiply_add_loop() {
    std::string links;
    for (int i = 0; i < kChains * kLinks; ++i) {
        const std::string chain = reg("f", i % kChains);
        links += "    fma.rn.f32 " + chain + ", " + chain + ", %f38, %f39;\n";
    }
    return kernel(kMultiplyAddKernel,
                  "    ld.param.f32 %f38, [work+24];\n"
                  "    ld.param.f32 %f39, [work+28];\n" +
                      start_chains(kChains, 1) + "$ADD_ROUND:\n" + links + repeat("%r2", "$ADD_ROUND"),
                  add_up(kChains));
}

std::string matrices_loop() {
    std::string factors, links;
    for (int word = 0; word < kFactorBytes / 4; ++word) {
        factors += "    ld.global.u32 " + reg("r", 12 + word) + ", [%rd0+" + std::to_string(4 * word) + "];\n";
    }
    for (int i = 0; i < kMatrixChains * kMatrixLinks; ++i) {
        const std::string chain = registers("f", i % kMatrixChains * 4, 4);
        links += "    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + chain + ", " + registers("r", 12, 4) +
                 ", " + registers("r", 16, 2) + ", " + chain + ";\n";
    }
    return kernel(kMatricesKernel,
                  "    mul.wide.u32 %rd2, %r5, " + std::to_string(kFactorBytes) +
                      ";\n"
                      "    add.s64 %rd0, %rd0, %rd2;\n" +
                      factors + start_chains(kMatrixChains, 4) + "$MATRIX_ROUND:\n" + links +
                      repeat("%r2", "$MATRIX_ROUND"),
                  add_up(4 * kMatrixChains));
}

}  // namespace

std::string loops_ptx() {
    return ".version 7.0\n.target sm_80\n.address_size 64\n" + read_loop() + multiply_add_loop() + matrices_loop();
}

}  // namespace kvjit::limits
