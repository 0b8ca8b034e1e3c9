// Two kernels, each with an array, the index of the first of which is known at run time only, and one of many
// registers.

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

// More values at once than 128 registers hold.
__global__ void wide(float* x) {
  float values[140];
#pragma unroll
  for (int i = 0; i < 140; ++i) values[i] = x[i * 256 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 140; ++i) x[i * 256 + threadIdx.x] = values[139 - i];
}
