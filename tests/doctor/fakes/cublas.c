/*
 * A cuBLAS for tests. MAJOR is its major version; nothing else can be done with it.
 */
int cublasGetProperty(int which, int *out);
int cublasCreate_v2(void);
int cublasGemmEx(void);

int cublasGetProperty(int which, int *out) {
  static const int version[] = { MAJOR, 1, 2 };
  if (which < 0 || which > 2) return 1;
  *out = version[which];
  return 0;
}

int cublasCreate_v2(void) { return 1; }
int cublasGemmEx(void) { return 1; }
