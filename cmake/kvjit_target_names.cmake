# The names of targets, as `kvjit targets --names` has them: they must be known while there is no kvjit to ask yet. A test
# compares the two.
set(KVJIT_TARGET_NAMES
  host x86-64 x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4-bf16 x86-64-v4-fp16 x86-64-v4-amx cuda sm_80 sm_86 sm_87 sm_88
  sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_101 sm_101a sm_101f sm_103 sm_103a sm_103f sm_110 sm_110a sm_110f
  sm_120 sm_120a sm_120f sm_121 sm_121a sm_121f cuda-emulated)
