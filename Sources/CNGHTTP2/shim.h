// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#include <nghttp2/nghttp2.h>

// malloc_usable_size(3), which <stdlib.h> lacks.
size_t malloc_usable_size(void *block);
