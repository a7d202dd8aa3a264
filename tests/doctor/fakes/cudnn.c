/*
 * A cuDNN for tests: VERSION and BUILT_FOR are numbers in its own form. ABORTS, EXITS and NEEDS_PART are ways in which
 * libraries let programs down.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

size_t cudnnGetVersion(void);
size_t cudnnGetCudartVersion(void);
int cudnnCreate(void);

#ifdef NEEDS_PART
int yoke_test_part(void);
int cudnnCreate(void) { return yoke_test_part(); }
#else
int cudnnCreate(void) { return 1; }
#endif

size_t cudnnGetVersion(void) {
#ifdef ABORTS
  fprintf(stderr, "Could not load library\n\tlibcudnn_graph.so.9\n");
  abort();
#elif defined EXITS
  printf("no licence\n");
  exit(5);
#endif
  return VERSION;
}

size_t cudnnGetCudartVersion(void) { return BUILT_FOR; }
