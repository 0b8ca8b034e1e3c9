// Two kernels, each with an array: the index of the first is known at run time only.

__global__ void rolled(float* x, int shift) {
  float own[16];
  for (int i = 0; i < 16; ++i) own[i] = x[i];
  for (int i = 0; i < 16; ++i) x[i] = own[(i + shift) & 15];
}

__global__ void unrolled(float* x) {
  float own[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) own[i] = x[i];
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = own[15 - i];
}
