// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<gif_lib.h>)
#error "gif_lib.h is missing (Debian package libgif-dev)"
#endif

#include <dlfcn.h>
#include <gif_lib.h>
#include <stdbool.h>

// The shared object that these headers describe: loaded when the first image is to be decoded.
#if GIFLIB_MAJOR == 5
#define SHIM_GIF_FILE "libgif.so.7"
#else
#error "name the shared object of this version of giflib"
#endif

// What is used of it, with the types that the headers say.
struct shim_gif {
    __typeof__(DGifOpen) *open;
    __typeof__(DGifCloseFile) *closeFile;
    __typeof__(DGifGetRecordType) *getRecordType;
    __typeof__(DGifGetImageDesc) *getImageDesc;
    __typeof__(DGifGetLine) *getLine;
    __typeof__(DGifGetExtension) *getExtension;
    __typeof__(DGifGetExtensionNext) *getExtensionNext;
    __typeof__(GifErrorString) *errorString;
};

#define SHIM_GIF_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_gif_load(void *library, struct shim_gif *functions) {
    return SHIM_GIF_LOAD(open, "DGifOpen")
        && SHIM_GIF_LOAD(closeFile, "DGifCloseFile")
        && SHIM_GIF_LOAD(getRecordType, "DGifGetRecordType")
        && SHIM_GIF_LOAD(getImageDesc, "DGifGetImageDesc")
        && SHIM_GIF_LOAD(getLine, "DGifGetLine")
        && SHIM_GIF_LOAD(getExtension, "DGifGetExtension")
        && SHIM_GIF_LOAD(getExtensionNext, "DGifGetExtensionNext")
        && SHIM_GIF_LOAD(errorString, "GifErrorString");
}
