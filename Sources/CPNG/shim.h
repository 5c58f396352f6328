// The system headers included here belong to the Glibc module: imported first, they are not taken for ours.
#pragma clang module import SwiftGlibc

#if !__has_include(<png.h>)
#error "png.h is missing (Debian package libpng-dev)"
#endif

#include <dlfcn.h>
#include <png.h>
#include <stdbool.h>

// The shared object that these headers describe: loaded when the first image is to be decoded.
#if PNG_LIBPNG_VER_MAJOR == 1 && PNG_LIBPNG_VER_MINOR == 6
#define SHIM_PNG_FILE "libpng16.so.16"
#else
#error "name the shared object of this version of libpng"
#endif

// What is used of it, with the types that the headers say.
struct shim_png {
    __typeof__(png_image_begin_read_from_memory) *beginReadFromMemory;
    __typeof__(png_image_finish_read) *finishRead;
    __typeof__(png_image_free) *free;
};

#define SHIM_PNG_LOAD(field, name) \
    (functions->field = (__typeof__(functions->field))dlsym(library, name)) != NULL

// False if the library has not all of them.
static inline bool shim_png_load(void *library, struct shim_png *functions) {
    return SHIM_PNG_LOAD(beginReadFromMemory, "png_image_begin_read_from_memory")
        && SHIM_PNG_LOAD(finishRead, "png_image_finish_read")
        && SHIM_PNG_LOAD(free, "png_image_free");
}
