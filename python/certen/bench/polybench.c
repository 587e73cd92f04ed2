/* PolyBench's kernels in plain C: loops as PolyBench has them, threads on the outermost loop that may have them.

   T is the element type, STEPS how often stencils go over their arrays. A function takes sizes, inputs and results, in the order
   of `polybench.py`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALPHA ((T)1.5)
#define BETA ((T)1.2)

static T sqrt_of(T x) { return sizeof(T) == sizeof(float) ? (T)sqrtf((float)x) : (T)sqrt((double)x); }

static T *temporary(size_t elements) {
    T *memory = malloc(elements * sizeof(T));
    if (!memory) abort();
    return memory;
}

void gemm(int m, int n, int k, const T A[m][k], const T B[k][n], const T C[m][n], T out[restrict m][n]) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) out[i][j] = BETA * C[i][j];
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++) out[i][j] += ALPHA * A[i][l] * B[l][j];
    }
}

static void product(int m, int n, int k, T factor, const T A[m][k], const T B[k][n], T out[restrict m][n]) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) out[i][j] = 0;
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++) out[i][j] += factor * A[i][l] * B[l][j];
    }
}

void k2mm(int i, int j, int k, int m, const T A[i][k], const T B[k][j], const T C[j][m], const T D[i][m],
          T out[restrict i][m]) {
    T(*t)[j] = (T(*)[j])temporary((size_t)i * j);
    product(i, j, k, ALPHA, A, B, t);
#pragma omp parallel for
    for (int p = 0; p < i; p++) {
        for (int q = 0; q < m; q++) out[p][q] = BETA * D[p][q];
        for (int l = 0; l < j; l++)
            for (int q = 0; q < m; q++) out[p][q] += t[p][l] * C[l][q];
    }
    free(t);
}

void k3mm(int i, int j, int k, int l, int m, const T A[i][k], const T B[k][j], const T C[j][m], const T D[m][l],
          T out[restrict i][l]) {
    T(*e)[j] = (T(*)[j])temporary((size_t)i * j), (*f)[l] = (T(*)[l])temporary((size_t)j * l);
    product(i, j, k, 1, A, B, e);
    product(j, l, m, 1, C, D, f);
    product(i, l, j, 1, e, f, out);
    free(e);
    free(f);
}

void atax(int m, int n, const T A[m][n], const T x[n], T out[restrict n]) {
    T *t = temporary(m);
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        T sum = 0;
        for (int j = 0; j < n; j++) sum += A[i][j] * x[j];
        t[i] = sum;
    }
    for (int j = 0; j < n; j++) out[j] = 0;
#pragma omp parallel for reduction(+ : out[ : n])
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) out[j] += A[i][j] * t[i];
    free(t);
}

void bicg(int m, int n, const T A[m][n], const T p[n], const T r[m], T s[restrict n], T q[restrict m]) {
    for (int j = 0; j < n; j++) s[j] = 0;
#pragma omp parallel for reduction(+ : s[ : n])
    for (int i = 0; i < m; i++) {
        T sum = 0;
        for (int j = 0; j < n; j++) {
            s[j] += r[i] * A[i][j];
            sum += A[i][j] * p[j];
        }
        q[i] = sum;
    }
}

void doitgen(int r, int q, int p, const T A[r][q][p], const T C[p][p], T out[restrict r][q][p]) {
#pragma omp parallel for
    for (int i = 0; i < r; i++)
        for (int j = 0; j < q; j++) {
            for (int k = 0; k < p; k++) out[i][j][k] = 0;
            for (int s = 0; s < p; s++)
                for (int k = 0; k < p; k++) out[i][j][k] += A[i][j][s] * C[s][k];
        }
}

void gemver(int n, const T A[n][n], const T u1[n], const T v1[n], const T u2[n], const T v2[n], const T y[n],
            const T z[n], T B[restrict n][n], T x[restrict n], T w[restrict n]) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) B[i][j] = A[i][j] + u1[i] * v1[j] + u2[i] * v2[j];
    for (int j = 0; j < n; j++) x[j] = z[j];
#pragma omp parallel for reduction(+ : x[ : n])
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) x[j] += BETA * B[i][j] * y[i];
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        T sum = 0;
        for (int j = 0; j < n; j++) sum += ALPHA * B[i][j] * x[j];
        w[i] = sum;
    }
}

void gesummv(int m, int n, const T A[m][n], const T B[m][n], const T x[n], T out[restrict m]) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        T s = 0, t = 0;
        for (int j = 0; j < n; j++) {
            s += A[i][j] * x[j];
            t += B[i][j] * x[j];
        }
        out[i] = ALPHA * s + BETA * t;
    }
}

void mvt(int m, int n, const T x1[m], const T x2[n], const T y1[n], const T y2[m], const T A[m][n], T out1[restrict m],
         T out2[restrict n]) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        T sum = x1[i];
        for (int j = 0; j < n; j++) sum += A[i][j] * y1[j];
        out1[i] = sum;
    }
    for (int j = 0; j < n; j++) out2[j] = x2[j];
#pragma omp parallel for reduction(+ : out2[ : n])
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) out2[j] += A[i][j] * y2[i];
}

void symm(int m, int n, const T A[m][m], const T B[m][n], const T C[m][n], T out[restrict m][n]) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) out[i][j] = BETA * C[i][j];
        for (int k = 0; k < m; k++) {
            T a = ALPHA * (k <= i ? A[i][k] : A[k][i]);
            for (int j = 0; j < n; j++) out[i][j] += a * B[k][j];
        }
    }
}

void syrk(int n, int k, const T A[n][k], const T C[n][n], T out[restrict n][n]) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            T sum = 0;
            for (int l = 0; l < k; l++) sum += A[i][l] * A[j][l];
            out[i][j] = ALPHA * sum + BETA * C[i][j];
        }
        for (int j = i + 1; j < n; j++) out[i][j] = C[i][j];
    }
}

void syr2k(int n, int k, const T A[n][k], const T B[n][k], const T C[n][n], T out[restrict n][n]) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            T sum = 0;
            for (int l = 0; l < k; l++) sum += A[i][l] * B[j][l] + B[i][l] * A[j][l];
            out[i][j] = ALPHA * sum + BETA * C[i][j];
        }
        for (int j = i + 1; j < n; j++) out[i][j] = C[i][j];
    }
}

void trmm(int m, int n, const T A[m][m], const T B[m][n], T out[restrict m][n]) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) out[i][j] = B[i][j];
        for (int k = i + 1; k < m; k++)
            for (int j = 0; j < n; j++) out[i][j] += A[k][i] * B[k][j];
        for (int j = 0; j < n; j++) out[i][j] *= ALPHA;
    }
}

static void centred(int n, int m, const T data[n][m], T mean[restrict m], T x[restrict n][m]) {
    for (int j = 0; j < m; j++) mean[j] = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) mean[j] += data[i][j];
    for (int j = 0; j < m; j++) mean[j] /= n;
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) x[i][j] = data[i][j] - mean[j];
}

static void products_of_columns(int n, int m, const T x[n][m], T out[restrict m][m]) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < m; i++) {
        for (int j = i; j < m; j++) out[i][j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = i; j < m; j++) out[i][j] += x[k][i] * x[k][j];
    }
}

void covariance(int n, int m, const T data[n][m], T out[restrict m][m]) {
    T *mean = temporary(m), (*x)[m] = (T(*)[m])temporary((size_t)n * m);
    centred(n, m, data, mean, x);
    products_of_columns(n, m, x, out);
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < m; i++)
        for (int j = i; j < m; j++) out[j][i] = out[i][j] /= n - 1;
    free(mean);
    free(x);
}

void correlation(int n, int m, const T data[n][m], T out[restrict m][m]) {
    T *mean = temporary(m), *deviation = temporary(m), (*x)[m] = (T(*)[m])temporary((size_t)n * m);
    centred(n, m, data, mean, x);
    for (int j = 0; j < m; j++) deviation[j] = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) deviation[j] += x[i][j] * x[i][j];
    for (int j = 0; j < m; j++) {
        T d = sqrt_of(deviation[j] / n);
        deviation[j] = sqrt_of(n) * (d <= (T)0.1 ? 1 : d);
    }
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) x[i][j] /= deviation[j];
    products_of_columns(n, m, x, out);
#pragma omp parallel for schedule(dynamic, 8)
    for (int i = 0; i < m; i++) {
        out[i][i] = 1;
        for (int j = i + 1; j < m; j++) out[j][i] = out[i][j];
    }
    free(mean);
    free(deviation);
    free(x);
}

void cholesky(int n, const T A[n][n], T out[restrict n][n]) {
    memset(out, 0, (size_t)n * n * sizeof(T));
    for (int j = 0; j < n; j++) {
        T d = A[j][j];
        for (int k = 0; k < j; k++) d -= out[j][k] * out[j][k];
        out[j][j] = d = sqrt_of(d);
#pragma omp parallel for
        for (int i = j + 1; i < n; i++) {
            T sum = A[i][j];
            for (int k = 0; k < j; k++) sum -= out[i][k] * out[j][k];
            out[i][j] = sum / d;
        }
    }
}

void lu(int n, const T A[n][n], T out[restrict n][n]) {
    memcpy(out, A, (size_t)n * n * sizeof(T));
    for (int k = 0; k < n; k++) {
#pragma omp parallel for
        for (int i = k + 1; i < n; i++) {
            T a = out[i][k] /= out[k][k];
            for (int j = k + 1; j < n; j++) out[i][j] -= a * out[k][j];
        }
    }
}

void ludcmp(int n, const T A[n][n], const T b[n], T out[restrict n]) {
    T(*f)[n] = (T(*)[n])temporary((size_t)n * n);
    lu(n, A, f);
    for (int i = 0; i < n; i++) {
        T sum = b[i];
        for (int j = 0; j < i; j++) sum -= f[i][j] * out[j];
        out[i] = sum;
    }
    for (int i = n - 1; i >= 0; i--) {
        T sum = out[i];
        for (int j = i + 1; j < n; j++) sum -= f[i][j] * out[j];
        out[i] = sum / f[i][i];
    }
    free(f);
}

/* No loop of the next three may have threads: each element, or sum, needs the one before. */
void trisolv(int n, const T L[n][n], const T b[n], T out[restrict n]) {
    for (int i = 0; i < n; i++) {
        T sum = b[i];
        for (int j = 0; j < i; j++) sum -= L[i][j] * out[j];
        out[i] = sum / L[i][i];
    }
}

void durbin(int n, const T r[n], T out[restrict n]) {
    T *z = temporary(n), alpha = 0, beta = 1;
    for (int k = 0; k < n; k++) {
        beta *= 1 - alpha * alpha;
        T sum = r[k];
        for (int i = 0; i < k; i++) sum += r[k - 1 - i] * out[i];
        alpha = -sum / beta;
        for (int i = 0; i < k; i++) z[i] = out[i] + alpha * out[k - 1 - i];
        for (int i = 0; i < k; i++) out[i] = z[i];
        out[k] = alpha;
    }
    free(z);
}

void seidel_2d(int h, int w, const T x[h][w], T out[restrict h][w]) {
    memcpy(out, x, (size_t)h * w * sizeof(T));
    for (int t = 0; t < STEPS; t++)
        for (int i = 1; i < h - 1; i++)
            for (int j = 1; j < w - 1; j++)
                out[i][j] = (out[i - 1][j - 1] + out[i - 1][j] + out[i - 1][j + 1] + out[i][j - 1] + out[i][j] +
                             out[i][j + 1] + out[i + 1][j - 1] + out[i + 1][j] + out[i + 1][j + 1]) /
                            9;
}

void gramschmidt(int m, int n, const T A[m][n], T Q[restrict m][n], T R[restrict n][n]) {
    memcpy(Q, A, (size_t)m * n * sizeof(T));
    memset(R, 0, (size_t)n * n * sizeof(T));
    for (int k = 0; k < n; k++) {
        T sum = 0;
        for (int i = 0; i < m; i++) sum += Q[i][k] * Q[i][k];
        R[k][k] = sqrt_of(sum);
        for (int i = 0; i < m; i++) Q[i][k] /= R[k][k];
#pragma omp parallel for
        for (int j = k + 1; j < n; j++) {
            T r = 0;
            for (int i = 0; i < m; i++) r += Q[i][k] * Q[i][j];
            R[k][j] = r;
            for (int i = 0; i < m; i++) Q[i][j] -= Q[i][k] * r;
        }
    }
}

void deriche(int h, int w, const T x[h][w], T out[restrict h][w]) {
    const double a = 0.25, e = exp(-a), k = (1 - e) * (1 - e) / (1 + 2 * a * e - exp(2 * a));
    const T a1 = (T)k, a2 = (T)(k * e * (a - 1)), a3 = (T)(k * e * (a + 1)), a4 = (T)(-k * e * e);
    const T b1 = (T)pow(2, -a), b2 = (T)(-e * e);
    T(*y)[w] = (T(*)[w])temporary((size_t)h * w), (*t)[w] = (T(*)[w])temporary((size_t)h * w);
#pragma omp parallel for
    for (int j = 0; j < w; j++) {
        T before = 0, y1 = 0, y2 = 0;
        for (int i = 0; i < h; i++) {
            y[i][j] = a1 * x[i][j] + a2 * before + b1 * y1 + b2 * y2;
            before = x[i][j], y2 = y1, y1 = y[i][j];
        }
        T x1 = 0, x2 = 0;
        y1 = y2 = 0;
        for (int i = h - 1; i >= 0; i--) {
            T z = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2;
            t[i][j] = y[i][j] + z;
            x2 = x1, x1 = x[i][j], y2 = y1, y1 = z;
        }
    }
#pragma omp parallel for
    for (int i = 0; i < h; i++) {
        T before = 0, y1 = 0, y2 = 0;
        for (int j = 0; j < w; j++) {
            y[i][j] = a1 * t[i][j] + a2 * before + b1 * y1 + b2 * y2;
            before = t[i][j], y2 = y1, y1 = y[i][j];
        }
        T x1 = 0, x2 = 0;
        y1 = y2 = 0;
        for (int j = w - 1; j >= 0; j--) {
            T z = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2;
            out[i][j] = y[i][j] + z;
            x2 = x1, x1 = t[i][j], y2 = y1, y1 = z;
        }
    }
    free(y);
    free(t);
}

void floyd_warshall(int n, const T D[n][n], T out[restrict n][n]) {
    memcpy(out, D, (size_t)n * n * sizeof(T));
    for (int k = 0; k < n; k++) {
#pragma omp parallel for
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) {
                T detour = out[i][k] + out[k][j];
                out[i][j] = out[i][j] < detour ? out[i][j] : detour;
            }
    }
}

/* By the lengths of parts, so that those of one length can have threads. */
void nussinov(int n, const T bases[n], T out[restrict n][n]) {
    memset(out, 0, (size_t)n * n * sizeof(T));
    for (int d = 1; d < n; d++) {
#pragma omp parallel for
        for (int i = 0; i < n - d; i++) {
            int j = i + d;
            T most = out[i + 1][j - 1] + (d > 1 && bases[i] + bases[j] == 3);
            for (int k = i; k < j; k++) {
                T both = out[i][k] + out[k + 1][j];
                most = most > both ? most : both;
            }
            out[i][j] = most;
        }
    }
}

static void half(int m, int n, T a, T d, const T u[m][n], T p[m], T q[restrict n][m], T v[restrict m][n]) {
    const T b = 1 - 2 * a;
    p[0] = 0;
    for (int j = 1; j < m - 1; j++) p[j] = -a / (a * p[j - 1] + b);
    for (int i = 0; i < n; i++) v[0][i] = v[m - 1][i] = 1;
    for (int j = 0; j < m; j++) v[j][0] = v[j][n - 1] = 1;
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) {
        q[i][0] = 1;
        for (int j = 1; j < m - 1; j++)
            q[i][j] = ((1 + 2 * d) * u[j][i] - d * (u[j][i - 1] + u[j][i + 1]) - a * q[i][j - 1]) / (a * p[j - 1] + b);
        for (int j = m - 2; j > 0; j--) v[j][i] = p[j] * v[j + 1][i] + q[i][j];
    }
}

static void half_of_rows(int m, int n, T a, T d, const T v[m][n], T p[n], T q[restrict m][n], T u[restrict m][n]) {
    const T e = 1 - 2 * d;
    p[0] = 0;
    for (int j = 1; j < n - 1; j++) p[j] = -d / (d * p[j - 1] + e);
    for (int j = 0; j < n; j++) u[0][j] = u[m - 1][j] = 1;
    for (int i = 0; i < m; i++) u[i][0] = u[i][n - 1] = 1;
#pragma omp parallel for
    for (int i = 1; i < m - 1; i++) {
        q[i][0] = 1;
        for (int j = 1; j < n - 1; j++)
            q[i][j] = ((1 + 2 * a) * v[i][j] - a * (v[i - 1][j] + v[i + 1][j]) - d * q[i][j - 1]) / (d * p[j - 1] + e);
        for (int j = n - 2; j > 0; j--) u[i][j] = p[j] * u[i][j + 1] + q[i][j];
    }
}

void adi(int m, int n, const T u0[m][n], T out[restrict m][n]) {
    const T a = (T)-0.75, d = (T)-0.5;
    T *p = temporary(m > n ? m : n), *q = temporary((size_t)m * n), (*v)[n] = (T(*)[n])temporary((size_t)m * n);
    memcpy(out, u0, (size_t)m * n * sizeof(T));
    for (int t = 0; t < STEPS; t++) {
        half(m, n, a, d, out, p, (T(*)[m])q, v);
        half_of_rows(m, n, a, d, v, p, (T(*)[n])q, out);
    }
    free(p);
    free(q);
    free(v);
}

void fdtd_2d(int h, int w, int t, const T ex0[h][w], const T ey0[h][w], const T hz0[h][w], const T border[t],
             T ex[restrict h][w], T ey[restrict h][w], T hz[restrict h][w]) {
    memcpy(ex, ex0, (size_t)h * w * sizeof(T));
    memcpy(ey, ey0, (size_t)h * w * sizeof(T));
    memcpy(hz, hz0, (size_t)h * w * sizeof(T));
    for (int s = 0; s < t; s++) {
        for (int j = 0; j < w; j++) ey[0][j] = border[s];
#pragma omp parallel for
        for (int i = 1; i < h; i++)
            for (int j = 0; j < w; j++) ey[i][j] -= (T)0.5 * (hz[i][j] - hz[i - 1][j]);
#pragma omp parallel for
        for (int i = 0; i < h; i++)
            for (int j = 1; j < w; j++) ex[i][j] -= (T)0.5 * (hz[i][j] - hz[i][j - 1]);
#pragma omp parallel for
        for (int i = 0; i < h - 1; i++)
            for (int j = 0; j < w - 1; j++)
                hz[i][j] -= (T)0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
}

/* The three stencils go from one array into another and back, so STEPS is even. */
static void jacobi_1d_sweep(int n, const T x[n], T y[restrict n]) {
#pragma omp parallel for
    for (int i = 1; i < n - 1; i++) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3;
}

void jacobi_1d(int n, const T x[n], T out[restrict n]) {
    T *other = temporary(n);
    memcpy(out, x, n * sizeof(T));
    memcpy(other, x, n * sizeof(T));
    for (int t = 0; t < STEPS; t += 2) {
        jacobi_1d_sweep(n, out, other);
        jacobi_1d_sweep(n, other, out);
    }
    free(other);
}

static void jacobi_2d_sweep(int h, int w, const T x[h][w], T y[restrict h][w]) {
#pragma omp parallel for
    for (int i = 1; i < h - 1; i++)
        for (int j = 1; j < w - 1; j++)
            y[i][j] = (T)0.2 * (x[i][j] + x[i][j - 1] + x[i][j + 1] + x[i + 1][j] + x[i - 1][j]);
}

void jacobi_2d(int h, int w, const T x[h][w], T out[restrict h][w]) {
    T(*other)[w] = (T(*)[w])temporary((size_t)h * w);
    memcpy(out, x, (size_t)h * w * sizeof(T));
    memcpy(other, x, (size_t)h * w * sizeof(T));
    for (int t = 0; t < STEPS; t += 2) {
        jacobi_2d_sweep(h, w, out, other);
        jacobi_2d_sweep(h, w, other, out);
    }
    free(other);
}

static void heat_3d_sweep(int l, int m, int n, const T u[l][m][n], T v[restrict l][m][n]) {
#pragma omp parallel for
    for (int i = 1; i < l - 1; i++)
        for (int j = 1; j < m - 1; j++)
            for (int k = 1; k < n - 1; k++)
                v[i][j][k] = u[i][j][k] + (T)0.125 * (u[i + 1][j][k] - 2 * u[i][j][k] + u[i - 1][j][k]) +
                             (T)0.125 * (u[i][j + 1][k] - 2 * u[i][j][k] + u[i][j - 1][k]) +
                             (T)0.125 * (u[i][j][k + 1] - 2 * u[i][j][k] + u[i][j][k - 1]);
}

void heat_3d(int l, int m, int n, const T u[l][m][n], T out[restrict l][m][n]) {
    T(*other)[m][n] = (T(*)[m][n])temporary((size_t)l * m * n);
    memcpy(out, u, (size_t)l * m * n * sizeof(T));
    memcpy(other, u, (size_t)l * m * n * sizeof(T));
    for (int t = 0; t < STEPS; t += 2) {
        heat_3d_sweep(l, m, n, out, other);
        heat_3d_sweep(l, m, n, other, out);
    }
    free(other);
}
