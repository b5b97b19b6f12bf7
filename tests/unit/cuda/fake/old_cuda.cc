// A libcuda that has its version and nothing else, as far as kvjit looks.
extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int* version) {
    *version = KVJIT_TEST_CUDA_VERSION;
    return 0;
}
#ifdef KVJIT_TEST_CUDA_STARTS
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned) {
    return 0;
}
#endif
