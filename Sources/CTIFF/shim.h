// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<tiffio.h>)
#error "tiffio.h is missing (Debian package libtiff-dev)"
#endif

#include <dlfcn.h>
#include <stdbool.h>
#include <tiffio.h>

// The shared object that these headers describe. With it come half a dozen codecs, which few processes need: it is
// loaded when the first image is to be decoded.
#if TIFFLIB_VERSION >= 20221213 && TIFFLIB_VERSION < 21000000
#define SHIM_TIFF_FILE "libtiff.so.6"
#else
#error "name the shared object of this version of libtiff"
#endif

// What is used of it, with the types that the headers say.
struct shim_tiff {
    __typeof__(TIFFOpenOptionsAlloc) *openOptionsAlloc;
    __typeof__(TIFFOpenOptionsFree) *openOptionsFree;
    __typeof__(TIFFOpenOptionsSetMaxSingleMemAlloc) *openOptionsSetMaxSingleMemAlloc;
    __typeof__(TIFFOpenOptionsSetErrorHandlerExtR) *openOptionsSetErrorHandlerExtR;
    __typeof__(TIFFOpenOptionsSetWarningHandlerExtR) *openOptionsSetWarningHandlerExtR;
    __typeof__(TIFFClientOpenExt) *clientOpenExt;
    __typeof__(TIFFClose) *close;
    __typeof__(TIFFReadDirectory) *readDirectory;
    __typeof__(TIFFVGetFieldDefaulted) *vGetFieldDefaulted;
    __typeof__(TIFFIsTiled) *isTiled;
    __typeof__(TIFFTileSize) *tileSize;
    __typeof__(TIFFNumberOfTiles) *numberOfTiles;
    __typeof__(TIFFReadEncodedTile) *readEncodedTile;
    __typeof__(TIFFStripSize) *stripSize;
    __typeof__(TIFFNumberOfStrips) *numberOfStrips;
    __typeof__(TIFFReadEncodedStrip) *readEncodedStrip;
    __typeof__(TIFFGetStrileByteCount) *getStrileByteCount;
};

#define SHIM_TIFF_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_tiff_load(void *library, struct shim_tiff *functions) {
    return SHIM_TIFF_LOAD(openOptionsAlloc, "TIFFOpenOptionsAlloc")
        && SHIM_TIFF_LOAD(openOptionsFree, "TIFFOpenOptionsFree")
        && SHIM_TIFF_LOAD(openOptionsSetMaxSingleMemAlloc, "TIFFOpenOptionsSetMaxSingleMemAlloc")
        && SHIM_TIFF_LOAD(openOptionsSetErrorHandlerExtR, "TIFFOpenOptionsSetErrorHandlerExtR")
        && SHIM_TIFF_LOAD(openOptionsSetWarningHandlerExtR, "TIFFOpenOptionsSetWarningHandlerExtR")
        && SHIM_TIFF_LOAD(clientOpenExt, "TIFFClientOpenExt")
        && SHIM_TIFF_LOAD(close, "TIFFClose")
        && SHIM_TIFF_LOAD(readDirectory, "TIFFReadDirectory")
        && SHIM_TIFF_LOAD(vGetFieldDefaulted, "TIFFVGetFieldDefaulted")
        && SHIM_TIFF_LOAD(isTiled, "TIFFIsTiled")
        && SHIM_TIFF_LOAD(tileSize, "TIFFTileSize")
        && SHIM_TIFF_LOAD(numberOfTiles, "TIFFNumberOfTiles")
        && SHIM_TIFF_LOAD(readEncodedTile, "TIFFReadEncodedTile")
        && SHIM_TIFF_LOAD(stripSize, "TIFFStripSize")
        && SHIM_TIFF_LOAD(numberOfStrips, "TIFFNumberOfStrips")
        && SHIM_TIFF_LOAD(readEncodedStrip, "TIFFReadEncodedStrip")
        && SHIM_TIFF_LOAD(getStrileByteCount, "TIFFGetStrileByteCount");
}
