/*
 * An MPI library for tests. It says what Open MPI says, over two lines.
 */
#include <stdio.h>

int MPI_Get_library_version(char *out, int *n);
int MPI_Init_thread(void);
int MPI_Allreduce(void);

int MPI_Get_library_version(char *out, int *n) {
  *n = snprintf(out, 256, "Open MPI v4.1.4, package: test\nident: 4.1.4");
  return 0;
}

int MPI_Init_thread(void) { return 1; }
int MPI_Allreduce(void) { return 1; }
