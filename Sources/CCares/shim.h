// The system headers that c-ares includes belong to the Glibc module: imported first, they aren't taken for ours.
#pragma clang module import SwiftGlibc

#include <ares.h>
