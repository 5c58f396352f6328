// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<turbojpeg.h>)
#error "turbojpeg.h is missing (Debian package libturbojpeg0-dev)"
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <turbojpeg.h>

// The shared object that these headers describe: loaded when the first image is to be decoded.
#define SHIM_JPEG_FILE "libturbojpeg.so.0"

// What is used of it, with the types that the headers say.
struct shim_jpeg {
    __typeof__(tjInitDecompress) *initDecompress;
    __typeof__(tjDestroy) *destroy;
    __typeof__(tjDecompressHeader3) *decompressHeader3;
    __typeof__(tjDecompress2) *decompress2;
    __typeof__(tjGetErrorCode) *getErrorCode;
    __typeof__(tjGetErrorStr2) *getErrorStr2;
};

#define SHIM_JPEG_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_jpeg_load(void *library, struct shim_jpeg *functions) {
    return SHIM_JPEG_LOAD(initDecompress, "tjInitDecompress")
        && SHIM_JPEG_LOAD(destroy, "tjDestroy")
        && SHIM_JPEG_LOAD(decompressHeader3, "tjDecompressHeader3")
        && SHIM_JPEG_LOAD(decompress2, "tjDecompress2")
        && SHIM_JPEG_LOAD(getErrorCode, "tjGetErrorCode")
        && SHIM_JPEG_LOAD(getErrorStr2, "tjGetErrorStr2");
}
