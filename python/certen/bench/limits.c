/* What the machine can do at most: `limits peak THREADS` or `limits bandwidth THREADS BYTES`, printed in units of 1e9
   a second. Compiled with -DREAL=double or float, and -DBYTES=… for the bytes of a vector. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

typedef REAL vector __attribute__((vector_size(BYTES)));
enum { LANES = BYTES / sizeof(REAL), CHAINS = 12, ROUNDS = 25 };
static const long STEPS = 4000000;

static pthread_barrier_t barrier;
static char *a, *b, *c;
static size_t length;
static int threads;
static double (*work)(long thread); /* what it gives keeps the compiler from leaving it out */
static volatile double sink;

/* Independent chains of multiply-adds, each in a register, hide the latency. */
static double fma_chains(long thread) {
    vector x = {0}, y = {0}, s[CHAINS];
    x += (REAL)1.0000001, y += (REAL)1e-9;
    for (int i = 0; i < CHAINS; i++) s[i] = y * (REAL)(i + thread);
    for (long k = 0; k < STEPS; k++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) s[i] = s[i] * x + y;
    }
    vector total = s[0];
    for (int i = 1; i < CHAINS; i++) total += s[i];
    return total[0];
}

static size_t part(long thread) {
    return length / sizeof(vector) / threads * thread;
}

static double read_all(long thread) {
    const vector *from = (const vector *)b;
    vector s[4] = {{0}};
    for (size_t i = part(thread); i + 4 <= part(thread + 1); i += 4)
        for (int j = 0; j < 4; j++) s[j] += from[i + j];
    return (s[0] + s[1] + s[2] + s[3])[0];
}

static double triad(long thread) {
    const vector *x = (const vector *)b, *y = (const vector *)c;
    vector *to = (vector *)a;
    for (size_t i = part(thread); i < part(thread + 1); i++) to[i] = x[i] + (REAL)3 * y[i];
    return 0;
}

/* Stores that go past the caches need not read what they overwrite. */
static double triad_past_caches(long thread) {
    const vector *x = (const vector *)b, *y = (const vector *)c;
    vector *to = (vector *)a;
    for (size_t i = part(thread); i < part(thread + 1); i++) {
        vector value = x[i] + (REAL)3 * y[i];
#if defined __AVX512F__ && BYTES == 64
        _mm512_stream_si512((__m512i *)(to + i), (__m512i)value);
#elif defined __AVX__ && BYTES == 32
        _mm256_stream_si256((__m256i *)(to + i), (__m256i)value);
#elif defined __SSE2__ && BYTES == 16
        _mm_stream_si128((__m128i *)(to + i), (__m128i)value);
#else
        to[i] = value;
#endif
    }
#ifdef __SSE2__
    _mm_sfence();
#endif
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *run(void *argument) {
    long thread = (long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        sink = work(thread);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* The shortest of several rounds. */
static double seconds(double (*what)(long)) {
    double best = 1e30;
    pthread_t all[threads];
    work = what;
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (long t = 0; t < threads; t++)
        if (pthread_create(&all[t], NULL, run, (void *)t)) exit(1);
    for (int round = 0; round < ROUNDS; round++) {
        /* Before they are let go: where cores are few, this thread comes last. */
        double begin = now();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double taken = now() - begin;
        if (taken < best) best = taken;
    }
    for (int t = 0; t < threads; t++) pthread_join(all[t], NULL);
    return best;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    threads = atoi(arguments[2]);
    if (!strcmp(arguments[1], "peak")) {
        printf("%.3f\n", 2e-9 * LANES * CHAINS * STEPS * threads / seconds(fma_chains));
        return 0;
    }
    length = strtoull(arguments[3], NULL, 10);
    char **arrays[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        *arrays[i] = aligned_alloc(1 << 21, length);
        if (!*arrays[i]) return 1;
        memset(*arrays[i], 0, length);
    }
    double rates[] = {length / seconds(read_all), 3.0 * length / seconds(triad), 3.0 * length / seconds(triad_past_caches)};
    double best = 0;
    for (int i = 0; i < 3; i++) best = rates[i] > best ? rates[i] : best;
    printf("%.3f\n", 1e-9 * best);
    return 0;
}
