# The target names that `kvjit targets --names` prints, since they are needed before kvjit is built. A test compares the
# two lists.
set(KVJIT_TARGET_NAMES
  host x86-64 x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4-vnni x86-64-v4-bf16 x86-64-v4-fp16 x86-64-v4-amx cuda sm_80 sm_86 sm_87 sm_88
  sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_101 sm_101a sm_101f sm_103 sm_103a sm_103f sm_110 sm_110a sm_110f
  sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f cuda-emulated)
# Features that may follow the name of a CPU level after a +.
set(KVJIT_X86_FEATURES
  cmov cx8 fxsr mmx sse sse2 crc32 cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2 avx avx2 bmi bmi2 f16c fma lzcnt movbe
  xsave avx512f avx512bw avx512cd avx512dq avx512vl avx512vbmi avx512vnni avx512bf16 avx512fp16 amx-tile amx-bf16 amx-int8 adx
  aes amx-fp16 avx512bitalg avx512ifma avx512vbmi2 avx512vp2intersect avx512vpopcntdq avxifma avxneconvert
  avxvnni avxvnniint16 avxvnniint8 sse4a fma4 gfni pclmul prfchw rdrnd rdseed sha sha512 tbm vaes vpclmulqdq xop)
