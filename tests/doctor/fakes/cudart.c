/*
 * A CUDA runtime for tests: VERSION is what it says it is, CODE what the question returns. UNDEFINED makes it call a function
 * that no library has, as a half-updated installation does.
 */
#ifndef CODE
#define CODE 0
#endif

int cudaRuntimeGetVersion(int *out);
int cudaMalloc(void);
int cudaLaunchKernel(void);

#ifdef UNDEFINED
int yoke_test_defined_nowhere(void);
int cudaMalloc(void) { return yoke_test_defined_nowhere(); }
#else
int cudaMalloc(void) { return 1; }
#endif

int cudaLaunchKernel(void) { return 1; }

int cudaRuntimeGetVersion(int *out) {
  *out = VERSION;
  return CODE;
}
