// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<avif/avif.h>)
#error "avif/avif.h is missing (Debian package libavif-dev)"
#endif

#include <avif/avif.h>
#include <dlfcn.h>
#include <stdbool.h>

// The shared object that these headers describe, and Debian's package of it. With it come a dozen codecs, which few
// processes need: it is loaded when the first image is to be decoded.
#if AVIF_VERSION_MAJOR == 0 && AVIF_VERSION_MINOR == 11
#define SHIM_AVIF_FILE "libavif.so.15"
#define SHIM_AVIF_PACKAGE "libavif15"
#elif AVIF_VERSION_MAJOR == 1
#define SHIM_AVIF_FILE "libavif.so.16"
#define SHIM_AVIF_PACKAGE "libavif16"
#else
#error "name the shared object of this version of libavif"
#endif

// What is used of it, with the types that the headers say.
struct shim_avif {
    __typeof__(avifDecoderCreate) *decoderCreate;
    __typeof__(avifDecoderDestroy) *decoderDestroy;
    __typeof__(avifDecoderSetIOMemory) *decoderSetIOMemory;
    __typeof__(avifDecoderParse) *decoderParse;
    __typeof__(avifDecoderNextImage) *decoderNextImage;
    __typeof__(avifResultToString) *resultToString;
};

#define SHIM_AVIF_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_avif_load(void *library, struct shim_avif *functions) {
    return SHIM_AVIF_LOAD(decoderCreate, "avifDecoderCreate")
        && SHIM_AVIF_LOAD(decoderDestroy, "avifDecoderDestroy")
        && SHIM_AVIF_LOAD(decoderSetIOMemory, "avifDecoderSetIOMemory")
        && SHIM_AVIF_LOAD(decoderParse, "avifDecoderParse")
        && SHIM_AVIF_LOAD(decoderNextImage, "avifDecoderNextImage")
        && SHIM_AVIF_LOAD(resultToString, "avifResultToString");
}
