// A decode-attention kernel in small: data for the tests, compiled by the library, never by the build. The test puts
// `constexpr int kVectorBytes = ...;` in front.
using i64 = long;
using u32 = unsigned;
constexpr int kLanes = kVectorBytes / 4;
constexpr int kHeadDim = 128;
constexpr int kGroup = 4;
constexpr int kBlock = 64;
constexpr int kParts = kHeadDim / kLanes;

typedef float F __attribute__((ext_vector_type(kLanes)));
typedef int I __attribute__((ext_vector_type(kLanes)));
typedef signed char B __attribute__((ext_vector_type(kLanes)));

struct Args {
    const float* query;        // (kGroup, kHeadDim)
    const signed char* key;    // (tokens, kHeadDim)
    const signed char* value;  // (tokens, kHeadDim)
    const float* scale;        // (tokens, 2)
    float* output;             // (kGroup, kHeadDim)
    i64 tokens;
};

static F load(const float* p) {
    F v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

static void store(float* p, F v) {
    __builtin_memcpy(p, &v, sizeof(v));
}

static F widen(const signed char* p) {
    B v;
    __builtin_memcpy(&v, p, sizeof(v));
    return __builtin_convertvector(v, F);
}

static float horizontal_sum(F v) {
    float sum = 0;
    for (int i = 0; i < kLanes; ++i) sum += v[i];
    return sum;
}

// 2^x by a polynomial on the fraction and an exponent built from the integer part.
static F exp2_lanes(F x) {
    x = __builtin_elementwise_max(x, F(-126.0f));
    F whole = __builtin_convertvector(__builtin_convertvector(x, I), F);
    whole += __builtin_convertvector(whole > x, F);  // towards zero becomes downwards: true is -1
    F t = x - whole;
    F p = 0.0018775767f * t + 0.0089893397f;
    p = p * t + 0.055826318f;
    p = p * t + 0.24015361f;
    p = p * t + 0.69315308f;
    p = p * t + 0.99999994f;
    I bits = (__builtin_convertvector(whole, I) + 127) << 23;
    return p * __builtin_bit_cast(F, bits);
}

struct State {
    F acc[kGroup][kParts];
    float max[kGroup];
    float sum[kGroup];
};

static void scores(const Args* a, i64 begin, i64 count, float (*out)[kBlock]) {
    for (i64 t = 0; t < count; ++t) {
        F dot[kGroup] = {};
        for (int part = 0; part < kParts; ++part) {
            F key = widen(a->key + (begin + t) * kHeadDim + part * kLanes);
            for (int g = 0; g < kGroup; ++g) dot[g] = dot[g] + load(a->query + g * kHeadDim + part * kLanes) * key;
        }
        for (int g = 0; g < kGroup; ++g) out[g][t] = horizontal_sum(dot[g]) * a->scale[2 * (begin + t)];
    }
    for (int g = 0; g < kGroup; ++g) {
        for (i64 t = count; t < kBlock; ++t) out[g][t] = -__builtin_inff();
    }
}

static void softmax(State* s, int g, float* row) {
    float top = s->max[g];
    for (int t = 0; t < kBlock; ++t) top = row[t] > top ? row[t] : top;
    F factor = exp2_lanes(F(s->max[g] - top));
    for (int part = 0; part < kParts; ++part) s->acc[g][part] *= factor;
    F sum = 0;
    for (int t = 0; t < kBlock; t += kLanes) {
        F p = exp2_lanes(load(row + t) - top);
        sum += p;
        store(row + t, p);
    }
    s->sum[g] = s->sum[g] * factor[0] + horizontal_sum(sum);
    s->max[g] = top;
}

static void accumulate(const Args* a, State* s, i64 begin, i64 count, const float (*weights)[kBlock]) {
    for (i64 t = 0; t < count; ++t) {
        for (int part = 0; part < kParts; ++part) {
            F value = widen(a->value + (begin + t) * kHeadDim + part * kLanes) * a->scale[2 * (begin + t) + 1];
            for (int g = 0; g < kGroup; ++g) s->acc[g][part] = s->acc[g][part] + weights[g][t] * value;
        }
    }
}

extern "C" __attribute__((visibility("hidden"))) void sample_kernel(const Args* a) {
    State s;
    for (int g = 0; g < kGroup; ++g) {
        s.max[g] = -1e30f;
        s.sum[g] = 0;
        for (int part = 0; part < kParts; ++part) s.acc[g][part] = 0;
    }
    float weights[kGroup][kBlock];
    for (i64 begin = 0; begin < a->tokens; begin += kBlock) {
        i64 count = a->tokens - begin < kBlock ? a->tokens - begin : kBlock;
        scores(a, begin, count, weights);
        for (int g = 0; g < kGroup; ++g) softmax(&s, g, weights[g]);
        accumulate(a, &s, begin, count, weights);
    }
    for (int g = 0; g < kGroup; ++g) {
        for (int part = 0; part < kParts; ++part) {
            store(a->output + g * kHeadDim + part * kLanes, s.acc[g][part] / s.sum[g]);
        }
    }
}
