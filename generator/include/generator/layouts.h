// Engines' and libraries' names for their caches' layouts. What `layout` accepts, its error messages and the lists of
// names all follow from this table.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::gen {

/// A preset of several fields. A spec's canonical text has the fields that the name sets, not the name.
struct NamedLayout {
    std::string_view name;
    std::string_view order;  // the axes, as `layout` takes them
    std::string_view sets;   // the other fields, "cache_mode=page_table,page_size=1"; may be empty
    std::string_view users;  // whose it is
};

inline constexpr std::string_view kBlocks = "cache_mode=block_table";
inline constexpr std::string_view kPair = "value_layout=layout";  // keys and values apart, in one order
inline constexpr std::string_view kBlockPair = "cache_mode=block_table,value_layout=layout";
inline constexpr std::string_view kSequences = "cache_mode=sequence_table";
inline constexpr std::string_view kSequencePair = "cache_mode=sequence_table,value_layout=layout";

inline constexpr NamedLayout kNamedLayouts[] = {
    {"pmx:r1:0", "TL2HD", "", "PMX, revision 1, layout 0"},
    {"pmx:r1:1", "LT2HD", "", "PMX, revision 1, layout 1"},
    {"pmx:r1:2", "LHT2D", "", "PMX, revision 1, layout 2"},
    {"pmx:r1:3", "2LHTD", "", "PMX, revision 1, layout 3"},
    {"pmx:r2:0", "TL2HD", "", "PMX, revision 2, layout 0"},
    {"pmx:r2:1", "LT2HD", "", "PMX, revision 2, layout 1"},
    {"pmx:r2:2", "L2THD", "", "PMX, revision 2, layout 2"},
    {"pmx:r2:3", "L2HTD", "", "PMX, revision 2, layout 3"},
    {"pmx:static:NL2THD", "NL2THD", kSequences, "PMX, static batch: (MaxB, L, 2, MaxS, H, D)"},
    {"pmx:static:LN2HTD", "LN2HTD", kSequences, "PMX, static batch: (L, MaxB, 2, H, MaxS, D)"},
    {"vllm:LBNHC", "LNTH2D", kBlocks, "vLLM, standard layout, key and value side by side"},
    {"vllm:LBHNC", "LNHT2D", kBlocks, "vLLM, standard layout, key and value side by side"},
    {"vllm:LHBNC", "LHNT2D", kBlocks, "vLLM, standard layout, key and value side by side"},
    {"vllm:BLNHC", "NLTH2D", kBlocks, "vLLM, standard layout, blocks of all layers"},
    {"vllm:BLHNC", "NLHT2D", kBlocks, "vLLM, standard layout, blocks of all layers"},
    {"vllm:BHLNC", "NHLT2D", kBlocks, "vLLM, standard layout, blocks of all layers"},
    {"vllm:gpu", "2NTHD", kBlocks, "vLLM, older GPU backends, a tensor a layer"},
    {"vllm:cpu", "2NHTD", kBlocks, "vLLM, older CPU backend, a tensor a layer"},
    {"vllm:rocm", "NHDTd8", "cache_mode=block_table,value_layout=NHDT", "vLLM for ROCm, shuffled keys of 2 bytes"},
    {"vllm:ascend", "NTHD", kBlockPair, "vLLM for Ascend, two tensors a layer"},
    {"flashinfer:NHD", "N2THD", kBlocks, "FlashInfer, a tensor a layer"},
    {"flashinfer:HND", "N2HTD", kBlocks, "FlashInfer, a tensor a layer"},
    {"flashinfer:NHD:apart", "NTHD", kBlockPair, "FlashInfer, keys and values in two tensors"},
    {"flashinfer:HND:apart", "NHTD", kBlockPair, "FlashInfer, keys and values in two tensors"},
    {"trtllm", "N2HTD", kBlocks, "TensorRT-LLM, a tensor a layer"},
    {"trtllm:pool", "NL2HTD", kBlocks, "TensorRT-LLM, blocks of all layers"},
    {"ksana", "2LTHD", "cache_mode=block_pointers", "KsanaLLM, each block where it was allocated"},
    {"ksana:pool", "N2LTHD", kBlocks, "KsanaLLM, blocks in one region"},
    {"atb", "NTHD", kBlockPair, "Ascend ATB, kcache and vcache"},
    {"sglang", "THD", "cache_mode=page_table,page_size=1,value_layout=layout",
     "SGLang, rows of req_to_token picked by row_index"},
    {"sglang:indices", "THD", "cache_mode=token_table,value_layout=layout", "SGLang, kv_indices"},
    {"llama.cpp", "THD", kPair, "llama.cpp with flash attention, two tensors a layer"},
    {"dense:BHTD", "NHTD", kSequencePair, "dense caches (B, H, T, D) that grow along T"},
    {"dense:BTHD", "NTHD", kSequencePair, "dense caches (B, T, H, D) that grow along T"},
    {"lmcache:NB_NL_TWO_BS_NH_HS", "NL2THD", kBlocks, "LMCache, of vLLM's blocks of all layers"},
    {"lmcache:NB_NL_TWO_NH_BS_HS", "NL2HTD", kBlocks, "LMCache, of TensorRT-LLM's pool"},
    {"lmcache:NL_X_TWO_NB_BS_NH_HS", "2NTHD", kBlocks, "LMCache, of vLLM, a tensor a layer"},
    {"lmcache:NL_X_TWO_NB_NH_BS_HS", "2NHTD", kBlocks, "LMCache, of vLLM, a tensor a layer"},
    {"lmcache:NL_X_NB_TWO_BS_NH_HS", "N2THD", kBlocks, "LMCache, of vLLM with FlashInfer, a tensor a layer"},
    {"lmcache:NL_X_NB_TWO_NH_BS_HS", "N2HTD", kBlocks, "LMCache, of vLLM with FlashInfer, a tensor a layer"},
    {"lmcache:NL_X_NB_BS_NH_CS", "NTH2D", kBlocks, "LMCache, of vLLM:LBNHC, a tensor a layer"},
    {"lmcache:NL_X_NB_NH_BS_CS", "NHT2D", kBlocks, "LMCache, of vLLM:LBHNC, a tensor a layer"},
    {"lmcache:NL_X_TWO_X_NB_BS_NH_HS", "NTHD", kBlockPair, "LMCache, of vLLM for Ascend"},
    {"lmcache:TWO_X_NL_X_NB_BS_NH_HS", "NTHD", kBlockPair, "LMCache, of SGLang, in blocks"},
    {"lmcache:TWO_X_NL_X_NBBS_NH_HS", "THD", kPair, "LMCache, of SGLang"},
    {"lmcache:KV_2LTD", "2LTHD", "", "LMCache, its own memory, all layers"},
    {"lmcache:KV_2TD", "2THD", "", "LMCache, its own memory, one layer"},
    {"lmcache:KV_T2D", "T2HD", "", "LMCache, its own memory, one layer"},
};

/// What the names begin with, each once: pmx, vllm, ... A family's names stand together.
constexpr std::vector<std::string_view> layout_families() {
    std::vector<std::string_view> families;
    for (const NamedLayout& layout : kNamedLayouts) {
        const std::string_view family = layout.name.substr(0, layout.name.find(':'));
        if (families.empty() || families.back() != family) families.push_back(family);
    }
    return families;
}

/// The first name of the family that `text` is, or that its part before a colon is: "vllm:LBNHC" of "vllm". Null: it
/// is of none.
inline const NamedLayout* example_of_family(std::string_view text) {
    const std::string_view family = text.substr(0, text.find(':'));
    const auto is_of_family = [&](const NamedLayout& layout) {
        return layout.name.substr(0, layout.name.find(':')) == family;
    };
    const auto* found = std::ranges::find_if(kNamedLayouts, is_of_family);
    return found == std::end(kNamedLayouts) ? nullptr : found;
}

/// PMX's names are also found without "pmx:", and those of revision 2 by their number alone. Null: no such name.
inline const NamedLayout* find_layout(std::string_view text) {
    std::string name(text);
    if (text.size() == 1) name = "r2:" + name;
    if (name.starts_with("r1:") || name.starts_with("r2:")) name = "pmx:" + name;
    const auto it = std::ranges::find(kNamedLayouts, name, &NamedLayout::name);
    return it == std::end(kNamedLayouts) ? nullptr : &*it;
}

}  // namespace kvjit::gen
